//! Waiting for a quiet machine before a pair, and random pauses before its runs.

use std::fs;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};

use stillwell_capture::RunStage;
use stillwell_plan::{ExperimentPlan, PhasesPlan};
use stillwell_run::Interrupt;
use stillwell_scope::clock;
use stillwell_units::{Nanos, Seed, float_from_u64};

use crate::order::of_stage;

/// Share of the host's CPU time used by others, or of the time in which tasks waited for
/// a CPU, above which a pair waits.
const QUIET_SHARE: f64 = 0.10;

/// Longest wait before one pair.
const WAIT_MAX: Nanos = Nanos::from_secs(60);

/// All waits of an experiment take at most this part of its time.
const WAIT_PART: u64 = 4;

/// Time over which the host is watched before a pair.
const FIRST_LOOK: Nanos = Nanos::from_millis(200);

/// Time over which the host is watched again and again during a wait.
const NEXT_LOOK: Nanos = Nanos::SECOND;

/// A pause before a run takes at most this part of the run, and [`PAUSE_MAX`].
const PAUSE_PART: u64 = 5;

/// Longest pause before a run.
const PAUSE_MAX: Nanos = Nanos::from_secs(10);

/// Use of the host over a short time in which Stillwell runs nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostUse {
    /// Share of the host's CPU time that other programs used.
    pub foreign_share: f64,
    /// Share of the time in which a task waited for a CPU; 0 where the kernel does not say.
    pub pressure: f64,
}

impl HostUse {
    /// Watches the host for `over`, or until `interrupt`. `None` where the kernel does not
    /// say.
    pub(crate) fn watch(over: Nanos, interrupt: &Interrupt) -> Option<Self> {
        let (ticks, started) = (CpuTicks::read()?, clock::now());
        let (waited, self_cpu) = (pressure(), clock::process_cpu());
        pause(over, interrupt);
        if interrupt.signal().is_some() {
            return None;
        }
        let elapsed = clock::now().since(started).as_secs_f64();
        let [busy, all] = CpuTicks::read()?.since(ticks);
        let busy_seconds = busy - clock::process_cpu().saturating_sub(self_cpu).as_secs_f64();
        let pressed = pressure().zip(waited);
        let pressed = pressed.map_or(0.0, |(after, before)| {
            after.saturating_sub(before).as_secs_f64()
        });
        (all > 0.0 && elapsed > 0.0).then(|| Self {
            foreign_share: (busy_seconds / all).clamp(0.0, 1.0),
            pressure: (pressed / elapsed).clamp(0.0, 1.0),
        })
    }

    /// The larger share.
    const fn level(self) -> f64 {
        self.foreign_share.max(self.pressure)
    }
}

/// Counters of `/proc/stat` in ticks, over all CPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct CpuTicks {
    busy: u64,
    all: u64,
}

impl CpuTicks {
    fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let fields = line.split_whitespace().take(8).map(str::parse);
        let fields: Vec<u64> = fields.collect::<Result<_, _>>().ok()?;
        let all: u64 = fields.iter().sum();
        // The fourth is idle time, the fifth idle time with input or output under way.
        let idle: u64 = fields.get(3..5)?.iter().sum();
        Some(Self {
            busy: all.saturating_sub(idle),
            all,
        })
    }

    /// Busy time and all CPU time since `before`, in seconds.
    fn since(self, before: Self) -> [f64; 2] {
        let rate = float_from_u64(rustix::param::clock_ticks_per_second().max(1));
        [
            self.busy.saturating_sub(before.busy),
            self.all.saturating_sub(before.all),
        ]
        .map(|ticks| float_from_u64(ticks) / rate)
    }
}

/// Time since the start of the host in which some task waited for a CPU.
fn pressure() -> Option<Nanos> {
    let text = fs::read_to_string("/proc/pressure/cpu").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let mut words = line.split_whitespace();
    let micros: u64 = words
        .find_map(|word| word.strip_prefix("total="))?
        .parse()
        .ok()?;
    Some(Nanos::new(micros.saturating_mul(1000)))
}

/// Waits for `length`, or until `interrupt`.
pub(crate) fn pause(length: Nanos, interrupt: &Interrupt) {
    const STEP: Nanos = Nanos::from_millis(50);
    // Nothing is ever sent, so this waits for the whole time.
    let (_keep, wait) = sync_channel::<()>(0);
    let until = clock::now() + length;
    while interrupt.signal().is_none() {
        let left = until.since(clock::now()).min(STEP);
        if left == Nanos::ZERO {
            return;
        }
        match wait.recv_timeout(left.as_duration()) {
            Ok(()) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
    }
}

/// Random pause before a run, from the suite's seed and the place of the run: uniform up
/// to a fifth of the run, at most ten seconds. It breaks the step of a periodic
/// disturbance (docs/internals/calibration.md).
pub(crate) fn pause_before(
    suite: &Seed,
    plan: &ExperimentPlan,
    (stage, pair, position): (RunStage, u32, u32),
) -> Nanos {
    let PhasesPlan {
        warmup,
        measure,
        quiet,
        ..
    } = plan.run_plan.phases;
    let run = warmup + measure + quiet;
    let longest = PAUSE_MAX.min(Nanos::new(run.as_u64() / PAUSE_PART));
    let seed = of_stage(suite.derive("pause", u64::from(position)), stage);
    let seed = seed.derive(&plan.name, u64::from(pair));
    let [first, second, third, fourth, ..] = *seed.bytes();
    let drawn = u32::from_le_bytes([first, second, third, fourth]);
    let share = f64::from(drawn) / f64::from(u32::MAX);
    Nanos::from_secs_f64(longest.as_secs_f64() * share)
}

/// Decides how long an experiment waits for a quiet machine. It knows nothing of variants
/// and results.
#[derive(Debug)]
pub(crate) struct QuietWait {
    /// Time that may still be waited in this experiment.
    left: Nanos,
    /// Longest next wait.
    limit: Nanos,
    /// Level of a machine that did not become quieter than this in a whole wait.
    accepted: f64,
}

impl QuietWait {
    /// Time of an experiment: the longest that it is planned to take, at most `max_time`.
    pub(crate) fn new(plan: &ExperimentPlan) -> Self {
        let budget = plan.max_time.min(plan.time().most);
        Self {
            left: Nanos::new(budget.as_u64() / WAIT_PART),
            limit: WAIT_MAX,
            accepted: 0.0,
        }
    }

    /// Waits until the machine is quiet, or as busy as it always is, within the limits.
    /// `watch` watches the host for some time; `announce` receives the host's use and the
    /// longest wait, if there is one. Returns the time waited.
    ///
    /// After a wait without success the next ones are half as long, and that use is accepted.
    pub(crate) fn wait(
        &mut self,
        mut watch: impl FnMut(Nanos) -> Option<HostUse>,
        announce: impl FnOnce(HostUse, Nanos),
    ) -> Nanos {
        let up_to = self.limit.min(self.left);
        let busy = watch(FIRST_LOOK).filter(|at| !self.is_quiet(*at) && up_to >= NEXT_LOOK);
        let Some(at) = busy else {
            return Nanos::ZERO;
        };
        announce(at, up_to);
        let (mut quietest, mut waited) = (at, Nanos::ZERO);
        while waited < up_to && !self.is_quiet(quietest) {
            let Some(now) = watch(NEXT_LOOK) else {
                break;
            };
            waited += NEXT_LOOK;
            if now.level() < quietest.level() {
                quietest = now;
            }
        }
        self.left = self.left.saturating_sub(waited);
        if self.is_quiet(quietest) {
            self.limit = WAIT_MAX;
        } else {
            self.accepted = quietest.level();
            self.limit = Nanos::new(self.limit.as_u64() / 2);
        }
        waited
    }

    /// Returns true if a pair may begin.
    fn is_quiet(&self, at: HostUse) -> bool {
        at.level() <= self.accepted + QUIET_SHARE
    }
}

#[cfg(test)]
mod tests;
