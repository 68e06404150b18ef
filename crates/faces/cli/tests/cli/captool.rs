//! Called as `captool`, on captures of lading's and of ours.

use std::fmt::Write as _;

use stillwell_testkit::{Finished, Process};

use crate::lab::{LONG, Lab, assert_code, assert_holds};
use crate::lading_name::called;

fn captool(lab: &Lab, words: &[&str]) -> Finished {
    Process::start(called(lab, "captool").args(words)).finish(LONG)
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

#[test]
fn it_lists_shows_and_dumps() {
    let lab = Lab::new();
    lab.file("cap.jsonl", &capture());
    let listed = captool(&lab, &["cap.jsonl"]);
    assert_code(&listed, 0);
    assert_eq!(listed.stdout, "c: bytes_written\ng: load\n");
    assert_eq!(captool(&lab, &["-l", "cap.jsonl"]).stdout, listed.stdout);
    let shown = captool(&lab, &["cap.jsonl", "--metric", "bytes_written"]);
    assert_eq!(
        shown.stdout,
        "bytes_written[id:a]: min: 0, mean: 19, max: 38, is_monotonic: true\n\
         bytes_written[id:b]: min: 0, mean: 28.5, max: 57, is_monotonic: true\n"
    );
    let dumped = captool(&lab, &["cap.jsonl", "-m", "load", "-d"]);
    assert_holds(&dumped.stdout, &["is_monotonic: false", "0: 0.5\n1: 1.5\n"]);
    let none = captool(&lab, &["cap.jsonl", "-m", "nothing"]);
    assert_code(&none, 1);
    assert_holds(&none.stderr, &["has no metric `nothing`"]);
}

#[test]
fn it_finds_what_is_wrong_with_a_capture() {
    let lab = Lab::new();
    let text = capture();
    lab.file("cap.jsonl", &text);
    assert_code(
        &captool(&lab, &["validate", "cap.jsonl", "--min-seconds", "20"]),
        0,
    );
    let short = captool(&lab, &["validate", "cap.jsonl", "--min-seconds", "21"]);
    assert_code(&short, 1);
    assert_holds(&short.stderr, &["20 different times, not 21"]);
    lab.file(
        "twice.jsonl",
        &(text.clone() + text.lines().next().unwrap() + "\n"),
    );
    let twice = captool(&lab, &["validate", "twice.jsonl"]);
    assert_code(&twice, 1);
    assert_holds(&twice.stderr, &["row 61", "goes from fetch_index 19"]);
    // A last line that was cut is said, and no reason to refuse the rest.
    lab.file("cut.jsonl", &text[..text.len() - 9]);
    let cut = captool(&lab, &["validate", "cut.jsonl"]);
    assert_code(&cut, 0);
    assert_holds(&cut.stderr, &["cut within line 60"]);
    lab.file("else.txt", "no capture\n");
    let other = captool(&lab, &["validate", "else.txt"]);
    assert_code(&other, 3);
    assert_holds(&other.stderr, &["no capture of lading"]);
    assert_code(&captool(&lab, &[]), 2);
}

#[test]
fn our_own_captures_are_valid() {
    let lab = Lab::new();
    let ended = lab.rig(&[]).finish(LONG);
    assert!(lab.results().exists(), "{}", ended.stderr);
    for path in ["results", "results/series.parquet"] {
        let told = captool(&lab, &["validate", path, "--min-seconds", "2"]);
        assert_code(&told, 0);
    }
    let listed = captool(&lab, &["results"]);
    assert_holds(
        &listed.stdout,
        &["c: bytes_written", "h: lateness", "g: total_rss_bytes"],
    );
}
