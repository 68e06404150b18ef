//! Log messages: a sentence with figures in it, then some fields. They need no
//! escaping in JSON and can be cut anywhere.

use stillwell_units::Seed;

use super::vocabulary::{Vocabulary, address, application, path, word};
use super::{Fragment, PieceWriter};
use crate::SlotUse;
use crate::random::Random;

/// Writes messages, and lends the names that occur in them.
#[derive(Debug)]
pub(crate) struct Messages {
    pub(crate) vocabulary: Vocabulary,
    templates: Box<[Vec<SentenceStep>; 64]>,
}

/// A piece of a sentence: a text, then a value.
#[derive(Clone, Copy, Debug)]
struct SentenceStep {
    text: Fragment,
    value: Value,
}

/// A part that is drawn each time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Value {
    Nothing,
    Address,
    Application,
    Duration,
    Hexadecimal,
    Host,
    Number,
    Path,
    User,
    Uuid,
    Word,
}

impl Messages {
    pub(crate) fn new(seed: Seed) -> Self {
        Self {
            vocabulary: Vocabulary::new(seed.derive("names", 0)),
            templates: Box::new(SENTENCES.map(parse)),
        }
    }

    /// Writes one message of at most `room` bytes, cut where it would be longer,
    /// and gives its slot, if slots are in use; `room` has place for one.
    #[inline(always)]
    pub(crate) fn write(
        &self,
        out: &mut PieceWriter<'_>,
        random: &mut Random,
        room: usize,
        slots: SlotUse,
    ) -> Option<usize> {
        let end = out.len() + room;
        let slot = self.sentence(out, random, room, slots);
        for _ in 0..random.bits(2) {
            out.fragment(random.choose(&FIELDS));
            self.value(*random.choose(&FIELD_VALUES), out, random);
        }
        out.cut(end);
        slot
    }

    /// The same without fields, so no `=` is in it.
    #[inline(always)]
    pub(crate) fn sentence(
        &self,
        out: &mut PieceWriter<'_>,
        random: &mut Random,
        room: usize,
        slots: SlotUse,
    ) -> Option<usize> {
        let end = out.len() + room;
        let slot = out.slot(slots);
        for step in random.choose(&self.templates) {
            out.fragment(&step.text);
            self.value(step.value, out, random);
        }
        out.cut(end);
        slot
    }

    #[inline(always)]
    fn value(&self, value: Value, out: &mut PieceWriter<'_>, random: &mut Random) {
        match value {
            Value::Nothing => {}
            Value::Address => address(out, random),
            Value::Application => out.fragment(application(random)),
            Value::Duration => {
                out.number(random.below(1000));
                out.fixed(b".");
                out.number_3(random.below(1000));
                out.fixed(b"ms");
            }
            Value::Hexadecimal => out.random_hexadecimal(random),
            Value::Host => out.fragment(self.vocabulary.host(random)),
            Value::Number => out.random_number(random),
            Value::Path => path(out, random),
            Value::User => out.fragment(self.vocabulary.user(random)),
            Value::Uuid => out.random_uuid(random),
            Value::Word => out.fragment(word(random)),
        }
    }
}

/// Splits a sentence: `{` and a letter are a value.
fn parse(sentence: &str) -> Vec<SentenceStep> {
    let mut steps = Vec::new();
    let mut rest = sentence;
    while !rest.is_empty() {
        let text_end = rest.find('{').unwrap_or(rest.len()).min(Fragment::MAX);
        let (text, after) = rest.split_at(text_end);
        let named = after
            .strip_prefix('{')
            .and_then(|text| text.split_once('}'));
        let (value, after) = match named {
            Some((name, after)) => (value_named(name), after),
            None => (Value::Nothing, after),
        };
        steps.push(SentenceStep {
            text: Fragment::new(text),
            value,
        });
        rest = after;
    }
    steps
}

fn value_named(name: &str) -> Value {
    match name {
        "a" => Value::Address,
        "s" => Value::Application,
        "d" => Value::Duration,
        "x" => Value::Hexadecimal,
        "h" => Value::Host,
        "n" => Value::Number,
        "p" => Value::Path,
        "u" => Value::User,
        "g" => Value::Uuid,
        "w" => Value::Word,
        _ => Value::Nothing,
    }
}

#[rustfmt::skip]
const FIELD_VALUES: [Value; 8] = [
    Value::Number, Value::Number, Value::Word, Value::Word,
    Value::Hexadecimal, Value::Duration, Value::User, Value::Uuid,
];

#[rustfmt::skip]
static FIELDS: [Fragment; 32] = Fragment::all([
    " attempt=", " batch=", " bucket=", " cause=", " channel=", " cohort=", " cost=", " depth=",
    " elapsed=", " flow=", " generation=", " job=", " lane=", " lag=", " mode=", " offset=",
    " owner=", " parent=", " partition=", " phase=", " pool=", " rank=", " ref=", " retries=",
    " rows=", " scope=", " shard=", " slot=", " span=", " stage=", " tenant=", " ticket=",
]);

const SENTENCES: [&str; 64] = [
    "accepted connection {n} from {a} for {u}",
    "account {u} locked after {n} failed attempts from {a}",
    "acquired lease {x} on {w} for {d}",
    "applied migration {n} to table {w} in {d}",
    "archived {n} objects of {w} to {h}",
    "backing off from {h} for {d}: too many requests",
    "batch {g} committed with {n} rows",
    "cache miss for {p}, loading from {h}",
    "cannot resolve {h}: no answer after {d}",
    "certificate {x} of {h} expires in {n} hours",
    "checkpoint {n} written to {p} in {d}",
    "circuit to {s} opened after {n} errors",
    "client {a} closed the stream {x} early",
    "compacted segment {n} of {w}: {n} bytes to {n}",
    "config reloaded from {p}, {n} keys changed",
    "consumer {s} is {n} messages behind on {w}",
    "coupon {w}-{n} refused for {u}",
    "created session {g} for {u} from {a}",
    "deadline of {d} passed while calling {s} on {h}",
    "deleted {n} stale entries below {p}",
    "delivered parcel {n} to {w} {w} in {d}",
    "disk {w} on {h} is {n} blocks from full",
    "dropped packet {x} from {a}: unknown flow",
    "elected {h} as leader of {w}, term {n}",
    "export {g} finished: {n} records in {d}",
    "fetched {p} from {h} in {d}",
    "flushed {n} bytes of {w} to {p}",
    "handshake with {a} failed: {w} not offered",
    "health of {s} on {h} changed to {w}",
    "heartbeat of {h} late by {d}",
    "indexed document {g} in {d}",
    "invoice {n} for {u} sent to {w}",
    "job {x} of {s} took {d}, {n} steps",
    "joined group {w} as member {g}",
    "limit of {n} requests reached by {u} at {a}",
    "lock on {w} held by {s} for {d}",
    "mail {x} queued for {u} at {h}",
    "merged {n} branches of {w} into {w}",
    "moved {p} to {p}",
    "no route from {h} to {a}, trying {h}",
    "order {n} of {u} paid through {w} in {d}",
    "parsed {n} lines of {p}, skipped {n}",
    "payment {g} declined for {u}: code {n}",
    "picked {h} for shard {n} of {w}",
    "pruned {n} nodes of tree {x}",
    "published {w} {n} to {n} subscribers",
    "queue {w} drained: {n} items in {d}",
    "read {n} bytes at offset {n} from {p}",
    "rebuilt index {w} with {n} keys on {h}",
    "refund {g} over {n} cents issued to {u}",
    "rejected token {x} of {u}: scope {w} missing",
    "replica {h} caught up at position {n}",
    "request {g} to {p} answered by {s} in {d}",
    "restored snapshot {x} of {w} from {h}",
    "retrying {s} call {x}, attempt {n}",
    "rotated key {w} to {x}",
    "scheduled {s} on {h} with {n} units",
    "search for {w} {w} found {n} hits in {d}",
    "sensor {w}-{n} reads {n} after {d}",
    "stock of {w} down to {n} at {w}",
    "template {p} rendered for {u} in {d}",
    "upload {g} from {a} stored as {p}",
    "user {u} changed {w} from {w} to {w}",
    "worker {n} of {s} idle for {d}",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_in_a_sentence_is_known() {
        for sentence in SENTENCES {
            let steps = parse(sentence).into_iter();
            let values = steps.filter(|step| step.value != Value::Nothing).count();
            assert_eq!(values, sentence.matches('{').count(), "{sentence}");
        }
    }
}
