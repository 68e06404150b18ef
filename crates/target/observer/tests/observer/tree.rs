//! Resource use of a process tree.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use stillwell_metric::{Metric, Sample, catalogue as metric};
use stillwell_observer::{TargetProbe, TargetReader};

/// Uses a CPU for more than half a second, then says how much it used.
const SPIN: &str = "spin() { i=0; while [ $i -lt 700000 ]; do i=$((i+1)); done; times; }; ";

/// A shell that lives until it is dropped.
struct Shell {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Shell {
    fn run(script: &str) -> Self {
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Output of `times` about the first process, in nanoseconds: two values
    /// such as `0m1.250000s`.
    fn times(&mut self) -> f64 {
        let line = self.lines.next().unwrap().unwrap();
        // The second line is of its children.
        self.lines.next();
        let seconds = line.split_whitespace().map(|time| {
            let (minutes, seconds) = time.split_once('m').unwrap();
            let seconds: f64 = seconds.trim_end_matches('s').parse().unwrap();
            minutes.parse::<f64>().unwrap() * 60.0 + seconds
        });
        seconds.sum::<f64>() * 1e9
    }

    /// Waits until its first process waits.
    fn wait_for_rest(&self) {
        let path = format!("/proc/{}/stat", self.child.id());
        while !std::fs::read_to_string(&path).unwrap().contains(") S ") {
            std::thread::yield_now();
        }
    }

    fn wait_for_line(&mut self) {
        self.lines.next().unwrap().unwrap();
    }

    fn reader(&self) -> TargetReader {
        let probe = TargetProbe {
            pid: self.child.id(),
            ..TargetProbe::default()
        };
        TargetReader::new(Path::new("/proc"), probe)
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // Its children see the end of their input and end too.
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

fn value(samples: &[Sample], metric: Metric) -> f64 {
    let sample = samples.iter().find(|sample| sample.name == metric.into());
    sample.and_then(|sample| sample.value.number()).unwrap()
}

/// Details of the tree as it is now.
fn sample(reader: &mut TargetReader) -> Vec<Sample> {
    let mut samples = Vec::new();
    reader.sample(true, &mut samples);
    samples
}

fn assert_near(result: f64, expected: f64) {
    assert!(
        (result / expected - 1.0).abs() < 0.05,
        "{result} instead of {expected}"
    );
}

#[test]
fn a_spinning_process_used_the_time_that_it_measures() {
    let mut shell = Shell::run(&format!("{SPIN} spin; read -r end"));
    let used = shell.times();
    shell.wait_for_rest();
    let samples = sample(&mut shell.reader());
    assert_near(value(&samples, metric::TARGET_CPU), used);
    assert_near(
        value(&samples, metric::TARGET_CPU_USER) + value(&samples, metric::TARGET_CPU_SYSTEM),
        used,
    );
    for metric in [metric::TARGET_PROCESSES, metric::TARGET_THREADS] {
        assert_eq!(value(&samples, metric).to_bits(), 1.0_f64.to_bits());
    }
    for metric in [
        metric::TARGET_RSS,
        metric::TARGET_PSS,
        metric::TARGET_RSS_PEAK,
        metric::TARGET_FDS,
        metric::TARGET_FAULTS_MINOR,
        metric::TARGET_SWITCHES_VOLUNTARY,
    ] {
        assert!(value(&samples, metric) > 0.0, "{}", metric.name);
    }
}

// compat: lading, series | process_skipped | refused | no process is skipped; those that only forked count too
#[test]
fn a_tree_is_the_sum_of_its_processes() {
    let script = "exec 3<&0; (spin; read -r end <&3) & (read -r end <&3) & wait";
    let mut shell = Shell::run(&format!("{SPIN} {script}"));
    let used = shell.times();
    let samples = sample(&mut shell.reader());
    assert_near(value(&samples, metric::TARGET_CPU), used);
    assert_eq!(
        value(&samples, metric::TARGET_PROCESSES).to_bits(),
        3.0_f64.to_bits()
    );
}

#[test]
fn what_ended_children_used_is_counted() {
    let mut shell = Shell::run(&format!("{SPIN} (spin); echo done; read -r end"));
    let used = shell.times();
    shell.wait_for_line();
    assert_near(
        value(&sample(&mut shell.reader()), metric::TARGET_CPU),
        used,
    );
}

#[test]
fn what_was_seen_of_a_tree_stays_in_its_totals() {
    let mut shell = Shell::run(&format!("{SPIN} spin; read -r end"));
    let used = shell.times();
    let mut reader = shell.reader();
    let before = value(&sample(&mut reader), metric::TARGET_CPU);
    assert_near(before, used);
    drop(shell);
    let after = sample(&mut reader);
    assert!(value(&after, metric::TARGET_CPU) >= before);
    assert_eq!(value(&after, metric::TARGET_PROCESSES).to_bits(), 0);
}

#[test]
#[ignore = "measures, in release: cargo test --release -- --ignored --nocapture beat"]
fn a_beat_over_fifty_processes_is_cheap() {
    let children = "(read -r end <&3) & ".repeat(49);
    let mut shell = Shell::run(&format!("exec 3<&0; {children} echo ready; wait"));
    shell.wait_for_line();
    let mut reader = shell.reader();
    let mut samples = Vec::new();
    for is_detailed in [false, true] {
        reader.sample(is_detailed, &mut samples);
        let before = stillwell_scope::clock::thread_cpu();
        for _ in 0..100 {
            samples.clear();
            reader.sample(is_detailed, &mut samples);
        }
        let used = stillwell_scope::clock::thread_cpu().saturating_sub(before);
        println!(
            "detailed {is_detailed}: {} processes, {} µs per beat",
            value(&samples, metric::TARGET_PROCESSES),
            used.as_u64() / 100_000
        );
    }
    let budget = 50.0;
    assert!(value(&samples, metric::TARGET_PROCESSES) >= budget);
}
