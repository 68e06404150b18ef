//! Metrics, events and service checks as DogStatsD reads them, one a line.
//!
//! `NAME:VALUE[:VALUE]|TYPE[|@RATE][|#TAGS][|c:CONTAINER][|e:DATA][|card:CARDINALITY][|TTIME]`,
//! `_e{TITLE LENGTH,TEXT LENGTH}:TITLE|TEXT|d:TIME|h:HOST|p:PRIORITY|t:TYPE|#TAGS`,
//! `_sc|NAME|STATUS|d:TIME|h:HOST|#TAGS|m:MESSAGE`

use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::{Between, DogstatsdPlan};

use crate::contract::{Event, Joint, Recipe, Writer};
use crate::mix::{Chance, Draw, Order, Weights, index, key, share};
use crate::names::Names;
use crate::pool::{Pool, SLACK, TextWriter};
use crate::random::Random;

mod contexts;
mod tags;

use contexts::{Context, MetricContexts, thousandths};

/// The largest text of an event or message of a service check.
const TEXT_MAX: usize = 128;

/// Characters of texts.
const TEXT: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 .";

/// Names of metric types, in the order of their weights.
const TYPES: [&[u8; 4]; 6] = [
    b"|c\0\0", b"|g\0\0", b"|ms\0", b"|d\0\0", b"|s\0\0", b"|h\0\0",
];
const GAUGE: usize = 1;
const TIMER: usize = 2;
const SET: usize = 4;

/// 2021-01-01T00:00:00Z, in seconds since 1970.
const EARLIEST_SECONDS: u64 = 1_609_459_200;

/// Bytes into which a message of `format` always fits.
pub(crate) fn floor(format: &PayloadFormat) -> usize {
    match format {
        PayloadFormat::Dogstatsd(plan) => contexts::floor(plan),
        _ => 0,
    }
}

pub(crate) fn writer(recipe: &Recipe<'_>) -> Box<dyn Writer> {
    let plan = match recipe.format {
        PayloadFormat::Dogstatsd(plan) => DogstatsdPlan::clone(plan),
        _ => DogstatsdPlan::default(),
    };
    let common = &recipe.common;
    let contexts = MetricContexts::new(&plan, &common.derive("contexts", 0), recipe.event_max);
    let mut draw = Draw::new(key(&common.derive("titles", 0)), 0);
    let titles = draw.between(plan.service_check_names);
    let titles = Names::drawn(&common.derive("titles", 0), plan.name_length, titles);
    let kinds = plan.kind_weights;
    Box::new(Dogstatsd {
        order: contexts.order(&recipe.seed.derive("order", 0)),
        contexts,
        titles,
        hosts: Names::drawn(&common.derive("hosts", 0), Between::new(4, 24), 256),
        texts: Pool::new(common.derive("texts", 0), TEXT, 14, TEXT_MAX),
        random: Random::new(recipe.seed.derive("values", 0)),
        room: vec![
            0;
            recipe.event_max + TEXT_MAX.max(usize::from(plan.tag_length.high)) + ROOM_MORE
        ]
        .into_boxed_slice(),
        event_max: recipe.event_max,
        kinds: Weights::new(&[kinds.metric, kinds.event, kinds.service_check]),
        values: Values::new(&plan),
        times: plan.timestamp.range,
        has_time: Chance::new(plan.timestamp.probability),
    })
}

/// Maximum excess over the largest message of a piece that does not fit.
const ROOM_MORE: usize = 16_384 + SLACK;

#[derive(Debug)]
struct Dogstatsd {
    order: Order,
    contexts: MetricContexts,
    titles: Names,
    hosts: Names,
    texts: Pool,
    random: Random,
    room: Box<[u8]>,
    event_max: usize,
    kinds: Weights,
    values: Values,
    times: Between<u32>,
    has_time: Chance,
}

impl Writer for Dogstatsd {
    fn next(&mut self) -> Option<Event<'_>> {
        let mut random = self.random.clone();
        let mut out = TextWriter::new(&mut self.room);
        match self.kinds.choose(random.word()) {
            0 => {
                let context = self.contexts.context(self.order.next());
                let (contexts, values) = (&self.contexts, &self.values);
                let time = self.has_time.holds(random.word()).then_some(self.times);
                metric(
                    &mut out,
                    &mut random,
                    contexts,
                    &context,
                    values,
                    time,
                    self.event_max,
                );
            }
            kind => {
                let kinds = OtherKinds {
                    contexts: &self.contexts,
                    titles: &self.titles,
                    hosts: &self.hosts,
                    texts: &self.texts,
                    event_max: self.event_max - 1,
                };
                if kind == 1 {
                    kinds.event(&mut out, &mut random);
                } else {
                    kinds.service_check(&mut out, &mut random);
                }
            }
        }
        out.fixed(b"\n");
        self.random = random;
        Some(Event {
            bytes: out.finish(),
            slot: None,
            units: 1,
            joint: Joint::Frame,
        })
    }
}

/// One metric of `context`.
#[inline(always)]
fn metric(
    out: &mut TextWriter<'_>,
    random: &mut Random,
    contexts: &MetricContexts,
    context: &Context,
    values: &Values,
    time: Option<Between<u32>>,
    event_max: usize,
) {
    contexts.write_name(out, context);
    values.write_one(out, random, context.kind);
    let values_end = out.len();
    let kind = TYPES[context.kind];
    out.fixed(kind);
    out.cut(out.len() - if context.kind == TIMER { 1 } else { 2 });
    if context.kind != GAUGE && context.kind != SET {
        values.write_rate(out, random);
    }
    contexts.write_tags(out, context);
    contexts.write_origins(out, context);
    if let Some(range) = time
        && context.kind <= GAUGE
    {
        out.fixed(b"|T");
        let range = Between::new(u64::from(range.low), u64::from(range.high));
        out.unsigned(random.between(range.low, range.high));
    }
    if context.kind != SET && values.are_many(random) {
        // What is behind the value moves back by what the others take.
        let room = (event_max - 1).saturating_sub(out.len());
        values.write_more(out, random, values_end, room);
    }
}

/// The distribution of values.
#[derive(Debug)]
struct Values {
    low: i64,
    /// `high` - `low`.
    width: u64,
    has_decimals: Chance,
    is_many: Chance,
    count: Between<u16>,
    has_rate: Chance,
    /// In thousandths.
    rates: Between<u64>,
}

impl Values {
    fn new(plan: &DogstatsdPlan) -> Self {
        let range = plan.value.range;
        let rates = plan.sampling_range;
        Self {
            low: range.low,
            width: range.high.wrapping_sub(range.low).cast_unsigned(),
            has_decimals: Chance::new(plan.value.float_probability),
            is_many: Chance::new(plan.multivalue_probability),
            count: plan.multivalue_count,
            has_rate: Chance::new(plan.sampling_probability),
            rates: Between::new(thousandths(rates.low), thousandths(rates.high)),
        }
    }

    /// Writes a colon and a value within the range.
    #[inline(always)]
    fn write_one(&self, out: &mut TextWriter<'_>, random: &mut Random, kind: usize) {
        let word = random.word();
        let offset = match self.width.checked_add(1) {
            Some(count) => share(word, count),
            None => word,
        };
        let value = self.low.wrapping_add(offset.cast_signed());
        out.fixed(b":");
        out.decimal(value);
        // Decimals lead away from zero and must not lead out of the range.
        let is_inside = offset != self.width && (value >= 0 || offset != 0);
        if kind != SET && is_inside && self.has_decimals.holds(random.word()) {
            out.fixed(b".");
            out.three_digits(random.below(1000));
            out.three_digits(random.below(1000));
        }
    }

    #[inline(always)]
    fn are_many(&self, random: &mut Random) -> bool {
        self.is_many.holds(random.word())
    }

    /// Writes further values behind the first, as many as drawn and as have
    /// `room`.
    #[cold]
    fn write_more(
        &self,
        out: &mut TextWriter<'_>,
        random: &mut Random,
        values_end: usize,
        room: usize,
    ) {
        let (low, high) = (u64::from(self.count.low), u64::from(self.count.high));
        let count = random.between(low, high).max(1);
        let mut start = out.len();
        let tail = start;
        for _ in 1..count {
            self.write_one(out, random, 0);
            if out.len() - tail > room {
                break;
            }
            start = out.len();
        }
        out.cut(start);
        out.rotate(values_end, tail);
    }

    /// Writes the sampling rate, where there is one.
    #[inline(always)]
    fn write_rate(&self, out: &mut TextWriter<'_>, random: &mut Random) {
        if !self.has_rate.holds(random.word()) {
            return;
        }
        let rate = random.between(self.rates.low, self.rates.high);
        match u16::try_from(rate) {
            Ok(rate) if rate < 1000 => {
                out.fixed(b"|@0.");
                out.three_digits(rate);
            }
            _ => out.fixed(b"|@1"),
        }
    }
}

/// Writes what is not a metric.
struct OtherKinds<'w> {
    contexts: &'w MetricContexts,
    titles: &'w Names,
    hosts: &'w Names,
    texts: &'w Pool,
    /// The largest message, without its line feed.
    event_max: usize,
}

impl OtherKinds<'_> {
    fn event(&self, out: &mut TextWriter<'_>, random: &mut Random) {
        const PRIORITIES: [&[u8]; 2] = [b"|p:normal", b"|p:low"];
        const ALERTS: [&[u8]; 4] = [b"|t:error", b"|t:warning", b"|t:info", b"|t:success"];
        // The title is written once to learn its length.
        let title = share(random.word(), self.titles.count());
        self.titles.write(out, title);
        let title_len = out.len();
        out.cut(0);
        let room = self
            .event_max
            .saturating_sub(title_len + 64)
            .clamp(1, TEXT_MAX);
        let text_len = index(random.between(1, room as u64));
        out.fixed(b"_e{");
        out.unsigned(title_len as u64);
        out.fixed(b",");
        out.unsigned(text_len as u64);
        out.fixed(b"}:");
        self.titles.write(out, title);
        out.fixed(b"|");
        out.piece(self.texts.piece(random.word(), text_len));
        self.time_and_host(out, random);
        self.optional(out, PRIORITIES[usize::from(random.bits(1))]);
        self.optional(out, ALERTS[usize::from(random.bits(2))]);
        self.tags(out, random);
    }

    fn service_check(&self, out: &mut TextWriter<'_>, random: &mut Random) {
        out.fixed(b"_sc|");
        self.titles
            .write(out, share(random.word(), self.titles.count()));
        out.fixed(b"|");
        out.unsigned(u64::from(random.bits(2)));
        self.time_and_host(out, random);
        self.tags(out, random);
        let before = out.len();
        out.fixed(b"|m:");
        let text_len = 1 + usize::from(random.bits(7));
        out.piece(self.texts.piece(random.word(), text_len));
        if out.len() > self.event_max {
            out.cut(before);
        }
    }

    fn time_and_host(&self, out: &mut TextWriter<'_>, random: &mut Random) {
        let before = out.len();
        out.fixed(b"|d:");
        out.unsigned(EARLIEST_SECONDS + random.word() % (1 << 28));
        out.fixed(b"|h:");
        self.hosts.write(out, random.word() % self.hosts.count());
        if out.len() > self.event_max {
            out.cut(before);
        }
    }

    fn optional(&self, out: &mut TextWriter<'_>, text: &[u8]) {
        if out.len() + text.len() <= self.event_max {
            out.text(text);
        }
    }

    /// As many tags as a metric may have, any of those that metrics have.
    fn tags(&self, out: &mut TextWriter<'_>, random: &mut Random) {
        let count = random.between(self.contexts.tag_counts.low, self.contexts.tag_counts.high);
        let mark: &[u8; 2] = b"|#";
        let mut end = out.len();
        for position in 0..count {
            match position {
                0 => out.fixed(mark),
                _ => out.fixed(b","),
            }
            self.contexts.tags.write_any(out, random.word());
            if out.len() > self.event_max {
                break;
            }
            end = out.len();
        }
        out.cut(end);
    }
}
