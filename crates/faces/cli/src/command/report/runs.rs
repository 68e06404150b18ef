//! The runs of a suite, read from its captures for the charts of a page; and the profiles of runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use stillwell_capture::{Capture, Manifest, RunProfiles, RunStage};
use stillwell_experiment::Results;
use stillwell_plan::ExperimentPlan;
use stillwell_report::{Curve, ExperimentRuns, RunCollector, TargetProfiles, by_attention};
use stillwell_units::Nanos;
use stillwell_verdict::{ExperimentVerdict, RunSummary};

/// Maximum number of points of one quantity over all experiments; it bounds the size of the page.
const POINTS_OF_SUITE: usize = 352;

/// Maximum number of pairs of all experiments whose captures are read; it bounds the time of the report.
const PAIRS_OF_SUITE: usize = 400;

/// Maximum number of experiments whose captures are read; it bounds both.
const DRAWN_MAX: usize = 16;

/// Reads the runs of experiments with these verdicts; an experiment without readable runs is missing.
pub(crate) fn read(
    results: &Results,
    experiments: &[ExperimentPlan],
    verdicts: &[ExperimentVerdict],
) -> Vec<ExperimentRuns> {
    let drawn = by_attention(verdicts).into_iter().take(DRAWN_MAX);
    let drawn: BTreeSet<&str> = drawn.map(|verdict| verdict.name.as_str()).collect();
    let limits = DrawnLimits::of(drawn.len());
    let experiments = experiments.iter();
    experiments
        .filter_map(|experiment| {
            let is_drawn = drawn.contains(experiment.name.as_str());
            of_experiment(results, experiment, is_drawn.then_some(limits))
        })
        .collect()
}

/// Returns the lines of two suites that are compared, for each of these experiments: those of the tested variants. `None`
/// is the only experiment of both.
pub(crate) fn compared(
    sides: &[(String, Results)],
    experiments: &[Option<String>],
) -> Vec<Vec<Curve>> {
    let records = sides.iter().map(|(_, results)| results.record().ok());
    let records: Vec<_> = records.collect();
    let limits = DrawnLimits::of(experiments.len().min(DRAWN_MAX));
    let drawn = experiments.iter().enumerate().map(|(place, name)| {
        let names = sides.iter().map(|(name, _)| name.clone());
        let mut collector = RunCollector::unpaired(names, limits.points);
        if place >= DRAWN_MAX {
            return Vec::new();
        }
        for (side, ((_, results), record)) in sides.iter().zip(&records).enumerate() {
            let plans = record.iter().flat_map(|record| &record.plan.experiments);
            let mut plans =
                plans.filter(|plan| name.as_ref().is_none_or(|name| plan.name == *name));
            if let Some(plan) = plans.next() {
                add_tested(&mut collector, side, results, plan, limits.pairs);
            }
        }
        collector.finish().curves
    });
    drawn.collect()
}

/// Returns the profiles of one target in one experiment, of runs in these folders. They are read one after the other;
/// runs without profiles are left out.
pub(crate) fn profiles_of<'a>(
    names: (&str, &str),
    runs: impl IntoIterator<Item = (&'a RunSummary, PathBuf)>,
) -> TargetProfiles {
    let stored = runs.into_iter().filter_map(|(run, folder)| {
        let profiles = RunProfiles::open(&folder).ok().flatten()?;
        Some((run, profiles))
    });
    TargetProfiles::of(names, stored)
}

/// Adds the runs of the tested variant of an experiment.
fn add_tested(
    collector: &mut RunCollector,
    side: usize,
    results: &Results,
    experiment: &ExperimentPlan,
    pairs_max: usize,
) {
    let variants = &experiment.variants;
    let Some(tested) = variants.get(1).or_else(|| variants.first()) else {
        return;
    };
    let mut runs = results.summaries(experiment).unwrap_or_default();
    runs.retain(|run| {
        let identity = run.identity.as_ref();
        identity.is_some_and(|identity| identity.variant == tested.name)
    });
    for (stage, pair) in evenly(&shown_pairs(&runs, 1), pairs_max) {
        let folder = results.run_of(&experiment.name, stage, pair, &tested.name);
        if let Ok(capture) = Capture::open(&folder) {
            collector.add_capture_of(side, &capture);
        }
    }
}

/// Limits of the charts of one experiment.
#[derive(Clone, Copy, Debug)]
struct DrawnLimits {
    points: usize,
    pairs: usize,
}

impl DrawnLimits {
    /// Returns the limits of each of `count` experiments.
    fn of(count: usize) -> Self {
        Self {
            points: (POINTS_OF_SUITE / count.max(1)).clamp(20, 120),
            pairs: (PAIRS_OF_SUITE / count.max(1)).clamp(4, 20),
        }
    }
}

fn of_experiment(
    results: &Results,
    experiment: &ExperimentPlan,
    limits: Option<DrawnLimits>,
) -> Option<ExperimentRuns> {
    let summaries = results.summaries(experiment).ok()?;
    let names = experiment
        .variants
        .iter()
        .map(|variant| variant.name.clone());
    let points_max = limits.map_or(0, |limits| limits.points);
    let mut collector = RunCollector::new(&experiment.name, names, points_max);
    collector.add_values(&summaries, &experiment.goals);
    add_times(&mut collector, results, experiment, &summaries);
    let pairs = shown_pairs(&summaries, experiment.variants.len());
    collector.add_summaries(pairs.values().flatten().copied());
    for run in pairs.values().flatten() {
        add_profiles(&mut collector, results, &experiment.name, run);
    }
    let pairs_max = limits.map_or(0, |limits| limits.pairs);
    for (stage, pair) in evenly(&pairs, pairs_max) {
        for variant in &experiment.variants {
            let folder = results.run_of(&experiment.name, stage, pair, &variant.name);
            if let Ok(capture) = Capture::open(&folder) {
                collector.add_capture(&capture);
            }
        }
    }
    Some(ExperimentRuns {
        is_left_out: limits.is_none(),
        ..collector.finish()
    })
}

/// Adds the times of the runs, if a link needs them.
fn add_times(
    collector: &mut RunCollector,
    results: &Results,
    experiment: &ExperimentPlan,
    runs: &[RunSummary],
) {
    if experiment.report_links.is_empty() {
        return;
    }
    for identity in runs.iter().filter_map(|run| run.identity.as_ref()) {
        let (stage, pair) = (identity.stage, identity.pair);
        let folder = results.run_of(&experiment.name, stage, pair, &identity.variant);
        if let Ok(manifest) = Manifest::open(&folder) {
            collector.add_time(&manifest);
        }
    }
}

/// Adds the profiles of a run, if it has any that can be read.
fn add_profiles(
    collector: &mut RunCollector,
    results: &Results,
    experiment: &str,
    run: &RunSummary,
) {
    let Some(identity) = &run.identity else {
        return;
    };
    let folder = results.run_of(experiment, identity.stage, identity.pair, &identity.variant);
    if let Ok(Some(profiles)) = RunProfiles::open(&folder) {
        collector.add_profiles(run, &profiles);
    }
}

type ShownPairs<'a> = BTreeMap<(RunStage, u32), Vec<&'a RunSummary>>;

/// Returns the pairs whose runs have no warning. On a busy machine that may be none: then it
/// returns every pair with a run of each variant, since the report shows unreliable figures too.
fn shown_pairs(summaries: &[RunSummary], variants: usize) -> ShownPairs<'_> {
    let reliable = pairs_of(
        summaries.iter().filter(|run| run.warnings.is_empty()),
        variants,
    );
    if reliable.is_empty() {
        let measured = |run: &&RunSummary| run.measured > Nanos::ZERO;
        pairs_of(summaries.iter().filter(measured), variants)
    } else {
        reliable
    }
}

/// Returns the pairs that have a run of each variant.
fn pairs_of<'a>(runs: impl Iterator<Item = &'a RunSummary>, variants: usize) -> ShownPairs<'a> {
    let mut pairs = ShownPairs::new();
    for run in runs {
        if let Some(identity) = &run.identity {
            let pair = pairs.entry((identity.stage, identity.pair));
            pair.or_default().push(run);
        }
    }
    pairs.retain(|_, runs| runs.len() == variants);
    pairs
}

/// Returns at most `max` pairs, evenly over all of them.
fn evenly(pairs: &ShownPairs<'_>, max: usize) -> Vec<(RunStage, u32)> {
    let all: Vec<_> = pairs.keys().copied().collect();
    let shown = all.len().min(max);
    (0..shown)
        .map(|index| all[index * all.len() / shown])
        .collect()
}

#[cfg(test)]
mod tests {
    use stillwell_capture::RunOutcome;
    use stillwell_verdict::RunWarning;
    use stillwell_verdict::synthetic::run;

    use super::*;

    fn pair(number: u32, warnings: &[RunWarning]) -> [RunSummary; 2] {
        ["a", "b"].map(|variant| RunSummary {
            warnings: warnings.to_vec(),
            ..run("e", (RunStage::Search, number, variant), &[])
        })
    }

    #[test]
    fn unreliable_runs_are_drawn_if_there_are_no_others() {
        let harmed = pair(
            1,
            &[RunWarning::NotCompleted {
                outcome: RunOutcome::Completed,
            }],
        );
        let shown = shown_pairs(&harmed, 2);
        assert_eq!(
            shown.keys().copied().collect::<Vec<_>>(),
            [(RunStage::Search, 1)]
        );
        let mixed = [pair(0, &[]), harmed].concat();
        let shown = shown_pairs(&mixed, 2);
        assert_eq!(
            shown.keys().copied().collect::<Vec<_>>(),
            [(RunStage::Search, 0)]
        );
        assert!(shown_pairs(&mixed[1..2], 2).is_empty());
    }
}
