//! A target that an engine of containers runs.

use std::fs;

use stillwell_plan::placement::CpuChoice;
use stillwell_plan::target::ContainerTarget;
use stillwell_plan::{Phase, TargetKind};
use stillwell_scope::{clock, explain};
use stillwell_target::{Container, ContainerError, Limits};

use crate::machine::Event;
use crate::shell::{Shell, ShellMessage};

impl Shell {
    /// Looks for the engine's container, or makes it; the result is a message.
    pub(super) fn find_container(&mut self, plan: ContainerTarget) {
        let target = &self.request.plan.target;
        // A container of others only gets requested changes.
        let is_requested =
            !target.is_others() || matches!(target.cpus, CpuChoice::Count(_) | CpuChoice::List(_));
        let division = self.stage.as_ref().map(|stage| &stage.division);
        let cpus = division.and_then(|division| division.target.clone());
        let limits = Limits {
            memory: target.memory,
            cpus: cpus.filter(|_| is_requested),
        };
        for mount in target.filled(&self.request.places).mounts() {
            if mount.writable
                && let Err(error) = fs::create_dir_all(&mount.source)
            {
                let path = mount.source.display();
                return self.happen(Event::StartFailed(format!("make {path}: {error}")));
            }
        }
        let run = self.request.run;
        let deadline = clock::now() + self.request.plan.phases.ready;
        let sender = self.sender.clone();
        self.spawn("container", move |token| {
            let result = Container::find(&plan, &limits, run, deadline, token);
            sender.send(ShellMessage::Container(result))?;
            Ok(())
        });
    }

    /// The container runs, or why it does not: from here on it is a process to be watched.
    pub(super) fn container_found(&mut self, result: Result<Container, ContainerError>) {
        let container = match result {
            Ok(container) => container,
            Err(error) => {
                let has_ended = self.machine.phase() != Phase::Start;
                if has_ended && matches!(error, ContainerError::NotStarted { .. }) {
                    // The run has failed before, for another reason.
                    self.container_failed(std::slice::from_ref(&error));
                }
                return self.happen(Event::StartFailed(explain(&error)));
            }
        };
        if self.machine.phase() != Phase::Start {
            // The run ended meanwhile. To have one removed takes time.
            return self.spawn("container", move |_| Ok(container.remove()?));
        }
        let (id, pid) = (container.id().to_owned(), container.pid());
        let what = format!("the container {id} runs as process {pid}");
        self.record.event(self.machine.phase(), what);
        self.container = Some(container);
        let mut plan = self.request.plan.target.filled(&self.request.places);
        plan.kind = TargetKind::Pid(pid);
        self.start_planned(&plan);
    }

    /// Reports that a container was not stopped or removed as planned.
    pub(super) fn container_failed(&mut self, failures: &[ContainerError]) {
        for failure in failures {
            let what = explain(failure);
            self.record.event(self.machine.phase(), what.clone());
            self.warn(what);
        }
    }

    /// Removes a container whose message comes after the end of all parts.
    pub(super) fn remove_late_container(&mut self) {
        while let Ok(message) = self.messages.try_recv() {
            let failures = match message {
                ShellMessage::Container(Ok(container)) => Vec::from_iter(container.remove().err()),
                ShellMessage::Container(Err(error @ ContainerError::NotStarted { .. })) => {
                    vec![error]
                }
                ShellMessage::ContainerFailed(failures) => failures,
                _ => Vec::new(),
            };
            self.container_failed(&failures);
        }
    }
}
