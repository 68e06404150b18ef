use stillwell_metric::{Labels, TimeState};
use stillwell_pacer::{Share, TurnPlan};
use stillwell_plan::RateShape;
use stillwell_plan::payload::BlockShape;
use stillwell_plan::{PayloadFormat, PayloadPlan};
use stillwell_units::{ByteSize, Seed};

use super::*;

const MS: u64 = 1_000_000;

fn at(milliseconds: u64) -> Moment {
    Moment::new(milliseconds * MS)
}

/// A worker from moment zero on whose schedule starts then.
fn state(shape: RateShape, unit: RateUnit) -> State {
    let (lateness, lateness_intervals) = Recorder::pair();
    let (response_time, response_intervals) = Recorder::pair();
    let (service_time, service_intervals) = Recorder::pair();
    let shard = GeneratorShard::new(
        Labels::none(),
        lateness_intervals,
        response_intervals,
        service_intervals,
    );
    State {
        schedule: Schedule::new(&shape, Share::WHOLE, at(0)),
        turns: None,
        unit,
        is_max: shape == RateShape::Max,
        reserved: false,
        start: at(0),
        opened: at(0),
        shard: Arc::new(shard),
        lateness,
        response_time,
        service_time,
        account: TimeAccount::new(at(0)),
        asleep_until: None,
        half_written: 0,
        published_at: at(0),
        stopped: false,
        stamps: false,
        blocks_left: None,
        unfinished: 0,
    }
}

/// One every 10 ms.
fn slow() -> State {
    state(RateShape::Constant { per_second: 100.0 }, RateUnit::Blocks)
}

/// Milliseconds idle, blocked, running, late.
fn account(state: &mut State, now: Moment) -> [u64; 4] {
    state.publish(now);
    TimeState::ALL.map(|doing| state.shard.account.of(doing).total() / MS)
}

fn set() -> BlockSet {
    let plan = PayloadPlan {
        format: PayloadFormat::Ascii,
        blocks: BlockShape::UpTo {
            maximum: ByteSize::kib(1),
        },
        cache: ByteSize::kib(64),
        repeats: false,
    };
    BlockSet::build(&plan, plan.cache, Seed::from_number(1), None).unwrap()
}

#[test]
fn a_sleep_is_ahead_and_late_only_beyond_a_millisecond() {
    let mut state = slow();
    state.suspend(Wait::Schedule(at(10)), at(1));
    state.resume(Wait::Schedule(at(10)), at(11));
    assert_eq!(account(&mut state, at(12)), [10, 0, 2, 0]);
    state.suspend(Wait::Schedule(at(20)), at(12));
    // The beat looks in meanwhile.
    state.resume(Wait::Other, at(15));
    state.suspend(Wait::Other, at(15));
    state.resume(Wait::Schedule(at(20)), at(24));
    assert_eq!(account(&mut state, at(24)), [18, 0, 2, 4]);
}

#[test]
fn waiting_for_an_answer_blocks_only_once_something_is_due() {
    let mut state = slow();
    state.suspend(Wait::Other, at(2));
    assert_eq!(account(&mut state, at(9)), [7, 0, 2, 0]);
    // The first is due at 10 ms.
    assert_eq!(account(&mut state, at(13)), [8, 3, 2, 0]);
    state.resume(Wait::Other, at(14));
    assert_eq!(account(&mut state, at(14)), [8, 4, 2, 0]);
}

#[test]
fn half_a_block_blocks_at_once_unless_another_connection_keeps_up() {
    let mut state = slow();
    state.suspend(Wait::Room, at(1));
    assert_eq!(account(&mut state, at(3)), [0, 2, 1, 0]);
    state.resume(Wait::Other, at(3));
    state.suspend(Wait::Schedule(at(10)), at(3));
    assert_eq!(account(&mut state, at(9)), [6, 2, 1, 0]);
    state.resume(Wait::Schedule(at(10)), at(10));
    state.resume(Wait::Room, at(10));
    state.suspend(Wait::Other, at(10));
    assert_eq!(account(&mut state, at(11)), [7, 3, 1, 0]);
}

#[test]
fn at_full_speed_something_is_always_due() {
    let mut state = state(RateShape::Max, RateUnit::Bytes);
    state.suspend(Wait::Other, at(5));
    assert_eq!(account(&mut state, at(9)), [0, 4, 5, 0]);
    assert_eq!(state.shard.requested_units.total(), 0);
}

#[test]
fn a_block_is_due_when_all_before_it_was_due() {
    let (set, next) = (set(), Cell::new(0));
    let mut state = state(
        RateShape::Constant {
            per_second: 1_000.0,
        },
        RateUnit::Bytes,
    );
    assert_eq!(
        state.take(&set, &next, 4096, at(0)),
        Next::SleepUntil(at(1))
    );
    let first = Slice {
        first: 0,
        last: 1,
        intended: at(1),
        intended_last: at(1),
    };
    assert_eq!(state.take(&set, &next, 4096, at(1)), Next::Send(first));
    let bytes = set.block(0).bytes.len() as u64;
    let then = at(bytes + 1);
    assert_eq!(state.take(&set, &next, 4096, at(2)), Next::SleepUntil(then));
    assert!(matches!(state.take(&set, &next, 4096, then), Next::Send(slice) if slice.first == 1));
}

/// A worker that wakes when it says sends each block when it is due; on a shared core it
/// sends blocks together that are due within 200 µs, and none later than that.
#[test]
fn a_worker_follows_its_schedule_at_any_rate() {
    let set = set();
    for (reserved, per_second, late_max) in [
        (true, 20_000.0, 0),
        (true, 800.0, 0),
        (false, 20_000.0, COALESCE_TO.as_u64()),
        (false, 800.0, 0),
    ] {
        let mut state = state(RateShape::Constant { per_second }, RateUnit::Blocks);
        state.reserved = reserved;
        let (next, mut now, mut number) = (Cell::new(0), at(0), 0);
        while now < at(1000) {
            match state.take(&set, &next, 4096, now) {
                Next::Send(slice) => {
                    number += (slice.last - slice.first) as u64;
                    let late = now.since(slice.intended).as_u64();
                    assert!(late <= late_max, "{late} ns late at {per_second}/s");
                }
                Next::SleepUntil(wake) => {
                    assert!(wake > now);
                    now = wake;
                }
            }
        }
        let missing = per_second - stillwell_units::float_from_u64(number);
        assert!(
            (0.0..=10.0).contains(&missing),
            "{number} at {per_second}/s"
        );
    }
}

#[test]
fn what_is_very_near_is_waited_for_together_unless_the_core_is_ours() {
    let (set, next) = (set(), Cell::new(0));
    for (reserved, per_second, wake_ns) in [
        (false, 20_000.0, 200_000),
        (true, 20_000.0, 50_000),
        (false, 5_000.0, 200_000),
        (false, 1_000.0, 1_000_000),
    ] {
        let mut state = state(RateShape::Constant { per_second }, RateUnit::Blocks);
        state.reserved = reserved;
        let wake = Next::SleepUntil(Moment::new(wake_ns));
        assert_eq!(state.take(&set, &next, 4096, at(0)), wake, "{per_second}");
    }
}

#[test]
fn lateness_is_each_blocks_own() {
    let (set, next) = (set(), Cell::new(0));
    let mut state = slow();
    assert!(
        matches!(state.take(&set, &next, 1 << 20, at(40)), Next::Send(slice) if slice.last == 4)
    );
    state.flush();
    let mut samples = Vec::new();
    stillwell_metric::Shard::sample(&*state.shard, &mut samples);
    let value = samples
        .into_iter()
        .find(|sample| sample.name == stillwell_metric::catalogue::LATENESS.into())
        .map(|sample| sample.value);
    let Some(stillwell_metric::Value::Histogram(bytes)) = value else {
        panic!("no lateness");
    };
    let histogram = stillwell_metric::decode_histogram(&bytes).unwrap();
    assert_eq!(histogram.len(), 4);
    let recorded: Vec<u64> = histogram
        .iter_recorded()
        .map(|value| value.value_iterated_to() / MS)
        .collect();
    assert_eq!(recorded, [0, 10, 20, 30]);
}

#[test]
fn nothing_is_sent_before_the_start_and_nothing_requested_after_the_stop() {
    let (set, next) = (set(), Cell::new(0));
    let mut max = state(RateShape::Max, RateUnit::Bytes);
    max.start = at(7);
    assert_eq!(max.take(&set, &next, 4096, at(3)), Next::SleepUntil(at(7)));
    assert!(matches!(max.take(&set, &next, 4096, at(7)), Next::Send(_)));
    let mut stopped = slow();
    stopped.publish(at(100));
    stopped.stopped = true;
    stopped.publish(at(900));
    assert_eq!(stopped.shard.requested_units.total(), 10);
}

/// One every millisecond in turns of 20 ms with gaps of 5 ms; and the moments
/// at which its first two turns begin and end.
fn in_turns(shape: RateShape) -> (State, [Moment; 4]) {
    let plan = TurnPlan {
        turn_min: Nanos::from_millis(20),
        turn_max: Nanos::from_millis(20),
        gap: Nanos::from_millis(5),
    };
    let stretch = [Nanos::from_millis(1005)];
    let [turns, _] = Turns::pair(plan, &Seed::from_number(3), at(0), &stretch);
    let mut state = state(shape, RateUnit::Blocks);
    let mut edge = at(0);
    let edges = std::array::from_fn(|_| {
        edge = turns.next_change(edge);
        edge
    });
    state.turns = Some(turns);
    (state, edges)
}

const EACH_MS: RateShape = RateShape::Constant {
    per_second: 1_000.0,
};

#[test]
fn a_turn_begins_where_the_last_one_ended() {
    let (set, next) = (set(), Cell::new(0));
    let (mut state, [begin, end, again, _]) = in_turns(EACH_MS);
    assert_eq!(
        state.take(&set, &next, 0, at(0)),
        Next::SleepUntil(begin),
        "it is not its turn"
    );
    let mut sent = 0;
    let mut now = begin;
    while now < end {
        now = match state.take(&set, &next, 0, now) {
            Next::Send(_) => {
                sent += 1;
                now
            }
            Next::SleepUntil(until) => until,
        };
    }
    // One is due at every millisecond within, the last at its very end.
    assert_eq!((now, sent), (end, 14));
    assert_eq!(state.take(&set, &next, 0, end), Next::SleepUntil(again));
    assert_eq!(state.shard.requested_units.total(), 15);
    let late = again + Nanos::from_millis(2);
    assert!(matches!(state.take(&set, &next, 0, late), Next::Send(_)));
    assert!(matches!(state.take(&set, &next, 0, late), Next::Send(_)));
    assert!(matches!(state.take(&set, &next, 0, late), Next::Send(_)));
    assert_eq!(
        state.take(&set, &next, 0, late),
        Next::SleepUntil(again + Nanos::from_millis(3))
    );
}

#[test]
fn waiting_for_a_turn_is_ahead_and_never_late() {
    let (mut state, [begin, end, again, _]) = in_turns(EACH_MS);
    state.suspend(Wait::Schedule(begin), at(0));
    state.resume(Wait::Schedule(begin), begin);
    // Something is due and half written when the turn ends.
    state.suspend(Wait::Room, begin + Nanos::from_millis(10));
    let [idle, ..] = account(&mut state, again);
    assert_eq!(idle, begin.as_u64() / MS + again.since(end).as_u64() / MS);
    let now = again + Nanos::from_millis(1);
    assert_eq!(account(&mut state, now), [idle, 6, 10, 0]);
    state.resume(Wait::Room, now);
    assert_eq!(
        account(&mut state, now).iter().sum::<u64>(),
        now.as_u64() / MS,
        "all time is accounted for"
    );
}

#[test]
fn full_speed_is_for_the_turn_alone() {
    let (set, next) = (set(), Cell::new(0));
    let (mut state, [begin, end, again, _]) = in_turns(RateShape::Max);
    assert_eq!(state.take(&set, &next, 0, at(1)), Next::SleepUntil(begin));
    assert!(matches!(
        state.take(&set, &next, 0, end - Nanos::new(1)),
        Next::Send(_)
    ));
    assert_eq!(state.take(&set, &next, 0, end), Next::SleepUntil(again));
}

#[test]
fn an_answer_counts_from_its_intended_time_without_the_turns_between() {
    let (mut state, [begin, _, again, _]) = in_turns(EACH_MS);
    // Intended 13 ms into the first turn of 15, sent 3 ms into the second.
    let sent = again + Nanos::from_millis(3);
    state.record_answer(
        state.worker_time(begin) + Nanos::from_millis(13),
        sent,
        sent + Nanos::from_millis(4),
    );
    state.flush();
    let mut samples = Vec::new();
    stillwell_metric::Shard::sample(&*state.shard, &mut samples);
    let times: Vec<u64> = samples
        .into_iter()
        .filter_map(|sample| match sample.value {
            stillwell_metric::Value::Histogram(bytes) => {
                Some(stillwell_metric::decode_histogram(&bytes).unwrap().max() / MS)
            }
            _ => None,
        })
        .collect();
    assert_eq!(times, [9, 4], "response time and service time");
}
