//! Arguments of `bench` and `test bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use stillwell_config::BenchEndpoint;
use stillwell_units::Nanos;

use super::count::within;

const NOTES: &str = "\
Exit codes:
  0        every event arrived as it should
  1        events were lost, duplicated, damaged, refused or not acknowledged; or
           nothing was sent, or not all rounds
  2        usage or configuration
  3        could not run: port taken, target never ready
  4        invalid, such as a target that died; with --strict also unreliable rates;
           or the report could not be written
  130 143  interrupted by SIGINT or SIGTERM (129, 131: SIGHUP, SIGQUIT)";

const TEST_NOTES: &str = "\
Exit codes:
  0        every bench passed
  1        a bench failed
  2        usage or configuration
  3        could not run
  4        every bench passed, but the report could not be written
  130 143  interrupted by SIGINT or SIGTERM (129, 131: SIGHUP, SIGQUIT)";

/// `stillwell bench`.
#[derive(Args, Debug)]
#[command(after_help = NOTES)]
pub(crate) struct BenchArguments {
    /// A bench file; flags override its keys. Optional if flags describe the bench
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) pipeline: BenchPipelineArguments,
    #[command(flatten)]
    pub(crate) replay: BenchReplayArguments,
    /// Format on standard output [default: text, or json if the file has `structured:
    /// true`]
    #[arg(long, value_enum)]
    pub(crate) format: Option<BenchFormat>,
    /// Also write the report to FILE, in the format of its extension (.html, .json, .md,
    /// .txt); repeatable
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Vec<PathBuf>,
    /// Significant decimal digits of latencies, from 1 to 5 [default: 2]
    #[arg(long, value_name = "N", value_parser = within::<u8>(1..=5))]
    pub(crate) significant_figures: Option<u8>,
    /// Report lost, duplicated and damaged events without failing
    #[arg(long)]
    pub(crate) lossy: bool,
    /// Exit with code 4 if rates and latencies are unreliable
    #[arg(long)]
    pub(crate) strict: bool,
    /// Folder of the capture [default: .stillwell/benches/TIME-NAME]
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// Do not show progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Target program and its arguments
    #[arg(last = true, value_name = "PROGRAM", conflicts_with = "no_target")]
    pub(crate) command: Vec<String>,
}

/// Pipeline between the generator and the sink.
#[derive(Args, Debug)]
pub(crate) struct BenchPipelineArguments {
    /// Endpoint at which the target receives events: tcp://HOST:PORT, udp://HOST:PORT,
    /// unix:///PATH, unixgram:///PATH, http://HOST:PORT/PATH, hec://HOST:PORT or
    /// file:///PATH
    #[arg(id = "into", long = "in", value_name = "ENDPOINT")]
    pub(crate) input: Option<BenchEndpoint>,
    /// Endpoint to which the target sends events, in the same syntax; the bench listens
    /// there
    #[arg(id = "out_of", long = "out", value_name = "ENDPOINT")]
    pub(crate) output: Option<BenchEndpoint>,
    /// Start no target: send to a program that is already running
    #[arg(long)]
    pub(crate) no_target: bool,
    /// Variable of this environment that the target has too, unless its file sets it; repeatable
    #[arg(long, value_name = "NAME", hide = true)]
    pub(crate) environment: Vec<String>,
    /// Use the host's network in place of a network namespace
    #[arg(long)]
    pub(crate) shared_network: bool,
    /// Resend events until they are acknowledged, by a 2xx status or by Splunk HEC
    #[arg(long)]
    pub(crate) transactional: bool,
    /// Maximum number of retries of a refused request [default: 10 with
    /// --transactional, else 0]
    #[arg(long, value_name = "N", value_parser = within::<u32>(0..))]
    pub(crate) retries: Option<u32>,
    /// Token for Splunk HEC [default: bench]
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// Connections to the target [default: 1]
    #[arg(long, value_name = "N", value_parser = within::<u16>(1..=1024))]
    pub(crate) connections: Option<u16>,
}

/// Recording and rate.
#[derive(Args, Debug)]
pub(crate) struct BenchReplayArguments {
    /// Recording to replay: a file, plain or compressed with gzip, zstd or xz
    #[arg(long, value_name = "FILE")]
    pub(crate) source: Option<PathBuf>,
    /// Codec of its events, as in Tremor: json, string, syslog, csv, influx, statsd,
    /// binary, msgpack, … [default: json]
    #[arg(long, value_name = "CODEC")]
    pub(crate) codec: Option<String>,
    /// Split the recording into chunks of this size in place of lines
    #[arg(long, value_name = "BYTES", value_parser = within::<u32>(1..))]
    pub(crate) chunk_size: Option<u32>,
    /// Decode each chunk or line from base64
    #[arg(long)]
    pub(crate) base64: bool,
    /// Do not stamp events; only count them
    #[arg(long)]
    pub(crate) no_stamps: bool,
    /// Events in each write, datagram or request [default: 1 with a rate or datagrams; else up
    /// to 100 a request, or 64 KiB a write]
    #[arg(long, value_name = "N", value_parser = within::<u32>(1..))]
    pub(crate) batch: Option<u32>,
    /// Time between two events, such as 10ms [default: 0]
    #[arg(long, value_name = "TIME", conflicts_with = "rate")]
    pub(crate) interval: Option<Nanos>,
    /// Rate: `5k/s`, `10 MiB/s`, or `max` for as fast as the target accepts [default:
    /// max]
    #[arg(long)]
    pub(crate) rate: Option<String>,
    /// Number of times to replay the recording [default: no limit]
    #[arg(long, value_name = "N", value_parser = within::<u64>(1..))]
    pub(crate) iters: Option<u64>,
    /// Length of the measurement [default: 10s without --iters]
    #[arg(long, value_name = "TIME")]
    pub(crate) stop_after: Option<Nanos>,
    /// Length of the warm-up, which is not measured [default: 0s]
    #[arg(long, value_name = "TIME")]
    pub(crate) warmup: Option<Nanos>,
    /// Maximum time with --iters [default: 10m]
    #[arg(long, value_name = "TIME")]
    pub(crate) limit: Option<Nanos>,
    /// Maximum time to wait for the last events and acknowledgements [default: 10s]
    #[arg(long, value_name = "TIME")]
    pub(crate) drain: Option<Nanos>,
}

/// Formats of a bench report.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum BenchFormat {
    /// For people, with the table of percentiles that plotters read.
    Text,
    /// For programs.
    Json,
    /// For a browser: one file with charts.
    Html,
}

/// `stillwell test`.
#[derive(Args, Debug)]
pub(crate) struct TestArguments {
    /// Kind of tests.
    #[command(subcommand)]
    pub(crate) command: TestCommand,
}

/// Kinds of tests.
#[derive(Debug, Subcommand)]
pub(crate) enum TestCommand {
    /// Run the benches in a folder tree, one after another, and check their assertions
    Bench(TestBenchArguments),
}

/// `stillwell test bench`.
#[derive(Args, Debug)]
#[command(after_help = TEST_NOTES)]
pub(crate) struct TestBenchArguments {
    /// Root of the tree: every folder with a bench.yaml or .troy file at or below it
    #[arg(value_name = "DIR")]
    pub(crate) root: PathBuf,
    /// Run only benches with this tag; repeatable
    #[arg(short, long, value_name = "TAG")]
    pub(crate) includes: Vec<String>,
    /// Skip benches with this tag, unless it is included; repeatable
    #[arg(short, long, value_name = "TAG")]
    pub(crate) excludes: Vec<String>,
    /// Maximum time of each bench
    #[arg(short, long, value_name = "TIME", default_value = "15m")]
    pub(crate) timeout: Nanos,
    /// Also write the report as JSON to FILE
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Folder of outputs and captures [default: .stillwell/benches/TIME-NAME]
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// Print the output of each bench
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Accepted for Tremor's command lines, without effect
    #[arg(long, hide = true)]
    debug_connectors: bool,
}
