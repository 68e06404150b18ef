use proptest::prelude::*;
use stillwell_payload::{BlockSet, BuildError, Fingerprint, SLOT_PLACEHOLDER, SLOT_WIDTH, SlotUse};
use stillwell_plan::PayloadFormat;
use stillwell_plan::stamp::PrefixFraming;
use stillwell_units::Seed;

use crate::readers::{apache_common, json_string, syslog5424};
use crate::{any_plan, build};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For all plans: every event has one slot, inside its message text, empty,
    /// and what is written there is read back out of that text.
    #[test]
    fn every_event_has_a_slot_in_its_message(plan in any_plan(), seed: u64) {
        let set = build(&plan, seed, SlotUse::Every);
        prop_assert_eq!(set.fingerprint(), Fingerprint::of(set.bytes()));
        for index in 0..set.len() {
            let block = set.block(index);
            prop_assert_eq!(block.slots().len(), block.event_ends().len());
            let mut stamped = block.bytes.to_vec();
            for (number, slot) in block.slots().enumerate() {
                let place = slot.offset..slot.offset + SLOT_WIDTH;
                prop_assert_eq!(&stamped[place.clone()], &SLOT_PLACEHOLDER);
                stamped[place].copy_from_slice(stamp(number).as_bytes());
            }
            let mut start = 0;
            for (number, (slot, end)) in block.slots().zip(block.event_ends()).enumerate() {
                prop_assert!(slot.offset >= start && slot.offset + SLOT_WIDTH < end);
                let message = message(&plan.format, &stamped[start..end]);
                prop_assert!(message.contains(&stamp(number)), "{}", message);
                start = end;
            }
        }
    }

    /// For all plans of lines: each event begins with room for a time, and with its length
    /// where that is the framing, followed by a line of the format.
    #[test]
    fn before_every_line_there_is_room_for_a_time(
        plan in any_plan(),
        seed: u64,
        framing in prop::sample::select(PrefixFraming::ALL.to_vec()),
    ) {
        let slots = SlotUse::Before(framing);
        if plan.format == PayloadFormat::DatadogLog {
            let built = BlockSet::build_with(&plan, plan.cache, Seed::from_number(seed), None, slots);
            let name = "datadog_log";
            prop_assert_eq!(built.unwrap_err(), BuildError::NotLines { name });
            return Ok(());
        }
        let set = build(&plan, seed, slots);
        prop_assert!(set.largest_block() as u64 <= plan.blocks.maximum().bytes());
        for index in 0..set.len() {
            let block = set.block(index);
            prop_assert_eq!(block.slots().len(), block.event_ends().len());
            let mut start = 0;
            for (slot, end) in block.slots().zip(block.event_ends()) {
                prop_assert_eq!(&block.bytes[slot.offset..slot.offset + 8], &[0; 8]);
                let event = &block.bytes[slot.offset + 8..end];
                let feeds = event.iter().filter(|byte| **byte == b'\n').count();
                match framing {
                    PrefixFraming::Lines => {
                        prop_assert_eq!(slot.offset, start);
                        prop_assert!(event.ends_with(b"\n") && feeds == 1);
                    }
                    PrefixFraming::LengthPrefixed => {
                        prop_assert_eq!((slot.offset, feeds), (start + 8, 0));
                        let length = block.bytes[start..].first_chunk().unwrap();
                        let length = u64::from_be_bytes(*length);
                        prop_assert_eq!(length, (8 + event.len()) as u64);
                    }
                }
                start = end;
            }
        }
    }

    /// For all plans: without slots there are none.
    #[test]
    fn no_slots_unless_requested(plan in any_plan(), seed: u64) {
        let set = build(&plan, seed, SlotUse::None);
        prop_assert_eq!(set.run(0, set.len()).slots().len(), 0);
    }
}

/// A token as wide as a slot, different for each event.
fn stamp(number: usize) -> String {
    format!("{number:0SLOT_WIDTH$}")
}

/// The text of an event in which its stamp travels.
fn message(format: &PayloadFormat, event: &[u8]) -> String {
    let text = std::str::from_utf8(event).unwrap();
    match format {
        PayloadFormat::Syslog5424 => syslog5424(text).unwrap().message.to_owned(),
        PayloadFormat::ApacheCommon => apache_common(text).unwrap().target.to_owned(),
        PayloadFormat::Json => json_string(text, "name"),
        PayloadFormat::DatadogLog => json_string(
            text.trim_matches(|c| matches!(c, '[' | ',' | ']')),
            "message",
        ),
        _ => text.to_owned(),
    }
}
