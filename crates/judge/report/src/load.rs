//! The result of one load, and its renderings.
//!
//! A [`LoadReport`] is a pure value: the maker of the load fills it, and this module
//! writes it for readers, programs and HdrHistogram's tools. Times are nanoseconds, sizes
//! bytes, points in time nanoseconds since the Unix epoch. Everything of a worker merges
//! exactly into the result of all workers: counters, outcomes and moments are integers,
//! and histograms of the same bounds add up.
//!
//! Filling one, in short:
//!
//! ```
//! use stillwell_metric::{Outcome, empty_histogram};
//! use stillwell_report::load::{GLOBAL, LoadResult, LoadStatistic, id};
//! use stillwell_units::Nanos;
//!
//! let mut times = empty_histogram();
//! times.record(1_200_000).unwrap();
//! let mut worker = LoadResult::named("worker_0");
//! worker.execution_duration = Nanos::from_secs(5);
//! worker.count("benchmark.http_2xx", 1);
//! worker.end(Outcome::Ok, 1);
//! worker.add_statistic(LoadStatistic::of_times(id::REQUEST_TO_RESPONSE, &times));
//! let global = LoadResult::merged(GLOBAL, &[worker]);
//! assert_eq!(global.statistic(id::REQUEST_TO_RESPONSE).map(LoadStatistic::count), Some(1));
//! ```

mod brief;
mod fill;
mod format;
mod health;
pub mod hgrm;
mod hlog;
pub mod human;
pub mod id;
mod intervals;
mod json;
mod options;
mod overlay;
pub mod percentile;
mod result;
mod statistic;

use serde::{Deserialize, Serialize};
use stillwell_units::Nanos;

pub use brief::{
    BRIEF_LOAD_JSON_SCHEMA, BRIEF_LOAD_SCHEMA, BriefLoad, BriefRoute, BriefTimes, BriefWarning,
    LoadPointError,
};
pub use fill::{LoadReportInput, SPAN_COUNTERS, load_report, span_counters, url_of};
pub use format::{NativeLoadFormat, NoDistribution, distribution, render_load};
pub use health::{Ending, GeneratorHealth, HealthWarning, WorkerHealth};
pub use hlog::{HistogramLog, HistogramLogEntry, HistogramLogError};
pub use json::{LOAD_SCHEMA, LoadJsonError, read_load_json, write_load_json};
pub use options::{LoadOptions, LoadProtocol, RequestedRate};
pub use overlay::{LOAD_OVERLAY_SCHEMA, LoadOverlay};
pub use result::{GLOBAL, LoadResult, OutcomeCount, RequestClass};
pub use statistic::{
    HistogramError, LoadStatistic, Moments, PackedHistogram, StatisticUnit, merge_histograms,
};

/// All that one load found.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LoadReport {
    /// Version of Stillwell.
    pub version: String,
    /// The command that gives this result again.
    pub command: String,
    /// The seed of everything random, as it can be typed.
    pub seed: String,
    /// Facts about the host, by name, for readers.
    pub host: Vec<(String, String)>,
    /// Options of the load.
    pub options: LoadOptions,
    /// When the result was written, since the Unix epoch.
    #[serde(rename = "written_unix_ns")]
    pub written: Nanos,
    /// Each worker's own result, `worker_0` first; may be empty where only the
    /// whole is known.
    pub workers: Vec<LoadResult>,
    /// All workers together: [`LoadResult::merged`] of them, named [`GLOBAL`].
    pub global: LoadResult,
    /// The measured time in pieces, usually of a second, in order and without
    /// gaps; empty where no series was kept.
    pub intervals: Vec<LoadInterval>,
    /// Requests that were due by the schedule, begun or not; `None` without a rate, and in older results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<u64>,
    /// Health of the generator.
    pub health: GeneratorHealth,
    /// Reason for the end of the load.
    pub ending: Ending,
}

impl LoadReport {
    /// Returns the requests that were due by the schedule and never sent.
    #[must_use]
    pub fn not_sent(&self) -> u64 {
        self.due()
            .saturating_sub(self.global.counter("upstream_rq_total"))
    }

    /// Returns the requests that were due, in older results those of the curve; 0 without a rate.
    pub(crate) fn due(&self) -> u64 {
        let requested = self.intervals.iter().filter_map(|item| item.requested);
        let of_curve = || requested.fold(0, u64::saturating_add);
        self.due.unwrap_or_else(of_curve)
    }
}

/// One piece of the measured time, over all workers.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LoadInterval {
    /// Since the start of the measured time.
    #[serde(rename = "start_ns")]
    pub start: Nanos,
    /// Length of the interval; the last one may be shorter than the others.
    #[serde(rename = "length_ns")]
    pub length: Nanos,
    /// Requests that were due by the schedule; `None` without a rate.
    pub requested: Option<u64>,
    /// Requests that were given to a connection, each once.
    pub sent: u64,
    /// Number of requests by their end, whenever they were sent; zeros may be missing.
    pub outcomes: Vec<OutcomeCount>,
    /// Bytes received.
    pub bytes_received: u64,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Latencies from the intended time, of requests that were answered here; from
    /// the sent time in a closed loop.
    #[serde(rename = "response_time_ns")]
    pub response_time: PackedHistogram,
    /// Latencies from the sent time, of the same requests.
    #[serde(rename = "service_time_ns")]
    pub service_time: PackedHistogram,
    /// Sent time less intended time, of requests that were sent here.
    #[serde(rename = "lateness_ns")]
    pub lateness: PackedHistogram,
}

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;
