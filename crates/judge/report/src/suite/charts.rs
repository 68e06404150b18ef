//! Charts of a suite: intervals of all goals, and pairs in the order of their runs.

use stillwell_plan::goal::Scale;
use stillwell_stats::{Level, Sample, StudentT};
use stillwell_units::{as_usize, float_from_u64};
use stillwell_verdict::{ExperimentVerdict, GoalVerdict};

use crate::document::{
    Block, Chart, Fold, Interval, IntervalChart, IntervalRow, PairSeries, PairStage, Section,
};
use crate::words;

/// Returns the intervals of one experiment's goals.
pub(super) fn intervals(experiment: &ExperimentVerdict) -> Block {
    let rows = experiment.goals.iter();
    let rows = rows.map(|goal| row(goal, words::goal_name(goal, experiment)));
    Block::Chart(Chart::Intervals(IntervalChart::of_changes(rows.collect())))
}

/// Most rows of a chart of all goals; beyond it the chart has the goals that decide alone.
const ROWS_MAX: usize = 90;

/// Returns the intervals of all goals of several experiments; one experiment has them in its section.
pub(super) fn all_intervals(experiments: &[&ExperimentVerdict]) -> Block {
    let several = experiments.len() > 1;
    let goals: usize = experiments.iter().map(|entry| entry.goals.len()).sum();
    let is_short = goals > ROWS_MAX;
    let rows = experiments
        .iter()
        .filter(|_| several)
        .flat_map(|experiment| {
            let deciding = words::deciding(experiment);
            let goals = experiment.goals.iter();
            let goals = goals.filter(move |goal| !is_short || deciding == Some(goal));
            goals.map(move |goal| {
                let name = words::goal_name(goal, experiment);
                row(goal, format!("{}: {name}", experiment.name))
            })
        });
    let mut chart = IntervalChart::of_changes(rows.collect());
    if is_short {
        chart
            .title
            .push_str("; the goal that decides each experiment");
    }
    Block::Chart(Chart::Intervals(chart))
}

fn row(goal: &GoalVerdict, name: String) -> IntervalRow {
    let unreliable = goal.unreliable.and_then(|estimate| estimate.change);
    let change = unreliable.or(goal.change);
    let text = change.map(|change| {
        let text = words::change_with_interval(goal.scale, change);
        match unreliable {
            Some(_) => format!("{text} ({})", words::UNRELIABLE),
            None => text,
        }
    });
    IntervalRow {
        name,
        text: words::or_missing(text),
        sign: Some(goal.verdict.into()),
        interval: change.map(Into::into),
        tolerance: goal.tolerance.share(),
        scale: goal.scale,
        is_primary: goal.primary,
    }
}

/// Most experiments of a suite whose page has the pairs of every goal.
const ALL_PAIRS_MAX: usize = 10;

/// Returns a chart of pairs for the primary goal, and those of the other goals folded; in a suite of very many
/// experiments the first alone.
pub(super) fn pairs(experiment: &ExperimentVerdict, experiments: usize) -> Vec<Block> {
    let charts = |primary: bool| {
        let goals = experiment.goals.iter();
        let goals = goals.filter(|goal| goal.primary == primary && !goal.pair_changes.is_empty());
        let charts = goals.map(|goal| pair_chart(goal, words::goal_name(goal, experiment)));
        charts.collect::<Vec<_>>()
    };
    let (mut blocks, remaining) = (charts(true), charts(false));
    if !remaining.is_empty() && experiments <= ALL_PAIRS_MAX {
        blocks.push(Block::Section(Section {
            fold: Fold::Folded("The other goals, pair by pair".into()),
            blocks: remaining,
            ..Section::default()
        }));
    }
    blocks
}

fn pair_chart(goal: &GoalVerdict, name: String) -> Block {
    let used = as_usize(goal.pairs);
    // From the first look at fresh pairs on, the answer is theirs alone.
    let confirmation = goal.confirmation.as_ref();
    let fresh_looked = goal.fresh_looked();
    let used_of_search = if fresh_looked.is_some() { 0 } else { used };
    let mut stages = vec![stage(
        "search",
        used_of_search,
        goal.scale,
        &goal.pair_changes,
    )];
    if let Some(confirmation) = confirmation {
        let used = as_usize(fresh_looked.unwrap_or(0));
        let changes = &confirmation.pair_changes;
        stages.push(PairStage {
            is_fresh: true,
            ..stage("new pairs", used, goal.scale, changes)
        });
    }
    Block::Chart(Chart::Pairs(PairSeries {
        name,
        stages,
        tolerance: goal.tolerance.share(),
        scale: goal.scale,
    }))
}

/// Returns the pairs of one stage.
pub(crate) fn stage(name: &'static str, used: usize, scale: Scale, changes: &[f64]) -> PairStage {
    PairStage {
        name,
        used,
        is_fresh: false,
        changes: changes.to_vec(),
        running: running(scale, changes),
    }
}

/// Returns the mean of all pairs up to each one with its plain 95 % interval, which does not account for looks.
fn running(scale: Scale, changes: &[f64]) -> Vec<Option<Interval>> {
    let values = changes.iter().map(|change| match scale {
        Scale::Ratio => change.ln_1p(),
        Scale::Difference => *change,
    });
    let values: Vec<f64> = values.collect();
    let change = |value: f64| match scale {
        Scale::Ratio => value.exp_m1(),
        Scale::Difference => value,
    };
    let interval = |count: usize| {
        let sample = Sample::try_new(&values[..count], 2).ok()?;
        let pairs = float_from_u64(u64::try_from(count).ok()?);
        let critical = StudentT::try_new(pairs - 1.0).ok()?;
        let critical = critical.critical(Level::NINETY_FIVE);
        let half = critical * sample.standard_deviation()? / pairs.sqrt();
        let mean = sample.mean();
        Some(Interval {
            estimate: change(mean),
            low: change(mean - half),
            high: change(mean + half),
        })
    };
    (1..=values.len()).map(interval).collect()
}
