//! The numbers of a history for Apache Otava.

use std::fs;
use std::path::Path;

use anyhow::Context;
use stillwell_report::history::{OtavaTable, otava_files, otava_tables};
use stillwell_verdict::history::{HistoryPoint, latest};

use crate::arguments::HistoryArguments;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

pub(super) fn write(
    points: &[HistoryPoint],
    arguments: &HistoryArguments,
) -> Result<(), CommandError> {
    let points = latest(points, arguments.last);
    let tables = otava_tables(&points, &arguments.branch);
    let could_not = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    match (&arguments.into, tables.as_slice()) {
        (Some(folder), tables) => write_all(tables, folder).map_err(could_not),
        (None, [table]) => Paint::data(&table.csv).map_err(|error| could_not(error.into())),
        (None, several) => {
            let names: Vec<&str> = several.iter().map(|table| table.name.as_str()).collect();
            let error = anyhow::anyhow!(
                "standard output can have the table of one experiment, and there are {}: {}",
                several.len(),
                names.join(", ")
            );
            let hint = "--into DIR writes a table for each, --only NAME selects one";
            Err(CommandError::new(Exit::Usage, error).hint(hint))
        }
    }
}

fn write_all(tables: &[OtavaTable], folder: &Path) -> anyhow::Result<()> {
    let folder = std::path::absolute(folder)?;
    let failed = |path: &Path| format!("write {}", path.display());
    fs::create_dir_all(&folder).with_context(|| failed(&folder))?;
    let (configuration, files) = otava_files(tables, &folder);
    for (file, text) in files {
        fs::write(&file, text).with_context(|| failed(&file))?;
    }
    for table in tables {
        if !table.incomplete.is_empty() {
            Paint::print_message(&format!(
                "note: {}: not in every suite, so Otava cannot read them: {}",
                table.name,
                table.incomplete.join(", ")
            ));
        }
    }
    let count = match tables.len() {
        1 => "1 table".to_owned(),
        many => format!("{many} tables"),
    };
    Paint::print_message(&format!("wrote {count} and {}", configuration.display()));
    Ok(())
}
