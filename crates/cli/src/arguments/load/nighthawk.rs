//! What `nighthawk_client` takes: Nighthawk's flags, with its defaults.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Parser, ValueEnum};
use stillwell_report::load::LoadFormat;
use stillwell_units::Nanos;

use super::{Concurrency, FamilyName, Header, Predicate, ReuseName};

/// A load under Nighthawk's name: quantities are those of each worker.
#[derive(Debug, Parser)]
#[command(name = "nighthawk_client", version, disable_help_subcommand = true)]
pub(crate) struct NighthawkClientArguments {
    /// Where requests go; http where no scheme is given
    #[arg(value_name = "URI")]
    pub(crate) uri: Option<String>,
    /// An address that requests go to in turn, with its port; repeatable
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) multi_target_endpoint: Vec<String>,
    /// The path for all of them
    #[arg(long, value_name = "PATH")]
    pub(crate) multi_target_path: Option<String>,
    /// Speak TLS with all of them
    #[arg(long)]
    pub(crate) multi_target_use_https: bool,
    /// Requests a second of each worker
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) rps: u32,
    /// Connections of each worker, for HTTP/1
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) connections: u32,
    /// How long to send: seconds, or a time such as 500ms
    #[arg(long, default_value = "5", value_parser = seconds, conflicts_with = "no_duration")]
    pub(crate) duration: Nanos,
    /// Send until a predicate or a signal ends it
    #[arg(long)]
    pub(crate) no_duration: bool,
    /// How long connecting may take: seconds, or a time
    #[arg(long, default_value = "30", value_parser = seconds)]
    pub(crate) timeout: Nanos,
    /// Workers: a number, or auto for one on each CPU
    #[arg(long, default_value = "1")]
    pub(crate) concurrency: Concurrency,
    /// What is spoken on connections
    #[arg(short, long, value_enum, default_value_t = NighthawkProtocol::Http1, conflicts_with = "h2")]
    pub(crate) protocol: NighthawkProtocol,
    /// The same as --protocol http2
    #[arg(long)]
    pub(crate) h2: bool,
    /// Drop requests that find no free connection, rather than to hold back
    #[arg(long)]
    pub(crate) open_loop: bool,
    /// Send so many at once
    #[arg(long, default_value_t = 0)]
    pub(crate) burst_size: u32,
    /// Send each request later by up to this time
    #[arg(long, value_name = "TIME", conflicts_with = "burst_size", value_parser = seconds)]
    pub(crate) jitter_uniform: Option<Nanos>,
    /// Requests that may wait on each worker, in an open loop
    #[arg(long, default_value_t = 0)]
    pub(crate) max_pending_requests: u32,
    /// Requests under way on each worker, for HTTP/2
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_active_requests: u32,
    /// Requests that one connection carries at most
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_requests_per_connection: Option<u64>,
    /// Requests under way on one connection of HTTP/2
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_concurrent_streams: Option<u32>,
    /// Use several connections of HTTP/2, one request at a time on each
    #[arg(long)]
    pub(crate) experimental_h2_use_multiple_connections: bool,
    /// Which of several idle connections is used
    #[arg(long, value_enum, default_value_t = ReuseName::Mru)]
    pub(crate) experimental_h1_connection_reuse_strategy: ReuseName,
    /// Open all connections before the start
    #[arg(long)]
    pub(crate) prefetch_connections: bool,
    /// Open connections before the start
    #[arg(long)]
    pub(crate) simple_warmup: bool,
    /// How to wait for the next request
    #[arg(long, value_enum, default_value_t = NighthawkIdle::Spin)]
    pub(crate) sequencer_idle_strategy: NighthawkIdle,
    /// End well once a counter exceeds a threshold; repeatable
    #[arg(long, value_name = "COUNTER:N")]
    pub(crate) termination_predicate: Vec<Predicate>,
    /// End with a failure once a counter exceeds a threshold; repeatable
    #[arg(long, value_name = "COUNTER:N")]
    pub(crate) failure_predicate: Vec<Predicate>,
    /// Do not fail by bad statuses, lost connections and resets
    #[arg(long)]
    pub(crate) no_default_failure_predicates: bool,
    /// Method of requests
    #[arg(long, default_value = "GET")]
    pub(crate) request_method: String,
    /// A header, as `name: value`; repeatable
    #[arg(long)]
    pub(crate) request_header: Vec<Header>,
    /// Length of the body of requests
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=4_194_304))]
    pub(crate) request_body_size: u32,
    /// The body of requests
    #[arg(long, value_name = "FILE", conflicts_with = "request_body_size")]
    pub(crate) request_body_file: Option<PathBuf>,
    /// Which addresses of a name are used
    #[arg(long, value_enum, default_value_t = FamilyName::Auto)]
    pub(crate) address_family: FamilyName,
    /// How much is told on standard error
    #[arg(short, long, default_value = "info", value_parser = ["trace", "debug", "info", "warn", "error", "critical"])]
    pub(crate) verbosity: String,
    /// What is printed on standard output
    #[arg(long, default_value = "human", value_parser = LoadFormat::from_str)]
    pub(crate) output_format: LoadFormat,
    /// A word for results; repeatable
    #[arg(long)]
    pub(crate) label: Vec<String>,
}

/// What is spoken on connections.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum NighthawkProtocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

/// How to wait for the next request.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum NighthawkIdle {
    /// Spins at the end.
    Spin,
    /// Sleeps.
    Poll,
    /// Sleeps.
    Sleep,
}

/// Whole seconds, or a time with its unit.
fn seconds(text: &str) -> Result<Nanos, String> {
    match text.parse() {
        Ok(seconds) => Ok(Nanos::from_secs(seconds)),
        Err(_) => text.parse().map_err(|error| format!("{error}")),
    }
}
