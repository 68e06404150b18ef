//! Several programs under one load, for programs.

use serde_json::{Map, Value, json as object};
use stillwell_plan::targets::{Delivery, Durability};
use stillwell_verdict::{
    ColumnFound, PairFound, Place, Ranking, TargetsCell, TargetsRow, TargetsVerdict,
};

use super::{TargetsReport, document};
use crate::profiles;

/// Names the shape of the JSON of several targets; keys are added within a
/// version and never removed.
pub const TARGETS_REPORT_SCHEMA: &str = "stillwell/targets/v2";

/// Base units: bytes, seconds, shares of one; what is not there is `null`.
pub(super) fn json(report: &TargetsReport) -> String {
    let versions: Map<String, Value> = report
        .versions
        .iter()
        .map(|(name, version)| (name.clone(), object!(version)))
        .collect();
    let left_out = report.left_out.iter();
    let left_out = left_out.map(|(name, reason)| object!({ "target": name, "reason": reason }));
    let host = report.host.iter();
    let host: Map<String, Value> = host
        .map(|(name, fact)| (name.clone(), object!(fact)))
        .collect();
    let value = object!({
        "schema": TARGETS_REPORT_SCHEMA,
        "experiments": report.verdicts.iter().map(|verdict| experiment(verdict, report)).collect::<Vec<_>>(),
        "versions": versions,
        "left_out": left_out.collect::<Vec<_>>(),
        "problems": report.problems,
        "host": host,
        "results": report.results_folder,
        "command": report.command,
        "version": report.version,
    });
    // `#` formats indented text; printing a value cannot fail.
    format!("{value:#}\n")
}

fn experiment(verdict: &TargetsVerdict, report: &TargetsReport) -> Value {
    let rows = verdict.rows.iter().map(|item| row(item, verdict));
    let mut value = object!({
        "name": verdict.name,
        "blocks": verdict.blocks,
        "targets": verdict.columns.iter().map(column).collect::<Vec<_>>(),
        "metrics": rows.collect::<Vec<_>>(),
        "remarks": verdict.remarks,
    });
    let profiles = report.profiles.iter();
    let profiles = profiles.filter(|entry| entry.experiment == verdict.name);
    let profiles = profiles.filter(|entry| !entry.summaries.is_empty());
    let profiles: Map<String, Value> = profiles
        .map(|entry| (entry.target.clone(), profiles::data(entry)))
        .collect();
    if !profiles.is_empty() {
        value["profiles"] = profiles.into();
    }
    value
}

fn column(column: &ColumnFound) -> Value {
    let delivery = &column.delivery;
    object!({
        "name": column.name,
        "runs": column.runs,
        "completed": column.completed,
        "invalid": column.invalid,
        "unchecked": column.unchecked,
        "durability": column.durability.map(Durability::name),
        "delivery": {
            "requested": column.expected.map(Delivery::name),
            "seen": delivery.seen().map(Delivery::name),
            "kept": delivery.keeps(column.expected),
            "runs": delivery.runs,
            "sent": delivery.sent,
            "lost": delivery.lost,
            "duplicated": delivery.duplicated,
            "reordered": delivery.reordered,
            "damaged": delivery.damaged,
            "unknown": delivery.unknown,
        },
    })
}

fn row(row: &TargetsRow, verdict: &TargetsVerdict) -> Value {
    let name = |at: usize| verdict.columns.get(at).map(|column| column.name.as_str());
    let better = match row.metric.ranking() {
        Ranking::Higher => Some("higher"),
        Ranking::Lower | Ranking::LowerForEqualWork => Some("lower"),
        Ranking::Neither => None,
    };
    let pair = |pair: &PairFound| {
        object!({
            "one": name(pair.left),
            "other": name(pair.right),
            "blocks": pair.blocks,
            "change": pair.change,
            "p_holm": pair.p_value,
        })
    };
    let cells = row.cells.iter().enumerate();
    let cells = cells.map(|(at, cell)| {
        let mut output = self::cell(cell);
        output["target"] = object!(name(at));
        output
    });
    object!({
        "metric": row.metric,
        "title": document::title(row.metric),
        "better": better,
        "unranked": (!row.unranked.is_empty()).then(|| row.unranked.join("; ")),
        "cells": cells.collect::<Vec<_>>(),
        "pairs": row.pairs.iter().map(pair).collect::<Vec<_>>(),
    })
}

fn cell(cell: &TargetsCell) -> Value {
    match cell {
        TargetsCell::Value {
            mean,
            interval,
            runs,
            place,
        } => object!({
            "mean": mean,
            "lower": interval.map(|(lower, _)| lower),
            "upper": interval.map(|(_, upper)| upper),
            "runs": runs,
            "place": match place {
                Place::Winner => Some("winner"),
                Place::Tied => Some("tied"),
                Place::Behind => Some("behind"),
                Place::None => None,
            },
        }),
        TargetsCell::Invalid { reason, mean } => {
            object!({ "mean": null, "invalid": reason, "unreliable_mean": mean })
        }
        TargetsCell::Missing { reason } => object!({ "mean": null, "missing": reason }),
    }
}
