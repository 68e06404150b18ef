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

/// Something with a threshold, noise around it, and stray answers.
struct Target {
    threshold: f64,
    noise: f64,
    stray: f64,
    draws: Draws,
}

impl Target {
    fn new(seed: u64, threshold: f64, noise: f64, stray: f64) -> Self {
        Self {
            threshold,
            noise,
            stray,
            draws: Draws::seeded(seed),
        }
    }

    fn probe(&mut self, rate: f64) -> Observed {
        let moved = self.threshold * (self.noise * self.draws.normal()).exp();
        let is_stray = self.draws.uniform() <= self.stray;
        if (rate <= moved) == is_stray {
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

#[test]
fn a_known_threshold_is_within_the_requested_width() {
    const TRIES: u64 = 200;
    let mut table = Vec::new();
    for (noise, stray, near_min, confirmed_min) in [
        (0.0, 0.0, 0.99, 0.95),
        (0.005, 0.0, 0.99, 0.95),
        (0.02, 0.0, 0.95, 0.90),
        (0.02, 0.03, 0.92, 0.90),
        (0.05, 0.02, 0.90, 0.70),
    ] {
        let (mut near, mut covered, mut confirmed, mut probes) = (0, 0, 0, 0);
        for seed in 0..TRIES {
            let mut draws = Draws::seeded(seed + 7_000);
            let threshold = 200.0 * (draws.uniform() * 5.0).exp();
            let mut target = Target::new(seed, threshold, noise, stray);
            let result = search(plan(), |rate| target.probe(rate));
            // Strays at the lowest rate look like bounds that never hold.
            let capacity = result.capacity;
            let is_near = |item: Estimate| (item.value / threshold).ln().abs() <= 0.03;
            near += u64::from(capacity.is_some_and(is_near));
            covered += u64::from(capacity.is_some_and(|item| item.contains(threshold)));
            confirmed += u64::from(result.end == SearchEnd::Confirmed);
            probes += u64::from(result.probes);
        }
        #[expect(clippy::cast_precision_loss, reason = "counts of tries")]
        let share = |count: u64| count as f64 / TRIES as f64;
        table.push((
            noise,
            stray,
            share(near),
            share(covered),
            share(confirmed),
            share(probes),
        ));
        assert!(share(near) >= near_min, "{table:?}");
        assert!(share(covered) >= 0.90, "{table:?}");
        assert!(share(confirmed) >= confirmed_min, "{table:?}");
        assert!(share(probes) <= 40.0, "{table:?}");
    }
    // What docs/internals/capacity.md says of it.
    println!("noise, strays, within 3 %, covered, confirmed, probes: {table:#?}");
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
fn a_probe_that_says_nothing_now_and_then_changes_no_answer() {
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
    for (plan, says) in [
        (
            SearchPlan {
                from: 0.0,
                ..plan()
            },
            "are no range",
        ),
        (
            SearchPlan {
                to: 100.0,
                ..plan()
            },
            "are no range",
        ),
        (
            SearchPlan {
                within: 0.0,
                ..plan()
            },
            "not between 0.001",
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
        assert!(error.contains(says), "{error}");
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
