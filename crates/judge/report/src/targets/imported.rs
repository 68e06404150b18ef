//! A table that others measured, with what contradicts it.

use serde_json::{Value, json as object};
use stillwell_verdict::{ImportWarning, ImportedTable};

use crate::FullReport;
use crate::document::{Block, Cell, Column, Document, Item, Table, Text};

/// Names the shape of the JSON of imported tables; keys are added within a version
/// and never removed.
pub const IMPORT_SCHEMA: &str = "stillwell/import/v2";

/// Tables that others measured, each with its warnings.
impl From<&[(ImportedTable, Vec<ImportWarning>)]> for FullReport {
    fn from(tables: &[(ImportedTable, Vec<ImportWarning>)]) -> Self {
        let sections = tables.iter();
        let sections = sections.map(|(table, warnings)| section(table, warnings));
        let data = tables.iter().map(|(table, warnings)| json(table, warnings));
        let value = object!({ "schema": IMPORT_SCHEMA, "tables": data.collect::<Vec<_>>() });
        Self {
            document: Document::new(sections),
            data: format!("{value:#}\n"),
            page_data: None,
        }
    }
}

fn section(table: &ImportedTable, warnings: &[ImportWarning]) -> Block {
    let heads = [""]
        .into_iter()
        .chain(table.columns.iter().map(String::as_str));
    let mut items: Vec<Item> = Vec::new();
    if warnings.is_empty() {
        items.push(Item::new("no contradictions found"));
    }
    for warning in warnings {
        let whose = match warning.columns.len() {
            0 => "all".to_owned(),
            count if count == table.columns.len() => "all".to_owned(),
            _ => warning.columns.join(", "),
        };
        items.push(Item::new(format!("INVALID {whose}: {}", warning.reason)));
    }
    let rows = Table::new(heads.map(Column::named), rows(table, warnings));
    let title = Text::from(table.title.as_str());
    let legend = table.legend.iter();
    let legend = legend.map(|(name, meaning)| Text::dim(format!("{name} = {meaning}")));
    let blocks = [Block::Table(rows), Block::list(legend), Block::List(items)];
    Block::section(2, title, blocks)
}

/// Returns the numbers as they were imported, with the marks of the best ones.
fn rows(table: &ImportedTable, warnings: &[ImportWarning]) -> Vec<Vec<Cell>> {
    let is_invalid = |name: &String| {
        warnings
            .iter()
            .any(|warning| warning.columns.is_empty() || warning.columns.contains(name))
    };
    let rows = table.rows.iter().map(|row| {
        let cells = row.cells.iter().map(|cell| match cell.is_best {
            true => format!("{} W", cell.text),
            false => cell.text.clone(),
        });
        named(&row.metric, cells)
    });
    let valid = table.columns.iter().map(|name| match is_invalid(name) {
        true => "INVALID".to_owned(),
        false => "reliable".to_owned(),
    });
    rows.chain([named("may be compared", valid)]).collect()
}

/// Returns a row with its name first.
fn named(name: &str, cells: impl Iterator<Item = String>) -> Vec<Cell> {
    [Cell::from(name)]
        .into_iter()
        .chain(cells.map(Cell::from))
        .collect()
}

fn json(table: &ImportedTable, warnings: &[ImportWarning]) -> Value {
    let warnings = warnings
        .iter()
        .map(|warning| object!({ "columns": warning.columns, "reason": warning.reason }));
    let rows = table.rows.iter().map(|row| {
        let cells = row.cells.iter().map(
            |cell| object!({ "text": cell.text, "value": cell.value, "marked_best": cell.is_best }),
        );
        object!({ "metric": row.metric, "cells": cells.collect::<Vec<_>>() })
    });
    let warnings: Vec<Value> = warnings.collect();
    object!({
        "title": table.title,
        "columns": table.columns,
        "rows": rows.collect::<Vec<_>>(),
        "legend": table.legend.iter().map(|(name, meaning)| object!({ "name": name, "meaning": meaning })).collect::<Vec<_>>(),
        "is_valid": warnings.is_empty(),
        "warnings": warnings,
    })
}
