//! The table that harnesses made of dstat's samples.

use stillwell_units::float_from_u64;
use stillwell_verdict::{ImportedCell, ImportedRow, ImportedTable};

use super::DstatRun;

/// Returns the table of a test: one column for each named run, one row for each figure that a run has.
#[must_use]
pub fn dstat_table(test: &str, runs: &[(String, DstatRun)]) -> ImportedTable {
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
    for (metric, key, by, is_bytes) in ROWS {
        let cells: Vec<ImportedCell> = runs
            .iter()
            .map(|(_, run)| cell(run.columns.get(key).map(Vec::as_slice), by, is_bytes))
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
        legend: Vec::new(),
    }
}

/// Reductions of a run's samples, one for each second.
#[derive(Clone, Copy)]
enum Reduced {
    Largest,
    Mean,
    Sum,
}

/// The rows of dstat's files: the names that harnesses give them, except what they called
/// a mean and added up.
const ROWS: [(&str, &str, Reduced, bool); 14] = [
    ("IO Thrpt (avg)", "net/total/recv", Reduced::Mean, true),
    (
        "CPU sys (max)",
        "total cpu usage/sys",
        Reduced::Largest,
        false,
    ),
    (
        "CPU usr (max)",
        "total cpu usage/usr",
        Reduced::Largest,
        false,
    ),
    ("Load 1m (avg)", "load avg/1m", Reduced::Mean, false),
    (
        "Mem used (max)",
        "memory usage/used",
        Reduced::Largest,
        true,
    ),
    ("Disk read (sum)", "dsk/total/read", Reduced::Sum, true),
    ("Disk writ (sum)", "dsk/total/writ", Reduced::Sum, true),
    (
        "IO requests read (sum)",
        "io/total/read",
        Reduced::Sum,
        false,
    ),
    (
        "IO requests writ (sum)",
        "io/total/writ",
        Reduced::Sum,
        false,
    ),
    ("Net recv (sum)", "net/total/recv", Reduced::Sum, true),
    ("Net send (sum)", "net/total/send", Reduced::Sum, true),
    ("TCP estab (avg)", "tcp sockets/act", Reduced::Mean, false),
    ("TCP syn (avg)", "tcp sockets/syn", Reduced::Mean, false),
    ("TCP close (avg)", "tcp sockets/clo", Reduced::Mean, false),
];

fn cell(samples: Option<&[f64]>, by: Reduced, is_bytes: bool) -> ImportedCell {
    let value = samples
        .filter(|samples| !samples.is_empty())
        .map(|samples| {
            let sum: f64 = samples.iter().sum();
            match by {
                Reduced::Sum => sum,
                Reduced::Largest => samples.iter().copied().fold(f64::MIN, f64::max),
                Reduced::Mean => sum / float_from_u64(samples.len() as u64),
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
