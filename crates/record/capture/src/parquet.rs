//! Rows as a Parquet file, without Arrow: a few columns of a few thousand rows
//! need no more than the format's own writer.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::{FileMetaData, ParquetMetaData, ParquetMetaDataWriter};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use stillwell_metric::Value;

use crate::journal::Row;
use crate::schema;

/// Rows kept in memory before they are written as one group: some megabytes, which come
/// and go every few minutes of a usual run. The writer keeps about 10 KiB for each group until the end, so
/// smaller groups make the memory of a run of hours grow.
const ROWS_WAITING_MAX: usize = 16_384;
/// By custom, of 1 to 22.
pub(crate) const COMPRESSION_LEVEL: i32 = 3;

/// The columns of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Columns {
    /// The schema in Parquet's own notation, with the columns of [`schema::MESSAGE_TYPE`].
    pub message: &'static str,
    /// The last two columns are there: phase and moment.
    pub has_phase: bool,
    /// A histogram has the value 0.0 beside it.
    pub is_zero_beside_histogram: bool,
}

impl Columns {
    /// The columns of a capture.
    pub const NATIVE: Self = Self {
        message: schema::MESSAGE_TYPE,
        has_phase: true,
        is_zero_beside_histogram: false,
    };
}

/// A Parquet file that grows; it can be read only once it is closed, or up to its
/// last [`SeriesFile::checkpoint`].
pub struct SeriesFile {
    columns: Columns,
    writer: SerializedFileWriter<File>,
    rows: Vec<Row>,
}

impl std::fmt::Debug for SeriesFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SeriesFile")
            .field("rows", &self.rows.len())
            .finish_non_exhaustive()
    }
}

impl SeriesFile {
    /// Begins the empty `file`, under zstd of `compression_level`.
    ///
    /// # Errors
    /// The kernel's answer; a level that zstd does not have.
    pub fn begin(file: File, columns: Columns, compression_level: i32) -> io::Result<Self> {
        let level = ZstdLevel::try_new(compression_level).map_err(to_io)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            // The bounds of each page would be kept in memory until the end, and grow.
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .build();
        let message = parse_message_type(columns.message).map_err(to_io)?;
        let writer = SerializedFileWriter::new(file, Arc::new(message), Arc::new(properties))
            .map_err(to_io)?;
        Ok(Self {
            columns,
            writer,
            rows: Vec::new(),
        })
    }

    /// Adds a row, which is kept in memory until the next group is written.
    pub fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Writes the rows in memory if there are many.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn flush_if_full(&mut self, run: &str) -> io::Result<()> {
        if self.rows.len() >= ROWS_WAITING_MAX {
            self.flush(run)?;
        }
        Ok(())
    }

    /// Writes what waits, and behind it an end by which the file can be read as
    /// far as it goes. What is written next takes the place of that end.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn checkpoint(&mut self, run: &str) -> io::Result<()> {
        self.flush(run)?;
        self.writer.flush()?;
        let groups = self.writer.flushed_row_groups().to_vec();
        let rows = groups.iter().map(|group| group.num_rows()).sum();
        let properties = self.writer.properties();
        let metadata = ParquetMetaData::new(
            FileMetaData::new(
                properties.writer_version().as_num(),
                rows,
                Some(properties.created_by().to_owned()),
                None,
                Arc::new(self.writer.schema_descr().clone()),
                None,
            ),
            groups,
        );
        let mut end = Vec::new();
        ParquetMetaDataWriter::new(&mut end, &metadata)
            .with_preserve_page_index_locations(false)
            .finish()
            .map_err(to_io)?;
        let at = self.writer.bytes_written() as u64;
        // Does not move the place where the writer goes on.
        self.writer.inner().write_all_at(&end, at)?;
        self.writer.inner().set_len(at + end.len() as u64)
    }

    /// Writes the rest, and makes the file whole and durable: a caller may then remove the lines that it was made of.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn close(mut self, run: &str) -> io::Result<()> {
        self.flush(run)?;
        self.writer.finish().map_err(to_io)?;
        // The end of a checkpoint may have been longer.
        let length = self.writer.bytes_written() as u64;
        self.writer.inner().set_len(length)?;
        self.writer.inner().sync_all()
    }

    fn flush(&mut self, run: &str) -> io::Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let columns = self.columns;
        let mut group = self.writer.next_row_group().map_err(to_io)?;
        write_columns(&mut group, run, &self.rows, columns).map_err(to_io)?;
        group.close().map_err(to_io)?;
        self.rows.clear();
        Ok(())
    }
}

/// Writes every column, in the order of the schema.
fn write_columns(
    group: &mut SerializedRowGroupWriter<'_, File>,
    run: &str,
    rows: &[Row],
    columns: Columns,
) -> Result<(), ParquetError> {
    texts(group, rows.iter().map(|_| run))?;
    integers(
        group,
        rows.iter().map(|row| Some(row.beat.wall_millis)),
        false,
    )?;
    integers(group, rows.iter().map(|row| Some(row.beat.index)), false)?;
    texts(group, rows.iter().map(|row| row.name.as_str()))?;
    texts(group, rows.iter().map(|row| row.kind.name()))?;
    let whole = |row: &Row| match row.value {
        Value::Int(value) => Some(value),
        _ => None,
    };
    integers(group, rows.iter().map(whole), true)?;
    floats(group, rows, columns)?;
    labels(group, rows, |(key, _)| key)?;
    labels(group, rows, |(_, value)| value)?;
    histograms(group, rows)?;
    if !columns.has_phase {
        return Ok(());
    }
    texts(group, rows.iter().map(|row| row.phase.name()))?;
    integers(
        group,
        rows.iter().map(|row| Some(row.beat.moment.as_u64())),
        false,
    )
}

/// Runs `write` on the next column of the group.
fn column(
    group: &mut SerializedRowGroupWriter<'_, File>,
    write: impl FnOnce(&mut ColumnWriter<'_>) -> Result<(), ParquetError>,
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("the schema has no further column".to_owned());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    write(column.untyped())?;
    column.close()
}

fn unexpected() -> ParquetError {
    ParquetError::General("a column is not of the kind that the schema says".to_owned())
}

fn texts<'a>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: impl Iterator<Item = &'a str>,
) -> Result<(), ParquetError> {
    let values: Vec<ByteArray> = values.map(ByteArray::from).collect();
    column(group, |column| match column {
        ColumnWriter::ByteArrayColumnWriter(writer) => {
            writer.write_batch(&values, None, None).map(drop)
        }
        _ => Err(unexpected()),
    })
}

/// Whole numbers; a missing one takes a definition level of 0.
fn integers(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: impl Iterator<Item = Option<u64>>,
    optional: bool,
) -> Result<(), ParquetError> {
    let values: Vec<Option<u64>> = values.collect();
    let levels: Vec<i16> = values.iter().map(|v| i16::from(v.is_some())).collect();
    let present: Vec<i64> = values.iter().flatten().map(|v| v.cast_signed()).collect();
    column(group, |column| match column {
        ColumnWriter::Int64ColumnWriter(writer) => writer
            .write_batch(&present, optional.then_some(&levels), None)
            .map(drop),
        _ => Err(unexpected()),
    })
}

fn floats(
    group: &mut SerializedRowGroupWriter<'_, File>,
    rows: &[Row],
    columns: Columns,
) -> Result<(), ParquetError> {
    let float = |row: &Row| match row.value {
        Value::Float(value) => Some(value),
        Value::Histogram(_) if columns.is_zero_beside_histogram => Some(0.0),
        _ => None,
    };
    let levels: Vec<i16> = rows.iter().map(|r| i16::from(float(r).is_some())).collect();
    let present: Vec<f64> = rows.iter().filter_map(float).collect();
    column(group, |column| match column {
        ColumnWriter::DoubleColumnWriter(writer) => {
            writer.write_batch(&present, Some(&levels), None).map(drop)
        }
        _ => Err(unexpected()),
    })
}

fn histograms(
    group: &mut SerializedRowGroupWriter<'_, File>,
    rows: &[Row],
) -> Result<(), ParquetError> {
    let bytes = |row: &Row| match &row.value {
        Value::Histogram(bytes) => Some(ByteArray::from(bytes.clone())),
        _ => None,
    };
    let values: Vec<Option<ByteArray>> = rows.iter().map(bytes).collect();
    let levels: Vec<i16> = values.iter().map(|v| i16::from(v.is_some())).collect();
    let present: Vec<ByteArray> = values.into_iter().flatten().collect();
    column(group, |column| match column {
        ColumnWriter::ByteArrayColumnWriter(writer) => {
            writer.write_batch(&present, Some(&levels), None).map(drop)
        }
        _ => Err(unexpected()),
    })
}

/// Keys or values of the label maps. A row's first label takes repetition level
/// 0 and its further ones 1; a row without labels takes definition level 0.
fn labels(
    group: &mut SerializedRowGroupWriter<'_, File>,
    rows: &[Row],
    side: impl for<'a> Fn((&'a str, &'a str)) -> &'a str,
) -> Result<(), ParquetError> {
    let (mut values, mut definitions, mut repetitions) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        let before = values.len();
        for pair in row.labels.iter() {
            repetitions.push(i16::from(values.len() > before));
            definitions.push(1);
            values.push(ByteArray::from(side(pair)));
        }
        if values.len() == before {
            repetitions.push(0);
            definitions.push(0);
        }
    }
    column(group, |column| match column {
        ColumnWriter::ByteArrayColumnWriter(writer) => writer
            .write_batch(&values, Some(&definitions), Some(&repetitions))
            .map(drop),
        _ => Err(unexpected()),
    })
}

/// An error of Parquet as one of input and output.
#[must_use]
pub fn to_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(inner) => io::Error::other(inner),
        },
        other => io::Error::other(other),
    }
}
