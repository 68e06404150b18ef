//! Exit state for a script.

use crate::experiment_verdict::ExperimentVerdict;

/// Exit state of an experiment for a script.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Gate {
    /// Nothing blocks the change.
    Held,
    /// The primary goal regressed.
    Regressed,
    /// A run broke a bound, or did not measure it.
    CheckFailed,
    /// Its runs are unreliable.
    Invalid,
    /// Its runs are not decisive.
    Inconclusive,
}

impl Gate {
    /// The word in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Regressed => "regressed",
            Self::CheckFailed => "check_failed",
            Self::Invalid => "invalid",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// Strictness of a gate.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum GatePolicy {
    /// Inconclusive passes.
    #[default]
    Normal,
    /// Inconclusive does not pass.
    Strict,
}

/// The exit code: 1 for a regression or a failed check, 4 for an experiment
/// that is invalid (or, under [`GatePolicy::Strict`], inconclusive), else 0.
///
/// A regression has to be reported, so 1 goes before 4. Experiments
/// that are marked erratic never gate.
#[must_use]
pub fn exit_code(verdicts: &[ExperimentVerdict], policy: GatePolicy) -> u8 {
    let any = |wanted: &[Gate]| {
        let mut gating = verdicts.iter().filter(|verdict| !verdict.erratic);
        gating.any(|verdict| wanted.contains(&verdict.gate))
    };
    if any(&[Gate::Regressed, Gate::CheckFailed]) {
        1
    } else if any(&[Gate::Invalid]) || (policy == GatePolicy::Strict && any(&[Gate::Inconclusive]))
    {
        4
    } else {
        0
    }
}
