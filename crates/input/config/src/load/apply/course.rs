//! When an experiment has seen enough, and where measuring begins.

use stillwell_plan::stopping::{DesignPlan, PAIRS_MIN, PAIRS_OPEN_DEFAULT, WarmupPlan};
use stillwell_plan::{ExperimentPlan, StoppingPlan};
use stillwell_text::{Diagnostic, Diagnostics, code};
use stillwell_units::Nanos;

use super::name::shown;
use super::{check_timeline, times};
use crate::overrides::{DesignOverride, StoppingOverride, SuiteOverrides};
use crate::spec::{LOOKS_PAIRS_MAX, PAIRS_MAX, design_problem};

pub(super) fn to_experiment(
    plan: &mut ExperimentPlan,
    overrides: &SuiteOverrides,
    diagnostics: &mut Diagnostics,
) {
    if overrides.quick {
        shorten(plan);
    }
    let phases = &mut plan.run_plan.phases;
    times(phases, overrides.warmup, overrides.measure, diagnostics);
    if overrides.warmup.is_some() {
        plan.warmup = WarmupPlan::Stated;
    }
    if overrides.include_startup {
        phases.warmup = Nanos::ZERO;
        plan.warmup = WarmupPlan::Stated;
        if overrides.warmup.is_some() {
            let message = "`--include-startup` and `--warmup` exclude each other";
            diagnostics.push(Diagnostic::error(code::COURSE, message));
        }
    }
    if let Some(stopping) = overrides.stopping {
        set_stopping(plan, stopping, diagnostics);
    }
    if let Some(max_time) = overrides.max_time {
        plan.max_time = max_time;
    }
    if let Some(builds) = overrides.builds {
        plan.builds = builds;
    }
    if let Some(confirm) = overrides.confirm {
        plan.confirm = confirm;
    }
    let before = (plan.design, overrides.measure);
    if let Some(design) = overrides.design {
        plan.design = match (design, plan.design) {
            (DesignOverride::Paired, _) => DesignPlan::Paired,
            (DesignOverride::Duet, _) => DesignPlan::Duet,
            (DesignOverride::Sliced, sliced @ DesignPlan::Sliced { .. }) => sliced,
            (DesignOverride::Sliced, _) => DesignPlan::SLICED,
        };
    }
    // What the file alone says was judged when it was read.
    let is_new = before != (plan.design, None) || overrides.quick;
    if overrides.quick || overrides.measure.is_some() {
        check_timeline(shown(plan), &plan.run_plan, diagnostics);
    }
    if let (true, Some(problem)) = (is_new, design_problem(plan.design, &plan.run_plan.phases)) {
        let message = format!("{}: {problem}", shown(plan));
        let error = Diagnostic::error(code::COURSE, message);
        diagnostics.push(error.help("measure for longer, e.g. `--measure 20s`"));
    }
}

/// Limits of `--quick`: with start and stop of each run, search and confirmation take
/// less than two minutes.
const QUICK_WARMUP: Nanos = Nanos::from_millis(500);
const QUICK_MEASURE: Nanos = Nanos::from_secs(2);
const QUICK_PAIRS: u32 = 6;
const QUICK_MAX_TIME: Nanos = Nanos::from_secs(120);

/// Fewer and shorter runs; what is shorter already stays.
fn shorten(plan: &mut ExperimentPlan) {
    let phases = &mut plan.run_plan.phases;
    phases.warmup = phases.warmup.min(QUICK_WARMUP);
    phases.measure = phases.measure.min(QUICK_MEASURE);
    plan.warmup = WarmupPlan::Stated;
    if plan.stopping.max_pairs() > QUICK_PAIRS {
        plan.stopping = StoppingPlan::Sequential {
            max_pairs: QUICK_PAIRS,
        };
    }
    plan.max_time = plan.max_time.min(QUICK_MAX_TIME);
}

fn set_stopping(
    plan: &mut ExperimentPlan,
    stopping: StoppingOverride,
    diagnostics: &mut Diagnostics,
) {
    let (flag, pairs, minimum, maximum) = match stopping {
        StoppingOverride::FixedPairs(pairs) => {
            plan.stopping = StoppingPlan::Fixed { pairs };
            ("--fixed-pairs", pairs, 1, PAIRS_MAX)
        }
        StoppingOverride::MaxPairs(max_pairs) => {
            plan.stopping = StoppingPlan::Sequential { max_pairs };
            ("--max-pairs", max_pairs, PAIRS_MIN, LOOKS_PAIRS_MAX)
        }
        StoppingOverride::NoMax => {
            if !matches!(plan.stopping, StoppingPlan::Open { .. }) {
                plan.stopping = StoppingPlan::Open {
                    max_pairs: PAIRS_OPEN_DEFAULT,
                };
            }
            return;
        }
    };
    let why = if pairs == 0 {
        format!("nothing would be compared: write at least {minimum}")
    } else if pairs < minimum {
        format!("a verdict needs {minimum} pairs or more")
    } else if pairs > maximum {
        format!("at most {maximum}")
    } else {
        return;
    };
    let message = format!("`{flag} {pairs}`: {why}");
    diagnostics.push(Diagnostic::error(code::OUT_OF_RANGE, message));
}
