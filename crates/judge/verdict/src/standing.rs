//! State of an experiment, and its next step.

use stillwell_capture::RunStage;
use stillwell_units::Nanos;

use crate::experiment_verdict::ExperimentVerdict;

/// State of an experiment, and its next step.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// Verdict by its runs so far.
    pub verdict: ExperimentVerdict,
    /// Next step.
    pub next: NextStep,
    /// The warm-up with which every run is to be summed up from now on, by
    /// [`summarise_from`](crate::summarise_from). Runs whose
    /// [`warmup`](crate::RunSummary::warmup) is another have to be summed up again from
    /// their captures before the next call; until then they say nothing.
    pub warmup: Nanos,
}

/// Next step of an experiment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NextStep {
    /// Run one more pair of this stage (all variants next to each other), sum it
    /// up, and repeats the call.
    Run {
        /// For this.
        stage: RunStage,
        /// Valid pairs of this stage in all that the next look waits for.
        valid_pairs_wanted: u32,
        /// Valid pairs of this stage in all after which it is likely certain, at
        /// least `valid_pairs_wanted`; `None` if unknown or beyond the last look.
        likely_pairs: Option<u32>,
    },
    /// Run no more.
    Stop(StopReason),
}

/// Reason why no more pairs are run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StopReason {
    /// The primary verdict is certain.
    Certain,
    /// All pairs that were planned were looked at.
    LastLook,
    /// Fresh pairs confirmed the search's verdict.
    Confirmed,
    /// Fresh pairs did not confirm the search's verdict.
    NotConfirmed,
    /// Too many pairs were discarded: the machine was too busy, or the target failed.
    Unfit,
}

impl StopReason {
    /// The word in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Certain => "certain",
            Self::LastLook => "last_look",
            Self::Confirmed => "confirmed",
            Self::NotConfirmed => "not_confirmed",
            Self::Unfit => "unfit",
        }
    }
}
