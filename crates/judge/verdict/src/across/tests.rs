//! Runs of both sides are matched, paired and compared by what they say of themselves.

use stillwell_capture::RunStage;
use stillwell_metric::CountingObstacle;
use stillwell_plan::stopping::DesignPlan;
use stillwell_plan::{GoalMetric, GoalPlan};

use super::*;
use crate::run_note::RunNote;
use crate::summary::TARGET_CPUS;
use crate::synthetic;

/// A run of another tool: its numbers by name.
#[derive(Clone, Debug)]
struct Plain {
    experiment: Option<&'static str>,
    variant: Option<&'static str>,
    tool: &'static str,
    value: f64,
}

impl ComparableRun for Plain {
    fn label(&self) -> &str {
        "a run"
    }

    fn experiment(&self) -> Option<&str> {
        self.experiment
    }

    fn variant(&self) -> Option<&str> {
        self.variant
    }

    fn tool(&self) -> &'static str {
        self.tool
    }

    fn saved(&self) -> Option<&SavedRun> {
        None
    }

    fn number(&self, name: &str) -> Result<RunNumber, Missing> {
        match name {
            "p99" if self.value.is_finite() => Ok(RunNumber {
                value: self.value,
                unit: Unit::Nanoseconds,
                per_second: false,
                better: Some(Direction::LowerIsBetter),
            }),
            "p99" => Err(Missing::Because("it never ended".to_owned())),
            _ => Err(Missing::Unknown),
        }
    }

    fn usual_names(&self) -> Vec<String> {
        vec!["p99".to_owned()]
    }

    fn all_names(&self) -> Vec<String> {
        self.usual_names()
    }
}

fn run(experiment: Option<&'static str>, value: f64) -> Plain {
    Plain {
        experiment,
        variant: None,
        tool: "fortio",
        value,
    }
}

fn side(values: &[f64]) -> Vec<Plain> {
    values.iter().map(|value| run(None, *value)).collect()
}

fn group(baseline: &[f64], comparison: &[f64]) -> RunGroup<Plain> {
    RunGroup {
        name: None,
        baseline: side(baseline),
        comparison: side(comparison),
    }
}

/// A run of an experiment.
#[derive(Clone, Debug)]
struct ExperimentRun(SavedRun);

impl ComparableRun for ExperimentRun {
    fn label(&self) -> &str {
        "a run"
    }

    fn experiment(&self) -> Option<&str> {
        None
    }

    fn variant(&self) -> Option<&str> {
        None
    }

    fn tool(&self) -> &'static str {
        "Stillwell"
    }

    fn saved(&self) -> Option<&SavedRun> {
        Some(&self.0)
    }

    fn number(&self, name: &str) -> Result<RunNumber, Missing> {
        self.0.number(name)
    }

    fn usual_names(&self) -> Vec<String> {
        self.0.usual_names()
    }

    fn all_names(&self) -> Vec<String> {
        self.0.all_names()
    }
}

/// A run of an experiment with these goals that has these numbers.
fn saved(goals: &[GoalMetric], values: &[(GoalMetric, f64)]) -> ExperimentRun {
    let summary = synthetic::run("e", (RunStage::Search, 1, "baseline"), values);
    ExperimentRun(SavedRun {
        goals: goals.iter().cloned().map(GoalPlan::new).collect(),
        ..SavedRun::new(summary)
    })
}

/// Numbers of runs that differ by little.
const QUIET: [f64; 8] = [100.0, 100.1, 99.9, 100.2, 99.8, 100.0, 100.1, 99.9];

#[test]
fn experiments_are_matched_by_name_and_single_ones_by_any_name() {
    let runs = |names: &[&'static str]| -> Vec<Plain> {
        names.iter().map(|name| run(Some(name), 1.0)).collect()
    };
    let matched = match_runs(runs(&["a", "b"]), runs(&["b", "c"]), false, &[]).unwrap();
    let names: Vec<_> = matched
        .groups
        .iter()
        .map(|group| group.name.as_deref())
        .collect();
    assert_eq!(names, [Some("b")]);
    assert_eq!(
        matched.remarks,
        [
            "experiment `a` is only in the baseline",
            "experiment `c` is only in the comparison"
        ]
    );
    let matched = match_runs(runs(&["a"]), runs(&["b"]), false, &[]).unwrap();
    assert_eq!(matched.groups[0].name.as_deref(), Some("b against a"));
    let only = ["x*".to_owned()];
    let error = match_runs(runs(&["a"]), runs(&["b"]), false, &only).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no experiment on both sides is named `x*`"
    );
}

#[test]
fn a_side_with_several_variants_is_refused_unless_both_are_one_place() {
    let of = |variant: &'static str| Plain {
        variant: Some(variant),
        ..run(None, 1.0)
    };
    let both = vec![of("comparison"), of("baseline")];
    let error = match_runs(both.clone(), both.clone(), false, &[]).unwrap_err();
    assert!(error.to_string().contains("several variants"), "{error}");
    let matched = match_runs(both.clone(), both, true, &[]).unwrap();
    let group = &matched.groups[0];
    assert_eq!(group.baseline[0].variant, Some("baseline"));
    assert_eq!(group.comparison[0].variant, Some("comparison"));
}

#[test]
fn of_one_place_the_first_two_variants_are_compared_and_the_further_ones_are_named() {
    for (experiment, start) in [(None, ""), (Some("relay"), "experiment `relay`: ")] {
        let of = |variant: &'static str| Plain {
            variant: Some(variant),
            ..run(experiment, 1.0)
        };
        let runs = ["third", "baseline", "second", "first"].map(of).to_vec();
        let matched = match_runs(runs.clone(), runs, true, &[]).unwrap();
        let group = &matched.groups[0];
        assert_eq!((group.baseline.len(), group.comparison.len()), (1, 1));
        assert_eq!(group.baseline[0].variant, Some("baseline"));
        assert_eq!(group.comparison[0].variant, Some("first"));
        let remark = format!(
            "{start}only the first two variants are compared, without `second`, `third`; PATH@NAME \
             selects one"
        );
        assert_eq!(matched.remarks, [remark]);
    }
}

#[test]
fn runs_without_a_number_are_left_out_and_named() {
    let group = group(&[100.0, 101.0, 99.0, f64::NAN], &[90.0, 91.0, 89.0, 90.5]);
    let compared = compare_group(&group, &CompareOptions::default()).unwrap();
    let row = &compared.rows[0];
    assert!(row.primary);
    assert_eq!(row.verdict, Some(Verdict::Improved));
    assert_eq!(row.baseline.values.len(), 3);
    let left_out = ("a run".to_owned(), "it never ended".to_owned());
    assert_eq!(row.baseline.left_out, [left_out]);
    assert_eq!(compared.remarks.len(), 1, "{:?}", compared.remarks);
}

#[test]
fn the_first_goal_decides_also_without_a_number_on_a_side() {
    use GoalMetric::{CpuPerEvent, InstructionsPerEvent, Memory};
    let (no_counter, files) = (CountingObstacle::NoCounter, CountingObstacle::TooManyFiles);
    for (first, obstacle, primary, verdict) in [
        (CpuPerEvent, None, "cpu_per_event", None),
        // The machine cannot count instructions, so the next goal decides.
        (
            InstructionsPerEvent,
            Some(no_counter),
            "memory",
            Some(Verdict::Regressed),
        ),
        // It can, and did not.
        (
            InstructionsPerEvent,
            Some(files),
            "instructions_per_event",
            None,
        ),
        (InstructionsPerEvent, None, "instructions_per_event", None),
    ] {
        let goals = [first.clone(), Memory];
        let note = obstacle.map(|obstacle| RunNote::InstructionsNotCounted { obstacle });
        let baseline =
            QUIET.map(|number| saved(&goals, &[(first.clone(), number), (Memory, number)]));
        let comparison = QUIET.map(|number| {
            let mut run = saved(&goals, &[(Memory, 2.0 * number)]);
            run.0.summary.notes.extend(note.clone());
            run
        });
        let group = RunGroup {
            name: None,
            baseline: baseline.into(),
            comparison: comparison.into(),
        };
        let compared = compare_group(&group, &CompareOptions::default()).unwrap();
        let row = &compared.rows[0];
        assert_eq!((row.metric.as_str(), row.verdict), (primary, verdict));
        assert_eq!(row.reason.is_some(), verdict.is_none(), "{row:?}");
        let primaries = compared.rows.iter().filter(|row| row.primary);
        assert_eq!((row.primary, primaries.count()), (true, 1));
        let last = compared.rows.last().unwrap();
        assert_eq!(last.metric, "memory");
        assert_eq!(last.verdict, Some(Verdict::Regressed));
    }
}

#[test]
fn pairs_of_a_suite_with_different_environments_are_left_out_with_the_fact() {
    use DesignPlan::{Duet, Paired};
    for (design, fact, pairs) in [
        (Some(Paired), "governors", 5),
        (Some(Paired), TARGET_CPUS, 5),
        (Some(DesignPlan::SLICED), TARGET_CPUS, 5),
        (Some(Duet), "governors", 5),
        // Runs side by side have CPUs of their own.
        (Some(Duet), TARGET_CPUS, 6),
        // The plan is unreadable.
        (None, "governors", 6),
    ] {
        let side = |changed: Option<u32>, growth: f64| -> Vec<ExperimentRun> {
            let runs = (1..=6_u32).zip(QUIET).map(|(pair, number)| {
                let number = number + growth * f64::from(pair);
                let mut run = saved(&[GoalMetric::Memory], &[(GoalMetric::Memory, number)]);
                run.0.pair = Some(PairKey {
                    suite: "results".into(),
                    experiment: "e".to_owned(),
                    pair,
                });
                run.0.design = design;
                let value = if changed == Some(pair) { "2" } else { "1" };
                let environment = &mut run.0.summary.environment;
                environment.insert(fact.to_owned(), value.to_owned());
                run
            });
            runs.collect()
        };
        let group = RunGroup {
            name: None,
            baseline: side(None, 0.0),
            comparison: side(Some(4), 0.1),
        };
        let compared = compare_group(&group, &CompareOptions::default()).unwrap();
        let row = &compared.rows[0];
        let Finding::Paired { pairs: counted, .. } = row.finding else {
            panic!("{row:?}");
        };
        assert_eq!(counted, pairs, "{design:?} {fact}");
        let left_out = &row.comparison.left_out;
        assert_eq!(left_out.len(), usize::from(pairs < 6), "{left_out:?}");
        assert!(
            left_out.iter().all(|(_, reason)| reason.contains(fact)),
            "{left_out:?}"
        );
        assert_eq!(row.baseline.values.len(), 6 - left_out.len());
    }
}

#[test]
fn equivalent_needs_six_pairs_or_six_runs_on_each_side() {
    let second = [100.2, 99.9, 100.0, 99.8, 100.1, 100.1, 100.0, 99.9];
    for (paired, left, right, verdict) in [
        (true, 4_usize, 4_usize, Verdict::Inconclusive),
        (true, 5, 5, Verdict::Inconclusive),
        (true, 6, 6, Verdict::Equivalent),
        (true, 8, 8, Verdict::Equivalent),
        (false, 5, 5, Verdict::Inconclusive),
        (false, 5, 8, Verdict::Inconclusive),
        (false, 8, 5, Verdict::Inconclusive),
        (false, 6, 8, Verdict::Equivalent),
        (false, 6, 6, Verdict::Equivalent),
    ] {
        let options = CompareOptions {
            paired,
            ..CompareOptions::default()
        };
        let group = group(&QUIET[..left], &second[..right]);
        let compared = compare_group(&group, &options).unwrap();
        let row = &compared.rows[0];
        assert_eq!(row.verdict, Some(verdict), "{paired} {left} {right}");
        let least = left.min(right);
        let reason = match (verdict, paired) {
            (Verdict::Equivalent, _) => String::new(),
            (_, true) => format!("`equivalent` needs 6 pairs: {least} pairs"),
            (_, false) => format!("`equivalent` needs 6 runs on each side: {least} runs"),
        };
        let shown = row.reason.as_deref().unwrap_or_default();
        assert_eq!(shown.is_empty(), reason.is_empty(), "{shown}");
        assert!(shown.contains(&reason), "{shown}");
    }
}

#[test]
fn a_light_load_shows_no_equivalence_of_a_cost_per_event() {
    use GoalMetric::{CpuPerEvent, Memory};
    for (metric, share, ratio, verdict) in [
        (CpuPerEvent, 0.5, 1.0, Verdict::Equivalent),
        (CpuPerEvent, 0.1, 1.0, Verdict::Inconclusive),
        (CpuPerEvent, 0.1, 2.0, Verdict::Regressed),
        (Memory, 0.1, 1.0, Verdict::Equivalent),
    ] {
        let goals = [metric];
        let side = |ratio: f64| {
            let runs = QUIET.map(|number| {
                let mut run = saved(&goals, &[(goals[0].clone(), ratio * number)]);
                run.0.summary.figures.target_cpu_share = Some(share);
                run
            });
            Vec::from(runs)
        };
        let group = RunGroup {
            name: None,
            baseline: side(1.0),
            comparison: side(ratio),
        };
        let compared = compare_group(&group, &CompareOptions::default()).unwrap();
        let row = &compared.rows[0];
        assert_eq!(row.verdict, Some(verdict), "{goals:?} {share} {ratio}");
        let reason = row.reason.as_deref().unwrap_or_default();
        let is_light = reason.starts_with("light load: baseline used ");
        assert_eq!(is_light, verdict == Verdict::Inconclusive, "{reason}");
    }
}

#[test]
fn pairs_by_place_need_as_many_runs_on_both_sides() {
    let options = CompareOptions {
        paired: true,
        ..CompareOptions::default()
    };
    let error = compare_group(&group(&[1.0], &[1.0, 2.0]), &options).unwrap_err();
    assert_eq!(error, CompareError::Unequal { left: 1, right: 2 });
    let compared = compare_group(&group(&[1.0, 2.0, 4.0], &[2.0, 4.1, 8.0]), &options).unwrap();
    assert!(matches!(
        compared.rows[0].finding,
        Finding::Paired { pairs: 3, .. }
    ));
}

#[test]
fn a_name_that_was_not_recorded_is_refused_with_the_recorded_ones() {
    let options = CompareOptions {
        metrics: vec!["p42".to_owned()],
        ..CompareOptions::default()
    };
    let error = compare_group(&group(&[1.0], &[1.0]), &options).unwrap_err();
    assert_eq!(error.to_string(), "no run has `p42`; known names: `p99`");
}

#[test]
fn results_of_different_tools_are_reported_to_differ() {
    let mut group = group(&[1.0, 1.1], &[1.0, 1.1]);
    group.comparison[0].tool = "Nighthawk";
    let compared = compare_group(&group, &CompareOptions::default()).unwrap();
    let differs = compared
        .remarks
        .iter()
        .any(|text| text.contains("different tools"));
    assert!(differs, "{:?}", compared.remarks);
}

#[test]
fn several_experiments_share_one_error_rate() {
    let verdicts = |experiments: usize| {
        let compared = |baseline: &[f64], comparison: &[f64]| {
            let group = group(baseline, comparison);
            compare_group(&group, &CompareOptions::default()).unwrap()
        };
        // p is 0.03: fewer than one in 20, and more than one in 40.
        let mut groups = vec![compared(
            &[100.0, 104.0, 96.0, 101.0],
            &[105.0, 111.0, 107.0, 103.0],
        )];
        groups.resize(
            experiments,
            compared(&[100.0, 101.0, 99.0], &[100.0, 99.0, 101.0]),
        );
        let p = groups[0].rows[0].finding.p_value().unwrap();
        assert!((0.025..0.05).contains(&p), "{p}");
        apply_holm(groups.iter_mut().flat_map(|group| &mut group.rows));
        groups[0].rows[0].verdict
    };
    assert_eq!(verdicts(1), Some(Verdict::Regressed));
    assert_eq!(verdicts(2), Some(Verdict::Different));
}

/// F10: `compare` had a p value where nothing varies, and no remark.
#[test]
fn f10_runs_that_do_not_vary_have_a_remark_and_stay_in_the_family() {
    let compared = |paired: bool, baseline: &[f64], comparison: &[f64]| {
        let options = CompareOptions {
            paired,
            tolerance: Some(Tolerance::try_new(0.02).unwrap()),
            ..CompareOptions::default()
        };
        compare_group(&group(baseline, comparison), &options).unwrap()
    };
    for (paired, comparison, start) in [
        (
            false,
            [103.0; 4],
            Some("the runs of each side do not vary, "),
        ),
        (true, [103.0; 4], Some("the change does not vary between ")),
        // Everything is lost.
        (true, [0.0; 4], Some("the change does not vary between ")),
        (false, [103.0, 103.1, 102.9, 103.0], None),
        (true, [103.0, 103.1, 102.9, 103.0], None),
        (false, [100.0; 4], None),
        (true, [100.0; 4], None),
    ] {
        let row = compared(paired, &[100.0; 4], &comparison).rows.remove(0);
        assert_eq!(row.finding.has_infinite_t(), start.is_some(), "{row:?}");
        let remarks = row.remarks.iter().map(String::as_str);
        let is_expected = |remark: &str| {
            start.is_some_and(|start| remark.starts_with(start))
                && remark.contains("the noise is not known")
        };
        assert!(remarks.clone().all(is_expected), "{row:?}");
        assert_eq!(remarks.count(), usize::from(start.is_some()), "{row:?}");
    }
    for paired in [false, true] {
        let mut groups = [
            compared(paired, &[100.0; 4], &[103.0; 4]),
            compared(
                false,
                &[100.0, 104.0, 96.0, 101.0],
                &[105.0, 111.0, 107.0, 103.0],
            ),
            compared(paired, &[100.0; 4], &[100.0; 4]),
        ];
        apply_holm(groups.iter_mut().flat_map(|group| &mut group.rows));
        let rows = groups.each_ref().map(|group| &group.rows[0]);
        assert_eq!(rows[0].verdict, Some(Verdict::Regressed), "{paired}");
        assert_eq!(rows[1].verdict, Some(Verdict::Different), "{paired}");
        let reason = rows[1].reason.as_deref().unwrap();
        assert!(reason.contains("for 3 experiments"), "{reason}");
    }
}
