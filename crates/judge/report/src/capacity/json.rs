//! A search for programs.

use serde_json::{Map, Value, json as object};
use stillwell_stats::Estimate;
use stillwell_stats::capacity::usl::UslPoint;
use stillwell_stats::capacity::{CapacityFound, Votes};
use stillwell_verdict::capacity::{CapacityAnswer, CapacityProbe, KneeFound};

use super::{CapacityReport, observed_code, purpose_code};

/// Names the shape of a search's JSON; keys are added within a version and never
/// removed.
pub const CAPACITY_SCHEMA: &str = "stillwell/capacity/v1";

/// The search as indented JSON: rates in units each second, times in
/// nanoseconds, shares from 0 to 1; a figure that is infinite or was not measured is `null`, and `never` names those
/// that are infinite.
#[must_use]
pub fn capacity_json(report: &CapacityReport) -> String {
    let (result, knee) = match &report.answer {
        Some(CapacityAnswer::Bounds(result)) => (bounds(result), Value::Null),
        Some(CapacityAnswer::Knee(result)) => (Value::Null, knee(result)),
        None => (Value::Null, Value::Null),
    };
    let bounds = report.bounds.iter().map(ToString::to_string);
    let value = object!({
        "schema": CAPACITY_SCHEMA,
        "target": report.target,
        "unit": report.unit.plural(),
        "bounds": bounds.collect::<Vec<_>>(),
        "within": report.within,
        "validity": report.validity.name(),
        "level": report.level.share(),
        "interrupted": report.answer.is_none(),
        "found": result,
        "knee": knee,
        "probes": report.probes.iter().map(|entry| probe(entry, report)).collect::<Vec<_>>(),
        "command": report.command,
        "version": report.version,
        "elapsed_ns": report.elapsed.as_u64(),
    });
    // `#` formats indented text; printing a value cannot fail.
    format!("{value:#}\n")
}

fn bounds(result: &CapacityFound) -> Value {
    object!({
        "end": result.end.code(),
        "capacity": result.capacity.map(estimate),
        "held": result.held.map(votes),
        "failed": result.failed.map(votes),
        "probes": result.probes,
        "unclear": result.unclear,
    })
}

fn votes(votes: Votes) -> Value {
    object!({ "rate": votes.rate, "held": votes.held, "failed": votes.failed })
}

/// Ends that are not finite are `null`.
fn estimate(estimate: Estimate) -> Value {
    object!({ "value": estimate.value, "lower": estimate.lower, "upper": estimate.upper })
}

fn knee(result: &Result<KneeFound, String>) -> Value {
    let result = match result {
        Ok(result) => result,
        Err(why) => return object!({ "reason": why }),
    };
    let point = |point: UslPoint| {
        object!({
            "connections": estimate(point.concurrency),
            "throughput": estimate(point.throughput),
        })
    };
    object!({
        "lambda": result.law.lambda,
        "sigma": result.law.sigma,
        "kappa": result.law.kappa,
        "residual": result.law.residual,
        "knee": result.knee.map(point),
        "peak": result.peak.map(point),
        "connections_max": result.connections_max,
        "left_out": result.left_out,
    })
}

fn probe(probe: &CapacityProbe, report: &CapacityReport) -> Value {
    let figures: Map<String, Value> = report
        .columns()
        .into_iter()
        .map(|figure| {
            let unit = if figure.is_time() { "_ns" } else { "" };
            (format!("{figure}{unit}"), probe.figure(figure).into())
        })
        .collect();
    let never = report.columns().into_iter();
    let never = never.filter(|figure| probe.figure(*figure) == Some(f64::INFINITY));
    let never: Vec<String> = never.map(|figure| figure.to_string()).collect();
    object!({
        "purpose": probe.purpose.map(purpose_code),
        "connections": probe.connections,
        "rate": probe.rate,
        "reached": probe.reached,
        "observed": observed_code(probe.observed),
        "why": probe.why,
        "figures": figures,
        "never": never,
    })
}
