//! Pre- and postprocessors that put a time before events, and take it off.

use stillwell_plan::stamp::PrefixFraming;
use stillwell_text::{Node, Value, code};

use crate::spec::ReadContext;

/// Side of a target.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Side {
    /// Before it: what is sent goes through them from the first to the last.
    Post,
    /// Behind it: received bytes pass them in the same direction, so their order is reversed.
    Pre,
}

/// Returns the framing of events with a time prefix, if `node` lists a step that adds or removes
/// the prefix; `None` if it lists only lines.
pub(super) fn read(context: &ReadContext<'_>, node: &Node, side: Side) -> Option<PrefixFraming> {
    let mut names = Vec::new();
    for item in context.reader.list(node)? {
        let name = match item.value {
            Value::Map(_) => item.entry("name").unwrap_or(item),
            _ => item,
        };
        names.push(context.reader.text(name)?);
    }
    if side == Side::Pre {
        names.reverse();
    }
    match names[..] {
        [] | ["separate"] => None,
        ["ingest-ns"] | ["ingest-ns", "separate"] => Some(PrefixFraming::Lines),
        ["ingest-ns", "length-prefixed" | "length-prefix"] => Some(PrefixFraming::LengthPrefixed),
        _ => {
            let (key, accepted) = match side {
                Side::Post => (
                    "postprocessors",
                    "`[ingest-ns, separate]` or `[ingest-ns, length-prefixed]`",
                ),
                Side::Pre => (
                    "preprocessors",
                    "`[separate, ingest-ns]` or `[length-prefixed, ingest-ns]`",
                ),
            };
            let message = format!("these {key} are not supported");
            let error = context.reader.error(code::BAD_VALUE, node.span, message);
            context.reader.report(error.label(accepted));
            None
        }
    }
}
