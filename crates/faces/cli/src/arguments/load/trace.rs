//! How a load traces its requests.

use std::str::FromStr;

use clap::{Args, ValueEnum};
use stillwell_http::Scheme;
use stillwell_plan::{SpanProtocol, SpanSinkPlan, TraceHeaders};

use super::stats::receiver;

/// Kinds of receivers: scheme, what is spoken, over TLS or not, and the port and
/// the path where none is given.
const KINDS: [(&str, SpanProtocol, Scheme, u16, &str); 6] = {
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

/// How requests are traced.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Tracing")]
pub(crate) struct LoadTraceArguments {
    /// Trace requests and send their spans to a receiver, such as
    /// zipkin://HOST:PORT/api/v2/spans or otlp+http://HOST:PORT
    #[arg(long, value_name = "URI")]
    pub(crate) trace: Option<SpanSink>,
    /// The share of requests that is sampled, such as 0.01 or 1%; the others say
    /// that they are not [default: 1]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) trace_sample: Option<f64>,
    /// How requests say which trace they belong to, with or without a receiver
    /// [default: b3multi with zipkin, else w3c]
    #[arg(long, value_enum)]
    pub(crate) trace_headers: Option<TraceHeadersName>,
}

/// A receiver of spans.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct SpanSink(pub(crate) SpanSinkPlan);

impl FromStr for SpanSink {
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
        let receiver = receiver(*scheme, rest, *port, path)?;
        if *protocol == SpanProtocol::Zipkin && receiver.path.contains("/api/v1/") {
            return Err(
                "version 1 of Zipkin's interface is not spoken: write /api/v2/spans".to_owned(),
            );
        }
        Ok(Self(SpanSinkPlan {
            name: text.to_owned(),
            protocol: *protocol,
            receiver,
        }))
    }
}

/// How requests say which trace they belong to.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum TraceHeadersName {
    /// `traceparent` of W3C Trace Context.
    W3c,
    /// B3 in one header.
    B3,
    /// B3 in several headers.
    #[value(alias = "b3-multi")]
    B3multi,
}

impl From<TraceHeadersName> for TraceHeaders {
    fn from(name: TraceHeadersName) -> Self {
        match name {
            TraceHeadersName::W3c => Self::W3c,
            TraceHeadersName::B3 => Self::B3,
            TraceHeadersName::B3multi => Self::B3Multi,
        }
    }
}

/// A share of one, or percent.
fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(percent) => (percent.trim(), 100.0),
        None => (text, 1.0),
    };
    let share = number.parse::<f64>().map(|number| number / scale);
    match share {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("write a share from 0 to 1, or from 0% to 100%".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn shares_are_of_one_or_percent() {
        for (text, value) in [("0", 0.0), ("1", 1.0), ("0.25", 0.25), ("1 %", 0.01)] {
            assert!((share(text).unwrap() - value).abs() < 1e-12, "{text}");
        }
        for text in ["", "2", "-0.1", "101%", "NaN", "half"] {
            assert!(share(text).is_err(), "{text}");
        }
    }
}
