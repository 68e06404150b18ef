//! The captures of one run on several machines become one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stillwell_metric::{Beat, Metric, catalogue};
use stillwell_plan::{Phase, TaskRole};
use stillwell_units::{Moment, Nanos, Secrets};

use crate::journal::Row;
use crate::load::GeneratorClock;
use crate::manifest::{EventRecord, Manifest, Note, PartNote, PhaseMark};
use crate::parquet::{COMPRESSION_LEVEL, Columns, SeriesFile};
use crate::private::{create_private, make_private};
use crate::read::{self, OpenError};
use crate::write::{self, CaptureError, EVENTS, SERIES};

/// Series of these components of any task are in the merged capture; of other series only those
/// of the machine with the target.
const COMPONENTS: [&str; 3] = ["generator", "sink", LEDGER];
const LEDGER: &str = "ledger";

/// Series of a ledger that are meaningless if it has only a part of the arrivals.
const OF_WHOLE_LEDGERS: [Metric; 3] = [
    catalogue::STAMPED_SENT,
    catalogue::EVENTS_MISSING,
    catalogue::EVENTS_INCOMPLETE,
];

/// Machines of a run.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct RunMachines {
    /// Name of the engine that started the tasks.
    pub engine: String,
    /// Bound on the error of latencies from generators to sinks; `None` if all have one clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_error: Option<Nanos>,
    /// Each task, in the order of its index.
    pub tasks: Vec<RunTask>,
}

/// One task of a run on several machines.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct RunTask {
    /// Its role.
    pub role: TaskRole,
    /// Its result, or the reason why it has none.
    pub result: Result<RunTaskResult, String>,
    /// Its clock compared with that of the controller, if it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<GeneratorClock>,
    /// Warnings about its machine and its part, as JSON of the judging half.
    #[serde(default)]
    pub warnings: Vec<serde_json::Value>,
}

/// The result of a task, besides its capture.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct RunTaskResult {
    /// Name of its attempt.
    pub attempt: String,
    /// Name of its node.
    pub node: String,
    /// Identity of the boot of its node: tasks with the same one share a machine.
    pub boot: String,
    /// Address of its machine on the network of the run.
    pub address: std::net::IpAddr,
    /// Start of its process, since 1970 by its own clock.
    pub began: Nanos,
    /// End of its part, since 1970 by its own clock.
    pub ended: Nanos,
}

impl RunTask {
    /// Returns its role and node, such as `generator 1 on n3`.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.result {
            Ok(result) => format!("{} on {}", self.role.name(), result.node),
            Err(_) => self.role.name(),
        }
    }
}

impl RunMachines {
    /// Returns the time for which all tasks together held a node.
    #[must_use]
    pub fn held(&self) -> Nanos {
        let results = self
            .tasks
            .iter()
            .filter_map(|task| task.result.as_ref().ok());
        let times = results.map(|result| result.ended.saturating_sub(result.began));
        times.fold(Nanos::ZERO, |sum, time| sum + time)
    }

    /// Returns the number of machines.
    #[must_use]
    pub fn count(&self) -> usize {
        let results = self
            .tasks
            .iter()
            .filter_map(|task| task.result.as_ref().ok());
        let boots = results.map(|result| result.boot.as_str());
        boots.collect::<BTreeSet<_>>().len()
    }
}

/// The capture of one task.
#[derive(Clone, Debug)]
pub struct RunPart {
    /// Its role.
    pub role: TaskRole,
    /// Its name for readers.
    pub name: String,
    /// The folder of its capture.
    pub folder: PathBuf,
}

/// Captures that cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum RunMergeError {
    /// A capture that cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The merged capture cannot be written.
    #[error(transparent)]
    Write(#[from] CaptureError),
}

/// Merges the captures of `parts` into `folder`. `manifest` is that of the task with the target,
/// or of another one if that has none, with what the controller knows: the ledger too, if it was
/// joined from several.
///
/// Workers have numbers that no other task has, so the series of generators and sinks are those
/// of one process with all workers, value by value. Phases begin when the first task begins them.
///
/// # Errors
/// [`RunMergeError`] with the file.
pub fn merge_runs(
    folder: &Path,
    mut manifest: Manifest,
    parts: &[RunPart],
    secrets: Secrets,
) -> Result<Manifest, RunMergeError> {
    make_private(folder).map_err(write::at(folder))?;
    let has_target = parts.iter().any(|part| part.role == TaskRole::Target);
    let mut read = Vec::new();
    for part in parts {
        let its = Manifest::open(&part.folder)?;
        let shift = shift(&manifest.phases, &its.phases);
        read.push((part, its, shift));
    }
    for (_, its, shift) in &read {
        begin_earlier(&mut manifest.phases, &its.phases, *shift);
    }
    write::remove_results(folder)?;
    let (mut rows, mut events) = (Vec::new(), Vec::new());
    for (index, (part, its, shift)) in read.into_iter().enumerate() {
        let is_reference = part.role == TaskRole::Target || (!has_target && index == 0);
        let marks = (&*its.phases, &*manifest.phases);
        let its_rows = rows_of(part, is_reference, marks, shift)?;
        rows.extend(its_rows.into_iter().map(|row| (index, row)));
        events.extend(events_of(part, is_reference, shift)?);
        if is_reference {
            copy_files(&part.folder, folder).map_err(write::at(folder))?;
        } else {
            add_notes(&mut manifest, part, &its);
        }
        if !is_reference && !matches!(part.role, TaskRole::Generators(_)) {
            let at = its.last_received.map(|at| shifted(at, shift));
            manifest.last_received = manifest.last_received.max(at);
        }
        if manifest.ledger.is_none() && has_whole_ledger(part.role) {
            manifest.ledger = its.ledger;
        }
    }
    if let (Some(ledger), Some(machines)) = (&mut manifest.ledger, &manifest.machines) {
        ledger.clock_error = machines.clock_error;
    }
    rows.sort_by_key(|(_, row): &(usize, Row)| row.beat.moment);
    renumber(&mut rows, manifest.phases.first());
    events.sort_by_key(|event: &EventRecord| event.moment);
    write_events(folder, &events, secrets)?;
    write_series(folder, &manifest, rows.into_iter().map(|(_, row)| row))?;
    write::write_run(folder, &manifest, secrets)?;
    Ok(manifest)
}

/// Adds what another task notes about its threads and its machine.
fn add_notes(manifest: &mut Manifest, part: &RunPart, its: &Manifest) {
    let name = |text: &str| format!("{}: {text}", part.name);
    manifest.parts.extend(its.parts.iter().map(|note| PartNote {
        name: name(&note.name),
        ..note.clone()
    }));
    manifest.notes.extend(its.notes.iter().map(|note| Note {
        what: name(&note.what),
        why: note.why.clone(),
    }));
    manifest
        .warnings
        .extend(its.warnings.iter().map(|text| name(text)));
}

/// Returns the nanoseconds to add to moments with `marks` to have those with `reference`: load began
/// at the same time by all clocks, however far they are apart.
fn shift(reference: &[PhaseMark], marks: &[PhaseMark]) -> i64 {
    let begin = |marks: &[PhaseMark]| {
        let load = marks.iter().find(|mark| mark.phase == Phase::Warmup);
        let begin = load.or_else(|| marks.first());
        begin.map(|mark| mark.moment.as_u64().cast_signed())
    };
    let both = begin(reference).zip(begin(marks));
    both.map_or(0, |(reference, its)| reference.saturating_sub(its))
}

fn shifted(moment: Moment, shift: i64) -> Moment {
    Moment::new(moment.as_u64().saturating_add_signed(shift))
}

fn rows_of(
    part: &RunPart,
    is_reference: bool,
    (marks, merged): (&[PhaseMark], &[PhaseMark]),
    shift: i64,
) -> Result<Vec<Row>, RunMergeError> {
    let mut rows = Vec::new();
    read::read_rows(&part.folder, &mut |mut row: Row| {
        row.beat.moment = shifted(row.beat.moment, shift);
        rows.push(row);
    })?;
    let moved = moved_beats(&rows, marks, merged, shift);
    let is_kept = |row: &Row| {
        let component = row.labels.value("component");
        is_reference || component.is_some_and(|component| COMPONENTS.contains(&component))
    };
    let rows = rows.into_iter().filter(is_kept);
    let rows = rows.filter_map(|row| of_part(part.role, row));
    let rows = rows.map(|mut row| {
        if let Some(moment) = moved.get(&row.beat.moment) {
            row.beat.moment = *moment;
        }
        row
    });
    Ok(rows.collect())
}

/// Returns true if a task with `role` has the only ledger of the run.
const fn has_whole_ledger(role: TaskRole) -> bool {
    match role {
        TaskRole::Target => true,
        TaskRole::Sinks(share) => !share.is_partial(),
        TaskRole::Generators(_) => false,
    }
}

/// Returns a row of a task with `role`. Series of a ledger that is one of several are labelled with
/// the task.
fn of_part(role: TaskRole, mut row: Row) -> Option<Row> {
    let is_part = matches!(role, TaskRole::Sinks(share) if share.is_partial());
    if is_part && row.labels.value("component") == Some(LEDGER) {
        let name = row.name.as_str();
        if OF_WHOLE_LEDGERS.iter().any(|metric| metric.name == name) {
            return None;
        }
        row.labels = std::mem::take(&mut row.labels).with("task", role.name());
    }
    Some(row)
}

/// Returns the new moments of beats. The beat that a task took when it began a phase is that of
/// the merged phase, and those before it are before: what each task counted in a phase is in the
/// same phase of the whole.
fn moved_beats(
    rows: &[Row],
    marks: &[PhaseMark],
    merged: &[PhaseMark],
    shift: i64,
) -> BTreeMap<Moment, Moment> {
    let beats: BTreeSet<Moment> = rows.iter().map(|row| row.beat.moment).collect();
    let mut moved = BTreeMap::new();
    for mark in merged.iter().filter(|mark| is_shared(mark.phase)) {
        let Some(its) = marks.iter().find(|its| its.phase == mark.phase) else {
            continue;
        };
        let begun = shifted(its.moment, shift);
        for beat in beats.range(mark.moment..).take_while(|beat| **beat < begun) {
            moved.insert(*beat, Moment::new(mark.moment.as_u64().saturating_sub(1)));
        }
        if let Some(beat) = beats.range(begun..).next() {
            moved.insert(*beat, mark.moment);
        }
    }
    moved
}

/// Gives samples of all tasks, which are in order of time and have the number of their task, one number and one wall
/// clock for each moment. The clock is that of the manifest with the phase `first`.
///
/// It never decreases, and increases from sample to sample of one task, as in the capture of one machine. It does not
/// increase with the samples of each task: they are closer than a millisecond if there are many tasks.
fn renumber(rows: &mut [(usize, Row)], first: Option<&PhaseMark>) {
    let mut last_wall = 0;
    let mut walls: BTreeMap<usize, u64> = BTreeMap::new();
    let samples = rows.chunk_by_mut(|(_, row), (_, after)| row.beat.moment == after.beat.moment);
    for (index, sample) in (0..).zip(samples) {
        let Some((_, row)) = sample.first() else {
            continue;
        };
        let moment = row.beat.moment;
        let wall_millis = first.map_or(row.beat.wall_millis, |mark| wall_at(mark, moment));
        let of_tasks = sample.iter().filter_map(|(task, _)| walls.get(task));
        let least = of_tasks.map(|wall| wall.saturating_add(1)).max();
        let beat = Beat {
            index,
            moment,
            wall_millis: wall_millis.max(last_wall).max(least.unwrap_or(0)),
        };
        for (task, row) in sample {
            row.beat = beat;
            walls.insert(*task, beat.wall_millis);
        }
        last_wall = beat.wall_millis;
    }
}

/// Returns the wall clock at `moment`: milliseconds since 1970.
const fn wall_at(mark: &PhaseMark, moment: Moment) -> u64 {
    let (from, to) = (mark.moment.as_u64(), moment.as_u64());
    let nanos = to.cast_signed().saturating_sub(from.cast_signed());
    mark.wall_millis.saturating_add_signed(nanos / 1_000_000)
}

fn events_of(
    part: &RunPart,
    is_reference: bool,
    shift: i64,
) -> Result<Vec<EventRecord>, RunMergeError> {
    let path = part.folder.join(EVENTS);
    let events = read::read_events(&path).map_err(read::at(&path))?;
    let events = events.into_iter().map(|event| EventRecord {
        moment: shifted(event.moment, shift),
        what: match is_reference {
            true => event.what,
            false => format!("{}: {}", part.name, event.what),
        },
        ..event
    });
    Ok(events.collect())
}

/// Phases that all tasks begin at the same time.
const fn is_shared(phase: Phase) -> bool {
    matches!(phase, Phase::Warmup | Phase::Measure | Phase::Drain)
}

/// Lets the phases with load begin when the first task begins them: the next sample of each task
/// is then the one that it took for this.
fn begin_earlier(phases: &mut [PhaseMark], marks: &[PhaseMark], shift: i64) {
    for mark in phases.iter_mut().filter(|mark| is_shared(mark.phase)) {
        let other_mark = marks
            .iter()
            .find(|other_mark| other_mark.phase == mark.phase);
        if let Some(other_mark) = other_mark {
            mark.moment = mark.moment.min(shifted(other_mark.moment, shift));
        }
    }
    // A phase does not begin before the one that it follows.
    for index in 1..phases.len() {
        phases[index].moment = phases[index].moment.max(phases[index - 1].moment);
    }
}

/// Copies logs and profiles; the merged files are written afterwards.
fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            make_private(&target)?;
            copy_files(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn write_events(
    folder: &Path,
    events: &[EventRecord],
    secrets: Secrets,
) -> Result<(), CaptureError> {
    let path = folder.join(EVENTS);
    let write = || {
        let mut file = BufWriter::new(create_private(&path)?);
        for event in events {
            let event = EventRecord {
                what: secrets.text(&event.what),
                ..event.clone()
            };
            writeln!(file, "{}", serde_json::to_string(&event)?)?;
        }
        file.flush()
    };
    write().map_err(write::at(&path))
}

fn write_series(
    folder: &Path,
    manifest: &Manifest,
    rows: impl Iterator<Item = Row>,
) -> Result<(), CaptureError> {
    let path = folder.join(SERIES);
    let run = manifest.run.to_string();
    let write = || {
        let file: File = create_private(&path)?;
        let mut series = SeriesFile::begin(file, Columns::NATIVE, COMPRESSION_LEVEL)?;
        for row in rows {
            series.push(row);
            series.flush_if_full(&run)?;
        }
        series.close(&run)
    };
    write().map_err(write::at(&path))?;
    // Of a task that was killed.
    let journal = folder.join(write::JOURNAL);
    match fs::remove_file(&journal) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(CaptureError {
            path: journal,
            source,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use stillwell_metric::{Kind, Labels, SeriesName, Value};
    use stillwell_plan::SinkShare;

    use super::*;

    fn mark(phase: Phase, at: u64) -> PhaseMark {
        PhaseMark {
            phase,
            moment: Moment::new(at),
            wall_millis: 0,
        }
    }

    fn row(at: u64) -> Row {
        Row {
            beat: Beat {
                index: 0,
                moment: Moment::new(at),
                wall_millis: 0,
            },
            phase: Phase::Measure,
            name: SeriesName::recorded("a".to_owned()),
            kind: Kind::Counter,
            labels: Labels::none(),
            value: Value::Int(at),
        }
    }

    /// Two counters with one name and the same labels would be one that jumps.
    #[test]
    fn series_of_a_part_of_a_ledger_name_its_task() {
        let labels = Labels::none().with("component", "ledger").with("id", "tcp");
        let named = |metric: Metric| Row {
            name: metric.into(),
            labels: labels.clone(),
            ..row(5)
        };
        let role = |of| TaskRole::Sinks(SinkShare::new(0, of).unwrap());
        let received = named(catalogue::STAMPED_RECEIVED);
        let kept = of_part(role(1), received.clone()).unwrap();
        assert_eq!(kept.labels, labels);
        let kept = of_part(role(2), received).unwrap();
        assert_eq!(kept.labels, labels.clone().with("task", "sinks 0"));
        assert!(of_part(role(1), named(catalogue::EVENTS_MISSING)).is_some());
        assert!(of_part(role(2), named(catalogue::EVENTS_MISSING)).is_none());
        assert!(has_whole_ledger(role(1)) && !has_whole_ledger(role(2)));
    }

    /// Histograms of a beat are of the time before it: a task that begins a phase a little later
    /// than another must not have the end of its warm-up in the measured phase, nor lose its last
    /// second.
    #[test]
    fn what_a_task_counted_in_a_phase_is_in_the_same_phase_of_the_whole() {
        let marks = [mark(Phase::Measure, 1_050), mark(Phase::Drain, 2_050)];
        let mut merged = [mark(Phase::Measure, 1_040), mark(Phase::Drain, 2_060)];
        begin_earlier(&mut merged, &marks, 0);
        assert_eq!(merged[0].moment, Moment::new(1_040));
        assert_eq!(merged[1].moment, Moment::new(2_050));
        // The first is of the warm-up, and was taken between both marks.
        let rows = [1_045, 1_055, 1_500, 2_055, 2_500].map(row);
        let moved = moved_beats(&rows, &marks, &merged, 0);
        let at = |moment: u64| {
            let moment = Moment::new(moment);
            moved.get(&moment).copied().unwrap_or(moment).as_u64()
        };
        let moments = [1_045, 1_055, 1_500, 2_055, 2_500].map(at);
        assert_eq!(moments, [1_039, 1_040, 1_500, 2_050, 2_500]);
    }

    #[test]
    fn each_sample_of_merged_tasks_has_one_number_and_one_time() {
        const MILLI: u64 = 1_000_000;
        let task = |index: u64, at: u64, wall_millis: u64| Row {
            beat: Beat {
                index,
                moment: Moment::new(at),
                wall_millis,
            },
            ..row(at)
        };
        // The clock of the second task is years behind.
        let mut rows = [
            (0, task(7, 9 * MILLI, 1_009)),
            (1, task(0, 10 * MILLI - 1, 3)),
            (0, task(8, 10 * MILLI, 1_010)),
            (1, task(1, 10 * MILLI, 4)),
            (0, task(9, 30 * MILLI, 1_030)),
        ];
        let first = PhaseMark {
            wall_millis: 1_010,
            ..mark(Phase::Prepare, 10 * MILLI)
        };
        renumber(&mut rows, Some(&first));
        let beats = rows.map(|(_, row)| (row.beat.index, row.beat.wall_millis));
        // Both samples of the second task are in one millisecond.
        let expected = [(0, 1_009), (1, 1_010), (2, 1_011), (2, 1_011), (3, 1_030)];
        assert_eq!(beats, expected);
    }

    /// Each moment had a later millisecond, so the clock of 20 tasks advanced 2 s in each second.
    #[test]
    fn the_wall_clock_of_many_merged_tasks_does_not_run_ahead() {
        const TASKS: u64 = 20;
        const MICRO: u64 = 1_000;
        // Each task takes a sample every 10 ms, 20 µs after the task before it.
        let samples = (0..100_u64).flat_map(|sample| (0..TASKS).map(move |task| (sample, task)));
        let mut rows: Vec<(usize, Row)> = samples
            .map(|(sample, task)| {
                let row = row((sample * 10_000 + task * 20) * MICRO);
                (usize::try_from(task).unwrap(), row)
            })
            .collect();
        renumber(&mut rows, Some(&mark(Phase::Prepare, 0)));
        for (index, (_, row)) in (0..).zip(&rows) {
            let expected = (index, index / TASKS * 10);
            assert_eq!((row.beat.index, row.beat.wall_millis), expected);
        }
    }

    #[test]
    fn clocks_that_differ_by_years_are_brought_together() {
        let behind = [mark(Phase::Warmup, 20), mark(Phase::Measure, 50)];
        let mut merged = [
            mark(Phase::Ready, 900),
            mark(Phase::Warmup, 1_020),
            mark(Phase::Measure, 1_070),
        ];
        let by = shift(&merged, &behind);
        assert_eq!((by, shift(&behind, &merged)), (1_000, -1_000));
        begin_earlier(&mut merged, &behind, by);
        assert_eq!(merged[2].moment, Moment::new(1_050));
        // No phase begins before the one that it follows.
        begin_earlier(&mut merged, &behind, 0);
        assert_eq!(merged[2].moment, Moment::new(900));
    }
}
