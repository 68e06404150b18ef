//! Generators that send requests of their own kinds.

use stillwell_plan::TransportPlan;
use stillwell_plan::generator::HecAcknowledgements;
use stillwell_text::{Node, code};
use stillwell_units::Nanos;

use super::{ACKNOWLEDGEMENTS, GRPC, ReadContext, SPLUNK_HEC, TRACE_AGENT, inner, is_short};

const RETRIES_DEFAULT: u32 = 3;
const EVERY_DEFAULT: Nanos = Nanos::from_secs(10);
const TIMEOUT_DEFAULT: Nanos = Nanos::from_secs(300);

/// The transport of `kind` that `node` describes.
pub(super) fn read_grpc(context: &ReadContext<'_>, node: &Node) -> Option<TransportPlan> {
    let url = context.url(inner(context, node, &GRPC, "url")?)?;
    Some(TransportPlan::Grpc { url })
}

pub(super) fn read_trace_agent(context: &ReadContext<'_>, node: &Node) -> Option<TransportPlan> {
    if is_short(node) {
        return Some(TransportPlan::TraceAgent {
            url: context.url(node)?,
            retries: RETRIES_DEFAULT,
        });
    }
    let map = context.reader.map(node, &TRACE_AGENT.keys())?;
    let url = map.required("url").and_then(|node| context.url(node));
    let retries = map.read_or("retries", RETRIES_DEFAULT, |node| {
        context.reader.whole(node, 0, 1000)
    });
    Some(TransportPlan::TraceAgent {
        url: url?,
        retries: retries?,
    })
}

pub(super) fn read_splunk_hec(context: &ReadContext<'_>, node: &Node) -> Option<TransportPlan> {
    let map = context.reader.map(node, &SPLUNK_HEC.keys())?;
    let url = map.required("url").and_then(|node| context.url(node));
    let token = map.required("token").and_then(|node| {
        let text = context.filled(node)?;
        if text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Some(text.to_owned());
        }
        let message = "a token is printable ASCII without blanks";
        let error = context.reader.error(code::BAD_VALUE, node.span, message);
        context.reader.report(error);
        None
    });
    let acknowledgements = map.read("acknowledgements", |node| {
        read_acknowledgements(context, node)
    })?;
    Some(TransportPlan::SplunkHec {
        url: url?,
        token: token?,
        acknowledgements,
    })
}

fn read_acknowledgements(context: &ReadContext<'_>, node: &Node) -> Option<HecAcknowledgements> {
    let map = context.reader.map(node, &ACKNOWLEDGEMENTS.keys())?;
    let length = |key, default| match map.take(key) {
        Some(node) => {
            let length: Nanos = context.reader.parsed(node)?;
            if length == Nanos::ZERO {
                let message = "a length of zero";
                let error = context.reader.error(code::OUT_OF_RANGE, node.span, message);
                context
                    .reader
                    .report(error.label("write a length above zero"));
                return None;
            }
            Some(length)
        }
        None => Some(default),
    };
    let (every, timeout) = (
        length("every", EVERY_DEFAULT),
        length("timeout", TIMEOUT_DEFAULT),
    );
    Some(HecAcknowledgements {
        every: every?,
        timeout: timeout?,
    })
}
