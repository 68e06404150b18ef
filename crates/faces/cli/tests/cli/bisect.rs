//! A search for a commit, from end to end: a repository of shell scripts, of
//! which one begins to hoard memory.

use std::fs;

use stillwell_testkit::{Finished, Process, git, program_or_skip};

use crate::suite::{LONG, STILLWELL, Suite, assert_code, assert_holds, is_disturbed};

const SHORT: &str = "{warmup: 100ms, measure: 400ms, quiet: 50ms}";
const BUILD: &str = "cp relay.sh out && chmod +x out";
/// The first commit after GOOD that hoards.
const CULPRIT: usize = 2;

/// GOOD and two commits after it; gives their names.
fn repository(suite: &Suite) -> Vec<String> {
    let folder = suite.path("repository");
    fs::create_dir(&folder).unwrap();
    git(&folder, &["init", "--quiet"]);
    let commit = |number: usize| {
        let retained_bytes = if number < CULPRIT { "0 B" } else { "64 KiB" };
        let script = format!(
            "#!/bin/sh\n# {number}\nexec {STILLWELL} \"$@\" --hoard-per-event '{retained_bytes}'\n"
        );
        suite.file("repository/relay.sh", &script);
        git(&folder, &["add", "relay.sh"]);
        let message = format!("change {number}");
        git(&folder, &["commit", "--quiet", "--message", &message]);
        git(&folder, &["rev-parse", "HEAD"])
    };
    (0..3).map(commit).collect()
}

fn bisect(suite: &Suite, ends: [&str; 2], more: &[&str]) -> Finished {
    let words = [
        "bisect",
        ends[0],
        ends[1],
        "experiment",
        "--repo",
        "repository",
    ];
    let build = [
        "--build",
        BUILD,
        "--build-output",
        "out",
        "--results",
        "results",
    ];
    let mut command = suite.stillwell(&words);
    // Up to three comparisons of six pairs, each with its builds.
    Process::start(command.args(build).args(more)).finish(LONG * 4)
}

#[test]
fn the_commit_that_hoards_is_named_and_the_search_is_kept() {
    let test = "the_commit_that_hoards_is_named_and_the_search_is_kept";
    if program_or_skip(test, "git").is_none() {
        return;
    }
    let suite = Suite::new()
        .with("phases", SHORT)
        .with("pairs", "6")
        .with("goals", "[memory]")
        // What hoards is found on a busy machine too.
        .with("validity", "off")
        .with("variants", "{baseline: {}, comparison: {}}");
    suite.write();
    let commits = repository(&suite);
    let ends = [commits[0].as_str(), "HEAD"];
    let ended = bisect(&suite, ends, &["--color", "never"]);
    if is_disturbed(test, &ended) {
        return;
    }
    assert_code(&ended, 0);
    let named = format!(
        "the first bad commit is {} (change {CULPRIT})",
        &commits[CULPRIT][..12]
    );
    assert!(ended.stdout.starts_with(&named), "{}", ended.stdout);
    assert_holds(&ended.stderr, &["2 commits after GOOD", "=> "]);
    let kept = fs::read_to_string(suite.path("results/bisect.txt")).unwrap();
    assert!(kept.starts_with(&named), "{kept}");

    // It is all there, in any format, without another run.
    let again = bisect(&suite, ends, &["--resume", "--format", "json"]);
    assert_code(&again, 0);
    assert_holds(&again.stderr, &["from earlier results"]);
    let record: serde_json::Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(record["schema"], "stillwell/bisect/v1");
    assert_eq!(record["outcome"]["kind"], "commit");
    assert_eq!(record["outcome"]["first_bad"], commits[CULPRIT].as_str());
    // A report that cannot be written is not a search that could not run.
    std::os::unix::fs::symlink("/dev/full", suite.path("full.json")).unwrap();
    let full = bisect(&suite, ends, &["--resume", "-o", "full.json"]);
    assert_code(&full, 4);
    assert_holds(&full.stderr, &["No space left on device"]);
    let twice = bisect(&suite, ends, &[]);
    assert_code(&twice, 2);
    assert_holds(
        &twice.stderr,
        &["already contains results", "--resume continues"],
    );
    suite.assert_nothing_left();
}

#[test]
fn what_cannot_be_searched_is_reported_before_anything_runs() {
    let test = "what_cannot_be_searched_is_told_before_anything_runs";
    if program_or_skip(test, "git").is_none() {
        return;
    }
    let suite = Suite::new()
        .with("phases", SHORT)
        .with("variants", "{baseline: {}, comparison: {}}");
    suite.write();
    let commits = repository(&suite);
    for (ends, code, output) in [
        ([commits[0].as_str(), "no-such"], 3, "no-such"),
        ([&commits[2], &commits[1]], 3, "does not descend"),
        ([&commits[1], &commits[1]], 3, "the same commit"),
    ] {
        let ended = bisect(&suite, ends, &[]);
        assert_code(&ended, code);
        assert_holds(
            &ended.stderr,
            &[output, "on the line of first parents of BAD"],
        );
    }
    let ended = bisect(&suite, [&commits[0], "HEAD"], &["--resume"]);
    assert_code(&ended, 2);
    let ended = bisect(&suite, [&commits[0], "HEAD"], &["--variant", "third"]);
    assert_code(&ended, 2);
    assert_holds(
        &ended.stderr,
        &["no variant `third`; it has baseline, comparison"],
    );
    let ended = suite.call(&["bisect", &commits[0], "HEAD", "experiment", "--resume"]);
    assert_code(&ended, 2);
    assert!(!suite.path("results").exists());
}
