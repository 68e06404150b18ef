//! Folders of others as they are, with a program that the layout lacks.

use stillwell_capture::RunOutcome;
use stillwell_testkit::Process;

use crate::suite::{LONG, STILLWELL, Suite, assert_code, assert_holds, open};

const SEED: &str = "[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7, 9, 5]";

/// A program that says what it is shown, then is a relay.
fn shows(suite: &Suite) -> String {
    format!(
        "cat /etc/vector/vector.toml /data/words.txt >&2; test -s /etc/lading/lading.yaml && \
         echo kept >/var/lib/vector/state && exec {STILLWELL} relay --in tcp://{} --out tcp://{}",
        suite.listen, suite.sink
    )
}

/// The form of Vector's soaks of 2021.
fn soak(suite: &Suite, generator: &str) {
    let text = format!(
        "generator:\n  {generator}\nblackhole:\n  tcp: {{binding_addr: \"{}\"}}\n",
        suite.sink
    );
    suite.file("soaks/tests/one/lading.yaml", &text);
    suite.file("soaks/tests/one/vector.toml", "# the configuration\n");
    suite.file("soaks/tests/one/data/words.txt", "the data\n");
    suite.file(
        "soaks/tests/one/README.md",
        "# One\n\nTells what it measures.\n",
    );
}

fn tcp(suite: &Suite) -> String {
    format!(
        "tcp: {{seed: {SEED}, addr: \"{}\", variant: ascii, bytes_per_second: 1 MiB, \
         maximum_prebuild_cache_size_bytes: 2 MiB}}",
        suite.listen
    )
}

/// Returns true where folders may be mounted at fixed places.
fn is_permitted() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let is_root = status.lines().any(|line| line.starts_with("Uid:\t0\t"));
    if !is_root {
        println!("SKIPPED: layouts: this is not root");
    }
    is_root
}

// compat: SMP and soaks | soak folder | works
#[test]
fn a_soak_of_old_runs_with_all_that_it_is_shown() {
    if !is_permitted() {
        return;
    }
    let suite = Suite::new();
    soak(&suite, &tcp(&suite));
    let mut command = suite.stillwell(&["observe", "soaks", "--results", "results"]);
    command.args([
        "--warmup",
        "200ms",
        "--measure",
        "1s",
        "--",
        "/bin/sh",
        "-c",
        &shows(&suite),
    ]);
    let ended = Process::start(&mut command).finish(LONG);
    assert!(
        matches!(ended.code, 0 | 4),
        "{}\n{}",
        ended.stdout,
        ended.stderr
    );
    let manifest = open(&suite, &suite.results());
    assert_eq!(manifest.outcome, RunOutcome::Completed);
    let stderr = std::fs::read_to_string(suite.results().join("target.stderr.log")).unwrap();
    assert_holds(&stderr, &["# the configuration", "the data"]);
    suite.assert_nothing_left();
}

// compat: SMP and soaks | suite of soaks | works
#[test]
fn a_suite_of_soaks_takes_its_program_from_the_command_line() {
    let suite = Suite::new();
    soak(&suite, &tcp(&suite));
    let checked = suite.call(&["check", "soaks"]);
    assert_code(&checked, 2);
    assert_holds(&checked.stderr, &["--target-command"]);
    let checked = suite.call(&["check", "soaks", "--target-command", "vector --quiet"]);
    assert_code(&checked, 0);
    assert_holds(&checked.stdout, &["one"]);
}

/// Logs for a program that reads files lie where both see them, and nothing is left on
/// this host.
// compat: SMP and soaks | /smp-shared | works
#[test]
fn logs_below_smp_shared_are_the_runs_own() {
    if !is_permitted() {
        return;
    }
    let suite = Suite::new();
    let logs = format!(
        "file_gen: {{logrotate: {{seed: {SEED}, root: /smp-shared, concurrent_logs: 1, \
         maximum_bytes_per_log: 1 MiB, total_rotations: 2, max_depth: 0, variant: ascii, \
         bytes_per_second: 1 MiB, maximum_prebuild_cache_size_bytes: 1 MiB}}}}"
    );
    soak(&suite, &logs);
    let was_there = std::path::Path::new("/smp-shared").exists();
    let (looks, words) = (
        "until ls /smp-shared/* >/dev/null 2>&1; do :; done; echo sees logs >&2; exec tail -f /dev/null",
        [
            "--warmup",
            "200ms",
            "--measure",
            "6s",
            "--",
            "/bin/sh",
            "-c",
        ],
    );
    let mut command = suite.stillwell(&["observe", "soaks", "--results", "results"]);
    command.args(words).arg(looks);
    let ended = Process::start(&mut command).finish(LONG);
    assert!(
        matches!(ended.code, 0 | 4),
        "{}\n{}",
        ended.stdout,
        ended.stderr
    );
    let stderr = std::fs::read_to_string(suite.results().join("target.stderr.log")).unwrap();
    assert_holds(&stderr, &["sees logs"]);
    assert_eq!(std::path::Path::new("/smp-shared").exists(), was_there);
    suite.assert_nothing_left();
}

/// A run that is not offered so many CPUs says so.
// compat: SMP and soaks | cpu_allotment above the host's CPUs | differs | capped, with a note
#[test]
fn an_allotment_above_the_hosts_cores_is_capped_and_reported() {
    if !is_permitted() {
        return;
    }
    let suite = Suite::new();
    let text = format!(
        "generator:\n  - {}\nblackhole:\n  - tcp: {{binding_addr: \"{}\"}}\n",
        tcp(&suite),
        suite.sink
    );
    suite.file("cases/one/lading/lading.yaml", &text);
    suite.file(
        "cases/one/experiment.yaml",
        "target: {name: vector, command: /bin/true, cpu_allotment: 4000, memory_allotment: 900000 GiB}\n",
    );
    let mut command = suite.stillwell(&["observe", "cases/one", "--results", "results"]);
    command.args([
        "--warmup",
        "100ms",
        "--measure",
        "300ms",
        "--",
        STILLWELL,
        "relay",
    ]);
    let (input, output) = (
        format!("tcp://{}", suite.listen),
        format!("tcp://{}", suite.sink),
    );
    let ended = Process::start(command.args(["--in", &input, "--out", &output])).finish(LONG);
    assert!(
        matches!(ended.code, 0 | 4),
        "{}\n{}",
        ended.stdout,
        ended.stderr
    );
    let printed = format!("{}{}", ended.stdout, ended.stderr);
    assert_holds(&printed, &["4000 CPUs: ", " of memory: this host has "]);
}
