//! Input of sinks that simulate services: bodies of requests and messages of calls, and
//! their framing.

#[path = "../../crates/receive/sink/src/intake/datadog.rs"]
mod datadog;
#[path = "../../crates/receive/sink/src/intake/decode.rs"]
mod decode;
#[path = "../../crates/receive/sink/src/intake/hec.rs"]
mod hec;
#[path = "../../crates/receive/sink/src/intake/json.rs"]
mod json;
#[path = "../../crates/receive/sink/src/intake/logs.rs"]
mod logs;
#[path = "../../crates/receive/sink/src/intake/otlp.rs"]
mod otlp;
#[path = "../../crates/receive/sink/src/intake/recorded.rs"]
mod recorded;
#[path = "../../crates/receive/sink/src/intake/service.rs"]
mod service;
#[path = "../../crates/receive/sink/src/intake/sqs.rs"]
mod sqs;
#[path = "../../crates/receive/sink/src/intake/stateful_logs.rs"]
mod stateful_logs;

use std::sync::Arc;

use serde_json::{Map, Value};
use stillwell_metric::Shard;
use stillwell_plan::sink::SeriesRecord;

use decode::{Coding, decode, unpack_snappy};
use recorded::Recorded;
use service::{Answer, Request, Service};

/// As a sink has it, but small enough for a fuzzer.
mod request {
    pub(super) const DECODED_BYTES_MAX: usize = 4 << 20;
}

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/x-protobuf";

/// The answer of `service` to a POST of `body`. No body has more events than bytes.
fn post(service: &dyn Service, path: &str, content_type: &str, body: &[u8]) -> Answer {
    let answer = service.answer(&Request {
        method: "POST",
        path,
        content_type,
        operation: "",
        body,
    });
    assert!((100..600).contains(&answer.status));
    assert!(answer.events <= body.len() as u64);
    answer
}

fn assert_json(body: &[u8]) -> Value {
    serde_json::from_slice(body).expect("the response is JSON")
}

/// Events, lines and questions: every answer is JSON, and objects that JSON has one
/// after the other are as many events.
pub fn intake_hec(bytes: &[u8]) {
    let hec = hec::Hec::default();
    for path in ["event", "raw", "ack"] {
        let path = format!("/services/collector/{path}");
        assert_json(&post(&hec, &path, JSON, bytes).body);
    }
    let objects = serde_json::Deserializer::from_slice(bytes).into_iter::<Map<String, Value>>();
    if let Ok(objects) = objects.collect::<Result<Vec<_>, _>>() {
        let answer = post(&hec, "/services/collector/event", JSON, bytes);
        assert_eq!(answer.events, objects.len() as u64);
    }
}

/// Series in all their forms: the number recorded is at most the number of points, and
/// none without a request.
pub fn intake_datadog(bytes: &[u8]) {
    for (path, content_type) in [
        ("/api/v2/series", PROTOBUF),
        ("/api/v2/series", JSON),
        ("/api/v1/series", JSON),
        ("/api/beta/sketches", PROTOBUF),
        ("/api/v2/logs", JSON),
    ] {
        let recorded = Recorded::new("sink", &SeriesRecord::All).map(Arc::new);
        let datadog = datadog::Datadog::new(recorded.clone());
        let answer = post(&datadog, path, content_type, bytes);
        let mut samples = Vec::new();
        recorded.expect("all are recorded").sample(&mut samples);
        if answer.is_malformed {
            continue;
        }
        assert!(samples.len() as u64 <= answer.events);
        let counted = post(&datadog::Datadog::new(None), path, content_type, bytes);
        assert_eq!(counted.events, answer.events);
    }
}

/// Exports of each signal, in protobuf and JSON, over HTTP and gRPC.
pub fn intake_otlp(bytes: &[u8]) {
    for (signal, service) in [
        ("logs", "logs.v1.LogsService"),
        ("metrics", "metrics.v1.MetricsService"),
        ("traces", "trace.v1.TraceService"),
    ] {
        let path = format!("/v1/{signal}");
        let answer = post(&otlp::Otlp, &path, PROTOBUF, bytes);
        post(&otlp::Otlp, &path, JSON, bytes);
        let method = format!("/opentelemetry.proto.collector.{service}/Export");
        match otlp::Otlp.message(&method, bytes) {
            Ok(reply) => assert_eq!(reply.events, answer.events),
            Err(_) => assert!(answer.is_malformed),
        }
    }
}

/// Pushes in JSON and protobuf, packed and not.
pub fn intake_loki(bytes: &[u8]) {
    const PUSH: &str = "/loki/api/v1/push";
    for content_type in [JSON, PROTOBUF] {
        post(&logs::Loki, PUSH, content_type, bytes);
        let request = Request {
            method: "POST",
            path: PUSH,
            content_type,
            operation: "",
            body: bytes,
        };
        assert_eq!(logs::Loki.is_snappy(&request), content_type == PROTOBUF);
    }
    if let Some(unpacked) = unpack_snappy(bytes, request::DECODED_BYTES_MAX) {
        post(&logs::Loki, PUSH, PROTOBUF, &unpacked);
    }
}

/// Bulk requests have an item for each action, and objects their lines.
pub fn intake_logs(bytes: &[u8]) {
    let answer = post(
        &logs::Elasticsearch,
        "/_bulk",
        "application/x-ndjson",
        bytes,
    );
    let items = assert_json(&answer.body);
    let items = items["items"].as_array().expect("items are a list");
    assert!(answer.events <= items.len() as u64);
    let put = logs::S3.answer(&Request {
        method: "PUT",
        path: "/bucket/key",
        content_type: "",
        operation: "",
        body: bytes,
    });
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').count();
    assert_eq!(put.events, lines as u64);
}

/// Questions in both forms; the first line is the operation.
pub fn intake_sqs(bytes: &[u8]) {
    let sqs = sqs::Sqs::default();
    let answer = post(&sqs, "/", "application/x-www-form-urlencoded", bytes);
    assert!(answer.served <= 10);
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let (operation, body) = bytes.split_at(end.unwrap_or(0));
    let Ok(operation) = str::from_utf8(operation) else {
        return;
    };
    for operation in [operation, "AmazonSQS.ReceiveMessage"] {
        let answer = sqs.answer(&Request {
            method: "POST",
            path: "/",
            content_type: "application/x-amz-json-1.0",
            operation,
            body,
        });
        assert!(answer.served <= 10);
        if operation.starts_with("AmazonSQS.") {
            assert_json(&answer.body);
        }
    }
}

/// A batch has a reply with its number, or is refused.
pub fn intake_stateful_logs(bytes: &[u8]) {
    let method = "/datadog.intake.stateful.StatefulLogsService/LogsStream";
    if let Ok(reply) = stateful_logs::StatefulLogs.message(method, bytes) {
        assert!(reply.message.len() >= 4);
    }
}

/// Decoded data are not longer than permitted; the first byte says the encoding.
pub fn content_codings(bytes: &[u8]) {
    const BYTES_MAX: usize = 1 << 20;
    let Some((first, body)) = bytes.split_first() else {
        return;
    };
    if let Ok(header) = str::from_utf8(body) {
        drop(Coding::all(header));
    }
    let header = ["gzip", "deflate", "zstd", "gzip, zstd"][usize::from(first % 4)];
    let codings = Coding::all(header).expect("these are known");
    for decoded in [
        decode(body, &codings, BYTES_MAX),
        unpack_snappy(body, BYTES_MAX),
    ] {
        assert!(decoded.is_none_or(|decoded| decoded.len() <= BYTES_MAX));
    }
}
