//! Targets that die, that ignore SIGTERM, that leave processes behind, and that are
//! stopped for a while.

use std::time::Duration;

use stillwell_capture::RunOutcome;
use stillwell_plan::Phase;
use stillwell_testkit::signal_process;

use crate::suite::{LONG, STOP_MAX, Suite, assert_code, assert_holds, events, open};

/// Time enough to interfere.
const ENDLESS: &str = "{warmup: 200ms, measure: 60s, drain: 2s, quiet: 50ms}";
const SHORT: &str = "{warmup: 200ms, measure: 700ms, drain: 2s, quiet: 50ms}";
const GRACE: Duration = Duration::from_secs(2);

#[test]
fn a_run_shows_the_last_lines_of_a_target_that_was_killed() {
    let suite = Suite::new()
        .script("echo my last words >&2; exec \"$@\"")
        .with("phases", ENDLESS);
    let process = suite.observe(&[]);
    suite.wait_measuring(&suite.results());
    suite
        .target_processes("relay")
        .iter()
        .for_each(|pid| signal_process(*pid, "KILL"));
    let ended = process.finish(STOP_MAX + GRACE);
    assert_code(&ended, 4);
    assert_holds(&ended.stdout, &["signal 9", "measure"]);
    assert_holds(&ended.stderr, &["my last words"]);
    let manifest = open(&suite, &suite.results());
    let phase = Phase::Measure;
    assert_eq!(manifest.outcome, RunOutcome::TargetDied { phase });
    assert_eq!(manifest.target.unwrap().signal, Some(9));
    suite.assert_nothing_left();
}

#[test]
fn a_run_whose_target_was_killed_loses_that_pair_and_repeats_it() {
    let suite = Suite::new();
    // The signal kills the first target of the second pair, and no other.
    let is_first = suite.is_first_of_pair(2);
    let script = format!("echo my last words >&2; {is_first} || trap '' USR1; exec \"$@\"");
    // Of five, two may be repeated.
    let suite = suite
        .script(&script)
        .with("timeline", "[{at: 100ms, signal: USR1}]")
        .with("phases", SHORT)
        .with("pairs", "5");
    let ended = suite.run(&[]).finish(LONG);
    // Short runs beside other tests need not come to anything.
    assert!([0, 1, 4].contains(&ended.code), "{}", ended.stderr);
    assert_holds(
        &ended.stderr,
        &[
            "pair 1 done",
            "pair 2 discarded: the target died",
            "pair 3 of ",
        ],
    );
    assert_holds(&ended.stdout, &["my last words"]);
    let has_died = |variant| {
        let folder = suite.capture_of(2, variant);
        folder.exists() && matches!(open(&suite, &folder).outcome, RunOutcome::TargetDied { .. })
    };
    assert!(has_died("one") || has_died("two"));
    for pair in [1, 3] {
        for variant in ["one", "two"] {
            let manifest = open(&suite, &suite.capture_of(pair, variant));
            assert_eq!(manifest.outcome, RunOutcome::Completed);
        }
    }
    suite.assert_nothing_left();
}

#[test]
fn a_target_that_ignores_sigterm_is_killed_and_its_run_counts() {
    // The shell ignores SIGTERM, and the relay, its child, does not receive it.
    let suite = Suite::new()
        .script("trap '' TERM; \"$@\" & wait; wait")
        .with("stop", "{grace: 500ms}")
        .with("phases", SHORT);
    let ended = suite.observe(&[]).finish(LONG);
    let manifest = open(&suite, &suite.results());
    assert_eq!(manifest.outcome, RunOutcome::Completed, "{}", ended.stderr);
    assert_holds(
        &manifest.warnings.join("\n"),
        &["did not end within its grace period and was killed"],
    );
    assert!(manifest.target.unwrap().killed);
    assert_holds(
        &ended.stdout,
        &["did not end within its grace period and was killed"],
    );
    suite.assert_nothing_left();
}

#[test]
fn a_grandchild_in_a_session_of_its_own_does_not_outlive_the_run() {
    let suite = Suite::new()
        .script("setsid sleep 300 & exec \"$@\"")
        .with("phases", SHORT);
    let ended = suite.observe(&[]).finish(LONG);
    let manifest = open(&suite, &suite.results());
    assert_eq!(manifest.outcome, RunOutcome::Completed, "{}", ended.stderr);
    assert_holds(&manifest.warnings.join("\n"), &["left 1 process behind"]);
    suite.assert_nothing_left();
}

#[test]
fn steps_of_the_timeline_happen_and_are_recorded() {
    let steps = "[{at: 100ms, note: here}, {at: 200ms, signal: STOP}, {at: 400ms, signal: CONT}]";
    let suite = Suite::new()
        .relay(&["--stall", "50ms@200ms"])
        .with("timeline", steps)
        .with("phases", SHORT);
    let ended = suite.observe(&[]).finish(LONG);
    let manifest = open(&suite, &suite.results());
    assert_eq!(manifest.outcome, RunOutcome::Completed, "{}", ended.stderr);
    let output = events(&suite.results());
    let expected = ["here", "sent Stop to the target", "sent Cont to the target"];
    let result: Vec<&String> = output
        .iter()
        .filter(|what| expected.contains(&what.as_str()))
        .collect();
    assert_eq!(result, expected, "{output:?}");
    suite.assert_nothing_left();
}

#[test]
fn a_target_that_is_stopped_at_the_end_of_its_run_still_ends() {
    let suite = Suite::new()
        .with("timeline", "[{at: 500ms, signal: STOP}]")
        .with("stop", "{grace: 20s}")
        .with("phases", SHORT);
    let ended = suite.observe(&[]).finish(LONG);
    let manifest = open(&suite, &suite.results());
    assert_eq!(manifest.outcome, RunOutcome::Completed, "{}", ended.stderr);
    assert!(!manifest.target.unwrap().killed);
    suite.assert_nothing_left();
}

#[test]
fn a_target_that_a_signal_stopped_is_named() {
    // A step gives the moment, and the target stops itself: a step that stops it is no finding.
    let suite = Suite::new()
        .script("trap 'kill -STOP $! $$' USR1; \"$@\" & wait; wait")
        .with("timeline", "[{at: 300ms, signal: USR1}]")
        .with("phases", "{warmup: 200ms, measure: 4s, drain: 100ms}");
    let ended = suite.observe(&[]).finish(LONG);
    assert_code(&ended, 4);
    assert_holds(&ended.stdout, &["target stopped"]);
    suite.assert_nothing_left();
}

/// Bytes of each of the logs of a test.
const LOG_LIMIT: u64 = 1 << 20;

#[test]
fn logs_of_a_target_are_cut_to_their_limit_with_a_warning() {
    let suite = Suite::new();
    let text = "target:\n  command: [sh, -c, \"echo first; (yes | head -c 300000000; echo last; echo ready >&2); \
                exec sleep 60\"]\n  log_limit: 1 MiB\n  ready: {log_line: ready}\n  stop: {grace: 1s}\n\
                phases: {ready: 120s, warmup: 100ms, measure: 300ms, drain: 100ms}\nworkload:\n  sinks: []\n";
    let text = text.replace(
        "sinks: []",
        &format!("sinks: [{{tcp: \"{}\"}}]", suite.sink),
    );
    suite.file("run.yaml", &text);
    let ended = suite.call(&["observe", "run.yaml", "--results", "results"]);
    let path = suite.results().join("target.stdout.log");
    let log =
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{error}: {}", ended.stderr));
    assert!(log.starts_with("first\ny\n"), "{}", &log[..20]);
    assert!(log.ends_with("y\nlast\n"));
    assert!(log.contains(" bytes of output dropped here]"));
    assert!(log.len() as u64 <= LOG_LIMIT + (64 << 10), "{}", log.len());
    assert_holds(&ended.stdout, &["output of the target was dropped"]);
    suite.assert_nothing_left();
}
