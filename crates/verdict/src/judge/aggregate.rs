//! What the runs of an experiment have in common.

use stillwell_plan::ExperimentPlan;
use stillwell_stats::Sample;

use super::table::RunTable;
use super::{CautionSeen, CheckVerdict, PlacedCpus, RateFigure, RunNotUsed};
use crate::check::{CheckPassed, CheckResult};

pub(super) fn not_used(table: &RunTable<'_>) -> Vec<RunNotUsed> {
    let doubted = table.iter().filter(|(_, _, run)| !run.doubts.is_empty());
    doubted
        .map(|(pair, variant, run)| RunNotUsed {
            pair,
            variant: variant.to_owned(),
            run: run.run,
            doubts: run.doubts.clone(),
        })
        .collect()
}

/// Only over completed runs: one that was cut off has not had the time to keep
/// or break a bound.
pub(super) fn checks(plan: &ExperimentPlan, table: &RunTable<'_>) -> Vec<CheckVerdict> {
    let plans = plan.rig.checks.iter();
    let verdict = |name: &str| {
        let completed = table
            .iter()
            .filter(|(_, _, run)| run.outcome.is_completed());
        let results = completed.filter_map(|(_, variant, run)| {
            let mut own = run.checks.iter();
            Some((variant, own.find(|result| result.name == name)?))
        });
        results.collect::<Vec<_>>()
    };
    plans
        .map(|plan| {
            let results = verdict(&plan.name);
            let with = |passed| {
                let own = results
                    .iter()
                    .filter(move |(_, result)| result.passed == passed);
                own.map(|(variant, _)| (*variant).to_owned())
            };
            let mut failed_variants: Vec<String> = with(CheckPassed::Fail).collect();
            failed_variants.sort_unstable();
            failed_variants.dedup();
            let measured = results.iter().map(|(_, result)| *result);
            let worst = measured.max_by(|one, other| beyond(one).total_cmp(&beyond(other)));
            CheckVerdict {
                name: plan.name.clone(),
                description: plan.description.clone(),
                passed: count(with(CheckPassed::Pass).count()),
                not_measured: count(with(CheckPassed::NotMeasured).count()),
                runs: count(results.len()),
                worst_observed: worst.and_then(|result| result.observed),
                upper: plan.upper,
                lower: plan.lower,
                unit: worst.map_or_else(String::new, |result| result.unit.clone()),
                failed_variants,
            }
        })
        .collect()
}

/// How far the observed value lies beyond a bound; negative within them.
fn beyond(result: &CheckResult) -> f64 {
    let Some(observed) = result.observed else {
        return f64::NEG_INFINITY;
    };
    let above = result.upper.map(|bound| observed - bound);
    let below = result.lower.map(|bound| bound - observed);
    let both = [above, below].into_iter().flatten();
    both.fold(f64::NEG_INFINITY, f64::max)
}

pub(super) fn cautions(table: &RunTable<'_>) -> Vec<CautionSeen> {
    let of = count(table.iter().count());
    let mut seen: Vec<CautionSeen> = Vec::new();
    for (_, _, run) in table.iter() {
        for (index, caution) in run.cautions.iter().enumerate() {
            let told = |earlier: &crate::Caution| earlier.is_same_kind(caution);
            if run.cautions[..index].iter().any(told) {
                continue;
            }
            match seen.iter_mut().find(|own| told(&own.caution)) {
                Some(own) => own.runs += 1,
                None => seen.push(CautionSeen {
                    caution: caution.clone(),
                    runs: 1,
                    of,
                }),
            }
        }
    }
    seen
}

pub(super) fn cpus(table: &RunTable<'_>) -> PlacedCpus {
    let first = table.iter().next();
    first.map_or_else(PlacedCpus::default, |(_, _, run)| PlacedCpus {
        subject: run.figures.subject_cpus.clone(),
        own: run.figures.own_cpus.clone(),
    })
}

pub(super) fn rate(table: &RunTable<'_>) -> Vec<RateFigure> {
    let all = || table.iter().flat_map(|(_, _, run)| &run.figures.generators);
    let mut figures: Vec<RateFigure> = Vec::new();
    for generator in all() {
        if figures.iter().any(|own| own.id == generator.id) {
            continue;
        }
        let own = || all().filter(|other| other.id == generator.id);
        figures.push(RateFigure {
            id: generator.id.clone(),
            unit: generator.unit,
            asked_per_second: mean(own().filter_map(|own| own.asked_per_second)),
            achieved_per_second: mean(own().filter_map(|own| own.achieved_per_second)),
        });
    }
    figures
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    Some(Sample::try_new(&values, 1).ok()?.mean())
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
