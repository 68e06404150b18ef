//! Traces as Datadog's agent takes them at `/v0.4/traces`: a list of traces,
//! each a list of spans, in `MessagePack` or JSON. An event is one trace.

use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::{Between, TraceAgentPlan, TraceEncoding};
use stillwell_units::count;

use crate::contract::{Event, Joint, Recipe, Writer};
use crate::event_time::EventTime;
use crate::mix::{Chance, Draw, Order, index, key, share};
use crate::names::Names;
use crate::pool::{Pool, SLACK, TextWriter};
use crate::random::Random;

mod encoding;

use encoding::{JsonEncoding, Msgpack, Notation};

/// Characters of drawn texts; none needs an escape in JSON.
const ALPHABET: &[u8; 66] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-/";

/// Longest text.
const TEXT_MAX: usize = 256;

/// Bytes of a span at most, without its texts, tags and numbers.
const SPAN_MAX: usize = 320;

/// Bytes beyond a text that it takes at most.
const TEXT_MORE: usize = 8;

/// Bytes of a double at most, in JSON.
const NUMBER_MAX: usize = 32;

/// Parents that a further span may have at most: those before it.
const PARENTS: usize = 32;

/// Bytes into which a trace of one span always fits.
pub(crate) fn floor(format: &PayloadFormat) -> usize {
    match format {
        PayloadFormat::TraceAgent(plan) => span_max(plan) + 8,
        _ => 0,
    }
}

/// Bytes of a span with all its texts, and as many tags and numbers as it may
/// have.
fn span_max(plan: &TraceAgentPlan) -> usize {
    let long = |range: Between<u8>| usize::from(range.high).max(8) + TEXT_MORE;
    let texts = long(plan.service_name_length)
        + long(plan.operation_name_length)
        + long(plan.resource_name_length)
        + long(plan.span_type_length);
    let tag = long(plan.tag_key_length) + long(plan.tag_value_length);
    let number = long(plan.metric_key_length) + NUMBER_MAX;
    SPAN_MAX
        + texts
        + usize::from(plan.tags_per_span.high) * tag
        + usize::from(plan.metrics_per_span.high) * number
}

pub(crate) fn writer(recipe: &Recipe<'_>) -> Box<dyn Writer> {
    let plan = match recipe.format {
        PayloadFormat::TraceAgent(plan) => *plan,
        _ => TraceAgentPlan::default(),
    };
    let common = &recipe.common;
    let contexts = Draw::new(key(&common.derive("contexts", 0)), 0).between(plan.contexts);
    let order = Order::new(contexts, &recipe.seed.derive("order", 0));
    let mut random = Random::new(recipe.seed.derive("values", 0));
    let traces = AgentTraces {
        time: EventTime::new(&mut random),
        random,
        order,
        names: SpanContexts::new(&plan, recipe, contexts),
        pool: Pool::new(common.derive("texts", 0), ALPHABET, 18, TEXT_MAX),
        fails: Chance::new(plan.error_rate),
        span_max: span_max(&plan),
        event_max: recipe.event_max,
        room: vec![0; recipe.event_max + SLACK].into_boxed_slice(),
        parents: Vec::with_capacity(PARENTS),
        plan,
    };
    match plan.encoding {
        TraceEncoding::Msgpack => Box::new(Encoded::<Msgpack> {
            traces,
            notation: Msgpack,
        }),
        TraceEncoding::Json => Box::new(Encoded::<JsonEncoding> {
            traces,
            notation: JsonEncoding,
        }),
    }
}

#[derive(Debug)]
struct Encoded<N> {
    traces: AgentTraces,
    notation: N,
}

#[derive(Debug)]
struct AgentTraces {
    plan: TraceAgentPlan,
    random: Random,
    time: EventTime,
    order: Order,
    names: SpanContexts,
    pool: Pool,
    fails: Chance,
    span_max: usize,
    event_max: usize,
    room: Box<[u8]>,
    /// Spans that a further one may be a child of: identity, start and end.
    parents: Vec<(u64, u64, u64)>,
}

/// The service, operation, resource and type of a span. One of the first three distinguishes
/// contexts.
#[derive(Debug)]
struct SpanContexts {
    names: Names,
    /// The index of the one that `names` gives.
    named: usize,
    lengths: [Between<u64>; 4],
    key: u64,
}

impl SpanContexts {
    fn new(plan: &TraceAgentPlan, recipe: &Recipe<'_>, wanted: u64) -> Self {
        let lengths = [
            plan.service_name_length,
            plan.operation_name_length,
            plan.resource_name_length,
            plan.span_type_length,
        ];
        // The first that can distinguish all, or else the longest.
        let possible = |length: &Between<u8>| match length.high {
            0 => 1,
            high => 36_u64
                .saturating_pow(u32::from(high) - 1)
                .saturating_mul(26),
        };
        let named = lengths[..3]
            .iter()
            .position(|length| possible(length) >= wanted);
        let named = named.unwrap_or(0);
        let length = lengths[named];
        let length = Between::new(u16::from(length.low), u16::from(length.high));
        Self {
            names: Names::drawn(&recipe.common.derive("names", 0), length, wanted),
            named,
            lengths: lengths.map(|range| Between::new(u64::from(range.low), u64::from(range.high))),
            key: key(&recipe.common.derive("traces", 0)),
        }
    }

    /// Writes the text number `part` of context `number`.
    #[inline(always)]
    fn write(&self, out: &mut TextWriter<'_>, pool: &Pool, number: u64, part: usize) {
        if part == self.named && self.lengths[part].high > 0 {
            return self.names.write(out, number);
        }
        let mut draw = Draw::new(self.key ^ part as u64, number);
        let len = draw.between(self.lengths[part]);
        out.piece(pool.piece(draw.word(), index(len)));
    }
}

impl<N: Notation> Writer for Encoded<N> {
    fn next(&mut self) -> Option<Event<'_>> {
        let traces = &mut self.traces;
        let mut random = traces.random.clone();
        let mut out = TextWriter::new(&mut traces.room);
        let context = traces.order.next();
        let drawn = u64::from(traces.plan.spans_per_trace.low);
        let spans = random
            .between(drawn, u64::from(traces.plan.spans_per_trace.high))
            .max(1);
        let wanted = index(spans).min(usize::from(u16::MAX));
        self.notation.open_list(&mut out);
        let trace = random.word() >> 1 | 1;
        let start = traces.time.advance(&mut random);
        traces.parents.clear();
        let mut spans = 0;
        for number in 0..wanted {
            if number > 0 {
                // The bytes between spans, and the end.
                if out.len() + traces.span_max + 2 > traces.event_max {
                    break;
                }
                self.notation.between(&mut out);
            }
            spans += 1;
            let parent = match number {
                0 => (
                    0,
                    start,
                    start + 1_000_000 + (u64::from(random.bits(16)) << 14),
                ),
                _ => traces.parents[index(share(random.word(), traces.parents.len() as u64))],
            };
            let (identity, times) = child(&mut random, parent, number == 0);
            let span = AgentSpan {
                context,
                trace,
                identity,
                parent: parent.0,
                start: times.0,
                duration: times.1 - times.0,
                has_failed: traces.fails.holds(random.word()),
            };
            let source = SpanSource {
                plan: &traces.plan,
                names: &traces.names,
                pool: &traces.pool,
            };
            write_span(&mut out, &mut random, &self.notation, &span, source);
            if traces.parents.len() < PARENTS {
                traces.parents.push((identity, times.0, times.1));
            }
        }
        self.notation.close_list(&mut out, spans);
        traces.random = random;
        Some(Event {
            bytes: out.finish(),
            slot: None,
            units: count(spans),
            joint: Joint::Frame,
        })
    }
}

/// A span's identity and times: within those of its parent.
#[inline(always)]
fn child(random: &mut Random, parent: (u64, u64, u64), is_root: bool) -> (u64, (u64, u64)) {
    let identity = random.word() >> 1 | 1;
    if is_root {
        return (identity, (parent.1, parent.2));
    }
    let whole = parent.2 - parent.1;
    let begin = parent.1 + share(random.word(), whole + 1);
    (
        identity,
        (begin, begin + share(random.word(), parent.2 - begin + 1)),
    )
}

/// One span, without its texts.
struct AgentSpan {
    context: u64,
    trace: u64,
    identity: u64,
    parent: u64,
    start: u64,
    duration: u64,
    has_failed: bool,
}

/// The texts of a span.
#[derive(Clone, Copy)]
struct SpanSource<'s> {
    plan: &'s TraceAgentPlan,
    names: &'s SpanContexts,
    pool: &'s Pool,
}

/// Writes one span as a map.
#[inline(always)]
fn write_span<N: Notation>(
    out: &mut TextWriter<'_>,
    random: &mut Random,
    notation: &N,
    span: &AgentSpan,
    source: SpanSource<'_>,
) {
    let tags = drawn(random, source.plan.tags_per_span);
    let numbers = drawn(random, source.plan.metrics_per_span);
    notation.open_map(out, 10 + usize::from(tags > 0) + usize::from(numbers > 0));
    let texts: [&[u8]; 4] = [b"service", b"name", b"resource", b"type"];
    for (part, field) in texts.into_iter().enumerate() {
        if part > 0 {
            notation.between(out);
        }
        notation.key(out, field);
        notation.text(out, |out| {
            source.names.write(out, source.pool, span.context, part);
        });
    }
    let fields: [(&[u8], u64); 6] = [
        (b"trace_id", span.trace),
        (b"span_id", span.identity),
        (b"parent_id", span.parent),
        (b"start", span.start),
        (b"duration", span.duration),
        (b"error", u64::from(span.has_failed)),
    ];
    for (field, value) in fields {
        notation.between(out);
        notation.key(out, field);
        notation.number(out, value);
    }
    if tags > 0 {
        notation.between(out);
        notation.key(out, b"meta");
        notation.open_map(out, tags);
        let (keys, values) = (source.plan.tag_key_length, source.plan.tag_value_length);
        for position in 0..tags {
            write_key(out, random, notation, source.pool, keys, position);
            let piece = source.pool.piece(random.word(), drawn(random, values));
            notation.text(out, |out| out.piece(piece));
        }
        notation.close_map(out);
    }
    if numbers > 0 {
        notation.between(out);
        notation.key(out, b"metrics");
        notation.open_map(out, numbers);
        let keys = source.plan.metric_key_length;
        for position in 0..numbers {
            write_key(out, random, notation, source.pool, keys, position);
            notation.double(out, random.word());
        }
        notation.close_map(out);
    }
    notation.close_map(out);
}

/// Writes the beginning of entry `position` and its key, which is unique where its length permits
/// it.
#[inline(always)]
fn write_key<N: Notation>(
    out: &mut TextWriter<'_>,
    random: &mut Random,
    notation: &N,
    pool: &Pool,
    length: Between<u8>,
    position: usize,
) {
    const LETTERS: &[u8; 16] = b"abcdefghijklmnop";
    if position > 0 {
        notation.between(out);
    }
    let len = drawn(random, length).max(2.min(usize::from(length.high)));
    let piece = pool.piece(random.word(), len);
    notation.open_key(out, len);
    let start = out.len();
    out.piece(piece);
    for (place, letter) in [position % 16, position / 16 % 16].into_iter().enumerate() {
        if place < len {
            out.replace(start + place, LETTERS[letter]);
        }
    }
    notation.close_key(out);
}

/// One of `range`.
#[inline(always)]
fn drawn(random: &mut Random, range: Between<u8>) -> usize {
    let width = u16::from(range.high - range.low) + 1;
    usize::from(range.low) + usize::from(random.below(width))
}
