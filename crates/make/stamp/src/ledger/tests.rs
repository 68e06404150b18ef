mod written;

use std::collections::BTreeMap;

use proptest::prelude::*;
use stillwell_units::RunId;

use super::*;
use crate::span::Span;

fn expected(copies: u8, memory: ByteSize) -> Expected {
    Expected {
        run: RunMark::of(&RunId::from_bytes([1; 16])),
        streams: vec![expected_stream(copies); 2],
        memory,
    }
}

fn expected_stream(copies: u8) -> ExpectedStream {
    ExpectedStream {
        copies,
        late_after: Some(Nanos::new(100)),
    }
}

fn ledger(copies: u8) -> Ledger {
    Ledger::new(expected(copies, ByteSize::mib(64))).unwrap()
}

/// As little memory as a ledger takes.
fn tight(copies: u8) -> Ledger {
    let needed = match Ledger::new(expected(copies, ByteSize::new(1))) {
        Err(LedgerError::Memory { needed, .. }) => needed,
        other => panic!("{other:?}"),
    };
    Ledger::new(expected(copies, needed)).unwrap()
}

fn stream() -> StreamId {
    StreamId::new(1).unwrap()
}

fn enter(ledger: &mut Ledger, sequence: u64) -> ArrivalKind {
    let stamp = Stamp {
        run: ledger.expected().run,
        stream: stream(),
        sequence,
        time: 1_000,
        lateness: 7,
        span: Span::NONE,
    };
    let arrival = ledger.enter(&stamp, SpanCheck::Undeclared, Moment::new(1_010));
    assert_eq!(
        (arrival.sequence, arrival.latency, arrival.transit),
        (sequence, Nanos::new(10), Nanos::new(3))
    );
    arrival.kind
}

fn figures(ledger: &Ledger, sent: Option<u64>) -> StreamFigures {
    ledger.figures(stream(), sent).unwrap()
}

/// The same account, kept as plainly as can be.
#[derive(Default)]
struct Plain {
    counts: BTreeMap<u64, u64>,
    latest: u64,
    reordered: u64,
    displacement_max: u64,
}

impl Plain {
    fn enter(&mut self, sequence: u64, copies: u64) -> ArrivalKind {
        let count = self.counts.entry(sequence).or_default();
        *count += 1;
        match *count {
            1 if sequence < self.latest => {
                let displacement = self.latest - sequence;
                self.reordered += 1;
                self.displacement_max = self.displacement_max.max(displacement);
                ArrivalKind::Reordered { displacement }
            }
            1 => {
                self.latest = sequence;
                ArrivalKind::First
            }
            count if count <= copies => ArrivalKind::Copy,
            _ => ArrivalKind::Duplicated,
        }
    }

    fn lost(&self, sent: u64) -> Vec<u64> {
        (0..sent)
            .filter(|sequence| !self.counts.contains_key(sequence))
            .collect()
    }

    /// Lost, incomplete, duplicated, unsent.
    fn truth(&self, sent: u64, copies: u64) -> [u64; 4] {
        let received = self.counts.range(..sent);
        let incomplete = received
            .clone()
            .filter(|(_, count)| **count < copies)
            .count();
        let duplicated = self
            .counts
            .values()
            .map(|count| count.saturating_sub(copies));
        [
            sent - u64::try_from(received.count()).unwrap(),
            u64::try_from(incomplete).unwrap(),
            duplicated.sum(),
            u64::try_from(self.counts.range(sent..).count()).unwrap(),
        ]
    }

    fn ranges(&self, sent: u64) -> Vec<(u64, u64)> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for sequence in self.lost(sent) {
            match ranges.last_mut() {
                Some(range) if range.1 + 1 == sequence => range.1 = sequence,
                _ => ranges.push((sequence, sequence)),
            }
        }
        ranges
    }
}

fn bounds(figures: &StreamFigures) -> [Bounds; 4] {
    [
        figures.lost,
        figures.incomplete,
        figures.duplicated,
        figures.unsent,
    ]
}

/// Changes by a pipeline to a stream: pieces of it in order, each `(from, length, step)`,
/// with losses, copies and moves of all sizes.
fn arrivals() -> impl Strategy<Value = Vec<u64>> {
    let piece = (
        0_u64..200_000,
        1_u64..3_000,
        prop_oneof![
            4 => Just(1_u64),
            1 => 2_u64..5,
            1 => 50_u64..200,
        ],
    );
    prop::collection::vec(piece, 1..8).prop_map(|pieces| {
        let all = pieces
            .into_iter()
            .flat_map(|(from, length, step)| (0..length).map(move |place| from + place * step));
        all.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_account_is_that_of_a_plain_one(
        arrivals in arrivals(),
        sent in 0_u64..600_000,
        copies in 1_u8..4,
    ) {
        let (mut ledger, mut plain) = (ledger(copies), Plain::default());
        let copies = u64::from(copies);
        for sequence in &arrivals {
            prop_assert_eq!(enter(&mut ledger, *sequence), plain.enter(*sequence, copies));
        }
        let figures = figures(&ledger, Some(sent));
        prop_assert_eq!(bounds(&figures), plain.truth(sent, copies).map(Bounds::exact));
        prop_assert_eq!(figures.reordered, plain.reordered);
        prop_assert_eq!(figures.displacement_max, plain.displacement_max);
        prop_assert_eq!(figures.arrivals, u64::try_from(arrivals.len()).unwrap());
        prop_assert_eq!(figures.bounded_windows, 0);
        let losses = ledger.losses(stream(), Some(sent), usize::MAX).unwrap();
        let ranges: Vec<_> = losses.ranges.iter().map(|loss| (loss.first, loss.last)).collect();
        prop_assert_eq!(losses.count, u64::try_from(ranges.len()).unwrap());
        prop_assert_eq!(ranges, plain.ranges(sent));
    }

    #[test]
    fn several_workers_together_count_as_one_does(
        arrivals in arrivals(),
        workers in prop::collection::vec(0_usize..3, 64),
        often in prop_oneof![Just(usize::MAX), 500_usize..3_000],
        copies in 1_u8..4,
    ) {
        let mut ledgers: Vec<_> = (0..3).map(|_| ledger(copies)).collect();
        let (mut whole, mut plain) = (ledger(copies), Plain::default());
        for (place, sequence) in arrivals.iter().enumerate() {
            let worker = workers[usize::try_from(*sequence * 7 % 64).unwrap()];
            enter(&mut ledgers[worker], *sequence);
            plain.enter(*sequence, u64::from(copies));
            if place % often == often - 1 {
                whole.absorb(&mut ledgers[place % 3]).unwrap();
            }
        }
        for ledger in &mut ledgers {
            whole.absorb(ledger).unwrap();
            prop_assert_eq!(figures(ledger, Some(0)).arrivals, 0);
        }
        let figures = figures(&whole, Some(400_000));
        let truth = plain.truth(400_000, u64::from(copies));
        prop_assert_eq!(bounds(&figures), truth.map(Bounds::exact));
    }

    #[test]
    fn with_too_little_memory_the_truth_lies_within_bounds(
        arrivals in arrivals(),
        scattered in prop::collection::vec(0_u64..400_000, 6_000..12_000),
        sent in 1_u64..500_000,
        copies in 1_u8..4,
        cut in any::<bool>(),
    ) {
        let (mut first, mut second) = (tight(copies), tight(copies));
        let mut plain = Plain::default();
        let spread: Vec<u64> = (0..8_000_u64).map(|place| place * 61).collect();
        for (place, sequence) in spread.iter().chain(&scattered).chain(&arrivals).enumerate() {
            let ledger = if cut && place % 3 == 0 { &mut second } else { &mut first };
            enter(ledger, *sequence);
            plain.enter(*sequence, u64::from(copies));
            prop_assert!(ledger.memory() <= ledger.expected().memory);
        }
        first.absorb(&mut second).unwrap();
        prop_assert!(first.memory() <= first.expected().memory);
        let figures = figures(&first, Some(sent));
        let truth = plain.truth(sent, u64::from(copies));
        for (bounds, truth) in bounds(&figures).iter().zip(truth) {
            prop_assert!(bounds.contains(truth), "{truth} in {bounds:?} of {figures:?}");
        }
        let losses = first.losses(stream(), Some(sent), usize::MAX).unwrap();
        let lost = plain.lost(sent);
        for loss in &losses.ranges {
            let before = |end: u64| lost.partition_point(|first| *first < end);
            let inside = before(loss.last + 1) - before(loss.first);
            prop_assert!(loss.lost.contains(u64::try_from(inside).unwrap()), "{loss:?}");
        }
        let covered = |first: &u64| {
            let at = losses.ranges.partition_point(|loss| loss.last < *first);
            losses.ranges.get(at).is_some_and(|loss| loss.first <= *first)
        };
        prop_assert!(lost.iter().all(covered));
    }

    #[test]
    fn no_sequence_number_breaks_it(sequences in prop::collection::vec(any::<u64>(), 1..200)) {
        let mut ledger = tight(2);
        for sequence in sequences {
            enter(&mut ledger, sequence % crate::SEQUENCE_LIMIT);
            prop_assert!(ledger.memory() <= ledger.expected().memory);
        }
        let figures = figures(&ledger, None);
        prop_assert!(figures.received.most <= figures.sent);
    }
}

#[test]
fn order_has_a_table() {
    let cases: [(&[u64], [u64; 5]); 8] = [
        // arrivals, then lost of 6, duplicated, reordered, displacement, unsent
        (&[0, 1, 2, 3, 4, 5], [0, 0, 0, 0, 0]),
        (&[], [6, 0, 0, 0, 0]),
        (&[0, 2, 1, 3, 4, 5], [0, 0, 1, 1, 0]),
        (&[1, 2, 3, 4, 5, 0], [0, 0, 1, 5, 0]),
        (&[5, 4, 3, 2, 1, 0], [0, 0, 5, 5, 0]),
        (&[0, 0, 1, 1, 1, 5], [3, 3, 0, 0, 0]),
        (&[3, 0, 3, 0], [4, 2, 1, 3, 0]),
        (&[6, 0, 9], [5, 0, 1, 6, 2]),
    ];
    for (arrivals, [lost, duplicated, reordered, displacement, unsent]) in cases {
        let mut ledger = ledger(1);
        for sequence in arrivals {
            enter(&mut ledger, *sequence);
        }
        let figures = figures(&ledger, Some(6));
        assert_eq!(figures.lost.exactly(), Some(lost), "{arrivals:?}");
        assert_eq!(
            figures.duplicated.exactly(),
            Some(duplicated),
            "{arrivals:?}"
        );
        assert_eq!(figures.reordered, reordered, "{arrivals:?}");
        assert_eq!(figures.displacement_max, displacement, "{arrivals:?}");
        assert_eq!(figures.unsent.exactly(), Some(unsent), "{arrivals:?}");
    }
}

/// One part in a hundred of 10⁹ events in 64 MiB: as much loss and displacement
/// as has to be exact, all of it alone among what arrived.
#[test]
fn a_hundredth_missing_or_displaced_fits() {
    const EVENTS: u64 = 10_000_000;
    let memory = ByteSize::new(ByteSize::mib(64).bytes() / 100);
    let mut ledger = Ledger::new(expected(1, memory)).unwrap();
    let mut most = ByteSize::new(0);
    for sequence in 0..EVENTS {
        match sequence % 200 {
            100 => continue,
            // Displaced by up to a million, so it enters a closed window.
            7 if sequence > 1_000_000 => {
                enter(&mut ledger, sequence - 1_000_000 + sequence % 3 * 200);
            }
            7 => {}
            _ => {
                enter(&mut ledger, sequence);
            }
        }
        most = most.max(ledger.memory());
    }
    assert!(most <= memory, "{most}");
    let figures = figures(&ledger, Some(EVENTS));
    assert_eq!(figures.bounded_windows, 0);
    assert_eq!(
        figures.received.exactly(),
        figures.arrivals.checked_sub(duplicated(&figures))
    );
    assert!(figures.lost.exactly() >= Some(EVENTS / 200));
    assert!(figures.reordered > EVENTS / 1_000);
}

fn duplicated(figures: &StreamFigures) -> u64 {
    figures.duplicated.exactly().unwrap()
}

#[test]
fn more_than_fits_is_bounded_and_names_the_place() {
    const EVENTS: u64 = 3_000_000;
    let memory = ByteSize::kib(192);
    let mut ledger = Ledger::new(expected(1, memory)).unwrap();
    let mut lost = 0;
    for sequence in 0..EVENTS {
        if sequence * 0x9e37_79b9 % 1024 < 300 {
            lost += 1;
        } else {
            enter(&mut ledger, sequence);
        }
        assert!(ledger.memory() <= memory);
    }
    // Nothing came for a window after its numbers were given up.
    let before = figures(&ledger, Some(EVENTS));
    assert_eq!(before.lost.exactly(), Some(lost));
    assert!(before.bounded_windows > 20, "{before:?}");
    // A hundred of the first window come again, or late: these cases cannot be distinguished.
    for sequence in 0..100 {
        assert_eq!(enter(&mut ledger, sequence), ArrivalKind::Unclear);
    }
    let after = figures(&ledger, Some(EVENTS));
    assert_eq!(
        after.lost,
        Bounds {
            least: lost - 100,
            most: lost
        }
    );
    assert_eq!(
        after.duplicated,
        Bounds {
            least: 0,
            most: 100
        }
    );
    assert_eq!(after.unclear, 100);
    let losses = ledger.losses(stream(), Some(EVENTS), 2).unwrap();
    assert_eq!((losses.ranges[0].first, losses.ranges[0].last), (0, 65_535));
    assert_eq!(
        losses.ranges[0].lost.most - losses.ranges[0].lost.least,
        100
    );
    assert_eq!(losses.ranges.len(), 2);
    assert!(losses.count > 2);
}

/// A run of hours through what loses an event now and then: our own memory is not to
/// grow by it.
#[test]
fn a_few_gaps_in_each_window_cost_no_more_than_none() {
    const WINDOWS: u64 = 40;
    let memory = |is_lost: fn(u64) -> bool| {
        let mut ledger = ledger(1);
        for sequence in (1..WINDOWS << 16).filter(|sequence| !is_lost(*sequence)) {
            enter(&mut ledger, sequence);
        }
        assert_eq!(figures(&ledger, None).bounded_windows, 0);
        ledger.memory().bytes()
    };
    // The first event is missing: even full windows are kept. The bits of the open windows
    // come on top.
    let none = memory(|_| false) + 4 * 8192;
    assert_eq!(memory(|sequence| sequence % 16_384 == 5), none);
    let more = memory(|sequence| sequence % 1_000 == 5) - none;
    assert!((100..300).contains(&(more / WINDOWS)), "{more}");
}

#[test]
fn windows_with_a_few_gaps_keep_them_by_number() {
    const EVENTS: u64 = 12 << 16;
    // One, two next to each other, six, and seven in a window; and at its edges.
    let mut lost = vec![5, 70_000, 70_001, 131_072, 196_607];
    lost.extend((0..6).map(|number| 262_144 + 100 * number));
    lost.extend((0..7).map(|number| 327_680 + 100 * number));
    let mut seen = ledger(1);
    for sequence in (0..EVENTS).filter(|sequence| lost.binary_search(sequence).is_err()) {
        assert_eq!(enter(&mut seen, sequence), ArrivalKind::First);
    }
    let missing = |ledger: &Ledger| {
        let ranges = ledger.losses(stream(), Some(EVENTS), 100).unwrap().ranges;
        let numbers = ranges.iter().flat_map(|range| range.first..=range.last);
        numbers.collect::<Vec<u64>>()
    };
    let mut all = ledger(1);
    enter(&mut all, 5);
    lost.retain(|sequence| *sequence != 5);
    for sequence in [70_002, 262_145, 327_681] {
        assert_eq!(enter(&mut seen, sequence), ArrivalKind::Duplicated);
    }
    all.absorb(&mut seen).unwrap();
    assert_eq!(missing(&all), lost);
    // Late, from the last to the first: each window fills up.
    while let Some(late) = lost.pop() {
        let displacement = EVENTS - 1 - late;
        let kind = ArrivalKind::Reordered { displacement };
        assert_eq!(enter(&mut all, late), kind);
        assert_eq!(enter(&mut all, late), ArrivalKind::Duplicated);
        assert_eq!(missing(&all), lost);
    }
    let figures = figures(&all, Some(EVENTS));
    assert_eq!(
        (figures.lost.exactly(), duplicated(&figures)),
        (Some(0), 20)
    );
    assert_eq!((figures.unclear, figures.bounded_windows), (0, 0));
}

#[test]
fn what_is_lost_in_one_piece_costs_nothing() {
    let mut ledger = ledger(1);
    enter(&mut ledger, 0);
    let before = ledger.memory();
    enter(&mut ledger, crate::SEQUENCE_LIMIT - 1);
    assert!(ledger.memory().bytes() - before.bytes() < 200);
    let losses = ledger.losses(stream(), None, 5).unwrap();
    let lost = crate::SEQUENCE_LIMIT - 2;
    let only = Loss {
        first: 1,
        last: lost,
        lost: Bounds::exact(lost),
    };
    assert_eq!(losses.ranges, [only]);
}

#[test]
fn spans_lateness_and_foreign_stamps_are_counted() {
    let mut ledger = ledger(1);
    let known_stamp = Stamp {
        run: ledger.expected().run,
        stream: stream(),
        sequence: 5,
        time: 1_000,
        lateness: 7,
        span: Span::NONE,
    };
    let other_run = RunMark::of(&RunId::from_bytes([2; 16]));
    let foreign_stamps = [
        Stamp {
            run: other_run,
            ..known_stamp
        },
        Stamp {
            stream: StreamId::new(2).unwrap(),
            ..known_stamp
        },
    ];
    for stamp in foreign_stamps {
        let arrival = ledger.enter(&stamp, SpanCheck::Damaged, Moment::new(2_000));
        assert_eq!(arrival.kind, ArrivalKind::Foreign);
        ledger.check_span(&stamp, SpanCheck::Damaged);
    }
    let late = ledger.enter(&known_stamp, SpanCheck::Pending, Moment::new(1_101));
    assert_eq!(
        (late.kind, late.latency),
        (ArrivalKind::First, Nanos::new(101))
    );
    assert_eq!(figures(&ledger, None).pending, 1);
    let checked = StampMatch::SpanChecked {
        stamp: known_stamp,
        span: SpanCheck::Damaged,
    };
    assert_eq!(ledger.take_in(&checked, Moment::new(1_102)), None);
    assert_eq!(
        ledger.take_in(&StampMatch::Broken, Moment::new(1_102)),
        None
    );
    let early = Stamp {
        sequence: 6,
        ..known_stamp
    };
    let arrival = ledger.enter(&early, SpanCheck::Intact, Moment::new(900));
    assert_eq!(arrival.latency, Nanos::ZERO);
    let figures = figures(&ledger, None);
    assert_eq!((figures.late, figures.damaged, figures.intact), (1, 1, 1));
    assert_eq!((figures.pending, figures.undeclared), (0, 0));
    assert_eq!(figures.damaged_sequences, [5]);
    assert_eq!((ledger.foreign(), ledger.broken()), (2, 1));
    assert_eq!(ledger.figures(StreamId::new(2).unwrap(), None), None);
}

#[test]
fn what_cannot_be_expected_is_refused() {
    let refused = |streams| {
        let good = expected(1, ByteSize::mib(64));
        let refused = Ledger::new(Expected { streams, ..good });
        refused.unwrap_err().to_string()
    };
    assert_eq!(refused(vec![]), "a ledger has 1 to 65536 streams, not 0");
    assert_eq!(
        refused(vec![expected_stream(1), expected_stream(9)]),
        "an event is expected 1 to 8 times, not 9"
    );
    assert!(refused(vec![expected_stream(8); 60_000]).contains("needs"));
    let mut ledger_of_one = ledger(1);
    assert_eq!(
        ledger_of_one.absorb(&mut ledger(2)),
        Err(LedgerError::Unlike)
    );
}
