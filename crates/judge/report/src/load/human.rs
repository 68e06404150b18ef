//! A load for readers: figures, then warnings, then a summary that is last on the
//! screen.

pub(super) mod charts;
mod condition;
mod course;
mod spread;
mod summary;

use hdrhistogram::Histogram;
use stillwell_metric::{CallEnd, CallMessages, Outcome};
use stillwell_units::human::count;
use stillwell_units::{Nanos, float_from_u64};

use super::brief::ended;
use super::{
    LoadOptions, LoadReport, LoadResult, LoadStatistic, OutcomeCount, RequestedRate, StatisticUnit,
    id, write_load_json,
};
use crate::document::{Block, Cell, Column, Document, Medium, Table, Text};
use crate::{Format, FullReport, Style, words};

/// Printed quantiles.
const QUANTILES: [(&str, f64); 7] = [
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
];

/// A smaller share of requests that a random schedule did not send is chance.
const RANDOM_SHARE: f64 = 0.05;

/// Returns the whole result.
#[must_use]
pub fn human(report: &LoadReport, style: Style) -> String {
    Format::Terminal.render(style, || document(report), String::new)
}

/// Returns the result in a form of reports.
#[must_use]
pub fn render(report: &LoadReport, format: Format, style: Style) -> String {
    let data = || match format {
        Format::Json => write_load_json(report),
        _ => page_data(report),
    };
    format.render(style, || document(report), data)
}

impl From<&LoadReport> for FullReport {
    fn from(report: &LoadReport) -> Self {
        Self {
            document: document(report),
            data: write_load_json(report),
            page_data: Some(page_data(report)),
        }
    }
}

/// Returns the data of a page, whose size does not grow with the duration of the load.
fn page_data(report: &LoadReport) -> String {
    write_load_json(&report.coarse())
}

/// Returns the document. A terminal shows the summary last, where it stays on the screen; a
/// page begins with it.
fn document(report: &LoadReport) -> Document {
    let origin = format!(", seed {}, Stillwell {}", report.seed, report.version);
    let origin = Text::code(&report.command).and(origin);
    Document {
        is_wrapped: true,
        ..Document::new([
            Block::on_screen([
                Block::section(1, title(report), figures(report)),
                Block::section(1, summary::headline(report), summary::blocks(report)),
            ]),
            Block::on_page([Block::section(
                1,
                summary::page_headline(report, &title(report)),
                figures(report),
            )]),
            Block::Colophon(origin),
        ])
    }
}

/// Returns all figures. Warnings are below the headline of a page and the last lines of a terminal.
fn figures(report: &LoadReport) -> Vec<Block> {
    let global = &report.global;
    let warnings = condition::warnings(report);
    let mut blocks = vec![
        Block::on_page([Block::group(warnings.clone())]),
        Block::paragraph(requested(&report.options)),
    ];
    let explanation = explanation(report).map(Block::paragraph);
    blocks.extend([
        Block::group([Block::KeyValue(volume(report))]),
        Block::group([latency(report)]),
        Block::on_screen([Block::group([Block::KeyValue(spread::spread(report))])]),
        Block::On(Medium::Browser, charts::charts(report)),
        Block::group([Block::KeyValue(failures(global))]),
        Block::group(explanation),
        Block::group(classes(global)),
        Block::group([Block::KeyValue(course::course(&report.intervals))]),
        Block::group([Block::KeyValue(condition::condition(report))]),
        Block::on_screen([Block::group(warnings)]),
    ]);
    blocks
}

/// Returns statistics alone, one line each.
#[must_use]
pub fn statistics(all: &[LoadStatistic]) -> String {
    let rows = all.iter().filter(|statistic| statistic.count() > 0);
    let rows = rows.map(|statistic| (statistic.id.as_str().into(), distribution(statistic).into()));
    let document = || Document::new([Block::KeyValue(rows.collect())]);
    Format::Terminal.render(Style::default(), document, String::new)
}

/// Returns the target and the protocol.
fn title(report: &LoadReport) -> String {
    let options = &report.options;
    let target = match options.targets.as_slice() {
        [] => "no target".to_owned(),
        [only] => only.clone(),
        [first, more @ ..] => format!("{first} and {} more", more.len()),
    };
    let over = match &options.grpc_method {
        Some(method) => format!("{method} by gRPC"),
        None => format!("over {}", options.protocol),
    };
    format!("{target} {over}")
}

fn has_answers(report: &LoadReport) -> bool {
    let mut all = report.global.outcomes.iter();
    all.any(|count| count.count > 0 && count.outcome.is_answer())
}

/// Returns what was requested, in one line.
fn requested(options: &LoadOptions) -> String {
    let count = |count: u32, noun: &str| {
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {noun}{plural}")
    };
    let loop_kind = if options.open_loop {
        "open loop"
    } else {
        "closed loop"
    };
    let rate = match options.rate {
        RequestedRate::Max => "as fast as responses arrive".to_owned(),
        RequestedRate::PerSecond(rate) if options.open_loop => {
            format!("{}/s", words::grouped(rate))
        }
        RequestedRate::PerSecond(rate) => format!("at most {}/s", words::grouped(rate)),
    };
    let mut parts = vec![format!("{loop_kind}, {rate}")];
    // Without a schedule there is nothing more to say of it.
    if options.rate != RequestedRate::Max && !matches!(&*options.arrival, "" | "constant") {
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
    let mut requests = count(ended(&global.outcomes));
    if let (Some(requested), Some(share)) = (
        report.health.requested_per_second,
        report.health.achieved_share(),
    ) {
        requests.push_str(&format!(
            "; {}/s sent of {}/s requested ({})",
            words::grouped(report.health.sent_per_second),
            words::grouped(requested),
            words::percent(share)
        ));
    }
    let mut rows = vec![("requests".into(), requests.into())];
    rows.extend(not_sent(report));
    rows.push(("outcomes".into(), outcomes(&global.outcomes).into()));
    rows.extend(statuses(report));
    rows.extend(calls(global));
    rows.extend(connections(report));
    for (head, counter) in [
        ("received", "upstream_cx_rx_bytes_total"),
        ("sent", "upstream_cx_tx_bytes_total"),
    ] {
        let bytes = float_from_u64(global.counter(counter));
        if bytes > 0.0 && seconds > 0.0 {
            let each = words::bytes(bytes / seconds);
            let text = format!("{}, {each}/s", words::bytes(bytes));
            rows.push((head.into(), text.into()));
        }
    }
    for (head, id) in [
        ("connect", id::CONNECT),
        ("TLS handshake", id::TLS_HANDSHAKE),
    ] {
        if let Some(entry) = global.statistic(id).filter(|entry| entry.count() > 0) {
            rows.push((head.into(), distribution(entry).into()));
        }
    }
    rows
}

/// Returns the requests that were due by the schedule and never sent, if any.
fn not_sent(report: &LoadReport) -> Option<(Text, Text)> {
    let (due, missing) = (report.due(), report.not_sent());
    let share = float_from_u64(missing) / float_from_u64(due.max(1));
    // By its curve, a random schedule sends a few more or fewer than its mean.
    let mut random = ["jitter", "poisson", "zipf"].iter();
    let is_random = random.any(|word| report.options.arrival.contains(word));
    if missing == 0 || report.due.is_none() && is_random && share < RANDOM_SHARE {
        return None;
    }
    let text = format!(
        "{} of {} requests that were due ({})",
        count(missing),
        count(due),
        words::percent(share)
    );
    Some(("not sent".into(), text.into()))
}

/// Returns the responses by status code, if they are known.
fn statuses(report: &LoadReport) -> Option<(Text, Text)> {
    let global = &report.global;
    // A gRPC call has a status of its own.
    if global.statuses.is_empty() || report.options.grpc_method.is_some() {
        return None;
    }
    let codes = global.statuses.iter();
    let codes = codes.map(|(status, responses)| format!("{status}: {}", count(*responses)));
    let codes: Vec<String> = codes.collect();
    Some(("status codes".into(), codes.join(", ").into()))
}

/// Returns the ends of calls and the number of their messages, if there were any.
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
        let mut text = format!("{} sent, {} received", counted(sent), counted(received));
        if global.counter(compressed) > 0 {
            text.push_str(&format!(", {} of them compressed", counted(compressed)));
        }
        rows.push(("messages".into(), text.into()));
    }
    rows
}

/// Returns the number of opened connections, if it differs from the requested one.
fn connections(report: &LoadReport) -> Option<(Text, Text)> {
    let opened = report.global.counter("upstream_cx_total");
    let failed = report.global.counter("upstream_cx_connect_fail");
    if opened == u64::from(report.options.connections) && failed == 0 || opened + failed == 0 {
        return None;
    }
    let (opened, failed) = (count(opened), count(failed));
    let text = format!("{opened} opened, {failed} attempts failed");
    Some(("connections".into(), text.into()))
}

/// `9,992 ok, 2 timed_out`.
fn outcomes(all: &[OutcomeCount]) -> String {
    let parts = all.iter().filter(|entry| entry.count > 0).map(|entry| {
        let count = words::grouped(float_from_u64(entry.count));
        format!("{count} {}", entry.outcome.name())
    });
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() {
        "none".to_owned()
    } else {
        parts.join(", ")
    }
}

/// `p50 …, p99 …, p99.9 …, max …`.
fn distribution(statistic: &LoadStatistic) -> String {
    let number = |value: u64| value_text(statistic, float_from_u64(value));
    let moments = statistic.moments;
    match &statistic.histogram {
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
            value_text(statistic, moments.mean()),
            number(moments.min),
            number(moments.max)
        ),
    }
}

fn value_text(statistic: &LoadStatistic, value: f64) -> String {
    match statistic.unit {
        StatisticUnit::Nanoseconds => words::time(value),
        StatisticUnit::Plain => words::significant(value),
    }
}

/// Heads of the table of latencies.
const TIMES_EXPLAINED: &str = "intended time: when the schedule requested the send; sent time: when the \
                               request was sent, after any wait for a connection";

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
        let statistic = global
            .statistic(id)
            .filter(|statistic| statistic.count() > 0);
        if let Some((statistic, packed)) =
            statistic.and_then(|statistic| Some((statistic, statistic.histogram.as_ref()?)))
        {
            heads.push(head);
            all.push((statistic, packed.unpack()));
        }
    }
    let Some((first, _)) = all.first() else {
        return Block::paragraph("no response, so no latency");
    };
    let samples = float_from_u64(first.count());
    let row = |name: &str, of: &dyn Fn(&LoadStatistic, &Histogram<u64>) -> f64| {
        let times = all
            .iter()
            .map(|(statistic, histogram)| of(statistic, histogram));
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
    let max = row("max", &|statistic, _| float_from_u64(statistic.moments.max));
    let mean = row("mean", &|statistic, _| statistic.moments.mean());
    let note = heads.contains(&"from intended time");
    let note = note.then(|| Text::dim(TIMES_EXPLAINED));
    let columns = heads.into_iter().map(Column::of_numbers);
    let table = Table::new(columns, rows.chain([max, mean]));
    Block::Table(Table { note, ..table })
}

/// Returns the duration of requests without an answer, by their end.
fn failures(global: &LoadResult) -> Vec<(Text, Text)> {
    let rows = Outcome::FAILURES.into_iter().filter_map(|end| {
        let statistic = global.statistic(&id::of_class(id::FAILED_TIME, end))?;
        let head = format!("{} after", end.name());
        (statistic.count() > 0).then(|| (head.into(), distribution(statistic).into()))
    });
    rows.collect()
}

/// Explains a difference of both latencies, and the blind spot of a closed loop.
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
    let is_generator_late =
        p99(id::GENERATOR_LATENESS).is_some_and(|lateness| lateness >= (intended - sent) / 2.0);
    let text = if !report.options.open_loop && report.options.rate != RequestedRate::Max {
        "Latency counts from the sent time: while the target stalls, requests are delayed, and \
         the delay is not measured. It is measured without --closed-loop."
            .to_owned()
    } else if !report.options.open_loop {
        "A closed loop sends the next request after a response: while the target stalls, nothing \
         is sent, and that wait is not measured. Use --rate to measure it."
            .to_owned()
    } else if intended <= sent * 1.2 {
        return None;
    } else if is_generator_late {
        format!("{both}: the generator itself was late.")
    } else {
        format!(
            "{both}: requests were due while earlier ones were still unanswered, and had to wait \
             for a connection. A real client would have waited as well; a closed loop would \
             have reported {}.",
            words::time(sent)
        )
    };
    Some(text)
}

/// Requests under way at the end are no errors.
const fn is_good(outcome: Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Ok | Outcome::Status3xx | Outcome::Unfinished
    )
}

fn classes(global: &LoadResult) -> Option<Block> {
    if global.classes.is_empty() {
        return None;
    }
    let head = [
        "route",
        "requests",
        "errors",
        "p50",
        "p99",
        "max",
        "p99 from sent time",
    ];
    let rows = global.classes.iter().map(|class| {
        let bad = class
            .outcomes
            .iter()
            .filter(|entry| !is_good(entry.outcome));
        let bad = bad.fold(0, |sum: u64, entry| sum.saturating_add(entry.count));
        let at = |entry: &LoadStatistic, share: f64| {
            let packed = entry.histogram.as_ref().filter(|packed| !packed.is_empty());
            let time =
                packed.map(|packed| float_from_u64(packed.unpack().value_at_quantile(share)));
            time.map_or_else(
                || words::MISSING.into(),
                |time| Cell::number(words::time(time), time, "ns"),
            )
        };
        vec![
            class.name.as_str().into(),
            count(ended(&class.outcomes)).into(),
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
