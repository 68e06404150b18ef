//! Text from outside in every form of a report: names, logs, headers and tables steer no terminal, browser or page.

use std::collections::BTreeMap;

use proptest::prelude::*;
use stillwell_profile::{FlameNode, ProfileQuantity};
use stillwell_units::Secrets;
use stillwell_verdict::{ExperimentVerdict, GatePolicy};

use crate::document::escape::is_steering;
use crate::document::tests::everywhere;
use crate::document::{
    Block, Chart, Curve, Document, FlameChart, Interval, IntervalChart, IntervalRow, Mark, Medium,
    PairSeries, PairStage, Sign,
};
use crate::fixture::{explained, failed_check, invalid, regressed, report};
use crate::load::{NativeLoadFormat, fixture, render_load};
use crate::{
    CommentOptions, Format, FullReport, Style, SuiteProblem, SuiteReport, comment, decision_json,
    junit,
};

/// Parts of hostile text.
const PARTS: [&str; 28] = [
    "a",
    " ",
    "\u{1b}[2J",
    "\u{1b}]52;c;aGk=\u{7}",
    "\u{9b}2J",
    "\u{7f}",
    "\0",
    "\r",
    "\n",
    "\t",
    "\u{202e}",
    "\u{2066}",
    "\u{2069}",
    "\u{200f}",
    "\u{61c}",
    "\u{2028}",
    "<script>",
    "</script>",
    "<img src=x onerror=a>",
    "</details>",
    "-->",
    "]]>",
    "&#27;",
    "](javascript:a)",
    "@all",
    "|",
    "\"'",
    "`\\",
];

fn hostile() -> impl Strategy<Value = String> {
    let parts = prop::collection::vec(prop::sample::select(PARTS.to_vec()), 1..6);
    parts.prop_map(|parts| format!("x{}x", parts.concat()))
}

fn charts(text: &str) -> Vec<Chart> {
    let interval = Interval {
        estimate: 0.1,
        low: 0.05,
        high: 0.2,
    };
    let name = || text.to_owned();
    let points = vec![(0.0, 1.0), (1.0, 2.0)];
    let leaf = FlameNode {
        amounts: [40.0, 60.0],
        callees: BTreeMap::new(),
    };
    vec![
        Chart::Intervals(IntervalChart {
            title: name(),
            rows: vec![IntervalRow {
                name: name(),
                text: name(),
                sign: Some(Sign::Worse),
                interval: Some(interval),
                tolerance: 0.05,
                scale: stillwell_plan::goal::Scale::Ratio,
                is_primary: true,
            }],
            is_from_zero: false,
        }),
        Chart::Curve(Curve {
            x: (name(), "s"),
            y: (name(), "ns"),
            series: vec![(name(), points.clone()), ("other".to_owned(), points)],
            shades: vec![(name(), (0.2, 0.8))],
            marks: vec![Mark {
                x: 0.5,
                y: 1.5,
                sign: Sign::Worse,
                text: name(),
            }],
            ..Curve::default()
        }),
        Chart::Pairs(PairSeries {
            name: name(),
            stages: vec![PairStage {
                name: "pairs",
                used: 2,
                is_fresh: false,
                changes: vec![0.1, 0.2],
                running: vec![None, Some(interval)],
            }],
            tolerance: 0.05,
            scale: stillwell_plan::goal::Scale::Ratio,
        }),
        Chart::Flame(FlameChart {
            title: name(),
            quantity: ProfileQuantity::CpuTime,
            is_difference: true,
            frames_max: 9,
            root: FlameNode {
                amounts: [40.0, 60.0],
                callees: [(name(), leaf)].into(),
            },
        }),
    ]
}

/// A suite whose every text is `text`.
fn suite(text: &str) -> SuiteReport {
    let name = || text.to_owned();
    let hostile = |mut entry: ExperimentVerdict| {
        entry.name = name();
        entry.summary = Some(name());
        entry.variants = vec![name(), name()];
        entry.advice = vec![name()];
        for goal in &mut entry.goals {
            goal.comparison = name();
            goal.note = Some(name());
            goal.reason = goal.reason.as_ref().map(|_| name());
        }
        for check in &mut entry.checks {
            check.name = name();
            check.description = Some(name());
            check.failed_variants = vec![name()];
        }
        for moved in &mut entry.moved {
            moved.series = name();
            moved.comparison = name();
        }
        entry
    };
    let entries = [regressed(), invalid(), failed_check(), explained()];
    SuiteReport {
        title: name(),
        baseline: name(),
        comparison: name(),
        problems: vec![SuiteProblem {
            experiment: Some(name()),
            reason: name(),
            exit_code: 3,
        }],
        results_folder: name(),
        command: name(),
        host: vec![(name(), name())],
        next: vec![name()],
        ..report(entries.into_iter().map(hostile).collect())
    }
}

fn assert_steers_nothing(what: &str, output: &str) {
    let steering = output.chars().find(|c| is_steering(*c) && *c != '\n');
    assert!(steering.is_none(), "{what} has {steering:?}: {output:?}");
}

/// Returns the number of tags.
fn tags(page: &str) -> usize {
    page.matches('<').count()
}

/// Checks a report in every form.
fn check(report: &FullReport, plain: &FullReport) {
    for format in Format::ALL {
        let output = report.render(format, Style::default());
        assert_steers_nothing(format.name(), &output);
        match format {
            Format::Json => drop(serde_json::from_str::<serde_json::Value>(&output).unwrap()),
            Format::Html => {
                let plain = plain.render(format, Style::default());
                assert_eq!(tags(&output), tags(&plain), "{output}");
            }
            Format::Terminal | Format::Markdown => {}
        }
    }
    for (chart, plain) in report.charts().iter().zip(plain.charts()) {
        assert_steers_nothing("a name of a chart", &chart.name);
        assert_steers_nothing("a title of a chart", &chart.title);
        assert_steers_nothing("a chart", &chart.svg);
        assert_eq!(tags(&chart.svg), tags(&plain.svg), "{}", chart.svg);
    }
    assert_steers_nothing(
        "Markdown with charts",
        &report.markdown_with_charts("charts"),
    );
}

fn of_document(text: &str) -> FullReport {
    let mut document = everywhere(text);
    let charts = charts(text).into_iter().map(Block::Chart).collect();
    let blocks = [
        Block::section(2, text, document.blocks),
        Block::On(Medium::Browser, charts),
    ];
    document = Document::new(blocks);
    FullReport {
        document,
        data: serde_json::json!({ text: text }).to_string(),
        page_data: None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn for_all_texts_no_block_or_chart_steers_its_reader(text in hostile()) {
        check(&of_document(&text), &of_document("plain"));
    }

    #[test]
    fn for_all_texts_no_report_of_a_suite_steers_its_reader(text in hostile()) {
        let suite = suite(&text);
        check(&FullReport::from(&suite), &FullReport::from(&self::suite("plain")));
        let options = CommentOptions {
            suite: text.clone(),
            links: vec![(text.clone(), text.clone())],
        };
        assert_steers_nothing("a comment", &comment(&suite, &options));
        let decision = decision_json(&suite, GatePolicy::Normal, Secrets::Kept);
        assert_steers_nothing("a decision", &decision);
        let decision: serde_json::Value = serde_json::from_str(&decision).unwrap();
        prop_assert_eq!(decision["title"].as_str(), Some(text.as_str()));
        let cases = junit(&suite, Secrets::Kept);
        assert_steers_nothing("JUnit", &cases);
        let plain = junit(&self::suite("plain"), Secrets::Kept);
        prop_assert_eq!(tags(&cases), tags(&plain), "{}", cases);
    }

    #[test]
    fn for_all_texts_no_result_of_a_load_steers_its_reader(text in hostile()) {
        let mut load = fixture::report();
        load.command.clone_from(&text);
        load.host = vec![(text.clone(), text.clone())];
        load.options.targets = vec![text.clone()];
        load.options.headers = vec![(text.clone(), text.clone())];
        load.options.labels = vec![text.clone()];
        load.options.method.clone_from(&text);
        load.options.arrival.clone_from(&text);
        for class in &mut load.global.classes {
            class.name.clone_from(&text);
            class.response_time.id = format!("class.{text}.response_time");
            class.service_time.id = format!("class.{text}.service_time");
        }
        for format in NativeLoadFormat::ALL {
            let output = render_load(&load, format, None, Style::default()).unwrap();
            assert_steers_nothing(format.name(), &output);
        }
    }
}

#[test]
fn json_with_escapes_is_the_same_value() {
    let text = "a\u{9b}\u{7f}\u{202e}\u{2028}\u{1b}\n\t\"\\é";
    let json = serde_json::to_string_pretty(&[text]).unwrap();
    let escaped = crate::document::escape::json(&json);
    assert_steers_nothing("JSON", &escaped);
    assert_eq!(
        serde_json::from_str::<Vec<String>>(&escaped).unwrap(),
        [text]
    );
}
