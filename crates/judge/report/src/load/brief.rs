//! The result of a load as a small document with stable names: JSON, and CSV of the same names.

mod document;
mod point;

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stillwell_metric::Outcome;
use stillwell_units::{Nanos, float_from_u64};

pub use self::point::LoadPointError;
use super::{LoadReport, LoadStatistic, OutcomeCount, RequestClass, RequestedRate, id};
use crate::document::escape;

/// Names the shape of [`BriefLoad`]; keys are added within a version and never removed.
pub const BRIEF_LOAD_SCHEMA: &str = "stillwell/load-summary/v1";

/// Reason why a summary can always be written.
const WRITABLE: &str = "every key is a text and every number finite or null";

/// JSON Schema of [`BriefLoad`].
pub const BRIEF_LOAD_JSON_SCHEMA: &str = include_str!("brief.schema.json");

/// The figures of a load that most programs want. Times are in seconds.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct BriefLoad {
    /// [`BRIEF_LOAD_SCHEMA`].
    pub schema: String,
    /// Version of Stillwell.
    pub version: String,
    /// The command that was typed.
    pub command: String,
    /// Seed of all random choices.
    pub seed: String,
    /// URLs of the targets.
    #[serde(default)]
    pub targets: Vec<String>,
    /// `HTTP/1.1`, `HTTP/2` or `HTTP/3`.
    pub protocol: String,
    /// True if the schedule does not wait for responses.
    pub open_loop: bool,
    /// Threads of the generator.
    pub workers: u32,
    /// Connections over all threads.
    pub connections: u32,
    /// Wall clock at the start: milliseconds since 1970; `None` in files of earlier versions.
    #[serde(default)]
    pub started_wall_millis: Option<u64>,
    /// Length of the measured time, in seconds.
    pub duration: f64,
    /// Requests that ended.
    pub requests: u64,
    /// Requests sent per second.
    pub requests_per_second: f64,
    /// Requests per second of the schedule in the measured time; `None` without a rate.
    pub requested_per_second: Option<f64>,
    /// Requested rate, on average over the planned time; `None` without a rate, and in files of earlier versions.
    #[serde(default)]
    pub rate_per_second: Option<f64>,
    /// Requests that were due and never sent.
    pub requests_not_sent: u64,
    /// Share of the ended requests with another outcome than `ok` and `status_3xx`.
    pub error_share: f64,
    /// Requests by outcome.
    #[serde(default)]
    pub outcomes: BTreeMap<String, u64>,
    /// Responses by status code.
    #[serde(default)]
    pub status_codes: BTreeMap<u16, u64>,
    /// Requests of each route, in the order of the plan; empty if there is only one.
    #[serde(default)]
    pub routes: Vec<BriefRoute>,
    /// Bytes received.
    pub bytes_received: u64,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Latency: from the intended time in an open loop, else from the sent time.
    pub latency: Option<BriefTimes>,
    /// Time from the sent time to the end of the response.
    pub service_time: Option<BriefTimes>,
    /// Time from the sent time to the first byte of the response.
    pub first_byte: Option<BriefTimes>,
    /// Time to connect.
    pub connect: Option<BriefTimes>,
    /// Time of the TLS handshake.
    pub tls_handshake: Option<BriefTimes>,
    /// Strictness of the limits: `strict`, `normal` or `off`.
    pub validity: String,
    /// False if a warning says that the generator distorted the result.
    pub reliable: bool,
    /// Warnings, the worst first.
    #[serde(default)]
    pub warnings: Vec<BriefWarning>,
    /// Reason of the end.
    pub ended_because: String,
}

/// The requests of one route.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct BriefRoute {
    /// Method and path, and the address if there are several.
    pub name: String,
    /// Requests that ended.
    pub requests: u64,
    /// Share of the ended requests with another outcome than `ok` and `status_3xx`.
    pub error_share: f64,
    /// Responses by status code.
    #[serde(default)]
    pub status_codes: BTreeMap<u16, u64>,
    /// Latency: from the intended time in an open loop, else from the sent time.
    pub latency: Option<BriefTimes>,
    /// Time from the sent time to the end of the response.
    pub service_time: Option<BriefTimes>,
    /// Time from the sent time to the first byte of the response.
    pub first_byte: Option<BriefTimes>,
}

impl BriefRoute {
    fn of(class: &RequestClass) -> Self {
        Self {
            name: class.name.clone(),
            requests: ended(&class.outcomes),
            error_share: error_share(&class.outcomes),
            status_codes: class.statuses.clone(),
            latency: times(&class.response_time),
            service_time: times(&class.service_time),
            first_byte: times(&class.first_byte),
        }
    }
}

/// A distribution of times, in seconds.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct BriefTimes {
    /// Number of values.
    pub count: u64,
    /// Smallest value.
    pub min: f64,
    /// Mean.
    pub mean: f64,
    /// Quantiles.
    pub p50: f64,
    /// 75th percentile.
    pub p75: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    #[serde(rename = "p99.9")]
    pub p999: f64,
    /// Largest value.
    pub max: f64,
}

/// A warning about a result.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct BriefWarning {
    /// A word for programs, such as `cpu_starvation`.
    pub code: String,
    /// A sentence for readers.
    pub text: String,
    /// True if the result is unreliable because of it.
    pub unreliable: bool,
}

impl BriefTimes {
    /// Returns the figures of `histogram` in nanoseconds, unless it is empty.
    #[must_use]
    pub fn of(histogram: &Histogram<u64>) -> Option<Self> {
        if histogram.is_empty() {
            return None;
        }
        let seconds = |value: u64| Nanos::new(value).as_secs_f64();
        let at = |share: f64| seconds(histogram.value_at_quantile(share));
        Some(Self {
            count: histogram.len(),
            min: seconds(histogram.min()),
            mean: histogram.mean() / 1e9,
            p50: at(0.5),
            p75: at(0.75),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: seconds(histogram.max()),
        })
    }
}

impl BriefLoad {
    /// Returns the figures of `report`.
    #[must_use]
    pub fn of(report: &LoadReport) -> Self {
        let (options, global) = (&report.options, &report.global);
        let times = |id: &str| global.statistic(id).and_then(times);
        let outcomes = global.outcomes.iter().filter(|count| count.count > 0);
        let warnings = report.health.warnings.iter().map(|warning| BriefWarning {
            code: warning.code.clone(),
            text: warning.text.clone(),
            unreliable: warning.invalidates,
        });
        Self {
            schema: BRIEF_LOAD_SCHEMA.to_owned(),
            version: report.version.clone(),
            command: report.command.clone(),
            seed: report.seed.clone(),
            targets: options.targets.clone(),
            protocol: options.protocol.to_string(),
            open_loop: options.open_loop,
            workers: options.workers,
            connections: options.connections,
            started_wall_millis: Some(global.execution_start.as_u64() / 1_000_000),
            duration: global.execution_duration.as_secs_f64(),
            requests: ended(&global.outcomes),
            requests_per_second: report.health.sent_per_second,
            requested_per_second: report.health.requested_per_second,
            rate_per_second: match options.rate {
                RequestedRate::Max => None,
                RequestedRate::PerSecond(rate) => Some(rate),
            },
            requests_not_sent: report.not_sent(),
            error_share: error_share(&global.outcomes),
            outcomes: outcomes
                .map(|count| (count.outcome.name().to_owned(), count.count))
                .collect(),
            status_codes: global.statuses.clone(),
            routes: global.classes.iter().map(BriefRoute::of).collect(),
            bytes_received: global.counter("upstream_cx_rx_bytes_total"),
            bytes_sent: global.counter("upstream_cx_tx_bytes_total"),
            latency: times(id::RESPONSE_TIME).or_else(|| times(id::SERVICE_TIME)),
            service_time: times(id::SERVICE_TIME),
            first_byte: times(id::FIRST_BYTE),
            connect: times(id::CONNECT),
            tls_handshake: times(id::TLS_HANDSHAKE),
            validity: options.validity.name().to_owned(),
            reliable: report.health.is_valid(),
            warnings: warnings.collect(),
            ended_because: report.ending.to_string(),
        }
    }

    /// Returns it as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let text = serde_json::to_string_pretty(self);
        let text = text.unwrap_or_else(|_| unreachable!("{WRITABLE}"));
        escape::json(&format!("{text}\n"))
    }

    /// Returns its numbers and texts as CSV: a name and a value in each line. Names are those
    /// of the JSON, joined by points.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut lines = "name,value\n".to_owned();
        add_lines(&mut lines, "", &self.value());
        lines
    }

    fn value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_else(|_| unreachable!("{WRITABLE}"))
    }
}

/// Returns the number of requests with these outcomes.
fn sum(outcomes: &[OutcomeCount], is_counted: fn(Outcome) -> bool) -> u64 {
    let counted = outcomes.iter().filter(|count| is_counted(count.outcome));
    counted.fold(0, |sum: u64, count| sum.saturating_add(count.count))
}

/// Returns the number of requests that ended; those in flight at the end of the load did not.
pub(super) fn ended(outcomes: &[OutcomeCount]) -> u64 {
    sum(outcomes, |outcome| outcome != Outcome::Unfinished)
}

/// Returns the share of the ended requests that failed.
fn error_share(outcomes: &[OutcomeCount]) -> f64 {
    let is_good = |outcome: Outcome| matches!(outcome, Outcome::Ok | Outcome::Status3xx);
    let (good, ended) = (sum(outcomes, is_good), ended(outcomes));
    float_from_u64(ended.saturating_sub(good)) / float_from_u64(ended.max(1))
}

fn times(statistic: &LoadStatistic) -> Option<BriefTimes> {
    let histogram = statistic.histogram.as_ref()?.unpack();
    if histogram.is_empty() {
        return None;
    }
    let seconds = |value: u64| Nanos::new(value.min(statistic.moments.max)).as_secs_f64();
    let at = |share: f64| seconds(histogram.value_at_quantile(share));
    Some(BriefTimes {
        count: statistic.count(),
        min: seconds(statistic.moments.min),
        mean: statistic.moments.mean() / 1e9,
        p50: at(0.5),
        p75: at(0.75),
        p90: at(0.9),
        p95: at(0.95),
        p99: at(0.99),
        p999: at(0.999),
        max: seconds(statistic.moments.max),
    })
}

fn add_lines(lines: &mut String, name: &str, value: &Value) {
    let below = |key: &str| match name {
        "" => key.to_owned(),
        _ => format!("{name}.{key}"),
    };
    match value {
        Value::Null => {}
        Value::Object(map) => {
            for (key, value) in map {
                add_lines(lines, &below(key), value);
            }
        }
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                add_lines(lines, &below(&index.to_string()), value);
            }
        }
        Value::String(text) => lines.push_str(&format!("{},{}\n", quoted(name), quoted(text))),
        Value::Bool(_) | Value::Number(_) => {
            lines.push_str(&format!("{},{value}\n", quoted(name)));
        }
    }
}

/// Returns a cell; quotes protect separators.
fn quoted(text: &str) -> String {
    let text = escape::terminal(text);
    if text.contains([',', '"']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::fixture;

    #[test]
    fn json_reads_back_and_has_the_keys_of_its_schema() {
        let mut report = fixture::report();
        report.global.statuses = [(200, 9_995), (503, 4)].into();
        let brief = BriefLoad::of(&report);
        let text = brief.to_json();
        assert_eq!(serde_json::from_str::<BriefLoad>(&text).unwrap(), brief);
        let value: Value = serde_json::from_str(&text).unwrap();
        let schema: Value = serde_json::from_str(BRIEF_LOAD_JSON_SCHEMA).unwrap();
        let keys = |value: &Value| {
            let keys = value.as_object().unwrap().keys();
            keys.cloned().collect::<Vec<_>>()
        };
        assert_eq!(keys(&value), keys(&schema["properties"]));
        assert_eq!(
            keys(&value).len(),
            schema["required"].as_array().unwrap().len()
        );
        let times = &schema["$defs"]["times"]["properties"];
        assert_eq!(keys(&value["latency"]), keys(times));
        for (_, property) in schema["properties"].as_object().unwrap() {
            assert!(property["description"].is_string(), "{property}");
        }
    }

    #[test]
    fn requests_are_those_that_ended() {
        let mut report = fixture::report();
        let before = BriefLoad::of(&report);
        let unfinished = OutcomeCount {
            outcome: Outcome::Unfinished,
            count: 7,
        };
        report.global.outcomes.push(unfinished);
        report.global.classes[0].outcomes.push(unfinished);
        let brief = BriefLoad::of(&report);
        assert_eq!(brief.outcomes["unfinished"], 7);
        assert_eq!(brief.requests, before.requests);
        assert_eq!(brief.routes, before.routes);
        let csv = brief.to_csv();
        let line = format!("\nrequests,{}\n", before.requests);
        assert!(csv.contains(&line), "{csv}");
    }

    #[test]
    fn a_summary_is_rendered_with_its_routes() {
        let brief = BriefLoad::of(&fixture::report());
        let text = crate::FullReport::from(&brief)
            .render(crate::Format::Terminal, crate::Style::default());
        for part in ["latency", "GET /", "p99"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn csv_has_the_names_of_the_json() {
        let mut report = fixture::report();
        report.global.statuses = [(503, 4)].into();
        report.command = "stillwell load a,b".to_owned();
        let brief = BriefLoad::of(&report);
        let csv = brief.to_csv();
        let p99 = format!(
            "\nlatency.p99,{}\n",
            Value::from(brief.latency.unwrap().p99)
        );
        for line in [
            "name,value\n",
            "\nstatus_codes.503,4\n",
            "\ncommand,\"stillwell load a,b\"\n",
            &p99,
        ] {
            assert!(csv.contains(line), "{line}: {csv}");
        }
    }
}
