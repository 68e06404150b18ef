//! Plain columns: one number a run.
//!
//! ```text
//! # one number a line,        or a table whose first line names its columns
//! 7.88 MiB/s                  run,throughput,p99
//! 7.86 MiB/s                  1,7.88 MiB/s,3.1 ms
//! 7.85 MiB/s                  2,7.86 MiB/s,3.0 ms
//! ```
//!
//! Cells are separated by commas, semicolons or tabs, as in the first line. Empty lines and lines that begin
//! with `#` are skipped.

use csv::Trim;

use super::FigureUnit;
use super::number::{NumberError, parse_number};
use super::seconds;

/// No table of runs has as many columns.
const COLUMNS_MAX: usize = 1000;
/// No column of runs is as long.
const ROWS_MAX: usize = 1_000_000;

/// The columns of one file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns {
    /// Those that hold numbers of runs, in the order of the file.
    pub columns: Vec<Column>,
    /// Those that do not: names of commits, times, numbers of runs.
    pub texts: Vec<TextColumn>,
    /// Reason why its rows seem not to be runs; `None` if there is none.
    pub not_runs: Option<String>,
}

/// One number a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name, if the file gives it one.
    pub name: Option<String>,
    /// Its unit.
    pub unit: FigureUnit,
    /// Finite, in base units, in the order of the file.
    pub values: Vec<f64>,
}

/// A column that holds no numbers of runs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TextColumn {
    /// Its name.
    pub name: String,
    /// Reason why it has no numbers.
    pub reason: String,
}

/// Reads a file of columns.
///
/// # Errors
/// [`ColumnsError`] with the line.
pub fn parse_columns(text: &str) -> Result<Columns, ColumnsError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = (1_u64..).zip(text.lines());
    let mut lines = lines.filter(|(_, line)| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#')
    });
    let Some((first, head)) = lines.next() else {
        return Err(ColumnsError::Empty);
    };
    let separator = [b'\t', b';', b',']
        .into_iter()
        .find(|separator| head.as_bytes().contains(separator));
    let mut rows = rows(text, separator.unwrap_or(b','));
    let Some((_, cells)) = rows.next() else {
        return Err(ColumnsError::Empty);
    };
    let numbers = cells
        .iter()
        .filter(|cell| parse_number(cell).is_ok())
        .count();
    if numbers == cells.len() {
        if cells.len() > 1 {
            return Err(ColumnsError::NoHeader { line: first });
        }
        return plain(std::iter::once((first, head)).chain(lines));
    }
    if cells.len() > COLUMNS_MAX {
        return Err(ColumnsError::TooLarge { line: first });
    }
    let mut table = Table::new(cells);
    for (line, cells) in rows {
        table.push(line, cells)?;
    }
    table.finish()
}

/// Parses `7.88MiB,7.86MiB`: a column on the command line. Returns `None` if a part is not a number, so it
/// must be something else, such as files.
///
/// # Errors
/// [`ColumnsError`] if the numbers do not fit together.
pub fn parse_inline(text: &str) -> Option<Result<Column, ColumnsError>> {
    let parts = text.split(',');
    let numbers: Result<Vec<_>, _> = parts.map(parse_number).collect();
    let numbers = numbers.ok()?;
    let mut column = ColumnFold::new(None);
    for (value, unit) in numbers {
        if let Err(problem) = column.push(1, value, unit) {
            return Some(Err(problem));
        }
    }
    Some(Ok(column.finish()))
}

/// A problem of a file with columns.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ColumnsError {
    /// Nothing in it.
    #[error("there is no number in it")]
    Empty,
    /// A cell of a plain column that is no number.
    #[error("line {line}: {problem}")]
    Number {
        /// Counted from 1.
        line: u64,
        /// The problem.
        problem: NumberError,
    },
    /// Several numbers in the first line.
    #[error(
        "line {line}: several numbers in a line, and no line above that names their columns (decimals are written with a point)"
    )]
    NoHeader {
        /// Counted from 1.
        line: u64,
    },
    /// No column of numbers.
    #[error("none of its columns holds numbers only: {reasons}")]
    NoNumbers {
        /// Reason for each column.
        reasons: String,
    },
    /// Another number of cells than the first line has.
    #[error("line {line}: {cells_found} cells, where the first line names {expected}")]
    Ragged {
        /// Counted from 1.
        line: u64,
        /// Cells in it.
        cells_found: usize,
        /// Columns.
        expected: usize,
    },
    /// More than runs could be.
    #[error(
        "line {line}: more than a million rows or a thousand columns, so its rows are not runs"
    )]
    TooLarge {
        /// Counted from 1.
        line: u64,
    },
    /// Numbers of several kinds.
    #[error("line {line}: a number of another unit than those above it")]
    Units {
        /// Counted from 1.
        line: u64,
    },
}

fn plain<'t>(lines: impl Iterator<Item = (u64, &'t str)>) -> Result<Columns, ColumnsError> {
    let mut column = ColumnFold::new(None);
    for (line, text) in lines {
        let (value, unit) =
            parse_number(text).map_err(|problem| ColumnsError::Number { line, problem })?;
        column.push(line, value, unit)?;
    }
    let column = column.finish();
    Ok(Columns {
        not_runs: seconds::follow_one_another(&column.values),
        columns: vec![column],
        texts: Vec::new(),
    })
}

/// The rows of a table with the numbers of their lines, without comments and empty lines. A
/// cell in double quotes may hold separators, line breaks and doubled quotes.
fn rows(text: &str, separator: u8) -> impl Iterator<Item = (u64, Vec<String>)> {
    let mut reader = csv::ReaderBuilder::new();
    reader.delimiter(separator).comment(Some(b'#'));
    reader.has_headers(false).flexible(true).trim(Trim::All);
    let records = reader.from_reader(text.as_bytes()).into_records();
    let rows = records.map(|record| {
        let record = record.expect("a text in memory can be read, and is UTF-8");
        let line = record.position().map_or(0, |place| line_of(text, place));
        (line, record.iter().map(str::to_owned).collect::<Vec<_>>())
    });
    rows.filter(|(_, cells)| cells.len() > 1 || cells.iter().any(|cell| !cell.is_empty()))
}

/// The line of a record that was read from `place`, where skipped lines may be.
fn line_of(text: &str, place: &csv::Position) -> u64 {
    let after = usize::try_from(place.byte())
        .ok()
        .and_then(|at| text.get(at..));
    let lines = after.unwrap_or_default().lines();
    let is_skipped = |line: &&str| line.is_empty() || line.starts_with('#');
    (place.line()..)
        .zip(lines.take_while(is_skipped))
        .last()
        .map_or_else(|| place.line(), |(line, _)| line + 1)
}

/// A table during parsing.
struct Table {
    names: Vec<String>,
    columns: Vec<Result<ColumnFold, TextColumn>>,
    /// Cells of columns with names or times of runs, as text.
    keys: Vec<Option<Vec<String>>>,
    rows: usize,
}

impl Table {
    fn new(names: Vec<String>) -> Self {
        let columns = names
            .iter()
            .map(|name| Ok(ColumnFold::new(Some(name.clone()))));
        let keys = names
            .iter()
            .map(|name| seconds::is_key(name).then(Vec::new));
        Self {
            columns: columns.collect(),
            keys: keys.collect(),
            names,
            rows: 0,
        }
    }

    fn push(&mut self, line: u64, cells: Vec<String>) -> Result<(), ColumnsError> {
        if cells.len() != self.names.len() {
            return Err(ColumnsError::Ragged {
                line,
                cells_found: cells.len(),
                expected: self.names.len(),
            });
        }
        self.rows += 1;
        if self.rows > ROWS_MAX {
            return Err(ColumnsError::TooLarge { line });
        }
        for (at, cell) in cells.into_iter().enumerate() {
            if let Some(key) = &mut self.keys[at] {
                key.push(cell);
                continue;
            }
            let Ok(column) = &mut self.columns[at] else {
                continue;
            };
            let number =
                parse_number(&cell).map_err(|problem| ColumnsError::Number { line, problem });
            let pushed = number.and_then(|(value, unit)| column.push(line, value, unit));
            if let Err(problem) = pushed {
                self.columns[at] = Err(TextColumn {
                    name: self.names[at].clone(),
                    reason: problem.to_string(),
                });
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Columns, ColumnsError> {
        if self.rows == 0 {
            return Err(ColumnsError::Empty);
        }
        let keys = self.names.iter().zip(&self.keys);
        let keys = keys.filter_map(|(name, key)| Some((name.as_str(), key.as_deref()?)));
        let mut not_runs = seconds::reason_from_keys(keys);
        let (mut columns, mut texts) = (Vec::new(), Vec::new());
        let parts = self.names.into_iter().zip(self.keys).zip(self.columns);
        for ((name, key), column) in parts {
            match column {
                _ if key.is_some() => {
                    let reason = "it identifies the row and is not a measurement".to_owned();
                    texts.push(TextColumn { name, reason });
                }
                Ok(column) => columns.push(column.finish()),
                Err(text) => texts.push(text),
            }
        }
        if columns.is_empty() {
            let reasons = texts.iter().take(3);
            let reasons = reasons.map(|text| format!("`{}`: {}", text.name, text.reason));
            let reasons = reasons.collect::<Vec<_>>().join("; ");
            return Err(ColumnsError::NoNumbers { reasons });
        }
        let mut followers = columns.iter().filter_map(|column| {
            let reason = seconds::follow_one_another(&column.values)?;
            let name = column.name.as_deref().unwrap_or_default();
            Some(format!("column `{name}`: {reason}"))
        });
        not_runs = not_runs.or_else(|| followers.next());
        drop(followers);
        Ok(Columns {
            columns,
            texts,
            not_runs,
        })
    }
}

/// One column during parsing.
struct ColumnFold {
    name: Option<String>,
    unit: Option<FigureUnit>,
    values: Vec<f64>,
}

impl ColumnFold {
    const fn new(name: Option<String>) -> Self {
        Self {
            name,
            unit: None,
            values: Vec::new(),
        }
    }

    fn push(&mut self, line: u64, value: f64, unit: FigureUnit) -> Result<(), ColumnsError> {
        if *self.unit.get_or_insert(unit) != unit {
            return Err(ColumnsError::Units { line });
        }
        if self.values.len() >= ROWS_MAX {
            return Err(ColumnsError::TooLarge { line });
        }
        self.values.push(value);
        Ok(())
    }

    fn finish(self) -> Column {
        Column {
            name: self.name,
            unit: self.unit.unwrap_or(FigureUnit::UNKNOWN),
            values: self.values,
        }
    }
}
