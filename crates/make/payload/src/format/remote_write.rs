//! Prometheus remote write 1.0: `WriteRequest` in protobuf, compressed with
//! Snappy. An event is one request, and a block has one.
//!
//! A store takes the samples of a series in the order of their times only. So each
//! series is one worker's, which sends samples of as many of its series as the set has
//! room for at one time before it goes on to the next, and so from set to set.

use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::{Between, RemoteWritePlan};
use stillwell_units::{Nanos, Seed, float_from_u64};

use crate::Part;
use crate::contract::{Event, Joint, Recipe, Writer};
use crate::event_time::EventTime;
use crate::mix::{Draw, Order, index, key, share};
use crate::names::Names;
use crate::pool::{Pool, TextWriter};
use crate::protobuf::{Reverse, push_bytes};
use crate::random::Random;

/// Characters of label values.
const ALPHABET: &[u8; 66] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-/";

/// Characters of drawn label values at most.
const VALUE_MAX: u64 = 24;

/// Bytes of a label at most.
const LABEL_MAX: usize = 72;

/// Bytes of a sample and the heads around it at most.
const SAMPLE_MAX: usize = 40;

/// Labels that every series has: its name, `instance` and `job`.
const LABELS_ALWAYS: u64 = 3;

/// Bytes into which a request of one sample always fits.
pub(crate) fn floor(format: &PayloadFormat) -> usize {
    match format {
        PayloadFormat::RemoteWrite(plan) => {
            let labels = index(LABELS_ALWAYS) + usize::from(plan.labels_per_series.high);
            snap::raw::max_compress_len(labels * LABEL_MAX + SAMPLE_MAX)
        }
        _ => 0,
    }
}

pub(crate) fn writer(recipe: &Recipe<'_>) -> Box<dyn Writer> {
    let plan = match recipe.format {
        PayloadFormat::RemoteWrite(plan) => *plan,
        _ => RemoteWritePlan::default(),
    };
    let series = RemoteWriteSeries::new(&plan, &recipe.common);
    // The largest request that surely fits when compressed: 32 bytes and a
    // sixth may be added.
    let plain_max = recipe.event_max.saturating_sub(33) / 7 * 6;
    let count = recipe.part.count(series.count());
    Box::new(RemoteWrite {
        time: EventTime::in_order(recipe),
        random: Random::new(recipe.seed.derive("values", 0)),
        order: Order::new(count, &recipe.seed.derive("order", 0)),
        part: recipe.part,
        series,
        samples: plan.samples_per_request,
        plain: vec![0; plain_max].into_boxed_slice(),
        compressed: vec![0; snap::raw::max_compress_len(plain_max)].into_boxed_slice(),
        encoder: Compressor(snap::raw::Encoder::new()),
    })
}

#[derive(Debug)]
struct RemoteWrite {
    random: Random,
    time: EventTime,
    order: Order,
    part: Part,
    series: RemoteWriteSeries,
    samples: Between<u32>,
    plain: Box<[u8]>,
    compressed: Box<[u8]>,
    encoder: Compressor,
}

struct Compressor(snap::raw::Encoder);

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}

impl Writer for RemoteWrite {
    fn next(&mut self) -> Option<Event<'_>> {
        let mut random = self.random.clone();
        let mut out = Reverse::new(&mut self.plain);
        let (low, high) = (u64::from(self.samples.low), u64::from(self.samples.high));
        let count = self.series.count();
        let wanted = random.between(low, high).clamp(1, count);
        if self.order.is_between() {
            self.time.advance_milliseconds(&mut random);
        }
        let milliseconds = self.time.milliseconds();
        let mut units = 0;
        while u64::from(units) < wanted && out.left() >= self.series.size_max {
            let number = self.part.number(self.order.next(), count);
            let start = out.len();
            out.number(2, milliseconds);
            // Few digits, and half of all samples whole: values repeat in part.
            let value = float_from_u64(u64::from(random.bits(14)));
            out.double(
                1,
                if number.is_multiple_of(2) {
                    value
                } else {
                    value / 128.0
                },
            );
            out.wrap(2, start);
            out.raw(self.series.labels(number));
            out.wrap(1, start);
            units += 1;
            // No series twice in one request, and one time in each.
            if self.order.is_between() {
                break;
            }
        }
        let plain = out.finish();
        self.random = random;
        // The buffer has the size that the encoder requires.
        let len = self.encoder.0.compress(plain, &mut self.compressed).ok()?;
        Some(Event {
            bytes: &self.compressed[..len],
            slot: None,
            units,
            joint: Joint::Break,
        })
    }

    fn time(&self) -> Option<Nanos> {
        Some(Nanos::new(self.time.nanos))
    }
}

/// The labels of all series, sorted by name as the protocol wants them.
#[derive(Debug)]
struct RemoteWriteSeries {
    texts: Vec<u8>,
    ends: Vec<usize>,
    /// Bytes of the longest with its sample.
    size_max: usize,
}

impl RemoteWriteSeries {
    fn new(plan: &RemoteWritePlan, seed: &Seed) -> Self {
        let mut draw = Draw::new(key(&seed.derive("series", 0)), 0);
        let count = draw.between(plan.series);
        // Some tens of series share a name, as those of one metric do.
        let names = Names::drawn(
            &seed.derive("names", 0),
            Between::new(8, 40),
            count.div_ceil(32),
        );
        let pool = Pool::new(seed.derive("texts", 0), ALPHABET, 16, index(VALUE_MAX));
        let mut series = Self {
            texts: Vec::new(),
            ends: vec![0],
            size_max: 0,
        };
        for number in 0..count {
            let start = series.texts.len();
            series.push(&names, &pool, &mut draw, plan.labels_per_series, number);
            series.ends.push(series.texts.len());
            series.size_max = series.size_max.max(series.texts.len() - start + SAMPLE_MAX);
        }
        series
    }

    fn push(
        &mut self,
        names: &Names,
        pool: &Pool,
        draw: &mut Draw,
        labels: Between<u8>,
        number: u64,
    ) {
        let mut room = [0; 128];
        let mut text_writer = TextWriter::new(&mut room);
        names.write(&mut text_writer, number / 32);
        let name: Vec<u8> = text_writer
            .finish()
            .iter()
            .map(|byte| match byte {
                b'.' => b'_',
                byte => *byte,
            })
            .collect();
        self.push_label(b"__name__", &name);
        let instance = format!("10.0.{}.{}:9100", share(number << 48, 256), number % 32);
        self.push_label(b"instance", instance.as_bytes());
        self.push_label(
            b"job",
            [&b"api"[..], b"batch", b"edge", b"store"][index(number / 32 % 4)],
        );
        for position in 0..draw.between(labels) {
            let mut room = [0; 128];
            let mut text_writer = TextWriter::new(&mut room);
            let len = 1 + draw.below(VALUE_MAX);
            text_writer.piece(pool.piece(draw.word(), index(len)));
            let value = text_writer.finish().to_vec();
            // Behind `job` in the order of names, and in order among themselves.
            self.push_label(format!("label_{position:03}").as_bytes(), &value);
        }
    }

    fn push_label(&mut self, name: &[u8], value: &[u8]) {
        let mut label = Vec::new();
        push_bytes(&mut label, 1, name);
        push_bytes(&mut label, 2, value);
        push_bytes(&mut self.texts, 1, &label);
    }

    fn count(&self) -> u64 {
        self.ends.len() as u64 - 1
    }

    #[inline(always)]
    fn labels(&self, number: u64) -> &[u8] {
        let number = index(number);
        &self.texts[self.ends[number]..self.ends[number + 1]]
    }
}
