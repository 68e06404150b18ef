//! A comparison for pull requests.

use super::terminal::{HEADS, cells};
use super::{ComparisonGroup, ComparisonReport, words};

pub(super) fn markdown(report: &ComparisonReport) -> String {
    let mut text = format!("## {}\n", escaped(&words::headline(report)));
    for group in &report.groups {
        text.push_str(&section(group));
    }
    if !report.remarks.is_empty() {
        text.push('\n');
    }
    for remark in &report.remarks {
        text.push_str(&format!("* {}\n", escaped(remark)));
    }
    let command = report.command.replace('`', "'");
    text.push_str(&format!(
        "\n<sub>`{command}`, Stillwell {}</sub>\n",
        report.version
    ));
    text
}

fn section(group: &ComparisonGroup) -> String {
    let mut text = String::new();
    if let Some(name) = &group.name {
        text.push_str(&format!("\n### {}\n", escaped(name)));
    }
    if let Some(ancestors) = &group.ancestors {
        text.push_str(&format!(
            "\n{}\n### The same runs, one number each\n",
            ancestors.text()
        ));
    }
    text.push_str(&format!("\n| {} |\n", HEADS.join(" | ")));
    text.push_str(&format!("|{}\n", " --- |".repeat(HEADS.len())));
    for row in &group.rows {
        let cells = cells(row, None);
        let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text.push('\n');
    for row in &group.rows {
        for sentence in words::below(row) {
            let (name, sentence) = (escaped(&row.metric), escaped(&sentence));
            text.push_str(&format!("* {name}: {sentence}\n"));
        }
    }
    for remark in &group.remarks {
        text.push_str(&format!("* {}\n", escaped(remark)));
    }
    text
}

/// Text of others, which must neither end a cell nor become markup.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in crate::words::plain(text).chars() {
        match character {
            '<' => safe.push_str("&lt;"),
            '|' | '*' | '_' | '`' | '\\' => {
                safe.push('\\');
                safe.push(character);
            }
            other => safe.push(other),
        }
    }
    safe
}
