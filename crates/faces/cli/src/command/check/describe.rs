//! Plans in words.

use std::fmt::Write as _;

use stillwell_plan::experiment::OperatingPoint;
use stillwell_plan::goal::Scale;
use stillwell_plan::stopping::{DesignPlan, PAIRS_MIN, WarmupPlan};
use stillwell_plan::targets::Durability;
use stillwell_plan::{
    ExperimentPlan, GoalPlan, RateShape, RunPlan, StoppingPlan, SuitePlan, TargetsPlan,
    TimeEstimate, WorkUnit,
};
use stillwell_units::{Nanos, floor_to_u64, human};

/// Looks that are listed one by one.
const LOOKS_SHOWN_MAX: usize = 9;

pub(super) fn suite(plan: &SuitePlan) -> String {
    let mut text = String::new();
    let mut total = TimeEstimate::default();
    for plan in &plan.experiments {
        experiment(plan, &mut text);
        let time = plan.time();
        total.least += time.least;
        total.most += time.most;
    }
    let count = plan.experiments.len();
    let plural = if count == 1 { "" } else { "s" };
    let time = between(total);
    line(
        &mut text,
        format_args!("{count} experiment{plural}, no errors; {time}"),
    );
    text
}

pub(super) fn targets(plans: &[TargetsPlan]) -> String {
    let mut text = String::new();
    for plan in plans {
        line(
            &mut text,
            format_args!("{}", headline(&plan.name, plan.summary.as_deref())),
        );
        for (index, target) in plan.targets.iter().enumerate() {
            let what = if index == 0 { "targets" } else { "" };
            let claim = target.durability.map_or("", Durability::name);
            line(
                &mut text,
                format_args!("  {what:<9}  {} {claim}", target.name),
            );
        }
        let runs = plan.runs;
        line(
            &mut text,
            format_args!("  runs       {runs} of each, in blocks"),
        );
        run_plan(&plan.run_plan, &mut text);
    }
    let count = plans.len();
    let plural = if count == 1 { "" } else { "s" };
    line(
        &mut text,
        format_args!("{count} experiment{plural}, no errors"),
    );
    text
}

/// Returns the name, and the description if there is one.
fn headline(name: &str, summary: Option<&str>) -> String {
    summary.map_or_else(|| name.to_owned(), |summary| format!("{name}: {summary}"))
}

fn experiment(plan: &ExperimentPlan, text: &mut String) {
    line(
        text,
        format_args!("{}", headline(&plan.name, plan.summary.as_deref())),
    );
    if let Some(family) = &plan.family {
        let settings = family.parameters.iter();
        let settings: Vec<String> = settings
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        let (name, settings) = (&family.name, settings.join(", "));
        line(text, format_args!("  matrix     {name}: {settings}"));
    }
    let variants: Vec<&str> = plan.variants.iter().map(|v| v.name.as_str()).collect();
    line(text, format_args!("  variants   {}", against(&variants)));
    for (index, plan) in plan.goals.iter().enumerate() {
        let what = if index == 0 { "goals" } else { "" };
        let gates = if index == 0 { "; primary" } else { "" };
        line(text, format_args!("  {what:<9}  {}{gates}", goal(plan)));
    }
    if plan.erratic {
        let erratic = "erratic: verdicts are shown and never fail the suite";
        line(text, format_args!("             {erratic}"));
    }
    line(text, format_args!("  rate       {}", operating_point(plan)));
    line(text, format_args!("  design     {}", design(plan.design)));
    line(
        text,
        format_args!("  pairs      {}", stopping(plan.stopping)),
    );
    if plan.confirm {
        let confirm = "a change is confirmed on new pairs";
        line(text, format_args!("             {confirm}"));
    }
    line(text, format_args!("  runs       {}", runs(plan)));
    line(text, format_args!("  time       {}", between(plan.time())));
    line(
        text,
        format_args!(
            "             discarded pairs are replaced for up to {}",
            human::length(plan.max_time)
        ),
    );
    run_plan(&plan.run_plan, text);
}

/// `a against b`, or `a against each of b, c and d`.
fn against(variants: &[&str]) -> String {
    match variants {
        [baseline, comparison] => format!("{baseline} against {comparison}"),
        [baseline, comparisons @ .., last] => {
            format!(
                "{baseline} against each of {} and {last}",
                comparisons.join(", ")
            )
        }
        variants => variants.join(""),
    }
}

fn goal(goal: &GoalPlan) -> String {
    let (metric, better) = (&goal.metric, goal.direction.better());
    let percent = goal.tolerance.to_string();
    let tolerance = match (metric.scale(), goal.tolerance_time) {
        (_, Some(time)) => human::nanos(time),
        (Scale::Ratio, None) => percent,
        (Scale::Difference, None) => format!("{} points", percent.trim_end_matches('%')),
    };
    format!("{metric}: {better} is better, ±{tolerance}")
}

fn operating_point(plan: &ExperimentPlan) -> String {
    match plan.operating_point {
        OperatingPoint::Stated => "as in the file".to_owned(),
        OperatingPoint::Max => "as fast as the target accepts".to_owned(),
        OperatingPoint::Probe { share, length } => {
            let share = of_capacity(share, plan.design);
            let generators = &plan.run_plan.generators;
            let stated = generators
                .iter()
                .filter(|generator| !plan.is_probed(generator));
            let stated_rates = match stated.count() {
                0 => String::new(),
                1 => "; 1 generator keeps its stated rate".to_owned(),
                many => format!("; {many} generators keep their stated rates"),
            };
            format!("{share}, found by a probe of {length}{stated_rates}")
        }
    }
}

/// `60 % of capacity`. The two runs of a duet share the machine.
fn of_capacity(share: f64, design: DesignPlan) -> String {
    let percent = share * 100.0;
    match design {
        DesignPlan::Paired | DesignPlan::Sliced { .. } => format!("{percent:.0} % of capacity"),
        DesignPlan::Duet => format!("{percent:.0} % of at most half of the capacity"),
    }
}

fn design(design: DesignPlan) -> String {
    let how = match design {
        DesignPlan::Paired => "one after the other, in random order".to_owned(),
        DesignPlan::Duet => "both at once, on different CPUs".to_owned(),
        DesignPlan::Sliced { turn_min, turn_max } => {
            format!("both running, load switched between them in turns of {turn_min} to {turn_max}")
        }
    };
    format!("{}: {how}", design.name())
}

fn stopping(stopping: StoppingPlan) -> String {
    match stopping {
        StoppingPlan::Sequential { .. } => format!(
            "checks after {}; stops when the verdict is certain",
            looks(&stopping.looks())
        ),
        StoppingPlan::Fixed { pairs } if pairs < PAIRS_MIN => {
            format!("{pairs}: too few for a verdict, which needs {PAIRS_MIN}")
        }
        StoppingPlan::Fixed { pairs } => format!("{pairs}, with one check after the last"),
        StoppingPlan::Open { max_pairs } => format!(
            "checks after each pair from the {PAIRS_MIN}th on; stops when the verdict is certain, \
             or after {max_pairs}"
        ),
    }
}

/// `4, 6, 8 … 100`, or all of them where they are few.
fn looks(looks: &[u32]) -> String {
    let words: Vec<String> = looks.iter().map(ToString::to_string).collect();
    match words.as_slice() {
        [first, second, third, .., last] if words.len() > LOOKS_SHOWN_MAX => {
            format!("{first}, {second}, {third} … {last}")
        }
        words => words.join(", "),
    }
}

fn runs(plan: &ExperimentPlan) -> String {
    let phases = plan.run_plan.phases;
    let measured = format!("{} measured", human::length(phases.measure));
    match plan.warmup {
        WarmupPlan::Stated if phases.warmup == Nanos::ZERO => format!("{measured}, from the start"),
        WarmupPlan::Stated => format!("{} warm-up and {measured}", human::length(phases.warmup)),
        WarmupPlan::Measured => {
            let least = human::length(phases.warmup);
            format!(
                "a warm-up of at least {least}, measured by the first two pairs, and {measured}"
            )
        }
    }
}

/// Rounds a length of time: to the second below ten minutes, then to the
/// minute.
pub(in crate::command) fn between(time: TimeEstimate) -> String {
    let (least, most) = (coarse(time.least), coarse(time.most));
    if least == most {
        format!("about {least}")
    } else {
        format!("about {least} to {most}")
    }
}

fn coarse(length: Nanos) -> String {
    const MINUTE: u64 = 60;
    let seconds = floor_to_u64(length.as_secs_f64().ceil());
    if seconds < 10 * MINUTE {
        return human::length(Nanos::from_secs(seconds));
    }
    human::length(Nanos::from_secs(
        seconds.div_ceil(MINUTE).saturating_mul(MINUTE),
    ))
}

pub(super) fn run_plan(plan: &RunPlan, text: &mut String) {
    for generator in &plan.generators {
        let transport = &generator.transport;
        let what = if transport.sends_payload() {
            format!(
                "{} over {}",
                generator.payload.format.name(),
                transport.name()
            )
        } else {
            transport.name().to_owned()
        };
        line(
            text,
            format_args!(
                "  generator  {}: {what}, {}, {}, {}",
                generator.id,
                rate(
                    WorkUnit::of_rate(generator.rate.unit, transport),
                    &generator.rate.shape
                ),
                human::counted(
                    generator.concurrency.connections(),
                    "connection",
                    "connections"
                ),
                human::counted(generator.concurrency.workers(), "worker", "workers"),
            ),
        );
    }
    for sink in &plan.sinks {
        line(
            text,
            format_args!("  sink       {}: {}", sink.id, sink.protocol.name()),
        );
    }
    line(text, format_args!("  target     {}", plan.target.name));
}

/// A rate in words.
fn rate(unit: WorkUnit, shape: &RateShape) -> String {
    let written = |per_second: f64| unit.rate(per_second);
    match shape {
        RateShape::Max => "at full speed".to_owned(),
        RateShape::Constant { per_second } => written(*per_second),
        RateShape::Ramp(ramp) => format!(
            "from {} to {}",
            written(ramp.from_per_second),
            written(ramp.to_per_second)
        ),
        RateShape::Steps { .. } => {
            let steps: Vec<_> = shape.levels().into_iter().map(written).collect();
            format!("in steps of {}", steps.join(", "))
        }
    }
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    writeln!(text, "{line}").unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use stillwell_plan::GoalMetric;

    use super::*;

    #[test]
    fn looks_are_listed_while_they_are_few() {
        let of = |max_pairs| stopping(StoppingPlan::Sequential { max_pairs });
        assert!(of(8).starts_with("checks after 4, 6, 8; stops"));
        assert!(of(20).contains("4, 6, 8, 10, 12, 14, 16, 18, 20;"));
        assert!(of(100).contains("4, 6, 8 … 100;"));
        assert!(stopping(StoppingPlan::Fixed { pairs: 3 }).contains("too few"));
    }

    #[test]
    fn a_rate_is_a_share_of_what_each_run_can_have() {
        for (design, expected) in [
            (DesignPlan::Paired, "60 % of capacity"),
            (DesignPlan::SLICED, "60 % of capacity"),
            (DesignPlan::Duet, "60 % of at most half of the capacity"),
        ] {
            assert_eq!(of_capacity(0.6, design), expected);
        }
    }

    #[test]
    fn variants_are_compared_with_the_first() {
        assert_eq!(against(&["a", "b"]), "a against b");
        assert_eq!(
            against(&["a", "b", "c", "d"]),
            "a against each of b, c and d"
        );
    }

    #[test]
    fn goals_state_direction_and_tolerance() {
        for (metric, expected) in [
            (GoalMetric::Cpu, "cpu: lower is better, ±2%"),
            (GoalMetric::Loss, "loss: lower is better, ±0.1 points"),
            (
                GoalMetric::IngressThroughput,
                "ingress_throughput: higher is better, ±2%",
            ),
        ] {
            assert_eq!(goal(&GoalPlan::new(metric)), expected);
        }
    }

    #[test]
    fn long_times_are_shown_in_minutes() {
        let of = |least, most| {
            between(TimeEstimate {
                least: Nanos::from_secs(least),
                most: Nanos::from_secs(most),
            })
        };
        assert_eq!(of(59, 599), "about 59 s to 9 min 59 s");
        assert_eq!(of(601, 3_541), "about 11 min to 1 h");
        assert_eq!(of(20, 20), "about 20 s");
    }
}
