//! OpenTelemetry's protocol: what both kinds of message share.

mod metrics;
mod spans;

pub(crate) use metrics::otlp_metrics;
pub(crate) use spans::otlp_spans;

use stillwell_http::protobuf::{MessageWriter, Value, fields};

use crate::format::names::{PREFIX, SERVICE};
use crate::format::page::Origin;

/// The resource in field 1 of `message`: the service, its version, this load's
/// name, and the labels of the load.
fn resource(message: &mut MessageWriter, origin: &Origin) {
    message.message(1, |resource| {
        text(resource, 1, "service.name", SERVICE);
        text(resource, 1, "service.version", origin.version);
        text(resource, 1, "service.instance.id", &origin.run.to_string());
        for (key, value) in &origin.labels {
            text(resource, 1, key, value);
        }
    });
}

/// The scope in field 1 of `message`: this program.
fn scope(message: &mut MessageWriter, origin: &Origin) {
    message.message(1, |scope| {
        scope.text(1, PREFIX);
        scope.text(2, origin.version);
    });
}

/// An attribute with a text.
fn text(message: &mut MessageWriter, field: u32, key: &str, value: &str) {
    message.message(field, |attribute| {
        attribute.text(1, key);
        attribute.message(2, |any| any.text(1, value));
    });
}

/// An attribute with a number.
fn number(message: &mut MessageWriter, field: u32, key: &str, value: u64) {
    message.message(field, |attribute| {
        attribute.text(1, key);
        attribute.message(2, |any| any.number(3, value));
    });
}

/// Returns the rejected part of an export and the reason, by the body of the receiver's response;
/// `None` if it accepted everything.
pub(crate) fn otlp_rejected(answer: &[u8]) -> Option<(u64, String)> {
    let mut partial = None;
    // An answer that makes no sense further on has said what it has.
    let _end = fields(answer, |number, value| {
        if number == 1 {
            partial = partial.or_else(|| value.bytes());
        }
        Some(())
    });
    let (mut rejected, mut why) = (0, String::new());
    let _end = fields(partial?, |number, value| {
        match (number, value) {
            (1, Value::Varint(count)) => rejected = count,
            (2, Value::Bytes(text)) => why = String::from_utf8_lossy(text).into_owned(),
            _ => {}
        }
        Some(())
    });
    (rejected > 0).then_some((rejected, why))
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::metrics::v1::{
        ExportMetricsPartialSuccess, ExportMetricsServiceResponse,
    };
    use prost::Message as _;

    use super::*;

    #[test]
    fn what_a_receiver_refuses_is_read() {
        let answer = |rejected| ExportMetricsServiceResponse {
            partial_success: Some(ExportMetricsPartialSuccess {
                rejected_data_points: rejected,
                error_message: "too old".to_owned(),
            }),
        };
        let rejected = otlp_rejected(&answer(3).encode_to_vec());
        assert_eq!(rejected, Some((3, "too old".to_owned())));
        assert_eq!(otlp_rejected(&answer(0).encode_to_vec()), None);
        assert_eq!(otlp_rejected(&[]), None);
    }
}
