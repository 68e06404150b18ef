//! What to think of the generator.

use stillwell_units::Nanos;

use super::{distribution, paragraph};
use crate::load::{LoadReport, WorkerHealth, id};
use crate::{Style, words};

/// Of more workers than these not each is told of.
const WORKERS_EACH_MAX: usize = 4;

/// How late requests were sent, and where the workers' time went.
pub(super) fn condition(report: &LoadReport) -> String {
    let mut rows = Vec::new();
    for (head, id) in [
        ("lateness", id::LATENESS),
        ("own lateness", id::OWN_LATENESS),
    ] {
        if let Some(own) = report.global.statistic(id).filter(|own| own.count() > 0) {
            rows.push(vec![head.to_owned(), distribution(own)]);
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
            vec![
                head.to_owned(),
                format!("{} of the host's CPU time", words::percent(share)),
            ]
        }));
    }
    if rows.is_empty() {
        return String::new();
    }
    format!("\n{}", words::columns(&rows, 2))
}

/// Where the time of each worker went; of many, that of all and of the one that ran
/// most.
fn workers(all: &[WorkerHealth]) -> Vec<Vec<String>> {
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

fn worker(own: &WorkerHealth) -> Vec<String> {
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
    vec![words::plain(&own.name), told]
}

/// What to doubt, and why it ended.
pub(super) fn findings(report: &LoadReport, style: Style) -> String {
    let mut text = String::from("\n");
    for finding in &report.health.findings {
        // Escapes take no column, and so make a line a little shorter.
        let head = if finding.invalidates {
            style.bad("doubt:")
        } else {
            "note:".to_owned()
        };
        text.push_str(&paragraph(&head, &words::plain(&finding.text), style));
    }
    let ending = words::plain(&report.ending.to_string());
    if report.ending.is_failure() {
        text.push_str(&paragraph(&style.bad("failed:"), &ending, style));
    } else {
        text.push_str(&paragraph("ended because", &ending, style));
    }
    text
}
