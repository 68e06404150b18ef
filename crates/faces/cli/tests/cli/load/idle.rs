//! Idle strategies, CPUs, and requests in flight.

use std::collections::BTreeSet;
use std::process::Command;

use stillwell_testkit::wait_until;

use super::{LONG, Process, STILLWELL};
use crate::both_ends::ends::{Serving, load};

/// Cost of a load that mostly waits, in nanoseconds as it accounts for its thread itself:
/// its CPU, and the time in which it needed one and had none.
fn cost_of(strategy: &str) -> (u64, u64) {
    let server = Serving::start(&[]);
    let strategy = format!("--idle-strategy={strategy}");
    let report = load(&[&server.url, "--rate=2k/s", "-n4000", "-c1", &strategy]);
    server.stop();
    let worker = &report.value["health"]["workers"][0];
    let cost = |name: &str| worker[name].as_u64().unwrap();
    (cost("cpu_ns"), cost("run_delay_ns"))
}

/// Spinning takes up to 50 us of CPU before each request, which sleeping leaves to
/// others; what requests cost by themselves is the same. A thread that wakes up late has
/// nothing left to spin for: only undisturbed loads are compared.
#[test]
fn spinning_costs_cpu_and_sleeping_does_not() {
    for _ in 0..5 {
        let ((spin, spin_delay), (sleep, sleep_delay)) = (cost_of("spin"), cost_of("sleep"));
        if spin_delay.max(sleep_delay) * 20 < spin.min(sleep) {
            assert!(spin * 5 > sleep * 6, "{spin} spinning, {sleep} sleeping");
            return;
        }
    }
    println!("DISTURBED: spinning_costs_cpu_and_sleeping_does_not: others use this host");
}

/// A server that fails every request that comes while another request is under way.
#[test]
fn as_many_requests_are_under_way_on_a_connection_as_may_be() {
    let crowded = "--error=active_requests > 1 ? 503 : false";
    for (streams, is_crowded) in [("1", false), ("3", true)] {
        let server = Serving::start(&["--delay=20ms", crowded]);
        let words = ["-n9", "-c1", "--protocol=http2", "--streams", streams];
        let report = load(&[[server.url.as_str()].as_slice(), &words].concat());
        server.stop();
        assert_eq!(report.ended(), 9);
        let failed = report.outcome("ok") < 9;
        assert_eq!(failed, is_crowded, "{streams}: {:?}", report.outcomes());
    }
}

/// The CPUs that each thread of `process` may run on, as the kernel lists them.
fn cpus_of(process: &Process) -> BTreeSet<String> {
    let folder = format!("/proc/{}/task", process.id());
    let threads = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let statuses =
        threads.filter_map(|value| std::fs::read_to_string(value.path().join("status")).ok());
    let lists = statuses.filter_map(|status| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        line.map(|list| list.trim().to_owned())
    });
    lists.collect()
}

#[test]
fn threads_stay_on_the_cpus_that_are_named() {
    let server = Serving::start(&[]);
    let mut command = Command::new(STILLWELL);
    command.args([
        "load",
        &server.url,
        "--rate=10/s",
        "-d60s",
        "-c2",
        "--cpus=0",
        "--quiet",
    ]);
    let process = Process::start(&mut command);
    let is_there = wait_until(LONG, || cpus_of(&process).contains("0"));
    process.signal("INT");
    let ended = process.finish(LONG);
    server.stop();
    assert!(is_there, "no thread is on CPU 0 alone: {}", ended.stderr);
}

/// It sent nothing and called the load invalid.
#[test]
fn a_cpu_that_there_is_none_of_is_a_mistake_of_the_command() {
    let ended = super::load(&["http://127.0.0.1:9/", "-n1", "-c1", "--cpus=999"]);
    assert_eq!(ended.code, 2, "{}{}", ended.stdout, ended.stderr);
    let expected = "--cpus names CPU 999, which this process may not use: name some of 0";
    assert!(ended.stderr.contains(expected), "{}", ended.stderr);
}
