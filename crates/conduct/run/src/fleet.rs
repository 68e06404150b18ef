//! One part of a run on several machines: what it has in common with the other parts.
//!
//! A [`RunFleet`] is shared by the conductor of the part and the thread that exchanges objects
//! with the other parts, so nothing of a run ever waits for a store.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stillwell_capture::RunOutcome;
use stillwell_plan::load::FleetShare;
use stillwell_plan::{GeneratorPlan, RunRoles, TaskRole};
use stillwell_units::Moment;

use crate::together::describe;

/// A point of a run that other parts wait for.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Milestone {
    /// Sinks listen: the target may start.
    Bound,
    /// The target is ready: it can describe calls.
    TargetReady,
    /// The part is ready for load.
    Ready,
    /// Generators have ended.
    Sent,
    /// Nothing more arrives at sinks: the target may stop.
    Quiet,
    /// The target has stopped: sinks may close.
    Stopped,
}

impl Milestone {
    /// Returns its name in objects of a store.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bound => "bound",
            Self::TargetReady => "target-ready",
            Self::Ready => "prepared",
            Self::Sent => "sent",
            Self::Quiet => "quiet",
            Self::Stopped => "stopped",
        }
    }

    /// Returns true if tasks with `role` reach it, and others wait for that.
    #[must_use]
    pub fn is_of(self, roles: RunRoles, role: TaskRole) -> bool {
        match self {
            Self::Bound | Self::Quiet => roles.has_sinks(role),
            Self::Ready => true,
            Self::Sent => matches!(role, TaskRole::Generators(_)),
            Self::TargetReady | Self::Stopped => role == TaskRole::Target,
        }
    }
}

/// The agreed start of a run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FleetStart {
    /// Start of the load by the clock of this machine.
    pub at: Moment,
    /// Lead of the clock of each generator task over the clock of this machine, in nanoseconds.
    pub leads: Vec<i64>,
}

/// One part of a run on several machines. Clones share it.
#[derive(Clone, Debug)]
pub struct RunFleet {
    roles: RunRoles,
    role: TaskRole,
    /// Generators of all tasks.
    generators: Arc<[GeneratorPlan]>,
    state: Arc<Mutex<FleetState>>,
}

#[derive(Debug, Default)]
struct FleetState {
    /// Milestones of this part.
    reached: BTreeSet<Milestone>,
    /// Milestones that all other parts have reached.
    reached_elsewhere: BTreeSet<Milestone>,
    start: Option<FleetStart>,
    /// Events that each stream of this part has begun.
    sent: Vec<u64>,
    /// Events that each stream of each generator task has begun.
    sent_by_all: Vec<Vec<u64>>,
    failure: Option<String>,
    /// The part that failed elsewhere, and why.
    failure_elsewhere: Option<(String, String)>,
}

impl RunFleet {
    /// Returns the part with `role` of a run whose `generators` are those of all tasks.
    #[must_use]
    pub fn new(roles: RunRoles, role: TaskRole, generators: Vec<GeneratorPlan>) -> Self {
        Self {
            roles,
            role,
            generators: generators.into(),
            state: Arc::default(),
        }
    }

    /// Returns the milestones that this part has reached.
    #[must_use]
    pub fn reached(&self) -> Vec<Milestone> {
        self.state().reached.iter().copied().collect()
    }

    /// Returns the events that each stream of this part has begun, once that is final.
    #[must_use]
    pub fn sent(&self) -> Vec<u64> {
        self.state().sent.clone()
    }

    /// Returns the reason why this part failed, if it did.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.state().failure.clone()
    }

    /// Sets that all other parts with this milestone have reached it.
    pub fn others_reached(&self, milestone: Milestone) {
        self.state().reached_elsewhere.insert(milestone);
    }

    /// Sets the start.
    pub fn set_start(&self, start: FleetStart) {
        self.state().start.get_or_insert(start);
    }

    /// Sets the events that each stream of each generator task has begun.
    pub fn set_sent(&self, counts: Vec<Vec<u64>>) {
        self.state().sent_by_all = counts;
    }

    /// Sets that the part `name` failed, and why; the first one counts.
    pub fn fail_elsewhere(&self, name: String, why: String) {
        self.state().failure_elsewhere.get_or_insert((name, why));
    }

    /// Returns true if this part has sinks, and so a delivery ledger.
    pub(crate) fn has_sinks(&self) -> bool {
        self.roles.has_sinks(self.role)
    }

    /// Returns true if other parts have sinks, too.
    pub(crate) fn has_some_sinks(&self) -> bool {
        matches!(self.role, TaskRole::Sinks(share) if share.is_partial())
    }

    pub(crate) fn is_target(&self) -> bool {
        self.role == TaskRole::Target
    }

    pub(crate) fn is_generator(&self) -> bool {
        matches!(self.role, TaskRole::Generators(_))
    }

    pub(crate) fn generators(&self) -> &[GeneratorPlan] {
        &self.generators
    }

    pub(crate) fn reach(&self, milestone: Milestone) {
        self.state().reached.insert(milestone);
    }

    /// True if all parts with this milestone, except this one, have reached it.
    pub(crate) fn have_others_reached(&self, milestone: Milestone) -> bool {
        self.state().reached_elsewhere.contains(&milestone)
    }

    pub(crate) fn start(&self) -> Option<FleetStart> {
        self.state().start.clone()
    }

    /// Sets the final counts of this part, and that its generators have ended.
    pub(crate) fn end_load(&self, sent: Vec<u64>) {
        let mut state = self.state();
        state.sent = sent;
        state.reached.insert(Milestone::Sent);
    }

    /// Sets that this part failed; the first reason counts.
    pub(crate) fn fail(&self, outcome: &RunOutcome) {
        let why = || describe(outcome);
        self.state().failure.get_or_insert_with(why);
    }

    pub(crate) fn failure_elsewhere(&self) -> Option<(String, String)> {
        self.state().failure_elsewhere.clone()
    }

    /// Returns the lead of the clock of each stream's generator over this one, and the events that
    /// each has begun, both by the number of the stream.
    pub(crate) fn of_streams(&self, leads: &[i64]) -> (Vec<i64>, Vec<u64>) {
        let counts = &self.state().sent_by_all;
        let (mut stream_leads, mut stream_counts) = (Vec::new(), Vec::new());
        let mut taken = vec![0; usize::from(self.roles.generators)];
        for generator in self.generators.iter().filter(|plan| plan.stamps.is_some()) {
            let orders = generator.transport.properties().streams;
            for (task, taken) in taken.iter_mut().enumerate() {
                let streams = u16::try_from(task)
                    .ok()
                    .and_then(|index| FleetShare::new(index, self.roles.generators))
                    .and_then(|share| generator.concurrency.part(share).ok())
                    .map_or(0, |part| orders * u32::from(part.connections()));
                for _ in 0..streams {
                    stream_leads.push(leads.get(task).copied().unwrap_or(0));
                    let of_task = counts.get(task).and_then(|counts| counts.get(*taken));
                    stream_counts.push(of_task.copied().unwrap_or(0));
                    *taken += 1;
                }
            }
        }
        (stream_leads, stream_counts)
    }

    fn state(&self) -> MutexGuard<'_, FleetState> {
        // Nothing that is done under the lock can leave it half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_waits_for_others_and_reports_itself() {
        let roles = RunRoles {
            generators: 2,
            sinks: 1,
        };
        let role = |task| roles.role(task).unwrap();
        assert!(Milestone::Bound.is_of(roles, role(1)) && !Milestone::Bound.is_of(roles, role(0)));
        assert!(Milestone::Sent.is_of(roles, role(3)) && !Milestone::Sent.is_of(roles, role(1)));
        assert!(Milestone::Stopped.is_of(roles, role(0)));
        let of_target = (0..4).filter(|task| Milestone::TargetReady.is_of(roles, role(*task)));
        assert_eq!(of_target.collect::<Vec<_>>(), [0]);
        let fleet = RunFleet::new(roles, role(2), Vec::new());
        let conductor = fleet.clone();
        conductor.reach(Milestone::Ready);
        assert_eq!(fleet.reached(), [Milestone::Ready]);
        assert!(!conductor.have_others_reached(Milestone::Ready));
        fleet.others_reached(Milestone::Ready);
        assert!(conductor.have_others_reached(Milestone::Ready));
        conductor.end_load(vec![7]);
        assert_eq!((fleet.sent(), fleet.reached().len()), (vec![7], 2));
        fleet.fail_elsewhere("sinks".to_owned(), "first".to_owned());
        fleet.fail_elsewhere("target".to_owned(), "second".to_owned());
        let (part, why) = conductor.failure_elsewhere().unwrap();
        assert_eq!((&*part, &*why), ("sinks", "first"));
        conductor.fail(&RunOutcome::Interrupted { signal: 15 });
        assert_eq!(fleet.failure().unwrap(), "it was ended by signal 15");
    }
}
