//! Steps of the timeline, done.

use std::path::Path;

use stillwell_plan::step::{StepAction, TargetChange, TargetSignal};
use stillwell_scope::{clock, explain};

use crate::machine::Event;
use crate::shell::{Shell, ShellMessage};
use crate::steps;

impl Shell {
    pub(super) fn step(&mut self, step: &StepAction) {
        let done = match step {
            StepAction::Note(_) => Ok(()),
            StepAction::Signal(signal) => {
                let sent = self.target.signal(*signal);
                sent.map_err(|error| explain(&error))
            }
            StepAction::Sink { id, change } => self.controls.sink(id, change),
            StepAction::File { id, rotate } => self.controls.rotate(id, *rotate),
            StepAction::Disk { path, change } => {
                let at = self.request.places.fill(&path.to_string_lossy());
                self.mounts.change(Path::new(&at), change)
            }
            StepAction::Target(TargetChange::Pause) => self.signal_all(TargetSignal::Stop),
            StepAction::Target(TargetChange::Resume) => self.signal_all(TargetSignal::Cont),
            // The machine's own.
            StepAction::Target(TargetChange::End(_) | TargetChange::Start) => return,
            StepAction::Network { .. } => return self.queue_links(step.clone()),
        };
        self.stepped(step, done);
    }

    /// Records a step. A failed one ends the run, since it is not the requested run any more.
    pub(super) fn stepped(&mut self, step: &StepAction, done: Result<(), String>) {
        let what = steps::describe(step);
        match done {
            Ok(()) => {
                self.record.step(self.machine.phase(), what);
                // Events that were held back until now have still to come.
                if let Some((since, _)) = &mut self.quiet_since {
                    *since = clock::now();
                }
            }
            Err(reason) => {
                let text = format!("could not do a step ({what}): {reason}");
                self.record.event(self.machine.phase(), text);
                if !matches!(step, StepAction::Signal(_)) {
                    let part = format!("a step of the timeline ({what})");
                    self.happen(Event::PartFailed { part, reason });
                }
            }
        }
    }

    fn signal_all(&self, signal: TargetSignal) -> Result<(), String> {
        let sent = self.target.signal_all(signal);
        sent.map_err(|error| explain(&error))
    }

    /// Has what passes over delayed links carried.
    pub(super) fn start_links(&mut self) -> Result<(), String> {
        let place = self.place();
        let Some(links) = &self.links else {
            return Ok(());
        };
        let started = links.start(&mut self.scope, &place);
        started.map_err(|error| explain(&error))
    }

    /// Has links changed, one step after the other.
    fn queue_links(&mut self, step: StepAction) {
        self.link_steps.push_back(step);
        if self.link_steps.len() == 1 {
            self.change_links();
        }
    }

    /// Links were changed, or could not be.
    pub(super) fn links_changed(&mut self, done: Result<(), String>) {
        if let Some(step) = self.link_steps.pop_front() {
            self.stepped(&step, done);
        }
        if !self.link_steps.is_empty() {
            self.change_links();
        }
    }

    /// Does the first of these steps on a thread of its own, because that takes programs
    /// and time.
    fn change_links(&mut self) {
        let step = self.link_steps.front();
        let (Some(links), Some(StepAction::Network { input, output })) = (&self.links, step) else {
            return self.links_changed(Err("this run has no links".to_owned()));
        };
        let (links, sender) = (links.clone(), self.sender.clone());
        let (input, output) = (*input, *output);
        self.spawn("links", move |_| {
            let changed = links.change(&input, &output);
            let changed = changed.map_err(|error| explain(&error));
            sender.send(ShellMessage::LinksChanged(changed))?;
            Ok(())
        });
    }

    /// Records losses on links; they disappear with their owner.
    pub(super) fn links_end(&mut self) {
        let Some(links) = self.links.take() else {
            return;
        };
        for text in links.losses() {
            self.record.event(self.machine.phase(), text);
        }
    }
}
