//! A load's result as Nighthawk's message.

mod user_defined;

use crate::request::values::PROCESS_COUNTERS;
use crate::{
    AddressFamily, CommandLineOptions, Counter, Endpoint, MultiTarget, Output, OutputFormat,
    Percentile, Protocol, Quantity, RequestMethod, RequestOptions, Statistic, Verbosity,
    WorkerResult,
};
use stillwell_config::requests::target;
use stillwell_units::{Nanos, Scheme, Target, float_from_u64, floor_to_u64};

use stillwell_report::load::percentile::ticks_and_exact;
use stillwell_report::load::{
    GLOBAL, LoadOptions, LoadProtocol, LoadReport, LoadResult, LoadStatistic, RequestedRate,
    StatisticUnit,
};

/// Field of options that make calls of requests.
pub(crate) const GRPC_MODE: &str = "grpc_mode";

const LATENCY_2XX: &str = "benchmark_http_client.latency_2xx";
const LATENCY_GRPC_OK: &str = "benchmark_http_client.latency_grpc_ok";

/// Returns the result as `nighthawk.client.Output`: each of several workers, then all together.
/// Stillwell's statistics are beside Nighthawk's, and exact percentiles beside the ticks of its
/// list.
#[must_use]
pub fn nighthawk_output(report: &LoadReport) -> Output {
    let several = report.workers.len() > 1;
    let workers = report.workers.iter().filter(|_| several);
    let results = workers.chain([&report.global]);
    let options = options(&report.options);
    let is_nighthawks = report.options.original.is_some();
    let makes_calls = options.raw_fields.contains_key(GRPC_MODE);
    let result = |result: &LoadResult| {
        let mut worker = nighthawk_result(result);
        let workers = report.workers.len();
        user_defined::add(&options, result, workers, &mut worker);
        if is_nighthawks && result.name == GLOBAL {
            add_counters_of_process(workers, &mut worker);
        }
        if makes_calls {
            add_latency_of_calls(&mut worker);
        }
        worker
    };
    Output {
        results: results.map(result).collect(),
        options: options.clone(),
        timestamp: Some(report.written),
        version: Some(version(&report.version)),
    }
}

/// Adds counters of Envoy that are the same for every load: a cluster for each worker, and a
/// configuration that was read.
fn add_counters_of_process(workers: usize, global: &mut WorkerResult) {
    let clusters = workers.max(1) as u64;
    for (name, value) in PROCESS_COUNTERS.into_iter().zip([clusters, 1, 1]) {
        let name = name.to_owned();
        global.counters.push(Counter { name, value });
    }
    sort_counters(global);
}

pub(crate) fn sort_counters(result: &mut WorkerResult) {
    result
        .counters
        .sort_by(|left, right| left.name.cmp(&right.name));
}

/// A response is of status 2xx only if its call ended with status 0.
fn add_latency_of_calls(worker: &mut WorkerResult) {
    let mut all = worker.statistics.iter();
    if let Some(latency) = all.find(|statistic| statistic.id == LATENCY_2XX) {
        let id = LATENCY_GRPC_OK.to_owned();
        let latency = Statistic {
            id,
            ..latency.clone()
        };
        worker.statistics.push(latency);
    }
}

/// Envoy's message about a build, filled with ours.
fn version(text: &str) -> serde_json::Value {
    let mut numbers = text
        .split(['.', '-', '+'])
        .map(|part| part.parse::<u32>().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    serde_json::json!({
        "version": {
            "major_number": next(),
            "minor_number": next(),
            "patch": next(),
        },
        "metadata": { "build.type": "stillwell" },
    })
}

/// One result as `nighthawk.client.Result`.
#[must_use]
pub fn nighthawk_result(result: &LoadResult) -> WorkerResult {
    let mut statistics: Vec<Statistic> = result.statistics.iter().map(statistic).collect();
    statistics.sort_by(|left, right| left.id.cmp(&right.id));
    let counters = result.counters.iter().filter(|(_, value)| **value > 0);
    WorkerResult {
        name: result.name.clone(),
        statistics,
        counters: counters
            .map(|(name, value)| Counter {
                name: name.clone(),
                value: *value,
            })
            .collect(),
        execution_duration: Some(result.execution_duration),
        execution_start: Some(result.execution_start),
        user_defined_outputs: Vec::new(),
    }
}

fn statistic(statistic: &LoadStatistic) -> Statistic {
    let quantity = |value: f64| match statistic.unit {
        StatisticUnit::Nanoseconds => Quantity::Time(Nanos::new(floor_to_u64(value.round()))),
        StatisticUnit::Plain => Quantity::Raw(value),
    };
    let whole = |value: u64| quantity(float_from_u64(value));
    let largest = statistic.moments.max;
    let percentiles = statistic.histogram.as_ref().map(|packed| {
        let entries = ticks_and_exact(&packed.unpack()).into_iter();
        entries.map(|entry| Percentile {
            percentile: entry.share,
            count: entry.count,
            // A bucket may end beyond the largest sample.
            value: Some(whole(entry.value.min(largest))),
        })
    });
    Statistic {
        count: statistic.count(),
        id: statistic.id.clone(),
        percentiles: percentiles.into_iter().flatten().collect(),
        mean: Some(quantity(statistic.moments.mean())),
        pstdev: Some(quantity(statistic.moments.pstdev())),
        min: Some(whole(statistic.moments.min)),
        max: Some(whole(largest)),
    }
}

/// The options as they were given in Nighthawk's words, where they were.
fn original_options(options: &LoadOptions) -> Option<CommandLineOptions> {
    serde_json::from_value(options.original.clone()?).ok()
}

/// The options in Nighthawk's words: as they were given, or with our totals
/// divided among the workers.
fn options(options: &LoadOptions) -> CommandLineOptions {
    if let Some(given) = original_options(options) {
        return given;
    }
    let workers = options.workers.max(1);
    let share = |total: u32| total.div_ceil(workers);
    let rate = match options.rate {
        RequestedRate::Max => None,
        RequestedRate::PerSecond(total) => {
            let rate = floor_to_u64((total / f64::from(workers)).round());
            Some(u32::try_from(rate).unwrap_or(u32::MAX))
        }
    };
    let connections = share(options.connections);
    let several = options.targets.len() > 1;
    let some = |length: Nanos| (length > Nanos::ZERO).then_some(length);
    CommandLineOptions {
        requests_per_second: rate,
        connections: Some(connections),
        duration: options.duration,
        no_duration: options.duration.is_none().then_some(true),
        timeout: options.connect_timeout,
        protocol: Some(match options.protocol {
            LoadProtocol::Http1 => Protocol::Http1,
            LoadProtocol::Http2 => Protocol::Http2,
            LoadProtocol::Http3 => Protocol::Http3,
        }),
        concurrency: Some(workers.to_string()),
        verbosity: Some(Verbosity::Info),
        output_format: Some(OutputFormat::Json),
        address_family: Some(AddressFamily::Auto),
        request_options: Some(request_options(options)),
        max_active_requests: Some(connections.saturating_mul(options.streams.max(1))),
        max_concurrent_streams: (options.protocol != LoadProtocol::Http1)
            .then_some(options.streams),
        uri: options.targets.first().cloned().filter(|_| !several),
        multi_target: multi_target(&options.targets),
        open_loop: Some(options.open_loop),
        jitter_uniform: some(options.jitter_uniform),
        labels: options.labels.clone(),
        ..CommandLineOptions::default()
    }
}

/// Returns several targets in Nighthawk's form, in which they have one scheme and one path, and
/// each has a port. URLs that differ in more than host and port have no such form.
fn multi_target(urls: &[String]) -> Option<MultiTarget> {
    let targets = urls.iter().map(|url| target(url).ok());
    let targets: Vec<Target> = targets.collect::<Option<_>>()?;
    let (first, further) = targets.split_first()?;
    let (scheme, path) = (first.scheme(), first.path_and_query());
    let is_like_first =
        |target: &Target| target.scheme() == scheme && target.path_and_query() == path;
    if further.is_empty() || !further.iter().all(is_like_first) {
        return None;
    }
    let endpoints = targets.iter().map(|target| Endpoint {
        address: Some(target.host().to_owned()),
        port: Some(u32::from(target.port())),
    });
    Some(MultiTarget {
        use_https: Some(scheme == Scheme::Https),
        endpoints: endpoints.collect(),
        path: Some(path.to_owned()),
    })
}

fn request_options(options: &LoadOptions) -> RequestOptions {
    RequestOptions {
        request_method: RequestMethod::from_name(&options.method),
        request_headers: options.headers.clone(),
        request_body_size: Some(u32::try_from(options.body_bytes).unwrap_or(u32::MAX)),
        json_body: String::new(),
    }
}
