//! Common facts of the runs of an experiment.

use stillwell_capture::RunStage;
use stillwell_plan::ExperimentPlan;
use stillwell_stats::Sample;
use stillwell_units::count;

use super::pairs::{alone, usable};
use super::table::RunTable;
use crate::check::{CheckPassed, CheckResult};
use crate::experiment_verdict::{
    ArmDiscards, CheckVerdict, PlacedCpus, RateFigure, RunNotUsed, RunNoteCount,
};
use crate::limits;
use crate::run_note::RunNote;
use crate::run_warning::RunWarning;
use crate::summary::RunSummary;

pub(super) fn not_used(plan: &ExperimentPlan, table: &RunTable<'_>) -> Vec<RunNotUsed> {
    let values = |run: &RunSummary| {
        let goals = plan.goals.iter();
        goals
            .filter_map(|goal| Some((goal.metric.clone(), run.value(&goal.metric)?)))
            .collect()
    };
    let all = table.iter().map(|(stage, pair, variant, row)| RunNotUsed {
        stage,
        pair,
        variant: variant.to_owned(),
        run: row.run.run,
        warnings: row
            .run
            .warnings
            .iter()
            .chain(&row.pair_warnings)
            .cloned()
            .collect(),
        values: values(row.run),
    });
    all.filter(|run| !run.warnings.is_empty()).collect()
}

/// Of each variant the runs that say nothing about the primary goal by themselves: that
/// two are no pair is not the fault of either.
pub(super) fn discards(plan: &ExperimentPlan, table: &RunTable<'_>) -> Vec<ArmDiscards> {
    let Some(goal) = plan.goals.first() else {
        return Vec::new();
    };
    let of = |variant: &str| {
        let item = table.iter().filter(|(_, _, item, _)| *item == variant);
        let rejected = item.filter(|(_, _, _, row)| alone(row.run, &goal.metric, table).is_err());
        rejected.map(|(_, _, _, row)| row).collect::<Vec<_>>()
    };
    let variants = plan.variants.iter();
    variants
        .map(|variant| {
            let rows = of(&variant.name);
            let failed = rows.iter().filter(|row| {
                let mut warnings = row.run.warnings.iter();
                warnings.any(RunWarning::is_of_target)
            });
            ArmDiscards {
                variant: variant.name.clone(),
                runs: count(rows.len()),
                target_failures: count(failed.count()),
            }
        })
        .collect()
}

/// True if discards that fall on either of two arms by a fair coin would rarely
/// fall as unevenly as on the arm with most and the arm with fewest of them, corrected for the
/// number of pairs of arms.
pub(super) fn is_unbalanced(discards: &[ArmDiscards]) -> bool {
    let runs = || discards.iter().map(|item| item.runs);
    let (Some(most), Some(fewest)) = (runs().max(), runs().min()) else {
        return false;
    };
    let arms = f64::from(count(discards.len()));
    let pairs_of_arms = arms * (arms - 1.0) / 2.0;
    most > fewest && two_sided_coin(most, fewest) * pairs_of_arms <= limits::DISCARDS_UNBALANCED
}

/// Probability that a fair coin falls at least as unevenly as this.
fn two_sided_coin(most: u32, fewest: u32) -> f64 {
    let tosses = most.saturating_add(fewest);
    let mut ways = 1.0;
    let mut tail = 0.0;
    for heads in 0..=fewest {
        tail += ways;
        let (left, next) = (f64::from(tosses - heads), f64::from(heads + 1));
        ways *= left / next;
    }
    (2.0 * tail * (-f64::from(tosses)).exp2()).min(1.0)
}

/// Pairs of both stages with a run that says nothing about the primary goal.
pub(super) fn pairs_discarded(plan: &ExperimentPlan, table: &RunTable<'_>) -> u32 {
    let Some(goal) = plan.goals.first() else {
        return 0;
    };
    let lost = |stage: RunStage, pair: u32| {
        let rows = plan.variants.iter();
        let mut rows = rows.filter_map(|variant| table.row(stage, pair, &variant.name));
        rows.any(|row| usable(row, &goal.metric, table).is_err())
    };
    let stages = [RunStage::Search, RunStage::Confirm].into_iter();
    let discarded = stages.map(|stage| {
        let pairs = table.pairs_of(stage).into_iter();
        pairs.filter(|pair| lost(stage, *pair)).count()
    });
    count(discarded.sum())
}

/// Only over completed runs: one that was cut off has not had the time to keep
/// or break a bound.
pub(super) fn checks(plan: &ExperimentPlan, table: &RunTable<'_>) -> Vec<CheckVerdict> {
    let plans = plan.run_plan.checks.iter();
    let verdict = |name: &str| {
        let completed = table
            .iter()
            .filter(|(_, _, _, row)| row.run.outcome.is_completed());
        let results = completed.filter_map(|(_, _, variant, row)| {
            let mut item = row.run.checks.iter();
            Some((variant, item.find(|result| result.name == name)?))
        });
        results.collect::<Vec<_>>()
    };
    plans
        .map(|plan| {
            let results = verdict(&plan.name);
            let with = |passed| {
                let item = results
                    .iter()
                    .filter(move |(_, result)| result.passed == passed);
                item.map(|(variant, _)| (*variant).to_owned())
            };
            let mut failed_variants: Vec<String> = with(CheckPassed::Fail).collect();
            failed_variants.sort_unstable();
            failed_variants.dedup();
            let measured = results.iter().map(|(_, result)| *result);
            let worst = measured.max_by(|left, right| beyond(left).total_cmp(&beyond(right)));
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

/// Distance by which the observed value lies beyond a bound; negative within them.
fn beyond(result: &CheckResult) -> f64 {
    let Some(observed) = result.observed else {
        return f64::NEG_INFINITY;
    };
    let above = result.upper.map(|bound| observed - bound);
    let below = result.lower.map(|bound| bound - observed);
    let both = [above, below].into_iter().flatten();
    both.fold(f64::NEG_INFINITY, f64::max)
}

/// Returns the notes about runs. A light load matters only to the cost of an event.
pub(super) fn notes(plan: &ExperimentPlan, table: &RunTable<'_>) -> Vec<RunNoteCount> {
    let of = count(table.iter().count());
    let mut goals = plan.goals.iter();
    let needs_load = goals.any(|goal| goal.metric.is_cost_per_event());
    let matters = |note: &RunNote| needs_load || !matches!(note, RunNote::LightLoad { .. });
    let mut seen: Vec<RunNoteCount> = Vec::new();
    for (_, _, _, row) in table.iter() {
        let run = row.run;
        for (index, note) in run.notes.iter().enumerate() {
            let reported = |earlier: &RunNote| earlier.is_same_kind(note);
            if !matters(note) || run.notes[..index].iter().any(reported) {
                continue;
            }
            match seen.iter_mut().find(|item| reported(&item.note)) {
                Some(item) => item.runs += 1,
                None => seen.push(RunNoteCount {
                    note: note.clone(),
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
    first.map_or_else(PlacedCpus::default, |(_, _, _, row)| PlacedCpus {
        target: row.run.figures.target_cpus.clone(),
        workers: row.run.figures.load_cpus.clone(),
    })
}

pub(super) fn rate(table: &RunTable<'_>) -> Vec<RateFigure> {
    let all = || {
        let completed = table
            .iter()
            .filter(|(_, _, _, row)| row.run.outcome.is_completed());
        completed.flat_map(|(_, _, _, row)| &row.run.figures.generators)
    };
    let mut figures: Vec<RateFigure> = Vec::new();
    for generator in all() {
        if figures.iter().any(|item| item.id == generator.id) {
            continue;
        }
        let item = || all().filter(|right| right.id == generator.id);
        figures.push(RateFigure {
            id: generator.id.clone(),
            unit: generator.unit,
            requested_per_second: mean(item().filter_map(|item| item.requested_per_second)),
            achieved_per_second: mean(item().filter_map(|item| item.achieved_per_second)),
        });
    }
    figures
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    Some(Sample::try_new(&values, 1).ok()?.mean())
}
