//! Captures in lading's formats, written during a run.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::ser::{Serialize, SerializeMap, Serializer};
use stillwell_capture::rows::{Columns, Row, SeriesFile};
use stillwell_capture::{CaptureError, SampleFormat, SampleWriter, schema};
use stillwell_metric::{Beat, Labels, Sample, Value};
use stillwell_plan::Phase;
use stillwell_units::{Nanos, RunId};

use super::ticks::Ticks;

/// The columns of lading's captures, version 2.
const COLUMNS: Columns = Columns {
    message: MESSAGE_TYPE,
    has_phase: false,
    is_zero_beside_histogram: true,
};

/// Their schema in Parquet's notation.
pub(super) const MESSAGE_TYPE: &str = "
message arrow_schema {
    REQUIRED BYTE_ARRAY run_id (UTF8);
    REQUIRED INT64 time (TIMESTAMP(MILLIS,false));
    REQUIRED INT64 fetch_index (INTEGER(64,false));
    REQUIRED BYTE_ARRAY metric_name (UTF8);
    REQUIRED BYTE_ARRAY metric_kind (UTF8);
    OPTIONAL INT64 value_int (INTEGER(64,false));
    OPTIONAL DOUBLE value_float;
    REQUIRED GROUP labels (MAP) {
        REPEATED GROUP entries {
            REQUIRED BYTE_ARRAY key (UTF8);
            REQUIRED BYTE_ARRAY value (UTF8);
        }
    }
    OPTIONAL BYTE_ARRAY value_histogram;
}";

const ZSTD_LEVEL: i32 = 3;

/// Path and format of a capture.
#[derive(Clone, Debug, PartialEq)]
pub struct LadingOutput {
    /// The file; of [`LadingLayout::Multi`] what its two files' names begin with.
    pub path: PathBuf,
    /// The format.
    pub layout: LadingLayout,
    /// Labels of every row.
    pub labels: Labels,
    /// Time for which a series without a new value is repeated; forever if `None`.
    pub expiration: Option<Nanos>,
    /// Interval after which a Parquet file becomes readable. Lines are written every second.
    pub flush: Nanos,
    /// zstd's level within a Parquet file, from 1 to 22.
    pub compression_level: i32,
}

/// lading's formats.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LadingLayout {
    /// One JSON object a line; under zstd where the name ends in `.zst`.
    Jsonl,
    /// A table.
    Parquet,
    /// Both, side by side.
    Multi,
}

impl LadingOutput {
    /// The files that this makes.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        match self.layout {
            LadingLayout::Jsonl | LadingLayout::Parquet => vec![self.path.clone()],
            LadingLayout::Multi => vec![with_ending(&self.path, "jsonl"), self.table()],
        }
    }

    fn table(&self) -> PathBuf {
        match self.layout {
            LadingLayout::Multi => with_ending(&self.path, "parquet"),
            LadingLayout::Jsonl | LadingLayout::Parquet => self.path.clone(),
        }
    }
}

/// `path` with `ending` in place of an ending of a capture, or behind it.
fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let extension = path.extension().and_then(|extension| extension.to_str());
    if matches!(extension, Some("jsonl" | "parquet")) {
        return path.with_extension(ending);
    }
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// The lines that a table keeps beside it until it is whole.
pub(super) fn journal_of(table: &Path) -> PathBuf {
    let mut name = table.as_os_str().to_owned();
    name.push(".journal");
    name.into()
}

/// Writes a capture in a format of lading.
///
/// Lines are written every second. A table is readable up to its last flush. Its lines are also in a journal
/// beside it until it is complete, so a killed writer loses at most one second.
/// is killed loses no more than the last second.
#[derive(Debug)]
pub struct LadingWriter {
    run: String,
    ticks: Ticks,
    lines: Option<Lines>,
    table: Option<Table>,
    /// To be removed in the end.
    journal: Option<PathBuf>,
}

#[derive(Debug)]
struct Table {
    path: PathBuf,
    file: SeriesFile,
    flush_ticks: u64,
    flushed_at: u64,
}

impl LadingWriter {
    /// Creates the files of `output`, replacing existing ones.
    ///
    /// # Errors
    /// [`CaptureError`] with the file and the operating system's error.
    pub fn create(output: &LadingOutput, run: RunId) -> Result<Self, CaptureError> {
        let has_table = output.layout != LadingLayout::Jsonl;
        if output.layout == LadingLayout::Multi {
            // The journal of a run that was killed would be read in place of the new table.
            drop(fs::remove_file(journal_of(&output.table())));
        }
        let journal = (output.layout == LadingLayout::Parquet).then(|| journal_of(&output.path));
        let lines = match (&journal, output.files().first()) {
            (Some(path), _) | (None, Some(path)) => Some(Lines::create(path)?),
            (None, None) => None,
        };
        let table = has_table
            .then(|| Table::create(output.table(), output))
            .transpose()?;
        Ok(Self {
            run: hyphenated(&run.to_string()),
            ticks: Ticks::new(&output.labels, output.expiration),
            lines,
            table,
            journal,
        })
    }

    fn write(&mut self, rows: Vec<Row>) -> Result<(), CaptureError> {
        let Some(last) = rows.last().map(|row| row.beat.index) else {
            return Ok(());
        };
        if let Some(lines) = &mut self.lines {
            lines.write(&self.run, &rows)?;
        }
        if let Some(table) = &mut self.table {
            table.write(&self.run, rows, last)?;
        }
        Ok(())
    }
}

impl SampleFormat for LadingOutput {
    fn begin(&self, run: RunId) -> Result<Box<dyn SampleWriter>, CaptureError> {
        Ok(Box::new(LadingWriter::create(self, run)?))
    }
}

impl SampleWriter for LadingWriter {
    /// Writes what a beat shows to be over.
    fn beat(&mut self, beat: &Beat, phase: Phase, samples: &[Sample]) -> Result<(), CaptureError> {
        let mut rows = Vec::new();
        self.ticks.beat(beat, phase, samples, &mut rows);
        self.write(rows)
    }

    /// Writes the last second, and makes the files whole. After an error the journal
    /// stays and is read instead.
    fn close(mut self: Box<Self>) -> Result<(), CaptureError> {
        let mut rows = Vec::new();
        self.ticks.finish(&mut rows);
        self.write(rows)?;
        if let Some(lines) = self.lines {
            lines.close()?;
        }
        if let Some(table) = self.table {
            table.file.close(&self.run).map_err(at(&table.path))?;
        }
        match self.journal {
            Some(path) => fs::remove_file(&path).map_err(at(&path)),
            None => Ok(()),
        }
    }
}

impl Table {
    fn create(path: PathBuf, output: &LadingOutput) -> Result<Self, CaptureError> {
        let file = File::create(&path)
            .and_then(|file| SeriesFile::begin(file, COLUMNS, output.compression_level));
        Ok(Self {
            file: file.map_err(at(&path))?,
            path,
            flush_ticks: (output.flush.as_u64() / 1_000_000_000).max(1),
            flushed_at: 0,
        })
    }

    fn write(&mut self, run: &str, rows: Vec<Row>, tick: u64) -> Result<(), CaptureError> {
        for row in rows {
            self.file.push(row);
        }
        let written = if tick >= self.flushed_at + self.flush_ticks {
            self.flushed_at = tick;
            self.file.checkpoint(run)
        } else {
            self.file.flush_if_full(run)
        };
        written.map_err(at(&self.path))
    }
}

/// A file of lines.
struct Lines {
    path: PathBuf,
    file: LineFile,
}

enum LineFile {
    Plain(BufWriter<File>),
    Zstd(zstd::stream::write::Encoder<'static, File>),
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lines({})", self.path.display())
    }
}

impl Lines {
    fn create(path: &Path) -> Result<Self, CaptureError> {
        let open = || {
            let file = File::create(path)?;
            if path.extension().is_some_and(|ending| ending == "zst") {
                let encoder = zstd::stream::write::Encoder::new(file, ZSTD_LEVEL)?;
                return Ok(LineFile::Zstd(encoder));
            }
            Ok(LineFile::Plain(BufWriter::new(file)))
        };
        Ok(Self {
            file: open().map_err(at(path))?,
            path: path.to_path_buf(),
        })
    }

    fn write(&mut self, run: &str, rows: &[Row]) -> Result<(), CaptureError> {
        let out: &mut dyn Write = match &mut self.file {
            LineFile::Plain(file) => file,
            LineFile::Zstd(file) => file,
        };
        let mut write = || {
            for row in rows {
                serde_json::to_writer(&mut *out, &OutputLine { run, row })?;
                out.write_all(b"\n")?;
            }
            out.flush()
        };
        write().map_err(at(&self.path))
    }

    fn close(self) -> Result<(), CaptureError> {
        let closed: io::Result<()> = match self.file {
            LineFile::Plain(mut file) => file.flush(),
            LineFile::Zstd(file) => file.finish().map(drop),
        };
        closed.map_err(at(&self.path))
    }
}

/// One line, in lading's order of keys.
struct OutputLine<'r> {
    run: &'r str,
    row: &'r Row,
}

impl Serialize for OutputLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let row = self.row;
        let mut line = serializer.serialize_map(None)?;
        line.serialize_entry(schema::RUN_ID, self.run)?;
        line.serialize_entry(schema::TIME, &row.beat.wall_millis)?;
        line.serialize_entry(schema::FETCH_INDEX, &row.beat.index)?;
        line.serialize_entry(schema::METRIC_NAME, row.name.as_str())?;
        line.serialize_entry(schema::METRIC_KIND, row.kind.name())?;
        match &row.value {
            Value::Int(value) => line.serialize_entry(schema::VALUE, value)?,
            Value::Float(value) => line.serialize_entry(schema::VALUE, value)?,
            Value::Histogram(_) => line.serialize_entry(schema::VALUE, &0.0)?,
        }
        for (key, value) in row.labels.iter() {
            line.serialize_entry(key, value)?;
        }
        if let Value::Histogram(sketch) = &row.value {
            line.serialize_entry(schema::VALUE_HISTOGRAM, &STANDARD.encode(sketch))?;
        }
        line.end()
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> CaptureError {
    let path = path.to_path_buf();
    move |source| CaptureError { path, source }
}

/// 32 hexadecimal digits as lading writes names of runs.
fn hyphenated(digits: &str) -> String {
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if matches!(index, 8 | 12 | 16 | 20) {
            text.push('-');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests;
