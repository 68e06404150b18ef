//! The shell around the machine: waits for events and performs actions. It decides nothing.

mod beyond;
mod container;
mod describe;
mod inspect;
mod logs;
mod mounts;
mod perf;
mod perform;
mod progress;
mod restart;
mod step;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};

use stillwell_capture::{Manifest, Note, RunOutcome};
use stillwell_metric::{Shard, SinkShard};
use stillwell_observer::{ProcessSnapshot, SampleBatch, SamplerHandle};
use stillwell_plan::step::StepAction;
use stillwell_plan::{Phase, TargetKind};
use stillwell_scope::{PartEnd, Scope, Token, clock, explain};
use stillwell_target::{
    Container, ContainerError, Exit, INSPECTOR_STOP, Links, PERF_SCRIPT_LIMIT, Stopped,
    TargetProcess,
};
use stillwell_units::{Moment, Nanos};
use stillwell_worker::Prepared;

use crate::conduct::ConductError;
use crate::interrupt::Interrupt;
use crate::machine::{Action, Event, Machine};
use crate::parts::Parts;
use crate::record::Record;
use crate::request::RunRequest;
use crate::shell::beyond::Beyond;
use crate::shell::mounts::Mounts;
pub use crate::shell::mounts::clear_memory_disks;
pub(crate) use crate::shell::progress::ProgressSender;
use crate::stamps::RunLedger;
use crate::steps::{Controls, Restarts};
use crate::target::{self, Stage};
use crate::together::{Foreign, Link};

/// Events that may wait for the conductor; more block their senders.
const EVENTS_WAITING_MAX: usize = 64;
/// Beats that wait for the conductor; more hold the sampler back.
pub(crate) const BEATS_WAITING_MAX: usize = 64;
/// The longest time without a look at signals, beats and parts.
const LOOK_EVERY: Nanos = Nanos::from_millis(20);
/// The longest time that stopping may take besides the target's own grace.
const STOP_MARGIN: Nanos = Nanos::from_secs(6);
/// The longest time that the end of a part waits for those of other machines.
const FLEET_STOP_MAX: Nanos = Nanos::from_secs(30);
/// The longest time that a phase mark waits for the sampler.
const MARK_MAX: Nanos = Nanos::from_secs(2);

/// Messages from parts of the conductor.
#[derive(Debug)]
pub(crate) enum ShellMessage {
    Prepared(Result<Parts, String>),
    Ready(Result<Nanos, String>),
    /// Generators whose calls the target has described, with their places.
    Described(Result<Vec<(usize, Prepared)>, String>),
    /// Number of the target's start that ended, and its exit.
    Exited(u64, Exit),
    Stopped(Stopped),
    /// A step ended it; the moment is that of its request.
    Ended(Moment, Stopped),
    /// Number of the target's start whose readiness was probed, and the result.
    ReadyAgain(u64, Result<Nanos, String>),
    LinksChanged(Result<(), String>),
    Container(Result<Container, ContainerError>),
    /// The container was not stopped or not removed as planned.
    ContainerFailed(Vec<ContainerError>),
    InspectorExited(Exit),
    InspectorStopped(Stopped),
    /// The conversion of the samples of `perf` to a profile has ended or failed.
    Profiled(Result<Option<String>, String>),
}

/// One run while it goes on.
pub(crate) struct Shell {
    request: RunRequest,
    interrupt: Interrupt,
    interrupted: bool,
    machine: Machine,
    record: Record,
    scope: Scope,
    stop_load: Token,
    stage: Option<Stage>,
    target: TargetProcess,
    /// The target's container, until its end is requested.
    container: Option<Container>,
    /// The inspector of the target, until its end is requested.
    inspector: Option<TargetProcess>,
    /// When the inspector ended by itself, without an error.
    inspector_ended: Option<Moment>,
    /// Number of starts of `perf`.
    perf_starts: u8,
    exit: Option<Exit>,
    killed: bool,
    /// Number of starts of the target.
    starts: u64,
    /// Returns after ends by steps.
    restarts: Option<Arc<Restarts>>,
    /// Controls for steps.
    controls: Controls,
    /// The links between it and ours, if it has a network of its own.
    links: Option<Links>,
    /// Steps that change links, the first of which is under way.
    link_steps: VecDeque<StepAction>,
    generators: Vec<Prepared>,
    /// Mounts for the target.
    mounts: Mounts,
    /// Cancelled, all of them, once all that is to be sent is; empty where that has
    /// no end.
    load_ends: Vec<Token>,
    /// Cancelled, all of them, once generators that were stopped have ended.
    load_over: Vec<Token>,
    shards: Vec<Arc<dyn Shard>>,
    sinks: Vec<Arc<SinkShard>>,
    sampler: Option<SamplerHandle>,
    messages: Receiver<ShellMessage>,
    sender: SyncSender<ShellMessage>,
    beats: Receiver<SampleBatch>,
    deliver: SyncSender<SampleBatch>,
    progress: ProgressSender,
    /// The way to the run beside this one, if there is one.
    link: Option<Link>,
    foreign: Foreign,
    outcome: Option<RunOutcome>,
    /// The reason why the run is refused before it begins.
    refused: Option<String>,
    /// When sinks last received something, while that is watched.
    quiet_since: Option<(Moment, u64)>,
    /// True if they were quiet for long enough.
    was_quiet: bool,
    /// CPU times of all processes at the start of the measured phase, while that goes on.
    processes: Option<ProcessSnapshot>,
    /// The account of stamped events, if there are any.
    ledger: Option<RunLedger>,
    /// Missing events at the end of the drain.
    under_way: Option<u64>,
    /// Waits for other parts of a run on several machines.
    beyond: Beyond,
}

impl Shell {
    pub(crate) fn new(
        request: RunRequest,
        interrupt: Interrupt,
        progress: ProgressSender,
        link: Option<Link>,
    ) -> Result<Self, ConductError> {
        let record = Record::begin(&request).map_err(|source| ConductError::Capture { source })?;
        let plan = &request.plan;
        let restarts = Restarts::of(plan);
        let stop_deadline = stop_deadline(&request);
        let mut machine = Machine::new(plan.phases, &plan.timeline, stop_deadline);
        if link.is_some() || request.fleet.is_some() {
            machine = machine.together();
        }
        let (sender, messages) = sync_channel(EVENTS_WAITING_MAX);
        let (deliver, beats) = sync_channel(BEATS_WAITING_MAX);
        Ok(Self {
            request,
            interrupt,
            interrupted: false,
            machine,
            record,
            scope: Scope::new(&Token::new()),
            stop_load: Token::new(),
            stage: None,
            target: TargetProcess::none(),
            container: None,
            inspector: None,
            inspector_ended: None,
            perf_starts: 0,
            exit: None,
            killed: false,
            starts: 0,
            restarts,
            controls: Controls::default(),
            links: None,
            link_steps: VecDeque::new(),
            generators: Vec::new(),
            mounts: Mounts::default(),
            load_ends: Vec::new(),
            load_over: Vec::new(),
            shards: Vec::new(),
            sinks: Vec::new(),
            sampler: None,
            messages,
            sender,
            beats,
            deliver,
            progress,
            link,
            foreign: Foreign::default(),
            outcome: None,
            refused: None,
            quiet_since: None,
            was_quiet: false,
            processes: None,
            ledger: None,
            under_way: None,
            beyond: Beyond::default(),
        })
    }

    /// Gives the run links of its target's own.
    pub(crate) fn link(&mut self, links: Option<Links>) {
        self.links = links;
    }

    /// Adds notes to the manifest and reports them.
    pub(crate) fn note(&mut self, notes: Vec<Note>) {
        for note in notes {
            self.record.note(note.what, note.why);
        }
    }

    /// Makes the run end before it begins.
    pub(crate) fn refuse(&mut self, reason: String) {
        self.refused = Some(reason);
    }

    /// Goes through the run.
    pub(crate) fn run(mut self) -> Manifest {
        let actions = self.machine.begin(clock::now());
        self.perform_all(actions);
        if let Some(reason) = self.refused.take() {
            self.happen(Event::PrepareFailed(reason));
        }
        while !self.machine.is_finished() {
            self.look();
            let wait = self.machine.deadline().since(clock::now()).min(LOOK_EVERY);
            match self.messages.recv_timeout(wait.as_duration()) {
                Ok(messages) => self.receive(messages),
                Err(RecvTimeoutError::Timeout) => {}
                // Cannot be: we hold a sender ourselves.
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.happen(Event::Tick);
        }
        let outcome = self.outcome.take().unwrap_or(RunOutcome::Unfinished);
        self.record.close(outcome)
    }

    /// Looks at all that does not speak up by itself.
    fn look(&mut self) {
        self.take_beats();
        if let Some(reason) = self.record.failure() {
            self.happen(Event::StorageFailed(reason));
        }
        // Checked before the interrupt: if that ended the other run, it ends this one too.
        let failure = self.link.as_ref().and_then(Link::partner_failure);
        if !self.interrupted
            && let Some(signal) = self.interrupt.signal()
        {
            self.interrupted = true;
            let what = format!("interrupted by signal {signal}");
            self.record.event(self.machine.phase(), what);
            self.happen(Event::Interrupted(signal));
        }
        self.look_beside(failure);
        self.look_beyond();
        let ends = self.scope.ends();
        self.parts_ended(&ends);
        self.watch_load();
        self.watch_recovery();
        self.watch_quiet();
    }

    /// Sees when generators have nothing left to send.
    fn watch_load(&mut self) {
        let is_over = self.load_ends.iter().all(Token::is_cancelled);
        if !self.load_ends.is_empty() && is_over {
            self.load_ends.clear();
            let what = "the generators have sent everything".to_owned();
            self.record.event(self.machine.phase(), what);
            self.happen(Event::LoadEnded);
        }
    }

    /// Reads the state of the run beside this one.
    fn look_beside(&mut self, failure: Option<String>) {
        let Some(link) = &self.link else { return };
        if let Some(reason) = failure.filter(|_| self.machine.failure().is_none()) {
            return self.happen(Event::PartnerFailed(reason));
        }
        if self.machine.phase() == Phase::Ready
            && let Some(start) = link.start()
        {
            self.happen(Event::Agreed(start));
        }
    }

    fn parts_ended(&mut self, ends: &[PartEnd]) {
        self.record.parts(ends);
        for end in ends {
            if let Err(failure) = &end.result {
                let reason = explain(failure);
                let what = format!("{} failed: {reason}", end.name);
                self.record.event(self.machine.phase(), what);
                self.happen(Event::PartFailed {
                    part: end.name.clone(),
                    reason,
                });
            }
        }
    }

    fn receive(&mut self, messages: ShellMessage) {
        match messages {
            ShellMessage::Prepared(Ok(parts)) => self.prepared(parts),
            ShellMessage::Prepared(Err(reason)) => self.happen(Event::PrepareFailed(reason)),
            ShellMessage::Ready(Ok(after)) => {
                let what = format!("the target was ready after {after}");
                self.record.event(self.machine.phase(), what);
                self.target_ready();
            }
            ShellMessage::Ready(Err(reason)) => self.happen(Event::NotReady(reason)),
            ShellMessage::Described(described) => self.calls_described(described),
            // Of one that was ended on purpose, and is replaced by now.
            ShellMessage::Exited(start, _) if start != self.starts => {}
            ShellMessage::Ended(begun, stopped) => self.target_ended(begun, &stopped),
            ShellMessage::ReadyAgain(start, _) if start != self.starts => {}
            ShellMessage::ReadyAgain(_, ready) => self.ready_again(ready),
            ShellMessage::LinksChanged(done) => self.links_changed(done),
            ShellMessage::Exited(_, exit) => {
                self.exit = Some(exit);
                let what = format!("the target ended: {exit}");
                self.record.event(self.machine.phase(), what);
                self.happen(Event::TargetExited);
            }
            ShellMessage::Container(container) => self.container_found(container),
            ShellMessage::ContainerFailed(failures) => self.container_failed(&failures),
            ShellMessage::InspectorExited(exit) => self.inspector_exited(exit),
            ShellMessage::InspectorStopped(stopped) => self.inspector_stopped(&stopped),
            ShellMessage::Profiled(stored) => self.profiled(stored),
            ShellMessage::Stopped(stopped) => {
                self.killed = stopped.killed;
                // Of a container only its engine knows how it ended.
                let messages = stopped.exit.filter(|exit| exit.code.is_some());
                self.exit = messages.or(self.exit).or(stopped.exit);
                if let Some(what) = target::describe_stop(&stopped) {
                    self.record.manifest.warnings.push(what.clone());
                    self.record.event(self.machine.phase(), what);
                }
                self.target_stopped();
            }
        }
    }

    /// Sends the event to the machine, and performs its actions.
    fn happen(&mut self, event: Event) {
        let actions = self.machine.next(clock::now(), event);
        if let (Some(link), Some(failure)) = (&self.link, self.machine.failure()) {
            link.fail(failure);
        }
        if let (Some(fleet), Some(failure)) = (&self.request.fleet, self.machine.failure()) {
            fleet.fail(failure);
        }
        self.perform_all(actions);
    }

    fn perform_all(&mut self, actions: Vec<Action>) {
        for action in actions {
            self.perform(action);
        }
    }
}

/// Returns the longest time that stopping the target may take, and what is stopped with it.
fn stop_deadline(request: &RunRequest) -> Nanos {
    let plan = &request.plan;
    let mut stop_deadline = plan.target.stop.grace + STOP_MARGIN;
    // Sinks wait for the target, whose profile by `perf` is not in the plan of another part.
    let fleet = request.fleet.as_ref();
    let waits_for_target = fleet.is_some_and(|fleet| fleet.has_sinks() && !fleet.is_target());
    let may_have_perf = plan.observer.perf.is_some() || waits_for_target;
    if may_have_perf || plan.observer.inspector.is_some() {
        stop_deadline = stop_deadline + INSPECTOR_STOP.grace + STOP_MARGIN;
    }
    if may_have_perf {
        stop_deadline += PERF_SCRIPT_LIMIT;
    }
    if matches!(plan.target.kind, TargetKind::Container(_)) {
        // It waits, kills, and is called twice afterwards.
        stop_deadline = stop_deadline + STOP_MARGIN + STOP_MARGIN + STOP_MARGIN;
    }
    if let Some(fleet) = fleet {
        stop_deadline += FLEET_STOP_MAX;
        // Sinks that are quiet at once wait for those that are not.
        if fleet.has_some_sinks() {
            stop_deadline += plan.phases.drain;
        }
    }
    stop_deadline
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::path::Path;

    use stillwell_plan::RunRoles;
    use stillwell_plan::observer::{CallGraph, PerfPlan};

    use super::*;
    use crate::fleet::RunFleet;
    use crate::record::tests::request;

    /// Sinks gave up while `perf` wrote the profile of the target, and the run was lost.
    #[test]
    fn sinks_wait_for_the_target_as_long_as_it_may_take_to_stop() {
        let mut whole = request(Path::new(""));
        whole.plan.observer.perf = Some(PerfPlan {
            frequency: NonZeroU32::MIN,
            call_graph: CallGraph::FramePointers,
        });
        for sinks in 1..=2 {
            let roles = RunRoles {
                generators: 1,
                sinks,
            };
            let deadline = |task| {
                let role = roles.role(task).unwrap();
                let mut part = whole.clone();
                part.plan = part.plan.part_of(roles, role);
                part.fleet = Some(RunFleet::new(roles, role, Vec::new()));
                stop_deadline(&part)
            };
            for task in 1..=sinks {
                assert!(deadline(task) >= deadline(0), "task {task}");
            }
            assert!(deadline(sinks + 1) < deadline(0), "generators do not wait");
        }
    }
}
