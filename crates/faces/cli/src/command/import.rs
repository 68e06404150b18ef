//! `stillwell import`.

use std::fs;
use std::path::Path;

use anyhow::Context;
use stillwell_others::harness::{DstatRun, dstat, tables};
use stillwell_report::render_imported;
use stillwell_units::float_from_u64;
use stillwell_verdict::{
    ImportWarning, ImportedCell, ImportedRow, ImportedTable, imported_warnings,
};

use crate::arguments::ImportArguments;
use crate::command::output;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

/// Longest file that is read.
const BYTES_MAX: u64 = 256 << 20;

pub(crate) fn run(arguments: &ImportArguments, paint: &Paint) -> Result<Exit, CommandError> {
    output::check_writable(&arguments.output.output)?;
    let mut all: Vec<ImportedTable> = Vec::new();
    let mut runs: Vec<(String, DstatRun)> = Vec::new();
    for file in &arguments.files {
        let usage = |error: anyhow::Error| CommandError::new(Exit::Usage, error);
        let text = read(file).map_err(usage)?;
        if file.extension().is_some_and(|ending| ending == "csv") {
            let run = dstat(&text)
                .with_context(|| format!("read {}", file.display()))
                .map_err(usage)?;
            runs.push((stem(file), run));
            continue;
        }
        let found = tables(&text);
        if found.is_empty() {
            let error = anyhow::anyhow!("there is no table in {}", file.display());
            return Err(usage(error).hint("write a Markdown table, or name a CSV file of dstat"));
        }
        for table in found {
            let title = table.title.unwrap_or_else(|| stem(file));
            all.push(ImportedTable::read(title, &table.head, &table.rows));
        }
    }
    if !runs.is_empty() {
        all.push(table_of(&arguments.test, &runs));
    }
    let judged: Vec<(ImportedTable, Vec<ImportWarning>)> = (0..all.len())
        .map(|at| {
            let others = all.iter().enumerate().filter(|(other, _)| *other != at);
            let others: Vec<&ImportedTable> = others.map(|(_, table)| table).collect();
            (all[at].clone(), imported_warnings(&all[at], &others))
        })
        .collect();
    output::deliver_text(&arguments.output, paint, |format, style| {
        render_imported(&judged, format, style)
    })?;
    let is_fine = judged.iter().all(|(_, warnings)| warnings.is_empty());
    Ok(if is_fine { Exit::Held } else { Exit::Invalid })
}

fn read(file: &Path) -> anyhow::Result<String> {
    let length = fs::metadata(file)
        .with_context(|| format!("read {}", file.display()))?
        .len();
    anyhow::ensure!(
        length <= BYTES_MAX,
        "{} is larger than 256 MiB",
        file.display()
    );
    fs::read_to_string(file).with_context(|| format!("read {}", file.display()))
}

fn stem(file: &Path) -> String {
    file.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Reductions of a run's samples, one for each second.
#[derive(Clone, Copy)]
enum From {
    Largest,
    Mean,
    Sum,
}

/// The rows of dstat's files: what harnesses made of them, but for what they called
/// a mean and added up.
const ROWS: [(&str, &str, From, bool); 14] = [
    ("IO Thrpt (avg)", "net/total/recv", From::Mean, true),
    ("CPU sys (max)", "total cpu usage/sys", From::Largest, false),
    ("CPU usr (max)", "total cpu usage/usr", From::Largest, false),
    ("Load 1m (avg)", "load avg/1m", From::Mean, false),
    ("Mem used (max)", "memory usage/used", From::Largest, true),
    ("Disk read (sum)", "dsk/total/read", From::Sum, true),
    ("Disk writ (sum)", "dsk/total/writ", From::Sum, true),
    ("IO requests read (sum)", "io/total/read", From::Sum, false),
    ("IO requests writ (sum)", "io/total/writ", From::Sum, false),
    ("Net recv (sum)", "net/total/recv", From::Sum, true),
    ("Net send (sum)", "net/total/send", From::Sum, true),
    ("TCP estab (avg)", "tcp sockets/act", From::Mean, false),
    ("TCP syn (avg)", "tcp sockets/syn", From::Mean, false),
    ("TCP close (avg)", "tcp sockets/clo", From::Mean, false),
];

/// One column a file.
fn table_of(test: &str, runs: &[(String, DstatRun)]) -> ImportedTable {
    let count = |_: &(String, DstatRun)| ImportedCell::read("1");
    let seconds = |(_, run): &(String, DstatRun)| ImportedCell::read(&run.samples.to_string());
    let mut rows = vec![
        ImportedRow {
            metric: "Test count".to_owned(),
            cells: runs.iter().map(count).collect(),
        },
        ImportedRow {
            metric: "Samples".to_owned(),
            cells: runs.iter().map(seconds).collect(),
        },
    ];
    for (metric, key, from, is_bytes) in ROWS {
        let cells: Vec<ImportedCell> = runs
            .iter()
            .map(|(_, run)| cell(run.columns.get(key).map(Vec::as_slice), from, is_bytes))
            .collect();
        if cells.iter().any(|cell| cell.value.is_some()) {
            rows.push(ImportedRow {
                metric: metric.to_owned(),
                cells,
            });
        }
    }
    ImportedTable {
        title: test.to_owned(),
        columns: runs.iter().map(|(name, _)| name.clone()).collect(),
        rows,
    }
}

fn cell(samples: Option<&[f64]>, from: From, is_bytes: bool) -> ImportedCell {
    let value = samples
        .filter(|samples| !samples.is_empty())
        .map(|samples| {
            let sum: f64 = samples.iter().sum();
            match from {
                From::Sum => sum,
                From::Largest => samples.iter().copied().fold(f64::MIN, f64::max),
                From::Mean => sum / float_from_u64(samples.len() as u64),
            }
        });
    let text = match value {
        None => "-".to_owned(),
        Some(value) if is_bytes => format!("{:.1}MiB", value / 1_048_576.0),
        Some(value) => format!("{value:.1}"),
    };
    ImportedCell {
        text,
        value,
        is_best: false,
    }
}
