//! A load's result as Nighthawk's message.

use crate::{
    AddressFamily, CommandLineOptions, Counter, Output, OutputFormat, Percentile, Protocol,
    Quantity, RequestMethod, RequestOptions, Statistic, UserDefinedOutput, Verbosity, WorkerResult,
};
use stillwell_units::{Nanos, float_from_u64, floor_to_u64};

use stillwell_report::load::percentile::ticks_and_exact;
use stillwell_report::load::{
    AskedRate, LoadOptions, LoadProtocol, LoadReport, LoadResult, LoadStatistic, StatisticUnit,
};

const HEADERS_LOGGED: &str = "type.googleapis.com/nighthawk.LogResponseHeadersOutput";

/// The result as `nighthawk.client.Output`: each worker where there are several,
/// then all together. Our own statistics stand beside Nighthawk's, and the exact
/// percentiles that readers look up beside the ticks of its list.
#[must_use]
pub fn nighthawk_output(report: &LoadReport) -> Output {
    let several = report.workers.len() > 1;
    let workers = report.workers.iter().filter(|_| several);
    let results = workers.chain([&report.global]);
    let options = options(&report.options);
    let result = |result: &LoadResult| WorkerResult {
        user_defined_outputs: user_defined(&options),
        ..nighthawk_result(result)
    };
    Output {
        results: results.map(result).collect(),
        options: options.clone(),
        timestamp: Some(report.written),
        version: Some(version(&report.version)),
    }
}

/// What plugins that look at answers put into a result: that which logs headers puts
/// an empty message there.
fn user_defined(options: &CommandLineOptions) -> Vec<UserDefinedOutput> {
    let configs = options.user_defined_plugin_configs.iter();
    let name = |config: &serde_json::Value| config["name"].as_str().map(str::to_owned);
    let output = |plugin_name: String| UserDefinedOutput {
        plugin_name,
        typed_output: Some(serde_json::json!({ "@type": HEADERS_LOGGED })),
        error_message: None,
    };
    configs.filter_map(name).map(output).collect()
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
    statistics.sort_by(|one, other| one.id.cmp(&other.id));
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

fn statistic(own: &LoadStatistic) -> Statistic {
    let quantity = |value: f64| match own.unit {
        StatisticUnit::Nanoseconds => Quantity::Time(Nanos::new(floor_to_u64(value.round()))),
        StatisticUnit::Plain => Quantity::Raw(value),
    };
    let whole = |value: u64| quantity(float_from_u64(value));
    let largest = own.moments.max;
    let percentiles = own.histogram.as_ref().map(|packed| {
        let entries = ticks_and_exact(&packed.unpack()).into_iter();
        entries.map(|entry| Percentile {
            percentile: entry.share,
            count: entry.count,
            // A bucket may end beyond the largest sample.
            value: Some(whole(entry.value.min(largest))),
        })
    });
    Statistic {
        count: own.count(),
        id: own.id.clone(),
        percentiles: percentiles.into_iter().flatten().collect(),
        mean: Some(quantity(own.moments.mean())),
        pstdev: Some(quantity(own.moments.pstdev())),
        min: Some(whole(own.moments.min)),
        max: Some(whole(largest)),
    }
}

/// The options as they were given in Nighthawk's words, where they were.
fn original_options(own: &LoadOptions) -> Option<CommandLineOptions> {
    serde_json::from_value(own.original.clone()?).ok()
}

/// The options in Nighthawk's words: as they were given, or with our totals
/// divided among the workers.
fn options(own: &LoadOptions) -> CommandLineOptions {
    if let Some(given) = original_options(own) {
        return given;
    }
    let workers = own.workers.max(1);
    let share = |total: u32| total.div_ceil(workers);
    let rate = match own.rate {
        AskedRate::Max => None,
        AskedRate::PerSecond(total) => {
            let rate = floor_to_u64((total / f64::from(workers)).round());
            Some(u32::try_from(rate).unwrap_or(u32::MAX))
        }
    };
    let connections = share(own.connections);
    let several = own.targets.len() > 1;
    let some = |length: Nanos| (length > Nanos::ZERO).then_some(length);
    CommandLineOptions {
        requests_per_second: rate,
        connections: Some(connections),
        duration: own.duration,
        no_duration: own.duration.is_none().then_some(true),
        timeout: own.connect_timeout,
        protocol: Some(match own.protocol {
            LoadProtocol::Http1 => Protocol::Http1,
            LoadProtocol::Http2 => Protocol::Http2,
            LoadProtocol::Http3 => Protocol::Http3,
        }),
        concurrency: Some(workers.to_string()),
        verbosity: Some(Verbosity::Info),
        output_format: Some(OutputFormat::Json),
        address_family: Some(AddressFamily::Auto),
        request_options: Some(request_options(own)),
        max_active_requests: Some(connections.saturating_mul(own.streams.max(1))),
        max_concurrent_streams: (own.protocol != LoadProtocol::Http1).then_some(own.streams),
        // Several targets of ours are URLs, and each may have its own path.
        uri: own.targets.first().cloned().filter(|_| !several),
        open_loop: Some(own.open_loop),
        jitter_uniform: some(own.jitter_uniform),
        labels: own.labels.clone(),
        ..CommandLineOptions::default()
    }
}

fn request_options(own: &LoadOptions) -> RequestOptions {
    RequestOptions {
        request_method: RequestMethod::from_name(&own.method),
        request_headers: own.headers.clone(),
        request_body_size: Some(u32::try_from(own.body_bytes).unwrap_or(u32::MAX)),
        json_body: String::new(),
    }
}
