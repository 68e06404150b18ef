//! A table that others measured, with what contradicts it.

use serde_json::{Value, json as object};
use stillwell_verdict::{ImportDoubt, ImportedTable};

use crate::document::{Block, Cell, Column, Document, Item, Table, Text};
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
    let document = || Document::new(tables.iter().map(|(table, doubts)| section(table, doubts)));
    format.render(style, document, || {
        let tables = tables.iter().map(|(table, doubts)| json(table, doubts));
        let value = object!({ "schema": IMPORT_SCHEMA, "tables": tables.collect::<Vec<_>>() });
        format!("{value:#}\n")
    })
}

fn section(table: &ImportedTable, doubts: &[ImportDoubt]) -> Block {
    let heads = [""]
        .into_iter()
        .chain(table.columns.iter().map(String::as_str));
    let mut items: Vec<Item> = Vec::new();
    if doubts.is_empty() {
        items.push(Item::new("nothing in it contradicts itself"));
    }
    for doubt in doubts {
        let whose = match doubt.columns.len() {
            0 => "all".to_owned(),
            count if count == table.columns.len() => "all".to_owned(),
            _ => doubt.columns.join(", "),
        };
        items.push(Item::new(format!("INVALID {whose}: {}", doubt.reason)));
    }
    let rows = Table::new(heads.map(Column::named), rows(table, doubts));
    let title = Text::from(table.title.as_str());
    Block::section(2, title, [Block::Table(rows), Block::List(items)])
}

/// Returns the numbers as they were imported, without the marks of the best ones.
fn rows(table: &ImportedTable, doubts: &[ImportDoubt]) -> Vec<Vec<Cell>> {
    let is_invalid = |name: &String| {
        doubts
            .iter()
            .any(|doubt| doubt.columns.is_empty() || doubt.columns.contains(name))
    };
    let rows = table.rows.iter().map(|row| {
        let cells = row.cells.iter().map(|cell| cell.text.as_str());
        named(&row.metric, cells)
    });
    let valid = table.columns.iter().map(|name| match is_invalid(name) {
        true => "INVALID",
        false => "not doubted",
    });
    rows.chain([named("may be compared", valid)]).collect()
}

/// Returns a row with its name first.
fn named<'c>(name: &str, cells: impl Iterator<Item = &'c str>) -> Vec<Cell> {
    [Cell::from(name)]
        .into_iter()
        .chain(cells.map(Cell::from))
        .collect()
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
