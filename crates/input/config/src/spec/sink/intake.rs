//! Sinks that imitate services.

use stillwell_plan::{IntakeService, OpenmetricsPlan, SeriesRecord, SinkProtocol};
use stillwell_text::{MapReader, Node, Value, code};
use stillwell_units::{ByteSize, Nanos};

use super::{CONNECTIONS_MAX, DATADOG, Door, INTAKE, OPENMETRICS, ROUND_TRIP, read_address};
use crate::rules::Placed;

/// More families of one type take longer to write than a scrape may.
const FAMILIES_MAX: u32 = 100_000;

/// The sink of `kind` that `node` describes.
pub(super) fn read(door: &Door<'_>, kind: &str, node: &Node) -> Option<Placed<SinkProtocol>> {
    let is_short = matches!(node.value, Value::Scalar { .. });
    if kind == "tcp_rr" {
        return read_round_trip(door, node, is_short);
    }
    let element = match kind {
        "datadog" => &DATADOG,
        "openmetrics" => &OPENMETRICS,
        _ => &INTAKE,
    };
    if is_short {
        let value = SinkProtocol::Intake {
            service: service_of(door, kind, None)?,
            address: read_address(door, node)?,
            delay: Nanos::ZERO,
            connections_max: CONNECTIONS_MAX,
        };
        return Some(Placed {
            value,
            span: node.span,
        });
    }
    let map = door.reader.map(node, &element.keys())?;
    let place = map.required("address");
    let address = place.and_then(|node| read_address(door, node));
    let delay = match map.take("delay") {
        Some(node) => door.reader.parsed(node),
        None => Some(Nanos::ZERO),
    };
    let connections_max = match map.take("connections_max") {
        Some(node) => door.reader.whole(node, 1, 1_000_000),
        None => Some(CONNECTIONS_MAX),
    };
    let service = service_of(door, kind, Some(&map));
    Some(Placed {
        value: SinkProtocol::Intake {
            service: service?,
            address: address?,
            delay: delay?,
            connections_max: connections_max?,
        },
        span: place?.span,
    })
}

fn service_of(
    door: &Door<'_>,
    kind: &str,
    map: Option<&MapReader<'_, '_>>,
) -> Option<IntakeService> {
    Some(match kind {
        "splunk_hec" => IntakeService::SplunkHec,
        "datadog" => IntakeService::Datadog {
            record: match map.and_then(|map| map.take("record")) {
                Some(node) => read_record(door, node)?,
                None => SeriesRecord::None,
            },
        },
        "datadog_stateful_logs" => IntakeService::DatadogStatefulLogs,
        "otlp" => IntakeService::Otlp,
        "sqs" => IntakeService::Sqs,
        "elasticsearch" => IntakeService::Elasticsearch,
        "loki" => IntakeService::Loki,
        "s3" => IntakeService::S3,
        _ => IntakeService::Openmetrics(Box::new(read_page(door, map)?)),
    })
}

fn read_record(door: &Door<'_>, node: &Node) -> Option<SeriesRecord> {
    match &node.value {
        Value::List(_) => Some(SeriesRecord::Named(door.reader.texts(node))),
        _ => {
            let words = [("all", SeriesRecord::All), ("none", SeriesRecord::None)];
            door.reader.word(node, "record", &words)
        }
    }
}

fn read_page(door: &Door<'_>, map: Option<&MapReader<'_, '_>>) -> Option<OpenmetricsPlan> {
    let mut plan = OpenmetricsPlan {
        prefix: "stillwell".to_owned(),
        ..OpenmetricsPlan::default()
    };
    let Some(map) = map else {
        return Some(plan);
    };
    for (key, count) in [
        ("counters", &mut plan.counters),
        ("gauges", &mut plan.gauges),
        ("histograms", &mut plan.histograms),
        ("summaries", &mut plan.summaries),
    ] {
        if let Some(node) = map.take(key) {
            *count = door.reader.whole(node, 0, FAMILIES_MAX)?;
        }
    }
    Some(plan)
}

fn read_round_trip(door: &Door<'_>, node: &Node, is_short: bool) -> Option<Placed<SinkProtocol>> {
    let round_trip = |address, request_bytes, response_bytes| SinkProtocol::TcpRr {
        address,
        request_bytes,
        response_bytes,
    };
    if is_short {
        return Some(Placed {
            value: round_trip(read_address(door, node)?, 1, 1),
            span: node.span,
        });
    }
    let map = door.reader.map(node, &ROUND_TRIP.keys())?;
    let place = map.required("address");
    let address = place.and_then(|node| read_address(door, node));
    let length = |key| match map.take(key) {
        Some(node) => read_length(door, node),
        None => Some(1),
    };
    let (request_bytes, response_bytes) = (length("request"), length("response"));
    Some(Placed {
        value: round_trip(address?, request_bytes?, response_bytes?),
        span: place?.span,
    })
}

/// The length of a message: from one byte to a gibibyte.
pub(in crate::spec) fn read_length(door: &Door<'_>, node: &Node) -> Option<u32> {
    let size: ByteSize = door.reader.parsed(node)?;
    if (1..=1 << 30).contains(&size.bytes()) {
        return u32::try_from(size.bytes()).ok();
    }
    let message = format!("a message of {size} is not sent");
    let error = door.reader.error(code::OUT_OF_RANGE, node.span, message);
    door.reader
        .report(error.label("write a size from `1 B` to `1 GiB`"));
    None
}
