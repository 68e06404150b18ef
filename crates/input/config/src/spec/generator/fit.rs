//! Checks that payload, blocks and rate fit together.

use stillwell_plan::generator::FileLayout;
use stillwell_plan::payload::{BlockShape, GelfEnd};
use stillwell_plan::{GeneratorPlan, PayloadFormat, RatePlan, RateUnit, TransportPlan};
use stillwell_text::{Node, Reader, Span, code};
use stillwell_units::{ByteSize, float_from_u64};

use crate::spec::rate;

/// Reports `events` of a block where the format says how many there are.
pub(super) fn check_events(reader: &Reader, block: Option<&Node>, format: &PayloadFormat) {
    let what = match format {
        PayloadFormat::RemoteWrite(_) => {
            "`samples_per_request` is the number of samples in a write request"
        }
        PayloadFormat::Netflow(_) => "a packet holds as many flows as fit",
        _ => return,
    };
    if let Some(node) = block.and_then(|block| block.entry("events")) {
        let message = format!("`events` has no effect on `{}`", format.name());
        let error = reader.error(code::BAD_VALUE, node.span, message);
        let help = "leave it out; `maximum` bounds a block";
        reader.report(error.label(what).help(help));
    }
}

/// Warns of messages without an end that a receiver cannot separate.
pub(super) fn check_ends(
    reader: &Reader,
    node: &Node,
    format: &PayloadFormat,
    transport: &TransportPlan,
    blocks: &BlockShape,
) {
    let is_endless = matches!(
        format,
        PayloadFormat::Gelf {
            end: GelfEnd::Nothing
        }
    );
    if !is_endless
        || matches!(blocks, BlockShape::Events { count: 1, .. }) && transport.properties().is_framed
    {
        return;
    }
    let message = "messages without a delimiter cannot be separated";
    let warning = reader.warning(code::MEANING, node.span, message);
    reader.report(warning.help(if transport.properties().is_framed {
        "write `block: {events: 1}`, so each is a datagram or a request of its own"
    } else {
        "write `end: zero` or `end: newline`: a stream does not separate messages"
    }));
}

/// Notes contexts that take longer than a second to be sent all.
pub(super) fn check_contexts(
    reader: &Reader,
    rate_node: Option<&Node>,
    format: &PayloadFormat,
    rate: &RatePlan,
) {
    let contexts = match format {
        PayloadFormat::Dogstatsd(plan) => plan.contexts.high,
        PayloadFormat::OpentelemetryLogs(plan) => plan.contexts.contexts.high,
        PayloadFormat::OpentelemetryMetrics(plan) => plan.contexts.contexts.high,
        _ => return,
    };
    let contexts = float_from_u64(contexts.into());
    if let (Some(node), Some(rate)) = (rate_node, rate::event_rate_max(rate))
        && rate > 0.0
        && rate < contexts
    {
        let message = format!(
            "{contexts} contexts take {:.1} s to be sent at {rate} events/s",
            contexts / rate
        );
        let note = reader.note(code::MEANING, node.span, message);
        reader.report(
            note.help("with a warm-up of that length, all of them are sent before the measurement"),
        );
    }
}

/// The reason why a generator cannot have a rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateProblem {
    pub(crate) code: &'static str,
    pub(crate) message: &'static str,
    /// Advice.
    pub(crate) help: &'static str,
}

/// A scenario has a rate of its own.
pub(super) const ARRIVALS_AND_RATE: RateProblem = RateProblem {
    code: code::ONE_OF_KEYS,
    message: "the scenario has `arrivals`, so `rate` has no effect",
    help: "leave out one of them",
};

const ARRIVALS_WITHOUT_RATE: RateProblem = RateProblem {
    code: code::BAD_VALUE,
    message: "users arrive at a rate, and `max` and `probe` have none",
    help: "write a rate of users, such as `50/s`",
};

const BYTES_WITHOUT_PAYLOAD: RateProblem = RateProblem {
    code: code::BAD_VALUE,
    message: "there is no payload whose bytes could be counted",
    help: "write a rate of requests or operations, such as `100/s`",
};

const MOUNTED_WITHOUT_RATE: RateProblem = RateProblem {
    code: code::MISSING_KEY,
    message: "logs in a mounted file system grow over time, which needs a rate",
    help: "write one, such as `rate: 10 MiB/s`",
};

impl RateProblem {
    /// Reports it at `span` of a file.
    pub(super) fn report(self, reader: &Reader, span: Span) {
        let error = reader.error(self.code, span, self.message);
        reader.report(error.label(self.help));
    }
}

/// Returns the reason if `generator` cannot have `rate` in place of its own; `has_arrivals`: it is the number of users
/// of its scenario that arrive per second.
pub(crate) fn rate_problem(
    generator: &GeneratorPlan,
    rate: &RatePlan,
    has_arrivals: bool,
) -> Option<RateProblem> {
    let transport = &generator.transport;
    if has_arrivals && rate.is_max() {
        return Some(ARRIVALS_WITHOUT_RATE);
    }
    if !transport.sends_payload()
        && let Some(problem) = paced_problem(rate)
    {
        return Some(problem);
    }
    mounted_problem(transport, rate)
}

/// Returns the reason if a generator that sends no payload cannot have `rate`.
pub(super) fn paced_problem(rate: &RatePlan) -> Option<RateProblem> {
    let counts_bytes = rate.unit == RateUnit::Bytes && !rate.is_max();
    counts_bytes.then_some(BYTES_WITHOUT_PAYLOAD)
}

/// Returns the reason if `transport` cannot have `rate`. Logs in a file system of our own grow by the clock:
/// without a rate they would be endless at once.
pub(super) fn mounted_problem(transport: &TransportPlan, rate: &RatePlan) -> Option<RateProblem> {
    let is_mounted = matches!(
        transport,
        TransportPlan::Files {
            layout: FileLayout::Mounted { .. },
            ..
        }
    );
    (is_mounted && rate.is_max()).then_some(MOUNTED_WITHOUT_RATE)
}

/// Largest cache of a generator: it is built in memory before a run.
const CACHE_MAX: ByteSize = ByteSize::mib(64 << 10);

/// Reports a cache that no memory holds.
pub fn check_cache_size(reader: &Reader, node: &Node, cache: ByteSize) {
    if cache > CACHE_MAX {
        let message = format!("a cache of {cache} is too large: it is built in memory");
        let error = reader.error(code::OUT_OF_RANGE, node.span, message);
        reader.report(error.label(format!("at most {CACHE_MAX}")));
    }
}

/// Reports a cache that is too large, or smaller than the `largest` block.
pub(super) fn check_cache(reader: &Reader, node: &Node, cache: ByteSize, largest: ByteSize) {
    check_cache_size(reader, node, cache);
    if cache < largest {
        let message = format!("a cache of {cache} does not hold one block");
        let error = reader.error(code::OUT_OF_RANGE, node.span, message);
        reader.report(error.label(format!("at least {largest}, the largest block")));
    }
}
