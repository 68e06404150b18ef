use std::collections::BTreeSet;

use proptest::prelude::*;
use stillwell_payload::{BlockSet, SlotUse};
use stillwell_plan::PayloadFormat;

use crate::readers::{apache_common, datadog_log, json, syslog5424};
use crate::{any_plan, any_slots, build, events, plan, up_to};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// For all plans and seeds: every event is valid to a reader that knows
    /// nothing of the writer.
    // compat: lading, payloads | json | works
    // compat: lading, payloads | apache_common | works
    // compat: lading, payloads | syslog5424 | works
    // compat: lading, payloads | datadog_log | works
    // compat: lading, payloads | splunk_hec | works
    #[test]
    fn every_event_is_valid(plan in any_plan(), seed: u64, slots in any_slots()) {
        check(&plan.format, &build(&plan, seed, slots));
    }
}

/// Fails unless every event of `set` is a valid one of `format`.
pub(crate) fn check(format: &PayloadFormat, set: &BlockSet) {
    if *format == PayloadFormat::DatadogLog {
        for index in 0..set.len() {
            let block = set.block(index);
            let count = datadog_log(block.bytes).unwrap();
            assert_eq!(count as u64, block.counts().events);
        }
        return;
    }
    for event in events(set) {
        let text = std::str::from_utf8(event).unwrap();
        let result = match format {
            PayloadFormat::Json => json(text),
            PayloadFormat::Syslog5424 => syslog5424(text).map(drop),
            PayloadFormat::ApacheCommon => apache_common(text).map(drop),
            PayloadFormat::Ascii => ascii(text),
            _ => Ok(()),
        };
        assert_eq!(result, Ok(()), "{text}");
    }
}

fn ascii(line: &str) -> Result<(), String> {
    let text = line.strip_suffix('\n').ok_or("no line feed")?;
    if text.is_empty() || line.len() > 6144 {
        return Err(format!("{} bytes", line.len()));
    }
    match text.bytes().find(|byte| !(b' '..=b'~').contains(byte)) {
        Some(byte) => Err(format!("byte {byte}")),
        None => Ok(()),
    }
}

/// Values that vary in real logs vary here.
#[test]
fn events_have_variety() {
    let set = build(
        &plan(PayloadFormat::Syslog5424, up_to(64 << 10), 2 << 20),
        3,
        SlotUse::None,
    );
    let texts: Vec<&str> = events(&set)
        .into_iter()
        .map(|event| std::str::from_utf8(event).unwrap())
        .collect();
    let read: Vec<_> = texts.iter().map(|text| syslog5424(text).unwrap()).collect();
    let distinct = |values: BTreeSet<&str>| values.len();
    assert!(distinct(read.iter().map(|event| event.hostname).collect()) > 200);
    assert_eq!(
        distinct(read.iter().map(|event| event.application).collect()),
        64
    );
    assert_eq!(
        distinct(read.iter().map(|event| event.priority).collect()),
        192
    );
    let messages = distinct(read.iter().map(|event| event.message).collect());
    assert!(
        messages * 100 > read.len() * 99,
        "{messages} of {}",
        read.len()
    );
    let structured = read.iter().filter(|event| event.structured != "-").count();
    assert!(structured * 3 > read.len() && structured * 3 < read.len() * 2);
    // Times never go back.
    assert!(
        read.windows(2)
            .all(|pair| pair[0].timestamp <= pair[1].timestamp)
    );
}

// compat: lading, payloads | ascii | works
#[test]
fn ascii_uses_every_printable_character_and_many_lengths() {
    let set = build(
        &plan(PayloadFormat::Ascii, up_to(64 << 10), 2 << 20),
        3,
        SlotUse::None,
    );
    let used: BTreeSet<u8> = set.bytes().iter().copied().collect();
    assert_eq!(used.len(), 96);
    let lengths: Vec<usize> = events(&set).iter().map(|event| event.len()).collect();
    let mean = lengths.iter().sum::<usize>() / lengths.len();
    assert!((2600..3500).contains(&mean), "{mean}");
    assert!(lengths.iter().any(|length| *length > 6000));
}
