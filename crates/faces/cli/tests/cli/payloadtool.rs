//! Called as `payloadtool`.

use std::fs;

use stillwell_testkit::{Finished, Process};

use crate::lading_name::called;
use crate::suite::{LONG, Suite, assert_code, assert_holds};

const SEED: &str = "[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7, 9, 5]";

fn payloadtool(suite: &Suite, words: &[&str]) -> Finished {
    Process::start(called(suite, "payloadtool").args(words)).finish(LONG)
}

/// Two generators, of which one is called `logs`.
fn suite() -> Suite {
    let suite = Suite::new();
    let tcp = |variant: &str| {
        format!(
            "tcp: {{seed: {SEED}, addr: \"127.0.0.1:9\", variant: {variant}, \
             maximum_prebuild_cache_size_bytes: 1 MiB, maximum_block_size: 8 KiB}}\n"
        )
    };
    let (logs, text) = (tcp("json"), tcp("ascii"));
    let config = format!("generator:\n  - id: logs\n    {logs}  - {text}");
    suite.file("lading.yaml", &config);
    suite
}

// compat: captool and payloadtool | payloadtool --fingerprint | works
// compat: captool and payloadtool | payloadtool --verify | works
// compat: captool and payloadtool | payloadtool --generator-id | works
#[test]
fn fingerprints_are_printed_and_verified() {
    let suite = suite();
    let printed = payloadtool(&suite, &["lading.yaml", "--fingerprint"]);
    assert_code(&printed, 0);
    let lines: Vec<&str> = printed.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{}", printed.stdout);
    assert!(lines[0].starts_with("logs: ") && lines[1].starts_with("tcp: "));
    for line in &lines {
        let (_, print) = line.split_once(": ").unwrap();
        let (hash, entropy) = print.split_once(" entropy=").unwrap();
        assert_eq!(hash.len(), 64);
        assert!(entropy.parse::<f64>().unwrap() > 1.0);
    }
    // Again, and one of them alone: the same bytes.
    let alone = payloadtool(&suite, &["lading.yaml", "-f", "-g", "logs"]);
    assert_eq!(alone.stdout, format!("{}\n", lines[0]));
    suite.file("prints.txt", &printed.stdout);
    let verified = payloadtool(&suite, &["lading.yaml", "--verify", "prints.txt"]);
    assert_code(&verified, 0);
    assert_holds(&verified.stderr, &["logs: as expected", "tcp: as expected"]);
    suite.file(
        "prints.txt",
        &printed.stdout.replacen("logs: ", "logs: 0", 1),
    );
    let wrong = payloadtool(&suite, &["lading.yaml", "-f", "-v", "prints.txt"]);
    assert_code(&wrong, 1);
    assert_holds(
        &wrong.stderr,
        &["logs: expected 0", "1 fingerprint is not as expected"],
    );
    // Each generator needs a line.
    suite.file("prints.txt", &format!("{}\n", lines[0]));
    let missing = payloadtool(&suite, &["lading.yaml", "--verify", "prints.txt"]);
    assert_code(&missing, 1);
    assert_holds(
        &missing.stderr,
        &["logs: as expected", "tcp: no expected fingerprint"],
    );
}

// compat: captool and payloadtool | payloadtool --dump | works
// compat: captool and payloadtool | payloadtool --memory-stats | works
#[test]
fn bytes_are_dumped_and_memory_is_reported() {
    let suite = suite();
    let words = ["lading.yaml", "-g", "logs", "--dump", "bytes", "-m"];
    let ended = payloadtool(&suite, &words);
    assert_code(&ended, 0);
    assert_holds(
        &ended.stdout,
        &["logs: ", " blocks, ", " events, ", "of 1 MiB"],
    );
    assert_holds(&ended.stderr, &["peak of resident memory: "]);
    let bytes = fs::read(suite.path("bytes")).unwrap();
    assert!(
        bytes.len() > 900_000 && bytes.len() <= 1 << 20,
        "{}",
        bytes.len()
    );
    for line in bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        serde_json::from_slice::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn mistakes_are_reported() {
    let suite = suite();
    let none = payloadtool(&suite, &["lading.yaml", "-g", "metrics"]);
    assert_code(&none, 2);
    assert_holds(
        &none.stderr,
        &["no generator is called `metrics`", "logs, tcp"],
    );
    assert_code(&payloadtool(&suite, &["none.yaml"]), 1);
    let unwritable = payloadtool(&suite, &["lading.yaml", "--dump", "no/such/folder"]);
    assert_code(&unwritable, 1);
}
