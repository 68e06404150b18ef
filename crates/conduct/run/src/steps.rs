//! The objects of the timeline's steps, and their names.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stillwell_capture::Restart;
use stillwell_metric::{Labels, Sample, Shard, catalogue};
use stillwell_plan::disk::DiskKind;
use stillwell_plan::link::LinkChange;
use stillwell_plan::step::{DiskChange, DiskLimits, Refusal, SinkChange, StepAction, TargetChange};
use stillwell_plan::{RunPlan, TargetKind};
use stillwell_sink::{BoundSink, SinkControl};
use stillwell_target::Stopped;
use stillwell_units::{Moment, Nanos, float_from_u64};
use stillwell_worker::{FileControl, Prepared};

/// Sinks and generators that steps act on, by their names.
#[derive(Debug, Default)]
pub(crate) struct Controls {
    sinks: Vec<(String, SinkControl)>,
    files: Vec<(String, FileControl)>,
}

impl Controls {
    /// `sink`, which can be changed if a step of `plan` wants that.
    pub(crate) fn steer(&mut self, plan: &RunPlan, id: &str, sink: BoundSink) -> BoundSink {
        let is_named = |action: &StepAction| match action {
            StepAction::Sink { id: named, .. } => named == id,
            _ => false,
        };
        if !plan.timeline.iter().any(|step| is_named(&step.action)) {
            return sink;
        }
        let number = self.sinks.len() as u64;
        let (sink, control) = sink.steered(&plan.seed.derive("steering", number));
        self.sinks.push((id.to_owned(), control));
        sink
    }

    /// The logs that `generators` write.
    pub(crate) fn write(&mut self, generators: &[Prepared]) {
        let logs = generators
            .iter()
            .filter_map(|entry| Some((entry.id().to_owned(), entry.files()?)));
        self.files = logs.collect();
    }

    /// Changes a sink.
    pub(crate) fn sink(&self, id: &str, change: &SinkChange) -> Result<(), String> {
        let entry = self.sinks.iter().find(|(name, _)| name == id);
        let (_, control) = entry.ok_or_else(|| format!("there is no sink `{id}`"))?;
        control.change(change);
        Ok(())
    }

    /// Moves or empties the log of a generator.
    pub(crate) fn rotate(
        &self,
        id: &str,
        how: stillwell_plan::generator::WhenFull,
    ) -> Result<(), String> {
        let entry = self.files.iter().find(|(name, _)| name == id);
        let (_, control) = entry.ok_or_else(|| format!("generator `{id}` writes no log"))?;
        control.rotate(how);
        Ok(())
    }
}

/// Returns of the target after each planned end, as series.
#[derive(Debug, Default)]
pub(crate) struct Restarts {
    all: Mutex<Vec<Restart>>,
}

impl Restarts {
    /// Of a run of `plan`, if a step of it ends the target.
    pub(crate) fn of(plan: &RunPlan) -> Option<Arc<Self>> {
        let ends = |action: &StepAction| matches!(action, StepAction::Target(TargetChange::End(_)));
        let any = plan.timeline.iter().any(|step| ends(&step.action));
        any.then(Arc::default)
    }

    /// Records an end of the target that was requested at `moment` and happened `now`.
    pub(crate) fn ended(&self, moment: Moment, now: Moment, stopped: &Stopped) {
        self.lock().push(Restart {
            moment,
            ended_after: now.since(moment),
            killed: stopped.killed,
            started_after: None,
            ready_after: None,
            delivered_after: None,
        });
    }

    /// It was started again.
    pub(crate) fn started(&self, now: Moment) {
        if let Some(last) = self.lock().last_mut() {
            last.started_after = Some(now.since(last.moment));
        }
    }

    /// It is ready again; gives how long that took from the step on.
    pub(crate) fn ready(&self, now: Moment) -> Nanos {
        let mut all = self.lock();
        let Some(last) = all.last_mut() else {
            return Nanos::ZERO;
        };
        let after = now.since(last.moment);
        last.ready_after = Some(after);
        after
    }

    /// Sinks have received something at `last`, and nothing later: where that is the first since
    /// the target was ready again, gives how long it took from the step on.
    pub(crate) fn received(&self, last: Moment) -> Option<Nanos> {
        let mut all = self.lock();
        let restart = all.last_mut()?;
        let ready = restart.moment + restart.ready_after?;
        if restart.delivered_after.is_some() || last < ready {
            return None;
        }
        let after = last.since(restart.moment);
        restart.delivered_after = Some(after);
        Some(after)
    }

    /// All of them so far.
    pub(crate) fn all(&self) -> Vec<Restart> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Restart>> {
        // A panic while it was locked left it whole.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shard for Restarts {
    fn sample(&self, samples: &mut Vec<Sample>) {
        let all = self.lock();
        let none = Labels::none();
        let ready = all
            .iter()
            .filter(|entry| entry.ready_after.is_some())
            .count();
        let count = ready as u64;
        samples.push(Sample::int(catalogue::TARGET_RESTARTS, &none, count));
        let longest = |of: fn(&Restart) -> Option<Nanos>| all.iter().filter_map(of).max();
        for (metric, longest) in [
            (
                catalogue::TARGET_RECOVERY,
                longest(|entry| entry.ready_after),
            ),
            (
                catalogue::TARGET_REDELIVERY,
                longest(|entry| entry.delivered_after),
            ),
        ] {
            if let Some(longest) = longest {
                samples.push(Sample::int(metric, &none, longest.as_u64()));
            }
        }
    }
}

/// Returns the reason why the steps of `plan` cannot be done, if they cannot.
pub(crate) fn refusal(plan: &RunPlan) -> Option<String> {
    let is_ours = matches!(plan.target.kind, TargetKind::Child(_));
    let needs_target =
        |action: &StepAction| matches!(action, StepAction::Target(_) | StepAction::Signal(_));
    let any = plan.timeline.iter().any(|step| needs_target(&step.action));
    if any && !is_ours {
        let reason = "a step pauses, ends, starts or signals the target, but Stillwell did not start it: \
                      name a command, or remove the step from `timeline`";
        return Some(reason.to_owned());
    }
    let changes_links = |action: &StepAction| matches!(action, StepAction::Network { .. });
    let mut steps = plan.timeline.iter();
    if plan.isolation.links.is_none() && steps.any(|step| changes_links(&step.action)) {
        return Some("a step changes links that this run does not have".to_owned());
    }
    missing_disk(plan)
}

fn missing_disk(plan: &RunPlan) -> Option<String> {
    let is_there = |wanted: &Path| {
        plan.disks
            .iter()
            .any(|disk| disk.path == wanted && matches!(disk.kind, DiskKind::Folder(_)))
    };
    plan.timeline.iter().find_map(|step| match &step.action {
        StepAction::Disk { path, .. } if !is_there(path) => {
            let path = path.display();
            Some(format!(
                "a step changes the disk at {path}, but `disks` has none there, or one with `tmpfs`"
            ))
        }
        _ => None,
    })
}

/// Returns a description of a step.
pub(crate) fn describe(action: &StepAction) -> String {
    match action {
        StepAction::Note(text) => text.clone(),
        StepAction::Signal(signal) => format!("sent {signal:?} to the target"),
        StepAction::Sink { id, change } => format!("sink {id}: {}", describe_sink(change)),
        StepAction::Target(TargetChange::Pause) => "the target is paused".to_owned(),
        StepAction::Target(TargetChange::Resume) => "the target is resumed".to_owned(),
        StepAction::Target(TargetChange::End(signal)) => {
            format!("the target is ended by {signal:?}")
        }
        StepAction::Target(TargetChange::Start) => "the target is started again".to_owned(),
        StepAction::File { id, rotate } => {
            format!("the log of generator {id}: {}", rotate.name())
        }
        StepAction::Disk { path, change } => {
            format!("disk {}: {}", path.display(), describe_disk(change))
        }
        StepAction::Network { input, output } => {
            let links = [("input", input), ("output", output)];
            let parts = links.map(|(name, change)| describe_link(name, change));
            parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
        }
    }
}

fn describe_sink(change: &SinkChange) -> String {
    match change {
        SinkChange::Down => "down".to_owned(),
        SinkChange::Up => "up".to_owned(),
        SinkChange::Slow(rate) => format!("reads {rate} at most"),
        SinkChange::Pause => "reads nothing".to_owned(),
        SinkChange::Resume => "reads again".to_owned(),
        SinkChange::Refuse(plan) => {
            let share = percent(plan.per_million);
            match plan.with {
                Refusal::Status { status, .. } => {
                    format!("{share} of requests get status {status}")
                }
                Refusal::Close => format!("{share} of requests get their connection closed"),
            }
        }
        SinkChange::Queue => "responses are queued".to_owned(),
        SinkChange::Delay(formula) => format!("responses are delayed by {formula} ms"),
        SinkChange::Restore => "as in its plan".to_owned(),
    }
}

fn describe_disk(change: &DiskChange) -> String {
    let limits = match change {
        DiskChange::Full => return "full".to_owned(),
        DiskChange::Restore => return "as in its plan".to_owned(),
        DiskChange::Limits(limits) => limits,
    };
    let DiskLimits {
        fsync_delay,
        fsync_delay_per_mib,
        write_rate,
        limit,
    } = limits;
    let parts = [
        fsync_delay.map(|delay| format!("fsync takes {delay} longer")),
        fsync_delay_per_mib.map(|delay| format!("{delay} longer for each MiB")),
        write_rate.map(|rate| format!("takes {rate} at most")),
        limit.map(|size| format!("holds {size} at most")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(", ")
}

fn describe_link(name: &str, change: &LinkChange) -> Option<String> {
    let loss = change.loss_per_million.map(|loss| match loss {
        0 => "no loss".to_owned(),
        loss => format!("{} of packets lost", percent(loss)),
    });
    let rate = change.bits_per_second.map(|bits| match bits {
        0 => "no limit".to_owned(),
        bits => format!("{} Mbit/s at most", float_from_u64(bits) / 1e6),
    });
    let cut = change.is_cut.map(|is_cut| match is_cut {
        true => "cut".to_owned(),
        false => "whole".to_owned(),
    });
    let delay = change.delay.map(|delay| match delay {
        Nanos::ZERO => "no delay".to_owned(),
        delay => format!("{delay} of delay"),
    });
    let parts: Vec<String> = [loss, rate, cut, delay].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("link {name}: {}", parts.join(", ")))
}

fn percent(per_million: u32) -> String {
    format!("{}%", f64::from(per_million) / 1e4)
}

#[cfg(test)]
mod tests;
