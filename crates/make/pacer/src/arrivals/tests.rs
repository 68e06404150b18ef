use proptest::prelude::*;
use stillwell_plan::rate::{Ramp, RateStep};

use super::*;
use crate::Share;

const START: Moment = Moment::new(1_000_000);

fn constant(per_second: f64) -> RateShape {
    RateShape::Constant { per_second }
}

fn spacings() -> impl Strategy<Value = Spacing> {
    prop_oneof![
        Just(Spacing::Even),
        (1_u32..100).prop_map(|size| Spacing::Burst { size }),
        (0_u64..10_000_000).prop_map(|most| Spacing::JitterUniform {
            most: Nanos::new(most)
        }),
        Just(Spacing::Poisson),
        (1.1_f64..4.0).prop_map(|exponent| Spacing::Zipf { exponent }),
    ]
}

fn curves() -> impl Strategy<Value = RateShape> {
    prop_oneof![
        (10.0_f64..1e6).prop_map(constant),
        (0.0_f64..1e5, 10.0_f64..1e5, 0_u64..5_000_000_000).prop_map(|(from, to, over)| {
            RateShape::Ramp(Ramp {
                from_per_second: from,
                to_per_second: to,
                over: Nanos::new(over),
            })
        }),
        prop::collection::vec((10.0_f64..1e5, 1_u64..1_000_000_000), 1..5).prop_map(|steps| {
            let steps = steps.into_iter().map(|(per_second, length)| RateStep {
                per_second,
                length: Nanos::new(length),
            });
            RateShape::Steps {
                steps: steps.collect(),
            }
        }),
    ]
}

/// Overdue requests are drawn, not taken from the mean of the curve.
#[test]
fn overdue_requests_are_the_drawn_ones() {
    for spacing in [Spacing::Poisson, Spacing::Burst { size: 7 }, Spacing::Even] {
        let mut arrivals = whole(&constant(1000.0), spacing, 3);
        let [from, until] = [1, 2].map(|second| START + Nanos::from_secs(second));
        let all = moments(arrivals.clone(), Nanos::from_secs(2));
        let due = all.iter().filter(|due| **due >= from).count() as u64;
        assert_eq!(arrivals.overdue(from, until, None), due, "{spacing:?}");
        assert_eq!(arrivals.overdue(START, until, Some(5)), 5);
        all.iter().for_each(|_| arrivals.advance());
        assert_eq!(arrivals.overdue(from, until, None), 0);
    }
    // A very large number comes from the curve.
    let many = whole(&constant(1e6), Spacing::Even, 3);
    let until = START + Nanos::from_secs(5);
    assert_eq!(many.overdue(START, until, None), 5_000_000);
}

/// A walk over as many took minutes.
#[test]
fn very_many_requests_are_skipped_by_the_curve_and_not_one_by_one() {
    let many = u64::from(u32::MAX);
    for spacing in [
        Spacing::Even,
        Spacing::Burst { size: 7 },
        Spacing::JitterUniform {
            most: Nanos::from_millis(1),
        },
        Spacing::Poisson,
        Spacing::Zipf { exponent: 2.0 },
    ] {
        let mut arrivals = whole(&constant(1000.0), spacing, 3);
        arrivals.skip(many);
        assert_eq!((arrivals.taken(), arrivals.number()), (many, many));
        let due = arrivals.next_due().since(START).as_secs_f64();
        let expected = float_from_u64(many + 1) / 1000.0;
        assert!((due / expected - 1.0).abs() < 1e-4, "{spacing:?}: {due}");
    }
}

/// The moments of all that is due within `length`.
fn moments(mut arrivals: Arrivals, length: Nanos) -> Vec<Moment> {
    let mut moments = Vec::new();
    while arrivals.next_due() <= START + length {
        moments.push(arrivals.next_due());
        arrivals.advance();
    }
    moments
}

fn whole(curve: &RateShape, spacing: Spacing, seed: u64) -> Arrivals {
    let part = Part::whole(Share::WHOLE);
    Arrivals::new(curve, spacing, part, START, &Seed::from_number(seed))
}

#[test]
fn bursts_come_when_their_last_is_due() {
    let arrivals = whole(&constant(1000.0), Spacing::Burst { size: 3 }, 1);
    let moments: Vec<u64> = moments(arrivals, Nanos::from_millis(7))
        .iter()
        .map(|moment| moment.since(START).as_u64() / 1_000_000)
        .collect();
    assert_eq!(moments, [3, 3, 3, 6, 6, 6]);
}

#[test]
fn drawn_arrivals_keep_the_mean_rate_and_are_spread_by_their_law() {
    for (spacing, deviation) in [
        (Spacing::Poisson, 1.0..1.02),
        // Heavier than exponential gaps.
        (Spacing::Zipf { exponent: 2.0 }, 3.0..7.0),
    ] {
        let arrivals = whole(&constant(10_000.0), spacing, 3);
        let moments = moments(arrivals, Nanos::from_secs(100));
        let count = float_from_u64(moments.len() as u64);
        assert!((count / 1e6 - 1.0).abs() < 0.01, "{spacing:?}: {count}");
        let gaps: Vec<f64> = moments
            .windows(2)
            .map(|pair| pair[1].since(pair[0]).as_secs_f64() * 10_000.0)
            .collect();
        let squares: f64 = gaps.iter().map(|gap| (gap - 1.0) * (gap - 1.0)).sum();
        let spread = (squares / count).sqrt();
        assert!(
            deviation.start * 0.98 < spread && spread < deviation.end,
            "{spacing:?}: {spread}"
        );
    }
}

proptest! {
    #[test]
    fn for_all_plans_moments_never_go_back_and_follow_from_the_seed(
        curve in curves(),
        spacing in spacings(),
        seed in any::<u64>(),
    ) {
        let take = || {
            let mut arrivals = whole(&curve, spacing, seed);
            let moments = (0..500).map(|_| {
                let due = arrivals.next_due();
                arrivals.advance();
                due
            });
            moments.collect::<Vec<_>>()
        };
        let first = take();
        prop_assert!(first.is_sorted());
        prop_assert_eq!(first, take());
    }

    #[test]
    fn for_all_counts_a_skip_is_as_many_steps_or_near_by_the_jitter(
        curve in curves(),
        spacing in spacings(),
        seed in any::<u64>(),
        taken in 0_u64..50,
        count in 0_u64..500,
    ) {
        let mut walked = whole(&curve, spacing, seed);
        (0..taken).for_each(|_| walked.advance());
        let mut skipped = walked.clone();
        skipped.skip(count);
        (0..count).for_each(|_| walked.advance());
        prop_assert_eq!(skipped.taken(), walked.taken());
        let Spacing::JitterUniform { most } = spacing else {
            prop_assert_eq!(skipped.next_due(), walked.next_due());
            skipped.advance();
            walked.advance();
            prop_assert_eq!(skipped.next_due(), walked.next_due());
            return Ok(());
        };
        // A longer delay of a request before it counts only where that was drawn.
        let mut even = whole(&curve, Spacing::Even, seed);
        (0..taken + count).for_each(|_| even.advance());
        prop_assert!(even.next_due() <= skipped.next_due());
        prop_assert!(skipped.next_due() <= walked.next_due());
        prop_assert!(walked.next_due() <= even.next_due() + most);
    }

    #[test]
    fn for_all_curves_the_long_run_rate_is_exact_where_nothing_is_drawn(
        curve in curves(),
        burst in 1_u32..50,
        jitter in 0_u64..1_000_000,
        length in 100_000_000_u64..300_000_000,
    ) {
        let length = Nanos::new(length);
        let requested = whole(&curve, Spacing::Even, 1).requested_until(START + length, None);
        for (spacing, fewer) in [
            (Spacing::Even, 1.0),
            (Spacing::Burst { size: burst }, f64::from(burst)),
        ] {
            let count = moments(whole(&curve, spacing, 1), length).len() as u64;
            let missing = requested - float_from_u64(count);
            prop_assert!((-1e-6..fewer + 1e-6).contains(&missing), "{spacing:?}: {missing}");
        }
        // Jitter only delays: what is missing is what is on its way.
        let spacing = Spacing::JitterUniform { most: Nanos::new(jitter) };
        let jittered = moments(whole(&curve, spacing, 1), length).len();
        let even = |length| moments(whole(&curve, Spacing::Even, 1), length).len();
        prop_assert!(jittered <= even(length));
        prop_assert!(jittered >= even(length.saturating_sub(Nanos::new(jitter))));
    }

    #[test]
    fn for_all_splits_the_parts_are_the_whole(
        per_second in 10.0_f64..1e5,
        weights in prop::collection::vec(1_u32..9, 1..4),
        workers in 1_u32..4,
        burst in 1_u32..9,
    ) {
        let length = Nanos::from_millis(300);
        for spacing in [Spacing::Even, Spacing::Burst { size: burst }] {
            let curve = constant(per_second);
            let mut together = Vec::new();
            for share in Share::all(workers) {
                for part in Part::split(share, &weights) {
                    let seed = Seed::from_number(1);
                    let arrivals = Arrivals::new(&curve, spacing, part, START, &seed);
                    together.extend(moments(arrivals, length));
                }
            }
            together.sort_unstable();
            prop_assert_eq!(together, moments(whole(&curve, spacing, 1), length));
        }
    }
}

/// Parts of one request a second, each less than a whole one, still have the
/// requested number together.
#[test]
fn parts_together_have_the_requested_number_of_the_whole() {
    let curve = RateShape::Constant { per_second: 1.0 };
    let requested = |seconds, most| -> f64 {
        let parts = Share::all(3).flat_map(|share| Part::split(share, &[1, 2]));
        let seed = Seed::from_number(1);
        let parts = parts.map(|part| Arrivals::new(&curve, Spacing::Even, part, START, &seed));
        parts
            .map(|part| part.requested_until(START + Nanos::from_secs(seconds), most))
            .sum()
    };
    for seconds in 0..20 {
        let whole = float_from_u64(seconds);
        assert!(
            (requested(seconds, None) - whole).abs() < 1e-9,
            "{seconds} s"
        );
        let most = requested(seconds, Some(5));
        assert!((most - whole.min(5.0)).abs() < 1e-9, "{seconds} s: {most}");
    }
}
