//! Recordings cut into events.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use stillwell_payload::{BlockSet, BuildError, SLOT_PLACEHOLDER, SLOT_WIDTH, SlotUse};
use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::{BlockShape, ReplayCut, ReplayEnd, ReplayPlan};
use stillwell_plan::stamp::PrefixFraming;
use stillwell_units::{ByteSize, Seed};

use crate::golden::compare;
use crate::{events, plan, up_to};

fn by_lines() -> ReplayPlan {
    ReplayPlan {
        path: "/in".into(),
        cut: ReplayCut::Lines,
        base64: false,
        end: ReplayEnd::LineFeed,
        rounds: None,
    }
}

fn build(
    replay: ReplayPlan,
    blocks: BlockShape,
    cache: u64,
    source: &[u8],
    slots: SlotUse,
) -> Result<BlockSet, BuildError> {
    let plan = plan(PayloadFormat::Replay(replay), blocks, cache);
    let seed = Seed::from_number(1);
    BlockSet::build_with(&plan, plan.cache, seed, Some(source), slots)
}

/// A few events a block, so passes have several blocks.
fn few(count: u32) -> BlockShape {
    BlockShape::Events {
        count,
        maximum: ByteSize::mib(1),
    }
}

/// Number of times that the set was filled with the whole recording.
fn passes(cache: u64, pass: usize, rounds: Option<u64>) -> u64 {
    let fitting = (cache / pass as u64).max(1);
    fitting.min(rounds.unwrap_or(fitting).max(1))
}

proptest! {
    /// For all files, lines or chunks, plain or base64: the events are the pieces,
    /// all of them, in order, as often as they fit, and so many rounds are so many
    /// blocks.
    // compat: Tremor | base64 | works
    #[test]
    fn events_are_the_pieces_of_the_file(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..20),
        chunk in 1_u32..30,
        is_lines: bool,
        base64: bool,
        count in 1_u32..6,
        cache in 0_u64..3000,
        rounds in prop::option::of(0_u64..9),
    ) {
        // Lines hold none of what ends them, and chunks are cut where they are cut.
        let plain: Vec<Vec<u8>> = pieces.iter().map(|piece| {
            let kept = piece.iter().copied().filter(|byte| base64 || !b"\r\n".contains(byte));
            kept.collect()
        }).collect();
        let (source, expected, end) = if is_lines {
            let written = plain.iter().map(|piece| if base64 { STANDARD.encode(piece).into() } else { piece.clone() });
            let source: Vec<u8> = written.flat_map(|line| [line, b"\n".to_vec()].concat()).collect();
            (source, plain, ReplayEnd::LineFeed)
        } else {
            let whole = plain.concat();
            let length = if base64 { chunk.next_multiple_of(4) } else { chunk };
            let source = if base64 { STANDARD.encode(&whole).into_bytes() } else { whole.clone() };
            let of_plain = if base64 { length / 4 * 3 } else { length };
            let expected = whole.chunks(of_plain as usize).map(<[u8]>::to_vec).collect();
            (source, expected, ReplayEnd::Nothing)
        };
        let cut = match is_lines {
            true => ReplayCut::Lines,
            false => ReplayCut::Chunks { bytes: if base64 { chunk.next_multiple_of(4) } else { chunk } },
        };
        let replay = ReplayPlan { cut, base64, end, rounds, ..by_lines() };
        let built = build(replay, few(count), cache, &source, SlotUse::None);
        let tail: &[u8] = if is_lines { b"\n" } else { b"" };
        let pass: Vec<Vec<u8>> = expected.iter().map(|piece: &Vec<u8>| [piece, tail].concat()).collect();
        if pass.concat().is_empty() {
            prop_assert_eq!(built.unwrap_err(), BuildError::SourceEmpty);
            return Ok(());
        }
        let set = built.unwrap();
        let times = passes(cache, pass.concat().len(), rounds);
        let repeated: Vec<&[u8]> = (0..times).flat_map(|_| pass.iter().map(Vec::as_slice)).collect();
        prop_assert_eq!(events(&set), repeated);
        let each = expected.len().div_ceil(count as usize) as u64;
        prop_assert_eq!(set.len() as u64, each * times);
        prop_assert_eq!(set.blocks_max(), rounds.map(|rounds| rounds.max(1) * each));
    }

    /// For all texts: a stamp in an object is a field of it, and a stamp in any other
    /// line its last word; without it, the line is what it was.
    #[test]
    fn a_stamp_is_a_field_or_the_last_word(
        lines in prop::collection::vec(prop_oneof!["[a-z \"}{]{0,30}", "\\{(\"[a-z]\":[0-9])?\\} ?"], 1..20),
    ) {
        let source = lines.join("\n") + "\n";
        let set = build(by_lines(), up_to(4096), 0, source.as_bytes(), SlotUse::Every).unwrap();
        let whole = set.run(0, set.len());
        let mut start = 0;
        prop_assert_eq!(whole.slots().len(), lines.len());
        for ((line, slot), end) in lines.iter().zip(whole.slots()).zip(whole.event_ends()) {
            let event = std::str::from_utf8(&whole.bytes[start..end]).unwrap();
            let stamp = &whole.bytes[slot.offset..slot.offset + SLOT_WIDTH];
            prop_assert_eq!(stamp, SLOT_PLACEHOLDER.as_slice());
            let stamp = std::str::from_utf8(stamp).unwrap();
            let trimmed = line.trim();
            if trimmed.len() > 1 && trimmed.starts_with('{') && trimmed.ends_with('}') {
                let field = format!("\"stillwell\":\"{stamp}\"");
                let without = event.replace(&format!(",{field}"), "").replace(&field, "");
                prop_assert_eq!(without, format!("{line}\n"));
                if serde_json::from_str::<serde_json::Value>(line).is_ok() {
                    let object: serde_json::Value = serde_json::from_str(event).unwrap();
                    prop_assert_eq!(object["stillwell"].as_str(), Some(stamp));
                }
            } else {
                let gap = if line.is_empty() { "" } else { " " };
                prop_assert_eq!(event, format!("{line}{gap}{stamp}\n"));
            }
            start = end;
        }
    }
}

/// Every pass of a recording is there although each event is longer by its time.
#[test]
fn a_recording_with_times_before_its_events_is_whole() {
    let source = b"a\nbb\n\nccc\n";
    for (framing, first) in [
        (PrefixFraming::Lines, &b"\0\0\0\0\0\0\0\0a\n"[..]),
        (
            PrefixFraming::LengthPrefixed,
            b"\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0\0a",
        ),
    ] {
        let set = build(by_lines(), few(2), 0, source, SlotUse::Before(framing)).unwrap();
        assert_eq!((set.len(), set.total().events), (2, 4), "{framing:?}");
        assert_eq!(events(&set)[0], first, "{framing:?}");
    }
    let bare = ReplayPlan {
        end: ReplayEnd::Nothing,
        ..by_lines()
    };
    let lines = SlotUse::Before(PrefixFraming::Lines);
    let refused = build(bare, few(1), 0, source, lines).unwrap_err();
    assert_eq!(refused, BuildError::NotLines { name: "replay" });
}

/// A blank line that nothing ends was an event of which nothing was sent.
#[test]
fn where_nothing_ends_events_blank_lines_are_none() {
    let bare = ReplayPlan {
        end: ReplayEnd::Nothing,
        ..by_lines()
    };
    let set = build(bare.clone(), few(1), 0, b"one\n\ntwo\n", SlotUse::None).unwrap();
    assert_eq!((set.total().events, set.bytes()), (2, &b"onetwo"[..]));
    assert_eq!(
        build(bare, few(1), 0, b"\n\n", SlotUse::None).unwrap_err(),
        BuildError::SourceEmpty
    );
    let set = build(by_lines(), few(1), 0, b"one\n\n", SlotUse::None).unwrap();
    assert_eq!((set.total().events, set.bytes()), (2, &b"one\n\n"[..]));
}

#[test]
fn what_cannot_be_cut_is_refused() {
    let refused =
        |replay, source: &[u8], slots| build(replay, few(1), 0, source, slots).unwrap_err();
    let base64 = ReplayPlan {
        base64: true,
        ..by_lines()
    };
    assert_eq!(
        refused(base64, b"aGk=\n%%\n", SlotUse::None),
        BuildError::NotBase64 { number: 2 }
    );
    assert_eq!(
        refused(by_lines(), b"", SlotUse::None),
        BuildError::SourceEmpty
    );
    let chunks = ReplayPlan {
        cut: ReplayCut::Chunks { bytes: 3 },
        end: ReplayEnd::Nothing,
        ..by_lines()
    };
    assert_eq!(
        refused(chunks, b"abcdef", SlotUse::Every),
        BuildError::Unstampable
    );
}

#[test]
fn the_fingerprint_is_the_one_in_the_tree() {
    let source = b"{\"number\":1}\r\n\nplain text\nlast";
    let set = build(by_lines(), up_to(512), 4096, source, SlotUse::Every).unwrap();
    compare("replay", &set);
}
