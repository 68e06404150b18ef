//! The life of one run as a pure machine: `Event` → [`Machine::next`] →
//! [`Action`]s.
//!
//! ```text
//! prepare → start → ready → warmup → measure → drain → stop → close
//!    │        │       │        │        │                      ▲
//!    └────────┴───────┴────────┴────────┴── anything wrong ────┘
//! ```
//!
//! After any failure or request to end, the run goes on to `stop` and `close`: nothing is left
//! running, and the capture stays readable. The first failure is the run's outcome. Every phase has
//! a deadline. The machine reads no clock: `now` is an argument, and [`Machine::deadline`] is the
//! moment of the next call.
//!
//! Steps of the timeline happen while measuring. Later ones happen in the drain, which waits for
//! them. If a step ends the target, this end is no failure, and the run goes on without it until it
//! is ready again:
//!
//! ```text
//! runs → ending → ended → starting → runs
//! ```
//!
//! Load that has an end may end before its time, and the drain with it. The run fails if steps are
//! left then.
//!
//! A run beside another stays in `ready` until both targets are, and fails with the other unless its
//! load has ended by then.

use stillwell_capture::RunOutcome;
use stillwell_plan::step::{StepAction, TargetChange, TargetSignal};
use stillwell_plan::{Phase, PhasesPlan, StepPlan};
use stillwell_units::human::counted;
use stillwell_units::{Moment, Nanos};

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Payloads are built and sinks bound.
    Prepared,
    /// They could not be.
    PrepareFailed(String),
    /// The target runs.
    Started,
    /// It could not be started.
    StartFailed(String),
    /// The target is on another machine, and this part is not ready without it.
    TargetAwaited,
    /// The target is ready for load.
    Ready,
    /// The target of the run beside this one is ready too: load begins then.
    Agreed(Moment),
    /// The run beside this one failed, and why.
    PartnerFailed(String),
    /// It will not be.
    NotReady(String),
    /// The target ended.
    TargetExited,
    /// The target has ended as a step wanted it to.
    TargetEnded,
    /// It runs again.
    StartedAgain,
    /// It is ready again.
    ReadyAgain,
    /// It does not run again, or is not ready again.
    NotAgain(String),
    /// A part of ours failed.
    PartFailed {
        /// The part.
        part: String,
        /// Description of the failure.
        reason: String,
    },
    /// The capture could not be written.
    StorageFailed(String),
    /// A signal or a caller requested the end.
    Interrupted(i32),
    /// All that was to be sent is sent, before the time for it was over.
    LoadEnded,
    /// Generators have ended and sinks have been quiet for long enough.
    Quiet,
    /// The target is gone, and all that it left.
    Stopped,
    /// All parts of ours have ended.
    Closed,
    /// Time has passed.
    Tick,
}

/// Actions of the shell.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Mark the beginning of a phase.
    Enter(Phase),
    /// Build payloads, bind sinks.
    Prepare,
    /// Start the target.
    StartTarget,
    /// Find out when the target is ready.
    AwaitReady,
    /// Report to the run beside this one that the target is ready.
    Meet,
    /// Start to send.
    StartLoad,
    /// Do what the timeline says.
    Step(StepAction),
    /// End the target by this signal; it may start again.
    EndTarget(TargetSignal),
    /// Start it again.
    StartAgain,
    /// Find out when it is ready again.
    AwaitReadyAgain,
    /// Send no more.
    StopLoad,
    /// Find out when sinks are quiet.
    AwaitQuiet,
    /// Stop the target.
    StopTarget,
    /// End sinks, observers and all that is left.
    Close,
    /// The run is over.
    Finish(RunOutcome),
}

/// The longest time that the readiness probe may take to say, once its time is over, what it has
/// waited for without a result.
const PROBE_ANSWER_MAX: Nanos = Nanos::SECOND;

/// The name under which a run fails because of the one beside it.
const PARTNER: &str = "the other run of the pair";

/// The name under which a run fails whose target does not start again.
const RESTART: &str = "the target's restart";

/// The name under which a run fails whose steps did not all happen.
const TIMELINE: &str = "the timeline";

/// Effect of steps on the target.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Life {
    /// It runs, or no step ended it.
    Runs,
    /// A step ends it.
    Ending {
        /// True if it is to start again as soon as it has ended.
        starts: bool,
    },
    /// It has ended.
    Ended,
    /// It starts again, since then.
    Starting(Moment),
}

/// State of one run.
#[derive(Debug)]
pub struct Machine {
    plan: PhasesPlan,
    stop_deadline: Nanos,
    steps: Vec<StepPlan>,
    /// True if there is a run beside this one.
    is_together: bool,
    /// True if only the other's target is waited for.
    is_waiting: bool,
    life: Life,
    phase: Phase,
    entered: Moment,
    /// When measuring began, which steps count from.
    measured_from: Moment,
    /// Measured time after which load ended by itself.
    load_ended_after: Option<Nanos>,
    outcome: Option<RunOutcome>,
    finished: bool,
}

impl Machine {
    /// A run that has not begun. `stop_deadline` is how long stopping the target may take, its
    /// grace included.
    #[must_use]
    pub fn new(plan: PhasesPlan, steps: &[StepPlan], stop_deadline: Nanos) -> Self {
        let mut steps = steps.to_vec();
        // Taken from the back, the earliest first, and of one time in their order.
        steps.reverse();
        steps.sort_by_key(|step| std::cmp::Reverse(step.at));
        Self {
            plan,
            stop_deadline,
            steps,
            is_together: false,
            is_waiting: false,
            life: Life::Runs,
            phase: Phase::Prepare,
            entered: Moment::default(),
            measured_from: Moment::default(),
            load_ended_after: None,
            outcome: None,
            finished: false,
        }
    }

    /// The same beside another run: load begins when both have agreed on it, and
    /// phases that take a set time end at the moments that follow from there,
    /// whenever they are looked at.
    #[must_use]
    pub fn together(self) -> Self {
        Self {
            is_together: true,
            ..self
        }
    }

    /// The run's first actions.
    pub fn begin(&mut self, now: Moment) -> Vec<Action> {
        self.entered = now;
        vec![Action::Enter(Phase::Prepare), Action::Prepare]
    }

    /// The phase that the run is in.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// The first thing that went wrong, if anything has.
    #[must_use]
    pub const fn failure(&self) -> Option<&RunOutcome> {
        self.outcome.as_ref()
    }

    /// True if [`Action::Finish`] has been given.
    #[must_use]
    pub const fn is_finished(&self) -> bool {
        self.finished
    }

    /// When [`Event::Tick`] is wanted at the latest.
    #[must_use]
    pub fn deadline(&self) -> Moment {
        let mut deadline = self.phase_end();
        if let Some(end) = self.restart_end() {
            deadline = deadline.min(end);
        }
        match self.next_step() {
            Some(step) => deadline.min(step),
            None => deadline,
        }
    }

    /// When the next step happens, in a phase in which steps do.
    fn next_step(&self) -> Option<Moment> {
        let step = self.steps.last()?;
        let is_time = matches!(self.phase, Phase::Measure | Phase::Drain);
        is_time.then(|| self.measured_from + step.at)
    }

    /// True if another step happens before this phase is over.
    #[must_use]
    pub fn awaits_step(&self) -> bool {
        let next = self.next_step();
        next.is_some_and(|step| step < self.phase_end())
    }

    /// True if the target is not there, or not ready, because a step wanted it so.
    #[must_use]
    pub fn is_without_target(&self) -> bool {
        self.life != Life::Runs
    }

    /// When the target must be ready again, if it starts.
    fn restart_end(&self) -> Option<Moment> {
        match self.life {
            Life::Starting(since) if self.phase <= Phase::Drain => {
                Some(since + self.plan.ready + PROBE_ANSWER_MAX)
            }
            _ => None,
        }
    }

    /// When the phase ends, or must have ended.
    #[must_use]
    pub fn phase_end(&self) -> Moment {
        self.entered + self.phase_length()
    }

    /// The longest time that the phase takes, or may take.
    #[must_use]
    pub fn phase_length(&self) -> Nanos {
        match self.phase {
            Phase::Prepare | Phase::Start => self.plan.prepare,
            // The other has as long as we had, from its beginning to its readiness.
            Phase::Ready if self.is_waiting => {
                let before = self.plan.prepare + self.plan.prepare + self.plan.ready;
                before + PROBE_ANSWER_MAX + PROBE_ANSWER_MAX
            }
            Phase::Ready => self.plan.ready + PROBE_ANSWER_MAX,
            Phase::Warmup => self.plan.warmup,
            Phase::Measure => self.plan.measure,
            Phase::Drain => self.plan.drain,
            Phase::Stop => self.stop_deadline,
            Phase::Close => self.plan.close,
        }
    }

    /// Returns the actions after `event`.
    pub fn next(&mut self, now: Moment, event: Event) -> Vec<Action> {
        if self.finished {
            return Vec::new();
        }
        match event {
            Event::Tick => self.tick(now),
            Event::Prepared if self.phase == Phase::Prepare => {
                self.enter(now, Phase::Start, [Action::StartTarget])
            }
            Event::Started if self.phase == Phase::Start => {
                self.enter(now, Phase::Ready, [Action::AwaitReady])
            }
            Event::TargetAwaited if self.phase == Phase::Ready => {
                self.is_waiting = true;
                Vec::new()
            }
            Event::Ready if self.phase == Phase::Ready && self.is_together => {
                self.is_waiting = true;
                vec![Action::Meet]
            }
            Event::Ready if self.phase == Phase::Ready => {
                self.enter(now, Phase::Warmup, [Action::StartLoad])
            }
            Event::Agreed(start) if self.phase == Phase::Ready && self.is_waiting => {
                self.enter(start, Phase::Warmup, [Action::StartLoad])
            }
            // Once load is over it is no loss.
            Event::PartnerFailed(_) if self.phase >= Phase::Drain => Vec::new(),
            Event::LoadEnded if self.phase == Phase::Warmup => {
                let mut actions = self.enter(now, Phase::Measure, []);
                actions.extend(self.load_ended(now));
                actions
            }
            Event::LoadEnded if self.phase == Phase::Measure => self.load_ended(now),
            Event::Quiet if self.may_stop() => self.drained(now),
            Event::Stopped if self.phase == Phase::Stop => {
                self.enter(now, Phase::Close, [Action::Close])
            }
            Event::Closed if self.phase == Phase::Close => self.finish(),
            Event::TargetExited => self.target_exited(now),
            Event::TargetEnded | Event::StartedAgain | Event::ReadyAgain => {
                self.restarted(now, &event)
            }
            // Late events, which have no effect.
            Event::Prepared
            | Event::Started
            | Event::TargetAwaited
            | Event::Ready
            | Event::Agreed(_)
            | Event::LoadEnded
            | Event::Quiet
            | Event::Stopped
            | Event::Closed => Vec::new(),
            // A step ended it before it was ready.
            Event::NotAgain(_) if matches!(self.life, Life::Ending { .. } | Life::Ended) => {
                Vec::new()
            }
            failure => self.fail(now, outcome_of(failure)),
        }
    }

    /// Returns true if nothing is waited for but that sinks are quiet.
    fn may_stop(&self) -> bool {
        self.phase == Phase::Drain && self.life == Life::Runs && !self.awaits_step()
    }

    fn tick(&mut self, now: Moment) -> Vec<Action> {
        if self.next_step().is_some_and(|step| now >= step)
            && let Some(step) = self.steps.pop()
        {
            return self.step(now, step.action);
        }
        if self.restart_end().is_some_and(|end| now >= end) {
            let reason = format!("it was not ready again within {}", self.plan.ready);
            return self.fail(now, outcome_of(Event::NotAgain(reason)));
        }
        if now < self.phase_end() {
            return Vec::new();
        }
        match self.phase {
            Phase::Warmup if self.is_together => self.enter(self.phase_end(), Phase::Measure, []),
            Phase::Warmup => self.enter(now, Phase::Measure, []),
            Phase::Measure => self.drain(now),
            // A target that still sends when the drain is over has had its time.
            Phase::Drain => self.drained(now),
            Phase::Close => {
                self.record(RunOutcome::Overdue {
                    phase: Phase::Close,
                });
                self.finish()
            }
            Phase::Stop => {
                self.record(RunOutcome::Overdue { phase: Phase::Stop });
                self.enter(now, Phase::Close, [Action::Close])
            }
            Phase::Ready if self.is_waiting => {
                let reason = "it was not ready in time".to_owned();
                self.fail(now, outcome_of(Event::PartnerFailed(reason)))
            }
            Phase::Ready => {
                let reason = format!("it was not ready within {}", self.plan.ready);
                self.fail(now, RunOutcome::NeverReady { reason })
            }
            phase @ (Phase::Prepare | Phase::Start) => {
                self.fail(now, RunOutcome::Overdue { phase })
            }
        }
    }

    fn step(&mut self, now: Moment, action: StepAction) -> Vec<Action> {
        match (action, self.life) {
            (StepAction::Target(TargetChange::End(signal)), _) => {
                self.life = Life::Ending { starts: false };
                vec![Action::EndTarget(signal)]
            }
            (StepAction::Target(TargetChange::Start), Life::Ending { .. }) => {
                self.life = Life::Ending { starts: true };
                Vec::new()
            }
            (StepAction::Target(TargetChange::Start), Life::Ended) => self.start_again(now),
            // Refused when the plan was read.
            (StepAction::Target(TargetChange::Start), _) => Vec::new(),
            (action, _) => vec![Action::Step(action)],
        }
    }

    fn start_again(&mut self, now: Moment) -> Vec<Action> {
        self.life = Life::Starting(now);
        vec![Action::StartAgain]
    }

    /// The target has come a step further on its way back.
    fn restarted(&mut self, now: Moment, event: &Event) -> Vec<Action> {
        if self.phase > Phase::Drain {
            return Vec::new();
        }
        match (event, self.life) {
            (Event::TargetEnded, Life::Ending { starts: true }) => self.start_again(now),
            (Event::TargetEnded, Life::Ending { starts: false }) => {
                self.life = Life::Ended;
                Vec::new()
            }
            (Event::StartedAgain, Life::Starting(_)) => vec![Action::AwaitReadyAgain],
            (Event::ReadyAgain, Life::Starting(_)) => {
                self.life = Life::Runs;
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn target_exited(&mut self, now: Moment) -> Vec<Action> {
        if matches!(self.life, Life::Ending { .. } | Life::Ended) {
            return Vec::new();
        }
        match self.phase {
            Phase::Stop | Phase::Close => Vec::new(),
            Phase::Prepare | Phase::Start | Phase::Ready => {
                let reason = "it ended before it was ready".to_owned();
                self.fail(now, RunOutcome::NeverReady { reason })
            }
            phase => self.fail(now, RunOutcome::TargetDied { phase }),
        }
    }

    /// Keeps the first thing that went wrong and goes on to the end.
    fn fail(&mut self, now: Moment, outcome: RunOutcome) -> Vec<Action> {
        self.record(outcome);
        match self.phase {
            Phase::Stop | Phase::Close => Vec::new(),
            Phase::Warmup | Phase::Measure => {
                let mut actions = vec![Action::StopLoad];
                actions.extend(self.stop(now));
                actions
            }
            _ => self.stop(now),
        }
    }

    fn drain(&mut self, now: Moment) -> Vec<Action> {
        self.enter(now, Phase::Drain, [Action::StopLoad, Action::AwaitQuiet])
    }

    fn load_ended(&mut self, now: Moment) -> Vec<Action> {
        self.load_ended_after = Some(now.since(self.measured_from));
        self.drain(now)
    }

    /// Ends the drain. Without a step that was to happen, the run is not the requested one.
    fn drained(&mut self, now: Moment) -> Vec<Action> {
        if let Some(after) = self.load_ended_after
            && !self.steps.is_empty()
        {
            let steps = counted(self.steps.len(), "step", "steps");
            let part = TIMELINE.to_owned();
            let reason = format!(
                "{steps} did not happen: the load ended {after} after the start of the measured \
                 phase"
            );
            return self.fail(now, RunOutcome::PartFailed { part, reason });
        }
        if self.life != Life::Runs {
            let reason = "it was not ready again when the drain was over".to_owned();
            return self.fail(now, outcome_of(Event::NotAgain(reason)));
        }
        self.stop(now)
    }

    fn stop(&mut self, now: Moment) -> Vec<Action> {
        self.enter(now, Phase::Stop, [Action::StopTarget])
    }

    fn finish(&mut self) -> Vec<Action> {
        self.finished = true;
        let outcome = self.outcome.take().unwrap_or(RunOutcome::Completed);
        vec![Action::Finish(outcome)]
    }

    fn record(&mut self, outcome: RunOutcome) {
        self.outcome.get_or_insert(outcome);
    }

    fn enter<const N: usize>(
        &mut self,
        now: Moment,
        phase: Phase,
        actions: [Action; N],
    ) -> Vec<Action> {
        self.phase = phase;
        self.entered = now;
        if phase == Phase::Measure {
            self.measured_from = now;
        }
        let mut all = vec![Action::Enter(phase)];
        all.extend(actions);
        all
    }
}

/// The outcome of a run in which the first thing that went wrong is `event`.
fn outcome_of(event: Event) -> RunOutcome {
    match event {
        Event::PrepareFailed(reason) | Event::StartFailed(reason) => {
            RunOutcome::CouldNotStart { reason }
        }
        Event::NotReady(reason) => RunOutcome::NeverReady { reason },
        Event::PartFailed { part, reason } => RunOutcome::PartFailed { part, reason },
        Event::PartnerFailed(reason) => RunOutcome::PartFailed {
            part: PARTNER.to_owned(),
            reason,
        },
        Event::NotAgain(reason) => RunOutcome::PartFailed {
            part: RESTART.to_owned(),
            reason,
        },
        Event::StorageFailed(reason) => RunOutcome::StorageFailed { reason },
        Event::Interrupted(signal) => RunOutcome::Interrupted { signal },
        _ => RunOutcome::Unfinished,
    }
}

#[cfg(test)]
mod tests;
