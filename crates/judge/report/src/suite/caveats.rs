//! The conduct of an experiment: checks of the verdict, discarded runs, confirmation, builds,
//! uncorrected goals, and advice for a better answer.

use stillwell_plan::StoppingPlan;
use stillwell_plan::experiment::builds_of_stages;
use stillwell_units::count;
use stillwell_verdict::{
    Change, Confirmation, ErrorBudget, ExperimentVerdict, GoalVerdict, Protection, StopReason,
    Verdict, rarest_visible_fault,
};

use crate::words;

/// Lines about an experiment as a whole, without a mark before them.
pub(super) fn of_experiment(experiment: &ExperimentVerdict) -> Vec<String> {
    let mut lines = vec![looked(experiment)];
    lines.extend(discards(experiment));
    lines.extend(layout(experiment));
    lines.extend(not_corrected(experiment));
    let signs = experiment.erratic_signs.iter();
    lines.extend(signs.map(ToString::to_string));
    lines.extend(experiment.advice.iter().cloned());
    lines
}

/// Lines about one goal, each beginning with its name.
pub(super) fn of_goal(goal: &GoalVerdict, experiment: &ExperimentVerdict) -> Vec<String> {
    let name = words::goal_name(goal, experiment);
    let mut lines = Vec::new();
    if let Some(confirmation) = &goal.confirmation {
        lines.push(format!("{name}: {}", confirmed(goal, confirmation)));
    }
    let has_failed = experiment
        .discards
        .iter()
        .any(|arm| arm.target_failures > 0);
    if goal.primary && goal.verdict == Verdict::Equivalent && !has_failed {
        let pairs = goal.headline_pairs();
        lines.push(format!(
            "{name}: {} would likely have shown a fault of {} of all runs or more, and may have \
             missed a rarer one",
            words::counted(pairs, "pair", "pairs"),
            words::percent(rarest_visible_fault(pairs))
        ));
    }
    if let Some(sensitivity) = goal.sensitivity.filter(|estimate| estimate.disagrees) {
        let stage = match goal.fresh_looked() {
            Some(_) => " of the search",
            None => "",
        };
        lines.push(format!(
            "{name} is sensitive to outlying pairs{stage}: ranks (median {}, p {}) and mean disagree about \
             whether there is a change",
            words::change_size(goal.scale, sensitivity.hodges_lehmann),
            probability(sensitivity.wilcoxon_p)
        ));
    }
    lines
}

/// Returns the effect of the layout of builds on a change.
fn layout(experiment: &ExperimentVerdict) -> Option<String> {
    let changed = [Verdict::Regressed, Verdict::Improved, Verdict::Different];
    if experiment.builds > 1 {
        let [search, confirm] = builds_of_stages(experiment.builds, experiment.confirm);
        let stages = if experiment.confirm {
            format!(" for the search and {confirm} for new pairs")
        } else {
            String::new()
        };
        return Some(format!(
            "builds: {search} of each git: variant{stages}, used in turn; with fewer builds than \
             pairs, the interval does not cover their memory layout"
        ));
    }
    changed.contains(&experiment.verdict).then(|| {
        "each variant was one build: where the builds differ, their memory layout alone can change \
         the result by a few percent; --builds 20 compares several of a git: variant"
            .to_owned()
    })
}

/// Returns a line on secondary goals that have an interval of their own.
fn not_corrected(experiment: &ExperimentVerdict) -> Option<String> {
    let secondary = experiment.goals.iter().filter(|goal| !goal.primary);
    let secondary = count(secondary.filter(|goal| goal.change.is_some()).count());
    (secondary > 0).then(|| {
        format!(
            "{}: information only, not corrected for multiple comparisons",
            words::counted(secondary, "other goal", "other goals")
        )
    })
}

/// Describes how often the verdict was checked, and why the experiment stopped.
pub(super) fn looked(experiment: &ExperimentVerdict) -> String {
    let used = words::counted(experiment.pairs_used, "pair", "pairs");
    let rule = match experiment.stopping {
        StoppingPlan::Sequential { max_pairs } => {
            format!("up to {max_pairs} planned; the interval is corrected for repeated checks")
        }
        StoppingPlan::Fixed { pairs } => {
            format!(
                "checked once, after {}",
                words::counted(pairs, "pair", "pairs")
            )
        }
        StoppingPlan::Open { .. } => {
            "checked after every pair; the interval is corrected for repeated checks".to_owned()
        }
    };
    let why = match experiment.stopped {
        Some(StopReason::Certain) if experiment.verdict == Verdict::Inconclusive => {
            "stopped because more pairs would not decide"
        }
        Some(StopReason::Certain) => match experiment.stopping {
            StoppingPlan::Fixed { .. } => "after all planned pairs",
            _ => "stopped because the verdict is certain",
        },
        Some(StopReason::LastLook) => "stopped at the largest number of pairs",
        Some(StopReason::Confirmed) => "confirmed on new pairs",
        Some(StopReason::NotConfirmed) => "not confirmed on new pairs",
        Some(StopReason::Unfit) if experiment.pairs_discarded == 0 => {
            "stopped because its numbers cannot be compared"
        }
        Some(StopReason::Unfit) => {
            "stopped because too many pairs were discarded: the machine was too busy, or the \
             target failed"
        }
        None => "not finished",
    };
    let beyond = experiment.pairs_valid.saturating_sub(experiment.pairs_used);
    let beyond = if beyond > 0 && experiment.pairs_used > 0 {
        let beyond = words::counted(beyond, "pair", "pairs");
        format!("; {beyond} after the last check not used")
    } else {
        String::new()
    };
    format!(
        "verdict from {used}, {why} ({rule}); {}{beyond}",
        words::design(experiment.design)
    )
}

/// Describes the discarded runs of each variant.
fn discards(experiment: &ExperimentVerdict) -> Vec<String> {
    if experiment.pairs_discarded == 0 {
        return Vec::new();
    }
    let arms = experiment.discards.iter().map(|arm| {
        let failures = if arm.target_failures > 0 {
            format!(" ({} because the target failed)", arm.target_failures)
        } else {
            String::new()
        };
        let runs = words::counted(arm.runs, "run", "runs");
        format!("{runs} of {}{failures}", arm.variant)
    });
    let arms: Vec<String> = arms.collect();
    let pairs = words::counted(experiment.pairs_discarded, "pair", "pairs");
    let mut lines = vec![format!(
        "discarded: {pairs}; runs with warnings: {}",
        arms.join(", ")
    )];
    if experiment.discards_unbalanced {
        lines.push(
            "one variant caused clearly more discarded pairs than the other (p below 0.1): the variants \
             may differ in what caused them"
                .to_owned(),
        );
    }
    lines
}

fn confirmed(goal: &GoalVerdict, confirmation: &Confirmation) -> String {
    let with_interval = |change: Option<Change>| {
        change.map_or_else(String::new, |change| {
            format!(" {}", words::change_with_interval(goal.scale, change))
        })
    };
    let used = confirmation.pairs.min(confirmation.pairs_wanted);
    let new_pairs = words::counted(used, "new pair", "new pairs");
    let answer = match confirmation.confirmed {
        Some(true) => "confirmed",
        Some(false) => "not confirmed",
        None => "not yet confirmed",
    };
    let p = confirmation.p_value;
    let p = p.map_or_else(String::new, |p| format!(", p {}", probability(p)));
    format!(
        "{answer} on {new_pairs}:{}{p}; all {} pairs together{} (both as of one check); before, in the search: {} after \
         {},{} (biased, because it stopped at a clear change)",
        with_interval(confirmation.change),
        used + goal.pairs,
        with_interval(confirmation.pooled),
        confirmation.searched.name(),
        words::counted(goal.pairs, "pair", "pairs"),
        with_interval(confirmation.search_change),
    )
}

/// Protection of the whole suite against a false alarm.
pub(super) fn budget(budget: &ErrorBudget) -> String {
    let how = match budget.protection {
        Protection::Single => "by its 95 % interval",
        Protection::Confirmation => "every change must be confirmed on new pairs",
        Protection::Holm => "Holm's correction at 5 % over all that decide",
        Protection::Mixed => "new pairs for some, Holm's correction at 5 % for the others",
    };
    if budget.comparisons == 0 {
        return "no comparison decides the exit code".to_owned();
    }
    let comparisons = words::counted(budget.comparisons, "comparison", "comparisons");
    let decides = if budget.comparisons == 1 {
        "decides"
    } else {
        "decide"
    };
    let mut text = match budget.false_alarm_bound {
        Some(bound) => format!(
            "at most {} (probability of a `regressed` if both sides were equally fast and pairs varied \
             independently and normally); {comparisons} {decides} the exit code ({how})",
            rounded_up(bound)
        ),
        None => format!(
            "no bound, because not every comparison was judged to its end; {comparisons} that \
             {decides} the exit code ({how})"
        ),
    };
    if budget.confirmed + budget.not_confirmed > 0 {
        text.push_str(&format!(
            "; {} confirmed, {} not",
            budget.confirmed, budget.not_confirmed
        ));
    }
    if !budget.demoted.is_empty() {
        let demoted = budget.demoted.join(", ");
        text.push_str(&format!(
            "; not regressed after Holm's correction: {demoted}"
        ));
    }
    text
}

/// A bound in percent with two significant digits, never below its value.
fn rounded_up(share: f64) -> String {
    let percent = share * 100.0;
    let unit = 10_f64.powf(percent.log10().floor() - 1.0);
    let up = (percent / unit - 1e-9).ceil() * unit;
    let digits = if up < 0.1 {
        3
    } else if up < 1.0 {
        2
    } else {
        1
    };
    format!("{up:.digits$} %")
}

/// A probability with as many digits as are of use.
pub(super) fn probability(p: f64) -> String {
    if p < 0.0001 {
        "< 0.0001".to_owned()
    } else if p < 0.01 {
        format!("{p:.4}")
    } else {
        format!("{p:.3}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{equivalent, inconclusive, regressed};

    /// F11: 0.0625 % was shown as 0.06 %, which is below the bound.
    #[test]
    fn f11_a_bound_is_never_rounded_down() {
        assert_eq!(rounded_up(0.000_625), "0.063 %");
        assert_eq!(rounded_up(0.0125), "1.3 %");
        for thousandths in 1..=1000_u32 {
            let share = f64::from(thousandths) / 10_007.0;
            let text = rounded_up(share);
            let shown: f64 = text.trim_end_matches(" %").parse().unwrap();
            assert!(shown >= share * 100.0 - 1e-9, "{share}: {text}");
            assert!(shown <= share * 110.1, "{share}: {text}");
        }
    }

    /// F11: secondary goals have the words of verdicts and no correction.
    #[test]
    fn f11_secondary_goals_are_reported_as_not_corrected() {
        let is_uncorrected = |experiment: &ExperimentVerdict| {
            let lines = of_experiment(experiment);
            lines
                .iter()
                .any(|line| line.contains("not corrected for multiple comparisons"))
        };
        let mut experiment = equivalent();
        assert!(is_uncorrected(&experiment));
        experiment.goals.retain(|goal| goal.primary);
        assert!(!is_uncorrected(&experiment));
    }

    /// F2: a difference of layout between two builds is confirmed like any other.
    #[test]
    fn f2_a_change_is_reported_as_of_one_build_of_each_variant() {
        for (experiment, expected) in [
            (regressed(), true),
            (equivalent(), false),
            (inconclusive(), false),
        ] {
            let lines = of_experiment(&experiment);
            let is_listed = lines
                .iter()
                .any(|line| line.starts_with("each variant was one build"));
            assert_eq!(is_listed, expected, "{lines:?}");
        }
    }

    /// New pairs were named where nothing is confirmed.
    #[test]
    fn builds_are_reported_for_the_stages_that_use_them() {
        for (confirm, expected) in [
            (
                true,
                "builds: 3 of each git: variant for the search and 2 for new pairs, used",
            ),
            (false, "builds: 5 of each git: variant, used in turn;"),
        ] {
            let experiment = ExperimentVerdict {
                builds: 5,
                confirm,
                ..regressed()
            };
            let lines = of_experiment(&experiment);
            let is_listed = lines.iter().any(|line| line.starts_with(expected));
            assert!(is_listed, "{lines:?}");
        }
    }

    /// F11: a probability of a real comparison is never shown as zero.
    #[test]
    fn f11_no_probability_is_shown_as_zero() {
        assert_eq!(probability(0.0), "< 0.0001");
        assert_eq!(probability(1e-9), "< 0.0001");
        assert_eq!(probability(0.00051), "0.0005");
    }
}
