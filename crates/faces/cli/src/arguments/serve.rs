//! What `stillwell serve` takes.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, ValueEnum};
use stillwell_plan::{DelayExpression, FaultExpression, LimitAnswer};
use stillwell_units::{ByteSize, EventRate, Seed};

const EXPRESSIONS: &str = "\
Expressions:
  over active_requests, t (seconds since the start) and pi, with + - * / % **,
  comparisons, && || !, c ? a : b, and rand(), normal(mean, deviation),
  exponential(mean), sin(), cos(), abs(), floor(), sqrt(), exp(), ln(), min(), max()
    --delay '5 + 2 * active_requests'            slower under load
    --delay 't % 10 < 1 ? 1000 * (1 - t % 10) : 0'  stands still 1 s in every 10
    --error 'rand() < 0.01 ? 503 : false'        one in a hundred fails
  faults: 'close', 'reset', 'garbage', 'huge_head', 'truncate', 'stall', 'silence'

Requests may say how they are answered in x-nighthawk-test-server-config, as
Nighthawk's test server has it:
    x-nighthawk-test-server-config: {response_body_size: 100, echo_request_headers: true}

It serves until SIGINT or SIGTERM, or until somebody asks the admin interface to end.

Exit codes:
  0        it served
  2        usage
  3        could not run: an address is taken, or a file cannot be written
  4        a thread of it failed";

/// What a configuration file says itself, or what is for that.
const SAID_BY_FILE: [&str; 22] = [
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

/// Whatever makes it speak TLS.
const SPEAKS_TLS: &str = "identity";

/// `stillwell serve`.
#[derive(Args, Debug)]
#[command(after_help = EXPRESSIONS)]
pub(crate) struct ServeArguments {
    /// Serve as an Envoy configuration says: listeners, HTTP filters of
    /// Nighthawk's test server, TLS and admin. Beside it only --workers,
    /// --connections-max, --seed and --format can be given
    #[arg(short, long, value_name = "FILE", conflicts_with_all = SAID_BY_FILE)]
    pub(crate) config: Option<PathBuf>,
    /// Where it listens, port 0 for one that is free; repeatable
    #[arg(short, long, value_name = "ADDR", default_value = "127.0.0.1:10000")]
    pub(crate) address: Vec<SocketAddr>,
    /// Threads, all of which serve every address
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) workers: u16,
    /// Connections that each thread serves at once at each address; more wait
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) connections_max: u32,
    /// Where it tells its counts and can be ended, as Envoy's admin interface;
    /// without this, nowhere
    #[arg(long, value_name = "ADDR")]
    pub(crate) admin: Option<SocketAddr>,
    /// Status of answers
    #[arg(long, value_name = "STATUS", default_value_t = 200, value_parser = clap::value_parser!(u16).range(200..600))]
    pub(crate) status: u16,
    /// Length of the body of answers, up to 4 MiB [default: 10 B]
    #[arg(long, value_name = "SIZE", value_parser = body_size)]
    pub(crate) response_size: Option<ByteSize>,
    /// Header of answers, as NAME:VALUE; repeatable
    #[arg(long, value_name = "HEADER", value_parser = header)]
    pub(crate) response_header: Vec<(String, String)>,
    /// Send the headers of requests back, behind the body
    #[arg(long)]
    pub(crate) echo: bool,
    /// Send the time since the request before back, in this header, in
    /// nanoseconds
    #[arg(long, value_name = "NAME", value_parser = header_name)]
    pub(crate) delta_header: Option<String>,
    /// Time before an answer, such as `5ms`, or an expression in milliseconds
    #[arg(long, value_name = "TIME|EXPRESSION")]
    pub(crate) delay: Option<DelayExpression>,
    /// What goes wrong with a request, as an expression: false, true for status
    /// 500, a status, or the name of a fault
    #[arg(long, value_name = "EXPRESSION", conflicts_with = "error_rate")]
    pub(crate) error: Option<FaultExpression>,
    /// Share of requests that are answered by status 500, from 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) error_rate: Option<f64>,
    /// Requests that are taken, such as `1000/s`
    #[arg(long, value_name = "RATE")]
    pub(crate) rate_limit: Option<EventRate>,
    /// Requests that are taken at once after a pause
    #[arg(long, value_name = "N", default_value_t = 1, requires = "rate_limit", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate_limit_burst: u32,
    /// What requests beyond the rate meet: a status, queue or close
    #[arg(long, value_name = "ANSWER", default_value = "429", requires = "rate_limit", value_parser = limit_answer)]
    pub(crate) rate_limit_answer: LimitAnswer,
    /// Speak TLS with a certificate that is made now and signed by nobody else
    #[arg(
        long,
        value_enum,
        value_name = "CERTIFICATE",
        conflicts_with = "certificate",
        group = SPEAKS_TLS
    )]
    pub(crate) tls: Option<ServeCertificate>,
    /// Speak TLS with the certificate in FILE, in PEM, its own first
    #[arg(long, value_name = "FILE", requires = "key", group = SPEAKS_TLS)]
    pub(crate) certificate: Option<PathBuf>,
    /// The certificate's key, in PEM
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub(crate) key: Option<PathBuf>,
    /// Names and addresses in the certificate that is made; repeatable
    /// [default: localhost, and where it listens]
    #[arg(
        long,
        value_name = "NAME",
        requires = "tls",
        conflicts_with = "certificate"
    )]
    pub(crate) tls_name: Vec<String>,
    /// Write the certificate that is made to FILE, so that clients can trust it
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls",
        conflicts_with = "certificate"
    )]
    pub(crate) tls_certificate_out: Option<PathBuf>,
    /// Take only clients that show a certificate which comes from an authority in
    /// FILE, in PEM; repeatable
    #[arg(long, value_name = "FILE", requires = SPEAKS_TLS)]
    pub(crate) client_ca: Vec<PathBuf>,
    /// Let no client resume a session of TLS
    #[arg(long, requires = SPEAKS_TLS)]
    pub(crate) no_session_resumption: bool,
    /// Cipher suite that is taken, by the name of OpenSSL or IANA; repeatable
    /// [default: all]
    #[arg(long, value_name = "SUITE", requires = SPEAKS_TLS)]
    pub(crate) cipher_suite: Vec<String>,
    /// Which versions of HTTP are spoken
    #[arg(long, value_enum, default_value_t = ServeVersions::Auto)]
    pub(crate) protocol: ServeVersions,
    /// Seed of what rand() gives: a whole number
    #[arg(long, default_value = "1")]
    pub(crate) seed: Seed,
    /// How the counts are printed in the end
    #[arg(long, value_enum, default_value_t = ServeFormat::Text)]
    pub(crate) format: ServeFormat,
}

/// Which versions of HTTP are spoken.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum ServeVersions {
    /// HTTP/2 where ALPN or the first bytes say so, else HTTP/1.1.
    Auto,
    /// HTTP/1.1 alone.
    Http1,
    /// HTTP/2 alone.
    Http2,
    /// HTTP/3 alone, over UDP; it goes over TLS alone.
    Http3,
}

/// What `nighthawk_test_server` takes: this program called by that name.
#[derive(Debug, Parser)]
#[command(name = "nighthawk_test_server", version)]
pub(crate) struct NighthawkTestServerArguments {
    /// Envoy configuration: listeners, HTTP filters and TLS; other keys are errors
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config_path: PathBuf,
    /// Threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) concurrency: u16,
    /// Write where the admin interface is to FILE, as ADDRESS:PORT
    #[arg(long, value_name = "FILE")]
    pub(crate) admin_address_path: Option<PathBuf>,
    /// Has no effect: nothing is shared with other servers
    #[arg(long, hide = true)]
    use_dynamic_base_id: bool,
    /// Has no effect: nothing is shared with other servers
    #[arg(long, value_name = "N", hide = true)]
    base_id: Option<u64>,
    /// Has no effect: nothing is logged
    #[arg(short, long, value_name = "LEVEL", hide = true)]
    log_level: Option<String>,
}

/// Which certificate is shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum ServeCertificate {
    /// One that is made when the server starts.
    SelfSigned,
}

/// How counts are printed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum ServeFormat {
    /// For people.
    Text,
    /// For programs: an object with where it listens on one line, an object with
    /// the counts on another.
    Json,
}

fn body_size(text: &str) -> Result<ByteSize, String> {
    let size = ByteSize::from_str(text).map_err(|error| error.to_string())?;
    if size.bytes() > u64::from(stillwell_plan::RESPONSE_BODY_BYTES_MAX) {
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
        return Err("a header's name has letters, digits and dashes".to_owned());
    }
    Ok(text.to_ascii_lowercase())
}

fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| "write a number from 0 to 1")?;
    if (0.0..=1.0).contains(&share) {
        Ok(share)
    } else {
        Err("write a number from 0 to 1".to_owned())
    }
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
