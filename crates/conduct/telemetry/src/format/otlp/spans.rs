//! Spans.

use stillwell_http::protobuf::MessageWriter;
use stillwell_load::Span;
use stillwell_metric::Outcome;

use super::{number, resource, scope, text};
use crate::format::page::Origin;
use crate::format::spans::SpanBatch;

/// The side that sends the request.
const CLIENT: u64 = 3;

/// Ended badly.
const ERROR: u64 = 2;

/// The trace is sampled.
const SAMPLED: u32 = 1;

/// `batch` as a request to export spans, with the attributes that OpenTelemetry
/// names for clients of HTTP.
pub(crate) fn otlp_spans(origin: &Origin, batch: &SpanBatch<'_>) -> Vec<u8> {
    let mut request = MessageWriter::default();
    request.message(1, |of_resource| {
        resource(of_resource, origin);
        of_resource.message(2, |of_scope| {
            scope(of_scope, origin);
            for span in batch.spans {
                of_scope.message(2, |message| write_span(message, batch, span));
            }
        });
    });
    request.into_bytes()
}

fn write_span(message: &mut MessageWriter, batch: &SpanBatch<'_>, span: &Span) {
    let request = batch.request(span);
    message.bytes(1, &span.context.trace);
    message.bytes(2, &span.context.span);
    message.text(
        5,
        request.map_or("request", |request_name| request_name.method.as_str()),
    );
    message.number(6, CLIENT);
    message.fixed_64(7, batch.since_1970(span.sent).as_u64());
    message.fixed_64(8, batch.since_1970(span.end).as_u64());
    if let Some(request) = request {
        text(message, 9, "http.request.method", &request.method);
        text(message, 9, "url.full", &request.url);
        text(message, 9, "server.address", &request.host);
        number(message, 9, "server.port", request.port.into());
    }
    if span.status > 0 {
        number(message, 9, "http.response.status_code", span.status.into());
    }
    number(message, 9, "stillwell.worker", span.worker.into());
    let lateness = span.sent.since(span.intended);
    number(message, 9, "stillwell.lateness_ns", lateness.as_u64());
    if span.outcome != Outcome::Ok {
        text(message, 9, "error.type", span.outcome.name());
    }
    if let Some(first) = span.first_byte {
        message.message(11, |event| {
            event.fixed_64(1, batch.since_1970(first).as_u64());
            event.text(2, "first byte");
        });
    }
    if span.is_error() {
        message.message(15, |status| {
            status.text(2, span.outcome.name());
            status.number(3, ERROR);
        });
    }
    message.fixed_32(16, SAMPLED);
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
    use opentelemetry_proto::tonic::common::v1::any_value::Value;
    use prost::Message as _;
    use stillwell_units::Nanos;

    use super::*;
    use crate::format::fixture;

    #[test]
    fn the_published_messages_read_what_was_written() {
        let (requests, spans) = (fixture::requests(), fixture::spans());
        let batch = SpanBatch {
            epoch: Nanos::from_secs(1_700_000_000),
            requests: &requests,
            spans: &spans,
        };
        let bytes = otlp_spans(&fixture::origin(), &batch);
        let request = ExportTraceServiceRequest::decode(bytes.as_slice()).unwrap();
        let read = &request.resource_spans[0].scope_spans[0].spans;
        assert_eq!(read.len(), 2);
        let attribute = |index: usize, key: &str| {
            let attribute = read[index]
                .attributes
                .iter()
                .find(|request_name| request_name.key == key)?;
            attribute.value.clone()?.value
        };
        assert_eq!(
            (read[0].trace_id.as_slice(), read[0].kind),
            ([1; 16].as_slice(), 3)
        );
        assert_eq!(read[0].start_time_unix_nano, 1_700_000_000_000_001_000);
        assert_eq!(
            read[0].end_time_unix_nano - read[0].start_time_unix_nano,
            2_999_000
        );
        assert_eq!((read[0].name.as_str(), read[0].flags), ("GET", 1));
        let url = Value::StringValue("http://127.0.0.1:8080/b".to_owned());
        assert_eq!(attribute(0, "url.full"), Some(url));
        assert_eq!(
            attribute(0, "http.response.status_code"),
            Some(Value::IntValue(200))
        );
        assert_eq!(read[0].events[0].time_unix_nano, 1_700_000_000_002_000_000);
        assert!(read[0].status.is_none() && attribute(0, "error.type").is_none());
        assert_eq!(read[1].status.as_ref().map(|status| status.code), Some(2));
        let lost = Value::StringValue("timed_out".to_owned());
        assert_eq!(attribute(1, "error.type"), Some(lost));
        assert!(attribute(1, "http.response.status_code").is_none());
        assert!(read[1].events.is_empty());
    }
}
