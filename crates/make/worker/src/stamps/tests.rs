use proptest::prelude::*;
use stillwell_metric::{GeneratorShard, Labels, Recorder};
use stillwell_payload::SlotUse;
use stillwell_plan::payload::BlockShape;
use stillwell_plan::stamp::PrefixFraming;
use stillwell_plan::{PayloadFormat, PayloadPlan};
use stillwell_stamp::prefix::{Framing, PrefixReader, Prefixed};
use stillwell_stamp::{SpanCheck, StampMatch, StampSearch, match_header};
use stillwell_units::{ByteSize, RunId, Seed};

use super::*;
use crate::slice::Sending;

fn set(format: PayloadFormat) -> BlockSet {
    set_with(format, SlotUse::Every)
}

fn set_with(format: PayloadFormat, slots: SlotUse) -> BlockSet {
    let plan = PayloadPlan {
        format,
        blocks: BlockShape::UpTo {
            maximum: ByteSize::kib(4),
        },
        cache: ByteSize::kib(64),
        repeats: false,
    };
    let seed = Seed::from_number(3);
    BlockSet::build_with(&plan, plan.cache, seed, None, slots).unwrap()
}

fn shard() -> GeneratorShard {
    let [lateness, response, service] = [(); 3].map(|()| Recorder::pair().1);
    GeneratorShard::new(Labels::none(), lateness, response, service)
}

fn stamping(set: &BlockSet, every: u32, counts: &Arc<[Cell]>) -> Stamping {
    let plan = StampPlan {
        every: every.try_into().unwrap(),
        ..StampPlan::ALL
    };
    stamping_as(&plan, set, counts)
}

fn stamping_as(plan: &StampPlan, set: &BlockSet, counts: &Arc<[Cell]>) -> Stamping {
    let stream = Stream {
        id: StreamId::new(9).unwrap(),
        counts: Arc::clone(counts),
        index: 1,
    };
    let run = RunMark::of(&RunId::from_bytes([5; 16]));
    let streams = (vec![stream], FixedWall::now());
    Stamping::new(plan, run, RateUnit::Events, set, streams)
}

fn at(first: u64) -> SliceTimes {
    SliceTimes {
        first: Moment::new(first),
        last: Moment::new(first + 1_000),
        sent: Moment::new(first + 5_000),
    }
}

/// Sequence numbers, spans and latencies at moment 100,000 of all stamps in `bytes`.
fn stamps_in(bytes: &[u8]) -> Vec<(u64, SpanCheck, Nanos)> {
    let mut stamps = Vec::new();
    StampSearch::new().whole(bytes, |matched| match matched {
        StampMatch::Stamp { stamp, span } => {
            stamps.push((stamp.sequence, span, stamp.latency(Moment::new(100_000))));
        }
        _ => panic!("{matched:?}"),
    });
    stamps
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn for_all_cuts_numbers_follow_each_other_over_what_was_begun(
        every in 1_u32..7,
        slices in prop::collection::vec((any::<prop::sample::Index>(), 1_usize..6, 0_usize..9_000), 1..8),
    ) {
        let set = set(PayloadFormat::Syslog5424);
        let counts: Arc<[Cell]> = [Cell::default(), Cell::default()].into();
        let stamping = stamping(&set, every, &counts);
        let mut marks = stamping.marks().unwrap();
        prop_assert!(stamping.marks().is_none());
        let shard = shard();
        let (mut sequences, mut begun) = (Vec::new(), 0);
        for (first, length, cut) in slices {
            let first = first.index(set.len());
            let slice = Slice {
                first,
                last: (first + length).min(set.len()),
                intended: Moment::new(1_000),
                intended_last: Moment::new(2_000),
            };
            marks.fill(&stamping, &set, slice, at(1_000));
            let sending = Sending::new(&set, &shard, RateUnit::Events, slice);
            let mut sending = sending.marked(marks.outgoing(&stamping));
            let bytes = sending.rest();
            // The connection is lost after that many bytes.
            let cut = cut.min(bytes.len());
            sending.wrote(cut / 3);
            sending.wrote(cut - cut / 3);
            let run = set.run(slice.first, slice.last);
            let starts = std::iter::once(0).chain(run.event_ends());
            let starts: Vec<usize> = starts.take(run.event_ends().len()).collect();
            let ends: Vec<usize> = run.event_ends().collect();
            for (start, end) in starts.iter().zip(&ends).filter(|(start, _)| **start < cut) {
                let stamps = stamps_in(&bytes[*start..*end]);
                prop_assert_eq!(stamps.len(), usize::from(begun % u64::from(every) == 0));
                sequences.extend(stamps.iter().map(|(sequence, ..)| *sequence));
                prop_assert!(stamps.iter().all(|(_, span, _)| *span == SpanCheck::Intact));
                begun += 1;
            }
        }
        let expected: Vec<u64> = (0..sequences.len() as u64).collect();
        prop_assert_eq!(&sequences, &expected);
        prop_assert_eq!(counts[0].total(), 0);
        prop_assert_eq!(counts[1].total(), expected.len() as u64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn for_all_fates_requests_that_left_have_numbers_that_follow_each_other(
        every in 1_u32..5,
        // Which block, and whether any of it leaves; if not, whether that is only
        // known later.
        requests in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..4), 1..30),
    ) {
        let set = set_with(PayloadFormat::Json, SlotUse::None);
        let counts: Arc<[Cell]> = [Cell::default(), Cell::default()].into();
        let plan = StampPlan { every: every.try_into().unwrap(), form: StampForm::Header, ..StampPlan::ALL };
        let stamping = stamping_as(&plan, &set, &counts);
        let mut marks = stamping.marks().unwrap();
        let shard = shard();
        let (mut sequences, mut begun) = (Vec::new(), 0_u64);
        for (block, ending) in requests {
            let first = block.index(set.len());
            let slice = Slice {
                first,
                last: first + 1,
                intended: Moment::new(1_000),
                intended_last: Moment::new(2_000),
            };
            marks.fill(&stamping, &set, slice, at(1_000));
            let sending = Sending::new(&set, &shard, RateUnit::Events, slice);
            let mut sending = sending.marked(marks.outgoing(&stamping));
            let (body, header) = (sending.rest(), sending.header().copied());
            prop_assert_eq!(body, set.block(first).bytes);
            prop_assert_eq!(header.is_some(), begun % u64::from(every) == 0);
            let (left, is_known_later) = (ending > 1, ending == 1);
            if left || is_known_later {
                sending.wrote(1);
                sending.wrote(body.len() - 1);
            }
            if is_known_later {
                marks.take_back(&stamping, 0);
            }
            if !left {
                continue;
            }
            begun += 1;
            if let Some(token) = header {
                let StampMatch::Stamp { stamp, span } = match_header(&token, body) else {
                    panic!("{token:?}");
                };
                prop_assert_eq!(span, SpanCheck::Intact);
                sequences.push(stamp.sequence);
            }
        }
        let expected: Vec<u64> = (0..sequences.len() as u64).collect();
        prop_assert_eq!(&sequences, &expected);
        prop_assert_eq!(counts[1].total(), expected.len() as u64);
    }
}

#[test]
fn each_event_follows_its_intended_time() {
    for framing in PrefixFraming::ALL {
        let set = set_with(PayloadFormat::Syslog5424, SlotUse::Before(framing));
        let counts: Arc<[Cell]> = [Cell::default(), Cell::default()].into();
        let form = StampForm::Prefix(framing);
        let plan = StampPlan {
            form,
            ..StampPlan::ALL
        };
        let stamping = stamping_as(&plan, &set, &counts);
        let mut marks = stamping.marks().unwrap();
        let slice = Slice {
            first: 1,
            last: 3,
            intended: Moment::new(0),
            intended_last: Moment::new(0),
        };
        marks.fill(&stamping, &set, slice, at(10_000));
        let copy = marks.outgoing(&stamping).copy.unwrap();
        let mut times = Vec::new();
        let mut reader = PrefixReader::new(match framing {
            PrefixFraming::Lines => Framing::Lines,
            PrefixFraming::LengthPrefixed => Framing::Lengths,
        });
        reader.take(copy, |time| times.push(time));
        let [first, last] = [10_000, 11_000].map(|time| stamping.wall.at(Moment::new(time)));
        let of_first = events(&set, 1, 2);
        let of_last = events(&set, 2, 3);
        let expected = std::iter::repeat_n(Prefixed::Event(first), of_first)
            .chain(std::iter::repeat_n(Prefixed::Event(last), of_last));
        assert_eq!(times, expected.collect::<Vec<_>>());
    }
}

#[test]
fn every_format_with_text_guarantees_some_of_it() {
    for format in [
        PayloadFormat::Syslog5424,
        PayloadFormat::Syslog3164,
        PayloadFormat::DatadogLog,
        PayloadFormat::Ascii,
    ] {
        let set = set(format);
        let spans = spans(&set);
        let declared = spans.iter().filter(|span| span.length() > 0).count();
        assert!(declared * 2 > spans.len(), "{declared} of {}", spans.len());
    }
}

#[test]
fn blocks_of_a_slice_have_intended_times_on_a_line() {
    let set = set(PayloadFormat::Syslog5424);
    let counts: Arc<[Cell]> = [Cell::default(), Cell::default()].into();
    let stamping = stamping(&set, 1, &counts);
    let mut marks = stamping.marks().unwrap();
    let slice = Slice {
        first: 0,
        last: 3,
        intended: Moment::new(0),
        intended_last: Moment::new(0),
    };
    marks.fill(&stamping, &set, slice, at(10_000));
    let copy = marks.outgoing(&stamping).copy.unwrap();
    let latencies: Vec<u64> = stamps_in(copy)
        .iter()
        .map(|(.., late)| late.as_u64())
        .collect();
    let ends = [1, 2, 3].map(|block| events(&set, 0, block));
    assert_eq!(latencies[0], 90_000);
    assert!(latencies[..ends[0]].iter().all(|late| *late == 90_000));
    let middle = latencies[ends[0]];
    assert!(
        latencies[ends[0]..ends[1]]
            .iter()
            .all(|late| *late == middle)
    );
    assert!((89_001..90_000).contains(&middle), "{middle}");
    assert!(
        latencies[ends[1]..ends[2]]
            .iter()
            .all(|late| *late == 89_000)
    );
}
