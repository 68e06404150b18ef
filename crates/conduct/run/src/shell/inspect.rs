//! The program that looks at the target from outside.

use stillwell_scope::{clock, explain};
use stillwell_target::{Exit, INSPECTOR_STOP, Stopped, start_inspector};

use crate::machine::Event;
use crate::request::Progress;
use crate::shell::{Shell, ShellMessage};
use crate::target::open_log;

/// Number of lines of a failed inspector's output in the report.
const LAST_LINES: usize = 3;

impl Shell {
    /// Starts the inspector, if there is to be one; whether the run may go on.
    pub(super) fn start_inspector(&mut self) -> bool {
        let perf = self.perf_inspector();
        let is_perf = perf.is_some();
        let planned = self.request.plan.observer.inspector.clone();
        let Some(plan) = perf.or(planned) else {
            return true;
        };
        let plan = plan.filled(&self.request.places);
        let cpus = self.place().cpus;
        let folder = &self.request.folder;
        let log = |named, name| open_log(named, folder, name, None);
        let logs = log(&plan.stdout, "inspector.stdout.log")
            .and_then(|stdout| Ok([stdout, log(&plan.stderr, "inspector.stderr.log")?]));
        let logs = match logs {
            Ok(logs) => logs,
            Err(reason) => {
                self.happen(Event::StartFailed(reason));
                return false;
            }
        };
        let started = start_inspector(&plan, self.target.pid(), folder, logs, cpus);
        let inspector = match started {
            Ok(inspector) => inspector,
            // A run without its profile still answers the question.
            Err(error) if is_perf => {
                self.warn(format!("no CPU profile by `perf`: {}", explain(&error)));
                return true;
            }
            Err(error) => {
                let reason = format!("start the inspector: {}", explain(&error));
                self.happen(Event::StartFailed(reason));
                return false;
            }
        };
        let number = inspector.pid().unwrap_or_default();
        let what = format!("the inspector runs as process {number}");
        self.record.event(self.machine.phase(), what);
        let sender = self.sender.clone();
        let watched = inspector.watch(&mut self.scope, move |exit| {
            // The conductor is gone only where the run is over.
            drop(sender.send(ShellMessage::InspectorExited(exit)));
        });
        self.inspector = Some(inspector);
        if let Err(error) = watched {
            let reason = format!("watch the inspector: {}", explain(&error));
            self.happen(Event::StartFailed(reason));
            return false;
        }
        true
    }

    /// The inspector has ended too early. Its results are lost; the run is not.
    pub(super) fn inspector_exited(&mut self, exit: Exit) {
        let Some(inspector) = &self.inspector else {
            return;
        };
        let what = format!("the inspector ended: {exit}");
        self.record.event(self.machine.phase(), what.clone());
        if exit.is_success() {
            // `perf` ends with the target, which a step may start again.
            self.inspector_ended = Some(clock::now());
            return;
        }
        if self.is_perf_repeated() {
            self.start_inspector();
            return;
        }
        let output = inspector.last_lines(LAST_LINES).join("; ");
        let warning = if output.is_empty() {
            what
        } else {
            format!("{what}: {output}")
        };
        self.warn(warning);
    }

    /// Reports the end of the inspector.
    pub(super) fn inspector_stopped(&mut self, stopped: &Stopped) {
        if stopped.killed {
            let grace = INSPECTOR_STOP.grace;
            self.warn(format!(
                "the inspector did not end within {grace} and was killed: its output may be incomplete"
            ));
        }
    }

    /// Reports samples that could not be converted to a profile, or an incomplete profile.
    pub(super) fn profiled(&mut self, stored: Result<Option<String>, String>) {
        match stored {
            Ok(warning) => warning.into_iter().for_each(|warning| self.warn(warning)),
            Err(reason) => self.warn(format!("no CPU profile by `perf`: {reason}")),
        }
    }

    pub(super) fn warn(&mut self, warning: String) {
        self.record.manifest.warnings.push(warning.clone());
        self.report(Progress::Note(warning));
    }
}
