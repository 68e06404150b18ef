//! Receivers of counts, times and spans, as they are typed: a URL whose scheme names the
//! protocol.

use std::str::FromStr;

use stillwell_plan::load::{
    ReceiverPlan, SpanProtocol, SpanSinkPlan, StatsProtocol, StatsSinkPlan,
};
use stillwell_units::{Scheme, Target};

/// Prefix of the names of statsd.
const PREFIX: &str = "stillwell";

/// Kinds of receivers of counts and times: scheme, what is spoken, over TLS or not, and the port and
/// the path where none is given.
const STATS_KINDS: [(&str, StatsProtocol, Scheme, u16, &str); 9] = {
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

/// Kinds of receivers of spans: scheme, what is spoken, over TLS or not, and the port and
/// the path where none is given.
const SPAN_KINDS: [(&str, SpanProtocol, Scheme, u16, &str); 6] = {
    use SpanProtocol::{OtlpGrpc, OtlpHttp, Zipkin};
    [
        ("zipkin", Zipkin, Scheme::Http, 9411, "/api/v2/spans"),
        ("zipkin+https", Zipkin, Scheme::Https, 9411, "/api/v2/spans"),
        ("otlp+http", OtlpHttp, Scheme::Http, 4318, "/v1/traces"),
        ("otlp+https", OtlpHttp, Scheme::Https, 4318, "/v1/traces"),
        ("otlp+grpc", OtlpGrpc, Scheme::Http, 4317, "/"),
        ("otlp+grpcs", OtlpGrpc, Scheme::Https, 4317, "/"),
    ]
};

/// A receiver of counts and times.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StatsSink(pub StatsSinkPlan);

impl FromStr for StatsSink {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let kinds = STATS_KINDS
            .map(|(scheme, ..)| format!("{scheme}://"))
            .join(", ");
        let known = text.split_once("://").and_then(|(scheme, rest)| {
            let kind = STATS_KINDS
                .iter()
                .find(|(known, ..)| scheme.eq_ignore_ascii_case(known))?;
            Some((kind, rest))
        });
        let Some(((kind, protocol, scheme, port, path), rest)) = known else {
            return Err(format!("write one of {kinds}"));
        };
        Ok(Self(StatsSinkPlan {
            name: text.to_owned(),
            protocol: *protocol,
            receiver: receiver(kind, *scheme, rest, *port, path)?,
            prefix: PREFIX.to_owned(),
        }))
    }
}

/// A receiver of spans.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SpanSink(pub SpanSinkPlan);

impl FromStr for SpanSink {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let kinds = SPAN_KINDS
            .map(|(scheme, ..)| format!("{scheme}://"))
            .join(", ");
        let known = text.split_once("://").and_then(|(scheme, rest)| {
            let kind = SPAN_KINDS
                .iter()
                .find(|(known, ..)| scheme.eq_ignore_ascii_case(known))?;
            Some((kind, rest))
        });
        let Some(((kind, protocol, scheme, port, path), rest)) = known else {
            return Err(format!("write one of {kinds}"));
        };
        let receiver = receiver(kind, *scheme, rest, *port, path)?;
        if *protocol == SpanProtocol::Zipkin && receiver.path.contains("/api/v1/") {
            return Err(
                "version 1 of Zipkin's interface is not supported: write /api/v2/spans".to_owned(),
            );
        }
        Ok(Self(SpanSinkPlan {
            name: text.to_owned(),
            protocol: *protocol,
            receiver,
        }))
    }
}

/// A receiver of this kind at `rest`, which is `HOST[:PORT][/PATH][?QUERY]`. Without a path it has the one of its kind;
/// a kind with the path `/` has no paths.
fn receiver(
    kind: &str,
    scheme: Scheme,
    rest: &str,
    port: u16,
    path: &str,
) -> Result<ReceiverPlan, String> {
    let (host, given) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if path == "/" && !matches!(given, "" | "/") {
        return Err(format!(
            "`{kind}://` has no path: write {kind}://HOST[:PORT]"
        ));
    }
    // A colon within brackets is part of an address.
    let has_port = host
        .rsplit_once(':')
        .is_some_and(|(_, port)| !port.contains(']'));
    let port = if has_port {
        String::new()
    } else {
        format!(":{port}")
    };
    let (given, query) = given.split_at(given.find('?').unwrap_or(given.len()));
    let path = if matches!(given, "" | "/") {
        path
    } else {
        given
    };
    let url = format!("{}://{host}{port}{path}{query}", scheme.as_str());
    let target = Target::from_url(&url).map_err(|error| error.to_string())?;
    Ok(ReceiverPlan {
        address: target.dial_address(),
        tls_host: (scheme == Scheme::Https).then(|| target.host().to_owned()),
        authority: target.authority(),
        path: target.path_and_query().to_owned(),
    })
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

    /// A path that has no meaning was dropped, and a query replaced the path of the protocol.
    #[test]
    fn a_path_is_accepted_only_where_the_protocol_has_one() {
        for kind in [
            "statsd",
            "statsd+tcp",
            "dogstatsd",
            "otlp+grpc",
            "otlp+grpcs",
        ] {
            for path in ["/a", "?a", "/?a", "//"] {
                let text = format!("{kind}://h:1{path}");
                let error = text.parse::<StatsSink>().unwrap_err();
                let refused = format!("`{kind}://` has no path: write {kind}://HOST[:PORT]");
                assert_eq!(error, refused, "{text}");
            }
            assert_eq!(sink(&format!("{kind}://h:1/")).receiver.path, "/");
        }
        assert!("otlp+grpc://h/v1/traces".parse::<SpanSink>().is_err());
        for (path, expected) in [
            ("?a=b", "/v1/metrics?a=b"),
            ("/?a=b", "/v1/metrics?a=b"),
            ("/x?a=/b", "/x?a=/b"),
        ] {
            let plan = sink(&format!("otlp+http://h{path}"));
            assert_eq!(plan.receiver.path, expected, "{path}");
        }
    }

    #[test]
    fn spans_go_where_zipkin_and_opentelemetry_take_them() {
        for (text, address, path) in [
            (
                "zipkin://localhost:9411/api/v2/spans",
                "localhost:9411",
                "/api/v2/spans",
            ),
            ("zipkin://a", "a:9411", "/api/v2/spans"),
            ("otlp+http://[::1]", "[::1]:4318", "/v1/traces"),
            ("otlp+grpc://a:1", "a:1", "/"),
        ] {
            let SpanSink(plan) = text.parse().unwrap();
            assert_eq!(plan.receiver.address, address);
            assert_eq!(plan.receiver.path, path);
        }
        let error = "zipkin://a:9411/api/v1/spans"
            .parse::<SpanSink>()
            .unwrap_err();
        assert!(error.contains("/api/v2/spans"), "{error}");
        assert!(
            "jaeger://a"
                .parse::<SpanSink>()
                .unwrap_err()
                .contains("zipkin://")
        );
    }
}
