//! Two runs at once.

use std::path::Path;

use stillwell_capture::{Capture, Manifest, RunOutcome};
use stillwell_metric::{Metric, catalogue};
use stillwell_plan::placement::Wanted;
use stillwell_plan::step::{StepAction, TargetSignal};
use stillwell_plan::{Phase, StepPlan, TargetKind};
use stillwell_run::{ConductError, Interrupt, Progress, RunRequest, Together, conduct_together};
use stillwell_target::{new_network, online};
use stillwell_units::{Moment, Nanos, Seed};

use crate::fixture::{capture, request};

const SLICED: Together = Together::Sliced {
    turn_min: Nanos::from_millis(40),
    turn_max: Nanos::from_millis(120),
};
const SEED: Seed = Seed::from_bytes([7; 32]);
const SIGINT: i32 = 2;

/// Both runs of a pair, and what is left of them.
struct Pair {
    below: tempfile::TempDir,
    requests: [RunRequest; 2],
}

impl Pair {
    fn new() -> Self {
        let below = tempfile::tempdir().unwrap();
        let requests = ["baseline", "comparison"].map(|name| request(name, &below));
        Self { below, requests }
    }

    /// Conducts both, with progress to `listener`.
    fn conduct(
        &self,
        together: Together,
        interrupt: &Interrupt,
        event: &mut dyn FnMut(usize, Progress),
    ) -> [Manifest; 2] {
        conduct_together(self.requests.clone(), together, SEED, interrupt, event)
            .map(Result::unwrap)
    }

    fn outcomes(&self, together: Together) -> [RunOutcome; 2] {
        self.conduct(together, &Interrupt::new(), &mut |_, _| {})
            .map(|manifest| manifest.outcome)
    }
}

/// Returns true if runs at once are possible here; else prints that `test` is skipped.
fn can_be_had(test: &str) -> bool {
    let network = new_network();
    if let Err(error) = &network {
        println!("SKIPPED: {test}: {error}");
    }
    network.is_ok()
}

/// The last total of all series of `metric`.
fn total(capture: &Capture, metric: Metric) -> f64 {
    let series = capture.series.of(metric);
    let last = series.map(|(_, series)| series.points.last().unwrap().value.number().unwrap());
    last.sum()
}

/// Growth of `metric` while measuring.
fn grown(capture: &Capture, metric: Metric) -> f64 {
    let (start, end) = capture.manifest.measured().unwrap();
    let at = |series: &stillwell_capture::Series, moment: Moment| {
        let point = series.at_or_after(moment).unwrap();
        point.value.number().unwrap()
    };
    let series = capture.series.of(metric);
    let growths = series.map(|(_, series)| at(series, end) - at(series, start));
    growths.sum()
}

fn is_running(name: &Path) -> bool {
    let folders = std::fs::read_dir("/proc").unwrap().flatten();
    let mut lines = folders.filter_map(|folder| std::fs::read(folder.path().join("environ")).ok());
    let name = name.to_string_lossy();
    lines.any(|line| String::from_utf8_lossy(&line).contains(&*name))
}

#[test]
fn sliced_runs_have_equal_time_and_all_that_they_send_arrives() {
    if !can_be_had("sliced runs") {
        return;
    }
    let mut pair = Pair::new();
    // The target loses what it holds when it is stopped, and on a busy machine it pauses.
    for request in &mut pair.requests {
        request.plan.phases.quiet = Nanos::from_secs(4);
        request.plan.phases.drain = Nanos::from_secs(60);
    }
    let mut phases = [Vec::new(), Vec::new()];
    let manifests = pair.conduct(SLICED, &Interrupt::new(), &mut |run, event| {
        if let Progress::Phase { phase, .. } = event {
            phases[run].push(phase);
        }
    });
    assert_eq!(phases, [Phase::ALL; 2].map(|all| all.to_vec()));
    let mut active = Vec::new();
    for (request, manifest) in pair.requests.iter().zip(&manifests) {
        assert_eq!(manifest.outcome, RunOutcome::Completed);
        let capture = capture(request, manifest);
        active.push(total(&capture, catalogue::ACTIVE_TIME));
        let sent = total(&capture, catalogue::BYTES_WRITTEN);
        assert!(sent > 0.0);
        assert!((total(&capture, catalogue::BYTES_RECEIVED) - sent).abs() < 0.5);
        // The rate is one of the time on turn: it is requested and sent in full.
        let seconds = total(&capture, catalogue::ACTIVE_TIME) / 1e9;
        let requested = total(&capture, catalogue::REQUESTED_UNITS);
        assert!(
            (requested - 4e6 * seconds).abs() < 2.0,
            "{requested} in {seconds}"
        );
        assert!(grown(&capture, catalogue::ACTIVE_TIME) > 0.0);
        assert!(grown(&capture, catalogue::PARTNER_CPU) > 0.0);
    }
    assert!(
        active[0] > 0.0 && (active[0] - active[1]).abs() < 0.5,
        "{active:?}"
    );
}

#[test]
fn a_target_that_dies_ends_both_runs() {
    if !can_be_had("a target that dies") {
        return;
    }
    let mut pair = Pair::new();
    let [_, killed] = &mut pair.requests;
    killed.plan.timeline.push(StepPlan {
        at: Nanos::from_millis(200),
        action: StepAction::Signal(TargetSignal::Kill),
    });
    // Only a defect lets the other run go on for this time.
    for request in &mut pair.requests {
        request.plan.phases.measure = Nanos::from_secs(600);
    }
    let died = RunOutcome::TargetDied {
        phase: Phase::Measure,
    };
    let beside = RunOutcome::PartFailed {
        part: "the other run of the pair".to_owned(),
        reason: "its target died in measure".to_owned(),
    };
    let manifests = pair.conduct(SLICED, &Interrupt::new(), &mut |_, _| {});
    assert_eq!(
        manifests.each_ref().map(|m| m.outcome.clone()),
        [beside, died]
    );
    for (request, manifest) in pair.requests.iter().zip(&manifests) {
        capture(request, manifest);
    }
    assert!(manifests.iter().all(|manifest| manifest.target.is_some()));
}

#[test]
fn an_interrupt_ends_both_in_order() {
    if !can_be_had("an interrupt") {
        return;
    }
    let mut pair = Pair::new();
    for request in &mut pair.requests {
        request.plan.phases.measure = Nanos::from_secs(600);
        // By which what runs of it is found.
        if let TargetKind::Child(child) = &mut request.plan.target.kind {
            let variables = &mut child.environment.variables;
            variables.insert("BELOW".to_owned(), "{experiment}".to_owned());
        }
    }
    let interrupt = Interrupt::new();
    let mut was_running = false;
    let manifests = pair.conduct(SLICED, &interrupt, &mut |_, event| {
        if matches!(
            event,
            Progress::Phase {
                phase: Phase::Measure,
                ..
            }
        ) {
            // The second run measures perhaps after the interrupt.
            was_running |= is_running(pair.below.path());
            interrupt.raise(SIGINT);
        }
    });
    assert!(was_running);
    assert!(!is_running(pair.below.path()));
    for (request, manifest) in pair.requests.iter().zip(&manifests) {
        let interrupted = RunOutcome::Interrupted { signal: SIGINT };
        assert_eq!(manifest.outcome, interrupted);
        let last = manifest.phases.iter().map(|mark| mark.phase).max();
        assert_eq!(last, Some(Phase::Close));
        capture(request, manifest);
    }
}

#[test]
fn a_run_that_cannot_start_holds_the_other_not_up() {
    if !can_be_had("a run that cannot start") {
        return;
    }
    let mut pair = Pair::new();
    if let TargetKind::Child(child) = &mut pair.requests[0].plan.target.kind {
        child.program = "/nowhere/at/all".into();
    }
    let [first, beside] = pair.outcomes(SLICED);
    assert!(
        matches!(first, RunOutcome::CouldNotStart { .. }),
        "{first:?}"
    );
    let RunOutcome::PartFailed { reason, .. } = beside else {
        panic!("{beside:?}");
    };
    assert!(reason.starts_with("it could not start: "), "{reason}");
}

#[test]
fn a_run_without_a_capture_fails_the_other() {
    if !can_be_had("a run without a capture") {
        return;
    }
    let mut pair = Pair::new();
    pair.requests[1].folder = "/dev/null/capture".into();
    let results = conduct_together(
        pair.requests,
        SLICED,
        SEED,
        &Interrupt::new(),
        &mut |_, _| {},
    );
    let [Ok(first), Err(ConductError::Folder { .. })] = results else {
        panic!("{results:?}");
    };
    assert!(
        matches!(first.outcome, RunOutcome::PartFailed { .. }),
        "{:?}",
        first.outcome
    );
}

#[test]
fn resources_that_are_unavailable_together_are_reported_with_their_reason() {
    let mut pair = Pair::new();
    for request in &mut pair.requests {
        request.plan.isolation.network = Wanted::No;
    }
    for outcome in pair.outcomes(SLICED) {
        let RunOutcome::CouldNotStart { reason } = outcome else {
            panic!("{outcome:?}");
        };
        assert!(reason.contains("network namespace each"), "{reason}");
        assert!(reason.contains("the plan forbids it"), "{reason}");
    }
    let mut pair = Pair::new();
    pair.requests[1].plan.phases.measure = Nanos::from_secs(9);
    for outcome in pair.outcomes(SLICED) {
        let RunOutcome::CouldNotStart { reason } = outcome else {
            panic!("{outcome:?}");
        };
        assert!(reason.contains("of one length"), "{reason}");
    }
}

#[test]
fn a_duet_has_cpus_of_its_own_or_is_refused() {
    if !can_be_had("a duet") {
        return;
    }
    let pair = Pair::new();
    let manifests = pair.conduct(Together::Duet, &Interrupt::new(), &mut |_, _| {});
    if online().len() < 4 {
        for manifest in manifests {
            let RunOutcome::CouldNotStart { reason } = manifest.outcome else {
                panic!("{:?}", manifest.outcome);
            };
            let available = format!("may use {}: ", online().len());
            assert!(reason.contains(&available), "{reason}");
        }
        return;
    }
    let [first, second] = manifests.each_ref().map(|manifest| {
        assert_eq!(manifest.outcome, RunOutcome::Completed);
        manifest.target_cpus.clone().unwrap()
    });
    assert!(
        first.iter().all(|cpu| !second.contains(cpu)),
        "{first:?} {second:?}"
    );
    for (request, manifest) in pair.requests.iter().zip(&manifests) {
        let capture = capture(request, manifest);
        assert_eq!(capture.series.of(catalogue::ACTIVE_TIME).count(), 0);
    }
}
