use proptest::prelude::*;

use super::*;
use crate::lanes::Plain;

/// The search under test; nothing where the processor has no such registers.
fn wide() -> Option<Wide> {
    let wide = Wide::new();
    if wide.is_none() {
        eprintln!("this processor has no AVX2: nothing was tested");
    }
    wide
}

proptest! {
    #[test]
    fn near_and_far_are_those_of_the_finder(
        pieces in prop::collection::vec(
            prop_oneof![
                Just(MAGIC.to_vec()),
                (0_usize..8).prop_map(|length| MAGIC[..length].to_vec()),
                Just(b"qz".to_vec()),
                prop::collection::vec(any::<u8>(), 0..70),
            ],
            0..8,
        ),
    ) {
        let Some(wide) = wide() else { return Ok(()) };
        let bytes = pieces.concat();
        let finder = Finder::new(MAGIC);
        prop_assert_eq!(wide.find(&finder, &bytes), finder.find(&bytes));
    }

    #[test]
    fn what_can_be_read_is_read_as_plainly(
        letters in "[a-p]{56}",
        place in 0_usize..64,
        byte in any::<u8>(),
    ) {
        let Some(wide) = wide() else { return Ok(()) };
        let mut bytes: [u8; 64] = [&MAGIC[..], letters.as_bytes()].concat().try_into().unwrap();
        prop_assert_eq!(wide.decode(&bytes), Plain.decode(&bytes));
        prop_assert_eq!(wide.decode(&bytes).1, 0);
        bytes[place] = byte;
        let ((wide, wrong), (plain, plainly)) = (wide.decode(&bytes), Plain.decode(&bytes));
        // A magic with other characters is recognized by its first word.
        prop_assert_eq!(wrong | wide[0] == 0, plainly | plain[0] == 0);
        if wrong | wide[0] == 0 {
            prop_assert_eq!(wide, plain);
        }
    }
}

#[test]
fn every_byte_at_every_place_is_distinguished() {
    let Some(wide) = wide() else { return };
    for place in 8..64 {
        for byte in 0..=u8::MAX {
            let mut bytes = [b'p'; 64];
            bytes[..8].copy_from_slice(MAGIC);
            bytes[place] = byte;
            let (_, wrong) = wide.decode(&bytes);
            assert_eq!(
                wrong == 0,
                (b'a'..=b'p').contains(&byte),
                "{byte} at {place}"
            );
        }
    }
}

#[test]
fn a_magic_is_found_wherever_it_begins() {
    let Some(wide) = wide() else { return };
    let finder = Finder::new(MAGIC);
    for place in 0..3 * NEAR {
        let mut bytes = [b'q'; 4 * NEAR];
        bytes[place..place + MAGIC.len()].copy_from_slice(MAGIC);
        for end in place + MAGIC.len()..=bytes.len() {
            assert_eq!(wide.find(&finder, &bytes[..end]), Some(place));
        }
        assert_eq!(wide.find(&finder, &bytes[place + 1..]), None);
    }
}
