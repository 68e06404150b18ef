//! The meeting point of two conductors.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use stillwell_capture::RunOutcome;
use stillwell_observer::TargetProbe;
use stillwell_pacer::Turns;
use stillwell_plan::PhasesPlan;
use stillwell_units::{Moment, Nanos, Seed};

use super::{Beside, Together};

/// From the moment when both are ready until load begins: conductors look every
/// 20 ms, and generators must have started by then.
const LEAD: Nanos = Nanos::from_millis(100);

/// One run's end of a meeting. Dropping it before load has ended makes the other run fail.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) together: Together,
    /// 0 or 1.
    pub(crate) side: usize,
    /// From which all that the two share by lot follows.
    pub(crate) seed: Seed,
    meeting: Arc<Meeting>,
    turns: Arc<OnceLock<Turns>>,
}

#[derive(Debug, Default)]
pub(super) struct Meeting {
    known: Mutex<Known>,
    staging: Mutex<()>,
}

#[derive(Debug, Default)]
struct Known {
    sides: [Side; 2],
    /// When load begins.
    start: Option<Moment>,
}

#[derive(Debug, Default)]
struct Side {
    is_ready: bool,
    is_load_over: bool,
    failure: Option<String>,
    probe: Option<TargetProbe>,
}

impl Link {
    /// Both ends of a meeting.
    pub(crate) fn pair(together: Together, seed: Seed) -> [Self; 2] {
        let meeting = Arc::new(Meeting::default());
        [0, 1].map(|side| Self {
            together,
            side,
            seed,
            meeting: Arc::clone(&meeting),
            turns: Arc::default(),
        })
    }

    /// Held while the environment is set up: a run without groups in a shared folder removes that
    /// folder.
    pub(crate) fn staging(&self) -> MutexGuard<'_, ()> {
        lock(&self.meeting.staging)
    }

    /// This run's target is ready. Where the other's is too, the start is set.
    pub(crate) fn ready(&self, now: Moment) {
        let mut known = self.meeting.known();
        known.sides[self.side].is_ready = true;
        if known.sides.iter().all(|side| side.is_ready) {
            known.start.get_or_insert(now + LEAD);
        }
    }

    /// When load begins, once both are ready.
    pub(crate) fn start(&self) -> Option<Moment> {
        self.meeting.known().start
    }

    /// When this run sends, if the two take turns, from the `start` that was
    /// agreed on, in the warm-up and the measured phase of `phases`.
    pub(crate) fn turns(&self, start: Moment, phases: &PhasesPlan) -> Option<Turns> {
        let plan = self.together.turns()?;
        let turns = self.turns.get_or_init(|| {
            let stretches = [phases.warmup, phases.measure];
            let [first, second] = Turns::pair(plan, &self.seed, start, &stretches);
            if self.side == 0 { first } else { second }
        });
        Some(turns.clone())
    }

    /// Returns the figures of the other run that are sampled with this one.
    pub(crate) fn beside(&self) -> Beside {
        let turns = self.together.turns().map(|_| Arc::clone(&self.turns));
        Beside::new(Arc::clone(&self.meeting), self.other_side(), turns)
    }

    /// Sets the probe of this run's target.
    pub(crate) fn watch(&self, probe: TargetProbe) {
        self.meeting.known().sides[self.side].probe = Some(probe);
    }

    /// Reports that this run fails; the first reason counts.
    pub(crate) fn fail(&self, outcome: &RunOutcome) {
        self.meeting.known().sides[self.side]
            .failure
            .get_or_insert_with(|| describe(outcome));
    }

    /// Reports that this run has sent its whole load: a later failure does not affect the other
    /// run.
    pub(crate) fn load_over(&self) {
        self.meeting.known().sides[self.side].is_load_over = true;
    }

    /// Returns the reason why the other run failed before its load was over, if it did.
    pub(crate) fn partner_failure(&self) -> Option<String> {
        let known = self.meeting.known();
        let other_side = &known.sides[self.other_side()];
        other_side
            .failure
            .clone()
            .filter(|_| !other_side.is_load_over)
    }

    const fn other_side(&self) -> usize {
        1 - self.side
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let mut known = self.meeting.known();
        let gone = || "it ended".to_owned();
        known.sides[self.side].failure.get_or_insert_with(gone);
    }
}

impl Meeting {
    /// Returns the probe of the target of `side`, once it runs.
    pub(super) fn probe(&self, side: usize) -> Option<TargetProbe> {
        self.known().sides[side].probe.clone()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing that is done under the lock can leave it half done.
        lock(&self.known)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The end of a run, for the one beside it.
pub(crate) fn describe(outcome: &RunOutcome) -> String {
    match outcome {
        RunOutcome::Unfinished | RunOutcome::Completed => "it ended".to_owned(),
        RunOutcome::CouldNotStart { reason } => format!("it could not start: {reason}"),
        RunOutcome::NeverReady { reason } => format!("its target was never ready: {reason}"),
        RunOutcome::TargetDied { phase } => format!("its target died in {}", phase.name()),
        RunOutcome::PartFailed { part, reason } => format!("{part} failed: {reason}"),
        RunOutcome::Interrupted { signal } => format!("it was ended by signal {signal}"),
        RunOutcome::StorageFailed { reason } => {
            format!("its capture could not be written: {reason}")
        }
        RunOutcome::Overdue { phase } => format!("its {} did not end in time", phase.name()),
    }
}

#[cfg(test)]
mod tests {
    use stillwell_plan::Phase;

    use super::*;

    fn links() -> [Link; 2] {
        let sliced = Together::Sliced {
            turn_min: Nanos::from_millis(100),
            turn_max: Nanos::from_millis(200),
        };
        Link::pair(sliced, Seed::from_number(1))
    }

    #[test]
    fn load_begins_for_both_once_the_second_is_ready() {
        let [first, other_side] = links();
        first.ready(Moment::new(5));
        assert_eq!(first.start(), None);
        other_side.ready(Moment::new(70));
        let start = Some(Moment::new(70) + LEAD);
        assert_eq!((first.start(), other_side.start()), (start, start));
        first.ready(Moment::new(90));
        assert_eq!(first.start(), start);
    }

    #[test]
    fn both_have_their_own_of_the_same_turns() {
        let [first, other_side] = links();
        let start = Moment::new(7);
        let phases = PhasesPlan::default();
        let [first, other_side] =
            [first, other_side].map(|link| link.turns(start, &phases).unwrap());
        let end = start + phases.warmup + phases.measure;
        assert_eq!(first.active(end), other_side.active(end));
        assert_ne!(first.next_change(start), other_side.next_change(start));
    }

    #[test]
    fn the_first_failure_is_received_until_load_is_over() {
        let [first, other_side] = links();
        assert_eq!(other_side.partner_failure(), None);
        first.fail(&RunOutcome::TargetDied {
            phase: Phase::Measure,
        });
        first.fail(&RunOutcome::Interrupted { signal: 2 });
        let failure = Some("its target died in measure".to_owned());
        assert_eq!(other_side.partner_failure(), failure);
        assert_eq!(first.partner_failure(), None);
        first.load_over();
        assert_eq!(other_side.partner_failure(), None);
    }

    #[test]
    fn a_conductor_that_vanishes_is_noticed() {
        let [first, other_side] = links();
        drop(first);
        assert!(other_side.partner_failure().is_some());
        let [first, other_side] = links();
        first.load_over();
        drop(first);
        assert_eq!(other_side.partner_failure(), None);
    }
}
