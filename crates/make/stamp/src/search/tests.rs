use proptest::prelude::*;
use stillwell_units::{Moment, RunId};

use super::*;
use crate::span::Span;
use crate::stamp::{RunMark, Stamper, StreamId, Times};

/// One event: its text behind the stamp, with the stamp in front of it.
fn event(sequence: u64, text: &str) -> Vec<u8> {
    let run = RunMark::of(&RunId::from_bytes([9; 16]));
    let mut slot = [b'x'; STAMP_WIDTH];
    let stamper = Stamper::new(run, StreamId::new(4).unwrap());
    let span = Span::of(text.as_bytes());
    let times = Times::new(Moment::new(sequence), Moment::new(sequence));
    stamper.write(&mut slot, sequence, times, span);
    [&slot, text.as_bytes()].concat()
}

/// Reads of the given lengths, over and over; returns sequences and the final check of
/// each span.
fn seen(bytes: &[u8], lengths: &[usize]) -> (Vec<(u64, SpanCheck)>, u32) {
    let mut search = StampSearch::new();
    let mut all: Vec<(u64, SpanCheck)> = Vec::new();
    let mut broken = 0;
    let mut visit = |matched| match matched {
        StampMatch::Stamp { stamp, span } => all.push((stamp.sequence, span)),
        StampMatch::SpanChecked { stamp, span } => {
            let open = all.iter_mut();
            let mut open = open.filter(|span| **span == (stamp.sequence, SpanCheck::Pending));
            open.next().expect("told of before").1 = span;
        }
        StampMatch::Broken => broken += 1,
    };
    let mut rest = bytes;
    for length in lengths.iter().cycle() {
        let (read, after) = rest.split_at((*length).min(rest.len()));
        search.feed(read, &mut visit);
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    search.end(&mut visit);
    (all, broken)
}

fn seen_whole(message: &[u8]) -> (Vec<(u64, SpanCheck)>, u32) {
    let (mut all, mut broken) = (Vec::new(), 0);
    StampSearch::new().whole(message, |matched| match matched {
        StampMatch::Stamp { stamp, span } => all.push((stamp.sequence, span)),
        StampMatch::SpanChecked { .. } => panic!("nothing is open in a whole message"),
        StampMatch::Broken => broken += 1,
    });
    (all, broken)
}

/// Bytes between events, among them ones that look like the beginning of a stamp.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        (1..MAGIC.len()).prop_map(|length| MAGIC[..length].to_vec()),
        Just(b"qz8x0qz80qz8x1v0\xff".to_vec()),
    ]
}

/// Any lengths, and now and then very large ones.
fn lengths() -> impl Strategy<Value = Vec<usize>> {
    let length = prop_oneof![1_usize..20, 20_usize..300, 3_000_usize..9_000];
    prop::collection::vec(length, 1..6)
}

proptest! {
    #[test]
    fn every_stamp_is_seen_once_between_any_bytes(
        noises in prop::collection::vec((noise(), 0_usize..3), 1..20),
        texts in prop::array::uniform3("[ -~]{0,90}"),
        lengths in lengths(),
    ) {
        let mut bytes = Vec::new();
        for (sequence, (noise, text)) in (0..).zip(&noises) {
            bytes.extend_from_slice(noise);
            bytes.extend(event(sequence, &texts[*text]));
        }
        let expected: Vec<_> = (0..).zip(&noises).map(|(sequence, (_, text))| {
            let declared = texts[*text].len() > GUARD_WIDTH;
            (sequence, if declared { SpanCheck::Intact } else { SpanCheck::Undeclared })
        }).collect();
        prop_assert_eq!(seen(&bytes, &lengths), (expected.clone(), 0));
        prop_assert_eq!(seen_whole(&bytes), (expected, 0));
    }

    #[test]
    fn escaping_moves_nothing(
        text in "[a-z\"\\\\\n ]{0,80}",
        lengths in lengths(),
    ) {
        let event = event(7, &text);
        let escaped = String::from_utf8(event).unwrap()
            .replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let twice = escaped.replace('\\', "\\\\").replace('"', "\\\"");
        for form in [escaped.clone(), twice, format!("{{\"log\":\"{escaped}\",\"level\":1}}")] {
            let (all, broken) = seen(form.as_bytes(), &lengths);
            prop_assert_eq!((all.len(), broken), (1, 0));
            prop_assert_eq!(all[0].0, 7);
            prop_assert_ne!(all[0].1, SpanCheck::Pending);
        }
    }

    #[test]
    fn long_spans_are_checked_however_they_arrive(
        length in 1_usize..6_000,
        place in any::<prop::sample::Index>(),
        change in any::<bool>(),
        cut in 0_usize..6_000,
        lengths in lengths(),
    ) {
        let text: String = ('a'..='z').cycle().take(length).collect();
        let mut bytes = event(3, &text);
        let span = Span::of(text.as_bytes()).length();
        let mut expected = SpanCheck::Intact;
        if span == 0 {
            expected = SpanCheck::Undeclared;
        } else if change {
            bytes[STAMP_WIDTH + place.index(usize::from(span))] ^= 1;
            expected = SpanCheck::Damaged;
        }
        bytes.extend_from_slice(&event(4, ""));
        let both = vec![(3, expected), (4, SpanCheck::Undeclared)];
        prop_assert_eq!(seen(&bytes, &lengths), (both.clone(), 0));
        prop_assert_eq!(seen_whole(&bytes), (both, 0));
        let cut = &bytes[..STAMP_WIDTH + cut.min(length)];
        prop_assert_eq!(seen(cut, &lengths), seen_whole(cut));
    }

    #[test]
    fn a_flipped_byte_is_never_accepted(
        place in 0..STAMP_WIDTH,
        change in 1..=u8::MAX,
        lengths in lengths(),
    ) {
        let mut bytes = [event(1, "some text"), event(2, "some text")].concat();
        bytes[place] ^= change;
        let broken = u32::from(place >= MAGIC.len());
        prop_assert_eq!(seen(&bytes, &lengths), (vec![(2, SpanCheck::Intact)], broken));
    }

    #[test]
    fn arbitrary_bytes_never_panic_and_hold_no_stamp(
        parts in prop::collection::vec(noise(), 0..60),
        lengths in lengths(),
    ) {
        let bytes = parts.concat();
        // Two parts may make a magic between them.
        let magics = bytes.windows(MAGIC.len()).filter(|window| window == MAGIC).count();
        let (all, broken) = seen(&bytes, &lengths);
        prop_assert!(all.is_empty());
        prop_assert!(usize::try_from(broken).unwrap() <= magics);
        prop_assert_eq!(seen_whole(&bytes), (vec![], u32::try_from(magics).unwrap()));
    }

    #[test]
    fn magic_everywhere_is_reported_as_broken(count in 1_u32..50, lengths in lengths()) {
        let bytes = MAGIC.repeat(usize::try_from(count).unwrap());
        let (all, broken) = seen(&bytes, &lengths);
        prop_assert!(all.is_empty());
        prop_assert!(broken >= 1 && broken <= count);
        prop_assert_eq!(seen_whole(&bytes), (vec![], count));
    }
}

#[test]
fn a_stamp_is_reported_before_its_span_is_whole() {
    let bytes = event(1, "a text with an end that comes later");
    let mut search = StampSearch::new();
    let mut matches = Vec::new();
    search.feed(&bytes[..STAMP_WIDTH - 1], |matched| matches.push(matched));
    assert_eq!(matches, []);
    search.feed(&bytes[STAMP_WIDTH - 1..STAMP_WIDTH + 3], |matched| {
        matches.push(matched)
    });
    let [
        StampMatch::Stamp {
            stamp,
            span: SpanCheck::Pending,
        },
    ] = matches[..]
    else {
        panic!("{matches:?}");
    };
    search.feed(&bytes[STAMP_WIDTH + 3..], |matched| matches.push(matched));
    let span = SpanCheck::Intact;
    assert_eq!(matches[1..], [StampMatch::SpanChecked { stamp, span }]);
}

#[test]
fn a_cut_span_is_not_called_damaged() {
    let text = "a long text that a pipeline cuts off at some place or other";
    let whole = event(1, text);
    for length in STAMP_WIDTH..whole.len() - GUARD_WIDTH {
        let bytes = [&whole[..length], b"\n", &event(2, text)].concat();
        let (all, _) = seen(&bytes, &[17]);
        assert_eq!(all, [(1, SpanCheck::Unverifiable), (2, SpanCheck::Intact)]);
    }
}

#[test]
fn a_stamp_apart_from_its_span_is_checked_against_that_span() {
    let whole = event(7, "a body with its stamp in a header");
    let (token, body) = whole.split_at(STAMP_WIDTH);
    let span_of = |token: &[u8], body: &[u8]| match match_header(token, body) {
        StampMatch::Stamp { stamp, span } => Some((stamp.sequence, span)),
        StampMatch::SpanChecked { .. } | StampMatch::Broken => None,
    };
    assert_eq!(span_of(token, body), Some((7, SpanCheck::Intact)));
    let mut changed = body.to_vec();
    changed[3] ^= 1;
    assert_eq!(span_of(token, &changed), Some((7, SpanCheck::Damaged)));
    let shorter = &changed[..changed.len() - 1];
    assert_eq!(span_of(token, shorter), Some((7, SpanCheck::Unverifiable)));
    for none in [&b""[..], &token[1..], &whole, &[b'a'; STAMP_WIDTH]] {
        assert_eq!(span_of(none, body), None);
    }
}

/// A read that ended right behind a stamp left a span open and nothing to carry, and all of
/// the next read was kept for it, and its memory for good.
#[test]
fn a_read_that_ends_right_behind_a_stamp_keeps_no_more_than_it_needs() {
    let bytes = [
        event(1, "a text of which nothing came yet"),
        vec![b'x'; 64 << 10],
    ]
    .concat();
    let mut search = StampSearch::new();
    let mut matches = Vec::new();
    search.feed(&bytes[..STAMP_WIDTH], |matched| matches.push(matched));
    search.feed(&bytes[STAMP_WIDTH..], |matched| matches.push(matched));
    assert_eq!(matches.len(), 2, "{matches:?}");
    assert!(matches!(
        matches[1],
        StampMatch::SpanChecked {
            span: SpanCheck::Intact,
            ..
        }
    ));
    assert!(search.carry.len() < REACH);
    assert!(search.carry.capacity() <= 2 * REACH);
}
