//! Arguments of `stillwell load`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use stillwell_config::parse_request_rate;
use stillwell_config::requests::{Predicate, above_zero};
use stillwell_nighthawk::format::LoadFormat;
use stillwell_plan::RateShape;
use stillwell_plan::capacity::CapacityBound;
use stillwell_plan::load::{IdleStrategy, LoadProtocol, Reuse, TunnelProtocol};
use stillwell_run::AddressFamily;
use stillwell_units::{Nanos, Seed};

pub(crate) use stillwell_config::requests::{Concurrency, Header};

use super::count::whole;
use super::{LoadFleetArguments, ValidityArgument};

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
  max                       as fast as responses arrive: a closed loop
  1000/s                    one every millisecond, independent of responses: an open loop
  100/s..5k/s:30s           ramps up over 30 s, then stays at 5k/s
  100/s:10s,1k/s:10s,500/s  one after the other; the last one stays

Latency counts from the intended time of a request, so it includes the time that a
request waited because the target was slow. The report also has the time since the
request was sent; a closed loop has only that. With --closed-loop the rate is a
maximum: the schedule pauses while all connections wait for responses.

With --warmup the report covers the time after the warm-up.

Receivers of metrics for --stats-sink, with default ports:
  statsd://HOST:8125 statsd+tcp:// dogstatsd://      statsd lines, without or with tags
  otlp+http://HOST:4318 otlp+https://                OpenTelemetry over HTTP
  otlp+grpc://HOST:4317 otlp+grpcs://                OpenTelemetry over gRPC
  remote-write+http://HOST:9090 remote-write+https:// Prometheus remote write
If an export fails, the next export includes its numbers. The load continues.

Files of requests:
  --requests-file  one request per line: METHOD URL BODY; METHOD and BODY are
                   optional; lines that begin with # are comments
  --request-source a request source plugin of Nighthawk, with name and
                   typed_config, or only its list; URL is the target:
    options:
    - request_method: POST
      request_headers:
      - header: { key: \":path\", value: /in }
      json_body: '{\"a\": 1}'
    - request_body_size: 1000

gRPC:
  stillwell load --grpc-method helloworld.Greeter/SayHello \\
      --grpc-json '{\"name\": \"a\"}' http://HOST:50051
A call with a status other than OK counts as the equivalent HTTP status, such as
status_5xx for UNAVAILABLE; the report also lists gRPC statuses by name.

Exit codes:
  0        the load ran
  1        a failure predicate was met, a threshold was broken, or no request was
           answered with a status of 2xx or 3xx
  2        usage
  3        could not run: unknown host, no connection, wrong protocol, or the result
           could not be written
  4        no valid result: the load generator was too slow for the rate or failed,
           or nothing was measured; with --strict also an unreliable result
  130 143  interrupted by SIGINT or SIGTERM (129, 131: SIGHUP, SIGQUIT); the
           result so far is printed";

/// `stillwell load`.
#[derive(Args, Debug)]
#[command(after_help = NOTES)]
pub(crate) struct LoadArguments {
    /// Target URL, or WEIGHT*URL, such as http://127.0.0.1:8080/in or
    /// 3*http://localhost/; repeatable
    #[arg(value_name = "URL", required_unless_present_any = ["requests_file", "har", "scenario"])]
    pub(crate) urls: Vec<String>,
    /// Request rate: max, N or N/s, FROM/s..TO/s:TIME or N/s:TIME,N/s:TIME…
    #[arg(short, long, visible_alias = "rps", default_value = "max", value_parser = rate)]
    pub(crate) rate: RateShape,
    /// File of a scenario: users that follow steps, with the URL as base; see
    /// docs/scenarios.md
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "rate", "requests", "closed_loop", "termination_predicate",
            "failure_predicate", "keep_going", "capture", "label",
            "connections", "cpus", "streams", "spacing", "method", "header", "body",
            "requests_file", "har", "request_source", "grpc_method", "connect_late",
            "prefetch_connections", "connect_over", "max_requests_per_connection",
            "connection_reuse", "address_family", "idle_strategy", "tunnel_uri", "stats_sink",
            "stats_listen", "stats_label", "stats_flush_interval", "trace", "trace_headers",
            "trace_sample"
        ]
    )]
    pub(crate) scenario: Option<PathBuf>,
    /// Length of the load [default: 10s, or the length of --rate if longer; unlimited
    /// with --requests]
    #[arg(short, visible_short_alias = 'z', long, value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Option<Nanos>,
    /// Maximum number of requests
    #[arg(short = 'n', long, value_name = "N", value_parser = whole::<u64>)]
    pub(crate) requests: Option<u64>,
    /// Length of the warm-up, which is not measured: part of the duration, or before it
    /// with --scenario
    #[arg(long, value_name = "TIME", default_value = "0s")]
    pub(crate) warmup: Nanos,
    #[command(flatten)]
    pub(crate) over: LoadOverArguments,
    /// Treat the rate as a maximum: wait for responses, queue nothing, and count latency
    /// from the sent time
    #[arg(long)]
    pub(crate) closed_loop: bool,
    /// Stop with success when a counter exceeds a threshold, such as ok:1000; repeatable
    #[arg(long, value_name = "COUNTER:N")]
    pub(crate) termination_predicate: Vec<Predicate>,
    /// Stop with exit code 1 when a counter exceeds a threshold, such as status_5xx:0;
    /// repeatable
    #[arg(long, value_name = "COUNTER:N")]
    pub(crate) failure_predicate: Vec<Predicate>,
    /// Exit with code 1 unless the result keeps a bound: p99<20ms, mean<5ms, max<1s,
    /// errors<0.1%, loss<0.01% or throughput>99%; repeatable
    #[arg(long, value_name = "BOUND")]
    pub(crate) threshold: Vec<CapacityBound>,
    /// Strictness of the limits above which the result is unreliable
    #[arg(long, value_enum, default_value_t = ValidityArgument::Normal)]
    pub(crate) validity: ValidityArgument,
    /// Exit with code 4 if the result is unreliable
    #[arg(long)]
    pub(crate) strict: bool,
    /// Continue to the end even if no connection can be opened or every response is
    /// malformed; without it such a load ends at once, with code 3
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// Format on standard output: human, json, csv, stillwell (the full
    /// result as JSON), hgrm, hlog, fortio, fortio-2020,
    /// experimental_fortio_pedantic, nighthawk-human, nighthawk-human-2020,
    /// nighthawk-json, nighthawk-yaml, nighthawk-dotted, nighthawk-csv or
    /// nighthawk-prometheus
    #[arg(
        long,
        visible_alias = "format",
        value_name = "FORMAT",
        default_value = "human",
        value_parser = LoadFormat::from_str
    )]
    pub(crate) output_format: LoadFormat,
    /// Also write the result to FILE, in the format of its extension: .json, .csv, .html,
    /// .md, .txt, .hgrm or .hlog; repeatable
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Vec<PathBuf>,
    /// Save the capture of this load in DIR; that of another load there is replaced
    #[arg(long, value_name = "DIR")]
    pub(crate) capture: Option<PathBuf>,
    /// Label in the result; repeatable
    #[arg(long)]
    pub(crate) label: Vec<String>,
    /// Seed of all random choices: a whole number [default: random; reports in HTML,
    /// Markdown, JSON and CSV have it]
    #[arg(long)]
    pub(crate) seed: Option<Seed>,
    /// Show neither progress nor warnings about exporters
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Accepted for users of wrk: the report always has the latency distribution
    #[arg(long, hide = true)]
    pub(crate) latency: bool,
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
    #[command(flatten)]
    pub(crate) fleet: LoadFleetArguments,
}

/// Parses a rate; a number alone is requests per second.
pub(super) fn rate(text: &str) -> Result<RateShape, String> {
    let number = text.trim();
    let is_number = number.parse::<f64>().is_ok_and(f64::is_finite);
    match is_number {
        true => parse_request_rate(&format!("{number}/s")),
        false => parse_request_rate(text),
    }
}

/// Parses a duration, and names the flag for a body that was meant.
pub(super) fn duration(text: &str) -> Result<Nanos, String> {
    if text.starts_with(['@', '{']) {
        return Err(format!("-d is the duration; a body is -b {text}"));
    }
    above_zero(text)
}

/// Names the flags of which one was meant.
fn no_concurrency(text: &str) -> Result<Concurrency, String> {
    Err(format!(
        "write -c {text} for connections, or -t {text} for load-generator threads"
    ))
}

/// Connections and worker threads.
#[derive(Args, Clone, Debug)]
pub(crate) struct LoadOverArguments {
    /// Number of connections, over all threads
    #[arg(short, long, value_name = "N", default_value_t = 50, value_parser = whole::<u32>)]
    pub(crate) connections: u32,
    /// Number of load-generator threads, or auto for one on each CPU
    #[arg(short = 't', long = "threads", value_name = "N", default_value = "1")]
    pub(crate) concurrency: Concurrency,
    /// Refused with the flag that was meant
    #[arg(long = "concurrency", value_name = "N", value_parser = no_concurrency, hide = true)]
    pub(crate) refused_concurrency: Option<Concurrency>,
    /// CPUs of these threads, such as 1 or 2,3; used in turn if there are more threads
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) cpus: Vec<u16>,
    /// Protocol of connections
    #[arg(short, long, value_enum, default_value_t = ProtocolName::Http1)]
    pub(crate) protocol: ProtocolName,
    /// Concurrent requests on each connection, with --protocol http2 or http3
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u32>)]
    pub(crate) streams: u32,
}

/// Arrival process of requests.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Shape of a rate")]
pub(crate) struct LoadShapeArguments {
    /// Send requests in bursts of N, at the same mean rate
    #[arg(long, value_name = "N", group = "spacing", value_parser = whole::<u32>)]
    pub(crate) burst_size: Option<u32>,
    /// Delay each request by a random time up to TIME
    #[arg(long, value_name = "TIME", group = "spacing")]
    pub(crate) jitter_uniform: Option<Nanos>,
    /// Use a Poisson process: exponential gaps, like independent users
    #[arg(long, group = "spacing")]
    pub(crate) poisson: bool,
    /// Use random gaps of a Zipf distribution with this exponent
    #[arg(long, value_name = "EXPONENT", group = "spacing")]
    pub(crate) zipf: Option<f64>,
}

/// Content of requests.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Requests")]
pub(crate) struct LoadRequestArguments {
    /// Method; the default for --requests-file and --request-source [default: GET, or
    /// POST with a body]
    #[arg(
        short = 'X',
        visible_short_alias = 'm',
        long,
        visible_alias = "request-method"
    )]
    pub(crate) method: Option<String>,
    /// Header, as `name: value`; repeatable. Overrides headers of --har; headers of
    /// --request-source override it
    #[arg(
        short = 'H',
        long,
        value_name = "HEADER",
        visible_alias = "request-header"
    )]
    pub(crate) header: Vec<Header>,
    /// Body: text, @FILE, or payload:FORMAT:SIZE such as payload:json:4KiB; the default
    /// for --requests-file and --request-source
    #[arg(short, long)]
    pub(crate) body: Option<String>,
    /// File of requests, one per line: URL, METHOD URL, or METHOD URL BODY
    #[arg(long, value_name = "FILE", conflicts_with = "urls")]
    pub(crate) requests_file: Option<PathBuf>,
    /// HAR file of a browser or proxy, whose requests are sent in order
    #[arg(long, value_name = "FILE", conflicts_with_all = ["urls", "requests_file", "method", "body"])]
    pub(crate) har: Option<PathBuf>,
    /// Request source of Nighthawk for URL: @FILE, or JSON or YAML in one line; see below
    #[arg(long, value_name = "LIST", conflicts_with_all = ["requests_file", "har"])]
    pub(crate) request_source: Option<String>,
}

/// Connection options.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connections")]
pub(crate) struct LoadConnectingArguments {
    /// Timeout of a request
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = above_zero)]
    pub(crate) timeout: Nanos,
    /// Timeout of connecting, including the TLS handshake
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = above_zero)]
    pub(crate) connect_timeout: Nanos,
    /// Open each connection when it is first needed
    #[arg(long)]
    pub(crate) connect_late: bool,
    /// Open all connections before the start; this is the default
    #[arg(long, conflicts_with = "connect_late")]
    pub(crate) prefetch_connections: bool,
    /// Open connections evenly over TIME from the start
    #[arg(long, value_name = "TIME", value_parser = above_zero, conflicts_with_all = ["connect_late", "prefetch_connections"])]
    pub(crate) connect_over: Option<Nanos>,
    /// Maximum number of requests on each connection
    #[arg(long, value_name = "N", value_parser = whole::<u64>)]
    pub(crate) max_requests_per_connection: Option<u64>,
    /// Order of reuse of idle connections [default: mru]
    #[arg(long, value_enum, value_name = "ORDER")]
    pub(crate) connection_reuse: Option<ReuseName>,
    /// Address family of resolved names
    #[arg(long, value_enum, value_name = "FAMILY", default_value_t = FamilyName::Auto)]
    pub(crate) address_family: FamilyName,
    /// Strategy of threads that wait for the next request [default: spin]
    #[arg(long, value_enum, value_name = "STRATEGY")]
    pub(crate) idle_strategy: Option<IdleName>,
}

/// TLS options for https targets.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "TLS, for https:// targets")]
pub(crate) struct LoadTlsArguments {
    /// Accept any server certificate, without verification
    #[arg(short = 'k', long, conflicts_with = "ca")]
    pub(crate) insecure: bool,
    /// PEM file of additional trusted certificate authorities, or `system`: those of this
    /// host; repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Vec<PathBuf>,
    /// PEM file of the client certificate chain
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) certificate: Option<PathBuf>,
    /// PEM file of its private key
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub(crate) key: Option<PathBuf>,
    /// Server name (SNI) [default: the host of the URL]
    #[arg(long, value_name = "NAME")]
    pub(crate) sni: Option<String>,
    /// Disable session resumption
    #[arg(long)]
    pub(crate) no_session_resumption: bool,
    /// Cipher suite to offer, by its OpenSSL or IANA name; repeatable
    /// [default: all]
    #[arg(long, value_name = "SUITE")]
    pub(crate) cipher_suite: Vec<String>,
}

/// Protocols of connections, to targets or to a proxy.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum ProtocolName {
    /// HTTP/1.1.
    #[value(alias = "h1")]
    Http1,
    /// HTTP/2.
    #[value(alias = "h2")]
    Http2,
    /// HTTP/3, for https:// URLs.
    #[value(alias = "h3")]
    Http3,
}

impl_from!(ProtocolName => LoadProtocol { Http1, Http2, Http3 });
impl_from!(ProtocolName => TunnelProtocol { Http1, Http2, Http3 });

/// Order of reuse of idle connections.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum ReuseName {
    /// Most recently used first.
    Mru,
    /// Least recently used first.
    Lru,
}

impl_from!(ReuseName => Reuse { Mru, Lru });

/// Address families.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum FamilyName {
    /// The first address.
    Auto,
    /// The first IPv4 address.
    V4,
    /// The first IPv6 address.
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

/// Strategies of waiting for the next request.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum IdleName {
    /// Spin for the last 50 µs: exact, but uses CPU.
    Spin,
    /// Sleep: uses less CPU, but may be up to 50 µs late.
    #[value(alias = "poll")]
    Sleep,
}

impl_from!(IdleName => IdleStrategy { Spin, Sleep });
