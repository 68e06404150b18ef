//! The rates that are promised, over machines that drift and stutter. Every bound
//! is the promise and a margin for chance of so many standard errors; the long
//! version is in docs/internals/calibration.md.

use stillwell_stats::simulate::{
    DRIFTS, Drift, Ending, Machine, SCENARIOS, Scenario, SimulatedRule, Tally,
};
use stillwell_stats::{Level, LogRatios, welch};

const TOLERANCE: f64 = 0.02;

/// One tally for each rule, over the same experiments of up to 20 pairs.
fn tallies<const N: usize>(
    machine: &Machine,
    rules: [&SimulatedRule; N],
    seed: u64,
    experiments: u64,
) -> [Tally; N] {
    let mut tallies = [Tally::default(); N];
    for number in 0..experiments {
        let pairs = machine.pairs((seed << 32) + number, 20);
        let ratios = LogRatios::from_pairs(&pairs).unwrap();
        for (tally, rule) in tallies.iter_mut().zip(rules) {
            tally.add(&rule.follow(&ratios, machine.change).unwrap());
        }
    }
    tallies
}

/// Six scenarios times three drifts, 2000 experiments each: no cell is above the
/// nominal rate by more than chance, and all together are within what is
/// promised: 0.5 points for a fixed number, not above for looks.
#[test]
fn equal_versions_alarm_at_most_at_the_nominal_rate() {
    let fixed = SimulatedRule::fixed(10, TOLERANCE);
    let sequential = SimulatedRule::sequential(20, TOLERANCE).unwrap();
    let open = SimulatedRule::open(20, TOLERANCE);
    let mut all = [Tally::default(); 3];
    for (seed, scenario) in (1..).zip(SCENARIOS) {
        for (more, drift) in (0..).zip(DRIFTS) {
            let machine = Machine {
                scenario,
                drift,
                seconds: 20,
                change: 0.0,
            };
            let cell = tallies(
                &machine,
                [&fixed, &sequential, &open],
                10 * seed + more,
                2000,
            );
            let names = format!("{}, {}", scenario.name, drift.name);
            let chance = 4.0 * cell[0].standard_error(0.05);
            let [fixed, sequential, open] = cell.map(|tally| tally.missed_at_some_look());
            assert!(
                (fixed - 0.05).abs() < 0.005 + chance,
                "{names}: fixed {fixed}"
            );
            assert!(sequential < 0.05 + chance, "{names}: looks {sequential}");
            assert!(open < 0.05, "{names}: open {open}");
            for (sum, tally) in all.iter_mut().zip(cell) {
                sum.merge(&tally);
            }
        }
    }
    let chance = 3.0 * all[0].standard_error(0.05);
    let [fixed, sequential, open] = all.map(|tally| tally.missed_at_some_look());
    assert!((fixed - 0.05).abs() < 0.005, "fixed {fixed}");
    assert!(
        sequential < 0.05 + chance && sequential > 0.045,
        "looks {sequential}"
    );
    assert!(open < 0.03, "open {open}");
}

/// Stopping where the verdict is certain does not spoil the interval.
#[test]
fn intervals_hold_the_truth_where_experiments_stop() {
    let sequential = SimulatedRule::sequential(20, TOLERANCE).unwrap();
    let open = SimulatedRule::open(20, TOLERANCE);
    for (seed, change) in (201..).zip([0.0, 0.01, 0.03, 0.05]) {
        for (more, scenario) in (0..).zip([SCENARIOS[4], SCENARIOS[5]]) {
            let machine = Machine {
                scenario,
                drift: DRIFTS[0],
                seconds: 20,
                change,
            };
            let cell = tallies(&machine, [&sequential, &open], 10 * seed + more, 3000);
            for tally in cell {
                let covered = tally.covered();
                let least = 0.95 - 3.0 * tally.standard_error(0.95);
                assert!(covered >= least, "{change}, {}: {covered}", scenario.name);
                assert!(covered >= 1.0 - tally.missed_at_some_look());
            }
        }
    }
}

/// 3 % where the pairs vary by 1.5 %, and never the wrong way.
#[test]
fn three_percent_is_found() {
    let sequential = SimulatedRule::sequential(20, TOLERANCE).unwrap();
    for (seed, change, right) in [
        (401, 0.03, Ending::Regressed),
        (402, -0.03, Ending::Improved),
    ] {
        let machine = Machine {
            scenario: Scenario::of_pair_noise(0.015),
            drift: Drift::NONE,
            seconds: 1,
            change,
        };
        let [tally] = tallies(&machine, [&sequential], seed, 10_000);
        let result = tally.ended(right);
        assert!(
            result >= 0.95 + 3.0 * tally.standard_error(0.95),
            "{change}: {result}"
        );
        assert!(tally.mean_pairs() < 10.0, "{} pairs", tally.mean_pairs());
        let wrong = [Ending::Regressed, Ending::Improved, Ending::Equivalent];
        let wrong = wrong.into_iter().filter(|ending| *ending != right);
        let wrong: f64 = wrong.map(|ending| tally.ended(ending)).sum();
        assert!(wrong < 0.005, "{change}: {wrong}");
    }
}

/// Reason against statistics of seconds: what three and three runs in blocks say
/// of equal versions, their seconds taken together.
#[test]
fn seconds_taken_for_runs_see_changes_everywhere() {
    let machine = Machine {
        scenario: SCENARIOS[4],
        drift: Drift::NONE,
        seconds: 120,
        change: 0.0,
    };
    let significant = (0..300)
        .filter(|seed| {
            let [baseline, comparison] = machine.blocks(*seed, 3);
            let test = welch(&baseline, &comparison, Level::NINETY_FIVE).unwrap();
            test.p_value < 0.05
        })
        .count();
    assert!(significant > 180, "{significant} of 300");
}
