//! Trends of made-up results.

use proptest::prelude::*;
use stillwell_capture::RunStage;
use stillwell_plan::WorkUnit;
use stillwell_plan::goal::LatencyQuantile;
use stillwell_units::Seed;

use super::*;
use crate::run_warning::RunWarning;
use crate::synthetic;

/// Normal numbers from a seed.
struct Noise {
    seed: Seed,
    drawn: u64,
}

impl Noise {
    fn seeded(number: u64) -> Self {
        Self {
            seed: Seed::from_number(number),
            drawn: 0,
        }
    }

    fn uniform(&mut self) -> f64 {
        self.drawn += 1;
        let drawn = self.seed.derive("noise", self.drawn);
        let bytes = drawn.bytes();
        let number = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        (f64::from(number) + 0.5) / 4_294_967_296.0
    }

    /// By Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

const CPU: GoalMetric = GoalMetric::CpuPerEvent;

fn goals() -> Vec<stillwell_plan::GoalPlan> {
    [CPU, GoalMetric::IngressThroughput]
        .map(stillwell_plan::GoalPlan::new)
        .to_vec()
}

/// A result of four pairs whose comparison costs `effect` more than the anchor, on a
/// machine that costs `machine` times as much that day.
fn result(number: u32, effect: f64, machine: f64, noise: &mut Noise) -> HistoryPoint {
    let plan = synthetic::plan("relay", goals());
    let mut runs = Vec::new();
    for pair in 1..=4 + number % 3 {
        for (variant, share) in [("baseline", 0.0), ("comparison", effect)] {
            let cost = 1000.0 * machine * (1.0 + share) * (0.003 * noise.normal()).exp();
            let place = (RunStage::Search, pair, variant);
            let values = [(CPU, cost), (GoalMetric::Memory, 5e7)];
            runs.push(synthetic::run("relay", place, &values));
        }
    }
    point(number, condense(&plan, &runs, "comparison"))
}

fn point(number: u32, measurements: Vec<Measurement>) -> HistoryPoint {
    HistoryPoint {
        experiment: "relay".to_owned(),
        comparison: "comparison".to_owned(),
        work: WorkUnit::Events,
        origin: Origin {
            time_millis: u64::from(number) * 86_400_000,
            run: format!("result-{number:03}"),
            commit: Some(format!("{number:040x}")),
            anchor: Some("v1".to_owned()),
            machine: Some("EPYC".to_owned()),
            workload: "w".to_owned(),
            ..Origin::default()
        },
        measurements,
    }
}

fn options(alarm_rate: f64) -> TrendOptions {
    TrendOptions {
        method: Method::Stillwell { alarm_rate },
        magnitude: 0.0,
        metrics: Vec::new(),
        last: None,
    }
}

/// Suites whose effects are these, on machines that drift.
fn results(effects: &[f64], seed: u64) -> Vec<HistoryPoint> {
    let mut noise = Noise::seeded(seed);
    let mut machine = 1.0;
    let mut results = Vec::new();
    for (number, effect) in (1..).zip(effects) {
        machine *= (0.02 * noise.normal()).exp();
        results.push(result(number, *effect, machine, &mut noise));
    }
    results
}

fn only(trends: Vec<Trend>) -> Trend {
    assert_eq!(trends.len(), 1, "{trends:?}");
    trends.into_iter().next().unwrap()
}

/// Of 200 histories in which nothing changed, on a machine that drifts by 2 % from
/// result to result, at most the nominal share raises an alarm.
#[test]
fn stationary_histories_alarm_at_most_at_the_nominal_rate() {
    let alarms = (0..200).filter(|seed| {
        let trend = only(trends(&results(&[0.0; 24], 1000 + seed), &options(0.05)));
        assert_eq!(trend.basis, Basis::Anchor);
        !trend.leads.is_empty()
    });
    // Nominal are 10; a rate of 5 % gives more than 17 once in a hundred times.
    let alarms = alarms.count();
    assert!(alarms <= 10, "{alarms} of 200");
}

/// Of 100 histories whose ratios have a lag-one correlation of 0.5, at most the nominal share
/// raises an alarm.
#[test]
fn f6_ratios_to_a_pinned_baseline_may_be_correlated() {
    let alarms = (0..100).filter(|seed| {
        let mut noise = Noise::seeded(5000 + seed);
        let mut effect = 0.01 * noise.normal();
        let effects: Vec<f64> = (0..20)
            .map(|_| {
                effect = 0.5 * effect + 0.01 * 0.75_f64.sqrt() * noise.normal();
                effect
            })
            .collect();
        let trend = only(trends(&results(&effects, 6000 + seed), &options(0.05)));
        assert_eq!(trend.basis, Basis::Anchor);
        !trend.leads.is_empty()
    });
    // Nominal are 5; a rate of 5 % gives more than 11 once in two hundred times.
    let alarms = alarms.count();
    assert!(alarms <= 11, "{alarms} of 100");
}

#[test]
fn a_step_is_found_with_the_commits_around_it() {
    let effects: Vec<f64> = (0..20).map(|n| if n < 13 { 0.0 } else { 0.02 }).collect();
    let trend = only(trends(&results(&effects, 5), &options(0.01)));
    let lead = trend.alarm().unwrap();
    assert_eq!(trend.leads.len(), 1);
    assert_eq!(trend.points[lead.index].origin.run, "result-014");
    assert!((lead.change - 0.02).abs() < 0.004, "{lead:?}");
    assert!((lead.plain.mean_after / lead.plain.mean_before - 1.02).abs() < 0.004);
    assert!(lead.worse && lead.matters && lead.suspects.is_empty());
    assert_eq!(trend.latest, Latest::Worse);
    assert!(lead.p_value <= 0.01 && trend.p_value == Some(lead.p_value));
    let first = trend.points[0].measured.standard_error().unwrap();
    assert!((0.0001..0.01).contains(&first), "{first}");
}

/// A large step in the middle is found as soon as there are as many results as are
/// said to be needed, and with fewer it is not said that nothing happened.
#[test]
fn too_few_suites_are_those_that_could_show_no_change() {
    for alarm_rate in [0.01, 0.05] {
        for count in 5..14 {
            let mut points = results(&[0.0; 14], 11);
            points.truncate(count);
            for (place, point) in points.iter_mut().enumerate() {
                for item in &mut point.measurements {
                    item.pairs = 4;
                    item.delta += if place < count / 2 { 0.0 } else { 0.5 };
                }
            }
            let trend = only(trends(&points, &options(alarm_rate)));
            let needed = trend.points_needed;
            // The p value is drawn, so at the border it is either.
            if count > needed {
                assert_eq!(trend.latest, Latest::Worse, "{count} at {alarm_rate}");
            } else if count + 1 < needed {
                assert_eq!(trend.latest, Latest::TooFew, "{count} at {alarm_rate}");
            }
        }
    }
}

#[test]
fn what_was_mended_is_no_alarm() {
    let mut effects = vec![0.0; 10];
    effects.extend([0.03; 10]);
    effects.extend([0.0; 10]);
    let trend = only(trends(&results(&effects, 6), &options(0.01)));
    assert_eq!(trend.leads.len(), 2);
    assert_eq!((trend.latest, trend.alarm()), (Latest::Better, None));
}

#[test]
fn without_an_anchor_levels_are_compared_and_drift_is_no_step() {
    let mut alarms = 0;
    for seed in 0..20 {
        let mut points = results(&[0.0; 24], 300 + seed);
        for (number, point) in points.iter_mut().enumerate() {
            point.origin.anchor = Some(format!("main~{number}"));
        }
        let trend = only(trends(&points, &options(0.01)));
        assert_eq!((trend.basis, trend.stretches.len()), (Basis::Level, 1));
        alarms += u32::from(!trend.leads.is_empty());
    }
    // A machine that walks at random is not stationary; still not every walk is a
    // step.
    assert!(alarms < 10, "{alarms} of 20");
}

#[test]
fn another_workload_or_anchor_begins_again() {
    let effects: Vec<f64> = (0..16).map(|n| if n < 8 { 0.0 } else { 0.05 }).collect();
    for turn in [
        |origin: &mut Origin| origin.workload = "other".to_owned(),
        |origin: &mut Origin| origin.anchor = Some("v2".to_owned()),
    ] {
        let mut points = results(&effects, 7);
        for point in &mut points[8..] {
            turn(&mut point.origin);
        }
        let trend = only(trends(&points, &options(0.08)));
        assert_eq!(trend.stretches, [0, 8]);
        assert!(trend.leads.is_empty(), "{:?}", trend.leads);
        assert_eq!(trend.latest, Latest::Steady);
        // At this rate eight results could not show anything.
        let trend = only(trends(&points, &options(0.01)));
        assert_eq!((trend.latest, trend.points_needed), (Latest::TooFew, 10));
    }
}

/// A change in an earlier stretch is in the list, and neither the state nor an alarm: it was answered by a new baseline.
#[test]
fn a_change_before_another_baseline_is_no_alarm() {
    let effects: Vec<f64> = (0..36).map(|n| if n < 12 { 0.0 } else { 0.05 }).collect();
    let mut points = results(&effects, 7);
    let before = only(trends(&points[..24], &options(0.08)));
    assert!(before.alarm().is_some());
    for point in &mut points[24..] {
        point.origin.anchor = Some("v2".to_owned());
    }
    let trend = only(trends(&points, &options(0.08)));
    assert_eq!(trend.stretches, [0, 24]);
    assert!(
        trend.leads.iter().any(|lead| lead.worse),
        "{:?}",
        trend.leads
    );
    assert_eq!((trend.alarm(), trend.latest), (None, Latest::Steady));
}

#[test]
fn a_step_of_the_same_program_or_on_another_machine_is_suspect() {
    let effects: Vec<f64> = (0..16).map(|n| if n < 8 { 0.0 } else { 0.05 }).collect();
    let mut points = results(&effects, 8);
    for point in &mut points[8..] {
        point.origin.machine = Some("Xeon".to_owned());
    }
    let commit = points[7].origin.commit.clone();
    points[8].origin.commit = commit;
    let trend = only(trends(&points, &options(0.01)));
    assert_eq!(
        trend.leads[0].suspects,
        [Suspect::OtherMachine, Suspect::SameProgram]
    );
}

#[test]
fn requested_metrics_gate_and_others_do_not() {
    let points = results(&[0.0; 8], 9);
    let requested = TrendOptions {
        metrics: vec![
            GoalMetric::Memory,
            GoalMetric::Latency(LatencyQuantile::P99),
        ],
        last: Some(7),
        ..options(0.01)
    };
    let trend = only(trends(&points, &requested));
    assert_eq!(
        (trend.metric.clone(), trend.points.len()),
        (GoalMetric::Memory, 7)
    );
    assert!(trend.gates && trend.leads.is_empty());
    assert!(only(trends(&points[..5], &options(0.01))).latest == Latest::TooFew);
}

#[test]
fn small_changes_can_be_left_out() {
    let effects: Vec<f64> = (0..20).map(|n| if n < 10 { 0.0 } else { 0.02 }).collect();
    let points = results(&effects, 10);
    for (magnitude, leads) in [(0.0, 1), (0.01, 1), (0.05, 0)] {
        for method in [
            Method::Stillwell { alarm_rate: 0.01 },
            Method::Otava(OtavaOptions::default()),
        ] {
            let options = TrendOptions {
                method,
                magnitude,
                ..options(0.01)
            };
            let trend = only(trends(&points, &options));
            assert_eq!(trend.leads.len(), leads, "{method:?} {magnitude}");
        }
    }
}

#[test]
fn an_erratic_experiment_has_no_alarm_unless_its_metric_is_requested() {
    let mut runs = Vec::new();
    for (variant, cost) in [("baseline", 100.0), ("comparison", 110.0)] {
        let place = (RunStage::Search, 1, variant);
        runs.push(synthetic::run("relay", place, &[(CPU, cost)]));
    }
    for (erratic, metrics, gates) in [
        (false, vec![], true),
        (true, vec![], false),
        (true, vec![CPU], true),
    ] {
        let mut plan = synthetic::plan("relay", goals());
        plan.erratic = erratic;
        let point = point(1, condense(&plan, &runs, "comparison"));
        let options = TrendOptions {
            metrics,
            ..options(0.01)
        };
        let trend = only(trends(&[point], &options));
        assert_eq!(trend.gates, gates, "{erratic}");
    }
}

#[test]
fn unreliable_runs_discard_their_pair() {
    let plan = synthetic::plan("relay", goals());
    let run = |stage, pair, variant, cost| {
        synthetic::run("relay", (stage, pair, variant), &[(CPU, cost)])
    };
    let mut runs = Vec::new();
    for (stage, pair, cost) in [
        (RunStage::Search, 1, 110.0),
        (RunStage::Search, 2, 500.0),
        (RunStage::Confirm, 1, 110.0),
    ] {
        runs.push(run(stage, pair, "baseline", 100.0));
        runs.push(run(stage, pair, "comparison", cost));
    }
    runs[3].warnings.push(RunWarning::CpuSteal {
        share: 0.3,
        limit: 0.05,
    });
    runs.push(run(RunStage::Search, 3, "baseline", 1.0));
    let result = condense(&plan, &runs, "comparison");
    assert_eq!(result.len(), 1);
    assert_eq!((result[0].pairs, result[0].role), (2, Role::Primary));
    assert!((result[0].delta - 1.1_f64.ln()).abs() < 1e-12);
    assert!((result[0].comparison_mean - 110.0).abs() < 1e-9);
}

#[test]
fn one_pair_was_no_pair() {
    let plan = synthetic::plan("relay", goals());
    let mut runs: Vec<_> = [("baseline", 100.0), ("comparison", 110.0)]
        .into_iter()
        .map(|(variant, cost)| {
            synthetic::run("relay", (RunStage::Search, 1, variant), &[(CPU, cost)])
        })
        .collect();
    let result = condense(&plan, &runs, "comparison");
    assert_eq!((result[0].pairs, result[0].deviation), (1, None));
    assert!((result[0].delta - 1.1_f64.ln()).abs() < 1e-12);
    // Two runs under different circumstances are none.
    for (run, governor) in runs.iter_mut().zip(["performance", "powersave"]) {
        run.environment
            .insert("governor".to_owned(), governor.to_owned());
    }
    assert!(condense(&plan, &runs, "comparison").is_empty());
}

proptest! {
    // A case tests thousands of simulated histories.
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// For all orders of the results: the same trends.
    #[test]
    fn the_order_of_reading_does_not_matter(shift in 0_usize..20, seed in 0_u64..50) {
        let effects: Vec<f64> = (0..20).map(|n| if n < 9 { 0.0 } else { 0.03 }).collect();
        let points = results(&effects, seed);
        let mut turned = points.clone();
        turned.rotate_left(shift);
        prop_assert_eq!(trends(&points, &options(0.01)), trends(&turned, &options(0.01)));
    }
}
