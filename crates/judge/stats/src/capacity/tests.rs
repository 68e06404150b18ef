//! The search against thresholds that are known.

use proptest::prelude::*;

use super::*;
use crate::draw::Draws;

fn plan() -> SearchPlan {
    SearchPlan {
        from: 100.0,
        to: 50_000.0,
        within: 0.03,
        repeats: 3,
        probes_max: 80,
        level: Level::NINETY_FIVE,
    }
}

/// A target with a threshold, noise around it, stray results and drift.
#[derive(Clone, Copy, Debug, Default)]
struct Truth {
    /// Standard deviation of the threshold between probes, as a share of it.
    noise: f64,
    /// Share of probes that fail although they should hold.
    failures: f64,
    /// Share of probes that hold although they should fail.
    holds: f64,
    /// Largest shift of the threshold by a sine of 25 probes, as a share of it.
    drift: f64,
}

struct Target {
    truth: Truth,
    threshold: f64,
    phase: f64,
    probes: f64,
    draws: Draws,
}

impl Target {
    fn new(seed: u64, truth: Truth) -> Self {
        let mut draws = Draws::seeded(seed);
        Self {
            truth,
            threshold: 200.0 * (draws.uniform() * 5.0).exp(),
            phase: draws.uniform() * std::f64::consts::TAU,
            probes: 0.0,
            draws,
        }
    }

    /// The same target, probed with other random choices.
    fn again(&self, seed: u64) -> Self {
        let mut draws = Draws::seeded(seed);
        Self {
            phase: draws.uniform() * std::f64::consts::TAU,
            probes: 0.0,
            draws,
            ..*self
        }
    }

    fn probe(&mut self, rate: f64) -> Observed {
        self.probes += 1.0;
        let turn = self.probes / 25.0 * std::f64::consts::TAU + self.phase;
        let shift = self.truth.noise * self.draws.normal() + self.truth.drift * turn.sin();
        let should_hold = rate <= self.threshold * shift.exp();
        let strays = if should_hold {
            self.truth.failures
        } else {
            self.truth.holds
        };
        if should_hold == (self.draws.uniform() <= strays) {
            Observed::Failed
        } else {
            Observed::Held
        }
    }
}

fn search(plan: SearchPlan, mut probe: impl FnMut(f64) -> Observed) -> CapacityFound {
    let mut search = CapacitySearch::try_new(plan).unwrap();
    for _ in 0..=plan.probes_max {
        match search.step() {
            SearchStep::Probe { rate, .. } => search.observe(probe(rate)),
            SearchStep::Done(result) => return result,
        }
    }
    panic!("it goes on beyond its probes")
}

/// Percentages of searches.
#[derive(Debug)]
struct Simulated {
    /// The answer is within 3 % of the truth.
    near: u64,
    /// The interval contains the truth.
    covered: u64,
    confirmed: u64,
    /// The answer is confirmed, and its interval does not contain the truth.
    wrongly_confirmed: u64,
    /// Mean number of probes.
    probes: u64,
}

fn simulated(truth: Truth, tries: u64) -> Simulated {
    let plan = SearchPlan {
        repeats: 5,
        probes_max: 100,
        ..plan()
    };
    let (mut near, mut covered, mut confirmed, mut wrong, mut probes) = (0, 0, 0, 0, 0);
    for seed in 0..tries {
        let mut target = Target::new(seed + 7_000, truth);
        let threshold = target.threshold;
        let answer = search(plan, |rate| target.probe(rate));
        let is_near = |capacity: Estimate| (capacity.value / threshold).ln().abs() <= 0.03;
        let is_covered = answer
            .capacity
            .is_some_and(|interval| interval.contains(threshold));
        let is_confirmed = answer.end == SearchEnd::Confirmed;
        near += u64::from(answer.capacity.is_some_and(is_near));
        covered += u64::from(is_covered);
        confirmed += u64::from(is_confirmed);
        wrong += u64::from(is_confirmed && !is_covered);
        probes += u64::from(answer.probes);
    }
    Simulated {
        near: near * 100 / tries,
        covered: covered * 100 / tries,
        confirmed: confirmed * 100 / tries,
        wrongly_confirmed: wrong * 100 / tries,
        probes: probes / tries,
    }
}

/// F5: of 100 servers, each searched with two seeds, how many pairs of intervals have a rate in
/// common; a search without an interval agrees with none.
fn agreeing(truth: Truth) -> u32 {
    let plan = SearchPlan {
        repeats: 5,
        probes_max: 100,
        ..plan()
    };
    let agrees = |seed: u64| {
        let mut first = Target::new(seed + 20_000, truth);
        let mut second = first.again(seed + 30_000);
        let left = search(plan, |rate| first.probe(rate)).capacity;
        let right = search(plan, |rate| second.probe(rate)).capacity;
        left.zip(right)
            .is_some_and(|(left, right)| left.lower <= right.upper && right.lower <= left.upper)
    };
    (0..100).map(|seed| u32::from(agrees(seed))).sum()
}

#[test]
fn f5_two_seeds_against_one_server_agree_within_their_intervals() {
    let truth = Truth::default();
    for (noise, failures, holds) in [(0.02, 0.03, 0.03), (0.2, 0.0, 0.0)] {
        let noisy = Truth {
            noise,
            failures,
            holds,
            ..truth
        };
        let agreeing = agreeing(noisy);
        assert!(agreeing >= 95, "{noise}: {agreeing} of 100");
    }
}

#[test]
fn f5_known_thresholds_are_found_and_intervals_contain_them() {
    let truth = Truth::default();
    let noise = |noise| Truth { noise, ..truth };
    let failures = |failures| Truth {
        failures,
        ..noise(0.02)
    };
    let both = |noise, share| Truth {
        noise,
        failures: share,
        holds: share,
        ..truth
    };
    let drift = |drift| Truth {
        drift,
        ..noise(0.02)
    };
    // The least percentages of near, covered and confirmed; the largest of wrongly confirmed.
    let cases = [
        (noise(0.0), [99, 95, 95], 5),
        (noise(0.005), [99, 95, 95], 5),
        (noise(0.02), [95, 88, 85], 12),
        (both(0.02, 0.03), [92, 88, 75], 10),
        (both(0.05, 0.02), [88, 88, 25], 8),
        (noise(0.1), [70, 85, 0], 10),
        (noise(0.2), [35, 85, 0], 8),
        (noise(0.4), [5, 80, 0], 5),
        (failures(0.1), [92, 85, 70], 10),
        (failures(0.2), [80, 80, 25], 8),
        (failures(0.3), [60, 70, 0], 8),
        (drift(0.1), [80, 85, 0], 5),
        (drift(0.2), [60, 85, 0], 5),
    ];
    for (truth, [near, covered, confirmed], wrongly_confirmed) in cases {
        let result = simulated(truth, 40);
        // The table of docs/internals/capacity.md.
        println!("{truth:?}: {result:?}");
        assert!(result.probes <= 100, "{truth:?}: {result:?}");
        assert!(result.near >= near, "{truth:?}: {result:?}");
        assert!(result.covered >= covered, "{truth:?}: {result:?}");
        assert!(result.confirmed >= confirmed, "{truth:?}: {result:?}");
        assert!(
            result.wrongly_confirmed <= wrongly_confirmed,
            "{truth:?}: {result:?}"
        );
    }
}

#[test]
fn a_curve_that_contradicts_the_probes_does_not_fit() {
    let mut posterior = Posterior::new(100.0, 10_000.0, 0.03);
    let mut results: Vec<(f64, bool)> = Vec::new();
    for _ in 0..10 {
        results.extend([(900.0, true), (1100.0, false)]);
    }
    for (rate, held) in &results {
        posterior.observe(*rate, *held);
    }
    assert!(fit::is_good(&posterior, &results));
    let strange = [(200.0, false), (5000.0, true), (180.0, false)];
    assert!(!fit::is_good(
        &posterior,
        &[&results[..], &strange].concat()
    ));
}

#[test]
fn results_with_a_trend_do_not_fit() {
    let mut posterior = Posterior::new(100.0, 10_000.0, 0.03);
    let at = |held: bool| (0..12).map(move |_| (1000.0, held));
    let mixed: Vec<(f64, bool)> = at(true).zip(at(false)).flat_map(|(a, b)| [a, b]).collect();
    for (rate, held) in &mixed {
        posterior.observe(*rate, *held);
    }
    assert!(fit::is_good(&posterior, &mixed));
    let trend: Vec<(f64, bool)> = at(true).chain(at(false)).collect();
    assert!(!fit::is_good(&posterior, &trend));
}

#[test]
fn each_end_has_its_name() {
    let never = search(plan(), |_| Observed::Failed);
    assert_eq!(never.end, SearchEnd::BelowMinimum);
    assert_eq!((never.capacity, never.held), (None, None));
    assert!(never.probes <= 3, "{never:?}");
    let always = search(plan(), |_| Observed::Held);
    assert_eq!(always.end, SearchEnd::AboveMaximum);
    assert_eq!(always.capacity, None);
    let top = always.held.unwrap();
    assert_eq!((top.rate, top.held), (50_000.0, 2));
}

#[test]
fn a_generator_that_is_the_limit_is_no_capacity() {
    let result = search(plan(), |rate| {
        if rate < 3000.0 {
            Observed::Held
        } else {
            Observed::Unclear
        }
    });
    assert_eq!(result.end, SearchEnd::GeneratorLimit);
    assert_eq!(result.capacity, None);
    let held = result.held.unwrap().rate;
    assert!((2800.0..3000.0).contains(&held), "{held}");
    let nothing = search(plan(), |_| Observed::Unclear);
    assert_eq!(nothing.end, SearchEnd::GeneratorLimit);
    assert_eq!((nothing.probes, nothing.held), (3, None));
}

#[test]
fn a_probe_that_is_sometimes_unclear_changes_no_answer() {
    let mut turn = 0;
    let result = search(plan(), |rate| {
        turn += 1;
        match turn % 3 {
            0 => Observed::Unclear,
            _ if rate < 5000.0 => Observed::Held,
            _ => Observed::Failed,
        }
    });
    assert_eq!(result.end, SearchEnd::Confirmed);
    assert!(result.unclear > 5);
    assert!((result.capacity.unwrap().value / 5000.0).ln().abs() < 0.03);
}

#[test]
fn a_machine_that_is_busy_for_a_while_is_waited_for() {
    // Eight probes in a row, near the threshold, say nothing.
    let mut made = 0;
    let result = search(plan(), |rate| {
        made += 1;
        match made {
            10..=17 => Observed::Unclear,
            _ if rate < 5000.0 => Observed::Held,
            _ => Observed::Failed,
        }
    });
    assert_eq!(result.end, SearchEnd::Confirmed);
    assert_eq!(result.unclear, 8);
}

#[test]
fn a_threshold_that_stays_unclear_is_narrowed_from_below() {
    // A busy generator cannot decide about the rates just above the threshold.
    let result = search(plan(), |rate| {
        if rate < 5000.0 {
            Observed::Held
        } else if rate < 6000.0 {
            Observed::Unclear
        } else {
            Observed::Failed
        }
    });
    assert_eq!(result.end, SearchEnd::GeneratorLimit);
    let held = result.held.unwrap().rate;
    assert!((4600.0..5000.0).contains(&held), "{held}");
    assert!(result.failed.unwrap().rate >= 6000.0);
    assert!(result.probes < 40, "{}", result.probes);
}

#[test]
fn what_changes_while_it_is_looked_at_is_not_confirmed() {
    // Slower with every probe, as what leaks is: there is no one threshold.
    let mut threshold = 20_000.0;
    let result = search(plan(), |rate| {
        threshold *= 0.95;
        if rate < threshold {
            Observed::Held
        } else {
            Observed::Failed
        }
    });
    assert_ne!(result.end, SearchEnd::Confirmed);
}

#[test]
fn a_search_without_a_range_is_refused() {
    for (plan, expected) in [
        (
            SearchPlan {
                from: 0.0,
                ..plan()
            },
            "must be above zero and below",
        ),
        (
            SearchPlan {
                to: 100.0,
                ..plan()
            },
            "must be above zero and below",
        ),
        (
            SearchPlan {
                within: 0.0,
                ..plan()
            },
            "use a share from 0.001",
        ),
        (
            SearchPlan {
                repeats: 0,
                ..plan()
            },
            "0 probes",
        ),
        (
            SearchPlan {
                probes_max: 2,
                ..plan()
            },
            "2 probes",
        ),
    ] {
        let error = CapacitySearch::try_new(plan).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

proptest! {
    /// For all answers: it ends within its probes, and requests no
    /// rate out of its range.
    #[test]
    fn it_never_goes_beyond_its_probes_or_rates(
        answers in proptest::collection::vec(0_u8..3, 60),
        within in 0.005_f64..0.2,
        repeats in 1_u32..6,
        probes_max in 5_u32..60,
    ) {
        let plan = SearchPlan { within, repeats, probes_max, ..plan() };
        let mut answers = answers.into_iter();
        let result = search(plan, |rate| {
            assert!((plan.from..=plan.to).contains(&rate), "{rate}");
            match answers.next() {
                Some(0) => Observed::Held,
                Some(1) => Observed::Failed,
                _ => Observed::Unclear,
            }
        });
        prop_assert!(result.probes <= probes_max);
    }

    /// For all thresholds without noise: the answer is confirmed and near.
    #[test]
    fn a_sharp_threshold_is_always_found(threshold in 110.0_f64..45_000.0, within in 0.01_f64..0.1) {
        let plan = SearchPlan { within, ..plan() };
        let result = search(plan, |rate| {
            if rate <= threshold { Observed::Held } else { Observed::Failed }
        });
        let capacity = result.capacity.unwrap();
        prop_assert!((capacity.value / threshold).ln().abs() <= within, "{result:?}");
        prop_assert_eq!(result.end, SearchEnd::Confirmed);
    }
}
