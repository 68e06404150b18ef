use proptest::prelude::*;
use stillwell_metric::Unit;
use stillwell_plan::goal::{Direction, Scale};
use stillwell_stats::Level;
use stillwell_stats::smp::{SmpOptions, SmpSeries, smp};
use stillwell_stats::soak::{CounterReading, SoakOptions, soak};
use stillwell_units::Tolerance;
use stillwell_verdict::{Change, Verdict};

use super::*;
use crate::{Format, FullReport, Style};

fn runs(values: &[f64]) -> ComparedRuns {
    ComparedRuns {
        values: values.to_vec(),
        left_out: Vec::new(),
    }
}

fn row(finding: Finding, verdict: Option<Verdict>) -> ComparisonRow {
    ComparisonRow {
        metric: "throughput".to_owned(),
        unit: Unit::Bytes,
        per_second: true,
        primary: true,
        direction: Some(Direction::HigherIsBetter),
        tolerance: Tolerance::DEFAULT,
        scale: Scale::Ratio,
        baseline: runs(&[8e6, 8.1e6, 7.9e6]),
        comparison: runs(&[7.9e6, 8e6, 7.8e6]),
        finding,
        verdict,
        reason: None,
        remarks: Vec::new(),
    }
}

fn change(estimate: f64, reach: f64) -> Change {
    Change {
        estimate,
        lower: estimate - reach,
        upper: estimate + reach,
    }
}

fn unpaired() -> ComparisonRow {
    let finding = Finding::Unpaired {
        change: change(-0.0125, 0.02),
        t: -1.5,
        degrees: 4.0,
        p_value: 0.21,
        mann_whitney_p: None,
    };
    row(finding, Some(Verdict::Equivalent))
}

fn paired() -> ComparisonRow {
    let finding = Finding::Paired {
        change: change(-0.10, 0.02),
        pairs: 6,
        p_value: 0.0001,
        wilcoxon_p: Some(0.06),
        hodges_lehmann: Some(-0.099),
    };
    ComparisonRow {
        metric: "errors".to_owned(),
        unit: Unit::Ratio,
        per_second: false,
        scale: Scale::Difference,
        baseline: runs(&[0.30, 0.31]),
        comparison: runs(&[0.20, 0.21]),
        ..row(finding, Some(Verdict::Improved))
    }
}

fn single() -> ComparisonRow {
    let mut single = ComparisonRow {
        metric: "latency_p99".to_owned(),
        unit: Unit::Nanoseconds,
        per_second: false,
        baseline: runs(&[2e6]),
        comparison: runs(&[3e6]),
        reason: Some("one run on a side says nothing".to_owned()),
        ..row(Finding::Plain(Some(0.5)), None)
    };
    single.comparison.left_out = vec![("b.json".to_owned(), "the run did not complete".to_owned())];
    single
}

fn report(rows: Vec<ComparisonRow>, ancestors: Option<AncestorTables>) -> ComparisonReport {
    ComparisonReport {
        baseline: "old".to_owned(),
        comparison: "new|er".to_owned(),
        groups: vec![ComparisonGroup {
            name: Some("tcp_to_http".to_owned()),
            rows,
            ancestors,
            remarks: vec!["with so few runs one odd run decides".to_owned()],
            curves: Vec::new(),
        }],
        remarks: vec!["the first 30 s are left out".to_owned()],
        command: "stillwell compare old new".to_owned(),
        version: "0.0.0".to_owned(),
    }
}

fn all() -> ComparisonReport {
    report(vec![unpaired(), paired(), single()], None)
}

#[test]
fn terminal() {
    insta::assert_snapshot!(FullReport::from(&all()).render(Format::Terminal, Style::default()));
}

#[test]
fn markdown() {
    insta::assert_snapshot!(FullReport::from(&all()).render(Format::Markdown, Style::default()));
}

#[test]
fn json() {
    insta::assert_snapshot!(FullReport::from(&all()).render(Format::Json, Style::default()));
}

/// Two runs a side at so many MiB a second, wobbling.
fn readings(mebibytes: f64) -> Vec<CounterReading> {
    let reading = |second: u32| {
        let second = f64::from(second);
        CounterReading {
            second,
            value: mebibytes * 1_048_576.0 * (second + 0.1 * (second * 0.9).sin()),
        }
    };
    (0..60).map(reading).collect()
}

fn soak_table() -> AncestorTables {
    let (baseline, comparison) = (
        [readings(8.0), readings(8.1)],
        [readings(7.2), readings(7.3)],
    );
    let baseline: Vec<&[CounterReading]> = baseline.iter().map(Vec::as_slice).collect();
    let comparison: Vec<&[CounterReading]> = comparison.iter().map(Vec::as_slice).collect();
    let options = SoakOptions::default();
    let names = |side: &str| ["1", "2"].map(|number| format!("{side}{number}")).to_vec();
    AncestorTables::Soak2022(Box::new(SoakTable {
        experiment: "tcp_to_http".to_owned(),
        soak: soak(&baseline, &comparison, &options).unwrap(),
        declared_erratic: false,
        p_value: options.p_value,
        drift_percent: options.drift_percent,
        target: None,
        cpus: options.cpus,
        baseline_runs: names("a"),
        comparison_runs: names("b"),
    }))
}

#[test]
fn soak_layout() {
    let report = report(vec![unpaired()], Some(soak_table()));
    insta::assert_snapshot!(FullReport::from(&report).render(Format::Terminal, Style::default()));
}

#[test]
fn smp_layout() {
    let (baseline, comparison) = (readings(8.0), readings(7.2));
    let options = SmpOptions {
        warmup_seconds: 30.0,
        ..SmpOptions::stated(SmpSeries::Counter)
    };
    assert!((options.level.share() - Level::try_new(0.9).unwrap().share()).abs() < 1e-12);
    let compared = smp(&[&baseline], &[&comparison], &options).unwrap();
    let table = AncestorTables::Smp2023(SmpTable {
        run_id: None,
        experiment: "tcp_to_http".to_owned(),
        target: None,
        cpus: 7.0,
        goals: vec![("ingress throughput".to_owned(), compared)],
    });
    let report = report(vec![unpaired()], Some(table));
    insta::assert_snapshot!(FullReport::from(&report).render(Format::Markdown, Style::default()));
}

/// F10: a t of infinity was shown, with a p value.
#[test]
fn f10_an_infinite_t_has_no_p_value_in_a_report() {
    let unpaired = |t: f64| Finding::Unpaired {
        change: change(0.03, 0.0),
        t,
        degrees: 6.0,
        p_value: 0.0,
        mann_whitney_p: None,
    };
    let paired = |reach: f64| Finding::Paired {
        change: change(0.03, reach),
        pairs: 4,
        p_value: 0.0,
        wilcoxon_p: None,
        hodges_lehmann: Some(0.03),
    };
    for (finding, is_shown) in [
        (unpaired(f64::INFINITY), false),
        (unpaired(f64::NEG_INFINITY), false),
        (paired(0.0), false),
        // Their p values are smaller than the smallest number.
        (unpaired(1e6), true),
        (paired(0.001), true),
    ] {
        let report = report(vec![row(finding, Some(Verdict::Regressed))], None);
        let text = FullReport::from(&report).render(Format::Terminal, Style::default());
        assert_eq!(text.contains("<0.001"), is_shown, "{text}");
        assert_eq!(text.contains("p n/a"), !is_shown, "{text}");
        assert!(
            !text.contains("t inf") && !text.contains("t -inf"),
            "{text}"
        );
    }
}

#[test]
fn what_is_typed_cannot_break_a_table() {
    let mut row = unpaired();
    row.metric = "a|b\n<script>`c`".to_owned();
    let report = report(vec![row], None);
    let text = FullReport::from(&report).render(Format::Markdown, Style::default());
    assert!(text.contains("a\\|b &lt;script>\\`c\\`"), "{text}");
    let rows = text.lines().filter(|line| line.starts_with("| "));
    let cells = rows.map(|row| row.replace("\\|", "").matches('|').count());
    assert!(cells.eq([10, 10, 10]), "{text}");
}

proptest! {
    /// For all numbers, finite or not: every format contains them, and JSON stays JSON.
    #[test]
    fn all_numbers_are_reported(estimate: f64, lower: f64, upper: f64, value: f64, p_value: f64) {
        let finding = Finding::Unpaired {
            change: Change { estimate, lower, upper },
            t: value,
            degrees: value,
            p_value,
            mann_whitney_p: Some(p_value),
        };
        let mut row = row(finding, None);
        row.baseline.values.push(value);
        let report = report(vec![row], None);
        for format in Format::ALL {
            let text = FullReport::from(&report).render(format, Style::default());
            prop_assert!(text.contains("throughput"));
            if format == Format::Json {
                prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
            }
        }
    }
}
