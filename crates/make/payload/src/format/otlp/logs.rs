//! OpenTelemetry logs: `ExportLogsServiceRequest` in protobuf.

use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::OtlpLogsPlan;

use super::tree::{Heads, Item, Tree, floor as tree_floor};
use super::{Leaf, Walk};
use crate::contract::{Recipe, Writer};
use crate::event_time::EventTime;
use crate::mix::{Draw, Weights, index, key};
use crate::pool::{Pool, SLACK, TextWriter};
use crate::protobuf::Reverse;
use crate::random::Random;
use crate::{SLOT_PLACEHOLDER, SLOT_WIDTH, SlotUse};

/// Characters of texts.
const TEXT: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 .";

/// Bytes of a record at most, without text and attributes.
const RECORD_MAX: usize = 96;

/// Numbers of severities and their names, in the order of their weights.
const SEVERITIES: [(u64, &[u8]); 6] = [
    (1, b"TRACE"),
    (5, b"DEBUG"),
    (9, b"INFO"),
    (13, b"WARN"),
    (17, b"ERROR"),
    (21, b"FATAL"),
];

/// Bytes into which a resource with one record always fits.
pub(crate) fn floor(format: &PayloadFormat) -> usize {
    match format {
        PayloadFormat::OpentelemetryLogs(plan) => tree_floor(
            &plan.contexts,
            RECORD_MAX + usize::from(plan.body_size.high),
        ),
        _ => 0,
    }
}

pub(crate) fn writer(recipe: &Recipe<'_>) -> Box<dyn Writer> {
    let plan = match recipe.format {
        PayloadFormat::OpentelemetryLogs(plan) => *plan,
        _ => OtlpLogsPlan::default(),
    };
    let common = &recipe.common;
    let tree = Tree::new(&plan.contexts, common, &Records);
    let records = Writing::new(&plan, recipe);
    Box::new(Walk::new(tree, records, recipe))
}

/// Log records have no fields besides their attributes.
struct Records;

impl Heads for Records {
    fn head(&self, _number: u64, _head: &mut Vec<u8>) -> usize {
        0
    }

    fn attributes_field(&self, _kind: usize) -> u32 {
        6
    }
}

#[derive(Debug)]
struct Writing {
    random: Random,
    time: EventTime,
    severities: Weights,
    texts: Pool,
    /// Low, and how many lengths there are.
    lengths: (u64, u64),
    traces: u64,
    traces_key: u64,
    slots: SlotUse,
    body: Box<[u8]>,
    body_max: usize,
}

impl Writing {
    fn new(plan: &OtlpLogsPlan, recipe: &Recipe<'_>) -> Self {
        let mut random = Random::new(recipe.seed.derive("values", 0));
        let common = &recipe.common;
        let weights = plan.severity_weights;
        let longest = usize::from(plan.body_size.high);
        let (low, high) = (
            u64::from(plan.body_size.low),
            u64::from(plan.body_size.high),
        );
        let traces_key = key(&common.derive("traces", 0));
        Self {
            time: EventTime::new(&mut random),
            random,
            severities: Weights::new(&[
                weights.trace,
                weights.debug,
                weights.info,
                weights.warn,
                weights.error,
                weights.fatal,
            ]),
            texts: Pool::new(common.derive("bodies", 0), TEXT, 18, longest),
            lengths: (low, high - low + 1),
            traces: Draw::new(traces_key, u64::MAX).between(plan.trace_cardinality),
            traces_key,
            slots: recipe.slots,
            body: vec![0; SLOT_WIDTH + 1 + longest + 2 * SLACK].into_boxed_slice(),
            body_max: match recipe.slots {
                SlotUse::None | SlotUse::Before(_) => longest,
                SlotUse::Every => SLOT_WIDTH + 1 + longest,
            },
        }
    }
}

impl Leaf for Writing {
    fn advance(&mut self) {}

    #[inline(always)]
    fn bound(&self, item: &Item) -> usize {
        RECORD_MAX + self.body_max + item.attributes.len
    }

    #[inline(always)]
    fn write(
        &mut self,
        out: &mut Reverse<'_>,
        tree: &Tree,
        number: usize,
        first: bool,
    ) -> Option<usize> {
        let mut random = self.random.clone();
        let start = out.len();
        let time = self.time.advance(&mut random);
        out.fixed_64(11, time + u64::from(random.bits(16)));
        if self.traces > 0 {
            let mut trace = Draw::new(self.traces_key, random.word() % self.traces);
            out.bytes(10, &(random.word() | 1).to_le_bytes());
            let (high, low) = (trace.word().to_le_bytes(), (trace.word() | 1).to_le_bytes());
            out.raw(&low);
            out.raw(&high);
            out.wrap(9, out.len() - 16);
        }
        out.raw(tree.text(tree.items[number].attributes));
        let mut text_writer = TextWriter::new(&mut self.body);
        let has_slot = first && self.slots == SlotUse::Every;
        if has_slot {
            text_writer.fixed(&SLOT_PLACEHOLDER);
            text_writer.fixed(b" ");
        }
        let word = random.word();
        let len = self.lengths.0 + crate::mix::share(word, self.lengths.1);
        text_writer.piece(self.texts.piece(word, index(len)));
        let body_start = out.len();
        let body = text_writer.finish();
        let slot = has_slot.then_some(body_start + body.len());
        out.bytes(1, body);
        out.wrap(5, body_start);
        let (severity, name) = SEVERITIES[self.severities.choose(random.word())];
        out.bytes(3, name);
        out.number(2, severity);
        out.fixed_64(1, time);
        out.wrap(2, start);
        self.random = random;
        slot
    }
}
