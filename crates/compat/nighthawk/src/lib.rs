//! Nighthawk and Envoy, for the commands alone: no other crate names them.
//!
//! Messages are plain data: `Output` with everything in it, read from and written to
//! the JSON form of protocol buffers, and YAML of the same shape.
//!
//! * [`Output`], [`WorkerResult`], [`Statistic`], [`Percentile`], [`Counter`]:
//!   the result of a load;
//! * [`CommandLineOptions`]: the options of a load;
//! * [`read_json`], [`read_yaml`]: from text, refusing what no such message has;
//! * [`write_json`], [`write_yaml`]: to text, as the tool writes it;
//! * [`wire`]: the same over gRPC;
//! * [`adaptive`]: sessions that search for a capacity;
//! * [`envoy`]: messages of Envoy, and the configuration of a test server;
//! * [`mod@format`]: a load's result in the formats of Nighthawk and others;
//! * [`request`]: a load with all options, from a command line or a message;
//! * [`service`]: the gRPC services.
//!
//! Messages of Envoy inside of others are kept unchanged.

pub mod adaptive;
mod enums;
pub mod envoy;
mod fields;
pub mod format;
mod multiplexing;
mod options;
mod read;
pub mod request;
pub mod service;
mod time;
mod tree;
pub mod wire;
mod write;
mod yaml;

use serde_json::Value;
use stillwell_units::Nanos;

pub use enums::{
    AddressFamily, ConnectionReuse, IdleStrategy, OutputFormat, Protocol, RequestMethod, Verbosity,
};
pub use fields::MessageError;
pub use options::{CommandLineOptions, Endpoint, MultiTarget, RequestOptions};
pub use read::{read_json, read_yaml};
pub use time::{duration_text, parse_duration, parse_timestamp, timestamp_text};
pub use tree::Tree;
pub use write::{write_json, write_yaml};

/// `nighthawk.client.Output`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// Options of the load.
    pub options: CommandLineOptions,
    /// One for each worker where there are several, and one named `global`.
    pub results: Vec<WorkerResult>,
    /// When it was written, since the Unix epoch.
    pub timestamp: Option<Nanos>,
    /// Envoy's message about the build, unchanged.
    pub version: Option<Value>,
}

/// `nighthawk.client.Result`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkerResult {
    /// `worker_0` and so on, or `global`.
    pub name: String,
    /// Times and sizes.
    pub statistics: Vec<Statistic>,
    /// Counters.
    pub counters: Vec<Counter>,
    /// Duration of the load.
    pub execution_duration: Option<Nanos>,
    /// When it began, since the Unix epoch.
    pub execution_start: Option<Nanos>,
    /// Outputs of plugins.
    pub user_defined_outputs: Vec<UserDefinedOutput>,
}

/// `nighthawk.client.Statistic`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistic {
    /// Samples.
    pub count: u64,
    /// Such as `benchmark_http_client.request_to_response`; may be empty.
    pub id: String,
    /// From the smallest to the largest; empty where only moments were kept.
    pub percentiles: Vec<Percentile>,
    /// The mean.
    pub mean: Option<Quantity>,
    /// The standard deviation of the population.
    pub pstdev: Option<Quantity>,
    /// The smallest sample.
    pub min: Option<Quantity>,
    /// The largest sample.
    pub max: Option<Quantity>,
}

/// `nighthawk.client.Percentile`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Percentile {
    /// The share of samples that are not above the value, from 0 to 1.
    pub percentile: f64,
    /// Number of those samples.
    pub count: u64,
    /// The value.
    pub value: Option<Quantity>,
}

/// A time, or a plain number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// A time, to the nanosecond.
    Time(Nanos),
    /// A plain number; finite.
    Raw(f64),
}

/// `nighthawk.client.Counter`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Counter {
    /// Such as `benchmark.http_2xx`.
    pub name: String,
    /// The count.
    pub value: u64,
}

/// `nighthawk.client.UserDefinedOutput`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserDefinedOutput {
    /// Name of the plugin.
    pub plugin_name: String,
    /// Output of the plugin, unchanged.
    pub typed_output: Option<Value>,
    /// Or why it found nothing.
    pub error_message: Option<String>,
}

impl Output {
    /// The result of all workers together; the only one where there is one.
    #[must_use]
    pub fn global(&self) -> Option<&WorkerResult> {
        let named = self.results.iter().find(|result| result.name == "global");
        match (named, self.results.as_slice()) {
            (Some(global), _) => Some(global),
            (None, [only]) => Some(only),
            (None, _) => None,
        }
    }
}

impl WorkerResult {
    /// The counter of this name; zeros are not written, so one that is not there
    /// is zero.
    #[must_use]
    pub fn counter(&self, name: &str) -> u64 {
        let named = self.counters.iter().find(|counter| counter.name == name);
        named.map_or(0, |counter| counter.value)
    }

    /// The statistic with this id.
    #[must_use]
    pub fn statistic(&self, id: &str) -> Option<&Statistic> {
        self.statistics.iter().find(|statistic| statistic.id == id)
    }
}

#[cfg(test)]
mod tests;
