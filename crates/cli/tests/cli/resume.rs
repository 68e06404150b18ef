//! Finished pairs are never run again.

use std::fs;
use std::time::Duration;

use stillwell_capture::Capture;
use stillwell_testkit::wait_until;

use crate::lab::{LONG, Lab, assert_code, assert_holds};

const VARIANTS: [&str; 2] = ["one", "two"];

/// What tells a capture from one that was made again.
fn fingerprints(lab: &Lab, pairs: &[u32]) -> Vec<String> {
    let runs = pairs
        .iter()
        .flat_map(|pair| VARIANTS.map(|variant| (*pair, variant)));
    runs.map(|(pair, variant)| {
        let folder = lab.capture_of(pair, variant);
        let written = fs::metadata(folder.join("manifest.json")).unwrap();
        let run = Capture::open(&folder).unwrap().manifest.run;
        format!("{run} {:?}", written.modified().unwrap())
    })
    .collect()
}

#[test]
fn a_run_that_was_killed_in_its_third_pair_goes_on_there() {
    let lab = Lab::new()
        .with("phases", "{warmup: 100ms, measure: 500ms, quiet: 50ms}")
        .with("pairs", "6");
    let run = lab.run(&[]);
    let third = || VARIANTS.iter().any(|v| lab.capture_of(3, v).exists());
    let running = || third() && !lab.subjects("relay").is_empty();
    assert!(wait_until(LONG, running), "{}", run.stderr());
    run.signal("KILL");
    assert_code(&run.finish(LONG), 137);
    // The kernel ends the subject with the thread that started it.
    lab.assert_no_process(Duration::from_secs(5));
    let before = fingerprints(&lab, &[1, 2]);

    let ended = lab.run(&["--resume"]).finish(LONG);
    // Short runs beside other tests need not come to anything: this is about
    // which of them are made.
    assert!([0, 1, 4].contains(&ended.code), "{}", ended.stderr);
    assert_holds(
        &ended.stderr,
        &["pairs 1, 2 are finished already", "pair 6 done"],
    );
    assert!(!ended.stderr.contains("pair 2 of 6"), "{}", ended.stderr);
    assert_holds(
        &ended.stderr,
        &["pair 3 of 6", "pair 4 of 6", "pair 5 of 6", "pair 6 of 6"],
    );
    assert_eq!(fingerprints(&lab, &[1, 2]), before);
    let all = fingerprints(&lab, &[1, 2, 3, 4, 5, 6]);
    let discarded = lab
        .capture_of(3, "one")
        .ancestors()
        .nth(2)
        .unwrap()
        .join("discarded");
    assert!(discarded.join("pair-003-1").exists());

    // Once more, and there is nothing left to do.
    let ended = lab.run(&["--resume"]).finish(LONG);
    assert!(!ended.stderr.contains("of 6:"), "{}", ended.stderr);
    assert_eq!(fingerprints(&lab, &[1, 2, 3, 4, 5, 6]), all);
}

#[test]
fn results_are_neither_overwritten_nor_mixed_with_those_of_another_plan() {
    let lab = Lab::new()
        .with("phases", "{warmup: 100ms, measure: 300ms, quiet: 50ms}")
        .with("pairs", "1");
    let _first = lab.run(&["--quiet"]).finish(LONG);
    let before = fingerprints(&lab, &[1]);

    let again = lab.run(&[]).finish(LONG);
    assert_code(&again, 2);
    assert_holds(&again.stderr, &["holds results already", "results"]);

    let other = lab.run(&["--resume", "--measure", "400ms"]).finish(LONG);
    assert_code(&other, 2);
    assert_holds(&other.stderr, &["the plan is not the one", "measure"]);
    assert_eq!(fingerprints(&lab, &[1]), before);

    // Without a folder, the newest results that lie here are meant.
    let none = lab.call(&["run", "experiment", "--resume"]);
    assert_code(&none, 2);
    assert_holds(&none.stderr, &["no results to resume here"]);

    let nowhere = lab.call(&["run", "experiment", "--resume", "--results", "elsewhere"]);
    assert_code(&nowhere, 2);
    assert_holds(&nowhere.stderr, &["no results to resume"]);
}
