//! Tests of waits and pauses.

use stillwell_plan::GoalMetric;
use stillwell_verdict::synthetic;

use super::*;

fn busy(foreign_share: f64) -> HostUse {
    HostUse {
        foreign_share,
        pressure: 0.0,
    }
}

/// Runs of 25 s, up to 20 pairs without confirmation: more than ten minutes.
fn plan() -> ExperimentPlan {
    let goals = vec![stillwell_plan::GoalPlan::new(GoalMetric::CpuPerEvent)];
    synthetic::plan("one", goals)
}

/// Waits on a host whose use is the next of `levels` at each look. Returns the time waited
/// and the announced limit.
fn wait(quiet: &mut QuietWait, levels: impl Fn(u32) -> f64) -> (u64, Option<u64>) {
    let (mut looks, mut limit) = (0, None);
    let waited = quiet.wait(
        |_| {
            looks += 1;
            Some(busy(levels(looks)))
        },
        |_, up_to| limit = Some(up_to.as_secs_f64().round()),
    );
    let seconds = |length: f64| stillwell_units::floor_to_u64(length);
    (seconds(waited.as_secs_f64()), limit.map(seconds))
}

#[test]
fn a_quiet_machine_is_not_waited_for() {
    let mut quiet = QuietWait::new(&plan());
    assert_eq!(wait(&mut quiet, |_| 0.08), (0, None));
    assert_eq!(quiet.wait(|_| None, |_, _| unreachable!()), Nanos::ZERO);
}

#[test]
fn a_wait_ends_when_others_end() {
    let mut quiet = QuietWait::new(&plan());
    let ends_after_five = |look| if look > 5 { 0.02 } else { 0.6 };
    assert_eq!(wait(&mut quiet, ends_after_five), (5, Some(60)));
    // The next pair may wait as long.
    assert_eq!(wait(&mut quiet, ends_after_five), (5, Some(60)));
}

#[test]
fn a_machine_that_is_always_busy_is_waited_for_once() {
    let mut quiet = QuietWait::new(&plan());
    assert_eq!(wait(&mut quiet, |_| 0.45), (60, Some(60)));
    assert_eq!(wait(&mut quiet, |_| 0.45), (0, None));
    assert_eq!(wait(&mut quiet, |_| 0.50), (0, None));
    // Busier than usual: again, for less.
    assert_eq!(wait(&mut quiet, |_| 0.90), (30, Some(30)));
    assert_eq!(wait(&mut quiet, |_| 0.95), (0, None));
}

#[test]
fn all_waits_are_a_quarter_of_the_time_at_most() {
    let mut quiet = QuietWait::new(&plan());
    let mut total = 0;
    for pair in 0..100_u32 {
        let level = if pair % 2 == 0 { 0.01 } else { 0.5 };
        // Each wait ends well, after most of a minute.
        total += wait(&mut quiet, |look| if look > 50 { level } else { 0.9 }).0;
    }
    assert!((100..=150).contains(&total), "{total}");
}

#[test]
fn pauses_are_uniform_up_to_a_fifth_of_a_run_and_follow_from_the_seed() {
    let (suite, plan) = (Seed::from_number(1), plan());
    let phases = &plan.run_plan.phases;
    let run = (phases.warmup + phases.measure + phases.quiet).as_secs_f64();
    let pause = |pair, position| {
        pause_before(&suite, &plan, (RunStage::Search, pair, position)).as_secs_f64()
    };
    let pauses: Vec<f64> = (1..=500)
        .flat_map(|pair| [pause(pair, 0), pause(pair, 1)])
        .collect();
    assert!(
        pauses
            .iter()
            .all(|length| (0.0..=run / 5.0).contains(length))
    );
    let mean = pauses.iter().sum::<f64>() / 1000.0;
    assert!((mean / run - 0.1).abs() < 0.01, "{mean} of {run}");
    assert!((pause(1, 0) - pause(1, 0)).abs() < 1e-12);
    let confirm = pause_before(&suite, &plan, (RunStage::Confirm, 1, 0)).as_secs_f64();
    assert!((pause(1, 0) - confirm).abs() > 1e-12);
}

#[test]
fn idle_time_is_not_busy() {
    let text = "cpu  10 2 3 100 5 1 1 4 7 0\ncpu0 1 1 1 1 1 1 1 1\n";
    assert_eq!(CpuTicks::parse(text), Some(CpuTicks { busy: 21, all: 126 }));
    assert_eq!(CpuTicks::parse("intr 1"), None);
}

#[test]
fn this_host_can_be_watched() {
    let watched = HostUse::watch(Nanos::from_millis(20), &Interrupt::new());
    let level = watched.map(HostUse::level);
    assert!(
        level.is_none_or(|level| (0.0..=1.0).contains(&level)),
        "{level:?}"
    );
    let interrupt = Interrupt::new();
    interrupt.raise(2);
    assert_eq!(HostUse::watch(Nanos::from_secs(60), &interrupt), None);
}
