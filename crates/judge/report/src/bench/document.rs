//! For readers: a table of latencies in the format of HdrHistogram's plotters, and the
//! delivery of events.

use hdrhistogram::Histogram;
use stillwell_metric::hdr_table;
use stillwell_units::float_from_u64;
use stillwell_units::human::count as whole;

use super::BenchReport;
use crate::document::{Block, Chart, Document, Fold, Language, Medium, Section, Sign, Text};
use crate::percentiles::percentile_chart;
use crate::run::stamps;
use crate::words;

/// Returns the document. A terminal gets the table of latencies in nanoseconds, line by line, the throughput and
/// the delivery of the events: plotters of `HdrHistogram` take the table and leave out the rest. A page begins with
/// the answer and shows charts.
pub(super) fn document(report: &BenchReport) -> Document {
    let table = report.table();
    let layout = hdr_table(&table) + &report.window.throughput_lines();
    let rows = rows(report).into_iter();
    let rows: Vec<_> = rows
        .map(|(head, text)| (head.into(), text.into()))
        .collect();
    let failures = report.failures().into_iter();
    let failures = failures.map(|failure| format!("failed: {failure}"));
    let warnings = report.warnings.iter();
    let warnings = warnings.map(|failure| format!("rates and latencies are unreliable: {failure}"));
    let problems = failures.chain(warnings);
    let problems = problems.map(|text| Text::answer(Sign::Invalid, text));
    let problems = Block::list(problems);
    let title = "#[Latency from the intended time, in nanoseconds]";
    let layout = Block::Code(Language::Text, layout);
    let figures = Block::KeyValue(rows);
    let screen = [layout.clone(), Block::group([figures.clone()])];
    Document::new([
        Block::on_screen([
            Block::section(1, title, screen),
            Block::group([
                problems.clone(),
                Block::paragraph(headline(report, "failed")),
            ]),
        ]),
        Block::on_page([
            Block::section(
                1,
                headline(report, report.failures().first().map_or("", String::as_str)),
                [problems, figures],
            ),
            Block::On(Medium::Browser, charts(report)),
            Block::Section(Section {
                fold: Fold::Folded("Latency from the intended time, in nanoseconds".into()),
                blocks: vec![layout],
                ..Section::default()
            }),
            origin(report),
        ]),
    ])
}

/// Returns the answer in a sentence; `failure` is its text for a bench that failed.
fn headline(report: &BenchReport, failure: &str) -> Text {
    let (sign, answer) = match report.failures().as_slice() {
        [] if report.ledger.is_some() && !report.lossy => (Sign::Same, "every event arrived"),
        [] => (Sign::Same, "completed"),
        [_, ..] => (Sign::Worse, failure),
    };
    let times = &report.latency;
    let latency = (!times.is_empty()).then(|| {
        let p99 = words::time(float_from_u64(times.value_at_quantile(0.99)));
        format!(", p99 {p99}")
    });
    let rate = words::grouped(report.window.events_per_second().round());
    let name = &report.name;
    Text::answer(sign, answer).and(format!(
        " · {name}: {rate} events/s{}",
        latency.unwrap_or_default()
    ))
}

fn charts(report: &BenchReport) -> Vec<Block> {
    let times = [
        ("from the intended time", &report.latency),
        ("from the sent time", &report.transit),
    ];
    let over_time = report.curves.iter().cloned();
    let over_time = over_time.map(|curve| Block::Chart(Chart::Curve(curve)));
    percentile_chart(&times)
        .into_iter()
        .chain(over_time)
        .collect()
}

fn origin(report: &BenchReport) -> Block {
    let origin = format!(
        ", Stillwell {}; capture in {}",
        report.version, report.capture
    );
    Block::Colophon(Text::code(&report.command).and(origin))
}

/// Returns a number with its noun, whose singular is `plural` without its last letter.
fn number_of(number: u64, plural: &str) -> String {
    let noun = match number {
        1 => plural.trim_end_matches('s'),
        _ => plural,
    };
    format!("{} {noun}", whole(number))
}

fn rows(report: &BenchReport) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = Vec::new();
    let is_timed = !report.latency.is_empty();
    // Without stamps the sink cannot separate events from lines, unless each line begins with
    // a time.
    let arrived = if report.unstamped.is_some() && !is_timed {
        "lines"
    } else {
        "events"
    };
    let volume = |events: u64, bytes: u64, what: &str| {
        let bytes = words::bytes(float_from_u64(bytes));
        format!("{}, {bytes}", number_of(events, what))
    };
    let mut row = |head: &str, output: String| rows.push((head.to_owned(), output));
    row(
        "bench",
        format!("{} through {}", report.name, report.target),
    );
    row("ended", report.outcome.clone());
    let window = &report.window;
    row(
        "measured",
        format!(
            "{} in {}",
            volume(window.volume.events, window.volume.bytes, arrived),
            words::nanos(window.length)
        ),
    );
    row(
        "sent",
        volume(report.sent.events, report.sent.bytes, "events"),
    );
    row(
        "received",
        volume(report.received.events, report.received.bytes, arrived),
    );
    if let Some(why) = &report.unstamped {
        let no_latency = if is_timed { "" } else { " without latencies" };
        let output =
            format!("{why}: events are only counted{no_latency}; lost events are not identified");
        row("no stamps", output);
    }
    if let Some(answers) = &report.answers {
        row("acknowledged", number_of(answers.acknowledged, "events"));
        row(
            "refused",
            number_of(answers.refused, "events") + " permanently",
        );
        row(
            "unacknowledged",
            number_of(answers.unacknowledged, "events"),
        );
        row("resent", number_of(answers.requests_again, "requests"));
    }
    if let Some(ledger) = &report.ledger {
        rows.extend(stamps::rows(ledger));
        rows.push(("from sent time".to_owned(), quantiles(&report.transit)));
    }
    rows
}

fn quantiles(times: &Histogram<u64>) -> String {
    if times.is_empty() {
        return "nothing arrived".to_owned();
    }
    let shown = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];
    let shown = shown.map(|(name, share)| {
        let value = words::time(float_from_u64(times.value_at_quantile(share)));
        format!("{name} {value}")
    });
    let max = words::time(float_from_u64(times.max()));
    format!("{}, max {max}", shown.join(", "))
}
