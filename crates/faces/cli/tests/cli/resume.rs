//! Finished pairs are never run again.

use std::fs;

use stillwell_capture::Capture;
use stillwell_testkit::wait_until;

use crate::suite::{LONG, STOP_MAX, Suite, assert_code, assert_holds};

const VARIANTS: [&str; 2] = ["one", "two"];

/// Marks that distinguish a capture from one that was made again.
fn fingerprints(suite: &Suite, pairs: &[u32]) -> Vec<String> {
    let runs = pairs
        .iter()
        .flat_map(|pair| VARIANTS.map(|variant| (*pair, variant)));
    runs.map(|(pair, variant)| {
        let folder = suite.capture_of(pair, variant);
        let written = fs::metadata(folder.join("manifest.json")).unwrap();
        let run = Capture::open(&folder).unwrap().manifest.run;
        format!("{run} {:?}", written.modified().unwrap())
    })
    .collect()
}

#[test]
fn a_run_that_was_killed_in_its_third_pair_goes_on_there() {
    let suite = Suite::new();
    // The first target of the third pair never becomes ready.
    let is_first = suite.is_first_of_pair(3);
    let script = format!("{is_first} && exec tail -f /dev/null; exec \"$@\"");
    let suite = suite
        .script(&script)
        .with(
            "phases",
            "{ready: 100s, warmup: 100ms, measure: 500ms, quiet: 50ms}",
        )
        .with("pairs", "6");
    let run = suite.run(&[]);
    // A zero byte ends each word of a command line: the script does not have these two words.
    let has_begun = || !suite.target_processes("tail\x00-f").is_empty();
    assert!(wait_until(LONG, has_begun), "{}", run.stderr());
    run.signal("KILL");
    assert_code(&run.finish(LONG), 137);
    // The kernel ends the target with the thread that started it.
    suite.assert_no_process(STOP_MAX);
    let before = fingerprints(&suite, &[1, 2]);

    let ended = suite.run(&["--resume"]).finish(LONG);
    // Short runs beside other tests need not come to anything: this is about
    // which of them are made.
    assert!([0, 1, 4].contains(&ended.code), "{}", ended.stderr);
    assert_holds(&ended.stderr, &["pairs 1, 2 are finished already"]);
    let begun = |pair: u32| ended.stderr.contains(&format!("pair {pair} of "));
    assert!(!begun(1) && !begun(2), "{}", ended.stderr);
    // The machine may prove unfit before the sixth: a third unreliable pair ends it.
    let last = (3..=9).take_while(|pair| begun(*pair)).last().unwrap_or(0);
    let whole =
        last >= 6 || (last >= 3 && ended.stderr.contains("too many pairs were discarded (3)"));
    assert!(whole, "{}", ended.stderr);
    assert_eq!(fingerprints(&suite, &[1, 2]), before);
    let pairs: Vec<u32> = (1..=last).collect();
    let all = fingerprints(&suite, &pairs);
    let discarded = suite
        .capture_of(3, "one")
        .ancestors()
        .nth(2)
        .unwrap()
        .join("discarded");
    assert!(discarded.join("pair-003-1").exists());

    // Once more, and there is nothing left to do.
    let ended = suite.run(&["--resume"]).finish(LONG);
    assert!(!ended.stderr.contains(", then "), "{}", ended.stderr);
    assert_eq!(fingerprints(&suite, &pairs), all);
}

#[test]
fn results_are_neither_overwritten_nor_mixed_with_those_of_another_plan() {
    let suite = Suite::new()
        .with("phases", "{warmup: 100ms, measure: 300ms, quiet: 50ms}")
        .with("pairs", "1");
    let _first = suite.run(&["--quiet"]).finish(LONG);
    let before = fingerprints(&suite, &[1]);

    let again = suite.run(&[]).finish(LONG);
    assert_code(&again, 2);
    assert_holds(&again.stderr, &["already contains results", "results"]);

    let second = suite.run(&["--resume", "--measure", "400ms"]).finish(LONG);
    assert_code(&second, 2);
    assert_holds(
        &second.stderr,
        &["the plan differs from that of", "measure"],
    );
    assert_eq!(fingerprints(&suite, &[1]), before);

    // Without a folder, the newest results that lie here are meant.
    let none = suite.call(&["run", "experiment", "--resume"]);
    assert_code(&none, 2);
    assert_holds(&none.stderr, &["no results to resume here"]);

    let nowhere = suite.call(&["run", "experiment", "--resume", "--results", "elsewhere"]);
    assert_code(&nowhere, 2);
    assert_holds(&nowhere.stderr, &["no results to resume"]);
}
