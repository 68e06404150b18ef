//! Runs of both sides are matched, paired and compared by what they say of themselves.

use super::*;

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
