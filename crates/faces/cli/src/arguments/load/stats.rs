//! Whom a load tells its counts and times while it goes on.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use clap::Args;
use stillwell_http::{Scheme, Target};
use stillwell_plan::{ReceiverPlan, StatsProtocol, StatsSinkPlan};
use stillwell_units::Nanos;

use super::above_zero;

/// What stands before the names of statsd where nothing else is said.
const PREFIX: &str = "stillwell";

/// Kinds of receivers: scheme, what is spoken, over TLS or not, and the port and
/// the path where none is given.
const KINDS: [(&str, StatsProtocol, Scheme, u16, &str); 9] = {
    use StatsProtocol::{Dogstatsd, OtlpGrpc, OtlpHttp, RemoteWrite, Statsd, StatsdTcp};
    [
        ("statsd", Statsd, Scheme::Http, 8125, "/"),
        ("statsd+tcp", StatsdTcp, Scheme::Http, 8125, "/"),
        ("dogstatsd", Dogstatsd, Scheme::Http, 8125, "/"),
        ("otlp+http", OtlpHttp, Scheme::Http, 4318, "/v1/metrics"),
        ("otlp+https", OtlpHttp, Scheme::Https, 4318, "/v1/metrics"),
        ("otlp+grpc", OtlpGrpc, Scheme::Http, 4317, "/"),
        ("otlp+grpcs", OtlpGrpc, Scheme::Https, 4317, "/"),
        (
            "remote-write+http",
            RemoteWrite,
            Scheme::Http,
            9090,
            "/api/v1/write",
        ),
        (
            "remote-write+https",
            RemoteWrite,
            Scheme::Https,
            443,
            "/api/v1/write",
        ),
    ]
};

/// Who is told counts and times while it goes on.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Stats while it goes on")]
pub(crate) struct LoadStatsArguments {
    /// Tell counts and times to a receiver, such as statsd://HOST:PORT; repeatable
    #[arg(long, value_name = "URI")]
    pub(crate) stats_sink: Vec<StatsSink>,
    /// How often stats sinks are told; in the end they are in any case
    /// [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = above_zero)]
    pub(crate) stats_flush_interval: Option<Nanos>,
    /// Offer a page of them to be scraped, at /metrics; on loopback unless a host
    /// is given
    #[arg(long, value_name = "[HOST:]PORT")]
    pub(crate) stats_listen: Option<ListenAddress>,
    /// Keep that page for up to TIME after the end, until somebody has seen it
    #[arg(
        long,
        value_name = "TIME",
        default_value = "0s",
        requires = "stats_listen"
    )]
    pub(crate) stats_linger: Nanos,
    /// A label that all series carry; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) stats_label: Vec<StatsLabel>,
}

/// A receiver of counts and times.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct StatsSink(pub(crate) StatsSinkPlan);

impl FromStr for StatsSink {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let kinds = KINDS.map(|(scheme, ..)| format!("{scheme}://")).join(", ");
        let known = text.split_once("://").and_then(|(scheme, rest)| {
            let kind = KINDS
                .iter()
                .find(|(known, ..)| scheme.eq_ignore_ascii_case(known))?;
            Some((kind, rest))
        });
        let Some(((_, protocol, scheme, port, path), rest)) = known else {
            return Err(format!("write one of {kinds}"));
        };
        Ok(Self(StatsSinkPlan {
            name: text.to_owned(),
            protocol: *protocol,
            receiver: receiver(*scheme, rest, *port, path)?,
            prefix: PREFIX.to_owned(),
        }))
    }
}

/// A receiver at `rest`, which is `HOST[:PORT][/PATH]`.
pub(super) fn receiver(
    scheme: Scheme,
    rest: &str,
    port: u16,
    path: &str,
) -> Result<ReceiverPlan, String> {
    let (host, given) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    // A colon within brackets is part of an address.
    let has_port = host
        .rsplit_once(':')
        .is_some_and(|(_, port)| !port.contains(']'));
    let port = if has_port {
        String::new()
    } else {
        format!(":{port}")
    };
    let path = if matches!(given, "" | "/") {
        path
    } else {
        given
    };
    let url = format!("{}://{host}{port}{path}", scheme.as_str());
    let target = Target::from_url(&url).map_err(|error| error.to_string())?;
    Ok(ReceiverPlan {
        address: target.dial_address(),
        tls_host: (scheme == Scheme::Https).then(|| target.host().to_owned()),
        authority: target.authority(),
        path: target.path_and_query().to_owned(),
    })
}

/// Where a page is to be had.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ListenAddress(pub(crate) SocketAddr);

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let port = text.strip_prefix(':').unwrap_or(text);
        if let Ok(port) = port.parse() {
            return Ok(Self(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)));
        }
        let address = text.parse().map(Self);
        address.map_err(|_| "write a port, or an address such as 127.0.0.1:9464".to_owned())
    }
}

/// `KEY=VALUE`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct StatsLabel(pub(crate) String, pub(crate) String);

impl FromStr for StatsLabel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
        let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_name = key.starts_with(is_first) && key.chars().all(is_plain);
        // What Prometheus keeps for itself, and what we tell ourselves.
        if !is_name || key.starts_with("__") || matches!(key, "outcome" | "le") {
            return Err(format!("`{key}` cannot be the name of a label here"));
        }
        Ok(Self(key.to_owned(), value.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sink(text: &str) -> StatsSinkPlan {
        let StatsSink(plan) = text.parse().unwrap();
        plan
    }

    #[test]
    fn receivers_have_the_ports_and_paths_of_their_kind() {
        for (text, address, path) in [
            ("statsd://localhost", "localhost:8125", "/"),
            ("dogstatsd://[::1]", "[::1]:8125", "/"),
            ("otlp+http://a:1", "a:1", "/v1/metrics"),
            ("otlp+http://a/", "a:4318", "/v1/metrics"),
            ("otlp+http://a:1/b?c", "a:1", "/b?c"),
            ("otlp+grpc://a", "a:4317", "/"),
            ("remote-write+http://[::1]:2", "[::1]:2", "/api/v1/write"),
        ] {
            let receiver = sink(text).receiver;
            assert_eq!(
                (receiver.address.as_str(), receiver.path.as_str()),
                (address, path)
            );
            assert_eq!(receiver.tls_host, None);
        }
        let secured = sink("remote-write+https://metrics.example/api");
        assert_eq!(
            secured.receiver.tls_host.as_deref(),
            Some("metrics.example")
        );
        assert_eq!(secured.receiver.address, "metrics.example:443");
        for text in ["statsd", "graphite://a", "statsd://", "statsd://a:b"] {
            assert!(text.parse::<StatsSink>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_page_is_on_loopback_unless_somebody_says_otherwise() {
        for (text, address) in [
            ("9464", "127.0.0.1:9464"),
            (":9464", "127.0.0.1:9464"),
            ("0.0.0.0:1", "0.0.0.0:1"),
            ("[::1]:2", "[::1]:2"),
        ] {
            let ListenAddress(read) = text.parse().unwrap();
            assert_eq!(read, address.parse().unwrap());
        }
        assert!("localhost".parse::<ListenAddress>().is_err());
    }

    #[test]
    fn labels_have_names_that_everybody_takes() {
        assert_eq!(
            "a_1=b=c".parse(),
            Ok(StatsLabel("a_1".to_owned(), "b=c".to_owned()))
        );
        for text in ["a", "1a=b", "=b", "a.b=c", "__a=b", "outcome=ok", "le=1"] {
            assert!(text.parse::<StatsLabel>().is_err(), "{text}");
        }
    }
}
