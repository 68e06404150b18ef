//! The condition of the generator.

use stillwell_units::Nanos;

use super::distribution;
use crate::document::{Block, Severity, Text};
use crate::load::{Ending, LoadReport, WorkerHealth, id};
use crate::words;

/// Largest number of workers that are listed one by one.
const WORKERS_EACH_MAX: usize = 4;

/// Returns the lateness of requests and the time of workers by state.
pub(super) fn condition(report: &LoadReport) -> Vec<(Text, Text)> {
    let mut rows: Vec<(Text, Text)> = Vec::new();
    for (head, id) in [
        ("lateness", id::LATENESS),
        ("generator lateness", id::GENERATOR_LATENESS),
    ] {
        if let Some(statistic) = report
            .global
            .statistic(id)
            .filter(|statistic| statistic.count() > 0)
        {
            rows.push((head.into(), distribution(statistic).into()));
        }
    }
    rows.extend(workers(&report.health.workers));
    let host = [
        ("foreign CPU", report.health.foreign_cpu_share),
        ("steal", report.health.steal_share),
    ];
    for (head, share) in host {
        let share = share.filter(|share| *share > 0.0);
        rows.extend(share.map(|share| {
            let text = format!("{} of the host's CPU time", words::percent(share));
            (head.into(), text.into())
        }));
    }
    rows
}

/// Returns the time of each worker by state; with many workers, the total and the
/// busiest.
fn workers(all: &[WorkerHealth]) -> Vec<(Text, Text)> {
    if all.len() <= WORKERS_EACH_MAX {
        return all.iter().map(worker).collect();
    }
    let mut sum = WorkerHealth {
        name: format!("{} workers", all.len()),
        ..WorkerHealth::default()
    };
    for worker in all {
        sum.idle += worker.idle;
        sum.blocked += worker.blocked;
        sum.running += worker.running;
        sum.late += worker.late;
    }
    let busiest = all.iter().max_by_key(|worker| worker.running);
    [&sum].into_iter().chain(busiest).map(worker).collect()
}

fn worker(worker: &WorkerHealth) -> (Text, Text) {
    let states = [worker.running, worker.blocked, worker.idle, worker.late];
    let total: f64 = states.iter().map(|state| state.as_secs_f64()).sum();
    let share = |state: Nanos| {
        words::percent(if total > 0.0 {
            state.as_secs_f64() / total
        } else {
            0.0
        })
    };
    let [running, blocked, idle, late] = states.map(share);
    let text = format!("running {running}, blocked {blocked}, idle {idle}, late {late}");
    (worker.name.replace('_', " ").into(), text.into())
}

/// Returns the warnings, and why the load ended before its end.
pub(super) fn warnings(report: &LoadReport) -> Vec<Block> {
    let warnings = report.health.warnings.iter().map(|warning| {
        let severity = if warning.invalidates {
            Severity::Warning
        } else {
            Severity::Note
        };
        Block::Note(severity, warning.text.as_str().into())
    });
    let ending = report.ending.to_string();
    let ending = match report.ending {
        // The expected end needs no line.
        Ending::Duration | Ending::Requests => None,
        _ if report.ending.is_failure() => Some(Block::Note(Severity::Failure, ending.into())),
        _ => Some(Block::paragraph(format!("ended early: {ending}"))),
    };
    let validity = words::validity(report.options.validity);
    let validity = validity.map(|text| Block::Note(Severity::Note, text.into()));
    warnings.chain(validity).chain(ending).collect()
}
