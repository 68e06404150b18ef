//! In the shape of fortio's results.

use crate::multiplexing::{ACTIVE_REQUESTS_DEFAULT, multiplexed};
use crate::{
    CommandLineOptions, Output, Percentile, Protocol, Quantity, Statistic, Tree, WorkerResult,
    duration_text, timestamp_text,
};
use stillwell_units::{Nanos, float_from_u64, floor_to_u64};

use super::{per_second, pick};
use stillwell_report::load::{RequestedRate, id};

/// Counters by the code that fortio reports: classes of responses, and failures of requests
/// without a response.
const CODES: [(&str, &[&str]); 6] = [
    (
        "-1",
        &[
            "benchmark.stream_resets",
            "benchmark.pool_connection_failure",
            "benchmark.pool_overflow",
        ],
    ),
    ("200", &["benchmark.http_2xx"]),
    ("300", &["benchmark.http_3xx"]),
    ("400", &["benchmark.http_4xx"]),
    ("500", &["benchmark.http_5xx"]),
    ("600", &["benchmark.http_xxx"]),
];

/// Keys that Nighthawk did not write in early 2020.
const AFTER_EARLY_2020: [&str; 5] = [
    "RunType",
    "Sizes",
    "HeaderSizes",
    "BytesSent",
    "BytesReceived",
];

/// Choice of types and keys.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::format) enum Fortio {
    /// The JSON form of protocol buffers, as Nighthawk writes it.
    Nighthawk,
    /// The same of early 2020.
    Nighthawk2020,
    /// Those that fortio itself reads.
    Pedantic,
}

/// The result of all workers. `rate` is the rate over all workers where it is
/// known better than from the options.
pub(in crate::format) fn fortio(
    output: &Output,
    global: &WorkerResult,
    rate: Option<RequestedRate>,
    types: Fortio,
) -> String {
    let options = &output.options;
    let workers = output
        .results
        .iter()
        .filter(|result| result.name != global.name);
    let workers = u64::try_from(workers.count()).unwrap_or(1).max(1);
    let length = global.execution_duration;
    let requests = global.counter("upstream_rq_total");
    let start = global.execution_start.or(output.timestamp);
    let jitter = options
        .jitter_uniform
        .is_some_and(|jitter| jitter > Nanos::ZERO);
    let rate = match rate {
        Some(RequestedRate::Max) => None,
        Some(RequestedRate::PerSecond(rate)) => Some(rate),
        None => options
            .requests_per_second
            .map(|number| float_from_u64(u64::from(number) * workers)),
    };
    let count = |name: &str| types.long(global.counter(name));
    let entries = vec![
        entry("Labels", Tree::text(types.labels(&options.labels))),
        entry(
            "StartTime",
            Tree::text(timestamp_text(start.unwrap_or_default())),
        ),
        entry("RequestedQPS", types.rate(rate)),
        entry(
            "RequestedDuration",
            Tree::text(duration_text(options.duration.unwrap_or_default())),
        ),
        entry("ActualQPS", Tree::Number(per_second(requests, length))),
        entry(
            "ActualDuration",
            Tree::Integer(length.unwrap_or_default().as_u64()),
        ),
        entry(
            "NumThreads",
            Tree::Integer(u64::from(connections(options)) * workers),
        ),
        entry("Version", Tree::text(version(output))),
        entry(
            "DurationHistogram",
            types.histogram(global.statistic(id::REQUEST_TO_RESPONSE)),
        ),
        entry("RetCodes", codes(global, types)),
        entry("URL", Tree::text(options.targets().join(" "))),
        entry("Jitter", Tree::Bool(jitter)),
        entry("RunType", Tree::text("HTTP")),
        entry(
            "Sizes",
            types.histogram(global.statistic(id::RESPONSE_BODY_SIZE)),
        ),
        entry(
            "HeaderSizes",
            types.histogram(global.statistic(id::RESPONSE_HEADER_SIZE)),
        ),
        entry("BytesSent", count("upstream_cx_tx_bytes_total")),
        entry("BytesReceived", count("upstream_cx_rx_bytes_total")),
    ];
    types.keys(entries).to_json()
}

/// Connections of each worker. Over HTTP/2 and HTTP/3 there are several only if they are requested.
fn connections(options: &CommandLineOptions) -> u32 {
    let connections = options.connections.unwrap_or(0);
    let is_http1 = matches!(options.protocol, None | Some(Protocol::Http1));
    let has_several = options.experimental_h2_use_multiple_connections == Some(true);
    if has_several || (is_http1 && options.h2 != Some(true)) {
        return connections;
    }
    let active = options.max_active_requests;
    let active = active.unwrap_or(ACTIVE_REQUESTS_DEFAULT);
    multiplexed(active, options.max_concurrent_streams, connections.max(1)).0
}

fn entry(name: &str, value: Tree) -> (String, Tree) {
    (name.to_owned(), value)
}

fn codes(global: &WorkerResult, types: Fortio) -> Tree {
    let counts = CODES.iter().map(|(code, names)| {
        let all = names.iter().map(|name| global.counter(name));
        (*code, all.fold(0, u64::saturating_add))
    });
    // Success is written even if its count is 0.
    let shown = counts.filter(|(code, count)| *count > 0 || *code == "200");
    Tree::Map(
        shown
            .map(|(code, count)| entry(code, types.long(count)))
            .collect(),
    )
}

/// `0.1.0/stillwell`, out of Envoy's message about a build.
fn version(output: &Output) -> String {
    let Some(build) = &output.version else {
        return String::new();
    };
    let number = |name: &str| build["version"][name].as_u64().unwrap_or(0);
    let numbers = ["major_number", "minor_number", "patch"].map(|name| number(name).to_string());
    let kind = build["metadata"]["build.type"].as_str();
    let kind = kind.map_or_else(String::new, |kind| format!("/{kind}"));
    format!("{}{kind}", numbers.join("."))
}

impl Fortio {
    /// The last word was the name of the program.
    fn labels(self, labels: &[String]) -> String {
        let program = (self == Self::Nighthawk2020).then_some("Nighthawk");
        let words = labels.iter().map(String::as_str).chain(program);
        words.collect::<Vec<_>>().join(" ")
    }

    fn keys(self, mut entries: Vec<(String, Tree)>) -> Tree {
        if self == Self::Nighthawk2020 {
            entries.retain(|(name, _)| !AFTER_EARLY_2020.contains(&name.as_str()));
        }
        Tree::Map(entries)
    }

    fn long(self, value: u64) -> Tree {
        match self {
            Self::Nighthawk | Self::Nighthawk2020 => Tree::long(value),
            Self::Pedantic => Tree::Integer(value),
        }
    }

    /// fortio's own word for full speed is `max`; the message has only numbers.
    fn rate(self, rate: Option<f64>) -> Tree {
        match (self, rate) {
            (Self::Nighthawk | Self::Nighthawk2020, rate) => {
                Tree::Integer(floor_to_u64(rate.unwrap_or(0.0).round()))
            }
            (Self::Pedantic, Some(rate)) => Tree::text(rate.to_string()),
            (Self::Pedantic, None) => Tree::text("max"),
        }
    }

    fn histogram(self, statistic: Option<&Statistic>) -> Tree {
        let empty = Statistic::default();
        let statistic = statistic.unwrap_or(&empty);
        let mean = number(statistic.mean);
        let percentiles = pick::shown(statistic).into_iter();
        let percentiles =
            percentiles.filter(|entry| entry.percentile > 0.0 && entry.percentile < 1.0);
        Tree::Map(vec![
            entry("Count", self.long(statistic.count)),
            entry("Data", self.data(&statistic.percentiles)),
            entry("Min", Tree::Number(number(statistic.min))),
            entry("Max", Tree::Number(number(statistic.max))),
            entry("Sum", Tree::Number(float_from_u64(statistic.count) * mean)),
            entry("Avg", Tree::Number(mean)),
            entry("StdDev", Tree::Number(number(statistic.pstdev))),
            entry(
                "Percentiles",
                Tree::List(percentiles.map(|entry| self.percentile(entry)).collect()),
            ),
        ])
    }

    /// From entry to entry of the list: where each begins, ends, and how many
    /// samples are between.
    fn data(self, entries: &[Percentile]) -> Tree {
        let mut start = entries
            .first()
            .map_or(0.0, |percentile| number(percentile.value));
        let mut before = 0;
        let data = entries.iter().map(|percentile| {
            let end = number(percentile.value);
            let bucket = Tree::Map(vec![
                entry("Start", Tree::Number(start)),
                entry("End", Tree::Number(end)),
                entry("Percent", Tree::Number(percent(percentile.percentile))),
                entry("Count", self.long(percentile.count.saturating_sub(before))),
            ]);
            (start, before) = (end, percentile.count);
            bucket
        });
        Tree::List(data.collect())
    }

    fn percentile(self, percentile: &Percentile) -> Tree {
        // One digit of percent, cut: 99.0625 becomes 99.
        let tenths = float_from_u64(floor_to_u64(percentile.percentile * 1000.0 + 1e-9));
        let share = match self {
            Self::Nighthawk2020 => percentile.percentile,
            Self::Nighthawk | Self::Pedantic => tenths / 10.0,
        };
        Tree::Map(vec![
            entry("Percentile", Tree::Number(share)),
            entry("Value", Tree::Number(number(percentile.value))),
        ])
    }
}

/// A share as percent, without the noise of binary fractions.
fn percent(share: f64) -> f64 {
    (share * 1e12).round() / 1e10
}

/// Seconds, or the plain number.
fn number(value: Option<Quantity>) -> f64 {
    match value.unwrap_or(Quantity::Raw(0.0)) {
        Quantity::Time(time) => time.as_secs_f64(),
        Quantity::Raw(value) => value,
    }
}
