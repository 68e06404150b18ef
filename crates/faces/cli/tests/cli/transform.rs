//! Results of loads, converted to other formats.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::suite::{Suite, assert_code, assert_holds};

const RESULT: &str = r#"{"options":{"requests_per_second":100,"connections":2,"uri":"http://a/"},
 "results":[{"name":"global","execution_duration":"2s","execution_start":"2020-10-21T21:28:12Z",
 "counters":[{"name":"benchmark.http_2xx","value":"200"},{"name":"upstream_rq_total","value":"200"}],
 "statistics":[{"id":"benchmark_http_client.request_to_response","count":"200","mean":"0.002s",
 "pstdev":"0.001s","min":"0.001s","max":"0.009s","percentiles":[
 {"percentile":0,"count":"1","duration":"0.001s"},{"percentile":0.5,"count":"100","duration":"0.002s"},
 {"percentile":0.99,"count":"198","duration":"0.005s"},{"percentile":1,"count":"200","duration":"0.009s"}]}]}]}"#;

#[test]
fn a_result_of_nighthawk_is_reported_in_other_formats() {
    let suite = Suite::new();
    suite.file("result.json", &format!("[12:00:00][I] Starting\n{RESULT}"));
    let printed =
        |format: &str| suite.call(&["transform", "result.json", "--output-format", format]);
    for (format, expected) in [
        ("human", "  0.99        198         0s 005ms 000us"),
        ("fortio", "\"ActualQPS\": 100"),
        ("nighthawk-dotted", "global.benchmark.http_2xx:200"),
        (
            "hgrm",
            "    2.000000 0.500000000000        100           2.00",
        ),
    ] {
        let ended = printed(format);
        assert_code(&ended, 0);
        assert_holds(&ended.stdout, &[expected]);
    }
    let yaml = printed("nighthawk-yaml").stdout;
    suite.file("result.yaml", &yaml);
    let json = suite.call(&["transform", "result.yaml", "--format", "nighthawk-json"]);
    assert_eq!(json.stdout, printed("nighthawk-json").stdout);
}

#[test]
fn what_a_source_lacks_is_refused() {
    let suite = Suite::new();
    suite.file("result.json", RESULT);
    suite.file("other.json", "{\"reslts\":[]}");
    let summary = "{\"schema\": \"stillwell/load-summary/v1\", \"requests\": 1}";
    suite.file("summary.json", summary);
    for (line, expected) in [
        (
            vec!["result.json", "--output-format", "hlog"],
            "cannot be written as hlog: it has no histograms",
        ),
        (
            vec!["other.json", "--output-format", "nighthawk-csv"],
            "`reslts` is not a field of this message",
        ),
        (
            vec!["summary.json", "--output-format", "hgrm"],
            "convert the output of `stillwell load --format stillwell`",
        ),
        (
            vec!["none.json", "--output-format", "nighthawk-csv"],
            "read none.json",
        ),
        (
            vec!["result.json", "--output-format", "xml"],
            "`xml` is not a format of a load result",
        ),
        (
            vec![
                "result.json",
                "--output-format",
                "nighthawk-csv",
                "--statistic",
                "x",
            ],
            "--statistic needs --output-format hgrm",
        ),
    ] {
        let line: Vec<&str> = ["transform"].into_iter().chain(line).collect();
        let ended = suite.call(&line);
        assert_code(&ended, 2);
        assert_holds(&ended.stderr, &[expected]);
    }
}

/// Our binary under the ancestor's name, with `input` on its standard input.
fn as_ancestor(words: &[&str], input: &str) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let name: PathBuf = folder.path().join("nighthawk_output_transform");
    symlink(env!("CARGO_BIN_EXE_stillwell"), &name).unwrap();
    let file = folder.path().join("input");
    std::fs::write(&file, input).unwrap();
    let output = Command::new(name)
        .args(words)
        .stdin(Stdio::from(std::fs::File::open(file).unwrap()))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

// compat: nighthawk_output_transform | --output-format | works
#[test]
fn the_ancestors_name_brings_its_flags_and_codes() {
    let (code, out, _) = as_ancestor(&["--output-format", "human"], RESULT);
    assert_eq!(code, Some(0));
    assert!(out.starts_with("Nighthawk - A layer 7"), "{out}");
    let (code, _, err) = as_ancestor(&["--output-format", "human"], "{\"a\":1}");
    assert_eq!(code, Some(1));
    assert!(err.starts_with("Input error: `a` is not a field"), "{err}");
    let (code, _, err) = as_ancestor(&["--foo"], "");
    assert_eq!(code, Some(1));
    assert!(err.starts_with("PARSE ERROR: Argument: --foo"), "{err}");
    let (code, _, err) = as_ancestor(&["--output-format", "hgrm"], RESULT);
    assert_eq!(code, Some(1));
    assert!(err.contains("must be one of json, human"), "{err}");
    let (code, out, _) = as_ancestor(&["--help"], "");
    assert_eq!(code, Some(0));
    assert!(out.contains("USAGE"), "{out}");
}
