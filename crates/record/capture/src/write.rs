//! Writes a capture.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use stillwell_metric::{Beat, Sample};
use stillwell_plan::Phase;
use stillwell_units::Secrets;

use crate::journal::{self, Row};
use crate::manifest::{EventRecord, Manifest};
use crate::parquet::{COMPRESSION_LEVEL, Columns, SeriesFile};
use crate::private::{create_private, make_private, replace_private};
use crate::profiles::{PROFILES, remove_profiles};

pub(crate) const MANIFEST: &str = "manifest.json";
/// The file of all series in a capture.
pub const SERIES: &str = "series.parquet";
/// The lines from which that file is made.
pub const JOURNAL: &str = "series.jsonl";
pub(crate) const EVENTS: &str = "events.jsonl";
/// Numbers of the run, which are computed from its capture.
pub const SUMMARY: &str = "summary.json";

/// A capture could not be written.
#[derive(Debug, thiserror::Error)]
#[error("write {}", path.display())]
pub struct CaptureError {
    /// The file.
    pub path: PathBuf,
    /// The kernel's answer.
    pub source: io::Error,
}

/// Writes the capture of one run.
///
/// Every beat goes to the journal at once, so a run whose writer is killed
/// keeps all but its last beat; the Parquet file becomes whole and durable in
/// [`CaptureWriter::close`], which then removes the journal.
#[derive(Debug)]
pub struct CaptureWriter {
    folder: PathBuf,
    run: String,
    journal: BufWriter<File>,
    events: BufWriter<File>,
    series: SeriesFile,
    secrets: Secrets,
    _lock: CaptureLock,
}

impl CaptureWriter {
    /// Makes `folder`, locks it until the writer is closed or dropped, and begins a capture in it. What
    /// an earlier capture left there is replaced. Secrets in the manifest and in events are written as
    /// `secrets` says.
    ///
    /// # Errors
    /// [`CaptureError`] with the file and the kernel's answer; with the folder and
    /// [`io::ErrorKind::ResourceBusy`] if another writer has it.
    pub fn create(
        folder: &Path,
        manifest: &Manifest,
        secrets: Secrets,
    ) -> Result<Self, CaptureError> {
        make_private(folder).map_err(at(folder))?;
        let lock = CaptureLock::take(folder).map_err(at(folder))?;
        // A run that is killed does not replace them.
        remove_results(folder)?;
        write_run(folder, manifest, secrets)?;
        let open = |name: &str| {
            let path = folder.join(name);
            create_private(&path).map(BufWriter::new).map_err(at(&path))
        };
        let series_path = folder.join(SERIES);
        Ok(Self {
            run: manifest.run.to_string(),
            journal: open(JOURNAL)?,
            events: open(EVENTS)?,
            series: create_private(&series_path)
                .and_then(|file| SeriesFile::begin(file, Columns::NATIVE, COMPRESSION_LEVEL))
                .map_err(at(&series_path))?,
            folder: folder.to_path_buf(),
            secrets,
            _lock: lock,
        })
    }

    /// Returns the folder of the capture.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes all samples of a beat.
    ///
    /// # Errors
    /// [`CaptureError`]; what was written before stays readable.
    pub fn beat(
        &mut self,
        beat: &Beat,
        phase: Phase,
        samples: &[Sample],
    ) -> Result<(), CaptureError> {
        let path = self.folder.join(JOURNAL);
        for sample in samples {
            let row = Row::new(beat, phase, sample);
            journal::write(&mut self.journal, &self.run, &row).map_err(at(&path))?;
            self.series.push(row);
        }
        self.journal.flush().map_err(at(&path))?;
        let run = &self.run;
        let path = self.folder.join(SERIES);
        self.series.flush_if_full(run).map_err(at(&path))
    }

    /// Writes down that something happened.
    ///
    /// # Errors
    /// [`CaptureError`]; what was written before stays readable.
    pub fn event(&mut self, event: &EventRecord) -> Result<(), CaptureError> {
        let path = self.folder.join(EVENTS);
        let event = EventRecord {
            what: self.secrets.text(&event.what),
            ..event.clone()
        };
        let line = serde_json::to_string(&event).map_err(io::Error::from);
        line.and_then(|line| writeln!(self.events, "{line}"))
            .and_then(|()| self.events.flush())
            .map_err(at(&path))
    }

    /// Makes the capture whole with the run's last word.
    ///
    /// # Errors
    /// [`CaptureError`]; the journal then stays and is read instead.
    pub fn close(self, manifest: &Manifest) -> Result<(), CaptureError> {
        write_run(&self.folder, manifest, self.secrets)?;
        let path = self.folder.join(SERIES);
        self.series.close(&self.run).map_err(at(&path))?;
        let path = self.folder.join(JOURNAL);
        fs::remove_file(&path).map_err(at(&path))
    }
}

/// The lock of a folder in which a capture is written.
#[derive(Debug)]
struct CaptureLock(File);

impl CaptureLock {
    /// Locks `folder`, if its file system has locks.
    fn take(folder: &Path) -> io::Result<Self> {
        let folder = File::open(folder)?;
        match folder.try_lock() {
            Err(TryLockError::WouldBlock) => {
                let message = "another run writes its capture to this folder";
                Err(io::Error::new(io::ErrorKind::ResourceBusy, message))
            }
            Ok(()) | Err(TryLockError::Error(_)) => Ok(Self(folder)),
        }
    }
}

impl Drop for CaptureLock {
    /// Releases the lock at once: a child process that is just being started has a copy of the descriptor, which
    /// would keep it until the child executes its program.
    fn drop(&mut self) {
        self.0.unlock().unwrap_or_default();
    }
}

pub(crate) fn write_run(
    folder: &Path,
    manifest: &Manifest,
    secrets: Secrets,
) -> Result<(), CaptureError> {
    let value = serde_json::to_value(manifest).map_err(io::Error::from);
    let value = value.map_err(at(&folder.join(MANIFEST)))?;
    write_manifest(folder, &secrets.json(value))
}

/// Replaces the manifest in one step.
pub(crate) fn write_manifest<T: Serialize>(
    folder: &Path,
    manifest: &T,
) -> Result<(), CaptureError> {
    let path = folder.join(MANIFEST);
    let write = |file: &mut File| {
        serde_json::to_writer_pretty(&mut *file, manifest)?;
        file.write_all(b"\n")
    };
    replace_private(&path, write).map_err(at(&path))
}

/// Removes the summary and the profiles that an earlier run left in `folder`.
pub(crate) fn remove_results(folder: &Path) -> Result<(), CaptureError> {
    let path = folder.join(SUMMARY);
    removed(fs::remove_file(&path)).map_err(at(&path))?;
    let path = folder.join(PROFILES);
    remove_profiles(&path).map_err(at(&path))
}

/// Returns the result of a removal: if there was nothing to remove, it is no error.
pub(crate) fn removed(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> CaptureError + '_ {
    |source| CaptureError {
        path: path.to_path_buf(),
        source,
    }
}
