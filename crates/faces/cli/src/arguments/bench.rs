//! What `bench` and `test bench` take.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use stillwell_config::BenchEndpoint;
use stillwell_units::Nanos;

use super::EXIT_CODES;

/// `stillwell bench`.
#[derive(Args, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct BenchArguments {
    /// A bench file; flags go before what it says. Without one, flags say it all
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) pipeline: BenchPipelineArguments,
    #[command(flatten)]
    pub(crate) replay: BenchReplayArguments,
    /// What is printed on standard output [default: text, or json where the file
    /// says `structured: true`]
    #[arg(long, value_enum)]
    pub(crate) format: Option<BenchFormat>,
    /// Also write the report as JSON to FILE
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Significant decimal digits of latencies, from 1 to 5 [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=5))]
    pub(crate) significant_figures: Option<u8>,
    /// Lost, doubled and damaged events are told and do not fail
    #[arg(long)]
    pub(crate) lossy: bool,
    /// Fail with code 4 where rates and latencies must not be believed
    #[arg(long)]
    pub(crate) strict: bool,
    /// Where the capture goes [default: .stillwell/benches/TIME-NAME]
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// No progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The program under test, and its arguments
    #[arg(last = true, value_name = "PROGRAM", conflicts_with = "no_subject")]
    pub(crate) command: Vec<String>,
}

/// What stands between the generator and the sink.
#[derive(Args, Debug)]
pub(crate) struct BenchPipelineArguments {
    /// Where the program takes events in: tcp://HOST:PORT, udp://HOST:PORT,
    /// unix:///PATH, unixgram:///PATH, http://HOST:PORT/PATH, hec://HOST:PORT or
    /// file:///PATH
    #[arg(id = "into", long = "in", value_name = "ENDPOINT")]
    pub(crate) input: Option<BenchEndpoint>,
    /// Where it sends them on, in the same words: there the bench listens
    #[arg(id = "out_of", long = "out", value_name = "ENDPOINT")]
    pub(crate) output: Option<BenchEndpoint>,
    /// Start nothing: send to whatever listens
    #[arg(long)]
    pub(crate) no_subject: bool,
    /// Stay in the host's network, where other programs are
    #[arg(long)]
    pub(crate) shared_network: bool,
    /// Send events again until they are acknowledged: by an answer of 2xx, or by
    /// Splunk's collector
    #[arg(long)]
    pub(crate) transactional: bool,
    /// How often a request that was refused is sent again [default: 10 with
    /// --transactional, else 0]
    #[arg(long, value_name = "N")]
    pub(crate) retries: Option<u32>,
    /// The token for Splunk's collector
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// Connections to the program [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) connections: Option<u16>,
}

/// What is sent, and when.
#[derive(Args, Debug)]
pub(crate) struct BenchReplayArguments {
    /// The recording: a file, plain or packed by gzip, zstd or xz
    #[arg(long, value_name = "FILE")]
    pub(crate) source: Option<PathBuf>,
    /// The framing of its events, by a codec of Tremor's: json, string, syslog,
    /// csv, influx, statsd, binary, msgpack, … [default: json]
    #[arg(long, value_name = "CODEC")]
    pub(crate) codec: Option<String>,
    /// Cut it into pieces of so many bytes, not into lines
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) chunk_size: Option<u32>,
    /// Each piece is base64
    #[arg(long)]
    pub(crate) base64: bool,
    /// Do not stamp events: they are only counted
    #[arg(long)]
    pub(crate) no_stamps: bool,
    /// Events in a write, datagram or request
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) batch: Option<u32>,
    /// Time between two events
    #[arg(long, value_name = "TIME", conflicts_with = "rate")]
    pub(crate) interval: Option<Nanos>,
    /// `5k/s`, `10 MiB/s`, or `max`: as fast as the program takes them [default:
    /// max]
    #[arg(long)]
    pub(crate) rate: Option<String>,
    /// Rounds through the recording
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) iters: Option<u64>,
    /// Length of load behind the warm-up [default: 10s without --iters]
    #[arg(long, value_name = "TIME")]
    pub(crate) stop_after: Option<Nanos>,
    /// Length of load that does not count
    #[arg(long, value_name = "TIME")]
    pub(crate) warmup: Option<Nanos>,
    /// The longest that it goes on with --iters [default: 10m]
    #[arg(long, value_name = "TIME")]
    pub(crate) limit: Option<Nanos>,
    /// How long is waited for what the program still holds or has not acknowledged
    /// [default: 10s]
    #[arg(long, value_name = "TIME")]
    pub(crate) drain: Option<Nanos>,
}

/// The form of a report.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum BenchFormat {
    /// For people, with the table of percentiles that plotters read.
    Text,
    /// For programs.
    Json,
}

/// `stillwell test`.
#[derive(Args, Debug)]
pub(crate) struct TestArguments {
    /// What is tested.
    #[command(subcommand)]
    pub(crate) command: TestCommand,
}

/// What is tested.
#[derive(Debug, Subcommand)]
pub(crate) enum TestCommand {
    /// Run the benches of a tree of folders, one after another, and hold them
    /// against what must be true of them
    Bench(TestBenchArguments),
}

/// `stillwell test bench`.
#[derive(Args, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct TestBenchArguments {
    /// The tree: folders with a bench.yaml at or below DIR
    #[arg(value_name = "DIR")]
    pub(crate) root: PathBuf,
    /// Only benches with this tag; repeatable
    #[arg(short, long, value_name = "TAG")]
    pub(crate) includes: Vec<String>,
    /// No benches with this tag, unless it is included; repeatable
    #[arg(short, long, value_name = "TAG")]
    pub(crate) excludes: Vec<String>,
    /// The longest that one bench may take
    #[arg(short, long, value_name = "TIME", default_value = "15m")]
    pub(crate) timeout: Nanos,
    /// Also write the report as JSON to FILE
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Where evidence goes [default: .stillwell/benches/TIME-NAME]
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// Show what each bench says
    #[arg(short, long)]
    pub(crate) verbose: bool,
}
