//! Checks that steps are possible: their objects exist and have a fitting state.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use stillwell_plan::disk::DiskKind;
use stillwell_plan::generator::FileLayout;
use stillwell_plan::link::LinkChange;
use stillwell_plan::step::{DiskChange, DiskLimits, SinkChange, StepAction, TargetChange};
use stillwell_plan::{SinkProtocol, TransportPlan};
use stillwell_text::{Reader, Span, code};

use super::{Around, Step};

/// `steps` are in the order of time.
pub(super) fn check(reader: &Reader, steps: &[Step], around: &Around<'_>) {
    let mut sinks: BTreeMap<&str, SinkState> = BTreeMap::new();
    let mut target = TargetState::Runs;
    let mut ended = None;
    for step in steps {
        let refuse = |span: Span, message: String, label: &str| {
            let error = reader.error(code::TIMELINE, span, message);
            reader.report(error.label(label.to_owned()));
        };
        match &step.plan.action {
            StepAction::Note(_) => {}
            StepAction::Signal(_) => {
                if target == TargetState::Ended {
                    let message = "there is no target to signal at this time".to_owned();
                    refuse(step.span, message, "an earlier step ended it");
                }
            }
            StepAction::Sink { id, change } => {
                check_sink(reader, step, id, change, around);
                let state = sinks.entry(id).or_default();
                if let Some(problem) = state.take(change) {
                    refuse(step.span, format!("sink `{id}` {problem}"), "at this time");
                }
            }
            StepAction::Target(change) => {
                if let Some(problem) = target.take(*change) {
                    refuse(step.span, format!("the target {problem}"), "at this time");
                }
                ended = (target == TargetState::Ended).then_some(step.span);
            }
            StepAction::File { id, .. } => check_file(reader, step, id, around),
            StepAction::Disk { path, change } => check_disk(reader, step, (path, change), around),
            StepAction::Network { input, output } => {
                check_network(reader, step, around, [input, output]);
            }
        }
    }
    if let Some(span) = ended {
        let message = "this step ends the target, and no step starts it again";
        let error = reader.error(code::TIMELINE, span, message);
        reader.report(error.label("add a later step `target: start`, or write `restart`"));
    }
}

/// Reports steps on a target that is a URL, which Stillwell does not start, and takes them out.
pub(super) fn refuse_on_url(reader: &Reader, steps: &mut Vec<Step>) {
    // A restart is two steps of one place.
    let mut spans: BTreeSet<Span> = BTreeSet::new();
    steps.retain(|step| {
        let is_on_target = matches!(
            step.plan.action,
            StepAction::Signal(_) | StepAction::Target(_)
        );
        if is_on_target {
            spans.insert(step.span);
        }
        !is_on_target
    });
    for span in spans {
        let message = "a target that is a URL cannot be paused, ended, started or signalled";
        let error = reader.error(code::TIMELINE, span, message);
        reader.report(error.label("leave the step out, or write `command` in place of `url`"));
    }
}

/// State of a sink after steps.
#[derive(Default)]
struct SinkState {
    is_down: bool,
    is_paused: bool,
}

impl SinkState {
    fn take(&mut self, change: &SinkChange) -> Option<&'static str> {
        match change {
            SinkChange::Down if self.is_down => Some("is down already"),
            SinkChange::Down => {
                self.is_down = true;
                None
            }
            SinkChange::Up if !self.is_down => Some("is not down"),
            SinkChange::Up => {
                self.is_down = false;
                None
            }
            SinkChange::Pause if self.is_paused => Some("is paused already"),
            SinkChange::Pause => {
                self.is_paused = true;
                None
            }
            SinkChange::Resume if !self.is_paused => Some("is not paused"),
            SinkChange::Resume | SinkChange::Restore => {
                self.is_paused = false;
                None
            }
            SinkChange::Slow(_)
            | SinkChange::Refuse(_)
            | SinkChange::Queue
            | SinkChange::Delay(_) => None,
        }
    }
}

/// State of the target after steps.
#[derive(Clone, Copy, Eq, PartialEq)]
enum TargetState {
    Runs,
    Paused,
    Ended,
}

impl TargetState {
    fn take(&mut self, change: TargetChange) -> Option<&'static str> {
        let (next, problem) = match (*self, change) {
            (Self::Runs, TargetChange::Pause) => (Self::Paused, None),
            (Self::Paused, TargetChange::Resume) | (Self::Ended, TargetChange::Start) => {
                (Self::Runs, None)
            }
            (Self::Runs | Self::Paused, TargetChange::End(_)) => (Self::Ended, None),
            (Self::Paused, TargetChange::Pause) => (*self, Some("is paused already")),
            (Self::Runs, TargetChange::Resume) => (*self, Some("is not paused")),
            (_, TargetChange::Start) => (*self, Some("has not been ended")),
            (Self::Ended, _) => (*self, Some("has been ended by an earlier step")),
        };
        *self = next;
        problem
    }
}

fn check_sink(reader: &Reader, step: &Step, id: &str, change: &SinkChange, around: &Around<'_>) {
    let mut sinks = around.sinks.iter();
    let Some(sink) = sinks.find(|sink| sink.value.id == id) else {
        let known = around.sinks.iter().map(|sink| sink.value.id.as_str());
        return unknown(reader, step, "sink", id, known.collect());
    };
    let kind = sink.value.protocol.name();
    let problem = match (&sink.value.protocol, change) {
        (SinkProtocol::File { .. }, _) => {
            "follows a file: it does not slow the sender and cannot change"
        }
        (SinkProtocol::Udp { .. } | SinkProtocol::UnixDatagram { .. }, SinkChange::Slow(_)) => {
            "takes datagrams: a slow reader does not slow the sender"
        }
        (
            SinkProtocol::Tcp { .. }
            | SinkProtocol::Udp { .. }
            | SinkProtocol::UnixStream { .. }
            | SinkProtocol::UnixDatagram { .. }
            | SinkProtocol::TcpRr { .. },
            SinkChange::Refuse(_) | SinkChange::Queue | SinkChange::Delay(_),
        ) => "does not answer requests: only HTTP and protocols over HTTP do",
        _ => return,
    };
    let message = format!("a `{kind}` sink {problem}");
    let error = reader.error(code::TIMELINE, step.span, message);
    reader.report(error.context(reader.place(sink.span), "the sink"));
}

fn check_file(reader: &Reader, step: &Step, id: &str, around: &Around<'_>) {
    let mut generators = around.generators.iter();
    let Some(generator) = generators.find(|generator| generator.id == id) else {
        let known = around.generators.iter().map(|plan| plan.id.as_str());
        return unknown(reader, step, "generator", id, known.collect());
    };
    let label = match &generator.transport {
        TransportPlan::Files {
            layout: FileLayout::Log { .. },
            ..
        } => return,
        TransportPlan::Files { .. } => "write `file_gen: {log: PATH, …}`, which keeps one name",
        _ => "only a `file_gen` with a `log` does",
    };
    let message = format!("generator `{id}` writes no log that could be moved or emptied");
    let error = reader.error(code::TIMELINE, step.span, message);
    reader.report(error.label(label));
}

fn check_disk(
    reader: &Reader,
    step: &Step,
    (path, change): (&Path, &DiskChange),
    around: &Around<'_>,
) {
    let mut disks = around.disks.iter();
    let Some(disk) = disks.find(|disk| disk.path == path) else {
        let known = around.disks.iter().filter_map(|disk| disk.path.to_str());
        let path = path.to_string_lossy();
        return unknown(reader, step, "disk", &path, known.collect());
    };
    if matches!(disk.kind, DiskKind::Memory(_)) {
        let message = "a disk in memory (`tmpfs`) cannot be changed";
        let error = reader.error(code::TIMELINE, step.span, message);
        reader.report(error.label("leave out `tmpfs`: the disk then shows a folder"));
    }
    if *change == DiskChange::Limits(DiskLimits::default()) {
        let message = "this step changes nothing";
        let error = reader.error(code::TIMELINE, step.span, message);
        reader.report(error.label("write for example `do: full`, or `do: {fsync_delay: 50ms}`"));
    }
}

fn check_network(reader: &Reader, step: &Step, around: &Around<'_>, changes: [&LinkChange; 2]) {
    if !around.has_network {
        let message = "this run has no links that could change";
        let error = reader.error(code::TIMELINE, step.span, message);
        reader.report(
            error
                .label("this step changes links")
                .help("write `network: {}` beside `timeline`: see docs/faults.md"),
        );
    }
    if changes
        .iter()
        .all(|change| **change == LinkChange::default())
    {
        let message = "this step changes nothing";
        let error = reader.error(code::TIMELINE, step.span, message);
        reader.report(error.label("write for example `output: {loss: 1%}`"));
    }
}

fn unknown(reader: &Reader, step: &Step, what: &str, id: &str, known: Vec<&str>) {
    let message = format!("there is no {what} `{id}`");
    let span = step.name.unwrap_or(step.span);
    let error = reader.error(code::TIMELINE, span, message);
    reader.report(if known.is_empty() {
        error.label(format!("this run has no {what}"))
    } else {
        error.label(format!("one of: {}", known.join(", ")))
    });
}
