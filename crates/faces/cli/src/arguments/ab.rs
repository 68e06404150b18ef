//! Arguments of `stillwell ab`.

use std::path::PathBuf;

use clap::Args;
use stillwell_config::requests::above_zero;
use stillwell_plan::RateShape;
use stillwell_plan::goal::TypedTolerance;
use stillwell_units::{Nanos, Seed};

use super::count::{whole, within};
use super::load::{
    Header, LoadOverArguments, LoadShapeArguments, LoadTlsArguments, ReuseName, duration, rate,
};
use super::{Gate, OutputArguments, ValidityArgument};

const NOTES: &str = "\
Each run sends the same requests at the same rate to one of the URLs. The runs of a
pair follow each other in random order; pairs follow until the verdict is certain.
A regression of B is confirmed on new pairs before it is reported.

Requests of --requests-file and --har go to both URLs. Only the path of a URL in
these files is used.

Exit codes:
  0        no regression of B, or inconclusive
  1        a regression of B
  2        usage
  3        could not run: unknown host, no connection, one side answers only
           with errors, or one side only redirects and the other does not
  4        invalid: too few valid pairs; or inconclusive with --gate strict
  130 143  interrupted by SIGINT or SIGTERM (129, 131: SIGHUP, SIGQUIT)";

/// `stillwell ab`.
#[derive(Args, Debug)]
#[command(after_help = NOTES)]
pub(crate) struct AbArguments {
    /// URL of the baseline
    #[arg(value_name = "URL_A")]
    pub(crate) baseline: String,
    /// URL to compare with the baseline
    #[arg(value_name = "URL_B")]
    pub(crate) comparison: String,
    /// Request rate: max, N or N/s, FROM/s..TO/s:TIME or N/s:TIME,N/s:TIME…
    #[arg(short, long, visible_alias = "rps", default_value = "1k/s", value_parser = rate)]
    pub(crate) rate: RateShape,
    /// Length of the measurement of each run
    #[arg(short, visible_short_alias = 'z', long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub(crate) duration: Nanos,
    /// Length of the warm-up of each run, which is not measured
    #[arg(long, value_name = "TIME", default_value = "200ms")]
    pub(crate) warmup: Nanos,
    /// Maximum number of pairs of runs: checks the verdict after 4, 6, 8 … N pairs, and
    /// stops when it is certain
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = within::<u32>(0..))]
    pub(crate) max_pairs: u32,
    /// Report a regression without confirming it on new runs
    #[arg(long)]
    pub(crate) no_confirm: bool,
    /// Goal that decides the exit code, as METRIC or METRIC:TOLERANCE, such as latency_p99:10%
    /// [default: latency_p50]
    #[arg(long, value_name = "GOAL")]
    pub(crate) goal: Option<String>,
    /// Smallest change that matters, such as 2% or 50us, for goals that are times and for the goal
    /// of --goal if it states none [default: 2% of p50, 5% of p99]
    #[arg(long, value_name = "TOLERANCE")]
    pub(crate) tolerance: Option<TypedTolerance>,
    #[command(flatten)]
    pub(crate) over: LoadOverArguments,
    #[command(flatten)]
    pub(crate) shape: LoadShapeArguments,
    /// Method [default: GET, or POST with a body]
    #[arg(
        short = 'X',
        visible_short_alias = 'm',
        long,
        visible_alias = "request-method"
    )]
    pub(crate) method: Option<String>,
    /// Header, as `name: value`; repeatable
    #[arg(
        short = 'H',
        long,
        value_name = "HEADER",
        visible_alias = "request-header"
    )]
    pub(crate) header: Vec<Header>,
    /// Body: text, @FILE, or payload:FORMAT:SIZE such as payload:json:4KiB
    #[arg(short, long)]
    pub(crate) body: Option<String>,
    /// File of requests, one per line: PATH, METHOD PATH, or METHOD PATH BODY
    #[arg(long, value_name = "FILE", conflicts_with = "har")]
    pub(crate) requests_file: Option<PathBuf>,
    /// HAR file of a browser or proxy, whose requests are sent in order
    #[arg(long, value_name = "FILE", conflicts_with_all = ["method", "body"])]
    pub(crate) har: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) connecting: AbConnectingArguments,
    #[command(flatten)]
    pub(crate) tls: LoadTlsArguments,
    /// Seed of all random choices: a whole number [default: random]
    #[arg(long)]
    pub(crate) seed: Option<Seed>,
    /// Results folder [default: .stillwell/results/TIME-ab]
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// Strictness of the limits above which a run is unreliable [default: normal]
    #[arg(long, value_enum)]
    pub(crate) validity: Option<ValidityArgument>,
    /// Verdicts that give exit code 1 or 4
    #[arg(long, value_enum, default_value_t = Gate::Normal)]
    pub(crate) gate: Gate,
    /// Exit with 0 for every verdict
    #[arg(long)]
    pub(crate) exit_zero: bool,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

/// Connection options.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connections")]
pub(crate) struct AbConnectingArguments {
    /// Timeout of a request
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = above_zero)]
    pub(crate) timeout: Nanos,
    /// Timeout of connecting, including the TLS handshake
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = above_zero)]
    pub(crate) connect_timeout: Nanos,
    /// Maximum number of requests on each connection
    #[arg(long, value_name = "N", value_parser = whole::<u64>)]
    pub(crate) max_requests_per_connection: Option<u64>,
    /// Order of reuse of idle connections [default: mru]
    #[arg(long, value_enum, value_name = "ORDER")]
    pub(crate) connection_reuse: Option<ReuseName>,
}
