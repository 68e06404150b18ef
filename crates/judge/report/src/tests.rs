use std::collections::BTreeMap;

use proptest::prelude::*;
use stillwell_plan::{GoalMetric, GoalPlan, WorkUnit};
use stillwell_units::{Nanos, RunId};
use stillwell_verdict::{
    Change, CheckPassed, CheckResult, Component, Gate, GeneratorFigures, Measured, OutcomeCount,
    RouteFigures, RunFigures, RunNote, RunOutcome, RunStage, RunSummary, RunWarning,
    SUMMARY_SCHEMA, StepMark, TimeQuantiles, Totals, Verdict, WorkerShares, synthetic,
};

use super::*;
use crate::fixture::{
    equivalent, erratic, experiment, explained, failed_check, goal, inconclusive, invalid, matrix,
    of_three, regressed, report,
};

fn shown(experiments: Vec<ExperimentVerdict>) -> String {
    terminal(&report(experiments), Style::default())
}

fn many() -> Vec<ExperimentVerdict> {
    vec![
        equivalent(),
        regressed(),
        invalid(),
        inconclusive(),
        failed_check(),
        erratic(),
        experiment("improved", Verdict::Improved, [-0.08, -0.1, -0.06]),
        experiment("different", Verdict::Different, [0.02, 0.005, 0.036]),
    ]
}

#[test]
fn terminal_regressed() {
    insta::assert_snapshot!(shown(vec![regressed()]));
}

#[test]
fn terminal_equivalent() {
    insta::assert_snapshot!(shown(vec![equivalent()]));
}

#[test]
fn terminal_invalid() {
    insta::assert_snapshot!(shown(vec![invalid()]));
}

#[test]
fn terminal_inconclusive() {
    insta::assert_snapshot!(shown(vec![inconclusive()]));
}

#[test]
fn terminal_failed_check() {
    insta::assert_snapshot!(shown(vec![failed_check()]));
}

#[test]
fn terminal_explained() {
    insta::assert_snapshot!(shown(vec![explained()]));
}

#[test]
fn markdown_explained() {
    insta::assert_snapshot!(markdown(&report(vec![explained()])));
}

#[test]
fn json_explained() {
    insta::assert_snapshot!(json(&report(vec![explained()])));
}

/// Only the part after the experiments' own sections.
#[test]
fn terminal_matrix() {
    let shown = shown(matrix());
    let at = shown.find("interner: response").unwrap();
    insta::assert_snapshot!(&shown[at..]);
}

#[test]
fn terminal_many() {
    insta::assert_snapshot!(shown(many()));
}

#[test]
fn terminal_colors() {
    let style = Style {
        color: true,
        width: 60,
    };
    insta::assert_snapshot!(terminal(&report(vec![regressed()]), style));
}

#[test]
fn markdown_regressed() {
    insta::assert_snapshot!(markdown(&report(vec![regressed()])));
}

#[test]
fn markdown_invalid() {
    insta::assert_snapshot!(markdown(&report(vec![invalid()])));
}

#[test]
fn markdown_equivalent() {
    insta::assert_snapshot!(markdown(&report(vec![equivalent()])));
}

#[test]
fn markdown_many() {
    insta::assert_snapshot!(markdown(&report(many())));
}

#[test]
fn json_of_all() {
    let mut unreliable = invalid();
    unreliable.not_used.truncate(1);
    let mut checked = failed_check();
    checked.goals.truncate(1);
    insta::assert_snapshot!(json(&report(vec![checked, unreliable])));
}

#[test]
fn nothing_infinite_reaches_json() {
    let mut wild = inconclusive();
    wild.goals[0].change = Some(Change {
        estimate: 0.1,
        lower: -0.9,
        upper: f64::INFINITY,
    });
    let text = json(&report(vec![wild]));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["schema"], REPORT_SCHEMA);
    assert!(value["experiments"][0]["goals"][0]["change"]["upper_share"].is_null());
}

#[test]
fn an_inconclusive_answer_is_never_called_no_change() {
    for format in Format::ALL {
        let text = FullReport::from(&report(many())).render(format, Style::default());
        assert!(!text.to_lowercase().contains("no change"), "{text}");
        assert!(!text.to_lowercase().contains("confiden"), "{text}");
    }
}

#[test]
fn a_heading_does_not_contradict_a_verdict_that_too_few_pairs_found() {
    let mut unconfirmed = regressed();
    unconfirmed.gate = Gate::Inconclusive;
    let text =
        FullReport::from(&report(vec![unconfirmed])).render(Format::Markdown, Style::default());
    assert!(
        text.contains("stillwell: 1 unconfirmed regression in 1 experiment"),
        "{text}"
    );
    assert!(!text.contains("no conclusion"), "{text}");
}

#[test]
fn an_improvement_is_the_heading_of_a_suite_without_a_regression() {
    let improved = experiment("quickstart", Verdict::Improved, [-0.049, -0.054, -0.045]);
    let heading = |experiments: Vec<ExperimentVerdict>| {
        let text = FullReport::from(&report(experiments));
        let text = text.render(Format::Markdown, Style::default());
        let heading = text.lines().find(|line| line.starts_with('#'));
        heading.unwrap_or_default().to_owned()
    };
    for (experiments, expected) in [
        (
            vec![improved.clone(), equivalent()],
            "1 improvement in 2 experiments",
        ),
        (
            vec![improved.clone(), regressed()],
            "1 regression in 2 experiments",
        ),
        (
            vec![improved, inconclusive()],
            "no conclusion in 1 of 2 experiments",
        ),
    ] {
        let heading = heading(experiments);
        assert!(heading.contains(expected), "{heading}");
    }
}

#[test]
fn headlines_name_every_comparison_of_several_variants_or_their_number() {
    let mut many = of_three();
    let variants = (0..12).map(|number| format!("variant-{number}"));
    many.variants = variants.collect();
    for (experiments, compared) in [
        (vec![regressed()], "relay --work-per-event 300ns"),
        (vec![of_three()], "first, second"),
        (vec![many, regressed()], "12 variants"),
    ] {
        let suite = report(experiments);
        let shown = terminal(&suite, Style::default());
        let headline = format!("examples/quickstart: {compared} compared with relay in ");
        assert!(shown.contains(&headline), "{shown}");
        let page = markdown(&suite);
        let heading = format!(" · `relay` vs `{compared}`");
        assert!(page.contains(&heading), "{page}");
    }
}

#[test]
fn a_heading_has_the_detectable_change_on_the_scale_of_its_goals() {
    let visible = |metric: GoalMetric, share: f64| {
        let mut goal = goal(metric, true, Verdict::Equivalent, 1.0, [0.0, -0.01, 0.01]);
        goal.smallest_visible = Some(share);
        ExperimentVerdict {
            goals: vec![goal],
            ..equivalent()
        }
    };
    let ratio = |share: f64| visible(GoalMetric::CpuPerEvent, share);
    let points = |share: f64| visible(GoalMetric::Loss, share);
    for (experiments, expected) in [
        (vec![ratio(0.01), ratio(0.02)], Some("2.0 %")),
        (vec![points(0.01), points(0.02)], Some("2.0 points")),
        (vec![ratio(0.01), points(0.02)], None),
    ] {
        let page = markdown(&report(experiments));
        let heading = page.lines().find(|line| line.starts_with('#')).unwrap();
        let change = heading.split_once("(detectable change ");
        let change = change.and_then(|(_, change)| change.split_once(')'));
        assert_eq!(change.map(|(change, _)| change), expected, "{heading}");
    }
}

#[test]
fn a_page_counts_the_failing_experiments_that_it_does_not_name() {
    for (count, expected) in [(3, None), (5, Some("2 more in the table below"))] {
        let text = FullReport::from(&report(vec![regressed(); count]));
        let text = text.render(Format::Html, Style::default());
        let more = text.find("more in the table below");
        assert_eq!(more.is_some(), expected.is_some());
        assert!(expected.is_none_or(|expected| text.contains(expected)));
    }
}

#[test]
fn colors_only_repeat_the_words() {
    let style = Style {
        color: true,
        width: 100,
    };
    let colored = terminal(&report(many()), style);
    let mut plain = String::new();
    let mut within = false;
    for character in colored.chars() {
        match (within, character) {
            (false, '\u{1b}') => within = true,
            (true, 'm') => within = false,
            (true, _) => {}
            (false, character) => plain.push(character),
        }
    }
    assert_eq!(plain, shown(many()));
}

#[test]
fn long_reports_stay_postable() {
    let mut experiments = Vec::new();
    for index in 0..600 {
        let mut experiment = invalid();
        experiment.name = format!("experiment-{index}-{}", "x".repeat(40));
        experiments.push(experiment);
    }
    let mut long = report(experiments);
    long.command = "stillwell ".repeat(10_000);
    let text = markdown(&long);
    assert!(text.len() < LENGTH_MAX, "{}", text.len());
    assert!(text.contains("left out"), "{text}");
    assert!(text.ends_with("</details>\n"));
    let open = text.matches("<details>").count();
    assert_eq!(open, text.matches("</details>").count());
}

proptest! {
    /// For all texts of others: they end no cell, line, fold or quote.
    #[test]
    fn texts_of_others_stay_in_their_cells(text in "[a|`<>/*_\\\\\n\r@-]{0,24}") {
        let plain = markdown(&report(vec![regressed()]));
        let mut experiment = regressed();
        experiment.name = text.clone();
        experiment.summary = Some(text);
        let printed = markdown(&report(vec![experiment]));
        let cells = |text: &str| {
            let row = text.lines().find(|line| line.starts_with("| ❌")).unwrap();
            row.replace("\\\\", "").replace("\\|", "").matches('|').count()
        };
        prop_assert_eq!(cells(&printed), cells(&plain));
        prop_assert_eq!(printed.lines().count(), plain.lines().count());
        prop_assert_eq!(printed.matches("<details>").count(), 2);
    }
}

fn run_figures(times: TimeQuantiles) -> RunFigures {
    RunFigures {
        measured: Totals {
            events_sent: Some(3_039_968.0),
            bytes_sent: Some(425_595_520.0),
            events_received: Some(3_039_960.0),
            bytes_received: Some(425_594_400.0),
        },
        whole: Totals {
            events_sent: Some(3_800_000.0),
            bytes_sent: Some(532_000_000.0),
            events_received: Some(3_799_900.0),
            bytes_received: Some(531_986_000.0),
        },
        generators: vec![GeneratorFigures {
            id: "lines".to_owned(),
            unit: WorkUnit::Events,
            requested_per_second: Some(152_000.0),
            achieved_per_second: Some(151_998.4),
        }],
        lateness: Some(times),
        target_cpu_share: Some(0.64),
        target_core_share: Some(0.64),
        rss_mean_bytes: Some(12_582_912.0),
        rss_peak_bytes: Some(14_680_064.0),
        pss_mean_bytes: None,
        workers: vec![WorkerShares {
            component: Component::Generator,
            id: "lines".to_owned(),
            worker: "0".to_owned(),
            idle: 0.613,
            blocked: 0.012,
            running: 0.37,
            late: 0.005,
            wanted: None,
        }],
        outcomes: vec![OutcomeCount {
            outcome: "ok".to_owned(),
            count: 51_234,
        }],
        foreign_cpu_share: Some(0.034),
        steal_share: Some(0.0),
        target_cpus: Some(vec![1]),
        load_cpus: Some(vec![0]),
        ..RunFigures::default()
    }
}

fn run() -> RunSummary {
    let times = TimeQuantiles {
        count: 1000,
        p50: Nanos::new(11_200),
        p90: Nanos::new(21_500),
        p99: Nanos::new(48_000),
        p999: Nanos::new(910_000),
        mean: Nanos::new(13_400),
        max: Nanos::new(4_100_000),
    };
    RunSummary {
        schema: SUMMARY_SCHEMA.to_owned(),
        run: RunId::from_bytes([1; 16]),
        target: "relay".to_owned(),
        identity: None,
        outcome: RunOutcome::Completed,
        measured: Nanos::from_secs(20),
        warmup: Nanos::from_secs(5),
        length: Nanos::from_secs(31),
        values: [(GoalMetric::CpuPerEvent, Measured::Value(4210.0))].into(),
        warnings: Vec::new(),
        notes: vec![RunNote::NotIsolated {
            what: "network namespace".to_owned(),
            why: "not permitted".to_owned(),
        }],
        figures: run_figures(times),
        checks: vec![CheckResult {
            name: "memory".to_owned(),
            description: None,
            observed: Some(14_680_064.0),
            upper: Some(20_971_520.0),
            lower: None,
            unit: "B".to_owned(),
            passed: CheckPassed::Pass,
        }],
        series: BTreeMap::new(),
        series_left_out: 0,
        environment: BTreeMap::new(),
    }
}

#[test]
fn run_completed() {
    insta::assert_snapshot!(run_terminal(&run(), Style::default()));
}

#[test]
fn volumes_for_each_second_are_those_of_the_time_with_load() {
    let sent = |active: Option<Nanos>| {
        let mut sliced = run();
        sliced.figures.active = active;
        let text = run_terminal(&sliced, Style::default());
        let mut lines = text.lines().map(str::trim);
        let line = lines.find(|line| line.starts_with("sent "));
        line.unwrap().to_owned()
    };
    let whole = sent(None);
    assert!(whole.contains("20.3 MiB/s, 151,998 events/s"), "{whole}");
    let half = sent(Some(Nanos::from_secs(10)));
    assert!(half.contains("40.6 MiB/s, 303,997 events/s"), "{half}");
    // Load outside the measured phase is not counted.
    assert_eq!(sent(Some(Nanos::from_secs(30))), whole);
}

#[test]
fn a_long_timeline_is_listed_in_part() {
    let mut long = run();
    let steps = (1..=300).map(|at| StepMark {
        at: Nanos::from_secs(at),
        what: format!("step {at}"),
    });
    long.figures.steps = steps.collect();
    let text = run_terminal(&long, Style::default());
    assert!(
        text.contains("step 20\n") && !text.contains("step 21\n"),
        "{text}"
    );
    assert!(text.contains("280 more steps"), "{text}");
}

#[test]
fn run_invalid() {
    let mut run = run();
    run.outcome = RunOutcome::NeverReady {
        reason: "127.0.0.1:9000 refused for 30s".to_owned(),
    };
    run.warnings = vec![RunWarning::NotCompleted {
        outcome: run.outcome.clone(),
    }];
    run.figures = RunFigures::default();
    run.values.clear();
    run.checks[0].passed = CheckPassed::NotMeasured;
    run.checks[0].observed = None;
    run.measured = Nanos::ZERO;
    insta::assert_snapshot!(run_terminal(&run, Style::default()));
}

#[test]
fn texts_of_others_cannot_steer_a_terminal() {
    let mut hostile = invalid();
    hostile.name = "\u{1b}[2Jname\r".to_owned();
    hostile.summary = Some("sum\u{7}mary\n".to_owned());
    hostile.goals[0].reason = Some("last line: \u{1b}[31mred".to_owned());
    let printed = shown(vec![hostile]);
    let controls = |c: char| c.is_control() && c != '\n';
    assert!(!printed.contains(controls), "{printed:?}");
    assert_eq!(
        printed.lines().count(),
        shown(vec![invalid()]).lines().count()
    );
}

#[test]
fn formats_are_known_by_their_names() {
    for format in Format::ALL {
        assert_eq!(format.to_string().parse::<Format>(), Ok(format));
    }
    let error = "pdf".parse::<Format>().unwrap_err().to_string();
    assert!(
        error.contains("terminal, markdown, json or html"),
        "{error}"
    );
}

#[test]
fn lists_of_cpus_are_ranges() {
    use crate::words::cpus;
    assert_eq!(cpus(Some(&[3, 1, 2, 7])), "1-3,7");
    assert_eq!(cpus(None), "any");
}

/// Number of experiments whose captures `stillwell report` reads.
const DRAWN_MAX: usize = 16;

/// Returns the page of a suite with 20 pairs of every experiment, and with `points` in each of its lines.
fn page_of_suite(count: usize, points: u32) -> String {
    let names = (0..count).map(|index| format!("experiment-{index}"));
    let experiments = names.clone().map(|name| {
        let mut experiment = explained();
        experiment.name = name;
        for goal in &mut experiment.goals {
            goal.pair_changes = (0..20).map(|pair| 0.001 * f64::from(pair)).collect();
        }
        experiment
    });
    let mut suite = report(experiments.collect());
    suite.runs = names.map(|name| runs(&name, points)).collect();
    for (index, experiment) in suite.runs.iter_mut().enumerate() {
        let curve = experiment.curves[0].clone();
        experiment.curves.resize(6, curve.clone());
        let series = curve.series[..1].to_vec();
        let bands = curve.bands[..1].to_vec();
        experiment.curves.push(document::Curve {
            series,
            bands,
            ..curve
        });
        if index >= DRAWN_MAX {
            experiment.curves.clear();
            experiment.is_left_out = true;
        }
        let pairs = (0..20).flat_map(|pair| ["baseline", "comparison"].map(|name| (pair, name)));
        experiment.metrics = GoalMetric::ALL[..12].to_vec();
        experiment.values = pairs
            .map(|(pair, variant)| RunValues {
                stage: RunStage::Search,
                pair,
                variant: variant.to_owned(),
                values: vec![Some(4_123_456.789 / (1.0 + f64::from(pair))); 12],
            })
            .collect();
    }
    FullReport::from(&suite).render(Format::Html, Style::default())
}

#[test]
fn a_page_of_twenty_experiments_is_below_a_megabyte() {
    let page = page_of_suite(20, 22);
    assert!(page.len() < 1_000_000, "{}", page.len());
    assert!(page.matches("class=\"running\"").count() >= 20);
}

#[test]
fn a_page_of_a_hundred_experiments_is_below_three_megabytes() {
    let page = page_of_suite(100, 22);
    assert!(page.len() < 3_000_000, "{}", page.len());
}

/// Returns runs with two lines, as a suite's captures give them.
fn runs(experiment: &str, points: u32) -> ExperimentRuns {
    let value = |place: u32, factor: f64| 4e6 * factor * (1.0 + 0.1 * f64::from(place % 7));
    let line = |factor: f64| (0..points).map(move |at| (f64::from(at) / 5.0, value(at, factor)));
    let band = |series: usize, factor: f64| document::Band {
        series,
        points: line(factor).map(|(x, y)| (x, y * 0.95, y * 1.08)).collect(),
    };
    let curve = document::Curve {
        scales: (document::AxisScale::Linear, document::AxisScale::FromZero),
        x: ("time".to_owned(), "s"),
        y: ("received per second".to_owned(), "B"),
        series: vec![
            ("baseline".to_owned(), line(1.0).collect()),
            ("comparison".to_owned(), line(0.7).collect()),
        ],
        bands: vec![band(0, 1.0), band(1, 0.7)],
        shades: vec![
            ("warm-up".to_owned(), (0.0, 2.0)),
            ("drain".to_owned(), (11.0, 11.8)),
        ],
        marks: Vec::new(),
    };
    ExperimentRuns {
        profiles: ExperimentProfiles::default(),
        experiment: experiment.to_owned(),
        drawn: 8,
        valid: 8,
        wall_millis: Some((1_700_000_000_000, 1_700_000_060_000)),
        curves: vec![curve],
        is_left_out: false,
        steal_max: Some(0.004),
        delivery: vec![RunDelivery {
            variant: "baseline".to_owned(),
            sent: 120_000,
            lost: 3,
            ..RunDelivery::default()
        }],
        environment: vec![
            ("kernel".to_owned(), vec!["6.11.0".to_owned()]),
            (
                "governor".to_owned(),
                vec!["performance".to_owned(), "powersave".to_owned()],
            ),
        ],
        metrics: vec![GoalMetric::CpuPerEvent],
        values: vec![RunValues {
            stage: RunStage::Search,
            pair: 1,
            variant: "baseline".to_owned(),
            values: vec![Some(4_210.123_456_789)],
        }],
    }
}

#[test]
fn a_page_has_the_runs_of_an_experiment_and_the_limits_of_its_answer() {
    let mut report = report(vec![regressed()]);
    let page =
        |report: &SuiteReport| FullReport::from(report).render(Format::Html, Style::default());
    assert!(!page(&report).contains("Over time and by percentile"));
    report.runs = vec![runs("quickstart", 60), runs("another", 60)];
    let text = page(&report);
    for expected in [
        "median of 8 runs of a variant",
        "received per second over time",
        "class=\"shade\"",
        "warm-up",
        "How certain this result is",
        "How to reproduce",
        "may be missed",
        "at most 0.4 % of the host",
        "Delivery of stamped events",
        "Environment that differs between runs",
        "performance; powersave",
    ] {
        assert!(text.contains(expected), "{expected}");
    }
    assert_eq!(text.matches("class=\"area\"").count(), 2);
    let data: serde_json::Value = serde_json::from_str(&json(&report)).unwrap();
    let rows = serde_json::json!([["search", 1, "baseline", [4_210.123]]]);
    assert_eq!(data["experiments"][0]["runs"]["rows"], rows);
}

/// A comparison of two reports lost these goals, which are not among the values of a summary.
#[test]
fn the_numbers_of_runs_include_goals_of_series_routes_and_status_codes() {
    let failed = vec![OutcomeCount {
        outcome: "status_5xx".to_owned(),
        count: 4,
    }];
    let place = (RunStage::Search, 1, "baseline");
    let mut summary = synthetic::run("quickstart", place, &[(GoalMetric::Memory, 5.0)]);
    summary.series = [("queue:peak".to_owned(), 12.5)].into();
    summary.figures.statuses = [(503, 1)].into();
    summary.figures.outcomes.clone_from(&failed);
    summary.figures.routes = vec![RouteFigures {
        name: "GET /".to_owned(),
        outcomes: failed,
        ..RouteFigures::default()
    }];
    let goals = [
        "status_503",
        "series:queue:peak",
        "series:queue:rate",
        "error_share['GET /']",
    ];
    let goals = goals.map(|goal| GoalPlan::new(goal.parse().unwrap()));
    let variants = ["baseline", "comparison"].map(str::to_owned);
    let mut collector = RunCollector::new("quickstart", variants, 60);
    collector.add_values(&[summary], &goals);
    let mut report = report(vec![regressed()]);
    report.runs = vec![collector.finish()];
    let data: serde_json::Value = serde_json::from_str(&json(&report)).unwrap();
    let runs = &data["experiments"][0]["runs"];
    let measured = [
        "memory",
        "error_share['GET /']",
        "series:queue:peak",
        "status_503",
    ];
    assert_eq!(runs["metrics"], serde_json::json!(measured));
    let rows = serde_json::json!([["search", 1, "baseline", [5.0, 1.0, 12.5, 0.25]]]);
    assert_eq!(runs["rows"], rows);
}
