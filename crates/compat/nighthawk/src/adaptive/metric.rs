//! Nighthawk's built-in metrics.

use stillwell_units::float_from_u64;

use crate::{Output, Quantity, Statistic};

/// Their names.
pub const BUILTIN_METRICS: [&str; 11] = [
    "attempted-rps",
    "achieved-rps",
    "send-rate",
    "success-rate",
    "latency-ns-min",
    "latency-ns-mean",
    "latency-ns-max",
    "latency-ns-pstdev",
    "latency-ns-mean-plus-1stdev",
    "latency-ns-mean-plus-2stdev",
    "latency-ns-mean-plus-3stdev",
];

const LATENCY: &str = "benchmark_http_client.request_to_response";

/// A metric that a load does not have.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum MetricError {
    /// There is none of this name.
    #[error("unknown metric `{name}`: the metrics are {}", BUILTIN_METRICS.join(", "))]
    Unknown {
        /// Requested name.
        name: String,
    },
    /// The load did not measure it.
    #[error("the load has no {what}")]
    Missing {
        /// Missing input.
        what: &'static str,
    },
}

/// The metric of this name: requests a second, shares of one, or nanoseconds.
///
/// # Errors
/// [`MetricError`] where there is none, or `output` does not have it.
pub fn metric(name: &str, output: &Output) -> Result<f64, MetricError> {
    let missing = |what| MetricError::Missing { what };
    let global = output.global().ok_or_else(|| missing("global result"))?;
    let counter = |name: &str| float_from_u64(global.counter(name));
    let seconds = || {
        let duration = global
            .execution_duration
            .filter(|duration| duration.as_u64() > 0);
        let duration = duration.ok_or_else(|| missing("duration"))?;
        Ok(duration.as_secs_f64())
    };
    let total = counter("upstream_rq_total");
    let attempted = || {
        let rate = output.options.requests_per_second;
        let rate = rate.ok_or_else(|| missing("rate"))?;
        let workers = output
            .results
            .iter()
            .filter(|result| result.name.starts_with("worker"));
        let workers = workers.count().max(1) as u64;
        Ok(f64::from(rate) * float_from_u64(workers))
    };
    let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
    let latency = || {
        let latency = global
            .statistic(LATENCY)
            .filter(|statistic| statistic.count > 0);
        latency.ok_or_else(|| missing("latency: no request was answered"))
    };
    let time = |of: fn(&Statistic) -> Option<Quantity>| {
        of(latency()?)
            .map(nanoseconds)
            .ok_or_else(|| missing("latency"))
    };
    let mean_plus = |deviations: f64| {
        let deviation = time(|statistic| statistic.pstdev)?;
        Ok(deviations.mul_add(deviation, time(|statistic| statistic.mean)?))
    };
    match name {
        "attempted-rps" => attempted(),
        "achieved-rps" => Ok(total / seconds()?),
        "send-rate" => Ok(share(total / seconds()?, attempted()?)),
        "success-rate" => Ok(share(counter("benchmark.http_2xx"), total)),
        "latency-ns-min" => time(|statistic| statistic.min),
        "latency-ns-mean" => time(|statistic| statistic.mean),
        "latency-ns-max" => time(|statistic| statistic.max),
        "latency-ns-pstdev" => time(|statistic| statistic.pstdev),
        "latency-ns-mean-plus-1stdev" => mean_plus(1.0),
        "latency-ns-mean-plus-2stdev" => mean_plus(2.0),
        "latency-ns-mean-plus-3stdev" => mean_plus(3.0),
        _ => Err(MetricError::Unknown {
            name: name.to_owned(),
        }),
    }
}

fn nanoseconds(quantity: Quantity) -> f64 {
    match quantity {
        Quantity::Time(time) => float_from_u64(time.as_u64()),
        Quantity::Raw(value) => value,
    }
}
