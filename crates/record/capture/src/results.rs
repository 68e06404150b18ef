//! Results of several targets as one Parquet file: a row for each target, run and
//! metric. docs/formats/results.md says what each column is.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::parquet::{COMPRESSION_LEVEL, to_io};

/// The columns, in this order.
const MESSAGE_TYPE: &str = "
message results {
    required binary suite (STRING);
    required int64 started (TIMESTAMP(MILLIS, true));
    required binary experiment (STRING);
    required binary target (STRING);
    optional binary version (STRING);
    required binary run_id (STRING);
    required int32 block (INTEGER(32, false));
    required int32 position (INTEGER(32, false));
    required binary outcome (STRING);
    optional binary durability (STRING);
    optional binary delivery (STRING);
    required binary metric (STRING);
    required binary unit (STRING);
    required double value;
    optional binary warning (STRING);
}
";

/// Values common to all metrics of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultRun {
    /// The name under which it was run.
    pub suite: String,
    /// Wall clock when that began: milliseconds since 1970.
    pub started_wall_millis: u64,
    /// The experiment.
    pub experiment: String,
    /// The target.
    pub target: String,
    /// Version that the target reports.
    pub version: Option<String>,
    /// The run's id.
    pub run: String,
    /// Its block, from 1 on.
    pub block: u32,
    /// Its place within the block, from 0 on.
    pub position: u32,
    /// Outcome of the run.
    pub outcome: String,
    /// Durability that its configuration claims.
    pub durability: Option<String>,
    /// Delivery guarantee of its events.
    pub delivery: Option<String>,
}

/// One number of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultRow {
    /// The run.
    pub run: Arc<ResultRun>,
    /// Name of the metric.
    pub metric: String,
    /// In what: a base unit, such as `B/s`.
    pub unit: String,
    /// Value of the metric.
    pub value: f64,
    /// Warning, if the value is unreliable.
    pub warning: Option<String>,
}

/// Writes `rows` to `out`, one file.
///
/// # Errors
/// What `out` answers.
pub fn write_results(rows: &[ResultRow], out: impl Write + Send) -> io::Result<()> {
    let level = ZstdLevel::try_new(COMPRESSION_LEVEL).map_err(to_io)?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .build();
    let message = parse_message_type(MESSAGE_TYPE).map_err(to_io)?;
    let mut writer =
        SerializedFileWriter::new(out, Arc::new(message), Arc::new(properties)).map_err(to_io)?;
    let mut group = writer.next_row_group().map_err(to_io)?;
    let moment = |millis: u64| i64::try_from(millis).unwrap_or(i64::MAX);
    // The format keeps unsigned numbers in the bits of signed ones.
    let number = |value: u32| i32::from_le_bytes(value.to_le_bytes());
    text(&mut group, rows, |row| Some(&row.run.suite), false)?;
    column(&mut group, |writer| match writer {
        ColumnWriter::Int64ColumnWriter(writer) => {
            let values: Vec<i64> = rows
                .iter()
                .map(|row| moment(row.run.started_wall_millis))
                .collect();
            writer.write_batch(&values, None, None).map(drop)
        }
        _ => Ok(()),
    })?;
    text(&mut group, rows, |row| Some(&row.run.experiment), false)?;
    text(&mut group, rows, |row| Some(&row.run.target), false)?;
    text(&mut group, rows, |row| row.run.version.as_ref(), true)?;
    text(&mut group, rows, |row| Some(&row.run.run), false)?;
    for of in [|run: &ResultRun| run.block, |run: &ResultRun| run.position] {
        column(&mut group, |writer| match writer {
            ColumnWriter::Int32ColumnWriter(writer) => {
                let values: Vec<i32> = rows.iter().map(|row| number(of(&row.run))).collect();
                writer.write_batch(&values, None, None).map(drop)
            }
            _ => Ok(()),
        })?;
    }
    text(&mut group, rows, |row| Some(&row.run.outcome), false)?;
    text(&mut group, rows, |row| row.run.durability.as_ref(), true)?;
    text(&mut group, rows, |row| row.run.delivery.as_ref(), true)?;
    text(&mut group, rows, |row| Some(&row.metric), false)?;
    text(&mut group, rows, |row| Some(&row.unit), false)?;
    column(&mut group, |writer| match writer {
        ColumnWriter::DoubleColumnWriter(writer) => {
            let values: Vec<f64> = rows.iter().map(|row| row.value).collect();
            writer.write_batch(&values, None, None).map(drop)
        }
        _ => Ok(()),
    })?;
    text(&mut group, rows, |row| row.warning.as_ref(), true)?;
    group.close().map_err(to_io)?;
    writer.close().map(drop).map_err(to_io)
}

/// Writes the next column, which holds text; nulls only where it `may_lack` any.
fn text<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[ResultRow],
    of: impl Fn(&ResultRow) -> Option<&String>,
    may_lack: bool,
) -> io::Result<()> {
    column(group, |writer| match writer {
        ColumnWriter::ByteArrayColumnWriter(writer) => {
            let cells: Vec<Option<&String>> = rows.iter().map(of).collect();
            let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
            let values = cells.into_iter().flatten();
            let values: Vec<ByteArray> = values.map(|cell| cell.as_str().into()).collect();
            let levels = may_lack.then_some(levels.as_slice());
            writer.write_batch(&values, levels, None).map(drop)
        }
        _ => Ok(()),
    })
}

fn column<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    write: impl FnOnce(&mut ColumnWriter<'_>) -> Result<(), parquet::errors::ParquetError>,
) -> io::Result<()> {
    let Some(mut column) = group.next_column().map_err(to_io)? else {
        return Ok(());
    };
    write(column.untyped()).map_err(to_io)?;
    column.close().map_err(to_io)
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;

    #[test]
    fn rows_are_read_as_they_were_written() {
        let run = |target: &str, version: Option<&str>| {
            Arc::new(ResultRun {
                suite: "one".to_owned(),
                started_wall_millis: 1_000,
                experiment: "tcp".to_owned(),
                target: target.to_owned(),
                version: version.map(str::to_owned),
                block: 2,
                ..ResultRun::default()
            })
        };
        let row = |run: &Arc<ResultRun>, value, warning: Option<&str>| ResultRow {
            run: Arc::clone(run),
            metric: "accepted".to_owned(),
            unit: "B/s".to_owned(),
            value,
            warning: warning.map(str::to_owned),
        };
        let (ash, birch) = (run("ash", Some("1.2")), run("birch", None));
        let rows = [row(&ash, 1.5, None), row(&birch, -2.0, Some("busy"))];
        let mut file = Vec::new();
        write_results(&rows, &mut file).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(file)).unwrap();
        let read: Vec<String> = reader
            .get_row_iter(None)
            .unwrap()
            .map(|row| row.unwrap().to_string())
            .collect();
        assert_eq!(read.len(), 2);
        for expected in [
            "suite: \"one\"",
            "version: \"1.2\"",
            "block: 2",
            "value: 1.5",
            "warning: null",
        ] {
            assert!(read[0].contains(expected), "{expected}: {}", read[0]);
        }
        for expected in [
            "target: \"birch\"",
            "version: null",
            "value: -2E0",
            "warning: \"busy\"",
        ] {
            assert!(read[1].contains(expected), "{expected}: {}", read[1]);
        }
    }

    #[test]
    fn no_rows_are_a_file_as_well() {
        let mut file = Vec::new();
        write_results(&[], &mut file).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(file)).unwrap();
        assert_eq!(reader.get_row_iter(None).unwrap().count(), 0);
    }
}
