use proptest::prelude::*;

use stillwell_plan::load::Spacing;
use stillwell_plan::rate::Ramp;
use stillwell_units::{Nanos, Seed, floor_to_u64};

use super::*;

const SECOND_NS: u64 = 1_000_000_000;
const START: Moment = Moment::new(77_000_000_000);

fn after(nanoseconds: u64) -> Moment {
    START + Nanos::new(nanoseconds)
}

fn constant(per_second: f64) -> RateShape {
    RateShape::Constant { per_second }
}

fn any_shape() -> impl Strategy<Value = RateShape> {
    prop_oneof![
        (0.01_f64..1e10).prop_map(constant),
        (1_u32..1_000_000).prop_map(|rate| constant(f64::from(rate))),
        (0.0_f64..1e6, 0.0_f64..1e9, 0.0_f64..1e9).prop_map(|(initial, maximum, change)| {
            RateShape::Ramp(Ramp::growing(initial, maximum, change))
        }),
    ]
}

#[test]
fn an_hour_at_a_third_of_a_unit_has_no_drift() {
    let mut schedule = Schedule::new(&constant(1.0 / 3.0), Share::WHOLE, START);
    for _ in 0..1199 {
        schedule.advance(1);
    }
    // One third as a float is a little less than one third.
    assert_eq!(schedule.next_due(START), after(3600 * SECOND_NS + 1));
}

#[test]
fn a_trillion_units_later_it_is_right_to_the_nanosecond() {
    for rate in [1_000_u32, 70_000, 333_333] {
        let units = 1_000_000_000_000_u64;
        let mut schedule = Schedule::new(&constant(f64::from(rate)), Share::WHOLE, START);
        schedule.advance(units - 1);
        let exact_ns = (u128::from(units) * u128::from(SECOND_NS)).div_ceil(u128::from(rate));
        let due = schedule.next_due(START).since(START).as_u64();
        assert_eq!(u128::from(due), exact_ns);
    }
}

#[test]
fn a_trillion_units_up_a_ramp_it_is_right_to_the_nanosecond() {
    // 0/s growing by 2/s each second requests t² units: 10¹² after 10⁶ s.
    let shape = RateShape::Ramp(Ramp::growing(0.0, 1e9, 2.0));
    let mut schedule = Schedule::new(&shape, Share::WHOLE, START);
    schedule.advance(1_000_000_000_000 - 1);
    let due = schedule.next_due(START).since(START).as_u64();
    assert!(due.abs_diff(1_000_000 * SECOND_NS) <= 1, "{due}");
}

#[test]
fn no_burst_at_the_top_of_a_second() {
    let schedule = Schedule::new(&constant(20_000.0), Share::WHOLE, START);
    for step in 0..200_000 {
        assert_eq!(schedule.due(after(step * 50_000)), step);
    }
}

#[test]
fn a_spacing_keeps_the_rate_and_counts_what_is_due() {
    let shape = constant(1_000.0);
    for spacing in [Spacing::Poisson, Spacing::Burst { size: 10 }] {
        let schedule = Schedule::new(&shape, Share::WHOLE, START);
        let mut schedule = schedule.spaced(&shape, spacing, &Seed::from_number(3));
        let (end, mut sent) = (after(10 * SECOND_NS), 0_u32);
        let requested = schedule.requested_until(end);
        let mut gaps = std::collections::BTreeSet::new();
        while schedule.next_due(START) <= end {
            let due = schedule.next_due(START);
            assert_eq!(
                (schedule.due(due), schedule.due(due - Nanos::new(1))),
                (1, 0)
            );
            schedule.advance(1);
            gaps.insert(schedule.next_due(START).since(due).as_u64());
            sent += 1;
        }
        assert!(
            (requested - f64::from(sent)).abs() < 0.5,
            "{requested} {sent}"
        );
        assert!((9_500..10_500).contains(&sent), "{sent}");
        let is_random = spacing == Spacing::Poisson;
        assert_eq!(gaps.len() > 1_000, is_random, "{spacing:?}");
        assert!(is_random || gaps == [0, 10_000_000].into());
    }
}

/// Each call drew all of them again.
#[test]
fn a_schedule_far_behind_draws_each_unit_once() {
    let shape = constant(1e6);
    for spacing in [Spacing::Poisson, Spacing::Burst { size: 7 }] {
        let schedule = Schedule::new(&shape, Share::WHOLE, START);
        let mut schedule = schedule.spaced(&shape, spacing, &Seed::from_number(3));
        for (ms, sent) in [
            (40, 0),
            (150, 10),
            (150, 60_000),
            (200, 90_000),
            (200, 100_000),
        ] {
            schedule.advance(sent);
            let now = after(ms * 1_000_000);
            let requested = floor_to_u64(schedule.requested_so_far(now));
            let slowly = floor_to_u64(schedule.requested_until(now));
            assert_eq!(requested, slowly, "{spacing:?}, {ms} ms");
            let drawn = schedule.ahead.as_deref().map_or(0, Arrivals::taken);
            let drawn_max = schedule.position + 100_000;
            assert_eq!(drawn, requested.min(drawn_max), "{spacing:?}, {ms} ms");
        }
    }
}

#[test]
fn workers_take_turns() {
    let shape = constant(1_000.0);
    let moments: Vec<_> = Share::all(4)
        .map(|share| Schedule::new(&shape, share, START).next_due(START))
        .collect();
    assert_eq!(moments, [1, 2, 3, 4].map(|ms| after(ms * 1_000_000)));
}

#[test]
fn as_fast_as_possible_is_always_due_now() {
    let mut schedule = Schedule::new(&RateShape::Max, Share::WHOLE, START);
    schedule.advance(5);
    assert_eq!(schedule.next_due(after(9)), after(9));
    assert_eq!(schedule.due_as_a_whole(4096, after(9)), after(9));
    assert_eq!(schedule.due(START), u64::MAX);
    assert!(schedule.requested_until(after(9)).is_infinite());
}

#[test]
fn a_rate_of_nothing_is_never_due() {
    for rate in [0.0, -1.0, f64::NAN] {
        let ramp = RateShape::Ramp(Ramp::growing(rate, rate, rate));
        for shape in [constant(rate), ramp] {
            let schedule = Schedule::new(&shape, Share::WHOLE, START);
            assert_eq!(schedule.next_due(START).as_u64(), u64::MAX);
            assert_eq!(schedule.due(Moment::new(u64::MAX)), 0);
        }
    }
}

proptest! {
    #[test]
    fn for_all_rates_the_shares_together_are_the_exact_schedule(
        rate in 1_u32..2_000_000_000,
        of in 1_u32..20,
        elapsed_ns in 0_u64..100 * SECOND_NS,
    ) {
        let sum: u64 = Share::all(of)
            .map(|share| Schedule::new(&constant(f64::from(rate)), share, START))
            .map(|schedule| schedule.due(after(elapsed_ns)))
            .sum();
        let exact = u128::from(rate) * u128::from(elapsed_ns) / u128::from(SECOND_NS);
        prop_assert_eq!(u128::from(sum), exact);
    }

    #[test]
    fn for_all_shapes_shares_sum_to_the_whole(
        shape in any_shape(),
        of in 1_u32..20,
        elapsed_ns in 0_u64..1_000 * SECOND_NS,
    ) {
        let due = |share| Schedule::new(&shape, share, START).due(after(elapsed_ns));
        prop_assert_eq!(Share::all(of).map(due).sum::<u64>(), due(Share::WHOLE));
    }

    #[test]
    fn for_all_shapes_the_next_moment_never_falls(
        shape in any_shape(),
        of in 1_u32..5,
        steps in prop::collection::vec(0_u64..1_000_000, 1..60),
    ) {
        for share in Share::all(of) {
            let mut schedule = Schedule::new(&shape, share, START);
            let mut last = schedule.next_due(START);
            for &step in &steps {
                schedule.advance(step);
                prop_assert!(schedule.next_due(START) >= last);
                last = schedule.next_due(START);
            }
        }
    }

    #[test]
    fn for_all_shapes_many_steps_are_one_leap(
        shape in any_shape(),
        before in 0_u64..1_000_000_000,
        units in 0_u64..200,
        elapsed_ns in 0_u64..1_000 * SECOND_NS,
    ) {
        let mut leap = Schedule::new(&shape, Share::WHOLE, START);
        leap.advance(before);
        let mut steps = leap.clone();
        let whole = leap.due_as_a_whole(units + 1, START);
        leap.advance(units);
        for _ in 0..units {
            steps.advance(1);
        }
        let now = after(elapsed_ns);
        prop_assert_eq!(leap.next_due(now), steps.next_due(now));
        prop_assert_eq!(leap.due(now), steps.due(now));
        prop_assert_eq!(leap.next_due(now), whole);
    }

    #[test]
    fn for_all_shapes_a_unit_is_due_from_its_moment_on_and_not_before(
        shape in any_shape(),
        sent in 0_u64..1_000_000_000,
    ) {
        let mut schedule = Schedule::new(&shape, Share::WHOLE, START);
        schedule.advance(sent);
        let due = schedule.next_due(START);
        prop_assert!(due > START);
        prop_assert_eq!(schedule.due(due - Nanos::new(1)), 0);
        if due.as_u64() < u64::MAX {
            prop_assert!(schedule.due(due) > 0);
        }
    }

    #[test]
    fn for_all_shapes_requested_units_are_due(
        shape in any_shape(),
        of in 1_u32..5,
        elapsed_ns in 0_u64..1_000 * SECOND_NS,
    ) {
        for share in Share::all(of) {
            let schedule = Schedule::new(&shape, share, START);
            let requested = schedule.requested_until(after(elapsed_ns));
            let due = stillwell_units::float_from_u64(schedule.due(after(elapsed_ns)));
            prop_assert!((requested - due).abs() <= 1.0 + requested * 1e-12, "{requested} {due}");
        }
    }

    #[test]
    fn for_all_moments_in_order_the_requested_units_are_those_of_a_walk_from_the_sent_ones(
        shape in prop_oneof![
            (10.0_f64..20_000.0).prop_map(constant),
            (0.0_f64..1e3, 1e3_f64..2e4, 0.0_f64..1e4).prop_map(|(initial, maximum, change)| {
                RateShape::Ramp(Ramp::growing(initial, maximum, change))
            }),
        ],
        spacing in prop_oneof![
            Just(Spacing::Even),
            Just(Spacing::Poisson),
            (1.1_f64..4.0).prop_map(|exponent| Spacing::Zipf { exponent }),
            (1_u32..100).prop_map(|size| Spacing::Burst { size }),
            (0_u64..10_000_000).prop_map(|most| Spacing::JitterUniform { most: Nanos::new(most) }),
        ],
        of in 1_u32..4,
        seed in any::<u64>(),
        steps in prop::collection::vec((0_u64..20_000_000, 0_u64..200), 1..9),
    ) {
        for share in Share::all(of) {
            let schedule = Schedule::new(&shape, share, START);
            let mut schedule = schedule.spaced(&shape, spacing, &Seed::from_number(seed));
            let mut elapsed_ns = 0;
            for (pause_ns, sent) in &steps {
                elapsed_ns += pause_ns;
                schedule.advance(*sent);
                let slowly = schedule.requested_until(after(elapsed_ns));
                let requested = schedule.requested_so_far(after(elapsed_ns));
                prop_assert_eq!(requested.to_bits(), slowly.to_bits(), "{} {}", requested, slowly);
            }
        }
    }

    #[test]
    fn for_all_numbers_nothing_panics(
        rates in prop::array::uniform3(any::<u64>().prop_map(f64::from_bits)),
        times in prop::array::uniform2(any::<u64>()),
        units in any::<u64>(),
    ) {
        let ramp = RateShape::Ramp(Ramp::growing(rates[0], rates[1], rates[2]));
        for shape in [constant(rates[0]), ramp] {
            let mut schedule = Schedule::new(&shape, Share::WHOLE, Moment::new(times[0]));
            let now = Moment::new(times[1]);
            schedule.advance(units);
            prop_assert!(schedule.due(now) == 0 || schedule.next_due(now) <= now);
            prop_assert!(!schedule.requested_until(now).is_nan());
        }
    }
}
