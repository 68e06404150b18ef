//! What is said of a calibration in every form.

use stillwell_plan::Scale;
use stillwell_stats::{Level, binomial_share};
use stillwell_units::Nanos;

use super::{CalibratedExperiment, CalibratedGoal, Hindrance, MachineMet, Visible, WorseFound};
use crate::words::{
    change_size, clock, counted, goal_title, interval, nanos, or_missing, percent, plain,
};

/// Below this share of the noise, the other part is what limits.
const HALF: f64 = 0.5;

/// Pairing is worth telling from this ratio of the noise without and with it on.
const PAIRING_HELPS: f64 = 1.5;

/// Share of others' CPU time from which on they are told as a limit.
const FOREIGN_TOLD: f64 = 0.05;

/// `3 of 40 (1.6 % to 20.4 %)`, the interval exact at 95 %.
pub(super) fn rate(hits: u32, of: u32) -> String {
    let share = binomial_share(hits, of, Level::NINETY_FIVE);
    format!(
        "{hits} of {of} ({} to {})",
        percent(share.lower),
        percent(share.upper)
    )
}

/// How often equal versions were called different.
pub(super) fn alike(experiment: &CalibratedExperiment) -> Vec<String> {
    let alike = experiment.alike;
    let of = alike.comparisons;
    let mut lines = vec![
        format!(
            "flagged though nothing differs: {}; by the search alone {}",
            rate(alike.flagged, of),
            rate(alike.flagged_by_search, of)
        ),
        format!(
            "interval without zero: {}; equivalent: {}",
            rate(alike.without_zero, of),
            rate(alike.equivalent, of)
        ),
    ];
    if alike.invalid > 0 {
        lines.push(format!("invalid: {}", rate(alike.invalid, of)));
    }
    lines
}

/// How often a known change was found.
pub(super) fn worse(experiment: &CalibratedExperiment) -> Vec<String> {
    let worse = match &experiment.worse {
        Ok(worse) => worse,
        Err(reason) => return vec![format!("no slowdown was tried: {}", plain(reason))],
    };
    let scale = experiment
        .goals
        .first()
        .map_or(Scale::Ratio, |goal| goal.scale);
    let truth = change_size(scale, worse.truth);
    let of = worse.comparisons;
    let mut lines = vec![
        format!(
            "{truth}, {}: found {}; by the search alone {}",
            hindered(worse.how),
            rate(worse.found, of),
            rate(worse.found_by_search, of)
        ),
        format!("interval holds {truth}: {}", rate(worse.covered, of)),
    ];
    if worse.invalid > 0 {
        lines.push(format!("invalid: {}", rate(worse.invalid, of)));
    }
    if let Some(told) = told(worse, scale) {
        lines.push(told);
    }
    lines
}

fn told(worse: &WorseFound, scale: Scale) -> Option<String> {
    let told = worse.changes.iter().take(8).map(|change| {
        format!(
            "{} {}",
            change_size(scale, change.estimate),
            interval(*change)
        )
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| format!("estimates: {}", told.join(", ")))
}

const fn hindered(how: Hindrance) -> &'static str {
    match how {
        Hindrance::Burn => "burnt beside the subject",
        Hindrance::Pause => "by stopping the subject for that share of the time",
    }
}

/// Heads of the table of goals, without the times.
pub(super) const HEADS: [&str; 5] = ["goal", "tolerance", "flagged", "pairs", "pair sd"];

/// A row of the table of goals: its heads, then one cell for each time.
pub(super) fn goal_cells(goal: &CalibratedGoal) -> Vec<String> {
    let mut cells = vec![
        goal_title(&goal.metric).into_owned(),
        tolerance(goal),
        format!("{} of {}", goal.flagged, goal.comparisons),
        goal.pairs.to_string(),
        or_missing(
            goal.pair_deviation
                .map(|deviation| size(goal.scale, deviation)),
        ),
    ];
    let seen = goal.visible.iter();
    cells.extend(seen.map(|seen| visible_cell(goal.scale, *seen)));
    cells
}

fn visible_cell(scale: Scale, seen: Visible) -> String {
    or_missing(seen.change.map(|change| size(scale, change)))
}

fn tolerance(goal: &CalibratedGoal) -> String {
    size(goal.scale, goal.tolerance.share())
}

/// Without a sign: how large, not which way. What a sharp rig sees are hundredths
/// of a percent.
fn size(scale: Scale, share: f64) -> String {
    match scale {
        Scale::Ratio => format!("{:.2} %", 100.0 * share),
        Scale::Difference => format!("{:.2} points", 100.0 * share),
    }
}

/// The heads of the times.
pub(super) fn time_heads(experiment: &CalibratedExperiment) -> Vec<String> {
    let first = experiment.goals.first();
    let seen = first.map_or(&[][..], |goal| goal.visible.as_slice());
    seen.iter()
        .map(|seen| format!("in {} min ({} pairs)", seen.minutes, seen.pairs))
        .collect()
}

/// What a pair takes, and what the experiment's own settings come to.
pub(super) fn pace(experiment: &CalibratedExperiment) -> String {
    let whole = experiment
        .pair_time
        .as_u64()
        .saturating_mul(experiment.max_pairs.into());
    format!(
        "A pair takes {}; a search of {}, as the experiment is set, {} at most.",
        nanos(experiment.pair_time),
        counted(experiment.max_pairs, "pair", "pairs"),
        clock(Nanos::new(whole))
    )
}

/// What limits the rig, a sentence each.
pub(super) fn limits(experiment: &CalibratedExperiment) -> Vec<String> {
    let mut lines: Vec<String> = experiment.goals.iter().filter_map(noise).collect();
    lines.extend(experiment.goals.iter().filter_map(length));
    lines.extend(machine(&experiment.machine));
    lines
}

fn noise(goal: &CalibratedGoal) -> Option<String> {
    let (pair, apart) = (goal.pair_deviation?, goal.apart_deviation?);
    let title = goal_title(&goal.metric);
    let helps = if apart > PAIRING_HELPS * pair {
        "what they share, such as drift of the machine, falls out"
    } else {
        "they share little: a quieter machine or longer runs would help more than pairs do"
    };
    Some(format!(
        "{title}: the two runs of a pair differ by {} (sd), runs at any two times by {}; {helps}",
        size(goal.scale, pair),
        size(goal.scale, apart)
    ))
}

fn length(goal: &CalibratedGoal) -> Option<String> {
    let title = goal_title(&goal.metric);
    let share = goal.within_share?;
    let advice = match goal.better_seconds {
        Some(seconds) if share >= HALF => {
            format!("; runs of {seconds:.0} s would see more in the same time")
        }
        _ => String::new(),
    };
    let where_from = if share >= HALF {
        "within runs"
    } else {
        "between runs"
    };
    Some(format!(
        "{title}: most of the noise arises {where_from} ({} within){advice}",
        percent(share)
    ))
}

fn machine(machine: &MachineMet) -> Vec<String> {
    let mut lines = Vec::new();
    if machine.pairs_discarded > 0 {
        lines.push(format!(
            "{} had to be repeated",
            counted(machine.pairs_discarded, "pair", "pairs")
        ));
    }
    for (reason, runs) in &machine.reasons {
        lines.push(format!(
            "{}: {}",
            plain(reason),
            counted(*runs, "run", "runs")
        ));
    }
    if let Some((mean, most)) = machine.foreign {
        let limit = if mean >= FOREIGN_TOLD {
            "; a machine with less beside it would see more"
        } else {
            ""
        };
        lines.push(format!(
            "other programs used {} of the host's CPU time, at most {}{limit}",
            percent(mean),
            percent(most)
        ));
    }
    if let Some((mean, most)) = machine.steal.filter(|(_, most)| *most > 0.0) {
        lines.push(format!(
            "the hypervisor took {}, at most {}",
            percent(mean),
            percent(most)
        ));
    }
    lines
}
