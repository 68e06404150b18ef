//! Captures that lading wrote, and the `*.captures` of older soaks.
//!
//! A file holds one line (JSONL, also under zstd) or one row (Parquet) for each metric, set of labels and tick.
//! [`read_lading`] reads it once and keeps only the requested series, summed over their labels. So memory does
//! not grow with other series. lading's files do not mark the end of warm-up: callers pass the start of a
//! number's range. Files of [`LadingWriter`] have the marker [`PHASE_MARKER`](crate::series::PHASE_MARKER): see
//! [`CaptureRun::measured`].
//! ```text
//! {"run_id":"…","time":1700000000000,"fetch_index":7,"metric_name":"bytes_written",
//!  "metric_kind":"counter","value":1048576,"component":"generator","id":"intake"}
//! ```

mod fold;
mod lines;
mod output;
mod sketch;
mod survey;
mod table;
mod ticks;
mod validate;

use std::collections::BTreeSet;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use stillwell_capture::rows::{JOURNAL, SERIES};
use stillwell_config::files::open_input;
use stillwell_metric::{Kind, Labels, Value};

pub use fold::{CaptureRun, LadingSeries, LadingTick, SeriesProblem, SeriesWanted};
pub use output::{LadingLayout, LadingOutput, LadingWriter};
pub use survey::{MetricList, MetricSurvey, SeriesSurvey, list_metrics, survey_metric};
pub use validate::{Validity, Violation, validate};

use fold::Fold;

/// Number of bytes at the start of a file that identify its format.
pub const SNIFF_BYTES: usize = 8192;

/// Limit on points of one file: 300 runs of an hour with four series each.
const POINTS_MAX: usize = 1 << 22;
/// Limit on runs of one file.
const RUNS_MAX: usize = 10_000;
/// Limit on names of other metrics, for the message about a missing one.
const NAMES_MAX: usize = 2_000;

/// Content of one file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LadingCapture {
    /// Runs in the order of their first sample; usually one.
    pub runs: Vec<CaptureRun>,
    /// Reason for a missing end, if the writer was killed.
    pub cut: Option<String>,
    /// Names of all metrics in it, at most two thousand.
    pub metrics: BTreeSet<String>,
}

/// Format of a capture.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LadingFormat {
    /// One JSON object a line.
    Jsonl,
    /// The same, compressed.
    JsonlZstd,
    /// A table.
    Parquet,
}

impl LadingFormat {
    /// The format of a file that begins with `start`, its first [`SNIFF_BYTES`]
    /// or fewer; `None` if it is no capture.
    #[must_use]
    pub fn sniff(start: &[u8]) -> Option<Self> {
        if start.starts_with(b"PAR1") {
            return Some(Self::Parquet);
        }
        if start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            return Some(Self::JsonlZstd);
        }
        let first = start.split(|byte| *byte == b'\n');
        let first = first
            .map(<[u8]>::trim_ascii)
            .find(|line| !line.is_empty())?;
        let named = b"\"metric_name\"";
        let is_line =
            first.starts_with(b"{") && first.windows(named.len()).any(|window| window == named);
        is_line.then_some(Self::Jsonl)
    }
}

/// A capture of lading could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LadingError {
    /// The file could not be read.
    #[error("read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system or the decoder.
        source: io::Error,
    },
    /// The file is not a capture in a known format.
    #[error("{} is not a lading capture: it has neither JSON lines with a `metric_name` nor Parquet", path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
    },
    /// A line that is none of a capture, and not the last.
    #[error("line {line} of {} is not a line of a capture: {problem}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: u64,
        /// Description of the problem.
        problem: String,
    },
    /// A Parquet file whose writer was killed.
    #[error("{} has no footer: its writer was killed, and a Parquet file is unreadable without one", path.display())]
    NoFooter {
        /// The file.
        path: PathBuf,
    },
    /// The Parquet file has another schema, or is damaged.
    #[error("{} is not a Parquet capture: {problem}", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// Description of the problem.
        problem: String,
    },
    /// More than would be kept.
    #[error("{} holds more than {limit}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Description of the limit.
        limit: &'static str,
    },
    /// There is no complete sample.
    #[error("{} holds no sample", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// Reads the series `wanted` of the capture at `path`. An incomplete last line is skipped with its tick, and
/// reported in [`LadingCapture::cut`].
///
/// # Errors
/// [`LadingError`] with the file, and the line if there is one.
pub fn read_lading(path: &Path, wanted: &SeriesWanted) -> Result<LadingCapture, LadingError> {
    let mut fold = Fold::new(wanted);
    let read = open(path, lines::sample, table::sample, &mut |sample| {
        fold.push(sample)
    });
    let cut = read.map_err(|problem| problem.at(path))?;
    fold.finish(cut).map_err(|problem| problem.at(path))
}

/// One row of a capture, with all of its labels.
#[derive(Clone, Debug, PartialEq)]
pub struct LadingRow {
    /// The name of its run.
    pub run_id: String,
    /// The number of its tick.
    pub tick: u64,
    /// Wall clock: milliseconds since 1970.
    pub wall_millis: u64,
    /// The metric.
    pub metric: String,
    /// Kind of its values.
    pub kind: Kind,
    /// Its labels.
    pub labels: Labels,
    /// The value; of a histogram its bytes as they are kept.
    pub value: Value,
}

/// Visits the rows of the capture at `path`, in order: a file of lading, or a capture folder of Stillwell.
/// Returns the reason for a missing end, if it is missing.
///
/// # Errors
/// [`LadingError`] with the file, and the line if there is one.
pub fn visit_lading(
    path: &Path,
    visit: &mut dyn FnMut(LadingRow),
) -> Result<Option<String>, LadingError> {
    let read = open(path, lines::row, table::row, &mut |row| {
        visit(row);
        Ok(())
    });
    read.map_err(|problem| problem.at(path))
}

/// Reads the file at `path`, or the file in the folder there, each line or row by its function. If a table's
/// writer was killed, its journal is read.
fn open<T>(
    path: &Path,
    parse_line: impl Fn(&[u8]) -> Result<T, String>,
    parse_row: impl Fn(&parquet::record::Row) -> Option<T>,
    take: &mut dyn FnMut(T) -> Result<(), Problem>,
) -> Result<Option<String>, Problem> {
    let (file, is_journal) = file_of(path);
    let cut = read_file(&file, parse_line, parse_row, take)?;
    let killed = || "its writer was killed, and its journal was read instead".to_owned();
    Ok(cut.or_else(|| is_journal.then(killed)))
}

fn read_file<T>(
    file: &Path,
    parse_line: impl Fn(&[u8]) -> Result<T, String>,
    parse_row: impl Fn(&parquet::record::Row) -> Option<T>,
    take: &mut dyn FnMut(T) -> Result<(), Problem>,
) -> Result<Option<String>, Problem> {
    let open = || open_input(file).map_err(Problem::Read);
    let mut start = Vec::new();
    let sniff_bytes = SNIFF_BYTES as u64;
    open()?
        .take(sniff_bytes)
        .read_to_end(&mut start)
        .map_err(Problem::Read)?;
    match LadingFormat::sniff(&start) {
        Some(LadingFormat::Jsonl) => lines::read(BufReader::new(open()?), parse_line, take),
        Some(LadingFormat::JsonlZstd) => {
            let decoder = zstd::stream::read::Decoder::new(open()?).map_err(Problem::Read)?;
            lines::read(BufReader::new(decoder), parse_line, take)
        }
        Some(LadingFormat::Parquet) => table::read(open()?, parse_row, take),
        None if start.trim_ascii().is_empty() => Err(Problem::Empty),
        None => Err(Problem::Unknown),
    }
}

/// Returns the file to read for `path`, and true if it is the journal of an incomplete table.
fn file_of(path: &Path) -> (PathBuf, bool) {
    let (table, journal) = if path.is_dir() {
        (path.join(SERIES), path.join(JOURNAL))
    } else {
        (path.to_path_buf(), output::journal_of(path))
    };
    if journal.exists() && !is_replaced(&table, &journal) {
        (journal, true)
    } else {
        (table, false)
    }
}

/// Returns true if `table` is readable and has another run than `journal`. A run truncates the table after
/// it began its journal, so a readable table of another run is newer: its writer left the journal of a
/// killed run where it was.
fn is_replaced(table: &Path, journal: &Path) -> bool {
    let run = first_run(table);
    run.is_some() && run != first_run(journal)
}

/// Returns the run of the first row of `file`; `None` without a readable row.
fn first_run(file: &Path) -> Option<String> {
    let mut run = None;
    let read = read_file(file, lines::row, table::row, &mut |row| {
        run.get_or_insert(row.run_id);
        // An error ends the reading: one row is enough.
        Err(Problem::Empty)
    });
    drop(read);
    run
}

/// One value of a file.
#[derive(Clone, Debug, PartialEq)]
struct Sample {
    run_id: String,
    tick: u64,
    wall_millis: u64,
    metric: String,
    kind: Kind,
    id: Option<String>,
    experiment: Option<String>,
    variant: Option<String>,
    phase: Option<String>,
    /// `None` for histograms, whose sketches are not read.
    value: Option<f64>,
}

/// An error before the file is known.
#[derive(Debug)]
enum Problem {
    Empty,
    Line { line: u64, problem: String },
    NoFooter,
    Read(io::Error),
    Table(String),
    TooLarge(&'static str),
    Unknown,
}

impl Problem {
    fn at(self, path: &Path) -> LadingError {
        let path = path.to_path_buf();
        match self {
            Self::Empty => LadingError::Empty { path },
            Self::Line { line, problem } => LadingError::Line {
                path,
                line,
                problem,
            },
            Self::NoFooter => LadingError::NoFooter { path },
            Self::Read(source) => LadingError::Read { path, source },
            Self::Table(problem) => LadingError::Table { path, problem },
            Self::TooLarge(limit) => LadingError::TooLarge { path, limit },
            Self::Unknown => LadingError::Unknown { path },
        }
    }
}

#[cfg(test)]
mod tests;
