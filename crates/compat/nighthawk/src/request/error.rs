//! Reasons why a load is refused.

use std::path::PathBuf;

use stillwell_config::Diagnostics;
use stillwell_config::requests::LoadSpecError;
use stillwell_plan::load::LoadPlanError;
use stillwell_units::Nanos;

use crate::envoy::BODY_BYTES_MAX;
use crate::service::ChannelError;

/// A load that is refused. Causes are its sources.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// An option with a value that it does not take.
    #[error("{}", value_refusal(.flag, .problem))]
    Value {
        /// The option's flag, with its dashes.
        flag: &'static str,
        /// The parser's message.
        problem: String,
    },
    /// An option that only newer versions have.
    #[error("options.{name} is not supported")]
    Unknown {
        /// The field of the message.
        name: String,
    },
    /// A header whose name is empty or has a colon inside.
    #[error("request_headers: `{name}` is not a header name")]
    HeaderName {
        /// The name.
        name: String,
    },
    /// A header with a length above that of the longest body.
    #[error("request_headers: content-length is {length}: at most {BODY_BYTES_MAX} are accepted")]
    Length {
        /// The length; that of a longer one is the largest of 64 bits.
        length: u64,
    },
    /// A body in JSON outside of a list of requests.
    #[error(
        "request_options.json_body has an effect only in the lists of \
         request_source_plugin_config: put the request there"
    )]
    JsonBody,
    /// Options that contradict or lack each other.
    #[error("{0}")]
    Conflict(&'static str),
    /// A URI that is no address of a service.
    #[error("Bad service uri: {uri}")]
    ServiceUri {
        /// The URI.
        uri: String,
    },
    /// A URI that is no address of a request source.
    #[error("Invalid replay source URI: {uri}")]
    SourceUri {
        /// The URI.
        uri: String,
    },
    /// A message of Envoy with mistakes.
    #[error(transparent)]
    Message(#[from] Diagnostics),
    /// A target that is no URL.
    #[error("Invalid target URI: '{uri}'")]
    TargetUri {
        /// The URL.
        uri: String,
        /// The mistake in it.
        source: LoadSpecError,
    },
    /// A proxy that is no URL.
    #[error("Invalid tunnel URI: '{uri}'")]
    TunnelUri {
        /// The URL.
        uri: String,
        /// The mistake in it.
        source: LoadSpecError,
    },
    /// A load without any target.
    #[error("there is no target")]
    NoTarget,
    /// A request source whose channel cannot be made.
    #[error("--request-source {uri}")]
    Source {
        /// Its URI.
        uri: String,
        /// The channel's error.
        source: Box<ChannelError>,
    },
    /// A file with a body that cannot be read.
    #[error("read {}", .path.display())]
    Body {
        /// The file.
        path: PathBuf,
        /// The error of reading.
        source: std::io::Error,
    },
    /// A ramp that the load does not reach the end of.
    #[error("--rate-limiter-plugin-config: the ramp of {ramp} is longer than {duration}")]
    Ramp {
        /// Duration of the ramp.
        ramp: Nanos,
        /// Duration of the load.
        duration: Nanos,
    },
    /// A quantity of each worker whose total for all workers is too large.
    #[error(
        "{flag}: {each} for each of {workers} workers, at most {} in total",
        u32::MAX
    )]
    Total {
        /// The option's flag, with its dashes.
        flag: &'static str,
        /// The quantity of each worker.
        each: u32,
        /// The number of workers.
        workers: u32,
    },
    /// A header that names no host.
    #[error("`{host}` is not a host")]
    Host {
        /// The header's value.
        host: String,
        /// The mistake in it.
        source: LoadSpecError,
    },
    /// A URI for spans with another scheme.
    #[error("--trace: `{uri}` is not zipkin://HOST:PORT/PATH")]
    TraceScheme {
        /// The URI.
        uri: String,
    },
    /// A URI for spans that is wrong otherwise.
    #[error("--trace: `{uri}`: {problem}")]
    TraceUri {
        /// The URI.
        uri: String,
        /// The mistake in it.
        problem: String,
    },
    /// A plan that is outside of its limits.
    #[error(transparent)]
    Plan(#[from] LoadPlanError),
}

/// Returns why the option `flag` refuses its value: `problem`, after the option's name
/// unless that is part of it.
#[must_use]
pub fn value_refusal(flag: &str, problem: &str) -> String {
    if problem.contains(flag) || problem.contains(" predicate ") {
        problem.to_owned()
    } else {
        format!("Invalid value for {flag}: {problem}")
    }
}
