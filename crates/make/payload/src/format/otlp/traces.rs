//! OpenTelemetry traces: `ExportTraceServiceRequest` in protobuf. An event is
//! one trace through a system of services, with the spans of each service in a
//! resource of their own.

use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::TRACE_DEPTH_MAX;
use stillwell_units::count;

use crate::contract::{Event, Joint, Recipe, Writer};
use crate::event_time::EventTime;
use crate::mix::{Chance, index, share};
use crate::pool::Pool;
use crate::protobuf::{HEAD_MAX, Reverse};
use crate::random::Random;

mod system;

use system::{Choice, Operation, System};

/// Bytes of a span at most, without its name and attributes.
const SPAN_MAX: usize = 96;

/// Spans of a trace at most.
const SPANS_MAX: usize = 10_000;

/// `SPAN_KIND_SERVER` and `SPAN_KIND_CLIENT`
const SERVER: u64 = 2;
const CLIENT: u64 = 3;

/// `STATUS_CODE_ERROR`
const FAILED: u64 = 2;

/// Characters of random texts.
const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// Bytes into which a trace with one span always fits.
pub(crate) fn floor(format: &PayloadFormat) -> usize {
    match format {
        PayloadFormat::OpentelemetryTraces(plan) => {
            let system = System::new(plan.services(), &plan.roots());
            let span = system
                .operations
                .iter()
                .map(|operation| operation.size_max)
                .max();
            heads_max(&system) + SPAN_MAX + span.unwrap_or(0)
        }
        _ => 0,
    }
}

fn heads_max(system: &System) -> usize {
    let heads = system.services.iter();
    heads
        .map(|head| head.resource.len() + head.scope.len() + 2 * HEAD_MAX)
        .sum()
}

pub(crate) fn writer(recipe: &Recipe<'_>) -> Box<dyn Writer> {
    let (services, roots, error_rate) = match recipe.format {
        PayloadFormat::OpentelemetryTraces(plan) => {
            (plan.services(), plan.roots(), plan.error_rate())
        }
        _ => (&[][..], Vec::new(), 0.0),
    };
    let system = System::new(services, &roots);
    let mut random = Random::new(recipe.seed.derive("values", 0));
    Box::new(OtlpTraces {
        time: EventTime::new(&mut random),
        random,
        fails: Chance::new(error_rate),
        texts: Pool::new(
            recipe.common.derive("texts", 0),
            ALPHABET,
            16,
            system.text_max,
        ),
        spans_room: recipe.event_max - heads_max(&system),
        system,
        spans: Vec::new(),
        calls: Vec::new(),
        room: vec![0; recipe.event_max].into_boxed_slice(),
    })
}

#[derive(Debug)]
struct OtlpTraces {
    system: System,
    random: Random,
    time: EventTime,
    fails: Chance,
    texts: Pool,
    /// Spans of the trace being written.
    spans: Vec<OtlpSpan>,
    /// Calls that are still to be made, the next one last.
    calls: Vec<Pending>,
    spans_room: usize,
    room: Box<[u8]>,
}

/// One span, as far as it differs from others of its operation.
#[derive(Clone, Copy, Debug)]
struct OtlpSpan {
    service: usize,
    operation: usize,
    /// Of the call that it belongs to; none at the root.
    call: Option<(usize, usize)>,
    kind: u64,
    identity: u64,
    parent: u64,
    start: u64,
    end: u64,
    has_failed: bool,
}

/// One call that an operation makes.
#[derive(Clone, Copy, Debug)]
struct Pending {
    /// The operation calling, and which of its calls it is.
    caller: usize,
    call: usize,
    /// The span of the operation calling.
    parent: u64,
    depth: usize,
    start: u64,
    /// Until when it takes.
    end: u64,
}

impl Writer for OtlpTraces {
    fn next(&mut self) -> Option<Event<'_>> {
        self.walk();
        let mut random = self.random.clone();
        let (high, low) = (
            random.word().to_le_bytes(),
            (random.word() | 1).to_le_bytes(),
        );
        let mut out = Reverse::new(&mut self.room);
        for (service, head) in self.system.services.iter().enumerate().rev() {
            let start = out.len();
            for span in self
                .spans
                .iter()
                .rev()
                .filter(|span| span.service == service)
            {
                let span_start = out.len();
                write_span(&mut out, &mut random, span, &self.system, &self.texts);
                out.raw(&low);
                out.raw(&high);
                out.wrap(1, out.len() - 16);
                out.wrap(2, span_start);
            }
            if out.len() > start {
                out.raw(&head.scope);
                out.wrap(2, start);
                out.raw(&head.resource);
                out.wrap(1, start);
            }
        }
        self.random = random;
        Some(Event {
            bytes: out.finish(),
            slot: None,
            units: count(self.spans.len()),
            joint: Joint::Frame,
        })
    }
}

impl OtlpTraces {
    /// Draws the spans of one trace.
    fn walk(&mut self) {
        let mut random = self.random.clone();
        self.spans.clear();
        let mut room = self.spans_room;
        let roots = &self.system.roots;
        let root = roots[index(share(random.word(), roots.len() as u64))];
        let start = self.time.advance(&mut random);
        // Between 1 and 257 milliseconds.
        let end = start + 1_000_000 + (u64::from(random.bits(16)) << 12);
        let identity = random.word() | 1;
        room -= SPAN_MAX + self.system.operations[root].size_max;
        self.spans.push(OtlpSpan {
            service: self.system.operations[root].service,
            operation: root,
            call: None,
            kind: SERVER,
            identity,
            parent: 0,
            start,
            end,
            has_failed: self.fails.holds(random.word()),
        });
        self.plan_calls(&mut random, root, identity, 1, (start, end));
        while let Some(pending) = self.calls.pop() {
            let called = self.system.operations[pending.caller].calls[pending.call].operation;
            let size = 2 * (SPAN_MAX + self.system.operations[called].size_max);
            if size > room || self.spans.len() + 2 > SPANS_MAX {
                self.calls.clear();
                break;
            }
            room -= size;
            self.make_call(&mut random, &pending, called);
        }
        self.random = random;
    }

    /// Two spans: the caller's, and within it that of the operation called.
    fn make_call(&mut self, random: &mut Random, pending: &Pending, called: usize) {
        let (client, server) = (random.word() | 1, random.word() | 1);
        let sixteenth = (pending.end - pending.start) / 16;
        let inner = (pending.start + sixteenth, pending.end - sixteenth);
        let has_failed = self.fails.holds(random.word());
        let call = Some((pending.caller, pending.call));
        let outer = OtlpSpan {
            service: self.system.operations[pending.caller].service,
            operation: called,
            call,
            kind: CLIENT,
            identity: client,
            parent: pending.parent,
            start: pending.start,
            end: pending.end,
            has_failed,
        };
        self.spans.push(outer);
        self.spans.push(OtlpSpan {
            service: self.system.operations[called].service,
            kind: SERVER,
            identity: server,
            parent: client,
            start: inner.0,
            end: inner.1,
            has_failed: has_failed || self.fails.holds(random.word()),
            ..outer
        });
        if pending.depth < TRACE_DEPTH_MAX {
            self.plan_calls(random, called, server, pending.depth + 1, inner);
        }
    }

    /// Draws which calls an operation makes, one after the other within its
    /// time.
    fn plan_calls(
        &mut self,
        random: &mut Random,
        caller: usize,
        parent: u64,
        depth: usize,
        (start, end): (u64, u64),
    ) {
        let first = self.calls.len();
        for (call, made) in self.system.operations[caller].calls.iter().enumerate() {
            if !made.rate.holds(random.word()) {
                continue;
            }
            let times = 1 + share(random.word(), u64::from(made.repeat_max));
            for _ in 0..times.min(SPANS_MAX as u64) {
                self.calls.push(Pending {
                    caller,
                    call,
                    parent,
                    depth,
                    start,
                    end,
                });
            }
        }
        let made = &mut self.calls[first..];
        let step = (end - start) / (made.len() as u64 + 1);
        let mut at = start + step / 2;
        for pending in made.iter_mut() {
            (pending.start, pending.end) = (at, at + step - step / 8);
            at += step;
        }
        made.reverse();
    }
}

/// Writes all of `span` but its trace.
#[inline(always)]
fn write_span(
    out: &mut Reverse<'_>,
    random: &mut Random,
    span: &OtlpSpan,
    system: &System,
    texts: &Pool,
) {
    let operation: &Operation = &system.operations[span.operation];
    if span.has_failed {
        let start = out.len();
        out.number(3, FAILED);
        out.wrap(15, start);
    }
    if let Some((caller, call)) = span.call {
        for attribute in &system.operations[caller].calls[call].attributes {
            write_attribute(out, random, attribute, span.has_failed, texts);
        }
    }
    for attribute in &operation.attributes {
        write_attribute(out, random, attribute, span.has_failed, texts);
    }
    out.fixed_64(8, span.end);
    out.fixed_64(7, span.start);
    out.number(6, span.kind);
    out.bytes(5, &operation.name);
    if span.parent != 0 {
        out.bytes(4, &span.parent.to_le_bytes());
    }
    out.bytes(2, &span.identity.to_le_bytes());
}

#[inline(always)]
fn write_attribute(
    out: &mut Reverse<'_>,
    random: &mut Random,
    attribute: &Choice,
    has_failed: bool,
    texts: &Pool,
) {
    match attribute {
        Choice::Ready { fine, failed } => {
            let choices = if has_failed { failed } else { fine };
            out.raw(&choices[index(share(random.word(), choices.len() as u64))]);
        }
        Choice::Text { key, length } => {
            let start = out.len();
            let piece = texts.piece(random.word(), *length);
            out.raw(piece.bytes());
            out.wrap(1, start);
            out.wrap(2, start);
            out.bytes(1, key);
            out.wrap(9, start);
        }
        Choice::Integer { key, low, width } => {
            let start = out.len();
            let word = random.word();
            let offset = width
                .checked_add(1)
                .map_or(word, |count| share(word, count));
            out.number(3, low.wrapping_add(offset.cast_signed()).cast_unsigned());
            out.wrap(2, start);
            out.bytes(1, key);
            out.wrap(9, start);
        }
    }
}
