//! Numbers and names as readers know them.

use std::borrow::Cow;

pub(crate) use crate::document::escape::terminal as plain;
use stillwell_plan::goal::{LatencyQuantile, Reduction, Scale};
use stillwell_plan::stopping::DesignPlan;
use stillwell_plan::{GoalMetric, Validity, WorkUnit};
use stillwell_profile::ProfileQuantity;
use stillwell_units::human::signed_percent_digits as signed_digits;
pub(crate) use stillwell_units::human::{
    bytes, clock, counted, grouped, length, nanos, percent, signed_percent, significant, time,
};
use stillwell_verdict::limits::PAIRS_EQUIVALENT_MIN;
use stillwell_verdict::{
    Change, CheckVerdict, ExperimentVerdict, GoalVerdict, RateFigure, RunStage, StopReason,
    Verdict, failing_more,
};

/// The mark of a number that is not judged.
pub(crate) const UNRELIABLE: &str = "unreliable";

/// The effect of too few valid pairs, and what to do next.
const EFFECT: &str = ". The estimate includes the disturbance, so it has no verdict. Remove the \
                      cause that the warnings name; see docs/unreliable.md";

/// Text for a missing measurement.
pub(crate) const MISSING: &str = "n/a";

/// Returns a sentence about limits that are not the usual ones.
pub(crate) fn validity(validity: Validity) -> Option<&'static str> {
    match validity {
        Validity::Normal => None,
        Validity::Strict => {
            Some("`validity: strict`: the limits of steal, delay and lateness are halved")
        }
        Validity::Off => Some("`validity: off`: limits are ignored, and what exceeds them counts"),
    }
}

/// Returns the title of a goal's metric, for readers: `CPU per request` if `work` is requests.
#[must_use]
pub fn goal_title(metric: &GoalMetric, work: WorkUnit) -> Cow<'static, str> {
    Cow::Borrowed(match metric {
        GoalMetric::Cpu => "CPU",
        GoalMetric::CpuPerEvent => return Cow::Owned(format!("CPU per {}", work.singular())),
        GoalMetric::InstructionsPerEvent => {
            return Cow::Owned(format!("instructions per {}", work.singular()));
        }
        GoalMetric::Duplicated => "duplicated",
        GoalMetric::EgressThroughput => "egress throughput",
        GoalMetric::ErrorShare => "error share",
        GoalMetric::EventLatency(LatencyQuantile::P50) => "event latency p50",
        GoalMetric::EventLatency(LatencyQuantile::P90) => "event latency p90",
        GoalMetric::EventLatency(LatencyQuantile::P99) => "event latency p99",
        GoalMetric::EventLatency(LatencyQuantile::P999) => "event latency p99.9",
        GoalMetric::FirstByte(LatencyQuantile::P50) => "first byte p50",
        GoalMetric::FirstByte(LatencyQuantile::P90) => "first byte p90",
        GoalMetric::FirstByte(LatencyQuantile::P99) => "first byte p99",
        GoalMetric::FirstByte(LatencyQuantile::P999) => "first byte p99.9",
        GoalMetric::IngressThroughput => "ingress throughput",
        GoalMetric::Latency(LatencyQuantile::P50) => "latency p50",
        GoalMetric::Latency(LatencyQuantile::P90) => "latency p90",
        GoalMetric::Latency(LatencyQuantile::P99) => "latency p99",
        GoalMetric::Latency(LatencyQuantile::P999) => "latency p99.9",
        GoalMetric::Loss => "loss",
        GoalMetric::Memory => "memory",
        GoalMetric::MemoryPeak => "memory peak",
        GoalMetric::MemorySlope => "memory growth",
        GoalMetric::RequestThroughput => "request throughput",
        GoalMetric::ServiceTime(LatencyQuantile::P50) => "service time p50",
        GoalMetric::ServiceTime(LatencyQuantile::P90) => "service time p90",
        GoalMetric::ServiceTime(LatencyQuantile::P99) => "service time p99",
        GoalMetric::ServiceTime(LatencyQuantile::P999) => "service time p99.9",
        GoalMetric::Route(goal) => {
            let title = goal_title(goal.metric(), work);
            return Cow::Owned(plain(&format!("{title} of {}", goal.route())));
        }
        GoalMetric::Status(code) => return Cow::Owned(format!("status {}", code.get())),
        GoalMetric::Series(series) => {
            let id = series.id.as_ref();
            let id = id.map_or_else(String::new, |id| format!("['{id}']"));
            let how = match series.reduction {
                Reduction::Mean => "mean".to_owned(),
                Reduction::Peak => "peak".to_owned(),
                Reduction::PerEvent => format!("per {}", work.singular()),
                Reduction::Rate => "per second".to_owned(),
            };
            return Cow::Owned(plain(&format!("{}{id} {how}", series.metric)));
        }
    })
}

/// A goal's number with its unit.
pub(crate) fn goal_value(metric: &GoalMetric, value: f64) -> String {
    match metric {
        GoalMetric::Cpu => format!("{} CPU s/s", significant(value)),
        GoalMetric::CpuPerEvent
        | GoalMetric::EventLatency(_)
        | GoalMetric::FirstByte(_)
        | GoalMetric::Latency(_)
        | GoalMetric::ServiceTime(_) => time(value),
        GoalMetric::RequestThroughput => format!("{}/s", significant(value)),
        GoalMetric::EgressThroughput | GoalMetric::IngressThroughput => {
            format!("{}/s", bytes(value))
        }
        GoalMetric::Duplicated
        | GoalMetric::ErrorShare
        | GoalMetric::Loss
        | GoalMetric::Status(_) => percent(value),
        GoalMetric::Route(goal) => goal_value(goal.metric(), value),
        GoalMetric::Memory | GoalMetric::MemoryPeak => bytes(value),
        GoalMetric::MemorySlope => format!("{}/min", signed_percent(value)),
        GoalMetric::InstructionsPerEvent | GoalMetric::Series(_) => significant(value),
    }
}

/// A difference of a goal's numbers with its unit and sign.
pub(crate) fn goal_difference(metric: &GoalMetric, difference: f64) -> String {
    if *metric == GoalMetric::MemorySlope {
        return goal_value(metric, difference);
    }
    let sign = if difference < 0.0 { "-" } else { "+" };
    format!("{sign}{}", goal_value(metric, difference.abs()))
}

/// A change on the goal's own scale: percent of the baseline, or points where
/// the number is itself a share.
pub(crate) fn change_size(scale: Scale, share: f64) -> String {
    match scale {
        Scale::Ratio => signed_percent(share),
        Scale::Difference => format!("{} points", signed_digits(share)),
    }
}

/// Returns the size of a change on the goal's own scale, without a sign.
pub(crate) fn size(scale: Scale, share: f64) -> String {
    match scale {
        Scale::Ratio => percent(share),
        Scale::Difference => percent(share).replace('%', "points"),
    }
}

/// Returns a change with its interval: `+4.9 % [+4.5, +5.4]`.
#[must_use]
pub fn change_with_interval(scale: Scale, change: Change) -> String {
    format!(
        "{} {}",
        change_size(scale, change.estimate),
        interval(change)
    )
}

/// Returns an amount of a profile with its unit.
pub(crate) fn profile_amount(quantity: ProfileQuantity, value: f64) -> String {
    match quantity {
        ProfileQuantity::CpuTime | ProfileQuantity::MutexTime | ProfileQuantity::BlockTime => {
            time(value)
        }
        ProfileQuantity::Allocations => significant(value),
        ProfileQuantity::AllocatedBytes | ProfileQuantity::LiveHeap => bytes(value),
    }
}

/// Returns a difference between amounts of a profile with its sign: `+1.20 µs`.
pub(crate) fn profile_difference(quantity: ProfileQuantity, value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "+" };
    format!("{sign}{}", profile_amount(quantity, value.abs()))
}

/// Returns the change of a profile from the first amount to the second: `+1.20 µs (+13.8 %)`.
pub(crate) fn profile_change(
    quantity: ProfileQuantity,
    [baseline, comparison]: [f64; 2],
) -> String {
    let absolute = profile_difference(quantity, comparison - baseline);
    // What was below a thousandth of it is noise of the sampling.
    if baseline > comparison / 1000.0 {
        let share = signed_percent(comparison / baseline - 1.0);
        format!("{absolute} ({share})")
    } else {
        format!("{absolute} (new)")
    }
}

/// `value`, or a word for its absence.
pub(crate) fn or_missing(value: Option<String>) -> String {
    value.unwrap_or_else(|| MISSING.to_owned())
}

/// The interval of a change: `[+4.5, +5.4]`, in percent.
pub(crate) fn interval(change: Change) -> String {
    format!(
        "[{}, {}]",
        signed_digits(change.lower),
        signed_digits(change.upper)
    )
}

/// The number of pairs, and of planned ones where they differ.
pub(crate) fn pairs(goal: &GoalVerdict, experiment: &ExperimentVerdict) -> String {
    let fewer_is_enough = matches!(
        experiment.stopped,
        Some(StopReason::Certain | StopReason::Confirmed)
    );
    let used = goal.headline_pairs();
    if goal.fresh_looked().is_some() || used == experiment.pairs_planned || fewer_is_enough {
        used.to_string()
    } else {
        format!("{used} of {}", experiment.pairs_planned)
    }
}

/// A character that repeats what the word beside it says.
pub(crate) const fn symbol(verdict: Verdict) -> char {
    match verdict {
        Verdict::Regressed => '✗',
        Verdict::Improved => '✓',
        Verdict::Equivalent => '=',
        Verdict::Different => '~',
        Verdict::Inconclusive => '?',
        Verdict::Invalid => '!',
    }
}

/// Returns a line for each goal that the machine cannot measure: why, and what decides instead.
pub(crate) fn skipped(experiment: &ExperimentVerdict) -> Vec<String> {
    let primary = experiment.goals.iter().find(|goal| goal.primary);
    let lines = experiment.skipped.iter().map(|goal| {
        let name = goal_title(&goal.metric, experiment.work);
        let mut line = format!("{name} skipped: {}", goal.obstacle);
        if let (true, Some(primary)) = (goal.was_primary, primary) {
            let decides = goal_title(&primary.metric, experiment.work);
            line.push_str(&format!("; {decides} decides instead"));
        }
        if let Some(remedy) = goal.obstacle.remedy() {
            line.push_str(&format!("; {remedy}"));
        }
        line
    });
    lines.collect()
}

/// The primary goals whose verdict is the experiment's; with two variants one.
pub(crate) fn deciding(experiment: &ExperimentVerdict) -> Option<&GoalVerdict> {
    let mut goals = experiment.goals.iter();
    goals.find(|goal| goal.primary && goal.verdict == experiment.verdict)
}

/// The experiment's answer about its deciding goal, without its word and name, and the failures of
/// its target, which no figure contains.
pub(crate) fn finding(experiment: &ExperimentVerdict) -> String {
    let text = finding_of_goal(experiment);
    match failures(experiment).filter(|_| experiment.verdict != Verdict::Invalid) {
        Some(failures) => format!("{text}; {failures}"),
        None => text,
    }
}

/// `the target of comparison failed in 4 runs, that of baseline in 0; such runs are in no figure`
fn failures(experiment: &ExperimentVerdict) -> Option<String> {
    let worst = failing_more(&experiment.discards)?;
    let baseline = experiment.discards.first()?;
    Some(format!(
        "the target of {} failed in {}, that of {} in {}; such runs are in no figure",
        worst.variant,
        counted(worst.target_failures, "run", "runs"),
        baseline.variant,
        baseline.target_failures
    ))
}

fn finding_of_goal(experiment: &ExperimentVerdict) -> String {
    let Some(goal) = deciding(experiment) else {
        return "no goal was compared".to_owned();
    };
    let mut text = goal_name(goal, experiment);
    let unreliable = goal.unreliable.filter(|_| goal.verdict == Verdict::Invalid);
    if let Some(estimate) = &unreliable {
        if let Some(change) = estimate.change {
            text.push_str(&format!(" {}", change_with_interval(goal.scale, change)));
        }
        let all = counted(estimate.pairs, "pair", "pairs");
        text.push_str(&format!(" ({UNRELIABLE}, from all {all})"));
    } else if let Some(change) = goal.change {
        text.push_str(&format!(" {}", change_with_interval(goal.scale, change)));
    }
    if goal.verdict == Verdict::Invalid {
        let reason = goal.reason.as_deref().unwrap_or("its runs are unreliable");
        let effect = unreliable.map_or("", |_| EFFECT);
        return format!("{text}: {reason}{effect}");
    }
    let number = pairs(goal, experiment);
    let word = if number == "1" { "pair" } else { "pairs" };
    text.push_str(&format!(
        ", tolerance {}, {number} {word}",
        goal.tolerance_text()
    ));
    match &goal.reason {
        Some(reason) => format!("{text}: {reason}"),
        None if goal.verdict == Verdict::Inconclusive => format!("{text}; {}", could_see(goal)),
        None => text,
    }
}

/// A goal's title, and the variant where there are more than one to compare.
pub(crate) fn goal_name(goal: &GoalVerdict, experiment: &ExperimentVerdict) -> String {
    let title = goal_title(&goal.metric, experiment.work);
    titled_goal(&title, goal, experiment)
}

/// Returns another title of a goal, and the variant where there are more than one to compare.
pub(crate) fn titled_goal(
    title: &str,
    goal: &GoalVerdict,
    experiment: &ExperimentVerdict,
) -> String {
    if experiment.variants.len() > 2 {
        format!("{title}, {}", goal.comparison)
    } else {
        title.to_owned()
    }
}

/// Meaning of `different`.
pub(crate) const DIFFERENT: &str = "there is a change, but it is neither certainly within the \
                                    tolerance nor probably beyond it";

/// Describes the smallest change that an inconclusive goal could detect, and the effort for a
/// better answer.
pub(crate) fn could_see(goal: &GoalVerdict) -> String {
    let seen = goal.smallest_visible.map_or_else(
        || "the noise is not known".to_owned(),
        |visible| format!("detectable change {}", size(goal.scale, visible)),
    );
    // Fewer never end as equivalent, however quiet they are.
    let pairs = goal
        .pairs_needed
        .map(|pairs| pairs.max(PAIRS_EQUIVALENT_MIN));
    let needed = match pairs {
        None => format!("{} cannot be detected at this noise", goal.tolerance_text()),
        Some(pairs) if pairs <= goal.pairs => "more pairs may decide it".to_owned(),
        Some(pairs) => format!(
            "{} needs about {} pairs",
            goal.tolerance_text(),
            grouped(f64::from(pairs))
        ),
    };
    format!("{seen}; {needed}")
}

/// Texts of a goal.
pub(crate) trait GoalText {
    /// Its tolerance: `3 %`.
    fn tolerance_text(&self) -> String;
}

impl GoalText for GoalVerdict {
    fn tolerance_text(&self) -> String {
        if let Some(time) = self.tolerance_time {
            return nanos(time);
        }
        let size = (self.tolerance.share() * 1e6).round() / 1e4;
        match self.scale {
            Scale::Ratio => format!("{size} %"),
            Scale::Difference => format!("{size} points"),
        }
    }
}

/// Returns the prefix for the number of a pair that was run to confirm.
pub(crate) const fn stage(stage: RunStage) -> &'static str {
    match stage {
        RunStage::Search => "",
        RunStage::Confirm => "new ",
    }
}

/// Describes how the variants of a pair share the machine.
pub(crate) fn design(design: DesignPlan) -> String {
    match design {
        DesignPlan::Paired => "runs one after the other".to_owned(),
        DesignPlan::Duet => "both variants at once, on different CPUs".to_owned(),
        DesignPlan::Sliced { turn_min, turn_max } => {
            format!("both variants running, load in random turns of {turn_min} to {turn_max}")
        }
    }
}

/// A value of a check with its unit, by the catalogue's symbol.
pub(crate) fn check_value(value: f64, unit: &str) -> String {
    match unit {
        "B" => bytes(value),
        "ns" => time(value),
        "ratio" => percent(value),
        _ => significant(value),
    }
}

/// A check's bounds: `at most 200 MiB`.
pub(crate) fn bounds(upper: Option<f64>, lower: Option<f64>, unit: &str) -> String {
    let upper = upper.map(|bound| format!("at most {}", check_value(bound, unit)));
    let lower = lower.map(|bound| format!("at least {}", check_value(bound, unit)));
    let both: Vec<String> = [lower, upper].into_iter().flatten().collect();
    both.join(" and ")
}

/// A check's answer in a sentence.
pub(crate) fn check_line(check: &CheckVerdict) -> String {
    let bounds = bounds(check.upper, check.lower, &check.unit);
    let runs = counted(check.runs, "run", "runs");
    let mut text = if check.runs == 0 {
        format!("check {} ({bounds}): no run completed", check.name)
    } else if check.failed() > 0 {
        format!(
            "check {} ({bounds}): failed in {} of {runs}, by {}",
            check.name,
            check.failed(),
            check.failed_variants.join(" and ")
        )
    } else if check.not_measured > 0 {
        format!(
            "check {} ({bounds}): not measured in {} of {runs}",
            check.name, check.not_measured
        )
    } else {
        format!("check {} ({bounds}): passed in {runs}", check.name)
    };
    if let Some(worst) = check.worst_observed {
        text.push_str(&format!(", worst {}", check_value(worst, &check.unit)));
    }
    text
}

/// A generator's rate as it was carried out.
pub(crate) fn rate_line(figure: &RateFigure) -> String {
    let achieved = figure
        .achieved_per_second
        .map(|sent| figure.unit.rate(sent));
    let achieved = achieved.map_or_else(
        || "the sent rate is unknown".to_owned(),
        |rate| format!("sent {rate}"),
    );
    match figure.requested_per_second {
        Some(requested) => format!(
            "{}: requested {}, {achieved}",
            figure.id,
            figure.unit.rate(requested)
        ),
        None => format!("{}: full speed, {achieved}", figure.id),
    }
}

/// CPUs as a list with ranges: `0-3,5`.
pub(crate) fn cpus(list: Option<&[u16]>) -> String {
    let Some(list) = list else {
        return "any".to_owned();
    };
    let mut sorted = list.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for cpu in sorted {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(cpu) => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let texts = ranges.into_iter().map(|(first, last)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    });
    let texts: Vec<String> = texts.collect();
    if texts.is_empty() {
        "none".to_owned()
    } else {
        texts.join(",")
    }
}

/// Counts the experiments of each verdict, worst first; erratic ones are only counted,
/// because they never gate.
pub(crate) fn tally(experiments: &[ExperimentVerdict]) -> String {
    let order = [
        Verdict::Regressed,
        Verdict::Invalid,
        Verdict::Inconclusive,
        Verdict::Different,
        Verdict::Improved,
        Verdict::Equivalent,
    ];
    let gating = || experiments.iter().filter(|experiment| !experiment.erratic);
    let with = |verdict: Verdict| {
        let experiment = gating().filter(|experiment| experiment.verdict == verdict);
        (experiment.count(), verdict.name())
    };
    let failed =
        |experiment: &&ExperimentVerdict| experiment.checks.iter().any(CheckVerdict::is_broken);
    let target_failed =
        |experiment: &&ExperimentVerdict| failing_more(&experiment.discards).is_some();
    let other_reasons = [
        (gating().filter(failed).count(), "with failed checks"),
        (
            gating().filter(target_failed).count(),
            "whose target failed more often",
        ),
        (experiments.len() - gating().count(), "erratic"),
    ];
    let parts = order.into_iter().map(with).chain(other_reasons);
    let parts = parts.filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use stillwell_plan::GoalMetric;

    use super::*;
    use crate::fixture::goal;

    #[test]
    fn costs_are_named_by_the_unit_of_work() {
        for (work, unit) in [(WorkUnit::Events, "event"), (WorkUnit::Requests, "request")] {
            for (metric, title) in [
                (GoalMetric::CpuPerEvent, "CPU per"),
                (GoalMetric::InstructionsPerEvent, "instructions per"),
            ] {
                assert_eq!(goal_title(&metric, work), format!("{title} {unit}"));
            }
        }
    }

    #[test]
    fn changes_of_profiles_have_a_sign_a_unit_and_a_share() {
        let cpu = ProfileQuantity::CpuTime;
        for (amounts, text) in [
            ([10_000.0, 11_200.0], "+1.20 µs (+12.0 %)"),
            ([10_000.0, 8_000.0], "-2.00 µs (-20.0 %)"),
            ([0.0, 1_000.0], "+1.00 µs (new)"),
            ([0.5, 1_000.0], "+1.00 µs (new)"),
        ] {
            assert_eq!(profile_change(cpu, amounts), text);
        }
    }

    /// A quiet goal of four pairs was said to need about four.
    #[test]
    fn a_better_answer_needs_at_least_the_pairs_of_an_equivalent_one() {
        let mut quiet = goal(
            GoalMetric::Memory,
            false,
            Verdict::Inconclusive,
            1.0,
            [0.0, -0.01, 0.01],
        );
        quiet.pairs = 4;
        for (needed, shown) in [(Some(3), "about 6 pairs"), (Some(24), "about 24 pairs")] {
            quiet.pairs_needed = needed;
            let text = could_see(&quiet);
            assert!(text.ends_with(shown), "{text}");
        }
    }

    /// A goal of eight pairs was said to need about eight.
    #[test]
    fn a_better_answer_needs_more_pairs_than_were_measured() {
        let mut goal = goal(
            GoalMetric::Memory,
            false,
            Verdict::Inconclusive,
            1.0,
            [0.0, -0.01, 0.01],
        );
        goal.pairs = 8;
        for (needed, shown) in [(16, "about 16 pairs"), (8, "more pairs may decide it")] {
            goal.pairs_needed = Some(needed);
            let text = could_see(&goal);
            assert!(text.ends_with(shown), "{text}");
        }
    }
}
