//! Captures as Parquet.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use parquet::schema::types::Type;
use stillwell_metric::{Kind, Labels, Value};
use stillwell_units::float_from_u64;

use super::{LadingRow, Problem, Sample};
use stillwell_capture::schema;

/// Columns that are read.
const COLUMNS: [&str; 9] = [
    schema::RUN_ID,
    schema::TIME,
    schema::FETCH_INDEX,
    schema::METRIC_NAME,
    schema::METRIC_KIND,
    schema::VALUE_INT,
    schema::VALUE_FLOAT,
    schema::LABELS,
    schema::VALUE_HISTOGRAM,
];
const MAGIC: &[u8; 4] = b"PAR1";

/// Reads all rows, each by `parse`. A Parquet file is whole or not readable.
pub(super) fn read<T>(
    mut file: File,
    parse: impl Fn(&Row) -> Option<T>,
    take: &mut dyn FnMut(T) -> Result<(), Problem>,
) -> Result<Option<String>, Problem> {
    if !ends_with_magic(&mut file).map_err(Problem::Read)? {
        return Err(Problem::NoFooter);
    }
    // The decoder panics on contradictory pages. Rows that were read until then are discarded.
    catch_unwind(AssertUnwindSafe(|| read_rows(file, parse, take))).unwrap_or_else(|_| {
        let problem = "it is damaged: the decoder cannot read it";
        Err(Problem::Table(problem.to_owned()))
    })?;
    Ok(None)
}

fn read_rows<T>(
    file: File,
    parse: impl Fn(&Row) -> Option<T>,
    take: &mut dyn FnMut(T) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let length = file.metadata().map_err(Problem::Read)?.len();
    let reader = SerializedFileReader::new(file).map_err(damaged)?;
    check_places(reader.metadata(), length)?;
    let projection = projection(reader.metadata().file_metadata().schema())?;
    for row in reader.get_row_iter(Some(projection)).map_err(damaged)? {
        let row = row.map_err(damaged)?;
        let row = parse(&row).ok_or_else(|| {
            Problem::Table("a row lacks its run, time, name, kind or value".to_owned())
        })?;
        take(row)?;
    }
    Ok(())
}

fn ends_with_magic(file: &mut File) -> std::io::Result<bool> {
    let length = file.metadata()?.len();
    let mut end = [0_u8; 4];
    if length < 12 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-4))?;
    file.read_exact(&mut end)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(&end == MAGIC)
}

/// Refuses columns outside of the file: the decoder does not check their positions.
fn check_places(metadata: &ParquetMetaData, length: u64) -> Result<(), Problem> {
    let inside = |offset: i64, bytes: i64| {
        let end = u64::try_from(offset).ok().zip(u64::try_from(bytes).ok());
        let end = end.and_then(|(offset, bytes)| offset.checked_add(bytes));
        end.is_some_and(|end| end <= length)
    };
    let groups = metadata.row_groups().iter();
    let mut columns = groups.flat_map(|group| group.columns());
    let fits = columns.all(|column| {
        let start = column.dictionary_page_offset();
        let start = start.unwrap_or_else(|| column.data_page_offset());
        inside(start, column.compressed_size()) && inside(column.data_page_offset(), 0)
    });
    if fits {
        Ok(())
    } else {
        Err(Problem::Table(
            "the position of a column is outside the file".to_owned(),
        ))
    }
}

fn projection(whole: &Type) -> Result<Type, Problem> {
    let fields: Vec<Arc<Type>> = whole
        .get_fields()
        .iter()
        .filter(|field| COLUMNS.contains(&field.name()))
        .cloned()
        .collect();
    for needed in [
        schema::FETCH_INDEX,
        schema::METRIC_NAME,
        schema::METRIC_KIND,
    ] {
        if !fields.iter().any(|field| field.name() == needed) {
            return Err(Problem::Table(format!("there is no column `{needed}`")));
        }
    }
    Type::group_type_builder(whole.name())
        .with_fields(fields)
        .build()
        .map_err(damaged)
}

fn damaged(error: ParquetError) -> Problem {
    match stillwell_capture::rows::to_io(error) {
        error if error.kind() == std::io::ErrorKind::Other => Problem::Table(error.to_string()),
        error => Problem::Read(error),
    }
}

pub(super) fn sample(row: &Row) -> Option<Sample> {
    let mut read = Sample {
        run_id: String::new(),
        tick: 0,
        wall_millis: 0,
        metric: String::new(),
        kind: Kind::Histogram,
        id: None,
        experiment: None,
        variant: None,
        phase: None,
        value: None,
    };
    let mut has_kind = false;
    for (name, field) in row.get_column_iter() {
        match name.as_str() {
            schema::RUN_ID => read.run_id = text(field)?.to_owned(),
            schema::TIME => read.wall_millis = whole(field)?,
            schema::FETCH_INDEX => read.tick = whole(field)?,
            schema::METRIC_NAME => text(field)?.clone_into(&mut read.metric),
            schema::METRIC_KIND => {
                read.kind = Kind::from_name(&text(field)?.to_ascii_lowercase())?;
                has_kind = true;
            }
            schema::VALUE_INT | schema::VALUE_FLOAT => {
                read.value = number(field).or(read.value);
            }
            schema::LABELS => labels(field, &mut read),
            _ => {}
        }
    }
    if read.kind == Kind::Histogram {
        read.value = None;
    } else if read.value.is_none() {
        return None;
    }
    has_kind.then_some(read)
}

/// A row with all of its labels.
pub(super) fn row(row: &Row) -> Option<LadingRow> {
    let mut read = LadingRow {
        run_id: String::new(),
        tick: 0,
        wall_millis: 0,
        metric: String::new(),
        kind: Kind::Histogram,
        labels: Labels::none(),
        value: Value::Float(f64::NAN),
    };
    let (mut has_kind, mut sketch) = (false, None);
    for (name, field) in row.get_column_iter() {
        match name.as_str() {
            schema::RUN_ID => read.run_id = text(field)?.to_owned(),
            schema::TIME => read.wall_millis = whole(field)?,
            schema::FETCH_INDEX => read.tick = whole(field)?,
            schema::METRIC_NAME => text(field)?.clone_into(&mut read.metric),
            schema::METRIC_KIND => {
                read.kind = Kind::from_name(&text(field)?.to_ascii_lowercase())?;
                has_kind = true;
            }
            schema::VALUE_INT | schema::VALUE_FLOAT => {
                let value = whole(field).map(Value::Int);
                let value = value.or_else(|| number(field).map(Value::Float));
                read.value = value.unwrap_or(read.value);
            }
            schema::LABELS => read.labels = all_labels(field),
            schema::VALUE_HISTOGRAM => sketch = bytes(field),
            _ => {}
        }
    }
    if let Some(sketch) = sketch {
        read.value = Value::Histogram(sketch);
    }
    has_kind.then_some(read)
}

fn all_labels(field: &Field) -> Labels {
    let Field::MapInternal(map) = field else {
        return Labels::none();
    };
    let pair =
        |(key, value): &(Field, Field)| Some((text(key)?.to_owned(), text(value)?.to_owned()));
    map.entries().iter().filter_map(pair).collect()
}

fn bytes(field: &Field) -> Option<Vec<u8>> {
    match field {
        Field::Bytes(bytes) => Some(bytes.data().to_vec()),
        _ => None,
    }
}

fn labels(field: &Field, read: &mut Sample) {
    let Field::MapInternal(map) = field else {
        return;
    };
    for (key, value) in map.entries() {
        let (Some(key), Some(value)) = (text(key), text(value)) else {
            continue;
        };
        match key {
            "id" => read.id = Some(value.to_owned()),
            "experiment" => read.experiment = Some(value.to_owned()),
            "variant" => read.variant = Some(value.to_owned()),
            schema::PHASE => read.phase = Some(value.to_owned()),
            _ => {}
        }
    }
}

fn text(field: &Field) -> Option<&str> {
    match field {
        Field::Str(text) => Some(text),
        Field::Bytes(bytes) => bytes.as_utf8().ok(),
        _ => None,
    }
}

fn whole(field: &Field) -> Option<u64> {
    match field {
        Field::ULong(number) => Some(*number),
        Field::UInt(number) => Some(u64::from(*number)),
        Field::Long(number) | Field::TimestampMillis(number) => u64::try_from(*number).ok(),
        Field::TimestampMicros(number) => u64::try_from(*number / 1000).ok(),
        Field::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

fn number(field: &Field) -> Option<f64> {
    match field {
        Field::Double(number) => Some(*number),
        Field::Float(number) => Some(f64::from(*number)),
        field => whole(field).map(float_from_u64),
    }
}
