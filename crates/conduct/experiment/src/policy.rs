//! The effect of a run's end on the remaining suite.

use stillwell_capture::RunOutcome;

/// After so many lost pairs an experiment of which nothing ever worked is given
/// up. Where something did, [`standing`](stillwell_verdict::standing) says how
/// many pairs may be repeated.
pub(crate) const LOST_AT_START_MAX: u32 = 2;

/// The effect of a run's end on the remaining suite.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Consequence {
    /// The run counts; the next one follows.
    GoOn,
    /// Its pair is lost and repeated under another number.
    LosePair,
    /// Its experiment cannot be run at all; the next experiment follows.
    CannotStart,
    /// All pairs of its experiment are lost so far, and these are too many; the
    /// next experiment follows.
    GiveUp,
    /// Nothing more can be written: the suite ends.
    StorageFull,
    /// Nothing more is wanted: the suite ends.
    Interrupted,
}

/// Returns the effect of `outcome` after `finished` and `lost` pairs of the same experiment.
#[must_use]
pub const fn consequence(outcome: &RunOutcome, finished: u32, lost: u32) -> Consequence {
    match outcome {
        RunOutcome::Completed => Consequence::GoOn,
        RunOutcome::Interrupted { .. } => Consequence::Interrupted,
        RunOutcome::StorageFailed { .. } => Consequence::StorageFull,
        // What never worked will not work the next time; what worked before may.
        RunOutcome::CouldNotStart { .. } | RunOutcome::NeverReady { .. }
            if finished == 0 && lost == 0 =>
        {
            Consequence::CannotStart
        }
        RunOutcome::CouldNotStart { .. }
        | RunOutcome::NeverReady { .. }
        | RunOutcome::Unfinished
        | RunOutcome::TargetDied { .. }
        | RunOutcome::PartFailed { .. }
        | RunOutcome::Overdue { .. } => {
            if finished == 0 && lost + 1 >= LOST_AT_START_MAX {
                Consequence::GiveUp
            } else {
                Consequence::LosePair
            }
        }
    }
}

/// Returns true if a run that ended so says something about the target, and stays where it is when the
/// suite is resumed: what was only cut off runs again.
pub(crate) const fn is_result(outcome: &RunOutcome) -> bool {
    !matches!(
        outcome,
        RunOutcome::Unfinished | RunOutcome::Interrupted { .. } | RunOutcome::StorageFailed { .. }
    )
}

/// `outcome` in a few words, for progress and problems.
pub(crate) fn describe_outcome(outcome: &RunOutcome) -> String {
    match outcome {
        RunOutcome::Unfinished => "the run did not end".to_owned(),
        RunOutcome::Completed => "completed".to_owned(),
        RunOutcome::CouldNotStart { reason } => format!("could not start: {reason}"),
        RunOutcome::NeverReady { reason } => format!("the target was never ready: {reason}"),
        RunOutcome::TargetDied { phase } => format!("the target died in {}", phase.name()),
        RunOutcome::PartFailed { part, reason } => format!("{part} failed: {reason}"),
        RunOutcome::Interrupted { signal } => format!("interrupted by signal {signal}"),
        RunOutcome::StorageFailed { reason } => {
            format!("the capture could not be written: {reason}")
        }
        RunOutcome::Overdue { phase } => format!("{} did not end in time", phase.name()),
    }
}

#[cfg(test)]
mod tests {
    use stillwell_plan::Phase;

    use super::*;

    #[test]
    fn every_end_has_its_consequence() {
        let reason = || "port taken".to_owned();
        let died = RunOutcome::TargetDied {
            phase: Phase::Measure,
        };
        let not_started = RunOutcome::CouldNotStart { reason: reason() };
        let full = RunOutcome::StorageFailed { reason: reason() };
        for (outcome, finished, lost, expected) in [
            (&RunOutcome::Completed, 0, 1, Consequence::GoOn),
            (&not_started, 0, 0, Consequence::CannotStart),
            (&not_started, 1, 0, Consequence::LosePair),
            (&not_started, 1, 1, Consequence::LosePair),
            (&died, 0, 0, Consequence::LosePair),
            (&died, 0, 1, Consequence::GiveUp),
            (&died, 5, 1, Consequence::LosePair),
            (&full, 0, 0, Consequence::StorageFull),
            (
                &RunOutcome::Interrupted { signal: 2 },
                3,
                1,
                Consequence::Interrupted,
            ),
        ] {
            assert_eq!(
                consequence(outcome, finished, lost),
                expected,
                "{outcome:?}"
            );
        }
    }
}
