//! A history as tables that Apache Otava 0.8.0 reads, and what it has to know of
//! them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use stillwell_plan::GoalMetric;
use stillwell_plan::goal::{Direction, Scale};
use stillwell_verdict::history::{HistoryPoint, Measurement, Origin, Trend};

use super::document;

/// Configuration that Otava reads from the folder in `OTAVA_CONFIG`.
const CONFIGURATION: &str = "otava.yaml";

/// Columns beside the metrics, `time` first.
const ATTRIBUTES: [&str; 7] = [
    "time",
    "commit",
    "branch",
    "version",
    "experiment",
    "run_id",
    "machine",
];

/// One test of Otava: a row for each result.
#[derive(Clone, Debug, PartialEq)]
pub struct OtavaTable {
    /// The experiment, and the variant where several were compared.
    pub name: String,
    /// The table, with its heads.
    pub csv: String,
    /// Columns that have a number in every row, and whether more is better.
    pub metrics: Vec<(String, Direction)>,
    /// Columns in which some results have none: Otava cannot read them.
    pub incomplete: Vec<String>,
}

/// A table for each experiment.
#[must_use]
pub fn otava_tables(points: &[HistoryPoint], branch: &str) -> Vec<OtavaTable> {
    let mut tests: Vec<(&str, &str)> = Vec::new();
    for point in points {
        let test = (point.experiment.as_str(), point.comparison.as_str());
        if !tests.contains(&test) {
            tests.push(test);
        }
    }
    let table = |&(experiment, comparison): &(&str, &str)| {
        let several = tests
            .iter()
            .filter(|(entry, _)| *entry == experiment)
            .count()
            > 1;
        let entry = points.iter();
        let entry = entry.filter(|p| p.experiment == experiment && p.comparison == comparison);
        OtavaTable {
            name: document::joined(experiment, comparison, several),
            ..otava_table(&entry.collect::<Vec<_>>(), branch)
        }
    };
    tests.iter().map(table).collect()
}

/// One table of all these points, in order of time, without a name.
#[must_use]
pub fn otava_table(points: &[&HistoryPoint], branch: &str) -> OtavaTable {
    let mut points = points.to_vec();
    points.sort_by_key(|point| (point.origin.time_millis, &point.origin.run));
    let rows: Vec<BTreeMap<String, f64>> = points.iter().map(|point| numbers(point)).collect();
    let mut heads: Vec<(String, Direction)> = Vec::new();
    for measured in points.iter().flat_map(|point| &point.measurements) {
        for (name, _) in columns(measured) {
            if heads.iter().all(|(known, _)| *known != name) {
                heads.push((name, measured.direction));
            }
        }
    }
    let mut csv = String::new();
    let names = heads.iter().map(|(name, _)| name.as_str());
    push_row(&mut csv, ATTRIBUTES.into_iter().chain(names));
    for (point, numbers) in points.iter().zip(&rows) {
        let time = document::timestamp(point.origin.time_millis);
        let attributes = attributes_of(&point.origin, &point.experiment, branch);
        let attributes = attributes.iter().map(|(_, value)| value.clone());
        let numbers = heads.iter().map(|(name, _)| {
            let number = numbers.get(name);
            number.map_or_else(String::new, ToString::to_string)
        });
        let cells: Vec<String> = [time]
            .into_iter()
            .chain(attributes)
            .chain(numbers)
            .collect();
        push_row(&mut csv, cells.iter().map(String::as_str));
    }
    let complete = |name: &String| rows.iter().all(|row| row.contains_key(name));
    let (metrics, incomplete): (Vec<_>, Vec<_>) =
        heads.into_iter().partition(|(name, _)| complete(name));
    OtavaTable {
        name: String::new(),
        csv,
        metrics,
        incomplete: incomplete.into_iter().map(|(name, _)| name).collect(),
    }
}

/// The configuration with which Otava reads these tables from these files.
#[must_use]
pub fn otava_yaml(tables: &[(&OtavaTable, &str)]) -> String {
    let mut text = "tests:\n".to_owned();
    for (table, file) in tables {
        text.push_str(&format!("  {}:\n", scalar(&table.name)));
        text.push_str("    type: csv\n");
        text.push_str(&format!("    file: {}\n", scalar(file)));
        text.push_str("    time_column: time\n");
        text.push_str(&format!(
            "    attributes: [{}]\n",
            ATTRIBUTES[1..].join(", ")
        ));
        text.push_str("    metrics:\n");
        for (name, direction) in &table.metrics {
            let direction = match direction {
                Direction::HigherIsBetter => 1,
                Direction::LowerIsBetter => -1,
            };
            text.push_str(&format!("      {}:\n", scalar(name)));
            text.push_str(&format!("        direction: {direction}\n"));
            text.push_str("        scale: 1\n");
        }
    }
    text
}

/// Returns the path of the configuration, and all files of an export into `folder`, which is
/// absolute: a table for each experiment, and last the configuration.
#[must_use]
pub fn otava_files(tables: &[OtavaTable], folder: &Path) -> (PathBuf, Vec<(PathBuf, String)>) {
    let mut paths: Vec<PathBuf> = Vec::new();
    for table in tables {
        let path = folder.join(file_name(&table.name, &paths));
        paths.push(path);
    }
    let shown: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
    let both = tables.iter().zip(shown.iter().map(String::as_str));
    let configuration = folder.join(CONFIGURATION);
    let text = otava_yaml(&both.collect::<Vec<_>>());
    let csv = tables.iter().map(|table| table.csv.clone());
    let mut files: Vec<(PathBuf, String)> = paths.into_iter().zip(csv).collect();
    files.push((configuration.clone(), text));
    (configuration, files)
}

/// Returns Otava's attributes without the time, in the order of the table.
pub(super) fn attributes(
    origin: &Origin,
    trend: &Trend,
    branch: &str,
) -> Vec<(&'static str, String)> {
    attributes_of(origin, &trend.experiment, branch)
}

fn attributes_of(origin: &Origin, experiment: &str, branch: &str) -> Vec<(&'static str, String)> {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let values = [
        commit(origin),
        branch.to_owned(),
        text(&origin.version),
        experiment.to_owned(),
        origin.run.clone(),
        text(&origin.machine),
    ];
    ATTRIBUTES[1..].iter().copied().zip(values).collect()
}

/// Of a program that was not built from a commit, its hash.
fn commit(origin: &Origin) -> String {
    let executable = origin.executable.as_deref();
    let hash = || executable.map(|hash| format!("sha256-{}", document::short(hash)));
    origin.commit.clone().or_else(hash).unwrap_or_default()
}

/// The column of a metric: its own level, or compared with the baseline of the
/// same pairs.
pub(super) fn column(metric: &GoalMetric, against_baseline: bool) -> String {
    match (against_baseline, metric.scale()) {
        (false, _) => metric.name().into_owned(),
        (true, Scale::Ratio) => format!("{}_vs_baseline", metric.name()),
        (true, Scale::Difference) => format!("{}_less_baseline", metric.name()),
    }
}

fn columns(measured: &Measurement) -> [(String, f64); 2] {
    let against = match measured.metric.scale() {
        Scale::Ratio => measured.delta.exp(),
        Scale::Difference => measured.delta,
    };
    [
        (column(&measured.metric, false), measured.comparison_mean),
        (column(&measured.metric, true), against),
    ]
}

fn numbers(point: &HistoryPoint) -> BTreeMap<String, f64> {
    point.measurements.iter().flat_map(columns).collect()
}

fn push_row<'a>(csv: &mut String, cells: impl Iterator<Item = &'a str>) {
    let cells: Vec<String> = cells.map(cell).collect();
    csv.push_str(&cells.join(","));
    csv.push('\n');
}

/// A cell of a table, quoted where it must be (RFC 4180).
fn cell(text: &str) -> String {
    let text = crate::words::plain(text);
    if text.contains([',', '"']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

/// A YAML scalar, quoted, so it stays a text.
fn scalar(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let begins_well = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    if begins_well && text.chars().all(plain) && !is_word_of_yaml(text) {
        text.to_owned()
    } else {
        format!("'{}'", crate::words::plain(text).replace('\'', "''"))
    }
}

/// Returns true for a text that some YAML readers do not read as text.
fn is_word_of_yaml(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    ["null", "true", "false", "yes", "no", "on", "off", "y", "n"].contains(&lower.as_str())
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
    let is_free = |file: &String| !taken.iter().any(|used| used.ends_with(file));
    let first = Some(format!("{stem}.csv"));
    let numbered = (2_usize..).map(|number| format!("{stem}-{number}.csv"));
    // There are more numbers than files.
    first
        .into_iter()
        .chain(numbered)
        .find(is_free)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_file_names_are_unique() {
        let taken = [PathBuf::from("/x/a_b.csv"), PathBuf::from("/x/a_b-2.csv")];
        assert_eq!(file_name("a/b", &taken), "a_b-3.csv");
        assert_eq!(file_name("..", &[]), "experiment.csv");
        assert_eq!(file_name("tcp.v2", &taken), "tcp.v2.csv");
    }
}
