//! Variants that are built from revisions of a repository.

use std::fs;

use stillwell_testkit::{Finished, Process, git, program_or_skip, signal_process, wait_until};

use crate::suite::{LONG, STILLWELL, STOP_MAX, Suite, assert_code, assert_holds};

const SHORT: &str = "{warmup: 100ms, measure: 500ms, quiet: 50ms}";
const BUILD: &str = "cp relay.sh out && chmod +x out && echo built >> \"$BUILDS\"";

/// A repository with two revisions of a script that is the target; returns their names.
fn repository(suite: &Suite) -> [String; 2] {
    let folder = suite.path("repository");
    fs::create_dir(&folder).unwrap();
    git(&folder, &["init", "--quiet"]);
    ["first", "second"].map(|revision| {
        let script = format!("#!/bin/sh\necho I am the {revision}\nexec {STILLWELL} \"$@\"\n");
        suite.file("repository/relay.sh", &script);
        git(&folder, &["add", "relay.sh"]);
        git(&folder, &["commit", "--quiet", "--message", revision]);
        git(&folder, &["rev-parse", "HEAD"])
    })
}

/// Runs both revisions, with results of their own.
fn run(suite: &Suite, revisions: &[String; 2], build: &str, results: &str) -> Finished {
    start(suite, revisions, build, results).finish(LONG)
}

fn start(suite: &Suite, revisions: &[String; 2], build: &str, results: &str) -> Process {
    suite.write();
    let build = build.replace("$BUILDS", &suite.path("builds").to_string_lossy());
    let [baseline, comparison] = revisions
        .each_ref()
        .map(|revision| format!("git:{revision}"));
    let words = [
        "run",
        "experiment",
        "--results",
        results,
        "--baseline",
        &baseline,
        "--comparison",
        &comparison,
        "--repo",
        "repository",
        "--build",
        &build,
        "--build-output",
        "out",
    ];
    Process::start(&mut suite.stillwell(&words))
}

#[test]
fn two_revisions_are_compared_and_each_is_built_once() {
    let test = "two_revisions_are_compared_and_each_is_built_once";
    if program_or_skip(test, "git").is_none() {
        return;
    }
    let suite = Suite::new()
        .with("phases", SHORT)
        .with("pairs", "1")
        .with("variants", "{baseline: {}, comparison: {}}");
    let revisions = repository(&suite);
    // Uncommitted work is no part of a revision.
    suite.file("repository/relay.sh", "#!/bin/sh\nexit 9\n");

    let ended = run(&suite, &revisions, BUILD, "results");
    assert_holds(
        &ended.stderr,
        &["building", &revisions[0], &revisions[1], "pair 1 done"],
    );
    assert_holds(&ended.stdout, &[&revisions[0][..7], &revisions[1][..7]]);
    let record = fs::read_to_string(suite.results().join("suite.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let known: Vec<&str> = record["binaries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|binary| binary["revision"].as_str().unwrap())
        .collect();
    assert_eq!(known, revisions);
    for (variant, revision) in [("baseline", "first"), ("comparison", "second")] {
        let log = suite.capture_of(1, variant).join("target.stdout.log");
        let log_text = fs::read_to_string(&log).unwrap_or_else(|e| panic!("{log:?}: {e}"));
        assert_holds(&log_text, &[&format!("I am the {revision}")]);
    }
    assert_eq!(
        fs::read_to_string(suite.path("builds")).unwrap(),
        "built\nbuilt\n"
    );

    let again = run(&suite, &revisions, BUILD, "again");
    assert_holds(&again.stderr, &["cached build of", "pair 1 done"]);
    assert_eq!(
        fs::read_to_string(suite.path("builds")).unwrap(),
        "built\nbuilt\n"
    );
    // Their worktrees are gone, and the repository is as it was.
    let worktrees = git(&suite.path("repository"), &["worktree", "list"]);
    assert_eq!(worktrees.lines().count(), 1, "{worktrees}");
    assert_eq!(
        git(&suite.path("repository"), &["status", "--porcelain"]),
        "M relay.sh"
    );
    suite.assert_nothing_left();
}

#[test]
fn an_interrupted_build_leaves_nothing_that_looks_built() {
    let test = "an_interrupted_build_leaves_nothing_that_looks_built";
    if program_or_skip(test, "git").is_none() {
        return;
    }
    let suite = Suite::new().with("phases", SHORT).with("pairs", "1");
    let revisions = repository(&suite);
    let build = "cp relay.sh out && touch \"$BUILDS\" && sleep 300";
    let process = start(&suite, &revisions, build, "results");
    assert!(
        wait_until(LONG, || suite.path("builds").exists()),
        "{}",
        process.stderr()
    );
    process.signal("INT");
    let ended = process.finish(STOP_MAX);
    assert_code(&ended, 130);
    suite.assert_nothing_left();
    fs::remove_file(suite.path("builds")).unwrap();
    let ended = start(&suite, &revisions, BUILD, "again").finish(LONG);
    assert_holds(&ended.stderr, &["building", "pair 1 done"]);
    assert_eq!(
        fs::read_to_string(suite.path("builds")).unwrap(),
        "built\nbuilt\n"
    );
}

/// A daemon of a build, such as a compiler cache, serves builds of the user too.
#[test]
fn a_build_of_a_killed_run_ends_without_another_run_and_its_daemon_stays() {
    let test = "a_build_of_a_killed_run_ends_without_another_run_and_its_daemon_stays";
    if program_or_skip(test, "git").is_none() {
        return;
    }
    let suite = Suite::new().with("phases", SHORT).with("pairs", "1");
    let revisions = repository(&suite);
    let build = "setsid tail -f /dev/null & echo $! > \"$BUILDS\"; tail -f \"$BUILDS\"; exit 1";
    let process = start(&suite, &revisions, build, "results");
    let daemon = || {
        let number = fs::read_to_string(suite.path("builds")).ok()?;
        let daemon = number.trim().parse::<u32>().ok()?;
        // From its exec it is in its own session.
        let words = fs::read(format!("/proc/{daemon}/cmdline")).ok()?;
        words.starts_with(b"tail\0-f\0/dev/null").then_some(daemon)
    };
    let is_begun = wait_until(LONG, || daemon().is_some());
    assert!(is_begun, "{}", process.stderr());
    let started = daemon().unwrap();
    process.signal("KILL");
    assert_eq!(process.finish(STOP_MAX).code, 137);
    suite.assert_no_process(LONG);
    // The guardian removes the state last.
    let state = || fs::read_dir(suite.path("state")).unwrap().count();
    assert!(wait_until(LONG, || state() == 0));
    assert_eq!(daemon(), Some(started));
    signal_process(started, "KILL");
}

#[test]
fn a_build_that_fails_is_reported_with_its_log_and_nothing_runs() {
    let test = "a_build_that_fails_is_told_with_its_log_and_nothing_runs";
    if program_or_skip(test, "git").is_none() {
        return;
    }
    let suite = Suite::new().with("phases", SHORT).with("pairs", "1");
    let revisions = repository(&suite);
    let ended = run(
        &suite,
        &revisions,
        "echo the compiler is unhappy >&2; exit 3",
        "results",
    );
    assert_code(&ended, 3);
    assert_holds(
        &ended.stderr,
        &[&revisions[0], "the compiler is unhappy", "log"],
    );
    // What was broken is built again.
    let ended = run(&suite, &revisions, BUILD, "again");
    assert_holds(&ended.stderr, &["pair 1 done"]);

    let nowhere = ["no-such-revision".to_owned(), revisions[1].clone()];
    let ended = run(&suite, &nowhere, BUILD, "nowhere");
    assert_code(&ended, 3);
    assert_holds(&ended.stderr, &["no-such-revision"]);
}
