//! `stamps` of a generator.

use stillwell_legacy::{Node, Value, code};
use stillwell_plan::{FileLayout, PayloadFormat, StampPlan, TransportPlan};

use super::Door;
use crate::schema::{DURATION, Element, Shape, optional};

/// Every event, expected once.
const ALL: &str = "all";

const STAMPS: Element = Element {
    name: "stamps",
    about: "Which events are stamped, and what is expected of them.",
    fields: &[
        optional(
            "every",
            Shape::Whole,
            "One event in so many is stamped; 1 if left out, which is all of them.",
        ),
        optional(
            "copies",
            Shape::Whole,
            "How often a subject that does what it should delivers each event, from 1 to 8: 2 \
             where it keeps the original beside what it parsed; 1 if left out.",
        ),
        optional(
            "late_after",
            DURATION,
            "Events that arrive later than this after their intended time are counted as late.",
        ),
    ],
    one_of: &[],
};

pub(super) const SHAPE: Shape = Shape::Any(&[Shape::Words(&[ALL]), Shape::Element(&STAMPS)]);

pub(super) fn read_stamps(door: &Door<'_>, node: &Node) -> Option<StampPlan> {
    let reader = door.reader;
    if matches!(node.value, Value::Scalar { .. }) {
        return reader.word(node, "stamps", &[(ALL, StampPlan::ALL)]);
    }
    let map = reader.map(node, &STAMPS.keys())?;
    let every = match map.take("every") {
        Some(node) => reader.whole(node, 1, u32::MAX),
        None => Some(StampPlan::ALL.every),
    };
    let copies = match map.take("copies") {
        Some(node) => reader.whole(node, 1, StampPlan::COPIES_MAX),
        None => Some(StampPlan::ALL.copies),
    };
    let late_after = map.take("late_after").map(|node| reader.parsed(node));
    Some(StampPlan {
        every: every?,
        copies: copies?,
        late_after: match late_after {
            Some(late_after) => Some(late_after?),
            None => None,
        },
    })
}

/// Whether logs are a file system of our own.
const fn is_mounted(transport: &TransportPlan) -> bool {
    matches!(
        transport,
        TransportPlan::Files {
            layout: FileLayout::Mounted { .. },
            ..
        }
    )
}

/// Reports events that have no room for a stamp, or leave by a way that has none.
pub(super) fn check_stamps(
    door: &Door<'_>,
    node: &Node,
    format: &PayloadFormat,
    transport: &TransportPlan,
) {
    let reader = door.reader;
    let refuse = |message: String, label: &str| {
        let error = reader.error(code::BAD_VALUE, node.span, message);
        reader.report(error.label(label));
    };
    if !takes_stamps(format) {
        let message = format!("events of `{}` cannot carry stamps", format.name());
        refuse(message, "a stamp needs text of our own in each event");
    }
    if is_mounted(transport) {
        refuse(
            "logs in a file system of their own cannot be stamped".to_owned(),
            "what they hold is made when somebody reads it: `folder` in place of `mount`, or no \
             stamps; what was missed is counted anyway",
        );
    }
    let carries = matches!(
        transport,
        TransportPlan::Tcp { .. }
            | TransportPlan::Udp { .. }
            | TransportPlan::UnixStream { .. }
            | TransportPlan::UnixDatagram { .. }
            | TransportPlan::Http { .. }
            | TransportPlan::Acknowledged(_)
            | TransportPlan::Files { .. }
            | TransportPlan::PassthruFile { .. }
            | TransportPlan::Tls { .. }
            | TransportPlan::Kafka(_)
            | TransportPlan::Nats(_)
            | TransportPlan::Amqp(_)
    );
    if !carries {
        let message = format!("what leaves over `{}` cannot be stamped", transport.name());
        refuse(
            message,
            "tcp, udp, unix_stream, unix_datagram, http, file_gen, passthru_file, kafka, nats and amqp can",
        );
    }
}

fn takes_stamps(format: &PayloadFormat) -> bool {
    match format {
        PayloadFormat::Lines { .. }
        | PayloadFormat::Static { .. }
        | PayloadFormat::StaticChunks { .. }
        | PayloadFormat::StaticTimestamped(_)
        | PayloadFormat::Dogstatsd(_)
        | PayloadFormat::Netflow(_)
        | PayloadFormat::OpentelemetryMetrics(_)
        | PayloadFormat::OpentelemetryTraces(_)
        | PayloadFormat::RemoteWrite(_)
        | PayloadFormat::TraceAgent(_) => false,
        PayloadFormat::TemplatedJson(template) | PayloadFormat::Template(template) => {
            template.has_stamp()
        }
        _ => true,
    }
}
