//! The thread of a task that exchanges objects with the other tasks of its run.

use std::collections::BTreeMap;

use stillwell_plan::{RunRoles, TaskRole};
use stillwell_run::{FleetStart, Interrupt, Milestone, RunFleet};
use stillwell_scope::{Place, Scope, Token, clock};
use stillwell_units::{Moment, Nanos};

use super::clock_bounds::lead_of;
use super::figures::{PartFigures, beat_every};
use super::{Members, RunJob};
use crate::attempt::Attempt;
use crate::beats::SignOfLife;
use crate::clocks::{ClockAnswers, ClockReading, ClockStage};
use crate::job::{ABORT, Abort, Failed, START, Start, beat_name, failed_name, of_task};
use crate::pause::pause;
use crate::store::JobStore;

/// Time between two looks at the store.
const LOOK_EVERY: Nanos = Nanos::from_millis(50);
/// Time between two signs of life before the start.
const BEAT_EVERY: Nanos = Nanos::from_secs(10);
/// Time without an answer of the store after which the run ends.
pub(super) const STORE_MAX: Nanos = Nanos::from_secs(60);

/// Input of the thread.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    pub(super) store: JobStore,
    pub(super) job: RunJob,
    pub(super) members: Members,
    pub(super) attempt: Attempt,
    pub(super) fleet: RunFleet,
    pub(super) figures: PartFigures,
}

/// Objects that were read and written.
#[derive(Debug, Default)]
struct Exchanged {
    /// Milestones of this task that are in the store.
    written: Vec<Milestone>,
    is_failure_written: bool,
    has_start: bool,
    is_over: bool,
    /// Milestones of other tasks, with the counts of what was sent.
    known: BTreeMap<(Milestone, u16), Vec<u64>>,
    beats: u32,
    next_beat: Moment,
}

impl Exchange {
    /// Starts the thread.
    pub(super) fn start(self) -> std::io::Result<Scope> {
        let mut scope = Scope::new(&Token::new());
        scope.thread(Place::default(), "exchange", move |token| {
            self.run(token);
            Ok(())
        })?;
        Ok(scope)
    }

    fn run(&self, token: &Token) {
        let quiet = Interrupt::new();
        let task = usize::from(self.attempt.task);
        let name = &self.attempt.name;
        let mut answers = ClockAnswers::new(&self.store, task, name, ClockStage::BeforeStart);
        let read = || self.attempt.shift.apply(ClockReading::now());
        let mut exchanged = Exchanged::default();
        let mut answered = clock::now();
        let mut closing: Option<Moment> = None;
        loop {
            let is_last = token.is_cancelled();
            let is_answered = self.look(&mut exchanged).is_some();
            if is_answered {
                answered = clock::now();
            } else if clock::now().since(answered) >= STORE_MAX {
                let why = format!("it did not answer for {STORE_MAX}");
                self.fleet.fail_elsewhere("the store".to_owned(), why);
            }
            // What was reached at the end has to be in the store, or the others wait for it.
            if is_last {
                let since = *closing.get_or_insert_with(clock::now);
                if is_answered || clock::now().since(since) >= STORE_MAX {
                    return;
                }
            }
            let has_pings = !exchanged.has_start && exchanged.written.contains(&Milestone::Ready);
            let soon = has_pings.then(|| answers.look(&quiet, &read).ok().flatten());
            let rest = soon.flatten().unwrap_or(LOOK_EVERY);
            pause(&quiet, rest);
        }
    }

    /// Writes and reads what is new; `None` if the store did not answer.
    fn look(&self, exchanged: &mut Exchanged) -> Option<()> {
        self.write(exchanged)?;
        if !exchanged.is_over
            && let Some(abort) = self.read::<Abort>(ABORT)?
        {
            exchanged.is_over = true;
            let part = abort.part.unwrap_or_else(|| "the job".to_owned());
            self.fleet.fail_elsewhere(part, abort.why);
        }
        if !exchanged.has_start
            && let Some(start) = self.read::<Start>(START)?
        {
            exchanged.has_start = true;
            self.take_start(&start);
            let begin = self.figures.start();
            exchanged.next_beat = begin.map_or(exchanged.next_beat, |start| {
                start + beat_every(self.job.roles.tasks(), Nanos::ZERO)
            });
        }
        for milestone in awaited(self.job.roles, self.attempt.task, exchanged.has_start) {
            self.read_milestone(milestone, exchanged)?;
        }
        Some(())
    }

    fn write(&self, exchanged: &mut Exchanged) -> Option<()> {
        let task = usize::from(self.attempt.task);
        for milestone in self.fleet.reached() {
            if !exchanged.written.contains(&milestone) {
                let counts = match milestone {
                    Milestone::Sent => self.fleet.sent(),
                    _ => Vec::new(),
                };
                self.create(&of_task(task, milestone.name()), &counts)?;
                exchanged.written.push(milestone);
            }
        }
        if !exchanged.is_failure_written
            && let Some(why) = self.fleet.failure()
        {
            let attempt = self.attempt.name.clone();
            self.create(&failed_name(task), &Failed { attempt, why })?;
            exchanged.is_failure_written = true;
        }
        let now = clock::now();
        if now >= exchanged.next_beat {
            let every = self.figures.start().map_or(BEAT_EVERY, |start| {
                beat_every(self.job.roles.tasks(), now.since(start))
            });
            let beat = SignOfLife {
                requests: 0,
                length: every,
                totals: self.figures.totals(),
            };
            self.create(&beat_name(task, exchanged.beats), &beat)?;
            exchanged.beats += 1;
            exchanged.next_beat = now + every;
        }
        Some(())
    }

    fn read_milestone(&self, milestone: Milestone, exchanged: &mut Exchanged) -> Option<()> {
        let roles = self.job.roles;
        let is_of = |task: &u16| {
            *task != self.attempt.task
                && roles
                    .role(*task)
                    .is_some_and(|role| milestone.is_of(roles, role))
        };
        let tasks: Vec<u16> = (0..roles.tasks()).filter(is_of).collect();
        for task in &tasks {
            if exchanged.known.contains_key(&(milestone, *task)) {
                continue;
            }
            let name = of_task(usize::from(*task), milestone.name());
            if let Some(counts) = self.read::<Vec<u64>>(&name)? {
                exchanged.known.insert((milestone, *task), counts);
            }
        }
        let known = |task: &u16| exchanged.known.get(&(milestone, *task)).cloned();
        let all: Option<Vec<Vec<u64>>> = tasks.iter().map(known).collect();
        if let Some(counts) = all {
            if milestone == Milestone::Sent {
                self.fleet.set_sent(counts);
            }
            self.fleet.others_reached(milestone);
        }
        Some(())
    }

    /// Turns the agreed start into a moment of this machine.
    fn take_start(&self, start: &Start) {
        let task = usize::from(self.attempt.task);
        let now = self.attempt.shift.apply(ClockReading::now()).wall;
        let rest = start.at_of(task).saturating_sub(now);
        if rest == Nanos::ZERO {
            let why = "it was not ready at the agreed start time".to_owned();
            return self.fleet.fail_elsewhere("this task".to_owned(), why);
        }
        let roles = self.job.roles;
        let generators = (0..roles.tasks()).filter(|task| {
            let role = roles.role(*task);
            matches!(role, Some(TaskRole::Generators(_)))
        });
        let planted = self.attempt.shift.now();
        let leads = generators.map(|generator| {
            let lead = lead_of(&self.members, &start.clocks, generator.into(), task);
            lead.map_or(0, |lead| lead.nanos) + planted
        });
        let at = clock::now() + rest;
        self.figures.begin(at);
        self.fleet.set_start(FleetStart {
            at,
            leads: leads.collect(),
        });
    }

    fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.store.job())
    }

    /// Reads an object; `None` if the store did not answer.
    #[expect(
        clippy::option_option,
        reason = "no answer, no object, and an object are three cases"
    )]
    fn read<T: serde::de::DeserializeOwned>(&self, name: &str) -> Option<Option<T>> {
        let bytes = self.store.store().get(&self.key(name)).ok()?;
        Some(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    fn create(&self, name: &str, value: &impl serde::Serialize) -> Option<()> {
        let bytes = serde_json::to_vec(value).ok()?;
        self.store
            .store()
            .create(&self.key(name), &bytes)
            .ok()
            .map(drop)
    }
}

/// Returns the milestones of other tasks that `task` waits for. Before the start it waits for no end of load: with a slow
/// store a look at many tasks takes longer than the time in which all read the agreed start.
fn awaited(roles: RunRoles, task: u16, has_start: bool) -> Vec<Milestone> {
    let mut milestones = match roles.role(task) {
        Some(TaskRole::Target) if roles.sinks > 0 => vec![Milestone::Bound, Milestone::Quiet],
        Some(TaskRole::Target) => vec![Milestone::Sent],
        Some(TaskRole::Sinks(_)) => vec![Milestone::Sent, Milestone::Stopped],
        Some(TaskRole::Generators(_)) => vec![Milestone::TargetReady],
        None => Vec::new(),
    };
    let is_end = |milestone: &Milestone| matches!(milestone, Milestone::Sent | Milestone::Quiet);
    milestones.retain(|milestone| has_start || !is_end(milestone));
    milestones
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The task with sinks read an object of each generator in every look, and was late for the start.
    #[test]
    fn no_task_reads_the_end_of_load_before_the_start() {
        use Milestone::{Bound, Quiet, Sent, Stopped, TargetReady};
        for (sinks, task, before, after) in [
            (0, 0, Vec::new(), vec![Sent]),
            (0, 1, vec![TargetReady], vec![TargetReady]),
            (1, 0, vec![Bound], vec![Bound, Quiet]),
            (1, 1, vec![Stopped], vec![Sent, Stopped]),
            (1, 2, vec![TargetReady], vec![TargetReady]),
        ] {
            let roles = RunRoles {
                generators: 2,
                sinks,
            };
            assert_eq!(awaited(roles, task, false), before, "{sinks} {task}");
            assert_eq!(awaited(roles, task, true), after, "{sinks} {task}");
        }
    }
}
