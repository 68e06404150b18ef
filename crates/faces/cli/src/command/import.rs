//! `stillwell import`.

use std::path::Path;

use anyhow::Context;
use stillwell_config::files::read_input;
use stillwell_others::harness::{DstatRun, dstat, dstat_table, tables};
use stillwell_report::FullReport;
use stillwell_verdict::{ImportedTable, judge_imported};

use crate::arguments::ImportArguments;
use crate::command::output;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

/// Longest file that is read.
const BYTES_MAX: u64 = 256 << 20;

pub(crate) fn run(arguments: &ImportArguments, paint: &Paint) -> Result<Exit, CommandError> {
    output::check_outputs(&arguments.output)?;
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
        let tables = tables(&text);
        if tables.is_empty() {
            let error = anyhow::anyhow!("there is no table in {}", file.display());
            return Err(usage(error).hint("write a Markdown table, or name a CSV file of dstat"));
        }
        for table in tables {
            let title = table.title.unwrap_or_else(|| stem(file));
            all.push(ImportedTable {
                legend: table.legend,
                ..ImportedTable::read(title, &table.head, &table.rows)
            });
        }
    }
    if !runs.is_empty() {
        all.push(dstat_table(&arguments.test, &runs));
    }
    let judged = judge_imported(all);
    output::deliver(
        &arguments.output,
        paint,
        &FullReport::from(judged.as_slice()),
    )?;
    let is_fine = judged.iter().all(|(_, warnings)| warnings.is_empty());
    Ok(if is_fine { Exit::Held } else { Exit::Invalid })
}

fn read(file: &Path) -> anyhow::Result<String> {
    let context = || format!("read {}", file.display());
    let bytes = read_input(file, BYTES_MAX).with_context(context)?;
    String::from_utf8(bytes).with_context(context)
}

fn stem(file: &Path) -> String {
    file.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
