//! Contexts: which type, name, tags and origin belong together.

use stillwell_plan::payload::{Between, DogstatsdPlan, expand_all};
use stillwell_units::{Seed, floor_to_u64};

use super::tags::{Identity, Tags};
use crate::mix::{Draw, Order, Weights, index, key};
use crate::names::Names;
use crate::pool::TextWriter;

/// Container identities that are drawn where none are given.
const CONTAINERS: u64 = 8;

/// Hexadecimal digits of a container identity.
const CONTAINER_LEN: usize = 64;

/// The requested number of contexts. They are not stored: each follows from its number, except for
/// the number of tags before its own.
#[derive(Debug)]
pub(super) struct MetricContexts {
    names: Names,
    pub(super) tags: Tags,
    types: Weights,
    origins: Vec<Vec<String>>,
    /// Tags in all contexts before each, and at last in all.
    first_slots: Vec<u32>,
    key: u64,
    /// Bytes that tags may take together, commas included.
    tags_room: usize,
    /// Tags of a message.
    pub(super) tag_counts: Between<u64>,
}

/// One context, as far as it is short.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    number: u64,
    /// Index into the types.
    pub(super) kind: usize,
    /// One more than the index into each list of origins; 0 for none.
    origins: [usize; 3],
}

impl MetricContexts {
    /// Builds the contexts of `plan`, where `event_max` is the largest message.
    pub(super) fn new(plan: &DogstatsdPlan, seed: &Seed, event_max: usize) -> Self {
        let mut draw = Draw::new(key(&seed.derive("counts", 0)), 0);
        let wanted = draw.between(plan.contexts);
        let names = match listed(&plan.metric_names) {
            list if list.is_empty() => {
                Names::drawn(&seed.derive("names", 0), plan.name_length, wanted)
            }
            list => Names::listed(list),
        };
        let lists = (listed(&plan.tag_names), listed(&plan.tag_values));
        let identity = identity(plan, wanted.div_ceil(names.count()), lists.1.len() as u64);
        let slots = key(&seed.derive("slots", 0));
        let mut first_slots = vec![0];
        let mut slot = 0_u32;
        for number in 0..wanted {
            let tags = Draw::new(slots, number).between(plan.tags_per_message);
            slot = slot.saturating_add(u32::try_from(tags.max(identity.tags)).unwrap_or(u32::MAX));
            first_slots.push(slot);
        }
        let ratio = plan.unique_tag_ratio;
        let tags_seed = seed.derive("tags", 0);
        let tags = Tags::new(
            &tags_seed,
            plan.tag_length,
            lists,
            identity,
            ratio,
            u64::from(slot),
        );
        let weights = plan.metric_weights;
        Self {
            names,
            tags,
            types: Weights::new(&[
                weights.count,
                weights.gauge,
                weights.timer,
                weights.distribution,
                weights.set,
                weights.histogram,
            ]),
            origins: origins(plan, seed),
            first_slots,
            key: key(seed),
            tags_room: event_max - without_tags(plan),
            tag_counts: Between::new(
                u64::from(plan.tags_per_message.low),
                u64::from(plan.tags_per_message.high),
            ),
        }
    }

    /// Each context once in every pass.
    pub(super) fn order(&self, seed: &Seed) -> Order {
        Order::new(self.count(), seed)
    }

    /// Returns the number of contexts.
    pub(super) fn count(&self) -> u64 {
        self.first_slots.len() as u64 - 1
    }

    /// Context `number`.
    #[inline(always)]
    pub(super) fn context(&self, number: u64) -> Context {
        let mut draw = Draw::new(self.key, number);
        let kind = self.types.choose(draw.word());
        let mut origins = [0; 3];
        for (origin, list) in origins.iter_mut().zip(&self.origins) {
            if !list.is_empty() {
                // None half of the time.
                let choice = draw.below(2 * list.len() as u64);
                *origin = (index(choice) + 1).saturating_sub(list.len());
            }
        }
        Context {
            number,
            kind,
            origins,
        }
    }

    #[inline(always)]
    pub(super) fn write_name(&self, out: &mut TextWriter<'_>, context: &Context) {
        self.names.write(out, context.number);
    }

    /// Writes `|#` and the tags, if there are any.
    #[inline(always)]
    pub(super) fn write_tags(&self, out: &mut TextWriter<'_>, context: &Context) {
        let at = index(context.number);
        let (first, last) = (self.first_slots[at], self.first_slots[at + 1]);
        if first == last {
            return;
        }
        out.fixed(b"|#");
        let start = out.len();
        let beyond_names = context.number / self.names.count();
        let mut draw = Draw::new(self.key ^ 1, context.number);
        for slot in u64::from(first)..u64::from(last) {
            let before = out.len();
            let position = slot - u64::from(first);
            if position < self.tags.identity.tags {
                self.tags.write_identity(out, position, beyond_names);
            } else {
                self.tags.write(out, slot, beyond_names, draw.word());
            }
            // The same for every message of the context, or it would be another.
            if out.len() + 1 - start > self.tags_room {
                out.cut(before);
                break;
            }
            out.fixed(b",");
        }
        // The last comma, or the mark where not one tag had room.
        out.cut(if out.len() > start {
            out.len() - 1
        } else {
            start - 2
        });
    }

    /// Writes where the metric comes from.
    #[inline(always)]
    pub(super) fn write_origins(&self, out: &mut TextWriter<'_>, context: &Context) {
        const MARKS: [&[u8]; 3] = [b"|c:", b"|e:", b"|card:"];
        for ((mark, list), origin) in MARKS.iter().zip(&self.origins).zip(context.origins) {
            if let Some(text) = origin.checked_sub(1).and_then(|origin| list.get(origin)) {
                out.text(mark);
                out.text(text.as_bytes());
            }
        }
    }
}

/// Returns a number of bytes that is always enough for a message of one value, without the tags
/// that distinguish contexts.
pub(super) fn floor(plan: &DogstatsdPlan) -> usize {
    let names = plan.context_room().map_or(1, |room| room.names);
    let rest = u64::from(plan.contexts.high).div_ceil(names);
    let values = listed(&plan.tag_values);
    let keys = listed(&plan.tag_names);
    let tags = identity(plan, rest, values.len() as u64).tags;
    let tag_max =
        longest(&keys).max(1) + 1 + longest(&values).max(usize::from(plan.tag_length.high));
    without_tags(plan) + index(tags) * (tag_max + 1)
}

/// Bytes that are surely enough for a message of one value without tags.
fn without_tags(plan: &DogstatsdPlan) -> usize {
    /// `:-9223372036854775808.123456|ms|@0.123|#|T4294967295` and a line feed,
    /// or what an event or a service check has besides its title or name.
    const FIXED: usize = 96;
    let container = longest(&plan.container_ids).max(CONTAINER_LEN);
    FIXED
        + name_max(plan)
        + container
        + longest(&plan.external_data)
        + longest(&plan.cardinality)
        + "|c:|e:|card:".len()
}

/// Bytes of the longest name.
fn name_max(plan: &DogstatsdPlan) -> usize {
    longest(&listed(&plan.metric_names)).max(usize::from(plan.name_length.high))
}

fn longest(texts: &[String]) -> usize {
    texts.iter().map(String::len).max().unwrap_or(0)
}

/// The texts of `patterns`, which were looked at when the plan was made.
fn listed(patterns: &[String]) -> Vec<String> {
    expand_all(patterns).unwrap_or_default()
}

/// Finds the tags that distinguish `rest` contexts of the same name, where `listed` values are
/// given.
fn identity(plan: &DogstatsdPlan, rest: u64, listed: u64) -> Identity {
    let mut identity = Identity::default();
    if rest <= 1 {
        return identity;
    }
    if listed > 0 {
        identity.radix = listed;
    } else {
        let most = usize::from(plan.tag_length.high.saturating_sub(2)).max(1);
        identity.radix = 1;
        while identity.radix < rest && identity.digits < most {
            identity.digits += 1;
            identity.radix = identity.radix.saturating_mul(36);
        }
    }
    let mut distinct = 1_u64;
    while distinct < rest && identity.radix > 1 {
        distinct = distinct.saturating_mul(identity.radix);
        identity.tags += 1;
    }
    identity
}

/// Container identities, external data and cardinalities.
fn origins(plan: &DogstatsdPlan, seed: &Seed) -> Vec<Vec<String>> {
    let mut containers = plan.container_ids.clone();
    if containers.is_empty() {
        let key = key(&seed.derive("containers", 0));
        containers.extend((0..CONTAINERS).map(|number| {
            let mut draw = Draw::new(key, number);
            let words = [draw.word(), draw.word(), draw.word(), draw.word()];
            words.map(|word| format!("{word:016x}")).concat()
        }));
    }
    // An empty one means none.
    containers.retain(|container| !container.is_empty());
    vec![
        containers,
        plan.external_data.clone(),
        plan.cardinality.clone(),
    ]
}

/// Thousandths in `share`, at least one.
pub(super) fn thousandths(share: f64) -> u64 {
    floor_to_u64((share * 1000.0).round()).clamp(1, 1000)
}
