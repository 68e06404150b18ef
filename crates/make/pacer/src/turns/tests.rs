use proptest::prelude::*;

use super::*;

const MS: u64 = 1_000_000;
const START: Moment = Moment::new(1_000 * MS);

fn plan() -> impl Strategy<Value = TurnPlan> {
    (10_u64..100, 0_u64..300, 0_u64..30).prop_map(|(min, more, gap)| TurnPlan {
        turn_min: Nanos::from_millis(min),
        turn_max: Nanos::from_millis(min + more),
        gap: Nanos::from_millis(gap),
    })
}

fn pair(plan: TurnPlan, seed: u64, stretches: &[u64]) -> [Turns; 2] {
    let stretches: Vec<Nanos> = stretches.iter().map(|length| Nanos::new(*length)).collect();
    Turns::pair(plan, &Seed::from_number(seed), START, &stretches)
}

fn at(elapsed: u64) -> Moment {
    START + Nanos::new(elapsed)
}

/// All turns of both sides, in order, each with its side.
fn merged(sides: &[Turns; 2]) -> Vec<(Turn, usize)> {
    let mut all: Vec<(Turn, usize)> = (0..2)
        .flat_map(|side| sides[side].turns.iter().map(move |turn| (*turn, side)))
        .collect();
    all.sort_unstable_by_key(|(turn, _)| turn.begin);
    all
}

proptest! {
    /// For all plans, seeds and stretches: each block of two gives both sides a
    /// turn of one length, neither side sends for a gap after each and at both ends of
    /// each stretch, and lengths keep their bounds.
    #[test]
    fn turns_are_balanced_and_apart(
        plan in plan(),
        seed: u64,
        stretches in prop::collection::vec(0_u64..3_000 * MS, 0..4),
    ) {
        let sides = pair(plan, seed, &stretches);
        let gap = plan.gap.as_u64().clamp(MS, plan.turn_min.as_u64() / 2);
        let all = merged(&sides);
        for block in all.chunks(2) {
            let [(first, first_side), (second, second_side)] = block else {
                return Err(TestCaseError::fail("half a block"));
            };
            prop_assert_ne!(first_side, second_side);
            prop_assert_eq!(first.end - first.begin, second.end - second.begin);
        }
        for two in all.windows(2) {
            prop_assert!(two[0].0.end + gap <= two[1].0.begin);
        }
        let mut begin = 0;
        for stretch in stretches {
            let end = begin + stretch;
            let within: Vec<Turn> = all
                .iter()
                .map(|(turn, _)| *turn)
                .filter(|turn| turn.begin < end && turn.end > begin)
                .collect();
            for (index, turn) in within.iter().enumerate() {
                prop_assert!(begin + gap <= turn.begin && turn.end + gap <= end);
                let length = turn.end - turn.begin + gap;
                let is_last = index + 2 >= within.len();
                let longest = plan.turn_max.as_u64() + if is_last { plan.turn_min.as_u64() } else { 0 };
                prop_assert!(length <= longest);
                prop_assert!(length >= plan.turn_min.as_u64() || within.len() == 2);
            }
            // All of a stretch is used, except its first gap.
            if within.len() > 2 {
                let last = within[within.len() - 1];
                prop_assert!(end - (last.end + gap) <= 1);
                prop_assert_eq!(within[0].begin, begin + gap);
            }
            begin = end;
        }
        let total = |side: usize| sides[side].active(at(begin));
        prop_assert_eq!(total(0), total(1));
    }

    /// For all moments: both are never on, and active time runs while on and stops
    /// while off, until the next change.
    #[test]
    fn active_time_runs_during_turns_only(
        plan in plan(),
        seed: u64,
        stretches in prop::collection::vec(0_u64..2_000 * MS, 1..3),
        moments in prop::collection::vec(0_u64..5_000 * MS, 1..20),
    ) {
        let sides = pair(plan, seed, &stretches);
        for now in moments.into_iter().map(Moment::new) {
            prop_assert!(!(sides[0].is_on(now) && sides[1].is_on(now)));
            for side in &sides {
                let next = side.next_change(now);
                prop_assert!(next > now);
                if next.as_u64() < u64::MAX {
                    prop_assert_ne!(side.is_on(now), side.is_on(next));
                }
                let until = next.min(now + Nanos::SECOND);
                let last = until - Nanos::new(1);
                prop_assert_eq!(side.is_on(now), side.is_on(last));
                let goes = if now < START {
                    until.min(START).since(now)
                } else if side.is_on(now) {
                    until.since(now)
                } else {
                    Nanos::ZERO
                };
                prop_assert_eq!(side.active_time(until).since(side.active_time(now)), goes);
                prop_assert_eq!(side.active_time(until), START.min(until) + side.active(until));
            }
        }
    }

    /// For all own times: the clock's time for it is within a turn, is the first
    /// such, and gives it back.
    #[test]
    fn active_time_is_converted_to_the_clock(
        plan in plan(),
        seed: u64,
        stretch in 0_u64..3_000 * MS,
        active in 0_u64..3_500 * MS,
        now in 0_u64..5_000 * MS,
    ) {
        let [side, _] = pair(plan, seed, &[stretch]);
        let (active, now) = (Moment::new(active), Moment::new(now));
        let clock = side.clock_time(active);
        if active < START {
            prop_assert_eq!(clock, active);
        } else if clock.as_u64() < u64::MAX {
            prop_assert!(side.is_on(clock));
            prop_assert_eq!(side.active_time(clock), active);
        } else {
            prop_assert!(side.active_time(clock) <= active);
        }
        if side.is_on(now) {
            prop_assert_eq!(side.active_time(now) >= active, now >= clock);
        }
    }
}

#[test]
fn seeds_give_their_own_turns_and_the_same_each_time() {
    let plan = TurnPlan {
        turn_min: Nanos::from_millis(50),
        turn_max: Nanos::from_millis(200),
        gap: Nanos::from_millis(10),
    };
    let turns = |seed| merged(&pair(plan, seed, &[10_000 * MS]));
    assert_eq!(turns(1), turns(1));
    assert_ne!(turns(1), turns(2));
    // Either side is first about as often.
    let first = |seed| {
        turns(seed)
            .chunks(2)
            .filter(|block| block[0].1 == 0)
            .count()
    };
    let (blocks, ones) = (0..20).fold((0, 0), |(blocks, ones), seed| {
        (blocks + turns(seed).len() / 2, ones + first(seed))
    });
    assert!(
        (blocks * 2 / 5..blocks * 3 / 5).contains(&ones),
        "{ones} of {blocks}"
    );
}

#[test]
fn what_is_never_is_far_away() {
    let never = Moment::new(u64::MAX);
    let [side, _] = pair(
        TurnPlan {
            turn_min: Nanos::ZERO,
            turn_max: Nanos::ZERO,
            gap: Nanos::ZERO,
        },
        1,
        &[],
    );
    assert_eq!(side.next_change(START), never);
    assert_eq!(side.clock_time(START), never);
    assert!(!side.is_on(START));
    assert_eq!(side.active(never), Nanos::ZERO);
}
