//! Keeps the run's record: capture, manifest, phase marks, events.

use stillwell_capture::{
    BusyProgram, CaptureError, CaptureWriter, EventRecord, MANIFEST_SCHEMA, Manifest, Note,
    PartNote, PhaseMark, RunOutcome,
};
use stillwell_metric::{Beat, Sample, Value, catalogue};
use stillwell_observer::{BusyProcess, HostFacts};
use stillwell_plan::Phase;
use stillwell_scope::{PartEnd, clock, explain};
use stillwell_telemetry::SamplePage;
use stillwell_units::Moment;

use crate::export::Exporter;
use crate::request::RunRequest;

/// The record of a run while it goes on.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) manifest: Manifest,
    facts: HostFacts,
    writer: CaptureWriter,
    exporter: Exporter,
    /// The first thing that could not be written.
    failure: Option<CaptureError>,
    /// The largest sample of the target's resident memory, in bytes; zero without one.
    pub(crate) rss_max_bytes: u64,
}

impl Record {
    /// Begins the capture of `request`.
    pub(crate) fn begin(request: &RunRequest) -> Result<Self, CaptureError> {
        let facts = stillwell_observer::describe_host();
        let manifest = Manifest {
            schema: MANIFEST_SCHEMA.to_owned(),
            run: request.run,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: request.command.clone(),
            identity: request.identity.clone(),
            plan: request.plan.clone(),
            host: serde_json::to_value(&facts).unwrap_or_default(),
            host_after: serde_json::Value::Null,
            target_cpus: None,
            load_cpus: None,
            notes: Vec::new(),
            warnings: Vec::new(),
            started_wall_millis: wall_millis(),
            phases: Vec::new(),
            target: None,
            restarts: Vec::new(),
            parts: Vec::new(),
            ledger: None,
            busiest: Vec::new(),
            last_received: None,
            machines: None,
            outcome: RunOutcome::Unfinished,
        };
        let writer = CaptureWriter::create(&request.folder, &manifest, request.secrets)?;
        let identity = request.identity.as_ref();
        let observer = &request.plan.observer;
        let exporter = Exporter::begin(&request.exports, identity, request.run, observer)?;
        Ok(Self {
            manifest,
            facts,
            writer,
            exporter,
            failure: None,
            rss_max_bytes: 0,
        })
    }

    /// Marks the beginning of `phase`.
    pub(crate) fn enter(&mut self, phase: Phase, moment: Moment) {
        self.manifest.phases.push(PhaseMark {
            phase,
            moment,
            wall_millis: wall_millis(),
        });
    }

    /// Writes down a beat, under the phase in which it was taken.
    pub(crate) fn beat(&mut self, beat: &Beat, samples: &[Sample]) {
        self.rss_max_bytes = self.rss_max_bytes.max(resident_bytes(samples));
        let phases = &self.manifest.phases;
        let begun = phases.iter().rev().find(|mark| mark.moment <= beat.moment);
        let phase = begun.map_or(Phase::Prepare, |mark| mark.phase);
        let written = self.writer.beat(beat, phase, samples);
        self.keep(written);
        let exported = self.exporter.beat(beat, phase, samples);
        self.keep(exported);
    }

    /// The page to be served, if there is one.
    pub(crate) const fn page(&self) -> Option<&SamplePage> {
        self.exporter.page()
    }

    /// Writes down that something happened.
    pub(crate) fn event(&mut self, phase: Phase, what: String) {
        self.happened(phase, what, false);
    }

    /// Writes down that a step of the timeline was done.
    pub(crate) fn step(&mut self, phase: Phase, what: String) {
        self.happened(phase, what, true);
    }

    fn happened(&mut self, phase: Phase, what: String, is_step: bool) {
        let event = EventRecord {
            moment: clock::now(),
            wall_millis: wall_millis(),
            phase,
            what,
            is_step,
        };
        let written = self.writer.event(&event);
        self.keep(written);
    }

    pub(crate) fn note(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.manifest.notes.push(Note {
            what: what.into(),
            why: why.into(),
        });
    }

    /// Notes whose CPUs are whose, and what of the host makes that worse.
    pub(crate) fn placed(&mut self, target: Option<&[u16]>, ours: Option<&[u16]>) {
        self.manifest.target_cpus = target.map(<[u16]>::to_vec);
        self.manifest.load_cpus = ours.map(<[u16]>::to_vec);
        let warnings = stillwell_observer::warnings(&self.facts, ours, target);
        self.manifest.warnings.extend(warnings);
    }

    /// Records the CPU priority of the run, in words.
    pub(crate) fn prioritised(&mut self, priority: String) {
        self.facts.priority = Some(priority);
        self.manifest.host = serde_json::to_value(&self.facts).unwrap_or_default();
    }

    /// Records which other processes used most CPU time while it was measured.
    pub(crate) fn busiest(&mut self, processes: Vec<BusyProcess>) {
        let programs = processes.into_iter().map(|process| BusyProgram {
            name: process.name,
            pid: process.pid,
            cpu_share: process.cpu_share,
        });
        self.manifest.busiest = programs.collect();
    }

    /// Notes how parts of ours ended.
    pub(crate) fn parts(&mut self, ends: &[PartEnd]) {
        let notes = ends.iter().map(|end| PartNote {
            name: end.name.clone(),
            cpu: end.cpu,
            failure: end.result.as_ref().err().map(explain),
        });
        self.manifest.parts.extend(notes);
    }

    /// Returns the write failure since the last call; each one is reported once.
    pub(crate) fn failure(&mut self) -> Option<String> {
        self.failure.take().map(|error| explain(&error))
    }

    /// Makes the capture whole. Where the disk refuses even that, the outcome
    /// says so, and the journal stays.
    pub(crate) fn close(mut self, outcome: RunOutcome) -> Manifest {
        let last = self.manifest.phases.last().map(|mark| mark.phase);
        self.enter(last.unwrap_or(Phase::Close), clock::now());
        self.manifest.outcome = outcome;
        let after = stillwell_observer::describe_host();
        self.manifest.host_after = serde_json::to_value(&after).unwrap_or_default();
        // A failure since the last look, such as of an event in the phase close.
        keep_failure(&mut self.manifest.outcome, self.failure.take());
        // First, so the manifest can say that it went wrong.
        let exported = self.exporter.close();
        keep_failure(&mut self.manifest.outcome, exported.err());
        let written = self.writer.close(&self.manifest);
        keep_failure(&mut self.manifest.outcome, written.err());
        self.manifest
    }

    fn keep(&mut self, written: Result<(), CaptureError>) {
        if let Err(error) = written
            && self.failure.is_none()
        {
            self.failure = Some(error);
        }
    }
}

/// Makes of a run that went well one whose capture is not whole.
fn keep_failure(outcome: &mut RunOutcome, failure: Option<CaptureError>) {
    if let Some(error) = failure
        && outcome.is_completed()
    {
        *outcome = RunOutcome::StorageFailed {
            reason: explain(&error),
        };
    }
}

/// Returns the largest sample of the target's resident memory; zero without one.
fn resident_bytes(samples: &[Sample]) -> u64 {
    let is_memory = |sample: &&Sample| {
        let name = sample.name.as_str();
        name == catalogue::TARGET_RSS.name || name == catalogue::TARGET_RSS_PEAK.name
    };
    let memory = samples.iter().filter(is_memory);
    let bytes = memory.filter_map(|sample| match &sample.value {
        Value::Int(bytes) => Some(*bytes),
        _ => None,
    });
    bytes.max().unwrap_or(0)
}

fn wall_millis() -> u64 {
    clock::wall().as_u64() / 1_000_000
}

#[cfg(test)]
pub(crate) mod tests;
