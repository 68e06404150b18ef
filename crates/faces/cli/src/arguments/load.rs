//! What `stillwell load` takes.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use stillwell_config::requests::{LoadRate, Predicate, above_zero};
use stillwell_nighthawk::format::LoadFormat;
use stillwell_plan::{IdleStrategy, LoadProtocol, Reuse};
use stillwell_run::AddressFamily;
use stillwell_units::{Nanos, Seed};

pub(crate) use stillwell_config::requests::{Concurrency, Header};

pub(crate) use self::grpc::LoadGrpcArguments;
pub(crate) use self::nighthawk::NighthawkClientArguments;
pub(crate) use self::stats::LoadStatsArguments;
pub(crate) use self::trace::LoadTraceArguments;
pub(crate) use self::tunnel::LoadTunnelArguments;

mod grpc;
mod nighthawk;
mod stats;
mod trace;
mod tunnel;

const NOTES: &str = "\
Rates:
  max                       as fast as answers come: a closed loop
  1000/s                    one every millisecond, whatever the answers do: an open loop
  100/s..5k/s:30s           grows evenly for 30 s, then goes on at 5k/s
  100/s:10s,1k/s:10s,500/s  one after the other; the last one goes on

Latency counts from the time at which a request was due, so that requests that
had to wait for the target show it. The time from the sent time on stands beside
it; in a closed loop there is only that. With --closed-loop a rate is the most
that is sent: while all connections wait for answers, the schedule waits too.

With --warmup everything that is told is of the time after it: requests that
were due then, bytes since then, and connections that were open by then.

Stats sinks, with the port where none is given:
  statsd://HOST:8125 statsd+tcp:// dogstatsd://      lines of statsd, with or without tags
  otlp+http://HOST:4318 otlp+https://                OpenTelemetry's protobuf
  otlp+grpc://HOST:4317 otlp+grpcs://                the same by gRPC
  remote-write+http://HOST:9090 remote-write+https:// Prometheus' remote write
A sink that fails is told again the next time and never disturbs the load.

Files of requests:
  --requests-file  one a line: METHOD URL BODY, of which METHOD and BODY may be
                   missing; lines that begin with # are passed over
  --request-source a request source plugin of Nighthawk's, with name and
                   typed_config, or its list alone; URL says where they go:
    options:
    - request_method: POST
      request_headers:
      - header: { key: \":path\", value: /in }
      json_body: '{\"a\": 1}'
    - request_body_size: 1000

gRPC:
  stillwell load --grpc-method helloworld.Greeter/SayHello --grpc-json '{\"name\": \"a\"}' http://HOST:50051
A call that ends with another status than OK counts as the answer of HTTP that says
as much, such as status_5xx for UNAVAILABLE; statuses are told by name as well.

Exit codes:
  0        it ran
  1        a failure predicate came true
  2        usage
  3        could not run: no such host, not one connection could be had, or what
           was found could not be written
  4        invalid: the load itself was the limit or had no CPU, a part of it failed,
           or not one request was due, begun or answered in the measured time
  130 143  interrupted by SIGINT or SIGTERM; what was found is printed all the same";

/// `stillwell load`.
#[derive(Args, Debug)]
#[command(after_help = NOTES)]
pub(crate) struct LoadArguments {
    /// Where requests go: URL or WEIGHT*URL, such as http://127.0.0.1:8080/in or
    /// 3*http://localhost/; repeatable
    #[arg(value_name = "URL", required_unless_present_any = ["requests_file", "har"])]
    pub(crate) urls: Vec<String>,
    /// How fast: max, N/s, FROM/s..TO/s:TIME or N/s:TIME,N/s:TIME…
    #[arg(short, long, default_value = "max")]
    pub(crate) rate: LoadRate,
    /// How long to send [default: 10s, or as long as --rate says where that is
    /// longer; no end where --requests is given]
    #[arg(short, long, value_name = "TIME", value_parser = above_zero)]
    pub(crate) duration: Option<Nanos>,
    /// How many requests to send, unless the time is up before
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests: Option<u64>,
    /// How long to send before anything is measured, within the duration
    #[arg(long, value_name = "TIME", default_value = "0s")]
    pub(crate) warmup: Nanos,
    #[command(flatten)]
    pub(crate) over: LoadOverArguments,
    /// Have a rate wait for answers: no more than it is sent, nothing queues up, and
    /// latency counts from the sent time
    #[arg(long)]
    pub(crate) closed_loop: bool,
    /// End well once a counter exceeds a threshold, such as ok:1000; repeatable
    #[arg(long, value_name = "COUNTER:N")]
    pub(crate) termination_predicate: Vec<Predicate>,
    /// End with a failure once a counter exceeds a threshold, such as status_5xx:0;
    /// repeatable
    #[arg(long, value_name = "COUNTER:N")]
    pub(crate) failure_predicate: Vec<Predicate>,
    /// What is printed on standard output: human, nighthawk-human, json, yaml,
    /// dotted, csv, prometheus, fortio, experimental_fortio_pedantic, hgrm, hlog or
    /// stillwell, which alone says everything
    #[arg(
        long,
        visible_alias = "format",
        value_name = "FORMAT",
        default_value = "human",
        value_parser = LoadFormat::from_str
    )]
    pub(crate) output_format: LoadFormat,
    /// Keep the capture of this load, from which its result is made, in DIR
    #[arg(long, value_name = "DIR")]
    pub(crate) capture: Option<PathBuf>,
    /// A word that results carry; repeatable
    #[arg(long)]
    pub(crate) label: Vec<String>,
    /// Seed of everything random: a whole number [default: drawn, and told]
    #[arg(long)]
    pub(crate) seed: Option<Seed>,
    /// No progress, and no word about receivers
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) shape: LoadShapeArguments,
    #[command(flatten)]
    pub(crate) request: LoadRequestArguments,
    #[command(flatten)]
    pub(crate) grpc: LoadGrpcArguments,
    #[command(flatten)]
    pub(crate) connecting: LoadConnectingArguments,
    #[command(flatten)]
    pub(crate) tls: LoadTlsArguments,
    #[command(flatten)]
    pub(crate) tunnel: LoadTunnelArguments,
    #[command(flatten)]
    pub(crate) stats: LoadStatsArguments,
    #[command(flatten)]
    pub(crate) trace: LoadTraceArguments,
}

/// Over what requests go, and from which threads.
#[derive(Args, Clone, Debug)]
pub(crate) struct LoadOverArguments {
    /// Connections over all workers
    #[arg(short, long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) connections: u32,
    /// Threads that send: a number, or auto for one on each CPU
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) concurrency: Concurrency,
    /// CPUs for these threads, such as 1 or 2,3: one thread on each, in turn where
    /// there are more threads
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) cpus: Vec<u16>,
    /// What is spoken on connections
    #[arg(short, long, value_enum, default_value_t = ProtocolName::Http1)]
    pub(crate) protocol: ProtocolName,
    /// Requests at once on each connection, with --protocol http2 or http3
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) streams: u32,
}

/// How the moments of requests lie on the rate.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Shape of a rate")]
pub(crate) struct LoadShapeArguments {
    /// Send N requests at once, at the same mean rate
    #[arg(long, value_name = "N", group = "spacing", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) burst_size: Option<u32>,
    /// Send each request later by up to TIME
    #[arg(long, value_name = "TIME", group = "spacing")]
    pub(crate) jitter_uniform: Option<Nanos>,
    /// Send as independent users would: with exponential gaps
    #[arg(long, group = "spacing")]
    pub(crate) poisson: bool,
    /// Send in clumps: gaps from a Zipf distribution with this exponent
    #[arg(long, value_name = "EXPONENT", group = "spacing")]
    pub(crate) zipf: Option<f64>,
}

/// What requests are.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Requests")]
pub(crate) struct LoadRequestArguments {
    /// Method of requests; in --requests-file and --request-source of those that
    /// name none [default: GET, or POST where there is a body]
    #[arg(short = 'X', long, visible_alias = "request-method")]
    pub(crate) method: Option<String>,
    /// A header, as `name: value`; repeatable. It stands in for one of the same
    /// name in --har; one in --request-source stands in for it
    #[arg(
        short = 'H',
        long,
        value_name = "HEADER",
        visible_alias = "request-header"
    )]
    pub(crate) header: Vec<Header>,
    /// The body: text, @FILE, or payload:FORMAT:SIZE such as payload:json:4KiB; in
    /// --requests-file and --request-source of those that name none
    #[arg(short, long)]
    pub(crate) body: Option<String>,
    /// Requests from a file, one a line: URL, METHOD URL, or METHOD URL BODY
    #[arg(long, value_name = "FILE", conflicts_with = "urls")]
    pub(crate) requests_file: Option<PathBuf>,
    /// The requests of a recording by a browser or proxy (HAR), in their order
    #[arg(long, value_name = "FILE", conflicts_with_all = ["urls", "requests_file", "method", "body"])]
    pub(crate) har: Option<PathBuf>,
    /// Requests to URL from a list of Nighthawk's: @FILE or the list itself, as
    /// JSON or YAML in one line; see below
    #[arg(long, value_name = "LIST", conflicts_with_all = ["requests_file", "har"])]
    pub(crate) request_source: Option<String>,
}

/// How connections are opened and used.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connections")]
pub(crate) struct LoadConnectingArguments {
    /// How long an answer may take
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = above_zero)]
    pub(crate) timeout: Nanos,
    /// How long connecting may take, the handshake of TLS included
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = above_zero)]
    pub(crate) connect_timeout: Nanos,
    /// Open connections when they are needed, not all before the start
    #[arg(long)]
    pub(crate) connect_late: bool,
    /// Open all connections before the start: says in a script what is done unless
    /// --connect-late is given
    #[arg(long, conflicts_with = "connect_late")]
    pub(crate) prefetch_connections: bool,
    /// Open connections one after the other over TIME from the start on, as users
    /// come in: the last one at its end
    #[arg(long, value_name = "TIME", value_parser = above_zero, conflicts_with_all = ["connect_late", "prefetch_connections"])]
    pub(crate) connect_over: Option<Nanos>,
    /// Requests that one connection carries at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_requests_per_connection: Option<u64>,
    /// Which of several idle connections is used, where a rate leaves some idle
    /// [default: mru]
    #[arg(long, value_enum)]
    pub(crate) connection_reuse: Option<ReuseName>,
    /// Which addresses of a name are used
    #[arg(long, value_enum, default_value_t = FamilyName::Auto)]
    pub(crate) address_family: FamilyName,
    /// How to wait for the next request of a rate [default: spin]
    #[arg(long, value_enum)]
    pub(crate) idle_strategy: Option<IdleName>,
}

/// How TLS is spoken with https targets.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "TLS, with targets at https://")]
pub(crate) struct LoadTlsArguments {
    /// Take any certificate: whoever answers may be anyone
    #[arg(short = 'k', long, conflicts_with = "ca")]
    pub(crate) insecure: bool,
    /// Take certificates that come from an authority in FILE, in PEM, too;
    /// repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Vec<PathBuf>,
    /// The certificate that we show, in PEM, its own first
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) certificate: Option<PathBuf>,
    /// Its key, in PEM
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub(crate) key: Option<PathBuf>,
    /// The name to ask for, where it is not the target's own
    #[arg(long, value_name = "NAME")]
    pub(crate) sni: Option<String>,
    /// Resume no session
    #[arg(long)]
    pub(crate) no_session_resumption: bool,
    /// Cipher suite that is offered, by the name of OpenSSL or IANA; repeatable
    /// [default: all]
    #[arg(long, value_name = "SUITE")]
    pub(crate) cipher_suite: Vec<String>,
}

/// What is spoken on connections.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum ProtocolName {
    /// HTTP/1.1.
    #[value(alias = "h1")]
    Http1,
    /// HTTP/2.
    #[value(alias = "h2")]
    Http2,
    /// HTTP/3, with targets at https://.
    #[value(alias = "h3")]
    Http3,
}

impl From<ProtocolName> for LoadProtocol {
    fn from(name: ProtocolName) -> Self {
        match name {
            ProtocolName::Http1 => Self::Http1,
            ProtocolName::Http2 => Self::Http2,
            ProtocolName::Http3 => Self::Http3,
        }
    }
}

/// Which of several idle connections is used.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum ReuseName {
    /// The one that was used last.
    Mru,
    /// The one that was used longest ago.
    Lru,
}

impl From<ReuseName> for Reuse {
    fn from(name: ReuseName) -> Self {
        match name {
            ReuseName::Mru => Self::Mru,
            ReuseName::Lru => Self::Lru,
        }
    }
}

/// Which addresses of a name are used.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum FamilyName {
    /// The first one.
    Auto,
    /// The first one of IPv4.
    V4,
    /// The first one of IPv6.
    V6,
}

impl From<FamilyName> for AddressFamily {
    fn from(name: FamilyName) -> Self {
        match name {
            FamilyName::Auto => Self::Any,
            FamilyName::V4 => Self::V4,
            FamilyName::V6 => Self::V6,
        }
    }
}

/// How a worker waits for what is due next.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum IdleName {
    /// Spins for the last 50 us, which costs CPU and is exact.
    Spin,
    /// Sleeps all the time, which may be late by as much.
    #[value(alias = "poll")]
    Sleep,
}

impl From<IdleName> for IdleStrategy {
    fn from(name: IdleName) -> Self {
        match name {
            IdleName::Spin => Self::Spin,
            IdleName::Sleep => Self::Sleep,
        }
    }
}
