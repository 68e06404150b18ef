//! What an experiment says about itself: how far it looked, what it left out,
//! what was confirmed, and what would make the answer better.

use stillwell_plan::StoppingPlan;
use stillwell_verdict::{
    Change, Confirmation, ErrorBudget, ExperimentVerdict, GoalVerdict, Protection, StopReason,
};

use crate::words;

/// Lines about an experiment as a whole, without a mark before them.
pub(super) fn of_experiment(experiment: &ExperimentVerdict) -> Vec<String> {
    let mut lines = vec![looked(experiment)];
    lines.extend(discards(experiment));
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
    if let Some(sensitivity) = goal.sensitivity.filter(|own| own.disagrees) {
        lines.push(format!(
            "{name} is sensitive to outlying pairs: ranks (median {}, p {}) and mean disagree about \
             whether there is a change",
            words::change_size(goal.scale, sensitivity.hodges_lehmann),
            probability(sensitivity.wilcoxon_p)
        ));
    }
    lines
}

/// How far the data were looked at, and why no farther.
fn looked(experiment: &ExperimentVerdict) -> String {
    let used = words::counted(experiment.pairs_used, "pair", "pairs");
    let rule = match experiment.stopping {
        StoppingPlan::Sequential { max_pairs } => {
            format!("looks up to {max_pairs} pairs, whose intervals hold together")
        }
        StoppingPlan::Fixed { pairs } => {
            format!("one look, at {}", words::counted(pairs, "pair", "pairs"))
        }
        StoppingPlan::Open { .. } => {
            "a look after every pair, with intervals that always hold".to_owned()
        }
    };
    let why = match experiment.stopped {
        Some(StopReason::Certain) => "certain",
        Some(StopReason::LastLook) => "the last look",
        Some(StopReason::Confirmed) => "confirmed on fresh pairs",
        Some(StopReason::NotConfirmed) => "not confirmed on fresh pairs",
        Some(StopReason::Unfit) => {
            "too many pairs were discarded: this machine is unfit, or the target"
        }
        None => "not finished",
    };
    let beyond = experiment.pairs_valid.saturating_sub(experiment.pairs_used);
    let beyond = if beyond > 0 && experiment.pairs_used > 0 {
        let beyond = words::counted(beyond, "pair", "pairs");
        format!("; {beyond} after that look not used")
    } else {
        String::new()
    };
    format!(
        "judged by {used}, {why} ({rule}); {}{beyond}",
        words::design(experiment.design)
    )
}

/// What was left out, for each variant.
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
    let mut lines = vec![format!("discarded: {pairs}; to blame: {}", arms.join(", "))];
    if experiment.discards_unbalanced {
        lines.push(
            "one variant was to blame for discarded pairs more often than chance explains: that \
             is a finding, not noise"
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
    let fresh = words::counted(used, "fresh pair", "fresh pairs");
    let answer = match confirmation.confirmed {
        Some(true) => "confirmed",
        Some(false) => "not confirmed",
        None => "not yet confirmed",
    };
    let p = confirmation.p_value;
    let p = p.map_or_else(String::new, |p| format!(", p {}", probability(p)));
    format!(
        "{answer} on {fresh}:{}{p}; all {} pairs together{}; the search, whose estimate is biased, \
         found {} in {}:{}",
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
        Protection::Single => "one comparison gates, by its 95 % interval",
        Protection::Confirmation => "every change must be confirmed on fresh pairs",
        Protection::Holm => "Holm's correction at 5 % over all that gate",
        Protection::Mixed => "fresh pairs for some, Holm's correction at 5 % for the others",
    };
    let comparisons = words::counted(budget.comparisons, "comparison", "comparisons");
    let gates = if budget.comparisons == 1 {
        "gates"
    } else {
        "gate"
    };
    let mut text = match budget.false_alarm_bound {
        Some(bound) => format!(
            "if the executables on both sides are equally fast and pairs vary independently and \
             normally, at most {} of suites with {comparisons} that {gates} report a false \
             regression of a primary goal ({how})",
            rounded_up(bound)
        ),
        None => format!(
            "no bound, because not every comparison was judged to its end; {comparisons} that \
             {gates} ({how})"
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
        text.push_str(&format!("; no longer regressed by Holm: {demoted}"));
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
        "below 0.0001".to_owned()
    } else if p < 0.01 {
        format!("{p:.4}")
    } else {
        format!("{p:.3}")
    }
}
