//! Called as `captool`, on captures of lading's and of ours.

use std::fmt::Write as _;

use stillwell_testkit::{Finished, Process};

use crate::lading_name::called;
use crate::suite::{LONG, Suite, assert_code, assert_holds};

fn captool(suite: &Suite, words: &[&str]) -> Finished {
    Process::start(called(suite, "captool").args(words)).finish(LONG)
}

/// Twenty seconds of two series of one metric, and a gauge.
fn capture() -> String {
    let mut text = String::new();
    for tick in 0..20_u64 {
        let head = format!(
            "{{\"run_id\":\"r\",\"time\":{},\"fetch_index\":{tick},\"metric_name\":",
            1_700_000_000_000 + 1000 * tick
        );
        for (id, factor) in [("a", 2), ("b", 3)] {
            let value = factor * tick;
            writeln!(
                text,
                "{head}\"bytes_written\",\"metric_kind\":\"counter\",\"value\":{value},\"id\":\"{id}\"}}"
            )
            .unwrap();
        }
        writeln!(
            text,
            "{head}\"load\",\"metric_kind\":\"gauge\",\"value\":{}.5}}",
            tick % 2
        )
        .unwrap();
    }
    text
}

// compat: captool and payloadtool | captool --list-metrics | works
// compat: captool and payloadtool | captool --metric | works
// compat: captool and payloadtool | captool --dump-values | works
#[test]
fn it_lists_shows_and_dumps() {
    let suite = Suite::new();
    suite.file("cap.jsonl", &capture());
    let listed = captool(&suite, &["cap.jsonl"]);
    assert_code(&listed, 0);
    assert_eq!(listed.stdout, "c: bytes_written\ng: load\n");
    assert_eq!(captool(&suite, &["-l", "cap.jsonl"]).stdout, listed.stdout);
    let shown = captool(&suite, &["cap.jsonl", "--metric", "bytes_written"]);
    assert_eq!(
        shown.stdout,
        "bytes_written[id:a]: min: 0, mean: 19, max: 38, is_monotonic: true\n\
         bytes_written[id:b]: min: 0, mean: 28.5, max: 57, is_monotonic: true\n"
    );
    let dumped = captool(&suite, &["cap.jsonl", "-m", "load", "-d"]);
    assert_holds(&dumped.stdout, &["is_monotonic: false", "0: 0.5\n1: 1.5\n"]);
    let none = captool(&suite, &["cap.jsonl", "-m", "nothing"]);
    assert_code(&none, 1);
    assert_holds(&none.stderr, &["has no metric `nothing`"]);
}

#[test]
fn it_finds_what_is_wrong_with_a_capture() {
    let suite = Suite::new();
    let text = capture();
    suite.file("cap.jsonl", &text);
    assert_code(
        &captool(&suite, &["validate", "cap.jsonl", "--min-seconds", "20"]),
        0,
    );
    let short = captool(&suite, &["validate", "cap.jsonl", "--min-seconds", "21"]);
    assert_code(&short, 1);
    assert_holds(&short.stderr, &["20 different times, not 21"]);
    suite.file(
        "twice.jsonl",
        &(text.clone() + text.lines().next().unwrap() + "\n"),
    );
    let twice = captool(&suite, &["validate", "twice.jsonl"]);
    assert_code(&twice, 1);
    assert_holds(&twice.stderr, &["row 61", "goes from fetch_index 19"]);
    // A last line that was cut is said, and no reason to refuse the rest.
    suite.file("cut.jsonl", &text[..text.len() - 9]);
    let cut = captool(&suite, &["validate", "cut.jsonl"]);
    assert_code(&cut, 0);
    assert_holds(&cut.stderr, &["truncated within line 60"]);
    suite.file("else.txt", "no capture\n");
    let second = captool(&suite, &["validate", "else.txt"]);
    assert_code(&second, 1);
    assert_holds(&second.stderr, &["is not a lading capture"]);
    assert_code(&captool(&suite, &[]), 2);
}

#[test]
fn recorded_captures_are_valid() {
    let suite = Suite::new();
    let ended = suite.observe(&[]).finish(LONG);
    assert!(suite.results().exists(), "{}", ended.stderr);
    for path in ["results", "results/series.parquet"] {
        let output = captool(&suite, &["validate", path, "--min-seconds", "2"]);
        assert_code(&output, 0);
    }
    let listed = captool(&suite, &["results"]);
    assert_holds(
        &listed.stdout,
        &["c: bytes_written", "h: lateness", "g: total_rss_bytes"],
    );
}
