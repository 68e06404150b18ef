//! What to think of the generator.

use stillwell_units::Nanos;

use super::distribution;
use crate::document::{Block, Severity, Text};
use crate::load::{LoadReport, WorkerHealth, id};
use crate::words;

/// Of more workers than these not each is told of.
const WORKERS_EACH_MAX: usize = 4;

/// How late requests were sent, and where the workers' time went.
pub(super) fn condition(report: &LoadReport) -> Vec<(Text, Text)> {
    let mut rows: Vec<(Text, Text)> = Vec::new();
    for (head, id) in [
        ("lateness", id::LATENESS),
        ("own lateness", id::OWN_LATENESS),
    ] {
        if let Some(own) = report.global.statistic(id).filter(|own| own.count() > 0) {
            rows.push((head.into(), distribution(own).into()));
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

/// Where the time of each worker went; of many, that of all and of the one that ran
/// most.
fn workers(all: &[WorkerHealth]) -> Vec<(Text, Text)> {
    if all.len() <= WORKERS_EACH_MAX {
        return all.iter().map(worker).collect();
    }
    let mut sum = WorkerHealth {
        name: format!("{} workers", all.len()),
        ..WorkerHealth::default()
    };
    for own in all {
        sum.ahead += own.ahead;
        sum.blocked += own.blocked;
        sum.running += own.running;
        sum.late += own.late;
    }
    let busiest = all.iter().max_by_key(|own| own.running);
    [&sum].into_iter().chain(busiest).map(worker).collect()
}

fn worker(own: &WorkerHealth) -> (Text, Text) {
    let states = [own.running, own.blocked, own.ahead, own.late];
    let total: f64 = states.iter().map(|own| own.as_secs_f64()).sum();
    let share = |own: Nanos| {
        words::percent(if total > 0.0 {
            own.as_secs_f64() / total
        } else {
            0.0
        })
    };
    let [running, blocked, ahead, late] = states.map(share);
    let told = format!("running {running}, blocked {blocked}, ahead {ahead}, late {late}");
    (own.name.as_str().into(), told.into())
}

/// Returns the warnings, and why the load ended.
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
    let ending = if report.ending.is_failure() {
        Block::Note(Severity::Failure, ending.into())
    } else {
        Block::paragraph(format!("ended because {ending}"))
    };
    warnings.chain([ending]).collect()
}
