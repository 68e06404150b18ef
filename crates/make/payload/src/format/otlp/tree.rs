//! Resources, scopes and items, as far as they stay the same.

use stillwell_plan::payload::OtlpContexts;
use stillwell_units::Seed;

use crate::Part;
use crate::mix::{Draw, index, key};
use crate::names::Names;
use crate::pool::{Pool, TextWriter};
use crate::protobuf::{HEAD_MAX, push_bytes, push_number_attribute, push_text_attribute};

/// Characters of drawn texts.
const ALPHABET: &[u8; 66] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-/";

/// Characters of drawn values.
const VALUE_MAX: u64 = 32;

/// Characters of drawn names.
const NAME_MAX: u16 = 40;

/// Bytes of an attribute at most.
const ATTRIBUTE_MAX: usize = 128;

/// Bytes of a scope's or resource's head without its attributes at most.
const HEAD_TEXTS_MAX: usize = 128;

/// All resources.
#[derive(Debug)]
pub(super) struct Tree {
    texts: Vec<u8>,
    pub(super) resources: Vec<Branch>,
    pub(super) scopes: Vec<Branch>,
    pub(super) items: Vec<Item>,
}

/// A piece of a tree's texts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TextRange {
    start: usize,
    pub(super) len: usize,
}

/// A resource or scope: what it says of itself, and what is in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Branch {
    pub(super) head: TextRange,
    pub(super) first: usize,
    pub(super) last: usize,
}

/// A log record or metric.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    /// Index into the kinds of its format.
    pub(super) kind: usize,
    /// Its description.
    pub(super) head: TextRange,
    pub(super) attributes: TextRange,
}

/// The beginnings of items of a format.
pub(super) trait Heads {
    /// The kind of item `number` and, appended to `head`, what it says of
    /// itself.
    fn head(&self, number: u64, head: &mut Vec<u8>) -> usize;

    /// The field of attributes in an item of `kind`.
    fn attributes_field(&self, kind: usize) -> u32;
}

impl Tree {
    /// As many items as drawn, in as many scopes and resources as they need.
    pub(super) fn new(plan: &OtlpContexts, seed: &Seed, heads: &impl Heads) -> Self {
        let mut draw = Draw::new(key(&seed.derive("tree", 0)), 0);
        let wanted = draw.between(plan.contexts);
        let texts = Texts::new(seed, wanted);
        let mut tree = Self {
            texts: Vec::new(),
            resources: Vec::new(),
            scopes: Vec::new(),
            items: Vec::new(),
        };
        while (tree.items.len() as u64) < wanted {
            let first = tree.scopes.len();
            for _ in 0..draw.between(plan.scopes_per_resource) {
                let left = wanted - tree.items.len() as u64;
                let items = draw.between(plan.items_per_scope).min(left);
                if items == 0 {
                    break;
                }
                tree.push_scope(plan, &texts, &mut draw, items, heads);
            }
            let attributes = draw.between(plan.attributes_per_resource);
            let mut resource = Vec::new();
            let number = tree.resources.len() as u64;
            texts.attributes(
                &mut resource,
                &mut draw,
                1,
                attributes,
                Some((b"service.name", number)),
            );
            let mut head = Vec::new();
            push_bytes(&mut head, 1, &resource);
            let head = tree.push(&head);
            let last = tree.scopes.len();
            tree.resources.push(Branch { head, first, last });
        }
        tree
    }

    /// Leaves out the items of other workers, and what is empty without them.
    pub(super) fn keep(&mut self, part: Part) {
        let all = self.items.len() as u64;
        let mut is_kept = vec![false; self.items.len()];
        for place in 0..part.count(all) {
            is_kept[index(part.number(place, all))] = true;
        }
        let (mut items, mut scopes, mut resources) = (Vec::new(), Vec::new(), Vec::new());
        for resource in &self.resources {
            let first_scope = scopes.len();
            for scope in &self.scopes[resource.first..resource.last] {
                let first = items.len();
                let kept = (scope.first..scope.last).filter(|number| is_kept[*number]);
                items.extend(kept.map(|number| self.items[number]));
                let last = items.len();
                let head = scope.head;
                scopes.extend((last > first).then_some(Branch { head, first, last }));
            }
            let (head, first, last) = (resource.head, first_scope, scopes.len());
            resources.extend((last > first).then_some(Branch { head, first, last }));
        }
        (self.items, self.scopes, self.resources) = (items, scopes, resources);
    }

    fn push_scope(
        &mut self,
        plan: &OtlpContexts,
        texts: &Texts,
        draw: &mut Draw,
        items: u64,
        heads: &impl Heads,
    ) {
        let first = self.items.len();
        for _ in 0..items {
            let number = self.items.len() as u64;
            let mut head = Vec::new();
            let kind = heads.head(number, &mut head);
            let mut count = draw.between(plan.attributes_per_item);
            if head.is_empty() && plan.attributes_per_item.high > 0 {
                // Only attributes distinguish it.
                count = count.max(1);
            }
            let mut attributes = Vec::new();
            let field = heads.attributes_field(kind);
            texts.attributes(
                &mut attributes,
                draw,
                field,
                count,
                Some((b"event.name", number)),
            );
            let (head, attributes) = (self.push(&head), self.push(&attributes));
            self.items.push(Item {
                kind,
                head,
                attributes,
            });
        }
        let mut scope = Vec::new();
        push_bytes(
            &mut scope,
            1,
            &texts.name(b"scope.", self.scopes.len() as u64),
        );
        push_bytes(&mut scope, 2, b"1.0.0");
        let count = draw.between(plan.attributes_per_scope);
        texts.attributes(&mut scope, draw, 3, count, None);
        let mut head = Vec::new();
        push_bytes(&mut head, 1, &scope);
        let head = self.push(&head);
        let last = self.items.len();
        self.scopes.push(Branch { head, first, last });
    }

    fn push(&mut self, bytes: &[u8]) -> TextRange {
        let start = self.texts.len();
        self.texts.extend_from_slice(bytes);
        TextRange {
            start,
            len: bytes.len(),
        }
    }

    #[inline(always)]
    pub(super) fn text(&self, text: TextRange) -> &[u8] {
        &self.texts[text.start..][..text.len]
    }
}

/// Bytes that surely are enough for a resource with one scope and one item of
/// `item_max` bytes, which come to its attributes.
pub(super) fn floor(plan: &OtlpContexts, item_max: usize) -> usize {
    let attributes = usize::from(plan.attributes_per_resource.high)
        + usize::from(plan.attributes_per_scope.high)
        + usize::from(plan.attributes_per_item.high.max(1));
    attributes * ATTRIBUTE_MAX + item_max + 2 * (HEAD_TEXTS_MAX + HEAD_MAX)
}

/// Texts of names and attributes.
pub(super) struct Texts {
    names: Names,
    pool: Pool,
}

impl Texts {
    pub(super) fn new(seed: &Seed, names: u64) -> Self {
        let length = stillwell_plan::payload::Between::new(8, NAME_MAX);
        Self {
            names: Names::drawn(&seed.derive("names", 0), length, names),
            pool: Pool::new(seed.derive("texts", 0), ALPHABET, 16, index(VALUE_MAX)),
        }
    }

    /// A name that no other `number` has, behind `prefix`.
    pub(super) fn name(&self, prefix: &[u8], number: u64) -> Vec<u8> {
        let mut room = [0; 128];
        let mut out = TextWriter::new(&mut room);
        out.text(prefix);
        self.names.write(&mut out, number);
        out.finish().to_vec()
    }

    /// Appends `count` attributes to `message`; the value of the first is a name
    /// of its own, where `named` says so.
    fn attributes(
        &self,
        message: &mut Vec<u8>,
        draw: &mut Draw,
        field: u32,
        count: u64,
        named: Option<(&[u8], u64)>,
    ) {
        for position in 0..count {
            if position == 0
                && let Some((key, number)) = named
            {
                push_text_attribute(message, field, key, &self.name(b"", number));
                continue;
            }
            let mut room = [0; 128];
            let mut out = TextWriter::new(&mut room);
            out.fixed(KEYS[index(draw.below(KEYS.len() as u64))]);
            out.fixed(b".");
            // No key twice among the attributes of one thing.
            out.unsigned(position);
            let key = out.finish().to_vec();
            if draw.below(4) == 0 {
                let value = draw.word().cast_signed() >> 40;
                push_number_attribute(message, field, &key, value);
            } else {
                let mut out = TextWriter::new(&mut room);
                let len = 1 + draw.below(VALUE_MAX);
                out.piece(self.pool.piece(draw.word(), index(len)));
                push_text_attribute(message, field, &key, out.finish());
            }
        }
    }
}

#[rustfmt::skip]
const KEYS: [&[u8; 8]; 16] = [
    b"app.zone", b"app.role", b"app.tier", b"net.peer", b"net.host", b"k8s.node", b"k8s.name",
    b"job.kind", b"job.name", b"db.table", b"user.ref", b"shard.id", b"rpc.name", b"url.part",
    b"os.build", b"dev.slot",
];
