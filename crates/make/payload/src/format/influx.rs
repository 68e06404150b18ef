//! Points in InfluxDB's line protocol.

use std::fmt;

use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::InfluxPlan;
use stillwell_units::Seed;

use crate::SlotUse;
use crate::contract::{Event, Recipe, Writer};
use crate::random::Random;
use crate::text::{Clock, EventBuffer, Fragment, PieceWriter, Vocabulary, application};

/// No point is longer, with its line feed.
pub(crate) const FLOOR: usize = 320;

pub(crate) fn writer(recipe: &Recipe<'_>) -> Box<dyn Writer> {
    let plan = match recipe.format {
        PayloadFormat::Influx(plan) => *plan,
        _ => InfluxPlan::default(),
    };
    let mut random = Random::new(recipe.seed.derive("values", 0));
    Box::new(Influx {
        clock: Clock::new(&mut random),
        points: [0, 0],
        random,
        series: InfluxSeries::new(plan, recipe.common),
        event_buffer: EventBuffer::new(),
        slots: recipe.slots,
    })
}

/// `MEASUREMENT,TAGS FIELDS TIME`
#[derive(Debug)]
struct Influx {
    random: Random,
    clock: Clock,
    /// Thousands of points so far, and the rest of them, as far as six digits of a time distinguish
    /// points.
    points: [u16; 2],
    series: InfluxSeries,
    event_buffer: EventBuffer,
    slots: SlotUse,
}

impl Writer for Influx {
    fn next(&mut self) -> Option<Event<'_>> {
        let (mut random, mut out) = (self.random.clone(), self.event_buffer.begin());
        self.clock.advance(&mut random);
        let (series, measurement) = self.series.choose(&mut random);
        out.bytes(series);
        let slot = stamp(&mut out, self.slots);
        for (index, field) in measurement.fields.iter().enumerate() {
            if index > 0 {
                out.fixed(b",");
            }
            out.fragment(field);
            value(&mut out, &mut random, measurement.kind);
        }
        out.fixed(b" ");
        self.clock.epoch_milliseconds(&mut out);
        // A store keeps one point of a series at a time.
        let [thousands, ones] = &mut self.points;
        out.number_3(*thousands);
        out.number_3(*ones);
        *ones = (*ones + 1) % 1000;
        if *ones == 0 {
            *thousands = (*thousands + 1) % 1000;
        }
        out.fixed(b"\n");
        self.random = random;
        Some(out.event(slot))
    }
}

/// A text field with a slot, if slots are in use.
#[inline(always)]
fn stamp(out: &mut PieceWriter<'_>, slots: SlotUse) -> Option<usize> {
    if slots == SlotUse::None {
        return None;
    }
    out.fixed(br#"stamp=""#);
    let slot = out.slot(slots);
    out.fixed(br#"","#);
    slot
}

#[inline(always)]
fn value(out: &mut PieceWriter<'_>, random: &mut Random, kind: Kind) {
    match kind {
        Kind::Float => {
            out.number(random.below(1000));
            out.fixed(b".");
            out.number_3(random.below(1000));
        }
        Kind::Integer => {
            out.random_number(random);
            out.fixed(b"i");
        }
    }
}

/// The beginnings of lines, for every series.
struct InfluxSeries {
    beginnings: Vec<(Box<[u8]>, &'static Measurement)>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Float,
    Integer,
}

#[derive(Debug)]
struct Measurement {
    name: &'static str,
    kind: Kind,
    fields: [Fragment; 4],
}

impl fmt::Debug for InfluxSeries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Series({})", self.beginnings.len())
    }
}

impl InfluxSeries {
    /// Builds the series of `plan`, the same for all workers.
    fn new(plan: InfluxPlan, seed: Seed) -> Self {
        let vocabulary = Vocabulary::new(seed.derive("names", 0));
        let mut random = Random::new(seed.derive("series", 0));
        let numbers = 0..plan.series.max(1);
        let beginnings = numbers.map(|number| {
            let measurement = random.choose(&MEASUREMENTS);
            let text = format!(
                "{},app={},host={},instance={number},region={} ",
                measurement.name,
                application(&mut random).text(),
                vocabulary.host(&mut random).text(),
                random.choose(&REGIONS),
            );
            (text.into_bytes().into(), measurement)
        });
        Self {
            beginnings: beginnings.collect(),
        }
    }

    #[inline(always)]
    fn choose(&self, random: &mut Random) -> (&[u8], &'static Measurement) {
        let drawn = random.between(0, self.beginnings.len() as u64 - 1);
        let (text, measurement) = &self.beginnings[usize::try_from(drawn).unwrap_or(0)];
        (text, measurement)
    }
}

const REGIONS: [&str; 4] = ["eu-west-1", "eu-north-1", "us-east-1", "ap-south-1"];

const fn measurement(name: &'static str, kind: Kind, fields: [&str; 4]) -> Measurement {
    Measurement {
        name,
        kind,
        fields: Fragment::all(fields),
    }
}

#[rustfmt::skip]
static MEASUREMENTS: [Measurement; 8] = [
    measurement("cpu", Kind::Float, ["idle=", "iowait=", "system=", "user="]),
    measurement("disk", Kind::Integer, ["free=", "inodes_free=", "inodes_used=", "used="]),
    measurement("diskio", Kind::Integer, ["read_bytes=", "reads=", "write_bytes=", "writes="]),
    measurement("http", Kind::Float, ["p50=", "p90=", "p99=", "rate="]),
    measurement("mem", Kind::Integer, ["available=", "buffered=", "cached=", "used="]),
    measurement("net", Kind::Integer, ["bytes_recv=", "bytes_sent=", "drop_in=", "packets_recv="]),
    measurement("processes", Kind::Integer, ["blocked=", "running=", "sleeping=", "threads="]),
    measurement("system", Kind::Float, ["load1=", "load15=", "load5=", "uptime="]),
];
