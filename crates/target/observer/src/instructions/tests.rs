use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use stillwell_metric::Metric;

use super::*;
use crate::target_tree::process::numbered;

fn threads(pid: u32) -> BTreeSet<u32> {
    numbered(&Path::new("/proc").join(pid.to_string()).join("task")).collect()
}

fn value(samples: &[Sample], metric: Metric) -> Option<f64> {
    let sample = samples.iter().find(|sample| sample.name == metric.into());
    sample?.value.number()
}

fn sampled(reader: &mut InstructionReader) -> Vec<Sample> {
    let mut samples = Vec::new();
    reader.sample(&mut samples);
    samples
}

/// A shell that does one step for each line of its input, and prints a line after it.
struct Steps {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Steps {
    fn run(step: &str) -> Self {
        let script = format!("while read -r line; do {step}; echo done; done");
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut steps = Self { child, lines };
        steps.step();
        steps
    }

    fn step(&mut self) {
        writeln!(self.child.stdin.as_mut().unwrap(), "go").unwrap();
        self.lines.next().unwrap().unwrap();
    }

    /// CPU time of its ended children and itself, in nanoseconds; exact to some ticks of 10 ms.
    fn cpu_nanos(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields = stat.rsplit_once(") ").unwrap().1;
        let ticks = fields.split(' ').skip(11).take(4);
        ticks
            .map(|field| field.parse::<f64>().unwrap())
            .sum::<f64>()
            * 1e7
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

/// The way through the kernel, with an event that every machine has: its CPU time. The children start and end
/// between two readings, so only `inherit` can count them.
#[test]
fn children_that_start_and_end_between_readings_are_counted() {
    let spin = "(i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done)";
    let mut steps = Steps::run(spin);
    let mut reader = InstructionReader::of_event(CountedEvent::TaskClock);
    let before = threads(steps.child.id());
    reader.open(&before);
    assert_eq!(reader.obstacle, None);
    assert!(reader.accept(&before, &threads(steps.child.id())));
    assert!(!reader.is_waiting());
    let (first, cpu) = (sampled(&mut reader), steps.cpu_nanos());
    steps.step();
    let (second, used) = (sampled(&mut reader), steps.cpu_nanos() - cpu);
    let counted = value(&second, metric::TARGET_INSTRUCTIONS).unwrap()
        - value(&first, metric::TARGET_INSTRUCTIONS).unwrap();
    assert!(used > 1e8, "{used}");
    let ticks = 3e7;
    assert!(
        (counted - used).abs() < 0.1 * used + ticks,
        "{counted} instead of {used}"
    );
    // An event of the scheduler shares no counter.
    assert_eq!(
        value(&second, metric::TARGET_COUNTER_ENABLED).map(f64::to_bits),
        value(&second, metric::TARGET_COUNTER_RUNNING).map(f64::to_bits)
    );
}

#[test]
fn a_thread_that_starts_while_counters_are_opened_has_them_opened_again() {
    let steps = Steps::run(":");
    let mut reader = InstructionReader::of_event(CountedEvent::TaskClock);
    let before = threads(steps.child.id());
    reader.open(&before);
    let mut now = before.clone();
    now.insert(u32::MAX);
    assert!(!reader.accept(&before, &now));
    assert!(reader.is_waiting() && reader.counters.is_empty());
    let samples = sampled(&mut reader);
    let state = CountingState::of_labels(&samples[0].labels);
    let expected = CountingState::None(CountingObstacle::ThreadsStarting);
    assert_eq!((samples.len(), state), (1, Some(expected)));
    reader.open(&before);
    // A thread that ended is no reason.
    now.clear();
    assert!(reader.accept(&before, &now));
    assert_eq!(sampled(&mut reader).len(), 4);
}

#[test]
fn totals_stay_where_the_target_starts_again() {
    let mut steps = Steps::run("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done");
    let mut reader = InstructionReader::of_event(CountedEvent::TaskClock);
    let before = threads(steps.child.id());
    reader.open(&before);
    assert!(reader.accept(&before, &before));
    steps.step();
    reader.detach();
    assert!(reader.is_waiting());
    let counted = reader.totals;
    assert!(counted.count > 0);
    let again = Steps::run(":");
    let before = threads(again.child.id());
    reader.open(&before);
    assert!(reader.accept(&before, &before));
    let samples = sampled(&mut reader);
    let total = value(&samples, metric::TARGET_INSTRUCTIONS).unwrap();
    assert!(total >= stillwell_units::float_from_u64(counted.count));
}

#[test]
fn too_many_threads_are_an_obstacle_that_does_not_pass() {
    let mut reader = InstructionReader::of_event(CountedEvent::TaskClock);
    reader.limit = 1;
    let before = BTreeSet::from([1, 2]);
    reader.open(&before);
    assert!(reader.accept(&before, &before));
    assert_eq!(
        reader.obstacle,
        Some(CountingObstacle::TooManyThreads { limit: 1 })
    );
    assert!(!reader.is_waiting());
}

/// On a machine with a counter it counts, and on any other there is a reason: never a panic, never silence.
#[test]
fn this_machine_counts_instructions_or_has_a_reason() {
    let steps = Steps::run(":");
    let mut reader = InstructionReader::new();
    let before = threads(steps.child.id());
    reader.open(&before);
    reader.accept(&before, &before);
    let samples = sampled(&mut reader);
    let state = CountingState::of_labels(&samples[0].labels).unwrap();
    assert_eq!(state, instruction_counting());
    let has_counts = value(&samples, metric::TARGET_INSTRUCTIONS).is_some();
    assert_eq!(has_counts, !matches!(state, CountingState::None(_)));
}

#[test]
fn errors_become_reasons() {
    use CountingObstacle as Obstacle;
    for (errno, paranoid, of, expected) in [
        (
            libc::ENOENT,
            Some(2),
            CountedProcess::Target,
            Obstacle::NoCounter,
        ),
        (
            libc::ENODEV,
            None,
            CountedProcess::Target,
            Obstacle::NoCounter,
        ),
        (
            libc::EOPNOTSUPP,
            Some(2),
            CountedProcess::Itself,
            Obstacle::NoCounter,
        ),
        (
            libc::ENOSYS,
            None,
            CountedProcess::Itself,
            Obstacle::NoKernelSupport,
        ),
        (
            libc::EACCES,
            Some(3),
            CountedProcess::Target,
            Obstacle::NotPermitted { paranoid: 3 },
        ),
        (
            libc::EACCES,
            Some(4),
            CountedProcess::Itself,
            Obstacle::NotPermitted { paranoid: 4 },
        ),
        (
            libc::EACCES,
            Some(2),
            CountedProcess::Target,
            Obstacle::OtherUser,
        ),
        (
            libc::EACCES,
            None,
            CountedProcess::Itself,
            Obstacle::Sandboxed,
        ),
        (
            libc::EPERM,
            Some(1),
            CountedProcess::Target,
            Obstacle::Sandboxed,
        ),
        (
            libc::EMFILE,
            Some(2),
            CountedProcess::Target,
            Obstacle::TooManyFiles,
        ),
    ] {
        let error = io::Error::from_raw_os_error(errno);
        assert_eq!(obstacle(&error, paranoid, of), expected, "{error}");
    }
}

#[test]
fn an_unknown_error_is_shown() {
    let error = io::Error::from_raw_os_error(libc::EINVAL);
    let unknown = obstacle(&error, None, CountedProcess::Target);
    assert!(matches!(unknown, CountingObstacle::Refused { .. }));
}
