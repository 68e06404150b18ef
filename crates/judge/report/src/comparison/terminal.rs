//! A comparison for readers at a terminal.

use super::{ComparisonGroup, ComparisonReport, ComparisonRow, words};
use crate::Style;
use crate::words::{columns, plain};

/// Heads of the table of changes; Markdown has the same.
pub(super) const HEADS: [&str; 9] = [
    "metric",
    "baseline",
    "comparison",
    "change",
    "95 % interval",
    "p",
    "tolerance",
    "runs",
    "verdict",
];

pub(super) fn terminal(report: &ComparisonReport, style: Style) -> String {
    let mut text = format!("{}\n", words::headline(report));
    for group in &report.groups {
        text.push('\n');
        text.push_str(&section(group, style));
    }
    if !report.remarks.is_empty() {
        text.push('\n');
    }
    for remark in &report.remarks {
        text.push_str(&format!("note: {}\n", plain(remark)));
    }
    text
}

fn section(group: &ComparisonGroup, style: Style) -> String {
    let mut text = String::new();
    if let Some(name) = &group.name {
        text.push_str(&format!("{}\n", style.strong(&plain(name))));
    }
    if let Some(ancestors) = &group.ancestors {
        text.push_str(&ancestors.text());
        text.push_str("\nThe same runs, one number each:\n");
    }
    let mut rows = vec![HEADS.map(str::to_owned).to_vec()];
    rows.extend(group.rows.iter().map(|row| cells(row, Some(style))));
    text.push_str(&columns(&rows, 2));
    for row in &group.rows {
        for sentence in words::below(row) {
            let name = if group.rows.len() > 1 {
                format!("{}: ", row.metric)
            } else {
                String::new()
            };
            text.push_str(&format!("  {}\n", plain(&format!("{name}{sentence}"))));
        }
    }
    for remark in &group.remarks {
        text.push_str(&format!("  note: {}\n", plain(remark)));
    }
    text
}

/// A row of the table; coloured where there is a style.
pub(super) fn cells(row: &ComparisonRow, style: Option<Style>) -> Vec<String> {
    let word = words::verdict(row);
    let word = match (row.verdict, style) {
        (Some(verdict), Some(style)) => style.verdict(verdict, &word),
        _ => word,
    };
    vec![
        plain(&row.metric),
        words::value(row, row.baseline.mean()),
        words::value(row, row.comparison.mean()),
        words::change(row),
        words::interval(row),
        words::p_value(row),
        words::tolerance(row),
        words::runs(row),
        word,
    ]
}
