//! A table that others measured, with what contradicts it.

use serde_json::{Value, json as object};
use stillwell_verdict::{ImportDoubt, ImportedTable};

use crate::comparison::markdown::escaped;
use crate::words::{columns, plain};
use crate::{Format, Style};

/// Names the shape of the JSON of imported tables; keys are added within a version
/// and never removed.
pub const IMPORT_SCHEMA: &str = "stillwell/import/v1";

/// Tables that others measured, each with its doubts, in this form.
#[must_use]
pub fn render_imported(
    tables: &[(ImportedTable, Vec<ImportDoubt>)],
    format: Format,
    style: Style,
) -> String {
    match format {
        Format::Json => {
            let tables: Vec<Value> = tables
                .iter()
                .map(|(table, doubts)| json(table, doubts))
                .collect();
            let value = object!({ "schema": IMPORT_SCHEMA, "tables": tables });
            format!("{value:#}\n")
        }
        Format::Terminal | Format::Markdown => {
            let told = tables
                .iter()
                .map(|(table, doubts)| text(table, doubts, format, style));
            told.collect::<Vec<_>>().join("\n")
        }
    }
}

fn text(table: &ImportedTable, doubts: &[ImportDoubt], format: Format, style: Style) -> String {
    let is_markdown = format == Format::Markdown;
    let say = |text: &str| {
        if is_markdown {
            escaped(text)
        } else {
            plain(text)
        }
    };
    let rows = rows(table, doubts);
    let mut text = if is_markdown {
        format!("### {}\n\n", say(&table.title))
    } else {
        format!("{}\n", style.strong(&say(&table.title)))
    };
    if is_markdown {
        for (at, row) in rows.iter().enumerate() {
            let cells: Vec<String> = row.iter().map(|cell| escaped(cell)).collect();
            text.push_str(&format!("| {} |\n", cells.join(" | ")));
            if at == 0 {
                text.push_str(&format!("|{}\n", " --- |".repeat(row.len())));
            }
        }
        text.push('\n');
    } else {
        let rows: Vec<Vec<String>> = rows
            .iter()
            .map(|row| row.iter().map(|cell| plain(cell)).collect())
            .collect();
        text.push_str(&columns(&rows, 2));
    }
    let bullet = if is_markdown { "* " } else { "  " };
    if doubts.is_empty() {
        text.push_str(&format!("{bullet}nothing in it contradicts itself\n"));
    }
    for doubt in doubts {
        let whose = match doubt.columns.len() {
            0 => "all".to_owned(),
            count if count == table.columns.len() => "all".to_owned(),
            _ => doubt.columns.join(", "),
        };
        text.push_str(&format!(
            "{bullet}INVALID {}: {}\n",
            say(&whose),
            say(&doubt.reason)
        ));
    }
    text
}

/// The numbers as they stood there, without the marks of those who won.
fn rows(table: &ImportedTable, doubts: &[ImportDoubt]) -> Vec<Vec<String>> {
    let is_invalid = |name: &String| {
        doubts
            .iter()
            .any(|doubt| doubt.columns.is_empty() || doubt.columns.contains(name))
    };
    let head = std::iter::once(String::new()).chain(table.columns.iter().cloned());
    let mut rows: Vec<Vec<String>> = vec![head.collect()];
    for row in &table.rows {
        let cells = row.cells.iter().map(|cell| cell.text.clone());
        rows.push(std::iter::once(row.metric.clone()).chain(cells).collect());
    }
    let valid = table.columns.iter().map(|name| match is_invalid(name) {
        true => "INVALID".to_owned(),
        false => "not doubted".to_owned(),
    });
    rows.push(
        std::iter::once("may be compared".to_owned())
            .chain(valid)
            .collect(),
    );
    rows
}

fn json(table: &ImportedTable, doubts: &[ImportDoubt]) -> Value {
    let doubts = doubts
        .iter()
        .map(|doubt| object!({ "columns": doubt.columns, "reason": doubt.reason }));
    let rows = table.rows.iter().map(|row| {
        let cells = row.cells.iter().map(
            |cell| object!({ "text": cell.text, "value": cell.value, "marked_best": cell.is_best }),
        );
        object!({ "metric": row.metric, "cells": cells.collect::<Vec<_>>() })
    });
    let doubts: Vec<Value> = doubts.collect();
    object!({
        "title": table.title,
        "columns": table.columns,
        "rows": rows.collect::<Vec<_>>(),
        "is_valid": doubts.is_empty(),
        "doubts": doubts,
    })
}
