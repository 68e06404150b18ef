//! Arguments of `stillwell serve`.

mod proxy;

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::TypedValueParser;
use clap::{Args, Parser, ValueEnum};
use stillwell_plan::serve::{DelayExpression, FaultExpression, LimitAnswer};
use stillwell_units::{ByteSize, EventRate, Seed};

use super::count::{whole, within};
use super::parse_share;
use proxy::ProxyFlags;

const EXPRESSIONS: &str = "\
Expressions:
  over active_requests, t (seconds since the start) and pi, with + - * / % **,
  comparisons, && || !, c ? a : b, and rand(), normal(mean, deviation),
  exponential(mean), sin(), cos(), abs(), floor(), sqrt(), exp(), ln(), min(), max()
    --delay '5 + 2 * active_requests'            slower under load
    --delay 't % 10 < 1 ? 1000 * (1 - t % 10) : 0'  stalls for 1 s in every 10
    --error 'rand() < 0.01 ? 503 : false'        fails 1 % of requests
  faults: 'close', 'reset', 'garbage', 'huge_head', 'truncate', 'stall', 'silence'

A request can set its response with the header of Nighthawk's test server:
    x-nighthawk-test-server-config: {response_body_size: 100, echo_request_headers: true}

The server runs until SIGINT or SIGTERM, or until a request to /quitquitquit on the
admin address.

Example:
  stillwell serve --address 127.0.0.1:8080 --delay 5ms

Exit codes:
  0        stopped normally
  2        usage
  3        could not run: an address is taken, or a file cannot be written
  4        a thread failed";

/// Arguments that a configuration file replaces.
const CONFLICTS_WITH_FILE: [&str; 22] = [
    "address",
    "admin",
    "status",
    "response_size",
    "response_header",
    "echo",
    "delta_header",
    "delay",
    "error",
    "error_rate",
    "rate_limit",
    "rate_limit_burst",
    "rate_limit_answer",
    "tls",
    "tls_name",
    "tls_certificate_out",
    "certificate",
    "key",
    "client_ca",
    "no_session_resumption",
    "cipher_suite",
    "protocol",
];

/// Group of the arguments that enable TLS.
const TLS_GROUP: &str = "identity";

/// Returns the parser of a number of threads.
fn threads() -> impl TypedValueParser<Value = NonZeroU16> {
    within::<u16>(1..).try_map(NonZeroU16::try_from)
}

/// `stillwell serve`.
#[derive(Args, Debug)]
#[command(after_help = EXPRESSIONS)]
pub(crate) struct ServeArguments {
    /// Envoy configuration: listeners, HTTP filters of Nighthawk's test server, TLS and
    /// admin. Can be combined only with --workers, --connections-max, --seed, --log-requests
    /// and --format
    #[arg(short, long, value_name = "FILE", conflicts_with_all = CONFLICTS_WITH_FILE)]
    pub(crate) config: Option<PathBuf>,
    /// Address to listen on, or a port of 127.0.0.1; port 0 chooses a free port; repeatable
    #[arg(short, long, value_name = "ADDR", value_parser = address, default_value = "127.0.0.1:10000")]
    pub(crate) address: Vec<SocketAddr>,
    /// Number of threads
    #[arg(long, value_name = "N", default_value_t = NonZeroU16::MIN, value_parser = threads())]
    pub(crate) workers: NonZeroU16,
    /// Maximum number of connections per thread and address; above it, a new one replaces one
    /// that was idle for 5 s, or waits; over HTTP/3 it is refused
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = whole::<u32>)]
    pub(crate) connections_max: u32,
    /// Address of an admin interface like Envoy's, with counters [default: none]
    #[arg(long, value_name = "ADDR")]
    pub(crate) admin: Option<SocketAddr>,
    /// Status of responses
    #[arg(long, value_name = "STATUS", default_value_t = 200, value_parser = clap::value_parser!(u16).range(200..600))]
    pub(crate) status: u16,
    /// Length of response bodies, up to 4 MiB [default: 10 B]
    #[arg(long, value_name = "SIZE", value_parser = body_size)]
    pub(crate) response_size: Option<ByteSize>,
    /// Header of responses, as NAME:VALUE; repeatable
    #[arg(long, value_name = "HEADER", value_parser = header)]
    pub(crate) response_header: Vec<(String, String)>,
    /// Append the headers of the request to the body
    #[arg(long)]
    pub(crate) echo: bool,
    /// Response header with the time since the previous request, in nanoseconds
    #[arg(long, value_name = "NAME", value_parser = header_name)]
    pub(crate) delta_header: Option<String>,
    /// Delay of responses, such as `5ms`, or an expression in milliseconds
    #[arg(long, value_name = "TIME|EXPRESSION")]
    pub(crate) delay: Option<DelayExpression>,
    /// Fault to inject: a status such as 503, the name of a fault, true for status 500, or
    /// false; may be an expression
    #[arg(long, value_name = "EXPRESSION", conflicts_with = "error_rate")]
    pub(crate) error: Option<FaultExpression>,
    /// Share of requests that get status 500, such as `1%` or `0.01`
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) error_rate: Option<f64>,
    /// Maximum request rate, such as `1000/s`
    #[arg(long, value_name = "RATE")]
    pub(crate) rate_limit: Option<EventRate>,
    /// Burst size of the rate limit [default: one second's worth, at least 1]
    #[arg(long, value_name = "N", requires = "rate_limit", value_parser = whole::<u32>)]
    pub(crate) rate_limit_burst: Option<u32>,
    /// Response to requests above the rate limit: a status, queue or close
    #[arg(long, value_name = "ANSWER", default_value = "429", requires = "rate_limit", value_parser = limit_answer)]
    pub(crate) rate_limit_answer: LimitAnswer,
    /// Serve TLS with a new self-signed certificate
    #[arg(
        long,
        value_enum,
        value_name = "CERTIFICATE",
        conflicts_with = "certificate",
        group = TLS_GROUP
    )]
    pub(crate) tls: Option<ServeCertificate>,
    /// Serve TLS with the certificate chain in FILE, in PEM
    #[arg(long, value_name = "FILE", requires = "key", group = TLS_GROUP)]
    pub(crate) certificate: Option<PathBuf>,
    /// PEM file of the private key
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub(crate) key: Option<PathBuf>,
    /// Name or address in the self-signed certificate; repeatable [default: localhost,
    /// and the listening addresses]
    #[arg(
        long,
        value_name = "NAME",
        requires = "tls",
        conflicts_with = "certificate"
    )]
    pub(crate) tls_name: Vec<String>,
    /// Write the self-signed certificate to FILE
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls",
        conflicts_with = "certificate"
    )]
    pub(crate) tls_certificate_out: Option<PathBuf>,
    /// Require client certificates of an authority in FILE, in PEM; repeatable
    #[arg(long, value_name = "FILE", requires = TLS_GROUP)]
    pub(crate) client_ca: Vec<PathBuf>,
    /// Disable TLS session resumption
    #[arg(long, requires = TLS_GROUP)]
    pub(crate) no_session_resumption: bool,
    /// Cipher suite to accept, by its OpenSSL or IANA name; repeatable
    /// [default: all]
    #[arg(long, value_name = "SUITE", requires = TLS_GROUP)]
    pub(crate) cipher_suite: Vec<String>,
    /// HTTP versions to serve
    #[arg(long, value_enum, default_value_t = ServeVersions::Auto)]
    pub(crate) protocol: ServeVersions,
    /// Seed of rand(): a whole number
    #[arg(long, default_value = "1")]
    pub(crate) seed: Seed,
    /// Print a line on standard error for each request
    #[arg(long)]
    pub(crate) log_requests: bool,
    /// Format of the final counters, and of the request log
    #[arg(long, value_enum, default_value_t = ServeFormat::Text)]
    pub(crate) format: ServeFormat,
}

/// HTTP versions.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum ServeVersions {
    /// HTTP/2 by ALPN or prior knowledge, else HTTP/1.1.
    Auto,
    /// HTTP/1.1 only.
    Http1,
    /// HTTP/2 only.
    Http2,
    /// HTTP/3 only, over UDP with TLS.
    Http3,
}

impl_from!(ServeVersions => stillwell_plan::serve::ServeProtocols { Auto, Http1, Http2, Http3 });

/// Arguments of `nighthawk_test_server`: this program called by that name.
#[derive(Debug, Parser)]
#[command(name = "nighthawk_test_server", version)]
pub(crate) struct NighthawkTestServerArguments {
    /// Envoy configuration: listeners, HTTP filters and TLS; a proxy's options are ignored
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config_path: PathBuf,
    /// Number of threads
    #[arg(long, value_name = "N", default_value_t = NonZeroU16::MIN, value_parser = threads())]
    pub(crate) concurrency: NonZeroU16,
    /// Write the address of the admin interface to FILE, as ADDRESS:PORT
    #[arg(long, value_name = "FILE")]
    pub(crate) admin_address_path: Option<PathBuf>,
    /// No effect
    #[arg(long)]
    use_dynamic_base_id: bool,
    /// No effect
    #[arg(long, value_name = "N")]
    base_id: Option<u64>,
    /// No effect
    #[arg(short, long, value_name = "LEVEL")]
    log_level: Option<String>,
    #[command(flatten)]
    pub(crate) proxy: ProxyFlags,
}

/// Kinds of certificates.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum ServeCertificate {
    /// A new self-signed certificate at each start.
    SelfSigned,
}

/// Formats of counters.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum ServeFormat {
    /// For people.
    Text,
    /// For programs: one line with the listening addresses, one line with the counters.
    Json,
}

/// An address; a port alone is one of this host.
fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse::<u16>() {
        return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }
    text.parse()
        .map_err(|_| "write IP:PORT, such as 127.0.0.1:9305, or a port".to_owned())
}

fn body_size(text: &str) -> Result<ByteSize, String> {
    let size = ByteSize::from_str(text).map_err(|error| error.to_string())?;
    if size.bytes() > u64::from(stillwell_plan::serve::RESPONSE_BODY_BYTES_MAX) {
        return Err("at most 4 MiB is accepted".to_owned());
    }
    Ok(size)
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("write NAME:VALUE")?;
    Ok((header_name(name.trim())?, value.trim().to_owned()))
}

fn header_name(text: &str) -> Result<String, String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if text.is_empty() || !text.bytes().all(is_token) {
        return Err("a header name has letters, digits and dashes".to_owned());
    }
    Ok(text.to_ascii_lowercase())
}

fn share(text: &str) -> Result<f64, String> {
    parse_share(text)
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "write a percentage such as `1%`, or a number from 0 to 1".to_owned())
}

fn limit_answer(text: &str) -> Result<LimitAnswer, String> {
    let status = text.parse::<u16>().ok();
    match (text, status.filter(|status| (200..600).contains(status))) {
        ("queue", _) => Ok(LimitAnswer::Queue),
        ("close", _) => Ok(LimitAnswer::Close),
        (_, Some(status)) => Ok(LimitAnswer::Status(status)),
        _ => Err("write a status from 200 to 599, queue or close".to_owned()),
    }
}
