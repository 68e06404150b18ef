//! A load for readers: the answer first, then how long answers took, then what
//! to think of the generator.

mod course;

use stillwell_metric::Outcome;
use stillwell_units::{Nanos, float_from_u64};

use super::{
    AskedRate, LoadOptions, LoadReport, LoadResult, LoadStatistic, OutcomeCount, StatisticUnit, id,
};
use crate::{Style, words};

/// Quantiles that are told.
const QUANTILES: [(&str, f64); 7] = [
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
];

/// The whole result.
pub(super) fn human(report: &LoadReport, style: Style) -> String {
    let mut text = format!(
        "{}\n{}\n\n",
        headline(report, style),
        asked(&report.options)
    );
    text.push_str(&words::columns(&volume(report), 2));
    text.push_str(&latency(&report.global));
    text.push_str(&explanation(report));
    text.push_str(&classes(&report.global));
    text.push_str(&course::course(&report.intervals));
    text.push_str(&health(report));
    text.push_str(&findings(report, style));
    text
}

/// Statistics alone, one line each.
pub(super) fn statistics(all: &[LoadStatistic]) -> String {
    let rows = all.iter().filter(|own| own.count() > 0);
    let rows = rows.map(|own| vec![words::plain(&own.id), distribution(own)]);
    words::columns(&rows.collect::<Vec<_>>(), 0)
}

fn headline(report: &LoadReport, style: Style) -> String {
    let options = &report.options;
    let target = match options.targets.as_slice() {
        [] => "no target".to_owned(),
        [only] => words::plain(only),
        [first, others @ ..] => format!("{} and {} more", words::plain(first), others.len()),
    };
    let length = words::clock(report.global.execution_duration);
    let rate = words::grouped(report.health.sent_per_second);
    let told = format!(
        "{target} over {}: {rate} requests/s for {length}",
        options.protocol
    );
    if report.health.is_valid() {
        told
    } else {
        format!("{}: {told}, must not be believed", style.bad("! invalid"))
    }
}

/// What was asked for, in one line.
fn asked(options: &LoadOptions) -> String {
    let count = |count: u32, one: &str| {
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {one}{plural}")
    };
    let loop_kind = if options.open_loop {
        "open loop"
    } else {
        "closed loop"
    };
    let rate = match options.rate {
        AskedRate::Max => "as fast as answers come".to_owned(),
        AskedRate::PerSecond(rate) => format!("{}/s", words::grouped(rate)),
    };
    let mut parts = vec![format!("{loop_kind}, {rate}")];
    if !matches!(&*options.arrival, "" | "constant") {
        parts.push(words::plain(&options.arrival));
    }
    parts.push(count(options.workers, "worker"));
    parts.push(count(options.connections, "connection"));
    if options.streams > 1 {
        parts.push(format!("{} streams each", options.streams));
    }
    if options.warmup > Nanos::ZERO {
        parts.push(format!("after {} of warm-up", words::clock(options.warmup)));
    }
    parts.join(", ")
}

fn volume(report: &LoadReport) -> Vec<Vec<String>> {
    let global = &report.global;
    let seconds = global.execution_duration.as_secs_f64();
    let ended = |outcomes: &[OutcomeCount]| {
        let counts = outcomes.iter().map(|own| own.count);
        counts.fold(0, u64::saturating_add)
    };
    let mut requests = words::grouped(float_from_u64(ended(&global.outcomes)));
    if let (Some(asked), Some(share)) = (
        report.health.asked_per_second,
        report.health.achieved_share(),
    ) {
        requests.push_str(&format!(
            "; {}/s sent of {}/s asked ({})",
            words::grouped(report.health.sent_per_second),
            words::grouped(asked),
            words::percent(share)
        ));
    }
    let mut rows = vec![
        vec!["requests".to_owned(), requests],
        vec!["ended".to_owned(), outcomes(&global.outcomes)],
    ];
    for (head, counter) in [
        ("received", "upstream_cx_rx_bytes_total"),
        ("sent", "upstream_cx_tx_bytes_total"),
    ] {
        let bytes = float_from_u64(global.counter(counter));
        if bytes > 0.0 && seconds > 0.0 {
            let each = words::bytes(bytes / seconds);
            let told = format!("{}, {each}/s", words::bytes(bytes));
            rows.push(vec![head.to_owned(), told]);
        }
    }
    for (head, id) in [
        ("connect", id::CONNECT),
        ("TLS handshake", id::TLS_HANDSHAKE),
    ] {
        if let Some(own) = global.statistic(id).filter(|own| own.count() > 0) {
            rows.push(vec![head.to_owned(), distribution(own)]);
        }
    }
    rows
}

/// `9,992 ok, 2 timed_out`.
fn outcomes(all: &[OutcomeCount]) -> String {
    let told = all.iter().filter(|own| own.count > 0).map(|own| {
        let count = words::grouped(float_from_u64(own.count));
        format!("{count} {}", own.outcome.name())
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() {
        "none".to_owned()
    } else {
        told.join(", ")
    }
}

/// `p50 …, p99 …, p99.9 …, max …`.
fn distribution(own: &LoadStatistic) -> String {
    let number = |value: u64| value_text(own, float_from_u64(value));
    let moments = own.moments;
    match &own.histogram {
        Some(packed) => {
            let histogram = packed.unpack();
            let at = |share: f64| number(histogram.value_at_quantile(share).min(moments.max));
            format!(
                "p50 {}, p99 {}, p99.9 {}, max {}",
                at(0.5),
                at(0.99),
                at(0.999),
                number(moments.max)
            )
        }
        None => format!(
            "mean {}, min {}, max {}",
            value_text(own, moments.mean()),
            number(moments.min),
            number(moments.max)
        ),
    }
}

fn value_text(own: &LoadStatistic, value: f64) -> String {
    match own.unit {
        StatisticUnit::Nanoseconds => words::time(value),
        StatisticUnit::Plain => words::significant(value),
    }
}

/// Times of answers in columns, as far as there are any.
fn latency(global: &LoadResult) -> String {
    let columns = [
        ("from intended time", id::RESPONSE_TIME),
        ("from sent time", id::SERVICE_TIME),
        ("first byte", id::FIRST_BYTE),
    ];
    let mut heads = vec!["latency".to_owned()];
    let mut all = Vec::new();
    for (head, id) in columns {
        let own = global.statistic(id).filter(|own| own.count() > 0);
        if let Some((own, packed)) = own.and_then(|own| Some((own, own.histogram.as_ref()?))) {
            heads.push(head.to_owned());
            all.push((own, packed.unpack()));
        }
    }
    if all.is_empty() {
        return "\n  no answer, so no latency\n".to_owned();
    }
    let samples = all.first().map_or(0, |(own, _)| own.count());
    let mut rows = vec![heads];
    for (name, share) in QUANTILES {
        // One sample beyond it at least, or it would be the largest once more.
        if float_from_u64(samples) * (1.0 - share) >= 1.0 {
            let cells = all
                .iter()
                .map(|(_, own)| words::time(float_from_u64(own.value_at_quantile(share))));
            rows.push([name.to_owned()].into_iter().chain(cells).collect());
        }
    }
    let cells =
        |of: fn(&LoadStatistic) -> f64| all.iter().map(move |(own, _)| words::time(of(own)));
    rows.push(
        ["max".to_owned()]
            .into_iter()
            .chain(cells(|own| float_from_u64(own.moments.max)))
            .collect(),
    );
    rows.push(
        ["mean".to_owned()]
            .into_iter()
            .chain(cells(|own| own.moments.mean()))
            .collect(),
    );
    format!("\n{}", words::columns(&rows, 2))
}

/// Why both latencies differ, where they do, and what a closed loop cannot see.
fn explanation(report: &LoadReport) -> String {
    let p99 = |id: &str| {
        let packed = report.global.statistic(id)?.histogram.as_ref()?;
        let histogram = packed.unpack();
        (!histogram.is_empty()).then(|| float_from_u64(histogram.value_at_quantile(0.99)))
    };
    let Some((intended, sent)) = p99(id::RESPONSE_TIME).zip(p99(id::SERVICE_TIME)) else {
        return String::new();
    };
    if !report.options.open_loop {
        return "\n  A closed loop sends the next request when an answer has come: while the target\n  \
                stalls, nothing is sent, and what would have waited is not seen. --rate sees it.\n"
            .to_owned();
    }
    if intended <= sent * 1.2 {
        return String::new();
    }
    if p99(id::OWN_LATENESS).is_some_and(|own| own >= (intended - sent) / 2.0) {
        return format!(
            "\n  p99 is {} from the intended time and {} from the sent time: the generator itself was late.\n",
            words::time(intended),
            words::time(sent)
        );
    }
    format!(
        "\n  p99 is {} from the intended time and {} from the sent time: requests were due\n  \
         while earlier ones were still unanswered, and had to wait for a connection. Whoever\n  \
         sent them would have waited as well; a closed loop would have told {}.\n",
        words::time(intended),
        words::time(sent),
        words::time(sent)
    )
}

fn classes(global: &LoadResult) -> String {
    if global.classes.is_empty() {
        return String::new();
    }
    let head = [
        "class",
        "requests",
        "not ok",
        "p50",
        "p99",
        "max",
        "p99 from sent time",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for class in &global.classes {
        let bad = class
            .outcomes
            .iter()
            .filter(|own| own.outcome != Outcome::Ok);
        let bad = bad.fold(0, |sum: u64, own| sum.saturating_add(own.count));
        let at = |own: &LoadStatistic, share: f64| {
            let value = own.histogram.as_ref().filter(|packed| !packed.is_empty());
            words::or_missing(value.map(|packed| {
                words::time(float_from_u64(packed.unpack().value_at_quantile(share)))
            }))
        };
        rows.push(vec![
            words::plain(&class.name),
            words::grouped(float_from_u64(class.sent)),
            words::grouped(float_from_u64(bad)),
            at(&class.response_time, 0.5),
            at(&class.response_time, 0.99),
            at(&class.response_time, 1.0),
            at(&class.service_time, 0.99),
        ]);
    }
    format!("\n{}", words::columns(&rows, 2))
}

fn health(report: &LoadReport) -> String {
    let mut rows = Vec::new();
    for (head, id) in [
        ("lateness", id::LATENESS),
        ("own lateness", id::OWN_LATENESS),
    ] {
        if let Some(own) = report.global.statistic(id).filter(|own| own.count() > 0) {
            rows.push(vec![head.to_owned(), distribution(own)]);
        }
    }
    for worker in &report.health.workers {
        let states = [worker.running, worker.blocked, worker.ahead, worker.late];
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
        rows.push(vec![words::plain(&worker.name), told]);
    }
    let host = [
        ("foreign CPU", report.health.foreign_cpu_share),
        ("steal", report.health.steal_share),
    ];
    for (head, share) in host {
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

fn findings(report: &LoadReport, style: Style) -> String {
    let mut text = String::from("\n");
    for finding in &report.health.findings {
        let head = if finding.invalidates {
            style.bad("doubt:")
        } else {
            "note:".to_owned()
        };
        text.push_str(&format!("  {head} {}\n", words::plain(&finding.text)));
    }
    let ending = words::plain(&report.ending.to_string());
    if report.ending.is_failure() {
        text.push_str(&format!("  {} {ending}\n", style.bad("failed:")));
    } else {
        text.push_str(&format!("  ended because {ending}\n"));
    }
    text
}
