//! Sinks that imitate services.

use stillwell_plan::SinkProtocol;
use stillwell_plan::generator::MessageLength;
use stillwell_plan::sink::{IntakeService, OpenmetricsPlan, SeriesRecord};
use stillwell_text::{MapReader, Node, Value, code};
use stillwell_units::{ByteSize, Nanos};

use super::{CONNECTIONS_MAX, DATADOG, INTAKE, OPENMETRICS, ROUND_TRIP, ReadContext, read_address};
use crate::rules::Placed;

/// More families of one type take longer to write than a scrape may.
const FAMILIES_MAX: u32 = 100_000;

/// The sink of `kind` that `node` describes.
pub(super) fn read(
    context: &ReadContext<'_>,
    kind: &str,
    node: &Node,
) -> Option<Placed<SinkProtocol>> {
    let is_short = matches!(node.value, Value::Scalar { .. });
    if kind == "tcp_rr" {
        return read_round_trip(context, node, is_short);
    }
    let element = match kind {
        "datadog" => &DATADOG,
        "openmetrics" => &OPENMETRICS,
        _ => &INTAKE,
    };
    if is_short {
        let value = SinkProtocol::Intake {
            service: service_of(context, kind, None)?,
            address: read_address(context, node)?,
            delay: Nanos::ZERO,
            connections_max: CONNECTIONS_MAX,
        };
        return Some(Placed {
            value,
            span: node.span,
        });
    }
    let map = context.reader.map(node, &element.keys())?;
    let place = map.required("address");
    let address = place.and_then(|node| read_address(context, node));
    let delay = map.read_or("delay", Nanos::ZERO, |node| context.reader.parsed(node));
    let connections_max = map.read_or("connections_max", CONNECTIONS_MAX, |node| {
        context.reader.whole(node, 1, 1_000_000)
    });
    let service = service_of(context, kind, Some(&map));
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
    context: &ReadContext<'_>,
    kind: &str,
    map: Option<&MapReader<'_, '_>>,
) -> Option<IntakeService> {
    Some(match kind {
        "splunk_hec" => IntakeService::SplunkHec,
        "datadog" => IntakeService::Datadog {
            record: match map.and_then(|map| map.take("record")) {
                Some(node) => read_record(context, node)?,
                None => SeriesRecord::None,
            },
        },
        "datadog_stateful_logs" => IntakeService::DatadogStatefulLogs,
        "otlp" => IntakeService::Otlp,
        "sqs" => IntakeService::Sqs,
        "elasticsearch" => IntakeService::Elasticsearch,
        "loki" => IntakeService::Loki,
        "s3" => IntakeService::S3,
        _ => IntakeService::Openmetrics(Box::new(read_page(context, map)?)),
    })
}

fn read_record(context: &ReadContext<'_>, node: &Node) -> Option<SeriesRecord> {
    match &node.value {
        Value::List(_) => Some(SeriesRecord::Named(context.reader.texts(node))),
        _ => {
            let words = [("all", SeriesRecord::All), ("none", SeriesRecord::None)];
            context.reader.word(node, "record", &words)
        }
    }
}

fn read_page(
    context: &ReadContext<'_>,
    map: Option<&MapReader<'_, '_>>,
) -> Option<OpenmetricsPlan> {
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
            *count = context.reader.whole(node, 0, FAMILIES_MAX)?;
        }
    }
    Some(plan)
}

fn read_round_trip(
    context: &ReadContext<'_>,
    node: &Node,
    is_short: bool,
) -> Option<Placed<SinkProtocol>> {
    let round_trip = |address, request_bytes, response_bytes| SinkProtocol::TcpRr {
        address,
        request_bytes,
        response_bytes,
    };
    if is_short {
        let least = MessageLength::MIN;
        return Some(Placed {
            value: round_trip(read_address(context, node)?, least, least),
            span: node.span,
        });
    }
    let map = context.reader.map(node, &ROUND_TRIP.keys())?;
    let place = map.required("address");
    let address = place.and_then(|node| read_address(context, node));
    let length = |key| map.read_or(key, MessageLength::MIN, |node| read_length(context, node));
    let (request_bytes, response_bytes) = (length("request"), length("response"));
    Some(Placed {
        value: round_trip(address?, request_bytes?, response_bytes?),
        span: place?.span,
    })
}

/// The length of a message: from one byte to a gibibyte.
pub(in crate::spec) fn read_length(
    context: &ReadContext<'_>,
    node: &Node,
) -> Option<MessageLength> {
    let size: ByteSize = context.reader.parsed(node)?;
    if let Ok(length) = MessageLength::try_new(size.bytes()) {
        return Some(length);
    }
    let message = format!("a message of {size} is not possible");
    let error = context.reader.error(code::OUT_OF_RANGE, node.span, message);
    context
        .reader
        .report(error.label("write a size from `1 B` to `1 GiB`"));
    None
}
