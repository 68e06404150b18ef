//! A relay that keeps what it holds on a disk which becomes full, or slow, and well
//! again.

use super::{Way, run_for};
use crate::disks::{assert_nothing_mounted, may_mount};
use crate::suite::{Suite, assert_code, assert_holds};

const DISK: &str = "disks: [{path: \"{state}/disk\"}]\n";

/// The relay writes between two steps even where it gets no CPU for seconds.
const LENGTHS: &str = "measure: 5s, quiet: 4s";

/// A relay whose buffer lies on a disk of the run.
fn buffered(suite: &Suite) -> Way {
    Way {
        words: ", --buffer-dir, \"{state}/disk/buffer\", --fsync, 5ms".to_owned(),
        ..Way::tcp(suite)
    }
}

#[test]
fn a_disk_that_is_full_for_a_while_holds_a_relay_up_and_loses_nothing() {
    let Some(_mounts) = may_mount("full disk on the timeline") else {
        return;
    };
    let suite = Suite::new();
    let steps = "[{at: 300ms, disk: {path: \"{state}/disk\", do: full}}, \
                 {at: 3800ms, disk: {path: \"{state}/disk\", do: restore}}]";
    let run = run_for(LENGTHS, &suite, &buffered(&suite), steps, DISK);
    run.assert_accounted();
    assert_eq!(
        (run.count("lost"), run.count("duplicated")),
        (0, 0),
        "{}",
        run.shown
    );
    assert!(run.series("disk_writes_refused") > 0.0, "{}", run.shown);
    // Nothing could be kept meanwhile.
    run.assert_held_up("full", "as in its plan");
    let output = [
        "disk {state}/disk: full",
        "disk {state}/disk: as in its plan",
    ];
    assert_holds(&run.shown, &output);
    assert_nothing_mounted(&suite);
}

#[test]
fn a_disk_that_is_slow_for_a_while_holds_a_relay_up_until_it_is_well_again() {
    let Some(_mounts) = may_mount("slow disk on the timeline") else {
        return;
    };
    let suite = Suite::new();
    // An hour, of which only the part before the next step is waited for.
    let steps = "[{at: 300ms, disk: {path: \"{state}/disk\", do: {fsync_delay: 1h}}}, \
                 {at: 3800ms, disk: {path: \"{state}/disk\", do: restore}}]";
    let run = run_for(LENGTHS, &suite, &buffered(&suite), steps, DISK);
    run.assert_accounted();
    assert_eq!(
        (run.count("lost"), run.count("duplicated")),
        (0, 0),
        "{}",
        run.shown
    );
    run.assert_held_up("longer", "as in its plan");
    assert!(run.series("disk_fsyncs") > 0.0, "{}", run.shown);
    assert_holds(&run.shown, &["disk {state}/disk: fsync takes 1h longer"]);
    assert_nothing_mounted(&suite);
}

#[test]
fn a_step_on_a_disk_that_is_not_there_is_reported_by_its_place() {
    let suite = Suite::new();
    let text = format!(
        "target: {{command: [\"{{self}}\", relay, --in, \"tcp://{}\"]}}\n\
         workload: {{generators: [{{tcp: \"{}\", payload: ascii, rate: 1/s}}]}}\n{DISK}\
         timeline: [{{at: 1s, disk: {{path: \"{{state}}/dsk\", do: full}}}}]\n",
        suite.listen, suite.listen
    );
    suite.file("run.yaml", &text);
    let ended = suite.call(&["observe", "run.yaml", "--results", "results"]);
    assert_code(&ended, 2);
    assert_holds(
        &ended.stderr,
        &[
            "W218",
            "there is no disk `{state}/dsk`",
            "one of: {state}/disk",
        ],
    );
}
