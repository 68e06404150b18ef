//! The beat.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};

use stillwell_metric::{Beat, Labels, Sample, Shard, Value, catalogue as metric, is_sink_worker};
use stillwell_plan::ObserverPlan;
use stillwell_plan::observer::KernelSeries;
use stillwell_scope::{PartError, Place, Scope, ThreadInfo, Token, clock};
use stillwell_units::{Moment, Nanos};
use stillwell_wire::Timer;
use tokio::sync::Notify;

use crate::host::HostReader;
use crate::profile::Profiler;
use crate::scrape::Scraper;
use crate::self_usage;
use crate::target_tree::{TargetProbe, TargetReader};

/// Longest duration of a scrape; at most one period.
const SCRAPE_MAX: Nanos = Nanos::from_secs(2);
/// Largest number of beats in the queue before the sampler fails.
const QUEUED_MAX: usize = 64;
/// Longest wait for the consumer of the last beats, at the sampler's end.
const LAST_CONSUMED_MAX: Nanos = Nanos::from_secs(2);
/// Longest wait of the last beat for sinks that still read.
const SINKS_MAX: Nanos = Nanos::SECOND;
const RETRY_INTERVAL: Nanos = Nanos::from_millis(5);

/// Sources of samples.
pub struct Watched {
    /// The target, if it runs already; see [`SamplerHandle::watch_target`].
    pub target: Option<TargetProbe>,
    /// Counters of workers.
    pub shards: Vec<Arc<dyn Shard>>,
    /// Stillwell's threads, as [`Scope::watch`] returns them.
    pub threads: Box<dyn Fn() -> Vec<ThreadInfo> + Send>,
    /// The folder for profiles; it is created with the first one.
    pub profiles: PathBuf,
}

/// The samples of one beat.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleBatch {
    /// Time of the samples.
    pub beat: Beat,
    /// The samples.
    pub samples: Vec<Sample>,
}

/// Controls a running sampler.
#[derive(Clone, Debug)]
pub struct SamplerHandle {
    requests: Arc<SamplerRequests>,
}

#[derive(Debug, Default)]
struct SamplerRequests {
    marked: Notify,
    is_detailed: AtomicBool,
    target: Mutex<Option<TargetProbe>>,
}

/// The consumer did not take the beats.
#[derive(Debug, thiserror::Error)]
#[error("deliver samples: {QUEUED_MAX} beats are queued and not consumed")]
struct NotConsumed;

/// Starts a sampler at `place`, which must be in the run's network namespace. The first beat is immediate. The
/// last is at the end of the scope, after its sinks have ended.
///
/// Beats follow an absolute schedule: a late one does not move the next, and missed beats are skipped. Beats
/// that are not consumed are queued. At more than 64 the sampler fails, because a capture with gaps must not
/// look complete.
///
/// # Errors
/// The operating system's error if no thread can be started.
pub fn start(
    scope: &mut Scope,
    place: &Place,
    plan: &ObserverPlan,
    watched: Watched,
    deliver: SyncSender<SampleBatch>,
) -> io::Result<SamplerHandle> {
    let requests = Arc::new(SamplerRequests::default());
    let handle = SamplerHandle {
        requests: Arc::clone(&requests),
    };
    if let Some(probe) = watched.target.clone() {
        handle.watch_target(probe);
    }
    let plan = plan.clone();
    scope.worker(place.clone(), "sampler", move |token| {
        let period = Nanos::new(plan.period.as_u64().max(1_000_000));
        let scraper = Scraper::new(&plan.scrapes, period.min(SCRAPE_MAX));
        let profiler = Profiler::new(&plan.profiles, &watched.profiles);
        let sampler = Sampler::new(watched, requests, deliver, &plan);
        sampler.run((period, plan.detail_period), scraper, profiler, token)
    })?;
    Ok(handle)
}

impl SamplerHandle {
    /// Requests a beat now, such as at the edge of a phase; with expensive values if `is_detailed`. Several
    /// requests at once give one beat.
    pub fn mark(&self, is_detailed: bool) {
        self.requests
            .is_detailed
            .fetch_or(is_detailed, Ordering::AcqRel);
        self.requests.marked.notify_one();
    }

    /// Watches this target from the next beat on. If it is the same target again, its totals continue.
    pub fn watch_target(&self, probe: TargetProbe) {
        let mut target = self
            .requests
            .target
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *target = Some(probe);
    }
}

struct Sampler {
    watched: Watched,
    requests: Arc<SamplerRequests>,
    deliver: SyncSender<SampleBatch>,
    waiting: VecDeque<SampleBatch>,
    target: Option<TargetReader>,
    /// CPU time of the target before its first sample; `None` until then.
    target_before: Option<u64>,
    /// CPUs that only the target may use.
    target_cpus: Vec<u16>,
    host: HostReader,
    buffer: Vec<u8>,
    beats: u64,
    /// Wall-clock time of the last beat.
    last_millis: u64,
    kernel: KernelSeries,
    /// Instructions of the target are counted.
    instructions: bool,
}

impl Sampler {
    fn new(
        watched: Watched,
        requests: Arc<SamplerRequests>,
        deliver: SyncSender<SampleBatch>,
        plan: &ObserverPlan,
    ) -> Self {
        Self {
            watched,
            requests,
            deliver,
            waiting: VecDeque::new(),
            target: None,
            target_before: None,
            target_cpus: Vec::new(),
            host: HostReader::new(Path::new("/proc")),
            buffer: Vec::new(),
            beats: 0,
            last_millis: 0,
            kernel: plan.kernel,
            instructions: plan.instructions,
        }
    }

    async fn run(
        mut self,
        (period, detail_period): (Nanos, Nanos),
        mut scraper: Scraper,
        mut profiler: Profiler,
        token: Token,
    ) -> Result<(), PartError> {
        let mut timer = Timer::new()?;
        let mut profile_timer = Timer::new()?;
        let mut due = clock::now();
        let mut detail_due = due;
        loop {
            let profile_due = profiler.next_due();
            let is_marked = tokio::select! {
                biased;
                // Cancel-safe, all of them.
                () = token.cancelled() => break,
                () = timer.until(due) => false,
                () = self.requests.marked.notified() => true,
                () = profile_timer.until(profile_due.unwrap_or(due)), if profile_due.is_some() => {
                    profiler.begin(clock::now());
                    continue;
                }
                () = scraper.tidy() => continue,
                () = profiler.tidy() => continue,
            };
            let now = clock::now();
            let is_detail_requested = self.requests.is_detailed.swap(false, Ordering::AcqRel);
            let is_detailed = is_detail_requested || now >= detail_due;
            let delay = if is_marked {
                Nanos::ZERO
            } else {
                now.since(due)
            };
            self.beat(now, delay, is_detailed, &scraper);
            if now >= detail_due {
                detail_due = later(detail_due, detail_period, now);
            }
            if !is_marked {
                due = later(due, period, now);
                scraper.begin();
                profiler.begin(now);
            }
            if self.is_over() {
                return Ok(());
            }
            if self.waiting.len() > QUEUED_MAX {
                return Err(NotConsumed.into());
            }
        }
        self.until_sinks_ended(&mut timer).await;
        self.beat(clock::now(), Nanos::ZERO, true, &scraper);
        self.deliver_last(&mut timer).await
    }

    /// Waits for the sinks, which end with the sampler and count until then.
    async fn until_sinks_ended(&self, timer: &mut Timer) {
        let until = clock::now() + SINKS_MAX;
        let threads = &self.watched.threads;
        while clock::now() < until && threads().iter().any(|thread| is_sink_worker(&thread.name)) {
            timer.until(clock::now() + RETRY_INTERVAL).await;
        }
    }

    fn beat(&mut self, now: Moment, delay: Nanos, is_detailed: bool, scraper: &Scraper) {
        let beat = Beat {
            index: self.beats,
            moment: now,
            wall_millis: increasing(self.last_millis, clock::wall().as_u64() / 1_000_000),
        };
        self.last_millis = beat.wall_millis;
        self.beats += 1;
        let mut samples = Vec::new();
        // Workers first: what they count moves fastest.
        for shard in &self.watched.shards {
            shard.sample(&mut samples);
        }
        add_total_received(&mut samples);
        let target = self.sample_target(is_detailed, &mut samples);
        let threads = (self.watched.threads)();
        let proc = Path::new("/proc");
        let self_cpu = self_usage::sample(proc, &threads, &mut self.buffer, &mut samples);
        let target = (target, self.target_cpus.as_slice());
        self.host
            .sample(self_cpu, target, &mut self.buffer, &mut samples);
        scraper.take(&mut samples);
        let delay = delay.as_u64();
        samples.push(Sample::int(metric::SAMPLER_DELAY, &Labels::none(), delay));
        self.waiting.push_back(SampleBatch { beat, samples });
    }

    /// Adds samples of the target. Returns its CPU time in this run.
    fn sample_target(&mut self, is_detailed: bool, samples: &mut Vec<Sample>) -> u64 {
        let requests = self.requests.target.lock();
        let requests = requests.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(probe) = requests {
            self.target_cpus.clone_from(&probe.cpus);
            match (&mut self.target, probe.is_again) {
                (Some(reader), true) => reader.follow(probe.pid),
                _ => {
                    self.target_before = (!probe.ran_before).then_some(0);
                    let reader = TargetReader::new(Path::new("/proc"), probe);
                    let reader = reader.with_kernel(self.kernel);
                    self.target = Some(reader.with_instructions(self.instructions));
                }
            }
        }
        let Some(reader) = &mut self.target else {
            return 0;
        };
        let cpu = reader.sample(is_detailed, samples);
        cpu.saturating_sub(*self.target_before.get_or_insert(cpu))
    }

    /// Delivers queued beats. Returns true if the consumer has ended.
    fn is_over(&mut self) -> bool {
        while let Some(batch) = self.waiting.pop_front() {
            match self.deliver.try_send(batch) {
                Ok(()) => {}
                Err(TrySendError::Full(batch)) => {
                    self.waiting.push_front(batch);
                    return false;
                }
                Err(TrySendError::Disconnected(_)) => return true,
            }
        }
        false
    }

    async fn deliver_last(&mut self, timer: &mut Timer) -> Result<(), PartError> {
        let until = clock::now() + LAST_CONSUMED_MAX;
        while !self.is_over() && !self.waiting.is_empty() {
            if clock::now() >= until {
                return Err(NotConsumed.into());
            }
            timer.until(clock::now() + RETRY_INTERVAL).await;
        }
        Ok(())
    }
}

/// The first of `due + n × period` after `now`.
fn later(due: Moment, period: Nanos, now: Moment) -> Moment {
    let period = period.as_u64().max(1);
    let missed = now.since(due).as_u64() / period;
    due + Nanos::new(period.saturating_mul(missed.saturating_add(1)))
}

/// The sum of what all sinks received, if there are any.
fn add_total_received(samples: &mut Vec<Sample>) {
    let name = metric::BYTES_RECEIVED.into();
    let received = samples.iter().filter(|sample| sample.name == name);
    let total = received.fold(None, |total, sample| match sample.value {
        Value::Int(bytes) => Some(total.unwrap_or(0_u64).saturating_add(bytes)),
        _ => total,
    });
    let total =
        total.map(|total| Sample::int(metric::TOTAL_BYTES_RECEIVED, &Labels::none(), total));
    samples.extend(total);
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched")
            .field("target", &self.target)
            .field("shards", &self.shards.len())
            .finish_non_exhaustive()
    }
}

/// Largest shift of a beat, in milliseconds.
const SHIFT_MILLIS_MAX: u64 = 8;

/// Returns the time of a beat at `now` after one at `last`, in milliseconds. The edge of a phase may fall into
/// the millisecond of a beat, but readers of series need increasing times. A clock that was set back is
/// reported unchanged.
const fn increasing(last: u64, now: u64) -> u64 {
    if now <= last && last - now < SHIFT_MILLIS_MAX {
        last + 1
    } else {
        now
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn two_beats_of_one_millisecond_had_the_same_time() {
        for (last, now, expected) in [
            (0, 1000, 1000),
            (1000, 1000, 1001),
            (1001, 1000, 1002),
            (1002, 1003, 1003),
            (5000, 1000, 1000),
        ] {
            assert_eq!(increasing(last, now), expected, "{last}, {now}");
        }
    }

    proptest! {
        #[test]
        fn for_all_delays_the_next_beat_is_the_next_of_the_schedule(
            due in 0_u64..1_000_000, period in 1_u64..1000, delay in 0_u64..100_000,
        ) {
            let now = Moment::new(due + delay);
            let next = later(Moment::new(due), Nanos::new(period), now).as_u64();
            prop_assert!(next > now.as_u64() && next - now.as_u64() <= period);
            prop_assert_eq!((next - due) % period, 0);
        }
    }
}
