use stillwell_plan::goal::Scale;
use stillwell_plan::{GoalMetric, WorkUnit};
use stillwell_units::Tolerance;
use stillwell_verdict::Change;

use super::*;
use crate::{Format, Style};

fn goals() -> Vec<CalibratedGoal> {
    let goal = CalibratedGoal {
        metric: GoalMetric::CpuPerEvent,
        scale: Scale::Ratio,
        tolerance: Tolerance::try_new(0.005).unwrap(),
        comparisons: 12,
        flagged: 1,
        pairs: 96,
        pair_deviation: Some(0.0055),
        apart_deviation: Some(0.031),
        within_share: Some(0.7),
        better_seconds: Some(20.0),
        visible: vec![
            Visible {
                minutes: 5,
                pairs: 3,
                change: None,
            },
            Visible {
                minutes: 30,
                pairs: 60,
                change: Some(0.0026),
            },
        ],
    };
    let memory = CalibratedGoal {
        metric: GoalMetric::MemorySlope,
        scale: Scale::Difference,
        tolerance: Tolerance::try_new(0.01).unwrap(),
        within_share: None,
        apart_deviation: None,
        ..goal.clone()
    };
    vec![goal, memory]
}

fn report() -> CalibrationReport {
    CalibrationReport {
        title: "suite/relay".to_owned(),
        experiments: vec![CalibratedExperiment {
            name: "relay_tcp".to_owned(),
            work: WorkUnit::Events,
            self_comparison: SelfComparisonFigures {
                comparisons: 12,
                invalid: 1,
                flagged_by_search: 1,
                flagged: 0,
                without_zero: 2,
                equivalent: 9,
            },
            worse: Ok(WorseFound {
                how: Slowdown::Burn,
                truth: Some(0.01),
                comparisons: 4,
                invalid: 0,
                found_by_search: 4,
                confirmed: 3,
                covered: Some(4),
                changes: vec![Change {
                    estimate: 0.011,
                    lower: 0.008,
                    upper: 0.014,
                }],
            }),
            goals: goals(),
            pair_time: Nanos::from_millis(4_200),
            max_pairs: 20,
            machine: MachineMet {
                runs: 240,
                pairs_discarded: 2,
                warnings: vec![("sink_saturated", 3)],
                foreign: Some((0.06, 0.2)),
                steal: Some((0.0, 0.0)),
            },
        }],
        results_folder: ".stillwell/calibrations/one".to_owned(),
        command: "stillwell calibrate suite/relay".to_owned(),
        version: "0.1.0".to_owned(),
        host: vec![("kernel".to_owned(), "6.1".to_owned())],
        elapsed: Nanos::from_secs(1200),
    }
}

#[test]
fn a_terminal_lists_what_can_be_seen() {
    let text = FullReport::from(&report()).render(Format::Terminal, Style::default());
    insta::assert_snapshot!("terminal", text);
}

#[test]
fn markdown_is_a_page() {
    let text = FullReport::from(&report()).render(Format::Markdown, Style::default());
    insta::assert_snapshot!("markdown", text);
}

#[test]
fn programs_get_shares_and_counts() {
    let text = FullReport::from(&report()).render(Format::Json, Style::default());
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["schema"], CALIBRATION_SCHEMA);
    let experiment = &value["experiments"][0];
    assert_eq!(experiment["alike"]["flagged"]["count"], 0);
    assert_eq!(experiment["worse"]["found"]["count"], 3);
    assert_eq!(experiment["goals"][0]["visible"][1]["pairs"], 60);
    assert!(experiment["goals"][0]["visible"][0]["change"].is_null());
    assert_eq!(experiment["machine"]["foreign_cpu"]["most_share"], 0.2);
}

#[test]
fn the_reason_for_no_slowdown_is_reported() {
    let mut report = report();
    report.experiments[0].worse = Err("nothing makes memory worse".to_owned());
    let text = FullReport::from(&report).render(Format::Terminal, Style::default());
    assert!(
        text.contains("no slower version was tested: nothing makes memory worse"),
        "{text}"
    );
}

#[test]
fn an_empty_calibration_reports_it() {
    let mut report = report();
    report.experiments.clear();
    let text = FullReport::from(&report).render(Format::Terminal, Style::default());
    assert!(text.starts_with("no comparison finished"), "{text}");
}
