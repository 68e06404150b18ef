//! Steps that change how a sink behaves.

use stillwell_plan::serve::DelayExpression;
use stillwell_plan::step::{Refusal, RefusePlan, SinkChange, StepAction};
use stillwell_text::{Node, Value, code};
use stillwell_units::ByteRate;

use super::read_share;
use crate::element::{Element, Shape, optional, required};
use crate::spec::ReadContext;

const RESPOND: Element = Element::new(
    "refusal",
    "Refusal of requests. The content of a refused request counts as not delivered.",
    &[
        optional(
            "status",
            Shape::Whole,
            "The status that they get, from 300 to 599.",
        ),
        optional(
            "close",
            Shape::Boolean,
            "`true`: their connection is closed without a response.",
        ),
        optional(
            "share",
            Shape::Like("10%"),
            "Share of requests that are refused, evenly spread; all by default.",
        ),
        optional(
            "retry_after",
            Shape::Whole,
            "Seconds after which the client may retry, sent with the status.",
        ),
    ],
)
.one_of(&["status", "close"]);

const CHANGE: Element = Element::new(
    "sink change",
    "Change of a sink.",
    &[
        optional(
            "slow",
            Shape::Like("1 MiB/s"),
            "Reads no more than this, over all connections together.",
        ),
        optional(
            "respond",
            Shape::Element(&RESPOND),
            "Refuses requests of HTTP and of protocols over HTTP.",
        ),
        optional(
            "delay",
            Shape::Like("5 + 2 * active_requests"),
            "Delay of responses after the end of each request: a length of time, or milliseconds by \
             a formula over `active_requests`, `t` (seconds since the step) and `rand()`.",
        ),
    ],
)
.one_of(&["slow", "respond", "delay"]);

const WORDS: [(&str, SinkChange); 6] = [
    ("down", SinkChange::Down),
    ("up", SinkChange::Up),
    ("pause", SinkChange::Pause),
    ("resume", SinkChange::Resume),
    ("queue", SinkChange::Queue),
    ("restore", SinkChange::Restore),
];

pub(super) const STEP: Element = Element::new(
    "sink step",
    "Changes how a sink behaves.",
    &[
        required("id", Shape::Text, "The sink."),
        required(
            "do",
            Shape::Any(&[
                Shape::Words(&["down", "up", "pause", "resume", "queue", "restore"]),
                Shape::Element(&CHANGE),
            ]),
            "`down`: does not listen, and cuts connections, until `up`. `pause`: reads nothing \
             until `resume`. `queue`: holds its responses back. `restore`: all but `down` is undone.",
        ),
    ],
);

pub(super) fn read(context: &ReadContext<'_>, node: &Node) -> Option<StepAction> {
    let map = context.reader.map(node, &STEP.keys())?;
    let id = map.required("id").and_then(|node| context.filled(node));
    let change = map
        .required("do")
        .and_then(|node| read_change(context, node));
    Some(StepAction::Sink {
        id: id?.to_owned(),
        change: change?,
    })
}

fn read_change(context: &ReadContext<'_>, node: &Node) -> Option<SinkChange> {
    if matches!(node.value, Value::Scalar { .. }) {
        return context.reader.word(node, "change of a sink", &WORDS);
    }
    let map = context.reader.map(node, &CHANGE.keys())?;
    match map.one_of(CHANGE.one_of)? {
        ("slow", node) => context
            .reader
            .parsed::<ByteRate>(node)
            .map(SinkChange::Slow),
        ("respond", node) => read_refusal(context, node).map(SinkChange::Refuse),
        (_, node) => read_delay(context, node).map(SinkChange::Delay),
    }
}

fn read_refusal(context: &ReadContext<'_>, node: &Node) -> Option<RefusePlan> {
    let reader = context.reader;
    let map = reader.map(node, &RESPOND.keys())?;
    let share = map.read_or("share", 1_000_000, |node| read_share(context, node));
    let retry_after = map.read("retry_after", |node| reader.whole(node, 0, 86_400))?;
    let with = match map.one_of(RESPOND.one_of)? {
        ("status", node) => Refusal::Status {
            status: reader.whole(node, 300, 599)?,
            retry_after,
        },
        (_, node) => {
            if !reader.boolean(node)? {
                let message = "`close: false` refuses nothing";
                let error = reader.error(code::BAD_VALUE, node.span, message);
                reader.report(error.label("write `close: true`, or a `status`"));
                return None;
            }
            if let Some(retry) = map.take("retry_after") {
                let message = "a closed connection cannot send `retry_after`";
                reader.report(reader.error(code::BAD_VALUE, retry.span, message));
            }
            Refusal::Close
        }
    };
    Some(RefusePlan {
        with,
        per_million: share?,
    })
}

fn read_delay(context: &ReadContext<'_>, node: &Node) -> Option<DelayExpression> {
    let text = context.reader.text(node)?;
    match text.parse::<DelayExpression>() {
        Ok(delay) => Some(delay),
        Err(error) => {
            let message = format!("`{text}` is not a delay: {}", error.message);
            let error = context.reader.error(code::BAD_VALUE, node.span, message);
            context.reader.report(error.label(
                "a length of time such as `5ms`, or milliseconds such as `5 + 2 * active_requests`",
            ));
            None
        }
    }
}
