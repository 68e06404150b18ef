//! The numbers of a history for Apache Otava.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use stillwell_report::history::{OtavaTable, otava_tables, otava_yaml};
use stillwell_verdict::history::HistoryPoint;

use crate::arguments::HistoryArguments;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

/// Configuration that Otava reads from the folder in `OTAVA_CONFIG`.
const CONFIGURATION: &str = "otava.yaml";

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
                "standard output has room for the table of one experiment, and there are {}: {}",
                several.len(),
                names.join(", ")
            );
            let hint = "--into DIR writes a table for each, --only NAME selects one";
            Err(CommandError::new(Exit::Usage, error).hint(hint))
        }
    }
}

/// So many of the latest points of each experiment and variant.
fn latest(points: &[HistoryPoint], last: Option<usize>) -> Vec<HistoryPoint> {
    let mut points = points.to_vec();
    let Some(last) = last else {
        return points;
    };
    points.sort_by_key(|point| (point.origin.time_millis, point.origin.run.clone()));
    let is_latest = |place: usize| {
        let test = |point: &HistoryPoint| (point.experiment.clone(), point.comparison.clone());
        let own = test(&points[place]);
        let later = points[place + 1..].iter();
        later.filter(|other| test(other) == own).count() < last
    };
    let kept = (0..points.len()).filter(|place| is_latest(*place));
    kept.map(|place| points[place].clone()).collect()
}

fn write_all(tables: &[OtavaTable], folder: &Path) -> anyhow::Result<()> {
    let folder = std::path::absolute(folder)?;
    let failed = |path: &Path| format!("write {}", path.display());
    fs::create_dir_all(&folder).with_context(|| failed(&folder))?;
    let mut files: Vec<PathBuf> = Vec::new();
    for table in tables {
        let file = folder.join(file_name(&table.name, &files));
        fs::write(&file, &table.csv).with_context(|| failed(&file))?;
        files.push(file);
    }
    let shown: Vec<String> = files.iter().map(|f| f.display().to_string()).collect();
    let both = tables.iter().zip(shown.iter().map(String::as_str));
    let configuration = folder.join(CONFIGURATION);
    fs::write(&configuration, otava_yaml(&both.collect::<Vec<_>>()))
        .with_context(|| failed(&configuration))?;
    for table in tables {
        if !table.incomplete.is_empty() {
            Paint::say(&format!(
                "note: {}: not in every suite, so that Otava cannot read them: {}",
                table.name,
                table.incomplete.join(", ")
            ));
        }
    }
    let count = match tables.len() {
        1 => "1 table".to_owned(),
        many => format!("{many} tables"),
    };
    Paint::say(&format!("wrote {count} and {}", configuration.display()));
    Ok(())
}

/// Returns a unique file name for `name`.
fn file_name(name: &str, taken: &[PathBuf]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let stem: String = name
        .chars()
        .map(|c| if plain(c) { c } else { '_' })
        .collect();
    let stem = match stem.trim_start_matches('.') {
        "" => "experiment",
        stem => stem,
    };
    let is_free = |file: &String| !taken.iter().any(|other| other.ends_with(file));
    let first = Some(format!("{stem}.csv"));
    let others = (2_usize..).map(|number| format!("{stem}-{number}.csv"));
    // There are more numbers than files.
    first
        .into_iter()
        .chain(others)
        .find(is_free)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart() {
        let taken = [PathBuf::from("/x/a_b.csv"), PathBuf::from("/x/a_b-2.csv")];
        assert_eq!(file_name("a/b", &taken), "a_b-3.csv");
        assert_eq!(file_name("..", &[]), "experiment.csv");
        assert_eq!(file_name("tcp.v2", &taken), "tcp.v2.csv");
    }
}
