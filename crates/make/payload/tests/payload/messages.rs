use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use rmpv::Value;
use stillwell_payload::{BlockSet, SLOT_PLACEHOLDER, SLOT_WIDTH, SlotUse};
use stillwell_plan::payload::{Between, TraceAgentPlan, TraceEncoding};
use stillwell_plan::{PayloadFormat, PayloadPlan};

use crate::{build, golden, plan, up_to};

fn traces(options: TraceAgentPlan, maximum: u64) -> PayloadPlan {
    plan(PayloadFormat::TraceAgent(options), up_to(maximum), 2 << 20)
}

/// One value, and nothing behind it.
fn decode(mut bytes: &[u8]) -> Value {
    let value = rmpv::decode::read_value(&mut bytes).unwrap();
    assert!(bytes.is_empty());
    value
}

/// The same value as JSON, so both encodings are read alike.
fn to_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Integer(number) => number.as_u64().unwrap().into(),
        Value::F64(number) => (*number).into(),
        Value::String(text) => text.as_str().unwrap().into(),
        Value::Array(items) => items.iter().map(to_json).collect(),
        Value::Map(entries) => {
            let pairs = entries
                .iter()
                .map(|(key, value)| (key.as_str().unwrap().to_owned(), to_json(value)));
            let map: serde_json::Map<_, _> = pairs.collect();
            assert_eq!(map.len(), entries.len(), "a key twice in {value}");
            map.into()
        }
        other => unreachable!("{other}"),
    }
}

/// The context of each trace; fails where one is no trace.
fn contexts(set: &BlockSet, plan: &TraceAgentPlan) -> Vec<String> {
    let mut contexts = Vec::new();
    for index in 0..set.len() {
        let block = set.block(index);
        let body = match plan.encoding {
            TraceEncoding::Msgpack => to_json(&decode(block.bytes)),
            TraceEncoding::Json => serde_json::from_slice(block.bytes).unwrap(),
        };
        let traces = body.as_array().unwrap();
        assert_eq!(traces.len() as u64, block.counts().events);
        let spans = traces.iter().map(|trace| trace.as_array().unwrap().len());
        assert_eq!(spans.sum::<usize>() as u64, block.counts().units);
        contexts.extend(
            traces
                .iter()
                .map(|trace| check_trace(trace.as_array().unwrap(), plan)),
        );
    }
    contexts
}

fn check_trace(spans: &[serde_json::Value], plan: &TraceAgentPlan) -> String {
    let number = |span: &serde_json::Value, field: &str| span[field].as_u64().unwrap();
    let within = |range: Between<u8>, count: usize| {
        assert!(
            (usize::from(range.low)..=usize::from(range.high)).contains(&count),
            "{count}"
        );
    };
    assert!((1..=usize::from(plan.spans_per_trace.high)).contains(&spans.len()));
    let mut seen = BTreeSet::new();
    let context = |span: &serde_json::Value| {
        ["service", "name", "resource", "type"]
            .map(|field| span[field].as_str().unwrap().to_owned())
    };
    for span in spans {
        assert_eq!(number(span, "trace_id"), number(&spans[0], "trace_id"));
        assert_eq!(context(span), context(&spans[0]));
        let parent = number(span, "parent_id");
        assert_eq!(parent == 0, seen.is_empty());
        assert!(parent == 0 || seen.contains(&parent));
        assert!(seen.insert(number(span, "span_id")));
        assert!(number(span, "start") >= number(&spans[0], "start"));
        assert!(number(span, "error") <= 1 && number(span, "duration") < 1 << 40);
        let tags = span["meta"].as_object().map_or(0, serde_json::Map::len);
        within(plan.tags_per_span, tags);
        let numbers = span["metrics"].as_object().map_or(0, serde_json::Map::len);
        within(plan.metrics_per_span, numbers);
    }
    format!("{:?}", context(&spans[0]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// For both encodings: every block is a list of traces, and as many contexts as requested
    /// come before any comes again.
    // compat: lading, payloads | trace_agent | works
    #[test]
    fn traces_have_as_many_contexts_as_requested(
        seed: u64,
        count in 1_u32..60,
        is_json: bool,
        low in 2_u8..40,
        maximum in 20_000_u64..200_000,
    ) {
        let length = Between::new(low, low + 20);
        let options = TraceAgentPlan {
            encoding: if is_json { TraceEncoding::Json } else { TraceEncoding::Msgpack },
            contexts: Between::only(count),
            spans_per_trace: Between::new(1, 9),
            service_name_length: length,
            operation_name_length: length,
            resource_name_length: length,
            tag_key_length: length,
            metric_key_length: length,
            ..TraceAgentPlan::default()
        };
        let set = build(&traces(options, maximum), seed, SlotUse::None);
        let seen = contexts(&set, &options);
        let count = usize::try_from(count).unwrap();
        prop_assert!(seen.len() > count);
        let first: BTreeSet<&String> = seen[..count].iter().collect();
        let all: BTreeSet<&String> = seen.iter().collect();
        prop_assert_eq!((first.len(), all.len()), (count, count));
        prop_assert!(set.largest_block() <= usize::try_from(maximum).unwrap());
    }
}

/// As many spans were sent as surely fit if all had the maximum length, which is a few of
/// the requested spans.
#[test]
fn traces_have_the_requested_spans() {
    for encoding in [TraceEncoding::Msgpack, TraceEncoding::Json] {
        let options = TraceAgentPlan {
            encoding,
            contexts: Between::only(10),
            spans_per_trace: Between::only(20),
            ..TraceAgentPlan::default()
        };
        let set = build(&traces(options, 1 << 18), 1, SlotUse::None);
        let total = set.total();
        assert!(total.units > 19 * total.events, "{total:?}");
    }
}

fn fluent(maximum: u64) -> PayloadPlan {
    plan(PayloadFormat::Fluent, up_to(maximum), 1 << 20)
}

/// Checks one message and gives its texts under `message`.
fn check_message(bytes: &[u8], units: u64) -> Vec<String> {
    let Value::Array(parts) = decode(bytes) else {
        unreachable!("no array")
    };
    assert!(parts[0].is_str());
    let entries: Vec<(Value, Value)> = match &parts[..] {
        [_, time, record] => vec![(time.clone(), record.clone())],
        [_, Value::Array(entries)] => entries
            .iter()
            .map(|entry| (entry[0].clone(), entry[1].clone()))
            .collect(),
        other => unreachable!("{other:?}"),
    };
    assert_eq!(entries.len() as u64, units);
    let texts = entries.iter().map(|(time, record)| {
        assert!(time.as_u64().is_some_and(|time| time > 1_600_000_000));
        let record = to_json(record);
        record["message"].as_str().unwrap().to_owned()
    });
    texts.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// For all sizes: every event is a message of the forward protocol, with a slot in its text
    /// where requested.
    // compat: lading, payloads | fluent | works
    #[test]
    fn fluent_messages_follow_the_protocol(seed: u64, maximum in 600_u64..100_000, stamped: bool) {
        let slots = if stamped { SlotUse::Every } else { SlotUse::None };
        let set = build(&fluent(maximum), seed, slots);
        prop_assert!(set.largest_block() <= usize::try_from(maximum).unwrap());
        let mut shapes = BTreeMap::<usize, usize>::new();
        for index in 0..set.len() {
            let block = set.block(index);
            let (mut start, mut units) = (0, 0);
            let mut slots = block.slots();
            for end in block.event_ends() {
                let mut event = block.bytes[start..end].to_vec();
                let stamp = "7".repeat(SLOT_WIDTH);
                if let Some(slot) = slots.next() {
                    let place = slot.offset - start..slot.offset - start + SLOT_WIDTH;
                    prop_assert_eq!(&event[place.clone()], &SLOT_PLACEHOLDER);
                    event[place].copy_from_slice(stamp.as_bytes());
                }
                let mut head = &event[..];
                let Value::Array(parts) = rmpv::decode::read_value(&mut head).unwrap() else {
                    unreachable!("no array");
                };
                let count = match parts.last() {
                    Some(Value::Array(entries)) => entries.len(),
                    _ => 1,
                };
                *shapes.entry(parts.len()).or_default() += 1;
                let texts = check_message(&event, count as u64);
                prop_assert_eq!(stamped, texts[0].starts_with(&stamp));
                units += count as u64;
                start = end;
            }
            prop_assert_eq!(units, block.counts().units);
        }
        prop_assert_eq!(shapes.len(), 2);
    }
}

#[test]
fn fingerprints_are_those_in_the_tree() {
    for (name, encoding) in [
        ("trace_agent", TraceEncoding::Msgpack),
        ("trace_agent-json", TraceEncoding::Json),
    ] {
        let options = TraceAgentPlan {
            encoding,
            ..TraceAgentPlan::default()
        };
        let set = build(&traces(options, 1 << 18), 42, SlotUse::None);
        golden::compare(name, &set);
    }
    golden::compare("fluent", &build(&fluent(1 << 16), 42, SlotUse::None));
    golden::compare("fluent-slots", &build(&fluent(1 << 16), 42, SlotUse::Every));
}
