//! OpenTelemetry metrics: `ExportMetricsServiceRequest` in protobuf, one data
//! point a metric. Each metric is one worker's, and its times go on from set to set,
//! since stores take the points of a series in the order of their times only.

use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::OtlpMetricsPlan;
use stillwell_units::{Nanos, Seed, float_from_u64};

use super::tree::{Heads, Item, Texts, Tree, floor as tree_floor};
use super::{Leaf, Walk};
use crate::contract::{Recipe, Writer};
use crate::event_time::EventTime;
use crate::mix::{Draw, Weights, key};
use crate::protobuf::{Reverse, push_bytes};
use crate::random::Random;

/// Bytes of a metric at most, without what it says of itself and attributes.
const POINT_MAX: usize = 384;

/// Bytes of what a metric says of itself at most.
const HEAD_MAX: usize = 160;

/// Kinds, in the order of their weights: the bytes before a name, and the field of the data in a
/// metric.
const KINDS: [(&[u8], u32); 8] = [
    (b"gauge.", 5),
    (b"sum_delta.", 7),
    (b"sum_cumulative.", 7),
    (b"histogram_delta.", 9),
    (b"histogram_cumulative.", 9),
    (b"exp_histogram_delta.", 10),
    (b"exp_histogram_cumulative.", 10),
    (b"summary.", 11),
];
const GAUGE: usize = 0;
const SUM: usize = 1;
const HISTOGRAM: usize = 3;
const EXPONENTIAL: usize = 5;
const SUMMARY: usize = 7;

/// Upper ends of a histogram's buckets.
const BOUNDS: [f64; 9] = [1.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0];

/// Buckets of an exponential histogram.
const EXPONENTIAL_BUCKETS: usize = 12;

/// Maximum growth of one bucket from event to event.
const STEP_MAX: u64 = 15;

const UNITS: [&[u8]; 8] = [
    b"1",
    b"By",
    b"ms",
    b"s",
    b"{request}",
    b"Cel",
    b"%",
    b"{packet}",
];

/// Bytes into which a resource with one metric always fits.
pub(crate) fn floor(format: &PayloadFormat) -> usize {
    match format {
        PayloadFormat::OpentelemetryMetrics(plan) => {
            tree_floor(&plan.contexts, POINT_MAX + HEAD_MAX)
        }
        _ => 0,
    }
}

pub(crate) fn writer(recipe: &Recipe<'_>) -> Box<dyn Writer> {
    let plan = match recipe.format {
        PayloadFormat::OpentelemetryMetrics(plan) => *plan,
        _ => OtlpMetricsPlan::default(),
    };
    let common = &recipe.common;
    let mut tree = Tree::new(&plan.contexts, common, &Metrics::new(&plan, common));
    tree.keep(recipe.part);
    let points = Points::new(&plan, recipe);
    Box::new(Walk::new(tree, points, recipe))
}

/// Name, description and unit of each metric.
struct Metrics {
    texts: Texts,
    kinds: Weights,
    key: u64,
}

impl Metrics {
    fn new(plan: &OtlpMetricsPlan, seed: &Seed) -> Self {
        let weights = plan.metric_weights;
        Self {
            texts: Texts::new(
                &seed.derive("metrics", 0),
                u64::from(plan.contexts.contexts.high),
            ),
            kinds: Weights::new(&[
                weights.gauge,
                weights.sum_delta,
                weights.sum_cumulative,
                weights.histogram_delta,
                weights.histogram_cumulative,
                weights.exp_histogram_delta,
                weights.exp_histogram_cumulative,
                weights.summary,
            ]),
            key: key(&seed.derive("kinds", 0)),
        }
    }
}

impl Heads for Metrics {
    fn head(&self, number: u64, head: &mut Vec<u8>) -> usize {
        let mut draw = Draw::new(self.key, number);
        let kind = self.kinds.choose(draw.word());
        push_bytes(head, 1, &self.texts.name(KINDS[kind].0, number));
        push_bytes(head, 2, b"A value that a simulated service keeps.");
        push_bytes(head, 3, UNITS[crate::mix::index(draw.below(8))]);
        kind
    }

    fn attributes_field(&self, kind: usize) -> u32 {
        match kind {
            HISTOGRAM | 4 => 9,
            EXPONENTIAL | 6 => 1,
            _ => 7,
        }
    }
}

/// Draws values. Counts since the beginning grow with `ticks`, at a pace of each metric. A count
/// that would pass its limit begins again, like that of a restarted service.
#[derive(Debug)]
struct Points {
    random: Random,
    time: EventTime,
    /// Of this event and the one before.
    now: u64,
    before: u64,
    /// When counting began.
    began: u64,
    ticks: u64,
    ticks_max: u64,
    /// Most in one bucket of what is counted since the last time.
    bucket_max: u64,
    /// Maximum growth of a bucket with each tick.
    step_max: u64,
    zero_max: u64,
}

/// The counts of a histogram.
struct Counted<const N: usize> {
    counts: [u64; N],
    total: u64,
}

impl Points {
    fn new(plan: &OtlpMetricsPlan, recipe: &Recipe<'_>) -> Self {
        let time = EventTime::in_order(recipe);
        let limits = plan.histogram_count_limits;
        // The largest histogram has its buckets and one around zero.
        let bucket_max = limits
            .bucket
            .min(limits.total / (EXPONENTIAL_BUCKETS as u64 + 1));
        let step_max = bucket_max.min(STEP_MAX);
        Self {
            random: Random::new(recipe.seed.derive("values", 0)),
            time,
            now: time.nanos,
            before: time.nanos,
            began: time.nanos,
            ticks: 0,
            ticks_max: bucket_max.checked_div(step_max).unwrap_or(u64::MAX).max(1),
            bucket_max: bucket_max.min(255),
            step_max,
            zero_max: limits.zero.min(bucket_max),
        }
    }

    /// Writes the times of a data point.
    #[inline(always)]
    fn times(&self, out: &mut Reverse<'_>, is_cumulative: bool) {
        out.fixed_64(3, self.now);
        out.fixed_64(
            2,
            if is_cumulative {
                self.began
            } else {
                self.before
            },
        );
    }

    #[inline(always)]
    fn number(&self, out: &mut Reverse<'_>, random: &mut Random, kind: usize, number: usize) {
        let is_cumulative = kind == SUM + 1;
        let value = match kind {
            GAUGE => random.word() >> 20,
            _ if is_cumulative => self.ticks * (1 + number as u64 % 97),
            _ => u64::from(random.bits(10)),
        };
        if number.is_multiple_of(2) {
            out.fixed_64(6, value);
        } else {
            // Halves and quarters are exact, and so keep growing.
            out.double(4, float_from_u64(value) / 4.0);
        }
        self.times(out, is_cumulative);
    }

    /// Draws the counts of `N` buckets.
    #[inline(always)]
    fn count<const N: usize>(
        &self,
        random: &mut Random,
        number: usize,
        is_cumulative: bool,
    ) -> Counted<N> {
        let mut counts = [0; N];
        let mut total = 0;
        let mut paces = Draw::new(number as u64, 0).word();
        let mut drawn = random.word();
        for (position, count) in counts.iter_mut().enumerate() {
            *count = if is_cumulative {
                let pace = (paces & 15).min(self.step_max);
                paces >>= 4;
                pace * self.ticks
            } else {
                if position == 8 {
                    drawn = random.word();
                }
                let count = (drawn & 255).min(self.bucket_max);
                drawn >>= 8;
                count
            };
            total += *count;
        }
        Counted { counts, total }
    }

    fn histogram(
        &self,
        out: &mut Reverse<'_>,
        random: &mut Random,
        number: usize,
        is_cumulative: bool,
    ) {
        let counted: Counted<{ BOUNDS.len() + 1 }> = self.count(random, number, is_cumulative);
        let start = out.len();
        for bound in BOUNDS.iter().rev() {
            out.raw_64(bound.to_bits());
        }
        out.wrap(7, start);
        let start = out.len();
        for count in counted.counts.iter().rev() {
            out.raw_64(*count);
        }
        out.wrap(6, start);
        let sums = counted.counts.iter().zip(BOUNDS.iter().chain([&2000.0]));
        let sum: f64 = sums
            .map(|(count, bound)| float_from_u64(*count) * bound / 2.0)
            .sum();
        out.double(5, sum);
        out.fixed_64(4, counted.total);
        self.times(out, is_cumulative);
    }

    fn exponential(
        &self,
        out: &mut Reverse<'_>,
        random: &mut Random,
        number: usize,
        is_cumulative: bool,
    ) {
        // 3, and so the base is the eighth root of 2, and -4, both in zigzag form.
        const SCALE: u64 = 6;
        const OFFSET: u64 = 7;
        let counted: Counted<EXPONENTIAL_BUCKETS> = self.count(random, number, is_cumulative);
        let zero = match is_cumulative {
            true => self.ticks.min(self.zero_max),
            false => u64::from(random.bits(4)).min(self.zero_max),
        };
        let start = out.len();
        for count in counted.counts.iter().rev() {
            out.varint(*count);
        }
        out.wrap(2, start);
        out.number(1, OFFSET);
        out.wrap(8, start);
        out.fixed_64(7, zero);
        out.number(6, SCALE);
        out.double(5, float_from_u64(counted.total) * 1.25);
        out.fixed_64(4, counted.total + zero);
        self.times(out, is_cumulative);
    }

    fn summary(&self, out: &mut Reverse<'_>, random: &mut Random) {
        let base = 1.0 + f64::from(random.bits(10)) / 8.0;
        for (quantile, factor) in [(0.99, 4.0), (0.9, 2.5), (0.5, 1.0)] {
            let start = out.len();
            out.double(2, base * factor);
            out.double(1, quantile);
            out.wrap(6, start);
        }
        let count = 1 + u64::from(random.bits(12));
        out.double(5, float_from_u64(count) * base);
        out.fixed_64(4, count);
        self.times(out, false);
    }
}

impl Leaf for Points {
    fn advance(&mut self) {
        self.before = self.now;
        // Stores distinguish milliseconds.
        self.time.advance_milliseconds(&mut self.random);
        self.now = self.time.nanos;
        self.ticks += 1;
        if self.ticks > self.ticks_max {
            (self.ticks, self.began) = (1, self.before);
        }
    }

    #[inline(always)]
    fn bound(&self, item: &Item) -> usize {
        POINT_MAX + item.head.len + item.attributes.len
    }

    #[inline(always)]
    fn write(
        &mut self,
        out: &mut Reverse<'_>,
        tree: &Tree,
        number: usize,
        _first: bool,
    ) -> Option<usize> {
        let item = &tree.items[number];
        let mut random = self.random.clone();
        let start = out.len();
        let is_cumulative = matches!(item.kind, 2 | 4 | 6);
        if matches!(item.kind, SUM | 2) {
            out.number(3, 1);
        }
        if item.kind != GAUGE && item.kind != SUMMARY {
            out.number(2, if is_cumulative { 2 } else { 1 });
        }
        let point_start = out.len();
        let attributes = tree.text(item.attributes);
        let is_first_field = matches!(item.kind, EXPONENTIAL | 6);
        if !is_first_field {
            out.raw(attributes);
        }
        match item.kind {
            HISTOGRAM | 4 => self.histogram(out, &mut random, number, is_cumulative),
            EXPONENTIAL | 6 => self.exponential(out, &mut random, number, is_cumulative),
            SUMMARY => self.summary(out, &mut random),
            kind => self.number(out, &mut random, kind, number),
        }
        if is_first_field {
            out.raw(attributes);
        }
        out.wrap(1, point_start);
        out.wrap(KINDS[item.kind].1, start);
        out.raw(tree.text(item.head));
        out.wrap(2, start);
        self.random = random;
        None
    }

    fn time(&self) -> Option<Nanos> {
        Some(Nanos::new(self.time.nanos))
    }
}
