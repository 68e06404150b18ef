//! Tables of published measurements of programs side by side, and their contradictions.
//!
//! Nothing is known of how they were measured, so only contradictions can be
//! found: with other tables, with the name of the test, with themselves.

use crate::limits;

/// A table that others made.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedTable {
    /// Name of the test.
    pub title: String,
    /// The programs.
    pub columns: Vec<String>,
    /// One for each metric.
    pub rows: Vec<ImportedRow>,
    /// Explanations below it, such as versions: names and meanings.
    pub legend: Vec<(String, String)>,
}

/// One metric.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedRow {
    /// Its name, as written.
    pub metric: String,
    /// One for each program.
    pub cells: Vec<ImportedCell>,
}

/// One number.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedCell {
    /// The text as written, without a mark.
    pub text: String,
    /// In bytes where it has such a unit; `None` where it is none.
    pub value: Option<f64>,
    /// True if it was marked as the best.
    pub is_best: bool,
}

impl ImportedCell {
    /// Reads `251.7MiB/s W`, `4.1gib`, `1910`, `12 (+3%)`.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let text = text.trim();
        let (bare, is_best) = match text.strip_suffix('W').map(str::trim_end) {
            Some(bare) if bare.len() < text.len() - 1 => (bare, true),
            _ => (text, false),
        };
        let number = bare.split('(').next().unwrap_or_default().trim();
        Self {
            text: bare.to_owned(),
            value: read_number(number),
            is_best,
        }
    }
}

/// A reason why a table, or some of its columns, is unreliable.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ImportWarning {
    /// The programs that it is about; all where there are none.
    pub columns: Vec<String>,
    /// Fault, in one sentence.
    pub reason: String,
}

/// Returns each table with its contradictions, in itself and with the other tables.
#[must_use]
pub fn judge_imported(tables: Vec<ImportedTable>) -> Vec<(ImportedTable, Vec<ImportWarning>)> {
    let warnings = (0..tables.len()).map(|place| {
        let remaining = tables.iter().enumerate();
        let remaining = remaining.filter(|(number, _)| *number != place);
        let remaining: Vec<&ImportedTable> = remaining.map(|(_, table)| table).collect();
        imported_warnings(&tables[place], &remaining)
    });
    let warnings: Vec<Vec<ImportWarning>> = warnings.collect();
    tables.into_iter().zip(warnings).collect()
}

/// Contradictions of `table`, in itself and with the `remaining` tables.
#[must_use]
pub fn imported_warnings(
    table: &ImportedTable,
    remaining: &[&ImportedTable],
) -> Vec<ImportWarning> {
    let mut warnings = Vec::new();
    for second in remaining {
        warnings.extend(same_columns(table, second));
    }
    if is_about_disk_buffers(&table.title) {
        warnings.extend(not_on_disk(table));
        warnings.extend(least_written_is_best(table));
    }
    warnings.extend(less_work_is_best(table));
    warnings.extend(one_run(table));
    warnings
}

/// Two tests that come to the same to the last digit are one test.
fn same_columns(table: &ImportedTable, second: &ImportedTable) -> Option<ImportWarning> {
    /// Rows that may agree by chance.
    const ROWS_MIN: usize = 4;
    let common: Vec<(&ImportedRow, &ImportedRow)> = table
        .rows
        .iter()
        .filter_map(|row| {
            let mut rows = second.rows.iter();
            let same = rows.find(|cell| cell.metric == row.metric)?;
            let varies = row
                .cells
                .iter()
                .any(|cell| Some(&cell.text) != row.cells.first().map(|cell| &cell.text));
            varies.then_some((row, same))
        })
        .collect();
    if common.len() < ROWS_MIN {
        return None;
    }
    let columns = table.columns.iter().enumerate().filter(|(at, name)| {
        let there = second.columns.iter().position(|cell| cell == *name);
        there.is_some_and(|there| {
            common.iter().all(|(row, same)| {
                let pair = row.cells.get(*at).zip(same.cells.get(there));
                pair.is_some_and(|(cell, second)| cell.text == second.text)
            })
        })
    });
    let columns: Vec<String> = columns.map(|(_, name)| name.clone()).collect();
    if columns.is_empty() {
        return None;
    }
    Some(ImportWarning {
        reason: format!(
            "{} of {} columns equal those of `{}` in all {} rows: they were not measured in this test",
            columns.len(),
            table.columns.len(),
            second.title,
            common.len()
        ),
        columns,
    })
}

/// Programs that are said to buffer on disk must write.
fn not_on_disk(table: &ImportedTable) -> Option<ImportWarning> {
    let written = table.row(is_written)?;
    let taken = table.row(is_received)?;
    let mut columns = Vec::new();
    // Numbers with their texts.
    let mut most_written: Option<(f64, &str)> = None;
    let mut most_taken: Option<(f64, &str)> = None;
    for (at, name) in table.columns.iter().enumerate() {
        let value = |row: &ImportedRow| row.cells.get(at).and_then(|cell| cell.value);
        let (Some(out), Some(taken_bytes)) = (value(written), value(taken)) else {
            continue;
        };
        if out < limits::PERSISTED_SHARE_MIN * taken_bytes {
            columns.push(name.clone());
            if most_written.is_none_or(|(most, _)| out > most) {
                most_written = Some((out, written.cells[at].text.as_str()));
            }
            if most_taken.is_none_or(|(most, _)| taken_bytes > most) {
                most_taken = Some((taken_bytes, taken.cells[at].text.as_str()));
            }
        }
    }
    let ((_, most_written), (_, most_taken)) = most_written.zip(most_taken)?;
    Some(ImportWarning {
        reason: format!(
            "this is a test of buffers on disk, but at most {most_written} reached a disk while up to \
             {most_taken} passed through: the buffers were not used"
        ),
        columns,
    })
}

/// If data is to be kept, the program with the fewest writes keeps least.
fn least_written_is_best(table: &ImportedTable) -> Option<ImportWarning> {
    let row = table.row(is_written)?;
    let best = row.cells.iter().position(|cell| cell.is_best)?;
    let least = row
        .cells
        .iter()
        .filter_map(|cell| cell.value)
        .fold(f64::INFINITY, f64::min);
    let value = row.cells[best].value?;
    (value <= least).then(|| ImportWarning {
        columns: Vec::new(),
        reason: format!(
            "`{}` marks `{}` as the best because it wrote least: the program that persists least \
                wins a test of persistence",
            row.metric, table.columns[best]
        ),
    })
}

/// Totals crown who did least of the work.
fn less_work_is_best(table: &ImportedTable) -> Option<ImportWarning> {
    let work = table.row(is_received)?;
    let most = work
        .cells
        .iter()
        .filter_map(|cell| cell.value)
        .fold(0.0, f64::max);
    let is_total = |metric: &str| {
        let metric = metric.to_ascii_lowercase();
        ["cpu", "load", "mem", "disk"]
            .iter()
            .any(|start| metric.starts_with(start))
    };
    let mut rows: Vec<&str> = Vec::new();
    let mut columns: Vec<String> = Vec::new();
    for row in table.rows.iter().filter(|row| is_total(&row.metric)) {
        let best = row.cells.iter().position(|cell| cell.is_best);
        let Some(best) = best else { continue };
        let done = work.cells.get(best).and_then(|cell| cell.value);
        if done.is_some_and(|done| done < most * 0.5) {
            rows.push(&row.metric);
            if !columns.contains(&table.columns[best]) {
                columns.push(table.columns[best].clone());
            }
        }
    }
    if rows.is_empty() {
        return None;
    }
    Some(ImportWarning {
        reason: format!(
            "{}: the program marked as best received less than half as much as another program, and \
             totals are not divided by the work",
            rows.join(", ")
        ),
        columns,
    })
}

/// The spread of one run is unknown.
fn one_run(table: &ImportedTable) -> Option<ImportWarning> {
    let row = table.row(|metric| metric.eq_ignore_ascii_case("test count"))?;
    let columns = table.columns.iter().zip(&row.cells);
    let columns = columns.filter(|(_, cell)| cell.value.is_some_and(|runs| runs < 2.0));
    let columns: Vec<String> = columns.map(|(name, _)| name.clone()).collect();
    if columns.is_empty() {
        return None;
    }
    Some(ImportWarning {
        reason: "one run each: differences may be chance".to_owned(),
        columns,
    })
}

impl ImportedTable {
    /// Reads the texts of a table; the first of `head` is over the metrics.
    #[must_use]
    pub fn read(title: String, head: &[String], rows: &[Vec<String>]) -> Self {
        let row = |row: &Vec<String>| ImportedRow {
            metric: row.first().cloned().unwrap_or_default(),
            cells: row
                .iter()
                .skip(1)
                .map(|text| ImportedCell::read(text))
                .collect(),
        };
        Self {
            title,
            columns: head.iter().skip(1).cloned().collect(),
            rows: rows.iter().map(row).collect(),
            legend: Vec::new(),
        }
    }

    fn row(&self, is_wanted: impl Fn(&str) -> bool) -> Option<&ImportedRow> {
        self.rows.iter().find(|row| is_wanted(&row.metric))
    }
}

fn is_about_disk_buffers(title: &str) -> bool {
    let title = title.to_ascii_lowercase();
    title.contains("disk") && (title.contains("buffer") || title.contains("queue"))
}

fn is_written(metric: &str) -> bool {
    let metric = metric.to_ascii_lowercase();
    metric.starts_with("disk writ") && metric.contains("sum")
}

fn is_received(metric: &str) -> bool {
    let metric = metric.to_ascii_lowercase();
    metric.starts_with("net recv") && metric.contains("sum")
}

/// A number with a unit of bytes, or without one.
fn read_number(text: &str) -> Option<f64> {
    let text = text.strip_suffix("/s").unwrap_or(text);
    let end = text
        .find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '-' | '+'))
        .unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let factor = match text[end..].trim().to_ascii_lowercase().as_str() {
        "" | "b" | "%" => 1.0,
        "kib" | "kb" | "k" => 1024.0,
        "mib" | "mb" | "m" => 1_048_576.0,
        "gib" | "gb" | "g" => 1_073_741_824.0,
        "tib" | "tb" => 1_099_511_627_776.0,
        _ => return None,
    };
    Some(number * factor).filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests;
