//! `stamps` of a generator.

use std::num::NonZeroU32;

use stillwell_plan::generator::{FileLayout, TransportProperties};
use stillwell_plan::payload::TemplatePlan;
use stillwell_plan::stamp::{PrefixFraming, StampForm};
use stillwell_plan::{PayloadFormat, StampPlan, TransportPlan};
use stillwell_text::{Node, Value, code};

use super::ReadContext;
use crate::element::{DURATION, Element, Shape, optional};

/// Every event, expected once.
const ALL: &str = "all";

/// The words for forms.
const TEXT: &str = "text";
const HEADER: &str = "header";
const PREFIX: &str = "prefix";

/// The words for framings.
pub(super) const FRAMINGS: Shape = Shape::Words(&[
    PrefixFraming::Lines.name(),
    PrefixFraming::LengthPrefixed.name(),
]);

/// The header that carries stamps.
const HEADER_NAME: &str = "stillwell-stamp";

const STAMPS: Element = Element::new(
    "stamps",
    "Stamped events, and their expected deliveries.",
    &[
        optional(
            "every",
            Shape::Whole,
            "Every Nth event is stamped; 1 by default, which means all events.",
        ),
        optional(
            "copies",
            Shape::Whole,
            "Number of times that a correct target delivers each event, from 1 to 8: 2 where \
             it keeps the original beside the parsed form; 1 by default.",
        ),
        optional(
            "late_after",
            DURATION,
            "Events that arrive later than this after their intended time are counted as late.",
        ),
        optional(
            "form",
            Shape::Words(&[TEXT, HEADER, PREFIX]),
            "Place of a stamp: `text`, the default, is in the text of each event; `header` in a header of each \
             request; `prefix` is only the time, in eight bytes before each event, like `ingest-ns`.",
        ),
        optional(
            "framing",
            FRAMINGS,
            "Framing of events with a time prefix: `lines`, the default, or `length_prefixed`, with the length of each \
             event in eight bytes before it.",
        ),
    ],
);

pub(super) const SHAPE: Shape = Shape::Any(&[Shape::Words(&[ALL]), Shape::Element(&STAMPS)]);

pub(super) fn read_stamps(context: &ReadContext<'_>, node: &Node) -> Option<StampPlan> {
    let reader = context.reader;
    if matches!(node.value, Value::Scalar { .. }) {
        return reader.word(node, "stamps", &[(ALL, StampPlan::ALL)]);
    }
    let map = reader.map(node, &STAMPS.keys())?;
    let every = map.read_or("every", StampPlan::ALL.every, |node| {
        reader.whole(node, 1, u32::MAX).and_then(NonZeroU32::new)
    });
    let copies = map.read_or("copies", StampPlan::ALL.copies, |node| {
        reader.whole(node, 1, StampPlan::COPIES_MAX)
    });
    let late_after = map.read("late_after", |node| reader.parsed(node));
    let form = read_form(context, node, map.take("form"), map.take("framing"));
    Some(StampPlan {
        every: every?,
        copies: copies?,
        late_after: late_after?,
        form: form?,
    })
}

/// Returns true if `generator` requests stamps with numbers.
pub(super) fn has_numbers(generator: &Node) -> bool {
    let is_prefix =
        |form: &Node| matches!(&form.value, Value::Scalar { text, .. } if text == PREFIX);
    let stamps = generator.entry("stamps");
    stamps.is_some_and(|stamps| !stamps.entry("form").is_some_and(is_prefix))
}

/// Name of a framing.
pub(super) fn read_framing(context: &ReadContext<'_>, node: &Node) -> Option<PrefixFraming> {
    let framings = PrefixFraming::ALL.map(|framing| (framing.name(), framing));
    context.reader.word(node, "framing", &framings)
}

fn read_form(
    context: &ReadContext<'_>,
    stamps: &Node,
    form: Option<&Node>,
    framing: Option<&Node>,
) -> Option<StampForm> {
    let reader = context.reader;
    let refuse = |node: &Node, message: &str, label: &str| {
        let error = reader.error(code::BAD_VALUE, node.span, message);
        reader.report(error.label(label));
    };
    let read = framing.map(|node| read_framing(context, node));
    let framed = StampForm::Prefix(read.flatten().unwrap_or(PrefixFraming::Lines));
    let forms = [
        (TEXT, StampForm::Text),
        (HEADER, StampForm::Header),
        (PREFIX, framed),
    ];
    let form = match form {
        Some(node) => reader.word(node, "form of stamps", &forms)?,
        None => StampForm::Text,
    };
    if let (Some(node), None) = (framing, form.prefix()) {
        let message = "`framing` has no effect here: events have no time prefix";
        refuse(node, message, "leave it out, or add `form: prefix`");
    }
    if form.prefix().is_some() {
        let keys = ["every", "copies", "late_after"];
        for node in keys.iter().filter_map(|key| stamps.entry(key)) {
            let message = "`form: prefix` measures only latency";
            refuse(
                node,
                message,
                "leave it out: every event gets a prefix, and losses are not counted",
            );
        }
    }
    Some(form)
}

/// Returns true if logs are in a mounted file system of this program.
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
    context: &ReadContext<'_>,
    node: &Node,
    form: StampForm,
    (format, transport): (&PayloadFormat, &TransportPlan),
) {
    let reader = context.reader;
    let refuse = |message: String, label: &str| {
        let error = reader.error(code::BAD_VALUE, node.span, message);
        reader.report(error.label(label));
    };
    if is_mounted(transport) {
        return refuse(
            "logs in a mounted file system cannot be stamped".to_owned(),
            "their content is generated at each read: write `folder` instead of `mount`, or leave \
             out `stamps`; missed events are counted anyway",
        );
    }
    let name = transport.name();
    match form {
        StampForm::Text => {
            if !takes_stamps(format) {
                let message = format!("events of `{}` cannot carry stamps", format.name());
                refuse(
                    message,
                    "a stamp needs text that Stillwell makes in each event",
                );
            }
            if !transport.properties().stamps.text {
                let message = format!("requests over `{name}` cannot be stamped");
                refuse(message, &format!("{} can", carriers(form)));
            }
        }
        StampForm::Header if !transport.properties().stamps.header => {
            let message = format!("`{name}` does not support stamps in a header");
            let carriers = carriers(form);
            refuse(
                message,
                &format!("{carriers} do; `form: text` stamps the text of events"),
            );
        }
        StampForm::Header => {
            if let Some(taken) = stamp_header(transport) {
                let message = format!("the header `{taken}` carries stamps");
                refuse(message, "leave the header out, or `form: header`");
            }
        }
        StampForm::Prefix(framing) => {
            if !transport.properties().stamps.prefix {
                let message = format!("over `{name}`, events cannot have a time prefix");
                refuse(message, &format!("{} can", carriers(form)));
            }
            if !takes_prefix(format) {
                let message = format!("events of `{}` cannot have a time prefix", format.name());
                refuse(message, "only lines that Stillwell generates can");
            } else if framing == PrefixFraming::Lines && !is_one_line(format) {
                refuse(
                    "events of this template are not lines".to_owned(),
                    "a line feed must end each event and be nowhere else in it: change the template, \
                     or write `framing: length_prefixed`",
                );
            }
        }
    }
}

/// The transports that carry stamps of `form`, as a list in a sentence.
fn carriers(form: StampForm) -> String {
    let names: Vec<&str> = TransportProperties::carriers(form).collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, names)) => format!("{} and {last}", names.join(", ")),
        None => "no transport".to_owned(),
    }
}

/// Returns the separate header that carries stamps, if there is one.
fn stamp_header(transport: &TransportPlan) -> Option<&str> {
    let TransportPlan::Http { headers, .. } = transport else {
        return None;
    };
    let mut names = headers.iter().map(|(name, _)| name.as_str());
    names.find(|name| name.eq_ignore_ascii_case(HEADER_NAME))
}

/// Returns true if no template ends an event without a line feed, or has one inside.
fn is_one_line(format: &PayloadFormat) -> bool {
    format.template().is_none_or(TemplatePlan::makes_lines)
}

/// Returns true if events are generated and end in a line feed by default.
fn takes_prefix(format: &PayloadFormat) -> bool {
    let is_other = matches!(
        format,
        PayloadFormat::Lines { .. }
            | PayloadFormat::StaticChunks { .. }
            | PayloadFormat::StaticTimestamped(_)
            | PayloadFormat::Elasticsearch(_)
    );
    format.ends_lines() && !is_other
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
