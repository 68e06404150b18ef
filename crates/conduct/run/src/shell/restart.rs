//! The target, ended by a step of the timeline and started again.

use std::sync::Arc;

use stillwell_plan::TargetPlan;
use stillwell_plan::step::{StepAction, TargetChange, TargetSignal};
use stillwell_plan::target::StopPlan;
use stillwell_scope::{clock, explain};
use stillwell_target::{Exit, Stopped, TargetProcess, wait_ready};
use stillwell_units::{Moment, Nanos};

use crate::machine::Event;
use crate::shell::{Shell, ShellMessage};
use crate::steps;
use crate::target;

impl Shell {
    /// Requests its end, and kills it at the end of its grace.
    pub(super) fn end_target(&mut self, signal: TargetSignal) {
        let what = steps::describe(&StepAction::Target(TargetChange::End(signal)));
        self.record.step(self.machine.phase(), what);
        let (target, sender) = (self.target.clone(), self.sender.clone());
        let grace = self.request.plan.target.stop.grace;
        let begun = clock::now();
        self.spawn("restart", move |_| {
            let stopped = target.retire(StopPlan { signal, grace });
            drop(target);
            sender.send(ShellMessage::Ended(begun, stopped))?;
            Ok(())
        });
    }

    /// It has ended as planned.
    pub(super) fn target_ended(&mut self, begun: Moment, stopped: &Stopped) {
        let now = clock::now();
        if let Some(restarts) = &self.restarts {
            restarts.ended(begun, now, stopped);
        }
        let mut what = format!("the target has ended after {}", now.since(begun));
        if let Some(message) = target::describe_stop(stopped) {
            what = format!("{what}: {message}");
        }
        self.record.event(self.machine.phase(), what);
        self.happen(Event::TargetEnded);
    }

    pub(super) fn start_again(&mut self) {
        let what = steps::describe(&StepAction::Target(TargetChange::Start));
        self.record.step(self.machine.phase(), what);
        let plan = self.request.plan.target.filled(&self.request.places);
        match self.launch(&plan, true) {
            Ok(()) => {
                if let Some(restarts) = &self.restarts {
                    restarts.started(clock::now());
                }
                self.happen(Event::StartedAgain);
            }
            Err(reason) => self.happen(Event::NotAgain(reason)),
        }
    }

    /// Starts the target, has its end watched and its figures read.
    pub(super) fn launch(&mut self, plan: &TargetPlan, is_again: bool) -> Result<(), String> {
        let Some(stage) = &self.stage else {
            return Ok(());
        };
        let network = self.links.as_ref().map(|links| links.target().clone());
        let started = stage.start(plan, &self.request, network);
        self.target = started.map_err(|error| target::describe_start(&error))?;
        self.exit = None;
        self.starts += 1;
        let (sender, number) = (self.sender.clone(), self.starts);
        let on_exit = move |exit: Exit| {
            // The conductor is gone only where the run is over.
            drop(sender.send(ShellMessage::Exited(number, exit)));
        };
        let watched = self.target.watch(&mut self.scope, on_exit);
        watched.map_err(|error| explain(&error))?;
        if !is_again {
            self.watch_logs().map_err(|error| explain(&error))?;
            return self.start_sampler().map_err(|error| explain(&error));
        }
        if let (Some(sampler), Some(probe)) = (&self.sampler, self.target_probe(true)) {
            if let Some(link) = &self.link {
                link.watch(probe.clone());
            }
            sampler.watch_target(probe);
        }
        Ok(())
    }

    pub(super) fn await_ready_again(&mut self) {
        let start = self.starts;
        self.probe(move |ready| ShellMessage::ReadyAgain(start, ready));
    }

    /// Waits until the target is ready, and sends the result as `message` says.
    pub(super) fn probe(
        &mut self,
        message: impl FnOnce(Result<Nanos, String>) -> ShellMessage + Send + 'static,
    ) {
        let plan = self.request.plan.target.filled(&self.request.places);
        let (target, sender): (TargetProcess, _) = (self.target.clone(), self.sender.clone());
        // The probe knows best what did not come; the machine waits for its answer.
        let deadline = clock::now() + self.request.plan.phases.ready;
        let place = self.place();
        let started = self.scope.worker(place, "ready", move |token| async move {
            let ready = wait_ready(&plan.ready, &target, deadline, &token).await;
            // Without the target's handle: the last one ends it.
            drop(target);
            sender.send(message(ready.map_err(|error| explain(&error))))?;
            Ok(())
        });
        if let Err(error) = started {
            self.happen(Event::NotReady(explain(&error)));
        }
    }

    pub(super) fn ready_again(&mut self, ready: Result<Nanos, String>) {
        match ready {
            Ok(after) => {
                let restarts = self.restarts.as_ref().map(Arc::clone);
                let in_all = restarts.map(|restarts| restarts.ready(clock::now()));
                let mut what = format!("the target was ready again after {after}");
                if let Some(in_all) = in_all {
                    what = format!("{what}, {in_all} after the step that ended it");
                }
                self.record.event(self.machine.phase(), what);
                // While it was not there nothing could come.
                if let Some((since, _)) = &mut self.quiet_since {
                    *since = clock::now();
                }
                self.happen(Event::ReadyAgain);
            }
            Err(reason) => self.happen(Event::NotAgain(reason)),
        }
    }

    /// Sees when something arrives at sinks again.
    pub(super) fn watch_recovery(&mut self) {
        let Some(restarts) = &self.restarts else {
            return;
        };
        let last = self.received_at();
        if let Some(after) = last.and_then(|last| restarts.received(last)) {
            let what = format!("the target delivered again {after} after the step that ended it");
            self.record.event(self.machine.phase(), what);
        }
    }
}
