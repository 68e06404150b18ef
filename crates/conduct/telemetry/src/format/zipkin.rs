//! Zipkin's JSON, version 2.

use std::net::IpAddr;

use serde::Serialize;
use stillwell_load::Span;
use stillwell_metric::Outcome;

use crate::format::names::SERVICE;
use crate::format::page::Origin;
use crate::format::spans::SpanBatch;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ZipkinSpan<'a> {
    trace_id: String,
    id: String,
    kind: &'static str,
    name: String,
    /// Microseconds since 1970.
    timestamp: u64,
    /// Microseconds, at least one.
    duration: u64,
    local_endpoint: Endpoint<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remote_endpoint: Option<Endpoint<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    annotations: Vec<Annotation>,
    tags: Tags<'a>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Endpoint<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    service_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ipv4: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ipv6: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
}

#[derive(Serialize)]
struct Annotation {
    timestamp: u64,
    value: &'static str,
}

#[derive(Serialize)]
struct Tags<'a> {
    #[serde(rename = "http.method", skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(rename = "http.url", skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    #[serde(rename = "http.status_code", skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
    #[serde(rename = "stillwell.run")]
    run: String,
    #[serde(rename = "stillwell.worker")]
    worker: String,
    /// Nanoseconds from the intended to the sent time.
    #[serde(rename = "stillwell.lateness_ns")]
    lateness: String,
}

/// `batch` as the body of a request to `/api/v2/spans`, with
/// `content-type: application/json`.
pub(crate) fn zipkin_spans(origin: &Origin, batch: &SpanBatch<'_>) -> Vec<u8> {
    let spans = batch
        .spans
        .iter()
        .map(|span| zipkin_span(origin, batch, span));
    serde_json::to_vec(&spans.collect::<Vec<_>>())
        .unwrap_or_else(|_| unreachable!("texts and numbers are always JSON"))
}

fn zipkin_span<'a>(origin: &Origin, batch: &SpanBatch<'a>, span: &Span) -> ZipkinSpan<'a> {
    let request = batch.request(span);
    let microseconds = |moment| batch.since_1970(moment).as_u64() / 1000;
    ZipkinSpan {
        trace_id: format!("{:032x}", u128::from_be_bytes(span.context.trace)),
        id: format!("{:016x}", u64::from_be_bytes(span.context.span)),
        kind: "CLIENT",
        name: request.map_or_else(
            || "request".to_owned(),
            |request| request.method.to_ascii_lowercase(),
        ),
        timestamp: microseconds(span.sent),
        duration: (span.end.since(span.sent).as_u64() / 1000).max(1),
        local_endpoint: Endpoint {
            service_name: Some(SERVICE),
            ..Endpoint::default()
        },
        remote_endpoint: request.map(|request| {
            let ip: Option<IpAddr> = request.host.parse().ok();
            Endpoint {
                service_name: None,
                ipv4: ip.filter(IpAddr::is_ipv4).map(|_| request.host.as_str()),
                ipv6: ip.filter(IpAddr::is_ipv6).map(|_| request.host.as_str()),
                port: Some(request.port),
            }
        }),
        annotations: span
            .first_byte
            .map(|first| Annotation {
                timestamp: microseconds(first),
                value: "first byte",
            })
            .into_iter()
            .collect(),
        tags: Tags {
            method: request.map(|request| request.method.as_str()),
            url: request.map(|request| request.url.as_str()),
            status: (span.status > 0).then(|| span.status.to_string()),
            error: (span.is_error() || span.outcome != Outcome::Ok).then(|| span.outcome.name()),
            run: origin.run.to_string(),
            worker: span.worker.to_string(),
            lateness: span.sent.since(span.intended).as_u64().to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use stillwell_units::Nanos;

    use super::*;
    use crate::format::fixture;

    #[test]
    fn spans_have_the_fields_of_version_two() {
        let (requests, spans) = (fixture::requests(), fixture::spans());
        let batch = SpanBatch {
            epoch: Nanos::from_secs(1_700_000_000),
            requests: &requests,
            spans: &spans,
        };
        let body = zipkin_spans(&fixture::origin(), &batch);
        let read: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(read.as_array().unwrap().len(), 2);
        assert_eq!(read[0]["traceId"], "01".repeat(16));
        assert_eq!(read[0]["id"], "01".repeat(8));
        assert_eq!(read[0]["kind"], "CLIENT");
        assert_eq!(read[0]["timestamp"], 1_700_000_000_000_001_u64);
        assert_eq!(read[0]["duration"], 2_999);
        assert_eq!(read[0]["localEndpoint"]["serviceName"], "stillwell");
        assert_eq!(read[0]["remoteEndpoint"]["ipv4"], "127.0.0.1");
        assert_eq!(read[0]["remoteEndpoint"]["port"], 8080);
        assert_eq!(read[0]["tags"]["http.status_code"], "200");
        assert_eq!(read[0]["annotations"][0]["value"], "first byte");
        assert_eq!(read[0]["tags"]["stillwell.lateness_ns"], "100");
        assert!(read[0]["tags"].get("error").is_none());
        assert_eq!(read[1]["tags"]["error"], "timed_out");
        assert!(read[1].get("annotations").is_none());
        let tags = read[1]["tags"].as_object().unwrap();
        assert!(tags.values().all(Value::is_string), "tags are texts");
    }
}
