//! For readers: a table of latencies in the format of HdrHistogram's plotters, and the
//! delivery of events.

use hdrhistogram::Histogram;
use stillwell_units::float_from_u64;
use stillwell_units::human::count as grouped;

use super::BenchReport;
use crate::document::{Block, Document, Language, Sign, Text};
use crate::run::stamps;
use crate::{Format, Style, words};

/// Ticks in each half of the distance that is left.
const TICKS_PER_HALF: u32 = 2;

/// Returns the table of latencies in nanoseconds, line by line, the throughput, and the
/// delivery of the events. Plotters of `HdrHistogram` take the table and leave out the rest.
#[must_use]
pub fn bench_text(report: &BenchReport) -> String {
    Format::Terminal.render(Style::default(), || document(report), String::new)
}

fn document(report: &BenchReport) -> Document {
    let table = report.table();
    let layout = percentiles(&table) + &throughput(report);
    let rows = rows(report).into_iter();
    let rows = rows
        .map(|(head, text)| (head.into(), text.into()))
        .collect();
    let failures = report.failures().into_iter();
    let failures = failures.map(|failure| format!("failed: {failure}"));
    let warnings = report.warnings.iter();
    let warnings = warnings.map(|failure| format!("rates and latencies are unreliable: {failure}"));
    let problems = failures.chain(warnings);
    let problems = problems.map(|text| Text::answer(Sign::Invalid, text));
    let title = "#[Latency from the intended time, in nanoseconds]";
    let blocks = [
        Block::Code(Language::Text, layout),
        Block::group([Block::KeyValue(rows)]),
    ];
    Document::new([
        Block::section(1, title, blocks),
        Block::group([Block::list(problems)]),
    ])
}

fn percentiles(table: &Histogram<u64>) -> String {
    let mut text = format!(
        "{:>10} {:>7} {:>10} {:>14}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    let mut count = 0;
    for tick in table.iter_quantiles(TICKS_PER_HALF) {
        count += tick.count_since_last_iteration();
        let (value, quantile) = (tick.value_iterated_to(), tick.quantile_iterated_to());
        let inverse = if quantile < 1.0 {
            format!("{:14.2}", 1.0 / (1.0 - quantile))
        } else {
            format!("{:>14}", "inf")
        };
        text.push_str(&format!("{value:12} {quantile:1.5} {count:10} {inverse}\n"));
    }
    let (mean, deviation) = ("Mean", "StdDeviation");
    text.push_str(&format!(
        "#[{mean:10} = {:12.2}, {deviation:14} = {:12.2}]\n",
        table.mean(),
        table.stdev()
    ));
    let (max, total) = ("Max", "Total count");
    text.push_str(&format!(
        "#[{max:10} = {:12}, {total:14} = {:12}]\n",
        table.max(),
        table.len()
    ));
    let (buckets, sub_buckets) = ("Buckets", "SubBuckets");
    text.push_str(&format!(
        "#[{buckets:10} = {:12}, {sub_buckets:14} = {:12}]\n",
        table.buckets(),
        table.distinct_values()
    ));
    text
}

/// Throughput. The format calls MiB/s MB/s.
fn throughput(report: &BenchReport) -> String {
    let bytes = report.window.bytes_per_second();
    let data = if bytes < 1024.0 * 1024.0 {
        format!("{:.1} KiB/s", bytes / 1024.0)
    } else {
        format!("{:.1} MiB/s", bytes / 1024.0 / 1024.0)
    };
    let events = report.window.events_per_second();
    let events = if events < 1000.0 {
        format!("{events:.1} events/s")
    } else {
        format!("{:.1}k events/s", events / 1000.0)
    };
    format!("\n\nThroughput   (data): {data}\nThroughput (events): {events}\n")
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
        format!("{} {what}, {bytes}", grouped(events))
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
        let no_latency = if is_timed { "" } else { " no latency," };
        let output = format!("{why}: only counted,{no_latency} no loss by name");
        row("no stamps", output);
    }
    if let Some(answers) = &report.answers {
        row(
            "acknowledged",
            format!("{} events", grouped(answers.acknowledged)),
        );
        row(
            "refused",
            format!("{} events permanently", grouped(answers.refused)),
        );
        row(
            "unacknowledged",
            format!("{} events", grouped(answers.unacknowledged)),
        );
        row(
            "sent once more",
            format!("{} requests", grouped(answers.requests_again)),
        );
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
