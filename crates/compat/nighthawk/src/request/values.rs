//! Parsers and ranges of single options, with Nighthawk's messages.

use std::net::Ipv6Addr;

use stillwell_config::requests::{Concurrency, Header};
use stillwell_plan::load::PredicatePlan;
use stillwell_report::load::SPAN_COUNTERS;
use stillwell_units::Nanos;

use super::NighthawkPredicate;
use crate::format::LoadFormat;

/// Largest number of all options: a larger one was negative, read without its sign.
pub const COUNT_MAX: u32 = u32::MAX - 30_000;

/// Value of `--max-concurrent-streams` that messages have if none was typed: no limit.
pub(super) const UNLIMITED_STREAMS: u32 = 2_147_483_647;

/// Numbers that an option takes, both ends included.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CountRange {
    least: u32,
    most: u32,
}

/// `--rps`.
pub const RPS: CountRange = CountRange::new(1, 1_000_000);
/// `--connections`.
pub const CONNECTIONS: CountRange = CountRange::new(1, 1_000_000);
/// `--burst-size`.
pub const BURST_SIZE: CountRange = CountRange::new(0, 1_000_000);
/// `--max-pending-requests`.
pub const PENDING_REQUESTS: CountRange = CountRange::new(0, u32::MAX);
/// `--max-active-requests`.
pub const ACTIVE_REQUESTS: CountRange = CountRange::new(1, u32::MAX);
/// `--max-requests-per-connection`.
pub const REQUESTS_PER_CONNECTION: CountRange = CountRange::new(1, u32::MAX);
/// `--max-concurrent-streams`.
pub const CONCURRENT_STREAMS: CountRange = CountRange::new(1, UNLIMITED_STREAMS);
/// `--request-body-size`, in bytes.
pub const BODY_SIZE: CountRange = CountRange::new(0, 4_194_304);
/// `--stats-flush-interval`, in seconds.
pub const FLUSH_INTERVAL: CountRange = CountRange::new(1, 300);

impl CountRange {
    const fn new(least: u32, most: u32) -> Self {
        Self { least, most }
    }

    /// Reads a number as typed.
    ///
    /// # Errors
    /// Why `text` is not a number of this range.
    pub fn read(self, text: &str) -> Result<u32, String> {
        let number = match text.parse::<i64>() {
            Ok(number) => u32::try_from(number).ok(),
            Err(_) => return Err(format!("Couldn't read argument value from string '{text}'")),
        };
        self.limit(number, text)
    }

    /// Returns `number` if it is in this range.
    ///
    /// # Errors
    /// Why it is not.
    pub fn check(self, number: u32) -> Result<u32, String> {
        self.limit(Some(number), &number.to_string())
    }

    /// Returns [`CountRange::read`] of this range, for a parser of command lines.
    pub fn reader(self) -> impl Fn(&str) -> Result<u32, String> + Clone + Send + Sync + 'static {
        move |text: &str| self.read(text)
    }

    fn limit(self, number: Option<u32>, text: &str) -> Result<u32, String> {
        let Self { least, most } = self;
        let number = number.filter(|number| *number <= COUNT_MAX);
        let number = number.ok_or_else(|| format!("Invalid value '{text}'"))?;
        if (least..=most).contains(&number) {
            return Ok(number);
        }
        Err(match most {
            u32::MAX => format!("value must be greater than or equal to {least}"),
            _ => format!("value must be inside range [{least}, {most}]"),
        })
    }
}

/// Reads whole seconds, or a time with its unit.
///
/// # Errors
/// Why `text` is no time.
pub fn seconds(text: &str) -> Result<Nanos, String> {
    match text.parse::<i64>() {
        Ok(seconds) => {
            let seconds = u32::try_from(seconds)
                .ok()
                .filter(|seconds| *seconds <= COUNT_MAX);
            let seconds = seconds.ok_or_else(|| format!("Invalid value '{text}'"))?;
            Ok(Nanos::from_secs(seconds.into()))
        }
        Err(_) => length(text),
    }
}

/// Reads a time with its unit; `.5s` is one.
///
/// # Errors
/// Why `text` is no time.
pub fn length(text: &str) -> Result<Nanos, String> {
    if text.starts_with('-') {
        return Err(format!("Invalid value '{text}': it is out of range"));
    }
    let whole = match text.strip_prefix('.') {
        Some(fraction) => format!("0.{fraction}"),
        None => text.to_owned(),
    };
    whole.parse().map_err(|error| format!("{error}"))
}

/// Reads a number of workers, or `auto`.
///
/// # Errors
/// Why `text` is neither.
pub fn concurrency(text: &str) -> Result<Concurrency, String> {
    if text == "auto" {
        return Ok(Concurrency::Auto);
    }
    match text.parse::<i64>() {
        Ok(..=0) => Err("Value for --concurrency should be greater then 0.".to_owned()),
        Ok(number) => u16::try_from(number)
            .map(Concurrency::Workers)
            .map_err(|_| "Value out of range: --concurrency".to_owned()),
        Err(_) => Err("Invalid value for --concurrency".to_owned()),
    }
}

/// Counters of plugins that fail on the head or the body of an answer.
pub(crate) const PLUGIN_FAILURES: [&str; 2] = [
    "benchmark.user_defined_plugin_handle_headers_failure",
    "benchmark.user_defined_plugin_handle_data_failure",
];

/// Counters of Envoy that are the same for every load.
pub(crate) const PROCESS_COUNTERS: [&str; 3] = [
    "cluster_manager.cluster_added",
    "runtime.load_success",
    "runtime.override_dir_not_exists",
];

/// Returns true for a counter that no worker has. Predicates look at workers, so one on such a
/// counter never holds, as in Nighthawk.
pub(crate) fn is_of_process(name: &str) -> bool {
    let of_tracer = name.strip_prefix("tracing.zipkin.");
    PROCESS_COUNTERS.contains(&name) || of_tracer.is_some_and(|name| SPAN_COUNTERS.contains(&name))
}

/// Kind of a predicate; its name begins messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PredicateKind {
    /// A predicate that ends a load with success.
    Termination,
    /// A predicate that ends a load with failure.
    Failure,
}

impl PredicateKind {
    /// Reads `COUNTER:THRESHOLD`.
    ///
    /// # Errors
    /// Why `text` is no predicate.
    pub fn read(self, text: &str) -> Result<NighthawkPredicate, String> {
        let (name, threshold) = text.rsplit_once(':').ok_or_else(|| self.malformed(text))?;
        let threshold = threshold.trim().parse().map_err(|_| {
            let kind = self.name();
            format!("{kind} predicate '{text}' has an out of range threshold.")
        })?;
        self.predicate(name, threshold, text)
    }

    /// Returns the predicate of the counter `name`.
    ///
    /// # Errors
    /// Why there is no such counter.
    pub fn named(self, name: &str, threshold: u64) -> Result<NighthawkPredicate, String> {
        self.predicate(name, threshold, &format!("{name}:{threshold}"))
    }

    fn predicate(
        self,
        name: &str,
        threshold: u64,
        text: &str,
    ) -> Result<NighthawkPredicate, String> {
        let name = name.trim();
        let has_no_counter = PLUGIN_FAILURES.contains(&name) || is_of_process(name);
        let counter = if has_no_counter { "answers" } else { name }.parse();
        let counter = counter.map_err(|error: stillwell_metric::CounterError| {
            format!("{malformed}: {error}", malformed = self.malformed(text))
        })?;
        Ok(NighthawkPredicate {
            name: name.to_owned(),
            plan: PredicatePlan { counter, threshold },
        })
    }

    fn malformed(self, text: &str) -> String {
        format!("{} predicate '{text}' is badly formatted.", self.name())
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Termination => "Termination",
            Self::Failure => "Failure",
        }
    }
}

/// Reads a predicate that ends a load with success.
///
/// # Errors
/// Why `text` is no predicate.
pub fn termination(text: &str) -> Result<NighthawkPredicate, String> {
    PredicateKind::Termination.read(text)
}

/// Reads a predicate that ends a load with failure.
///
/// # Errors
/// Why `text` is no predicate.
pub fn failure(text: &str) -> Result<NighthawkPredicate, String> {
    PredicateKind::Failure.read(text)
}

/// Reads `IPv4:port`, `[IPv6]:port` or `DNS:port`.
///
/// # Errors
/// Why `text` is none of these.
pub fn endpoint(text: &str) -> Result<String, String> {
    let wrong = || {
        format!(
            "--multi-target-endpoint must be in the format IPv4:port, [IPv6]:port, or DNS:port. \
             Got '{text}'"
        )
    };
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
    let is_bracketed = host.starts_with('[') && host.ends_with(']');
    if host.is_empty() || !is_port || (host.contains(':') && !is_bracketed) {
        return Err(wrong());
    }
    Ok(text.to_owned())
}

/// Returns the address of a service with brackets around an IPv6 address: `::1:8443` is
/// `[::1]:8443`, as Envoy reads it.
#[must_use]
pub fn bracketed(authority: &str) -> String {
    let is_address = |text: &str| text.parse::<Ipv6Addr>().is_ok();
    match authority.rsplit_once(':') {
        Some((host, port)) if is_address(host) && port.parse::<u16>().is_ok() => {
            format!("[{host}]:{port}")
        }
        _ if is_address(authority) => format!("[{authority}]"),
        _ => authority.to_owned(),
    }
}

/// Reads a header as `name: value`.
///
/// # Errors
/// Why `text` is no header.
pub fn header(text: &str) -> Result<Header, String> {
    text.parse()
        .map_err(|error| format!("--request-header '{text}': {error}"))
}

/// Reads the name of a format.
///
/// # Errors
/// Why `text` names none.
pub fn output_format(text: &str) -> Result<LoadFormat, String> {
    // Nighthawk's formats carry its name in the words of `load`.
    match format!("nighthawk-{text}").parse() {
        Ok(format) if text != "human" => Ok(format),
        _ => text.parse().map_err(|error| format!("{error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_refused_in_nighthawks_words() {
        assert_eq!(RPS.read("1000000"), Ok(1_000_000));
        for (text, expected) in [
            ("0", "value must be inside range [1, 1000000]"),
            ("1000001", "value must be inside range [1, 1000000]"),
            ("-1", "Invalid value '-1'"),
            ("4294937296", "Invalid value '4294937296'"),
            ("a", "Couldn't read argument value from string 'a'"),
        ] {
            assert_eq!(RPS.read(text), Err(expected.to_owned()));
        }
        assert_eq!(ACTIVE_REQUESTS.read("4294937295"), Ok(COUNT_MAX));
    }

    #[test]
    fn numbers_and_their_text_are_refused_equally() {
        for range in [RPS, ACTIVE_REQUESTS, BODY_SIZE, FLUSH_INTERVAL] {
            for number in [0, 1, 300, 301, 1_000_001, 4_194_305, COUNT_MAX, u32::MAX] {
                assert_eq!(range.check(number), range.read(&number.to_string()));
            }
        }
        let read = PredicateKind::Failure.named("benchmark.http_2xx", 5);
        assert_eq!(read, failure("benchmark.http_2xx:5"));
        let refused = PredicateKind::Termination.named("a", 5);
        assert_eq!(refused, termination("a:5"));
    }

    #[test]
    fn addresses_of_services_need_no_brackets() {
        for (given, expected) in [
            ("::1:8443", "[::1]:8443"),
            ("fe80::1", "[fe80::1]"),
            ("::1", "[::1]"),
            ("[::1]:8443", "[::1]:8443"),
            ("[::1]", "[::1]"),
            ("127.0.0.1:1", "127.0.0.1:1"),
            ("a", "a"),
        ] {
            assert_eq!(bracketed(given), expected);
        }
    }

    #[test]
    fn times_may_lack_their_unit_or_their_zero() {
        assert_eq!(seconds("3"), Ok(Nanos::from_secs(3)));
        assert_eq!(seconds("500ms"), Ok(Nanos::from_millis(500)));
        assert_eq!(length(".00001s"), Ok(Nanos::new(10_000)));
        assert!(seconds("-1").is_err() && length("-1s").is_err() && length("1").is_err());
    }

    #[test]
    fn predicates_name_every_kind_of_counter_that_a_result_prints() {
        for (name, is_known) in [
            ("benchmark.http_2xx", true),
            ("upstream_rq_pending_overflow", true),
            ("upstream_cx_http1_total", true),
            ("upstream_cx_destroy_local", true),
            ("default.total_match_count", true),
            ("graceful_stop_requested", true),
            ("ssl.handshake", true),
            ("ssl.curves.P-256", true),
            ("ssl.curves.secp256r1", false),
            ("ssl.ciphers.ECDHE-RSA-AES128-GCM-SHA256", true),
            ("ssl.ciphers.ECDHE", false),
            ("benchmark.grpc_status.invalid", true),
            ("benchmark.user_defined_plugin_handle_data_failure", true),
            ("runtime.load_success", true),
            ("runtime.load_succes", false),
            ("tracing.zipkin.spans_sent", true),
            ("tracing.zipkin.spans", false),
        ] {
            let read = PredicateKind::Failure.named(name, 5);
            assert_eq!(read.is_ok(), is_known, "{name}");
        }
    }

    #[test]
    fn predicates_and_endpoints_are_refused_in_nighthawks_words() {
        let read = termination("benchmark.http_2xx:24").unwrap();
        assert_eq!(
            (read.name.as_str(), read.plan.threshold),
            ("benchmark.http_2xx", 24)
        );
        for (text, expected) in [
            (
                "a:a",
                "Termination predicate 'a:a' has an out of range threshold.",
            ),
            ("a", "Termination predicate 'a' is badly formatted."),
        ] {
            assert_eq!(termination(text), Err(expected.to_owned()));
        }
        let error = failure("benchmark.http_2x:0").unwrap_err();
        assert!(
            error.contains("unknown counter `benchmark.http_2x`"),
            "{error}"
        );
        for text in ["127.0.0.1:80", "[::1]:80", "a:1"] {
            assert_eq!(endpoint(text).as_deref(), Ok(text));
        }
        for text in ["a", "a:0", "::1:80", ":80", "a:b"] {
            assert!(endpoint(text).unwrap_err().contains(text), "{text}");
        }
    }
}
