use proptest::prelude::*;

use super::*;

const RUNS: u32 = RUN_MASK;

fn written(run: u32, stream: u32, sequence: u64, time: u64, span: Span) -> [u8; STAMP_WIDTH] {
    let mut slot = [b'x'; STAMP_WIDTH];
    let stamper = Stamper::new(RunMark(run & RUNS), StreamId::new(stream).unwrap());
    let sent = Moment::new(time.saturating_add(5_000_000));
    let times = Times::new(Moment::new(time), sent);
    stamper.write(&mut slot, sequence, times, span);
    slot
}

proptest! {
    #[test]
    fn stamps_read_back(
        run in 0..=RUNS,
        stream in 0..STREAM_LIMIT,
        sequence in 0..SEQUENCE_LIMIT,
        time in any::<u64>(),
        behind in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let span = Span::of(&behind);
        let slot = written(run, stream, sequence, time, span);
        prop_assert!(slot.iter().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9')));
        let expected = Stamp {
            run: RunMark(run),
            stream: StreamId(stream),
            sequence,
            span,
            time: time % TIME_LIMIT,
            lateness: pack_lateness(5_000_000.min(u64::MAX - time)),
        };
        prop_assert_eq!(Stamp::read(&slot), Some(expected));
    }

    #[test]
    fn two_changed_bytes_are_seen(
        sequence in 0..SEQUENCE_LIMIT,
        places in prop::array::uniform2(0_usize..STAMP_WIDTH),
        bytes in any::<[u8; 2]>(),
    ) {
        let slot = written(7, 3, sequence, sequence << 10, Span::NONE);
        let mut changed = slot;
        changed[places[0]] = bytes[0];
        changed[places[1]] = bytes[1];
        prop_assert_eq!(Stamp::read(&changed).is_some(), changed == slot);
    }

    #[test]
    fn halves_of_two_stamps_are_none(
        sequences in prop::array::uniform2(0..SEQUENCE_LIMIT),
        cut in 0..STAMP_WIDTH,
    ) {
        let first = written(7, 3, sequences[0], 1, Span::NONE);
        let second = written(7, 3, sequences[1], 2, Span::NONE);
        let torn: Vec<u8> = first[..cut].iter().chain(&second[cut..]).copied().collect();
        let torn: [u8; STAMP_WIDTH] = torn.try_into().unwrap();
        prop_assert_eq!(Stamp::read(&torn).is_some(), torn == first || torn == second);
    }

    #[test]
    fn arbitrary_bytes_are_no_stamp(rest in prop::collection::vec(any::<u8>(), 56)) {
        let bytes: [u8; STAMP_WIDTH] = [&MAGIC[..], &rest].concat().try_into().unwrap();
        prop_assert_eq!(Stamp::read(&bytes), None);
    }
}

#[test]
fn no_other_byte_at_any_place_is_accepted() {
    for sequence in [0, 1, 77, SEQUENCE_LIMIT - 1] {
        let slot = written(0x12_3456, 5, sequence, 1 << 50, Span::of(b"some text here"));
        for place in 0..STAMP_WIDTH {
            for byte in (0..=u8::MAX).filter(|byte| *byte != slot[place]) {
                let mut changed = slot;
                changed[place] = byte;
                assert_eq!(Stamp::read(&changed), None, "{byte} at {place}");
            }
        }
    }
}

#[test]
fn the_bytes_stay_the_same() {
    let run = RunMark::of(&RunId::from_bytes(*b"0123456789abcdef"));
    let mut slot = [0; STAMP_WIDTH];
    let stamper = Stamper::new(run, StreamId::new(2).unwrap());
    let span = Span::of(b" the quick brown fox jumps over the lazy dog, twice");
    let sent = Moment::new(123_456_790_234);
    let times = Times::new(Moment::new(123_456_789_000), sent);
    stamper.write(&mut slot, 1_000_000, times, span);
    assert_eq!(
        std::str::from_utf8(&slot).unwrap(),
        "0qz8x1v9pniejlcaaecepaaapjdlbnaacaaambaaiakbjjolcnealdakilohfang"
    );
}

#[test]
fn the_magic_is_only_at_the_beginning() {
    let alphabet = "abcdefghijklmnop";
    assert!(!alphabet.contains(char::from(MAGIC[0])));
    assert!(!MAGIC[1..].contains(&MAGIC[0]));
}

#[test]
fn what_is_too_large_begins_again() {
    let stamp = Stamp::read(&written(1, 1, SEQUENCE_LIMIT + 5, 0, Span::NONE)).unwrap();
    assert_eq!(stamp.sequence, 5);
    assert_eq!(StreamId::new(STREAM_LIMIT), None);
}

#[test]
fn times_are_whole_again_beside_the_time_of_arrival() {
    let hours = |count: u64| count * 3_600_000_000_000;
    let intended = [
        0,
        1,
        hours(1),
        hours(77),
        hours(79),
        hours(500) + 7,
        1 << 63,
    ];
    for intended in intended {
        let stamp = Stamp::read(&written(1, 1, 0, intended, Span::NONE)).unwrap();
        for later in [0, 1, hours(39)] {
            let now = Moment::new(intended + later);
            assert_eq!(stamp.latency(now), Nanos::new(later));
            assert_eq!(stamp.intended(now), Moment::new(intended));
        }
        for before in [1, hours(1)] {
            if let Some(now) = intended.checked_sub(before).map(Moment::new) {
                assert_eq!(stamp.latency(now), Nanos::ZERO);
                assert_eq!(stamp.intended(now), Moment::new(intended));
            }
        }
    }
}

#[test]
fn runs_have_marks_of_their_own() {
    let marks: std::collections::HashSet<_> = (0..64)
        .map(|byte| RunMark::of(&RunId::from_bytes([byte; 16])))
        .collect();
    assert_eq!(marks.len(), 64);
}

proptest! {
    #[test]
    fn latenesses_read_back_to_three_digits(nanos in 0_u64..4_000_000_000_000, shift in 0_u32..42) {
        let late = nanos >> shift;
        let times = Times::new(Moment::new(7), Moment::new(7 + late));
        let mut slot = [0; STAMP_WIDTH];
        Stamper::new(RunMark(1), StreamId(1)).write(&mut slot, 0, times, Span::NONE);
        let lateness = Stamp::read(&slot).unwrap().lateness().as_u64();
        prop_assert!(lateness <= late && late - lateness <= late / 1024, "{late} became {lateness}");
    }
}

#[test]
fn what_was_sent_early_was_not_late_and_the_longest_lateness_is_kept() {
    let lateness = |intended, sent| {
        let times = Times::new(Moment::new(intended), Moment::new(sent));
        let mut slot = [0; STAMP_WIDTH];
        Stamper::new(RunMark(1), StreamId(1)).write(&mut slot, 0, times, Span::NONE);
        Stamp::read(&slot).unwrap().lateness().as_u64()
    };
    assert_eq!(lateness(10, 3), 0);
    assert_eq!(lateness(0, u64::MAX), 2047 << 31);
}
