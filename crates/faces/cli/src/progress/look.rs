//! Result of a look at the data, in one line.

use stillwell_experiment::{HostUse, TimeLeft};
use stillwell_report::{change_with_interval, goal_title};
use stillwell_units::{Nanos, floor_to_u64, human};
use stillwell_verdict::{
    Change, Confirmation, ExperimentVerdict, GoalVerdict, NextStep, RunNote, RunStage, Standing,
    StopReason, Verdict,
};

/// The present state, and the next step and its time.
pub(super) fn described(standing: &Standing, left: TimeLeft, left_in_all: TimeLeft) -> String {
    let verdict = &standing.verdict;
    let pairs = match verdict.pairs_used {
        0 => "no pairs".to_owned(),
        1 => "1 pair".to_owned(),
        pairs => format!("{pairs} pairs"),
    };
    let word = verdict.verdict.name();
    let text = match standing.next {
        NextStep::Run {
            stage: RunStage::Search,
            ..
        } => format!("{pairs}{}; {}", known(verdict), outlook(left)),
        NextStep::Run {
            stage: RunStage::Confirm,
            valid_pairs_wanted,
            ..
        } => format!(
            "{pairs}{}; to be confirmed on {valid_pairs_wanted} new pairs, in {}",
            known(verdict),
            span(left)
        ),
        NextStep::Stop(StopReason::Certain) => {
            let why = match verdict.verdict {
                Verdict::Inconclusive => "stopped, because more pairs would not decide it",
                _ => "final",
            };
            format!("{pairs}{}; {word}: {why}", known(verdict))
        }
        NextStep::Stop(StopReason::LastLook) => {
            format!("{pairs}, the last check{}; {word}", known(verdict))
        }
        NextStep::Stop(StopReason::Confirmed) => {
            format!("confirmed on {}; {word}", fresh(verdict))
        }
        NextStep::Stop(StopReason::NotConfirmed) => {
            format!("not confirmed on {}; {word}", fresh(verdict))
        }
        NextStep::Stop(StopReason::Unfit) => {
            let why = match verdict.pairs_discarded {
                0 => "its numbers cannot be compared".to_owned(),
                discarded => format!("too many pairs were discarded ({discarded})"),
            };
            format!("stopped, because {why}; {word}")
        }
    };
    if left_in_all == left || left == TimeLeft::default() {
        text
    } else {
        format!("{text}; {} for all experiments", span(left_in_all))
    }
}

/// The estimate of all pairs so far, between looks at the data.
pub(super) fn so_far(verdict: &ExperimentVerdict, left: TimeLeft) -> Option<String> {
    let primaries = || verdict.goals.iter().filter(|goal| goal.primary);
    let pairs = primaries()
        .filter_map(|goal| Some(goal.so_far()?.0))
        .min()?;
    let changes = each(verdict, |goal| Some(goal.so_far()?.1));
    let fresh = primaries().any(|goal| goal.confirmation.is_some());
    let pairs = if fresh {
        format!("{pairs} new pairs")
    } else {
        format!("{pairs} pairs")
    };
    Some(format!("so far, after {pairs}{changes}; {}", outlook(left)))
}

/// Returns the note about a load under which the cost of an event can hide a change.
pub(super) fn light_load(verdict: &ExperimentVerdict) -> Option<&RunNote> {
    let is_cost = |goal: &GoalVerdict| goal.primary && goal.metric.is_cost_per_event();
    let is_judged = verdict.goals.iter().any(is_cost);
    let notes = verdict.notes.iter().map(|seen| &seen.note);
    let mut light = notes.filter(|note| matches!(note, RunNote::LightLoad { .. }));
    light.next().filter(|_| is_judged)
}

/// Reason for a wait.
pub(super) fn waiting(host: HostUse, up_to: Nanos) -> String {
    let used = host.foreign_share * 100.0;
    let up_to = seconds(up_to);
    if host.foreign_share >= host.pressure {
        format!(
            "waiting up to {up_to} for a quieter machine: other programs use {used:.0} % of its CPU"
        )
    } else {
        let waited = host.pressure * 100.0;
        format!(
            "waiting up to {up_to} for a quieter machine: tasks waited for a CPU in {waited:.0} % of \
             the time"
        )
    }
}

/// A length of time for people: whole seconds.
fn seconds(length: Nanos) -> String {
    human::length(Nanos::from_secs(floor_to_u64(length.as_secs_f64().ceil())))
}

/// The remaining time: `1 min to 5 min left, likely 2 min`.
pub(super) fn remaining(left: TimeLeft) -> String {
    let (least, most) = (seconds(left.least), seconds(left.most));
    let likely = seconds(left.likely);
    if least == most {
        format!("{most} left")
    } else if likely == least || likely == most {
        format!("{least} to {most} left")
    } else {
        format!("{least} to {most} left, likely {likely}")
    }
}

/// The least remaining time: `over 1 min`.
pub(super) fn at_least(least: Nanos) -> String {
    format!("over {}", seconds(least))
}

/// Returns the range of times: `40 s`, or `1 min to 5 min` where looks decide.
pub(super) fn span(left: TimeLeft) -> String {
    let (least, most) = (seconds(left.least), seconds(left.most));
    if least == most {
        return most;
    }
    format!("{least} to {most}")
}

/// When the verdict comes.
fn outlook(left: TimeLeft) -> String {
    let (least, most) = (seconds(left.least), seconds(left.most));
    let likely = seconds(left.likely);
    if least == most {
        return format!("verdict in {most}");
    }
    format!("verdict in {least} to {most}, likely {likely}")
}

/// The changes of the primary goal, one for each comparison.
fn known(verdict: &ExperimentVerdict) -> String {
    each(verdict, |goal| goal.search().1)
}

/// Number of fresh pairs, and their changes.
fn fresh(verdict: &ExperimentVerdict) -> String {
    let confirmations = || verdict.goals.iter().filter_map(confirmation);
    let pairs = confirmations()
        .map(|confirmation| confirmation.pairs_wanted)
        .max();
    let changes = each(verdict, |goal| confirmation(goal)?.change);
    format!("{} new pairs{changes}", pairs.unwrap_or(0))
}

fn confirmation(goal: &GoalVerdict) -> Option<&Confirmation> {
    goal.confirmation.as_ref().filter(|_| goal.primary)
}

fn each(verdict: &ExperimentVerdict, change: impl Fn(&GoalVerdict) -> Option<Change>) -> String {
    let several = verdict.variants.len() > 2;
    let primaries = verdict.goals.iter().filter(|goal| goal.primary);
    let changes = primaries.filter_map(|goal| {
        let change = change(goal)?;
        let whose = if several {
            format!(" of {}", goal.comparison)
        } else {
            String::new()
        };
        let shown = change_with_interval(goal.scale, change);
        Some(format!(
            "{}{whose} {shown}",
            goal_title(&goal.metric, verdict.work)
        ))
    });
    let changes: Vec<String> = changes.collect();
    if changes.is_empty() {
        return String::new();
    }
    format!(": {}", changes.join(", "))
}

/// Returns a message in lines of at most `columns`, where its words permit; later lines are indented once more.
pub(super) fn folded(text: &str, columns: usize) -> String {
    let indent = text.len() - text.trim_start_matches(' ').len();
    let max = columns.saturating_sub(1).max(40);
    let (mut lines, mut column) = (" ".repeat(indent), indent);
    for (at, word) in text[indent..].split(' ').enumerate() {
        // Colours take no column.
        let colours = word.matches('\u{1b}').count();
        let width = word.chars().count().saturating_sub(4 * colours);
        if at > 0 && column + 1 + width > max {
            column = indent + 2;
            lines.push('\n');
            lines.push_str(&" ".repeat(column));
        } else if at > 0 {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += width;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_broken_at_words_and_indented() {
        let text = format!("  pair 5 discarded: {}", "word ".repeat(12).trim_end());
        let lines = folded(&text, 60);
        assert!(
            lines.lines().all(|line| line.chars().count() < 60),
            "{lines}"
        );
        assert!(lines.contains("\n    word"), "{lines}");
        let words = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(words(&lines), words(&text));
        assert_eq!(folded("  short", 60), "  short");
    }

    #[test]
    fn a_time_left_is_a_range_unless_its_bounds_are_equal() {
        let left = |least, likely, most| TimeLeft {
            least: Nanos::from_millis(least),
            likely: Nanos::from_millis(likely),
            most: Nanos::from_millis(most),
        };
        assert_eq!(span(left(40_000, 40_000, 40_000)), "40 s");
        assert_eq!(span(left(60_000, 90_000, 300_000)), "1 min to 5 min");
        assert_eq!(span(left(0, 0, 100)), "0 s to 1 s");
        let outlook = outlook(left(120_000, 240_000, 540_000));
        assert_eq!(outlook, "verdict in 2 min to 9 min, likely 4 min");
    }
}
