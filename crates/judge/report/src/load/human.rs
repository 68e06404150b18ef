//! A load for readers: the answer first, then how long answers took, then what
//! to think of the generator.

mod charts;
mod condition;
mod course;

use hdrhistogram::Histogram;
use stillwell_metric::{CallEnd, CallMessages, Outcome};
use stillwell_units::human::count;
use stillwell_units::{Nanos, float_from_u64};

use super::{
    AskedRate, LoadOptions, LoadReport, LoadResult, LoadStatistic, OutcomeCount, StatisticUnit, id,
    write_load_json,
};
use crate::document::{Block, Cell, Column, Document, Medium, Sign, Table, Text};
use crate::{Format, Style, words};

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

/// Returns the whole result.
#[must_use]
pub fn human(report: &LoadReport, style: Style) -> String {
    Format::Terminal.render(style, || document(report), String::new)
}

/// Returns the result in a form of reports.
#[must_use]
pub fn render(report: &LoadReport, format: Format, style: Style) -> String {
    format.render(style, || document(report), || write_load_json(report))
}

/// Returns the document: the answer, times of answers, and what to think of the generator.
fn document(report: &LoadReport) -> Document {
    let global = &report.global;
    let mut blocks = vec![Block::paragraph(requested(&report.options))];
    let explanation = explanation(report).map(Block::paragraph);
    blocks.extend([
        Block::group([Block::KeyValue(volume(report))]),
        Block::group([latency(report)]),
        Block::On(Medium::Browser, charts::charts(report)),
        Block::group([Block::KeyValue(failures(global))]),
        Block::group(explanation),
        Block::group(classes(global)),
        Block::group([Block::KeyValue(course::course(&report.intervals))]),
        Block::group([Block::KeyValue(condition::condition(report))]),
        Block::group(condition::warnings(report)),
    ]);
    let origin = format!(", Stillwell {}", report.version);
    let origin = Text::code(&report.command).and(origin);
    Document {
        is_wrapped: true,
        ..Document::new([
            Block::section(1, headline(report), blocks),
            Block::Colophon(origin),
        ])
    }
}

/// Returns statistics alone, one line each.
#[must_use]
pub fn statistics(all: &[LoadStatistic]) -> String {
    let rows = all.iter().filter(|own| own.count() > 0);
    let rows = rows.map(|own| (own.id.as_str().into(), distribution(own).into()));
    let document = || Document::new([Block::KeyValue(rows.collect())]);
    Format::Terminal.render(Style::default(), document, String::new)
}

fn headline(report: &LoadReport) -> Text {
    let options = &report.options;
    let target = match options.targets.as_slice() {
        [] => "no target".to_owned(),
        [only] => only.clone(),
        [first, others @ ..] => format!("{first} and {} more", others.len()),
    };
    let over = match &options.grpc_method {
        Some(method) => format!("{method} by gRPC"),
        None => format!("over {}", options.protocol),
    };
    let answer = format!("{target} {over}: {}", in_short(report));
    if report.health.is_valid() {
        return answer.into();
    }
    // Without responses there are no numbers.
    let warning = if has_answers(report) {
        "; these numbers are unreliable"
    } else {
        ""
    };
    Text::answer(Sign::Invalid, "invalid").and(format!(": {answer}{warning}"))
}

/// How fast requests were sent, unless that is not what matters.
fn in_short(report: &LoadReport) -> String {
    let count = |counts: fn(Outcome) -> bool| {
        let own = report.global.outcomes.iter();
        let own = own.filter(|own| counts(own.outcome));
        own.fold(0, |sum: u64, own| sum.saturating_add(own.count))
    };
    let ended = count(|_| true);
    let length = words::clock(report.global.execution_duration);
    if ended > 0 && !has_answers(report) {
        let ended = words::grouped(float_from_u64(ended));
        return format!("none of {ended} requests in {length} was answered");
    }
    let rate = words::grouped(report.health.sent_per_second);
    let mut told = format!("{rate} requests/s for {length}");
    let bad = count(|outcome| outcome != Outcome::Ok);
    if bad > 0 {
        let share = float_from_u64(bad) / float_from_u64(ended);
        told.push_str(&format!(", {} of them not ok", words::percent(share)));
    }
    told
}

fn has_answers(report: &LoadReport) -> bool {
    let mut all = report.global.outcomes.iter();
    all.any(|own| own.count > 0 && own.outcome.is_answer())
}

/// Returns what was requested, in one line.
fn requested(options: &LoadOptions) -> String {
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
        AskedRate::PerSecond(rate) if options.open_loop => {
            format!("{}/s", words::grouped(rate))
        }
        AskedRate::PerSecond(rate) => format!("at most {}/s", words::grouped(rate)),
    };
    let mut parts = vec![format!("{loop_kind}, {rate}")];
    // Without a schedule there is nothing more to say of it.
    if options.rate != AskedRate::Max && !matches!(&*options.arrival, "" | "constant") {
        parts.push(options.arrival.to_string());
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

/// Returns how much was sent and received.
fn volume(report: &LoadReport) -> Vec<(Text, Text)> {
    let global = &report.global;
    let seconds = global.execution_duration.as_secs_f64();
    let ended = |outcomes: &[OutcomeCount]| {
        let counts = outcomes.iter().map(|own| own.count);
        counts.fold(0, u64::saturating_add)
    };
    let mut requests = count(ended(&global.outcomes));
    if let (Some(asked), Some(share)) = (
        report.health.requested_per_second,
        report.health.achieved_share(),
    ) {
        requests.push_str(&format!(
            "; {}/s sent of {}/s requested ({})",
            words::grouped(report.health.sent_per_second),
            words::grouped(asked),
            words::percent(share)
        ));
    }
    let mut rows = vec![
        ("requests".into(), requests.into()),
        ("ended".into(), outcomes(&global.outcomes).into()),
    ];
    rows.extend(calls(global));
    rows.extend(connections(report));
    for (head, counter) in [
        ("received", "upstream_cx_rx_bytes_total"),
        ("sent", "upstream_cx_tx_bytes_total"),
    ] {
        let bytes = float_from_u64(global.counter(counter));
        if bytes > 0.0 && seconds > 0.0 {
            let each = words::bytes(bytes / seconds);
            let told = format!("{}, {each}/s", words::bytes(bytes));
            rows.push((head.into(), told.into()));
        }
    }
    for (head, id) in [
        ("connect", id::CONNECT),
        ("TLS handshake", id::TLS_HANDSHAKE),
    ] {
        if let Some(own) = global.statistic(id).filter(|own| own.count() > 0) {
            rows.push((head.into(), distribution(own).into()));
        }
    }
    rows
}

/// How calls ended and how many messages they had, where there were any.
fn calls(global: &LoadResult) -> Vec<(Text, Text)> {
    let counted = |name: &str| count(global.counter(name));
    let ends = CallEnd::ALL.iter().map(|end| end.name());
    let ends = ends.filter(|name| global.counter(name) > 0);
    let ends = ends.map(|name| {
        let short = name.strip_prefix("grpc_").unwrap_or(name);
        format!("{} {short}", counted(name))
    });
    let ends: Vec<String> = ends.collect();
    let [sent, received, compressed] = CallMessages::ALL.map(|which| which.name());
    let mut rows = Vec::new();
    if !ends.is_empty() {
        rows.push(("gRPC".into(), ends.join(", ").into()));
    }
    if global.counter(sent) > 0 {
        let mut told = format!("{} sent, {} received", counted(sent), counted(received));
        if global.counter(compressed) > 0 {
            told.push_str(&format!(", {} of them compressed", counted(compressed)));
        }
        rows.push(("messages".into(), told.into()));
    }
    rows
}

/// How many connections were opened, where that is not as it was asked for.
fn connections(report: &LoadReport) -> Option<(Text, Text)> {
    let opened = report.global.counter("upstream_cx_total");
    let failed = report.global.counter("upstream_cx_connect_fail");
    if opened == u64::from(report.options.connections) && failed == 0 || opened + failed == 0 {
        return None;
    }
    let (opened, failed) = (count(opened), count(failed));
    let told = format!("{opened} opened, {failed} attempts failed");
    Some(("connections".into(), told.into()))
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
fn latency(report: &LoadReport) -> Block {
    let global = &report.global;
    let columns = [
        ("from intended time", id::RESPONSE_TIME),
        ("from sent time", id::SERVICE_TIME),
        ("first byte", id::FIRST_BYTE),
        ("first message", id::FIRST_MESSAGE),
    ];
    let mut heads = vec!["latency"];
    let mut all = Vec::new();
    for (head, id) in columns {
        // In a closed loop both are the same.
        if id == id::RESPONSE_TIME && !report.options.open_loop {
            continue;
        }
        let own = global.statistic(id).filter(|own| own.count() > 0);
        if let Some((own, packed)) = own.and_then(|own| Some((own, own.histogram.as_ref()?))) {
            heads.push(head);
            all.push((own, packed.unpack()));
        }
    }
    let Some((first, _)) = all.first() else {
        return Block::paragraph("no answer, so no latency");
    };
    let samples = float_from_u64(first.count());
    let row = |name: &str, of: &dyn Fn(&LoadStatistic, &Histogram<u64>) -> f64| {
        let times = all.iter().map(|(own, histogram)| of(own, histogram));
        let cells = times.map(|time| Cell::number(words::time(time), time, "ns"));
        [Cell::from(name)].into_iter().chain(cells).collect()
    };
    let quantiles = QUANTILES.into_iter();
    // One sample beyond it at least, or it would be the largest once more.
    let quantiles = quantiles.filter(|(_, share)| samples * (1.0 - share) >= 1.0);
    let rows = quantiles.map(|(name, share)| {
        row(name, &|_, histogram| {
            float_from_u64(histogram.value_at_quantile(share))
        })
    });
    let max = row("max", &|own, _| float_from_u64(own.moments.max));
    let mean = row("mean", &|own, _| own.moments.mean());
    let columns = heads.into_iter().map(Column::of_numbers);
    Block::Table(Table::new(columns, rows.chain([max, mean])))
}

/// How long requests took that got no answer, by how they ended.
fn failures(global: &LoadResult) -> Vec<(Text, Text)> {
    let rows = Outcome::FAILURES.into_iter().filter_map(|end| {
        let own = global.statistic(&id::of_class(id::FAILED_TIME, end))?;
        let head = format!("{} after", end.name());
        (own.count() > 0).then(|| (head.into(), distribution(own).into()))
    });
    rows.collect()
}

/// Why both latencies differ, where they do, and what a closed loop cannot see.
fn explanation(report: &LoadReport) -> Option<String> {
    let p99 = |id: &str| {
        let packed = report.global.statistic(id)?.histogram.as_ref()?;
        let histogram = packed.unpack();
        (!histogram.is_empty()).then(|| float_from_u64(histogram.value_at_quantile(0.99)))
    };
    let (intended, sent) = p99(id::RESPONSE_TIME).zip(p99(id::SERVICE_TIME))?;
    let both = format!(
        "p99 is {} from the intended time and {} from the sent time",
        words::time(intended),
        words::time(sent)
    );
    let is_own = p99(id::OWN_LATENESS).is_some_and(|own| own >= (intended - sent) / 2.0);
    let text = if !report.options.open_loop && report.options.rate != AskedRate::Max {
        "Latency counts from the sent time: while the target stalls, requests are held back, and \
         how long they would have waited is not seen. Without --closed-loop it is."
            .to_owned()
    } else if !report.options.open_loop {
        "A closed loop sends the next request when an answer has come: while the target \
         stalls, nothing is sent, and what would have waited is not seen. --rate sees it."
            .to_owned()
    } else if intended <= sent * 1.2 {
        return None;
    } else if is_own {
        format!("{both}: the generator itself was late.")
    } else {
        format!(
            "{both}: requests were due while earlier ones were still unanswered, and had to wait \
             for a connection. Whoever sent them would have waited as well; a closed loop would \
             have told {}.",
            words::time(sent)
        )
    };
    Some(text)
}

fn classes(global: &LoadResult) -> Option<Block> {
    if global.classes.is_empty() {
        return None;
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
    let rows = global.classes.iter().map(|class| {
        let bad = class
            .outcomes
            .iter()
            .filter(|own| own.outcome != Outcome::Ok);
        let bad = bad.fold(0, |sum: u64, own| sum.saturating_add(own.count));
        let at = |own: &LoadStatistic, share: f64| {
            let packed = own.histogram.as_ref().filter(|packed| !packed.is_empty());
            let time = packed.map(|own| float_from_u64(own.unpack().value_at_quantile(share)));
            time.map_or_else(
                || words::MISSING.into(),
                |time| Cell::number(words::time(time), time, "ns"),
            )
        };
        vec![
            class.name.as_str().into(),
            count(class.sent).into(),
            count(bad).into(),
            at(&class.response_time, 0.5),
            at(&class.response_time, 0.99),
            at(&class.response_time, 1.0),
            at(&class.service_time, 0.99),
        ]
    });
    let table = Table::new(head.map(Column::of_numbers), rows);
    Some(Block::Table(table))
}
