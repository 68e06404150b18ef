//! Histories and searches as their readers see them.

use std::path::PathBuf;

use stillwell_plan::experiment::GitSource;
use stillwell_plan::goal::Direction;
use stillwell_plan::{GoalMetric, WorkUnit};
use stillwell_stats::change::OtavaOptions;
use stillwell_units::Tolerance;
use stillwell_verdict::Change;
use stillwell_verdict::history::{
    HistoryPoint, Measurement, Method, Origin, Role, TrendOptions, trends,
};

use super::*;

const CPU: GoalMetric = GoalMetric::CpuPerEvent;
const STILLWELL: Method = Method::Stillwell { alarm_rate: 0.01 };

fn bisected(report: &BisectReport, format: Format) -> String {
    report
        .with_data(String::new())
        .render(format, Style::default())
}

/// Ten results before a step of 5 % and ten after it, a little apart from each other.
fn points() -> Vec<HistoryPoint> {
    (0..20_u32).map(point).collect()
}

fn point(number: u32) -> HistoryPoint {
    let wobble = f64::from(number * 7 % 5) * 0.0005;
    let delta = wobble + if number < 10 { 0.0 } else { 0.05_f64.ln_1p() };
    let measured = |metric: GoalMetric, role, baseline_mean: f64, delta: f64| Measurement {
        direction: metric.direction().unwrap_or(Direction::LowerIsBetter),
        tolerance: Tolerance::DEFAULT,
        metric,
        role,
        pairs: 6,
        baseline_mean,
        comparison_mean: baseline_mean * delta.exp(),
        delta,
        deviation: Some(0.002),
    };
    HistoryPoint {
        experiment: "relay, parsed".to_owned(),
        comparison: "comparison".to_owned(),
        work: WorkUnit::Events,
        origin: Origin {
            time_millis: 1_795_269_933_000 + u64::from(number) * 86_400_000,
            run: format!("result-{number:02}"),
            commit: Some(format!("{:08x}", 0xabc0_0000 + number * 0x12_3457).repeat(5)),
            version: (number == 10).then(|| "v1.2".to_owned()),
            executable: None,
            anchor: Some("v1".to_owned()),
            machine: Some("EPYC".to_owned()),
            workload: "w".to_owned(),
            folder: PathBuf::from("/results/relay parsed"),
            git: Some(GitSource {
                repository: "/src/relay".into(),
                revision: "main".to_owned(),
                build: "make relay".to_owned(),
                output: "out/relay".into(),
            }),
        },
        measurements: vec![
            measured(CPU, Role::Primary, 1250.0, delta),
            measured(GoalMetric::MemoryPeak, Role::Secondary, 5e7, wobble),
        ],
    }
}

fn report(points: &[HistoryPoint], method: Method) -> HistoryReport {
    let options = TrendOptions {
        method,
        magnitude: 0.0,
        metrics: Vec::new(),
        last: None,
    };
    HistoryReport {
        trends: trends(points, &options),
        method,
        skipped: vec![(
            "old/result".to_owned(),
            "read result.json: broken".to_owned(),
        )],
        branch: "main".to_owned(),
        command: "stillwell history".to_owned(),
        version: "0.1.0".to_owned(),
    }
}

fn shown(format: HistoryFormat) -> String {
    render_history(&report(&points(), STILLWELL), format, Style::default())
}

#[test]
fn a_step_in_a_terminal() {
    insta::assert_snapshot!(shown(HistoryFormat::Report(Format::Terminal)));
}

#[test]
fn a_step_in_markdown() {
    insta::assert_snapshot!(shown(HistoryFormat::Report(Format::Markdown)));
}

#[test]
fn a_step_in_the_words_of_otava() {
    let otava = Method::Otava(OtavaOptions::default());
    let report = report(&points(), otava);
    let [json, regressions] = [HistoryFormat::OtavaJson, HistoryFormat::RegressionsOnly]
        .map(|format| render_history(&report, format, Style::default()));
    let line: serde_json::Value = serde_json::from_str(&json).unwrap();
    let group = &line["relay, parsed"][0];
    assert_eq!(group["time"], 1_796_133_933);
    assert_eq!(group["attributes"]["version"], "v1.2");
    assert_eq!(group["attributes"]["run_id"], "result-10");
    let change = &group["changes"][0];
    assert_eq!(change["metric"], "cpu_per_event_vs_baseline");
    assert_eq!(change["forward_change_percent"], "5");
    assert_eq!(change["pvalue"], "0.000000");
    insta::assert_snapshot!(regressions);
}

#[test]
fn changes_of_one_result_are_one_group_where_a_metric_began_later() {
    let mut points = points();
    for point in &mut points {
        let delta = point.measurements[0].delta;
        let memory = &mut point.measurements[1];
        memory.delta = delta;
        memory.comparison_mean = memory.baseline_mean * delta.exp();
    }
    for point in &mut points[..2] {
        point.measurements.truncate(1);
    }
    let report = report(&points, Method::Otava(OtavaOptions::default()));
    let indexes: Vec<usize> = report.trends.iter().map(|t| t.leads[0].index).collect();
    assert_eq!(indexes, [10, 8]);
    let [json, regressions] = [HistoryFormat::OtavaJson, HistoryFormat::RegressionsOnly]
        .map(|format| render_history(&report, format, Style::default()));
    let line: serde_json::Value = serde_json::from_str(&json).unwrap();
    let groups = line["relay, parsed"].as_array().unwrap();
    assert_eq!(groups.len(), 1, "{json}");
    assert_eq!(groups[0]["attributes"]["run_id"], "result-10");
    assert_eq!(groups[0]["changes"].as_array().unwrap().len(), 2, "{json}");
    let times = regressions.matches(" +0000\n").count();
    assert_eq!(times, 1, "{regressions}");
}

#[test]
fn results_whose_folders_have_one_name_are_counted_apart() {
    let mut points = points();
    for point in &mut points {
        point.origin.run = "results".to_owned();
    }
    let text = render_history(
        &report(&points, STILLWELL),
        HistoryFormat::Report(Format::Terminal),
        Style::default(),
    );
    assert!(text.contains("history of 20 results from "), "{text}");
}

/// Numbers stay numbers, and what names the change names its commits.
#[test]
fn a_step_for_programs() {
    let value: serde_json::Value =
        serde_json::from_str(&shown(HistoryFormat::Report(Format::Json))).unwrap();
    assert_eq!(value["schema"], HISTORY_SCHEMA);
    assert_eq!(value["alarms"], 1);
    let trend = &value["trends"][0];
    assert_eq!(
        (&trend["metric"], &trend["basis"]),
        (&"cpu_per_event".into(), &"anchor".into())
    );
    assert_eq!(trend["points"].as_array().unwrap().len(), 20);
    let change = &trend["changes"][0];
    assert_eq!(change["index"], 10);
    assert_eq!(change["commit"], trend["points"][10]["commit"]);
    assert_eq!(change["commit_before"], trend["points"][9]["commit"]);
    assert!((change["change_share"].as_f64().unwrap() - 0.05).abs() < 0.002);
    assert!(
        change["confirm_with"]
            .as_str()
            .unwrap()
            .starts_with("stillwell bisect ")
    );
    assert_eq!(value["skipped"][0]["results"], "old/result");
    assert_eq!(value["trends"][1]["changes"].as_array().unwrap().len(), 0);
}

#[test]
fn nine_results_are_reported_as_too_few() {
    let text = render_history(
        &report(&points()[..9], STILLWELL),
        HistoryFormat::Report(Format::Terminal),
        Style::default(),
    );
    assert!(text.contains(": too few for a result\n"), "{text}");
    assert!(
        text.contains("too few results to find a change: 9 of at least 10"),
        "{text}"
    );
    assert!(text.contains("too few"), "{text}");
}

#[test]
fn an_export_has_a_row_for_each_suite_and_a_number_in_every_cell() {
    let mut points = points();
    points[3].measurements.truncate(1);
    points.reverse();
    let tables = otava_tables(&points, "main");
    assert_eq!(tables.len(), 1);
    let table = &tables[0];
    assert_eq!(table.incomplete, ["memory_peak", "memory_peak_vs_baseline"]);
    let names: Vec<_> = table
        .metrics
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(names, ["cpu_per_event", "cpu_per_event_vs_baseline"]);
    let rows: Vec<&str> = table.csv.lines().collect();
    assert_eq!(rows.len(), 21);
    assert_eq!(
        rows[0],
        "time,commit,branch,version,experiment,run_id,machine,cpu_per_event,\
         cpu_per_event_vs_baseline,memory_peak,memory_peak_vs_baseline"
    );
    assert!(
        rows[1].starts_with(
            "2026-11-21 14:05:33 +0000,abc00000abc00000abc00000abc00000abc00000,main,,\
             \"relay, parsed\",result-00,EPYC,1250,1,"
        ),
        "{}",
        rows[1]
    );
    insta::assert_snapshot!(otava_yaml(&[(table, "/export/relay.csv")]));
}

fn commits(count: u32) -> Vec<BisectCommit> {
    let commit = |number: u32| BisectCommit {
        revision: format!("{number:x}cafe{number:x}").repeat(7),
        title: format!("change {number}"),
        merge: number == 6,
    };
    (0..=count).map(commit).collect()
}

fn step(baseline: usize, comparison: usize, answer: CommitAnswer, change: f64) -> BisectStep {
    BisectStep {
        baseline,
        comparison,
        answer,
        change: (answer != CommitAnswer::Unknown).then_some(Change {
            estimate: change,
            lower: change - 0.01,
            upper: change + 0.01,
        }),
        tolerance_share: 0.04,
        pairs: 6,
        reason: (answer == CommitAnswer::Unknown)
            .then(|| "build revision `x`: exit status: 1; the log is x.log\nlast line".to_owned()),
        results: format!("test-{comparison}"),
    }
}

fn search(steps: Vec<BisectStep>, outcome: Option<BisectOutcome>) -> BisectReport {
    BisectReport {
        experiment: "relay".to_owned(),
        metric: CPU,
        work: WorkUnit::Events,
        commits: commits(8),
        steps,
        outcome,
        results_folder: "found".to_owned(),
        command: "stillwell bisect v1 v2 result".to_owned(),
        version: "0.1.0".to_owned(),
        next: Vec::new(),
    }
}

fn search_result(confirmed: CommitAnswer) -> BisectReport {
    use CommitAnswer::{Bad, Good, Unknown};
    let steps = vec![
        step(0, 8, Bad, 0.08),
        step(0, 4, Unknown, 0.0),
        step(0, 5, Good, 0.002),
        step(0, 6, Bad, 0.081),
        step(5, 6, confirmed, 0.079),
    ];
    let outcome = BisectOutcome::Found {
        good: 5,
        bad: 6,
        confirmed,
    };
    search(steps, Some(outcome))
}

#[test]
fn a_commit_that_was_found() {
    let report = search_result(CommitAnswer::Bad);
    insta::assert_snapshot!(bisected(&report, Format::Terminal));
    insta::assert_snapshot!(bisected(&report, Format::Markdown));
}

/// Only a confirmed commit is named; an inconclusive search names none.
#[test]
fn an_uncertain_range_names_no_commit() {
    let named = "the first bad commit is 6cafe6";
    let printed = |report: &BisectReport| bisected(report, Format::Terminal);
    assert!(printed(&search_result(CommitAnswer::Bad)).contains(named));
    for confirmed in [CommitAnswer::Good, CommitAnswer::Unknown] {
        let text = printed(&search_result(confirmed));
        assert!(
            text.starts_with("not confirmed: ") && !text.contains(named),
            "{text}"
        );
    }
    let mut range = search_result(CommitAnswer::Bad);
    range.outcome = Some(BisectOutcome::Found {
        good: 3,
        bad: 6,
        confirmed: CommitAnswer::Bad,
    });
    let text = printed(&range);
    assert!(
        text.starts_with("the first bad commit is one of 3: after "),
        "{text}"
    );
    let ends = |outcome| printed(&search(vec![step(0, 8, CommitAnswer::Good, 0.0)], outcome));
    assert!(ends(Some(BisectOutcome::NotWorse)).starts_with("BAD is not worse than GOOD"));
    assert!(ends(Some(BisectOutcome::Unclear)).starts_with("inconclusive: BAD"));
    assert!(ends(None).contains("interrupted"));
    assert!(printed(&search(Vec::new(), None)).contains("interrupted"));
}
