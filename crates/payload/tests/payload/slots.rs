use proptest::prelude::*;
use stillwell_payload::{Fingerprint, SLOT_PLACEHOLDER, SLOT_WIDTH, SlotUse};
use stillwell_plan::PayloadFormat;

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

    /// For all plans: without slots there are none.
    #[test]
    fn no_slots_unless_asked_for(plan in any_plan(), seed: u64) {
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
