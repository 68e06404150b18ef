//! Reads a capture, whole or not.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, MapAccessor, Row as ParquetRow, RowAccessor};
use stillwell_metric::{Beat, Kind, Labels, SeriesName, Value};
use stillwell_plan::Phase;
use stillwell_units::Moment;

use crate::journal::{self, Row};
use crate::manifest::{EventRecord, Manifest};
use crate::parquet::to_io;
use crate::schema;
use crate::series::{Point, SeriesTable};
use crate::write::{EVENTS, JOURNAL, MANIFEST, SERIES};

/// A capture could not be read.
#[derive(Debug, thiserror::Error)]
#[error("read {}", path.display())]
pub struct OpenError {
    /// The file.
    pub path: PathBuf,
    /// Cause.
    pub source: io::Error,
}

/// The capture of one run.
#[derive(Debug)]
pub struct Capture {
    /// Record of the run without its series.
    pub manifest: Manifest,
    /// Its series.
    pub series: SeriesTable,
    /// Events of the run.
    pub events: Vec<EventRecord>,
}

impl Manifest {
    /// Reads the manifest of the capture in `folder`.
    ///
    /// # Errors
    /// [`OpenError`] with the file and what was wrong with it.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        let path = folder.join(MANIFEST);
        fs::read(&path)
            .and_then(|bytes| serde_json::from_slice(&bytes).map_err(io::Error::from))
            .map_err(at(&path))
    }

    /// Returns true if `folder` has no manifest, or the one of a run, also of another version: a new run replaces it.
    #[must_use]
    pub fn can_replace(folder: &Path) -> bool {
        can_replace(folder, |schema| schema.starts_with("stillwell/run/"))
    }
}

impl Capture {
    /// Reads the capture in `folder`. One whose writer was killed is read from
    /// its journal, up to the last whole line.
    ///
    /// # Errors
    /// [`OpenError`] with the file and what was wrong with it.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        let manifest = Manifest::open(folder)?;
        let mut series = SeriesTable::default();
        // A row is several times as large as its point, so rows are not kept.
        read_rows(folder, &mut |row| push(&mut series, row))?;
        let path = folder.join(EVENTS);
        let events = read_events(&path).map_err(at(&path))?;
        Ok(Self {
            manifest,
            series,
            events,
        })
    }
}

/// Returns true if `folder` has no manifest, or one in a regular file whose schema `is_replaced` accepts.
pub(crate) fn can_replace(folder: &Path, is_replaced: impl FnOnce(&str) -> bool) -> bool {
    match fs::symlink_metadata(folder.join(MANIFEST)) {
        Ok(metadata) => metadata.is_file() && has_schema(folder, is_replaced),
        // There is none, or the folder cannot be used at all.
        Err(_) => true,
    }
}

/// Returns true if the manifest in `folder` has a schema that `is_accepted` accepts. The rest may be damaged.
pub(crate) fn has_schema(folder: &Path, is_accepted: impl FnOnce(&str) -> bool) -> bool {
    let path = folder.join(MANIFEST);
    // Reading from a pipe would wait.
    let bytes = path.is_file().then(|| fs::read(&path).ok()).flatten();
    bytes
        .and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok())
        .is_some_and(|manifest| manifest["schema"].as_str().is_some_and(is_accepted))
}

/// Passes the rows of the capture in `folder` to `take`, one by one. They are from its journal if its
/// writer was killed. After an error, they are not the whole capture.
pub(crate) fn read_rows(folder: &Path, take: &mut impl FnMut(Row)) -> Result<(), OpenError> {
    let path = folder.join(JOURNAL);
    if path.exists() {
        return read_journal(&path, take).map_err(at(&path));
    }
    let path = folder.join(SERIES);
    read_parquet(&path, take).map_err(at(&path))
}

fn push(series: &mut SeriesTable, row: Row) {
    let point = Point {
        moment: row.beat.moment,
        phase: row.phase,
        value: row.value,
    };
    series.push(row.name, row.kind, row.labels, point);
}

fn read_journal(path: &Path, take: &mut impl FnMut(Row)) -> io::Result<()> {
    // Bytes, since a last line may be cut within a character.
    for line in BufReader::new(File::open(path)?).split(b'\n') {
        if let Some(row) = journal::parse(&line?) {
            take(row);
        }
    }
    Ok(())
}

pub(crate) fn read_events(path: &Path) -> io::Result<Vec<EventRecord>> {
    let bytes = fs::read(path)?;
    let lines = bytes.split(|byte| *byte == b'\n');
    // A last line that was cut is left out.
    let events = lines.filter_map(|line| serde_json::from_slice(line).ok());
    Ok(events.collect())
}

/// Passes the rows of the file at `path` to `take`, one by one.
pub(crate) fn read_parquet(path: &Path, take: &mut impl FnMut(Row)) -> io::Result<()> {
    let reader = SerializedFileReader::new(File::open(path)?).map_err(to_io)?;
    for row in reader.get_row_iter(None).map_err(to_io)? {
        let row = row.map_err(to_io)?;
        take(parse_row(&row).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "a row is not of this schema")
        })?);
    }
    Ok(())
}

/// Columns are in the order of the schema.
fn parse_row(row: &ParquetRow) -> Option<Row> {
    let column = |name: &str| row.get_column_iter().find(|(column, _)| *column == name);
    let at = |name: &str| column(name).map(|(_, field)| field);
    let text = |name: &str| match at(name)? {
        Field::Str(text) => Some(text.as_str()),
        _ => None,
    };
    let number = |name: &str| match at(name)? {
        Field::ULong(number) => Some(*number),
        Field::Long(number) | Field::TimestampMillis(number) => u64::try_from(*number).ok(),
        _ => None,
    };
    let value = match (at(schema::VALUE_INT)?, at(schema::VALUE_FLOAT)?) {
        (Field::ULong(value), _) => Value::Int(*value),
        (_, Field::Double(value)) => Value::Float(*value),
        _ => match at(schema::VALUE_HISTOGRAM)? {
            Field::Bytes(bytes) => Value::Histogram(bytes.data().to_vec()),
            _ => return None,
        },
    };
    Some(Row {
        beat: Beat {
            index: number(schema::FETCH_INDEX)?,
            moment: Moment::new(number(schema::MOMENT_NS)?),
            wall_millis: number(schema::TIME)?,
        },
        phase: Phase::from_name(text(schema::PHASE)?)?,
        name: SeriesName::recorded(text(schema::METRIC_NAME)?.to_owned()),
        kind: Kind::from_name(text(schema::METRIC_KIND)?)?,
        labels: parse_labels(row)?,
        value,
    })
}

fn parse_labels(row: &ParquetRow) -> Option<Labels> {
    const POSITION: usize = 7;
    let map = row.get_map(POSITION).ok()?;
    let (keys, values) = (map.get_keys(), map.get_values());
    (0..map.len())
        .map(|index| {
            let key = keys.get_string(index).ok()?;
            let value = values.get_string(index).ok()?;
            Some((key.clone(), value.clone()))
        })
        .collect()
}

pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> OpenError + '_ {
    |source| OpenError {
        path: path.to_path_buf(),
        source,
    }
}
