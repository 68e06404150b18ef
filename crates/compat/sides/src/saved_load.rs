//! One saved load, from the formats that `stillwell load` writes for programs.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail};
use serde_json::Value;
use stillwell_metric::Outcome;
use stillwell_nighthawk::{
    CommandLineOptions, Output, Protocol, Quantity, Statistic, WorkerResult, parse_timestamp,
};
use stillwell_others::results::{
    NIGHTHAWK_OUTCOMES, behind_logs, fortio_percentiles, is_fortio_success, is_load_csv, load_csv,
};
use stillwell_report::load::{
    BRIEF_LOAD_SCHEMA, BriefLoad, BriefTimes, LoadProtocol, read_load_json,
};
use stillwell_report::{SCENARIO_SCHEMA, ScenarioReport};
use stillwell_units::{Nanos, float_from_u64};

use crate::read::{data_of, is_page, text_of};

/// Reads a saved load: the summary as JSON or CSV, the full result, a report's page, the JSON and YAML of
/// Nighthawk, or the JSON of fortio.
///
/// # Errors
///
/// The file cannot be read, or has another format; the text is for the user.
pub fn read_saved_load(path: &Path) -> anyhow::Result<BriefLoad> {
    let text = text_of(path)?;
    let load = match is_page(text.as_bytes()) {
        true => data_of(&text).and_then(of_text),
        false => of_text(&text),
    };
    load.with_context(|| format!("read {}", path.display()))
}

fn of_text(text: &str) -> anyhow::Result<BriefLoad> {
    if is_load_csv(text) {
        let summary = serde_json::from_value(load_csv(text)?);
        return summary.context("its CSV is not that of `stillwell load`");
    }
    let text = behind_logs(text);
    if text.starts_with('{') {
        return of_json(text);
    }
    if text.contains(",HISTFAAA") {
        bail!(
            "a histogram log (hlog) has times but no request counts; `stillwell transform` converts it"
        );
    }
    match stillwell_nighthawk::read_yaml(text) {
        Ok(output) => of_nighthawk(&output),
        Err(_) => bail!(
            "it is not a saved load that Stillwell can read; make one with `stillwell load -o FILE.json`"
        ),
    }
}

fn of_json(text: &str) -> anyhow::Result<BriefLoad> {
    let value: Value = serde_json::from_str(text).context("it is not complete JSON")?;
    if is_scenario(&value) {
        return scenario(text).map(|report| report.summary());
    }
    if value["schema"] == BRIEF_LOAD_SCHEMA {
        return serde_json::from_value(value).context("it is not the summary of a load");
    }
    if value["results"].is_array() {
        return of_nighthawk(&stillwell_nighthawk::read_json(text)?);
    }
    if value["DurationHistogram"].is_object() {
        return of_fortio(&value);
    }
    Ok(BriefLoad::of(&read_load_json(text)?))
}

/// Returns true if `value` is the result of a scenario.
pub(crate) fn is_scenario(value: &Value) -> bool {
    value["schema"] == SCENARIO_SCHEMA
}

/// Reads the result of a scenario.
pub(crate) fn scenario(text: &str) -> anyhow::Result<ScenarioReport> {
    let report = ScenarioReport::parse(text).map_err(anyhow::Error::msg);
    report.context("it is not a scenario result of this version of Stillwell")
}

/// Returns a load without figures; its command names the tool.
fn blank(tool: &str) -> BriefLoad {
    BriefLoad {
        schema: BRIEF_LOAD_SCHEMA.to_owned(),
        version: String::new(),
        command: format!("a result of {tool}"),
        seed: String::new(),
        targets: Vec::new(),
        protocol: String::new(),
        open_loop: false,
        workers: 0,
        connections: 0,
        started_wall_millis: None,
        duration: 0.0,
        requests: 0,
        requests_per_second: 0.0,
        requested_per_second: None,
        rate_per_second: None,
        requests_not_sent: 0,
        error_share: 0.0,
        outcomes: BTreeMap::new(),
        status_codes: BTreeMap::new(),
        routes: Vec::new(),
        bytes_received: 0,
        bytes_sent: 0,
        latency: None,
        service_time: None,
        first_byte: None,
        connect: None,
        tls_handshake: None,
        validity: "normal".to_owned(),
        reliable: true,
        warnings: Vec::new(),
        ended_because: String::new(),
    }
}

fn of_nighthawk(output: &Output) -> anyhow::Result<BriefLoad> {
    let options = &output.options;
    let result = match output.results.as_slice() {
        [only] => Some(only),
        all => all.iter().find(|result| result.name == "global"),
    };
    let result = result.context("it has no result named `global`")?;
    let length = result.execution_duration.or(options.duration);
    let seconds = length.unwrap_or_default().as_secs_f64();
    let counter = |name: &str| {
        let mut counters = result.counters.iter();
        counters
            .find(|counter| counter.name == name)
            .map(|counter| counter.value)
    };
    let workers = nighthawk_workers(output, result);
    let mut load = BriefLoad {
        targets: options.targets(),
        protocol: nighthawk_protocol(options).to_string(),
        open_loop: options.open_loop == Some(true),
        workers,
        connections: nighthawk_connections(options, workers)?,
        started_wall_millis: result.execution_start.or(output.timestamp).map(millis),
        duration: seconds,
        requested_per_second: options
            .requests_per_second
            .map(|rate| f64::from(rate) * f64::from(workers)),
        bytes_received: counter("upstream_cx_rx_bytes_total").unwrap_or_default(),
        bytes_sent: counter("upstream_cx_tx_bytes_total").unwrap_or_default(),
        service_time: nighthawk_times(result, "benchmark_http_client.request_to_response"),
        ..blank("Nighthawk")
    };
    let response_time = nighthawk_times(result, "stillwell.response_time");
    load.latency = response_time.or_else(|| load.service_time.clone());
    for (name, outcome) in NIGHTHAWK_OUTCOMES {
        if let Some(count) = counter(name).filter(|count| *count > 0) {
            let sum = load.outcomes.entry(outcome.name().to_owned()).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    let sent = counter("upstream_rq_total").filter(|_| seconds > 0.0);
    count_requests(&mut load, sent.map(|sent| float_from_u64(sent) / seconds));
    Ok(load)
}

/// Returns the number of workers. Options are for each of them. A single worker has no result beside `all`.
fn nighthawk_workers(output: &Output, all: &WorkerResult) -> u32 {
    let each = output.results.iter();
    let count = each.filter(|result| result.name != all.name).count();
    if count > 0 {
        return u32::try_from(count).unwrap_or(u32::MAX);
    }
    let concurrency = output.options.concurrency.as_deref();
    let workers = concurrency.and_then(|text| text.parse::<u32>().ok());
    workers.unwrap_or(1).max(1)
}

/// Returns the number of connections of all workers.
fn nighthawk_connections(options: &CommandLineOptions, workers: u32) -> anyhow::Result<u32> {
    let each = options.connections.unwrap_or_default();
    each.checked_mul(workers).with_context(|| {
        format!(
            "`connections` is {each} for each of {workers} workers: at most {} in total can be read",
            u32::MAX
        )
    })
}

fn nighthawk_protocol(options: &CommandLineOptions) -> LoadProtocol {
    match options.protocol {
        Some(Protocol::Http2) => LoadProtocol::Http2,
        Some(Protocol::Http3) => LoadProtocol::Http3,
        None if options.h2 == Some(true) => LoadProtocol::Http2,
        Some(Protocol::Http1) | None => LoadProtocol::Http1,
    }
}

fn nighthawk_times(result: &WorkerResult, id: &str) -> Option<BriefTimes> {
    let statistic = result
        .statistics
        .iter()
        .find(|statistic| statistic.id == id)?;
    let at = |share: f64| {
        let mut percentiles = statistic.percentiles.iter();
        let reached = percentiles.find(|entry| entry.percentile >= share)?;
        seconds_of(reached.value)
    };
    let Statistic {
        count,
        min,
        mean,
        max,
        ..
    } = statistic;
    (*count > 0).then_some(())?;
    Some(BriefTimes {
        count: *count,
        min: seconds_of(*min)?,
        mean: seconds_of(*mean)?,
        p50: at(0.5)?,
        p75: at(0.75)?,
        p90: at(0.9)?,
        p95: at(0.95)?,
        p99: at(0.99)?,
        p999: at(0.999)?,
        max: seconds_of(*max)?,
    })
}

fn seconds_of(quantity: Option<Quantity>) -> Option<f64> {
    match quantity? {
        Quantity::Time(time) => Some(time.as_secs_f64()),
        Quantity::Raw(_) => None,
    }
}

const fn millis(since_epoch: Nanos) -> u64 {
    since_epoch.as_u64() / 1_000_000
}

/// Returns the URLs of a load over HTTP, or the address of one over gRPC, TCP or UDP.
fn fortio_targets(value: &Value) -> Vec<String> {
    let [url, destination] = ["URL", "Destination"].map(|key| value[key].as_str());
    let targets = url.or(destination).unwrap_or_default().split_whitespace();
    targets.map(str::to_owned).collect()
}

fn of_fortio(value: &Value) -> anyhow::Result<BriefLoad> {
    let number = |value: &Value| match value {
        Value::String(text) => text.parse().ok(),
        value => value.as_f64(),
    };
    let whole = |value: &Value| match value {
        Value::String(text) => text.parse::<u64>().ok(),
        value => value.as_u64(),
    };
    let start = value["StartTime"].as_str().and_then(parse_timestamp);
    let mut load = BriefLoad {
        targets: fortio_targets(value),
        connections: fortio_connections(&value["NumThreads"], whole)?,
        started_wall_millis: start.map(millis),
        duration: number(&value["ActualDuration"]).unwrap_or_default() / 1e9,
        requested_per_second: number(&value["RequestedQPS"]),
        bytes_received: whole(&value["BytesReceived"]).unwrap_or_default(),
        bytes_sent: whole(&value["BytesSent"]).unwrap_or_default(),
        ..blank("fortio")
    };
    load.latency = fortio_times(&value["DurationHistogram"], number, whole);
    load.service_time.clone_from(&load.latency);
    let codes = value["RetCodes"].as_object();
    for (code, count) in codes.into_iter().flatten() {
        let count = whole(count).unwrap_or_default();
        let status = code.parse::<u16>().ok().filter(|status| *status > 0);
        let outcome = match status {
            Some(200..=299) => Outcome::Ok,
            Some(300..=399) => Outcome::Status3xx,
            Some(400..=499) => Outcome::Status4xx,
            Some(500..=599) => Outcome::Status5xx,
            Some(_) => Outcome::StatusOther,
            None if is_fortio_success(code) => Outcome::Ok,
            // fortio counts requests without a response as -1.
            None => Outcome::PeerClosed,
        };
        load.status_codes
            .extend(status.map(|status| (status, count)));
        let sum = load.outcomes.entry(outcome.name().to_owned()).or_default();
        *sum = sum.saturating_add(count);
    }
    let sent = number(&value["ActualQPS"]).filter(|rate| rate.is_finite());
    count_requests(&mut load, sent);
    Ok(load)
}

/// Returns the number of threads, which have a connection each; 0 for a load without it.
fn fortio_connections(
    threads: &Value,
    whole: impl Fn(&Value) -> Option<u64>,
) -> anyhow::Result<u32> {
    if threads.is_null() {
        return Ok(0);
    }
    let connections = whole(threads).and_then(|threads| u32::try_from(threads).ok());
    connections.with_context(|| {
        format!(
            "`NumThreads` is {threads}: a whole number of at most {} is expected",
            u32::MAX
        )
    })
}

fn fortio_times(
    histogram: &Value,
    number: impl Fn(&Value) -> Option<f64>,
    whole: impl Fn(&Value) -> Option<u64>,
) -> Option<BriefTimes> {
    let percentiles = histogram["Percentiles"].as_array()?;
    let (min, max) = (number(&histogram["Min"])?, number(&histogram["Max"])?);
    let mut points = vec![(0.0, min)];
    let listed = fortio_percentiles(percentiles).into_iter();
    points.extend(listed.filter_map(|(share, seconds)| Some((share, seconds?))));
    points.push((1.0, max));
    let at = |share: f64| interpolated(&points, share);
    Some(BriefTimes {
        count: whole(&histogram["Count"]).filter(|count| *count > 0)?,
        min,
        mean: number(&histogram["Avg"])?,
        p50: at(0.5)?,
        p75: at(0.75)?,
        p90: at(0.9)?,
        p95: at(0.95)?,
        p99: at(0.99)?,
        p999: at(0.999)?,
        max,
    })
}

/// Returns the value at a share. Which percentiles a file has is its user's choice; between two of
/// them lies a straight line, as between the bounds of fortio's buckets.
fn interpolated(points: &[(f64, f64)], share: f64) -> Option<f64> {
    let above = points.iter().position(|(at, _)| *at >= share)?;
    let (right, value) = points[above];
    let Some((left, before)) = above.checked_sub(1).map(|below| points[below]) else {
        return Some(value);
    };
    let fraction = (share - left) / (right - left);
    Some(if fraction.is_finite() {
        before + (value - before) * fraction
    } else {
        value
    })
}

/// Sets the figures that follow from the outcomes, and the rate of sent requests: in a file without it,
/// that of all outcomes of sent requests.
fn count_requests(load: &mut BriefLoad, sent_per_second: Option<f64>) {
    let count = |outcome: Outcome| {
        load.outcomes
            .get(outcome.name())
            .copied()
            .unwrap_or_default()
    };
    let good = count(Outcome::Ok).saturating_add(count(Outcome::Status3xx));
    let unsent = count(Outcome::ConnectFailed).saturating_add(count(Outcome::Dropped));
    load.requests = load
        .outcomes
        .values()
        .fold(0, |sum: u64, count| sum.saturating_add(*count));
    let bad = load.requests.saturating_sub(good);
    load.error_share = float_from_u64(bad) / float_from_u64(load.requests.max(1));
    let sent = load.requests.saturating_sub(unsent);
    let of_outcomes = (load.duration > 0.0).then(|| float_from_u64(sent) / load.duration);
    load.requests_per_second = sent_per_second.or(of_outcomes).unwrap_or_default();
}

#[cfg(test)]
mod tests;
