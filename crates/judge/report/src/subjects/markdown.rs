//! Several programs under one load, for documents and pull requests.

use super::{SubjectsReport, table};
use crate::comparison::markdown::escaped;

pub(super) fn markdown(report: &SubjectsReport) -> String {
    let mut text = format!("## {}\n", escaped(&report.title));
    for verdict in &report.verdicts {
        text.push_str(&format!("\n### {}\n", escaped(&verdict.name)));
        if let Some(summary) = &verdict.summary {
            text.push_str(&format!("\n{}\n", escaped(summary)));
        }
        text.push_str(&table_of(&table::table(verdict)));
        text.push_str(&list(table::below(verdict).iter().map(String::as_str)));
    }
    if let Some(rows) = table::matrix(&report.verdicts) {
        text.push_str("\n### delivery\n");
        text.push_str(&table_of(&rows));
    }
    let versions = report.versions.iter().map(|(name, version)| {
        let version = version.as_deref().unwrap_or("does not say its version");
        format!("{name} = {version}")
    });
    let left_out = report.left_out.iter();
    let left_out = left_out.map(|(name, reason)| format!("left out: {name}: {reason}"));
    let host = report.host.iter();
    let host = host.map(|(name, fact)| format!("{name}: {fact}"));
    let told: Vec<String> = versions
        .chain(left_out)
        .chain(report.problems.iter().cloned())
        .chain(host)
        .collect();
    text.push_str(&list(told.iter().map(String::as_str)));
    let command = report.command.replace('`', "'");
    text.push_str(&format!(
        "\n<sub>`{command}`, Stillwell {}</sub>\n",
        report.version
    ));
    text
}

fn table_of(rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut text = String::from("\n");
    for (at, row) in rows.iter().enumerate() {
        text.push_str(&line(row));
        if at == 0 {
            text.push_str(&format!("|{}\n", " --- |".repeat(row.len())));
        }
    }
    text
}

fn list<'t>(sentences: impl Iterator<Item = &'t str>) -> String {
    let items: String = sentences
        .map(|one| format!("* {}\n", escaped(one)))
        .collect();
    if items.is_empty() {
        items
    } else {
        format!("\n{items}")
    }
}
