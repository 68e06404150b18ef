//! Comparisons of what was measured before or elsewhere.

use std::fmt::Write as _;
use std::fs;

use serde_json::Value;
use stillwell_testkit::Finished;

use crate::suite::{LONG, Suite, assert_code, assert_holds};

/// `stillwell compare` with these words, and its report as JSON.
fn compared(suite: &Suite, words: &[&str]) -> (Finished, Value) {
    let mut line = vec!["compare", "--format", "json"];
    line.extend(words);
    let ended = suite.call(&line);
    let report = serde_json::from_str(&ended.stdout).unwrap_or_default();
    (ended, report)
}

/// The first metric of the first experiment.
fn first(report: &Value) -> &Value {
    &report["experiments"][0]["metrics"][0]
}

/// A share in percent, as two decimals show it.
fn percent(share: &Value) -> String {
    format!("{:.2}", share.as_f64().unwrap() * 100.0)
}

#[test]
fn six_run_means_of_an_old_report_are_no_change() {
    let suite = Suite::new();
    let (item, second) = ("7.88MiB,7.86MiB,7.85MiB", "7.86MiB,7.84MiB,7.82MiB");
    let (ended, report) = compared(&suite, &[item, second]);
    assert_code(&ended, 0);
    let finding = &first(&report)["finding"];
    assert_eq!(finding["design"], "unpaired");
    let interval = &finding["interval"];
    let shown = [&finding["change"], &interval[0], &interval[1]].map(percent);
    assert_eq!(shown, ["-0.30", "-0.82", "0.23"]);
    assert_eq!(
        format!("{:.3}", finding["p_value"].as_f64().unwrap()),
        "0.189"
    );
    let output = suite.call(&["compare", item, second]);
    assert_holds(
        &output.stdout,
        &["-0.30 %", "[-0.82, +0.23]", "0.189", "7.86 MiB"],
    );

    let output = suite.call(&["compare", "--paired", item, second]);
    assert_code(&output, 0);
    assert_holds(
        &output.stdout,
        &["the columns have no pair numbers", "3 pairs"],
    );
}

#[test]
fn files_of_numbers_are_columns_of_runs() {
    let suite = Suite::new();
    suite.file("a.txt", "# ms\n10 ms\n11 ms\n9 ms\n10 ms\n");
    suite.file("b.txt", "20 ms\n21 ms\n19 ms\n20 ms\n");
    let words = ["a.txt", "b.txt", "--metric", "latency_p99"];
    let (ended, report) = compared(&suite, &words);
    assert_code(&ended, 1);
    assert_eq!(first(&report)["verdict"], "regressed");
    assert_eq!(first(&report)["unit"], "ns");
    let exit_zero = [&words[..], &["--exit-zero"]].concat();
    assert_code(&compared(&suite, &exit_zero).0, 0);
    let better = [&words[..], &["--better", "higher"]].concat();
    let (ended, report) = compared(&suite, &better);
    assert_code(&ended, 0);
    assert_eq!(first(&report)["verdict"], "improved");

    // Two columns of one table, by their names.
    let table = "commit,old,new\na,10,20\nb,11,21\nc,9,19\nd,10,20\n";
    suite.file("table.csv", table);
    let (ended, report) = compared(&suite, &["table.csv@old", "table.csv@new"]);
    assert_code(&ended, 0);
    assert_eq!(first(&report)["verdict"], "different");
    assert_holds(&ended.stdout, &["--better lower"]);
    let unknown = suite.call(&["compare", "table.csv@old", "table.csv@newer"]);
    assert_code(&unknown, 2);
    assert_holds(&unknown.stderr, &["no column `newer`", "`old`, `new`"]);
}

#[test]
fn reports_of_comparisons_go_to_files_too() {
    let suite = Suite::new();
    let words = [
        "compare", "1,2,3,2", "1,2,3,2", "-o", "r.md", "-o", "r.json", "-o", "r.txt",
    ];
    assert_code(&suite.call(&words), 0);
    for (name, part) in [
        ("r.md", "| metric |"),
        ("r.json", "stillwell/comparison/v1"),
        ("r.txt", "+0.00 %"),
    ] {
        assert_holds(&fs::read_to_string(suite.path(name)).unwrap(), &[part]);
    }
}

#[test]
fn seconds_are_refused_as_runs() {
    let suite = Suite::new();
    let mut table = "second,rate\n".to_owned();
    for second in 0..20 {
        writeln!(table, "{second},{}", 100 + second % 3).unwrap();
    }
    suite.file("seconds.csv", &table);
    let words = ["compare", "seconds.csv", "seconds.csv"];
    let refused = suite.call(&words);
    assert_code(&refused, 2);
    assert_holds(
        &refused.stderr,
        &["counts the seconds of one run", "--rows-are-runs"],
    );
    let taken = suite.call(&[&words[..], &["--rows-are-runs"]].concat());
    assert_code(&taken, 0);
    assert_holds(&taken.stdout, &["equivalent", "20 + 20"]);
}

#[test]
fn mistakes_have_their_line() {
    let suite = Suite::new();
    suite.file("a.txt", "1\n2\n3x\n");
    suite.file(
        "b.jsonl",
        &format!("{}nonsense\n{}", line("r", 0, 0.0), line("r", 1, 1.0)),
    );
    suite.file("c.json", "{\"results\": [");
    for (name, parts) in [
        ("a.txt", vec!["a.txt", "line 3", "`3x` is not a number"]),
        ("b.jsonl", vec!["line 2 of b.jsonl"]),
        ("c.json", vec!["c.json", "not complete JSON", "line 1"]),
        ("gone.txt", vec!["`gone.txt` is neither a file"]),
    ] {
        let ended = suite.call(&["compare", name, "1,2,3"]);
        assert_code(&ended, 2);
        assert_holds(&ended.stderr, &parts);
    }
}

/// F11: `NaN` as a column was reported as a missing file, and a number beside it later.
#[test]
fn f11_a_column_that_is_not_finite_is_named_as_no_number() {
    let suite = Suite::new();
    suite.file("column.txt", "1\n2\nNaN\n");
    for (column, named) in [
        ("NaN", "`NaN` is neither a file, nor a folder, nor a number"),
        (
            "1,2,NaN,4",
            "`NaN` is neither a file, nor a folder, nor a number",
        ),
        (
            "1,-inf",
            "`-inf` is neither a file, nor a folder, nor a number",
        ),
        ("column.txt", "line 3: `NaN` is not a number"),
    ] {
        let ended = suite.call(&["compare", "1,2,3", column]);
        assert_code(&ended, 2);
        assert_holds(&ended.stderr, &[named]);
    }
}

/// A line of a capture of lading: `bytes_written` of a run at a second.
fn line(run: &str, second: u32, value: f64) -> String {
    let time = 1_700_000_000_000 + 1000 * u64::from(second);
    format!(
        "{{\"run_id\":\"{run}\",\"time\":{time},\"fetch_index\":{second},\
         \"metric_name\":\"bytes_written\",\"metric_kind\":\"counter\",\"value\":{value},\
         \"component\":\"generator\"}}\n"
    )
}

/// A capture of 100 s at so many bytes a second, with a wave on it.
fn capture(run: &str, rate: f64) -> String {
    let value = |second: u32| {
        let second = f64::from(second);
        (rate * (second + 0.05 * second.sin())).round()
    };
    (0..100)
        .map(|second| line(run, second, value(second)))
        .collect()
}

#[test]
fn captures_of_lading_are_one_number_a_run() {
    let suite = Suite::new();
    for (side, rates) in [
        ("old", [1000.0, 1010.0, 990.0, 1005.0]),
        ("new", [900.0, 908.0, 892.0, 905.0]),
    ] {
        for (rate, number) in rates.iter().zip(0..) {
            let name = format!("{side}/{number}/{side}.captures");
            suite.file(&name, &capture(&format!("{side}-{number}"), *rate));
        }
    }
    let (ended, report) = compared(&suite, &["old", "new"]);
    assert_code(&ended, 1);
    let row = first(&report);
    assert_eq!(row["metric"], "ingress_throughput");
    assert_eq!(row["verdict"], "regressed");
    assert_eq!(row["baseline"]["values"].as_array().unwrap().len(), 4);
    assert!((row["baseline"]["mean"].as_f64().unwrap() - 1001.25).abs() < 1.0);
    assert_holds(&ended.stdout, &["the default of lading"]);

    let item = "old/0/old.captures";
    let (ended, report) = compared(&suite, &[item, "new/0/new.captures"]);
    assert_code(&ended, 0);
    assert_eq!(first(&report)["verdict"], Value::Null);
    assert_eq!(percent(&first(&report)["finding"]["change"]), "-10.00");
    assert_holds(&ended.stdout, &["one run on a side gives no estimate"]);
    let strict = suite.call(&["compare", item, "new/0/new.captures", "--gate", "strict"]);
    assert_code(&strict, 4);

    let unknown = suite.call(&["compare", "old", "new", "--metric", "requests"]);
    assert_code(&unknown, 2);
    assert_holds(
        &unknown.stderr,
        &["no run has `requests`", "`bytes_written`"],
    );
    let short = suite.call(&["compare", "old", "new", "--warmup", "200s"]);
    assert_code(&short, 2);
    assert_holds(&short.stderr, &["lasts 99 s", "--warmup"]);
}

#[test]
fn phases_that_a_capture_marks_define_what_counts() {
    let suite = Suite::new();
    // Twice as fast while it was not measured: ten seconds before, five behind.
    let marked = |run: &str, rate: f64| -> String {
        let text = (0..30).map(|second| {
            let (phase, beside) = match second {
                0..10 => ("warmup", f64::from(second)),
                10..25 => ("measure", 10.0),
                _ => ("drain", f64::from(second) - 15.0),
            };
            let mark = line(run, second, 1.0)
                .replace("bytes_written", "phase")
                .replace("counter", "gauge")
                .replace(
                    "\"component\":\"generator\"",
                    &format!("\"phase\":\"{phase}\""),
                );
            line(run, second, rate * (f64::from(second) + beside)) + &mark
        });
        text.collect()
    };
    suite.file("a.jsonl", &marked("a", 1000.0));
    suite.file("b.jsonl", &marked("b", 900.0));
    let (ended, report) = compared(&suite, &["a.jsonl", "b.jsonl"]);
    assert_code(&ended, 0);
    let values = |side: &str| first(&report)[side]["mean"].as_f64().unwrap();
    assert!((values("baseline") - 1000.0).abs() < 1e-6, "{report}");
    assert!((values("comparison") - 900.0).abs() < 1e-6, "{report}");
    assert!(
        !ended.stdout.contains("nothing in a capture"),
        "{}",
        ended.stdout
    );
    // A warm-up that is named goes before, and then all behind it counts.
    let named = suite.call(&["compare", "a.jsonl", "b.jsonl", "--warmup", "5s"]);
    assert_holds(
        &named.stdout,
        &["a lading capture does not mark the end of warm-up"],
    );
}

#[test]
fn a_capture_that_was_cut_is_used_up_to_the_cut() {
    let suite = Suite::new();
    let text = capture("r", 1000.0);
    suite.file("a.jsonl", &text[..text.len() - 30]);
    suite.file("b.parquet", "PAR1 and then nothing that could be read");
    let cut = suite.call(&["compare", "a.jsonl", "a.jsonl"]);
    assert_code(&cut, 0);
    assert_holds(
        &cut.stdout,
        &["truncated within line 100", "its writer was killed"],
    );
    let lost = suite.call(&["compare", "a.jsonl", "b.parquet"]);
    assert_code(&lost, 2);
    assert_holds(
        &lost.stderr,
        &[
            "b.parquet has no footer",
            "a Parquet file is unreadable without one",
        ],
    );
}

#[test]
fn the_methods_of_the_ancestors_come_with_what_is_wrong_with_them() {
    let suite = Suite::new();
    for (name, rate) in [("a0", 1000.0), ("a1", 1004.0), ("b0", 996.0), ("b1", 999.0)] {
        suite.file(&format!("{name}.captures"), &capture(name, rate));
    }
    let sides = ["a0.captures,a1.captures", "b0.captures,b1.captures"];
    let soak = suite.call(&[&["compare", "--method", "soak-2022"], &sides[..]].concat());
    assert_code(&soak, 0);
    assert_holds(
        &soak.stdout,
        &[
            "# Soak Test Results\n",
            "| experiment   | Δ mean ",
            "| declared erratic   |",
            "| (experiment, variant, run_id) ",
            "('experiment', 'baseline', 'a1')",
            "% |",
            "every second of every run",
            "Outliers are searched in the counter",
            "2 + 2",
        ],
    );
    let words = ["--method", "smp-2023", sides[0], sides[1]];
    let smp = suite.call(&[&["compare"], &words[..]].concat());
    assert_code(&smp, 0);
    assert_holds(
        &smp.stdout,
        &[
            "Δ mean % CI",
            "| ingress throughput |",
            "-0.45",
            "may not be its exact method",
            "No interesting changes",
        ],
    );
    let (_, report) = compared(&suite, &words);
    let goal = &report["experiments"][0]["method"]["goals"][0];
    assert_eq!(goal["flagged"], false);
    assert!(goal["baseline_samples"].as_u64().unwrap() > 100);
    let columns = suite.call(&["compare", "--method", "soak-2022", "1,2", "1,2"]);
    assert_code(&columns, 2);
    assert_holds(
        &columns.stderr,
        &["one number for each run", "series of captures"],
    );
}

#[test]
fn a_tree_of_captures_is_headed_by_the_variants_that_are_compared() {
    let suite = Suite::new();
    for (variant, rate) in [("baseline", 1000.0), ("comparison", 996.0)] {
        for number in 0..2 {
            let name = format!("tree/one/{variant}/{number}.captures");
            suite.file(&name, &capture(&format!("{variant}-{number}"), rate));
        }
    }
    let ended = suite.call(&["compare", "tree", "--method", "soak-2022"]);
    assert_code(&ended, 0);
    assert_holds(
        &ended.stdout,
        &[
            "tree (comparison) compared with tree (baseline)",
            "Baseline: tree (baseline)\n",
            "Comparison: tree (comparison)\n",
        ],
    );
}

fn fortio(rate: f64, p99: f64) -> String {
    format!(
        "{{\"ActualQPS\": {rate}, \"DurationHistogram\": {{\"Count\": 10, \"Avg\": 0.002, \
         \"Percentiles\": [{{\"Percentile\": 99, \"Value\": {p99}}}]}}, \"RetCodes\": {{\"200\": 10}}}}"
    )
}

fn nighthawk(requests: u32) -> String {
    format!(
        "{{\"results\": [{{\"name\": \"global\", \"execution_duration\": \"2s\", \"statistics\": [\
         {{\"id\": \"benchmark_http_client.request_to_response\", \"count\": \"9\", \"mean\": \"0.002s\", \
         \"percentiles\": [{{\"percentile\": 0.99, \"duration\": \"0.004s\"}}]}}], \"counters\": [\
         {{\"name\": \"upstream_rq_total\", \"value\": \"{requests}\"}}]}}]}}"
    )
}

#[test]
fn results_of_load_generators_are_one_run_each() {
    let suite = Suite::new();
    suite.file("a.json", &fortio(1000.0, 0.004));
    suite.file("b.json", &fortio(900.0, 0.005));
    let (ended, report) = compared(&suite, &["a.json", "b.json"]);
    assert_code(&ended, 0);
    let names: Vec<&str> = report["experiments"][0]["metrics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["metric"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["requests_per_second", "latency_p99", "latency_mean"]
    );
    assert_eq!(first(&report)["verdict"], Value::Null);
    assert_eq!(percent(&first(&report)["finding"]["change"]), "-10.00");

    for (number, requests) in [2000, 2010, 1990, 2004].into_iter().enumerate() {
        suite.file(&format!("one/{number}.json"), &nighthawk(requests));
        suite.file(&format!("two/{number}.json"), &nighthawk(requests - 400));
    }
    let (ended, report) = compared(&suite, &["one", "two"]);
    assert_code(&ended, 1);
    assert_eq!(first(&report)["verdict"], "regressed");
    let (_, report) = compared(&suite, &["one/0.json", "a.json"]);
    assert_holds(&report.to_string(), &["different tools"]);
}

/// Changes the saved summary of a run.
fn change_summary(suite: &Suite, pair: u32, variant: &str, change: impl FnOnce(&mut Value)) {
    let file = suite.capture_of(pair, variant).join("summary.json");
    let mut summary: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    change(&mut summary);
    fs::write(&file, summary.to_string()).unwrap();
}

/// Removes the warnings of the runs and the differences between their environments: other programs
/// of this machine are no part of this test. Returns the number of pairs, since unreliable ones were
/// repeated.
fn without_warnings(suite: &Suite) -> u32 {
    let is_there = |pair: &u32| suite.capture_of(*pair, "two").exists();
    let pairs = (1..).take_while(is_there).fold(0, |_, pair| pair);
    for pair in 1..=pairs {
        for variant in ["one", "two"] {
            change_summary(suite, pair, variant, |summary| {
                summary["warnings"] = Value::Array(Vec::new());
                summary["environment"] = serde_json::json!({ "governors": "performance" });
            });
        }
    }
    pairs
}

/// The report of the suite discards such a pair, too.
fn assert_pair_of_different_environments_is_left_out(suite: &Suite, pairs: u32) {
    change_summary(suite, 1, "two", |summary| {
        summary["environment"]["governors"] = "powersave".into();
    });
    let words = ["results", "results", "--metric", "memory", "--exit-zero"];
    let (ended, report) = compared(suite, &words);
    assert_code(&ended, 0);
    let side = &first(&report)["comparison"];
    let values = side["values"].as_array().unwrap();
    assert_eq!(values.len() + 1, pairs as usize, "{}", ended.stdout);
    let reason = side["left_out"][0]["reason"].as_str().unwrap();
    assert_holds(
        reason,
        &["governors was performance for the baseline and powersave"],
    );
}

#[test]
fn saved_runs_are_paired_by_their_numbers() {
    let suite = Suite::new()
        .with("phases", "{warmup: 200ms, measure: 500ms, quiet: 50ms}")
        .with("pairs", "2");
    let ran = suite.run(&["--exit-zero", "--quiet"]).finish(LONG);
    assert_code(&ran, 0);
    let pairs = without_warnings(&suite);
    assert!(pairs >= 2);
    // The same results on both sides are their first variant and their second.
    let (ended, report) = compared(
        &suite,
        &["results", "results", "--metric", "memory", "--exit-zero"],
    );
    assert_code(&ended, 0);
    let finding = &first(&report)["finding"];
    assert_eq!(finding["design"], "paired", "{}", ended.stdout);
    assert_eq!(finding["pairs"], pairs);
    let words = ["results@one", "results@two", "--unpaired", "--exit-zero"];
    let (ended, report) = compared(&suite, &words);
    assert_code(&ended, 0);
    let rows = report["experiments"][0]["metrics"].as_array().unwrap();
    // The goals of the experiment, without a flag.
    let names: Vec<&Value> = rows.iter().map(|row| &row["metric"]).collect();
    assert_eq!(names, ["cpu", "memory"]);
    assert_eq!(rows[1]["finding"]["design"], "unpaired");
    // One capture a side.
    let capture = |variant: &str| suite.capture_of(1, variant).to_string_lossy().into_owned();
    let (ended, report) = compared(&suite, &[&capture("one"), &capture("two"), "--unpaired"]);
    assert_code(&ended, 0);
    assert_eq!(first(&report)["verdict"], Value::Null);
    // Any series of a capture, and the seconds behind it.
    let (ended, report) = compared(
        &suite,
        &[&words[..], &["--metric", "total_rss_bytes:peak"]].concat(),
    );
    assert_code(&ended, 0);
    assert!(first(&report)["baseline"]["mean"].as_f64().unwrap() > 1e5);
    // Two suites have charts of their runs.
    let copied = suite
        .program("cp")
        .args(["-r", "results", "later"])
        .status();
    assert!(copied.unwrap().success());
    let ended = suite.call(&[
        "compare",
        "results",
        "later",
        "--exit-zero",
        "-o",
        "page.html",
    ]);
    assert_code(&ended, 0);
    let page = fs::read_to_string(suite.path("page.html")).unwrap();
    assert_holds(&page, &["Over time and by percentile", ">later<"]);
    assert!(page.matches("<svg").count() > 3);
    let several = suite.call(&["compare", "results", "results@two"]);
    assert_code(&several, 2);
    assert_holds(
        &several.stderr,
        &["several variants", "`one`, `two`", "PATH@NAME"],
    );
    assert_pair_of_different_environments_is_left_out(&suite, pairs);
}
