//! OpenTelemetry's protocol over gRPC and HTTP: events are log records, data
//! points and spans.

use serde_json::Value;
use stillwell_http::protobuf::{count, fields, within};

use super::service::{Answer, INVALID_ARGUMENT, Reply, Request, Service, UNIMPLEMENTED};

/// Takes everything.
#[derive(Debug)]
pub(super) struct Otlp;

/// Exported data.
#[derive(Clone, Copy, Debug)]
enum Signal {
    Logs,
    Metrics,
    Traces,
}

impl Service for Otlp {
    fn answer(&self, request: &Request<'_>) -> Answer {
        let signal = match request.path {
            "/v1/logs" => Signal::Logs,
            "/v1/metrics" => Signal::Metrics,
            "/v1/traces" => Signal::Traces,
            _ => return Answer::status(404),
        };
        if request.method != "POST" {
            return Answer::status(405);
        }
        if request.content_type == "application/json" {
            return match signal.count_json(request.body) {
                Some(events) => Answer::json(200, &b"{}"[..]).taking(events),
                None => Answer::json(400, &b"{}"[..]).malformed(),
            };
        }
        match signal.count(request.body) {
            // The answer has no fields, which is no bytes.
            Some(events) => {
                Answer::with_body(200, "application/x-protobuf", &b""[..]).taking(events)
            }
            None => Answer::status(400).malformed(),
        }
    }

    fn message(&self, method: &str, message: &[u8]) -> Result<Reply, u32> {
        let signal = match method {
            "/opentelemetry.proto.collector.logs.v1.LogsService/Export" => Signal::Logs,
            "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export" => Signal::Metrics,
            "/opentelemetry.proto.collector.trace.v1.TraceService/Export" => Signal::Traces,
            _ => return Err(UNIMPLEMENTED),
        };
        let events = signal.count(message).ok_or(INVALID_ARGUMENT)?;
        Ok(Reply {
            events,
            ..Reply::default()
        })
    }
}

impl Signal {
    /// Resources, scopes and records are in the same fields in all signals.
    fn count(self, request: &[u8]) -> Option<u64> {
        match self {
            Self::Logs | Self::Traces => count(request, &[1, 2, 2]),
            Self::Metrics => {
                let mut points = 0;
                within(request, &[1, 2, 2], &mut |metric| {
                    points += points_of(metric)?;
                    Some(())
                })?;
                Some(points)
            }
        }
    }

    fn count_json(self, request: &[u8]) -> Option<u64> {
        let request: Value = serde_json::from_slice(request).ok()?;
        let [resources, scopes, records] = match self {
            Self::Logs => ["resourceLogs", "scopeLogs", "logRecords"],
            Self::Metrics => ["resourceMetrics", "scopeMetrics", "metrics"],
            Self::Traces => ["resourceSpans", "scopeSpans", "spans"],
        };
        let mut events = 0;
        for scope in items(&request, resources).flat_map(|resource| items(resource, scopes)) {
            for record in items(scope, records) {
                events += match self {
                    Self::Logs | Self::Traces => 1,
                    Self::Metrics => json_points_of(record),
                };
            }
        }
        request.is_object().then_some(events)
    }
}

/// The data points of a metric of any type.
fn points_of(metric: &[u8]) -> Option<u64> {
    let mut points = 0;
    fields(metric, |number, value| {
        // Gauge, sum, histogram, exponential histogram, summary.
        if matches!(number, 5 | 7 | 9 | 10 | 11) {
            points += count(value.bytes()?, &[1])?;
        }
        Some(())
    })?;
    Some(points)
}

fn json_points_of(metric: &Value) -> u64 {
    let types = [
        "gauge",
        "sum",
        "histogram",
        "exponentialHistogram",
        "summary",
    ];
    let points = types.map(|name| items(&metric[name], "dataPoints").count() as u64);
    points.iter().sum()
}

fn items<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    value[key].as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::message;
    use super::*;

    /// Two resources, the first with two scopes: three scopes with `records` each.
    fn export(records: &[(u32, &[u8])]) -> Vec<u8> {
        let scope = message(records);
        let (first, two) = (
            message(&[(2, &scope)]),
            message(&[(2, &scope), (2, &scope)]),
        );
        message(&[(1, &two), (1, &first)])
    }

    #[test]
    fn records_points_and_spans_are_counted() {
        let logs = export(&[(2, b"\x12\x00"), (2, b"")]);
        assert_eq!(Signal::Logs.count(&logs), Some(6));
        assert_eq!(Signal::Traces.count(&logs), Some(6));
        let points = message(&[(1, b""), (1, b"")]);
        let metric = message(&[(1, b"name"), (7, &points)]);
        let summary = message(&[(11, &points)]);
        let metrics = export(&[(2, &metric), (2, &summary)]);
        assert_eq!(Signal::Metrics.count(&metrics), Some(12));
        assert_eq!(Signal::Logs.count(b"\xff"), None);
        assert_eq!(Signal::Logs.count(b""), Some(0));
    }

    #[test]
    fn json_is_counted_as_well() {
        let logs =
            br#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{},{}]},{"logRecords":[{}]}]}]}"#;
        assert_eq!(Signal::Logs.count_json(logs), Some(3));
        let metrics = br#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[
            {"name":"a","sum":{"dataPoints":[{},{}]}},{"gauge":{"dataPoints":[{}]}}]}]}]}"#;
        assert_eq!(Signal::Metrics.count_json(metrics), Some(3));
        assert_eq!(Signal::Logs.count_json(b"[]"), None);
    }

    #[test]
    fn calls_are_answered_by_their_method() {
        let method = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";
        let logs = export(&[(2, b"")]);
        assert_eq!(Otlp.message(method, &logs).unwrap().events, 3);
        assert_eq!(Otlp.message(method, b"\xff"), Err(INVALID_ARGUMENT));
        assert_eq!(Otlp.message("/other/Export", b""), Err(UNIMPLEMENTED));
    }
}
