//! The beat.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};

use stillwell_metric::{Beat, Labels, Sample, Shard, Value, catalogue as metric, is_sink_worker};
use stillwell_plan::{KernelSeries, ObserverPlan};
use stillwell_scope::{PartError, Place, Scope, ThreadInfo, Token, clock};
use stillwell_units::{Moment, Nanos};
use stillwell_wire::Timer;
use tokio::sync::Notify;

use crate::host::HostReader;
use crate::own;
use crate::profile::Profiler;
use crate::scrape::Scraper;
use crate::subject::{SubjectProbe, SubjectReader};

/// A scrape may take this long, or one period if that is shorter.
const SCRAPE_MAX: Nanos = Nanos::from_secs(2);
/// How many beats may wait to be taken before the sampler gives up.
const WAITING_MAX: usize = 64;
/// How long the last beats may wait to be taken when the sampler is to end.
const LAST_TAKEN_MAX: Nanos = Nanos::from_secs(2);
/// How long the last beat may wait for sinks that still take what has arrived.
const SINKS_MAX: Nanos = Nanos::SECOND;
const TRY_AGAIN: Nanos = Nanos::from_millis(5);

/// What is watched.
pub struct Watched {
    /// The subject, if it runs already; see [`SamplerHandle::watch_subject`].
    pub subject: Option<SubjectProbe>,
    /// What workers count.
    pub shards: Vec<Arc<dyn Shard>>,
    /// Our own threads, such as [`Scope::watch`] gives them.
    pub threads: Box<dyn Fn() -> Vec<ThreadInfo> + Send>,
    /// The folder that profiles are kept in; it is made with the first.
    pub profiles: PathBuf,
}

/// One beat's samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Beaten {
    /// When they were taken.
    pub beat: Beat,
    /// All of them.
    pub samples: Vec<Sample>,
}

/// Asks a running sampler for things.
#[derive(Clone, Debug)]
pub struct SamplerHandle {
    asked: Arc<Asked>,
}

#[derive(Debug, Default)]
struct Asked {
    marked: Notify,
    is_detailed: AtomicBool,
    subject: Mutex<Option<SubjectProbe>>,
}

/// Nobody took the beats.
#[derive(Debug, thiserror::Error)]
#[error("deliver samples: {WAITING_MAX} beats wait to be taken")]
struct NotTaken;

/// Starts a sampler at `place`, which must be in the run's network namespace. Its
/// first beat is at once, its last when the scope ends and the sinks in it have ended.
///
/// Beats keep to an absolute schedule: one that is late does not move the next,
/// and beats that were slept through are left out. Where nobody takes what is
/// delivered, beats wait; after 64 of them the sampler fails, because a capture
/// with holes must not pass for a whole one.
///
/// # Errors
/// The kernel's answer where it starts no more threads.
pub fn start(
    scope: &mut Scope,
    place: &Place,
    plan: &ObserverPlan,
    watched: Watched,
    deliver: SyncSender<Beaten>,
) -> io::Result<SamplerHandle> {
    let asked = Arc::new(Asked::default());
    let handle = SamplerHandle {
        asked: Arc::clone(&asked),
    };
    if let Some(probe) = watched.subject.clone() {
        handle.watch_subject(probe);
    }
    let plan = plan.clone();
    scope.worker(place.clone(), "sampler", move |token| {
        let period = Nanos::new(plan.period.as_u64().max(1_000_000));
        let scraper = Scraper::new(&plan.scrapes, period.min(SCRAPE_MAX));
        let profiler = Profiler::new(&plan.profiles, &watched.profiles);
        let sampler = Sampler::new(watched, asked, deliver, plan.kernel);
        sampler.run((period, plan.detail_period), scraper, profiler, token)
    })?;
    Ok(handle)
}

impl SamplerHandle {
    /// Asks for a beat now, such as at the edge of a phase; with what is dear to
    /// read if `is_detailed`. Several marks at once are one beat.
    pub fn mark(&self, is_detailed: bool) {
        self.asked
            .is_detailed
            .fetch_or(is_detailed, Ordering::AcqRel);
        self.asked.marked.notify_one();
    }

    /// Watches this subject from the next beat on, instead of any before it; where it
    /// is the same again, its totals go on.
    pub fn watch_subject(&self, probe: SubjectProbe) {
        let mut subject = self
            .asked
            .subject
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *subject = Some(probe);
    }
}

struct Sampler {
    watched: Watched,
    asked: Arc<Asked>,
    deliver: SyncSender<Beaten>,
    waiting: VecDeque<Beaten>,
    subject: Option<SubjectReader>,
    /// What the subject had used before it was first looked at; `None` until it is.
    subject_before: Option<u64>,
    host: HostReader,
    buffer: Vec<u8>,
    beats: u64,
    /// When the last of them was, on the wall clock.
    last_millis: u64,
    kernel: KernelSeries,
}

impl Sampler {
    fn new(
        watched: Watched,
        asked: Arc<Asked>,
        deliver: SyncSender<Beaten>,
        kernel: KernelSeries,
    ) -> Self {
        Self {
            watched,
            asked,
            deliver,
            waiting: VecDeque::new(),
            subject: None,
            subject_before: None,
            host: HostReader::new(Path::new("/proc")),
            buffer: Vec::new(),
            beats: 0,
            last_millis: 0,
            kernel,
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
        let mut due = clock::now();
        let mut detail_due = due;
        loop {
            let is_marked = tokio::select! {
                biased;
                // Cancel-safe, all of them.
                () = token.cancelled() => break,
                () = timer.until(due) => false,
                () = self.asked.marked.notified() => true,
                () = scraper.tidy() => continue,
                () = profiler.tidy() => continue,
            };
            let now = clock::now();
            let wants_detail = self.asked.is_detailed.swap(false, Ordering::AcqRel);
            let is_detailed = wants_detail || now >= detail_due;
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
            if self.waiting.len() > WAITING_MAX {
                return Err(NotTaken.into());
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
        while clock::now() < until && threads().iter().any(|it| is_sink_worker(&it.name)) {
            timer.until(clock::now() + TRY_AGAIN).await;
        }
    }

    fn beat(&mut self, now: Moment, delay: Nanos, is_detailed: bool, scraper: &Scraper) {
        let beat = Beat {
            index: self.beats,
            moment: now,
            wall_millis: apart(self.last_millis, clock::wall().as_u64() / 1_000_000),
        };
        self.last_millis = beat.wall_millis;
        self.beats += 1;
        let mut samples = Vec::new();
        // Workers first: what they count moves fastest.
        for shard in &self.watched.shards {
            shard.sample(&mut samples);
        }
        add_total_received(&mut samples);
        let subject = self.sample_subject(is_detailed, &mut samples);
        let threads = (self.watched.threads)();
        let proc = Path::new("/proc");
        let ours = own::sample(proc, &threads, &mut self.buffer, &mut samples);
        self.host
            .sample(ours, subject, &mut self.buffer, &mut samples);
        scraper.take(&mut samples);
        let delay = delay.as_u64();
        samples.push(Sample::int(metric::SAMPLER_DELAY, &Labels::none(), delay));
        self.waiting.push_back(Beaten { beat, samples });
    }

    /// Adds samples of the subject. Gives the CPU time that it used in this run.
    fn sample_subject(&mut self, is_detailed: bool, samples: &mut Vec<Sample>) -> u64 {
        let asked = self.asked.subject.lock();
        let asked = asked.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(probe) = asked {
            match (&mut self.subject, probe.is_again) {
                (Some(reader), true) => reader.follow(probe.pid),
                _ => {
                    self.subject_before = (!probe.ran_before).then_some(0);
                    let reader = SubjectReader::new(Path::new("/proc"), probe);
                    self.subject = Some(reader.with_kernel(self.kernel));
                }
            }
        }
        let Some(reader) = &mut self.subject else {
            return 0;
        };
        let cpu = reader.sample(is_detailed, samples);
        cpu.saturating_sub(*self.subject_before.get_or_insert(cpu))
    }

    /// Delivers what can be; whether nobody will ever take anything again.
    fn is_over(&mut self) -> bool {
        while let Some(beaten) = self.waiting.pop_front() {
            match self.deliver.try_send(beaten) {
                Ok(()) => {}
                Err(TrySendError::Full(beaten)) => {
                    self.waiting.push_front(beaten);
                    return false;
                }
                Err(TrySendError::Disconnected(_)) => return true,
            }
        }
        false
    }

    async fn deliver_last(&mut self, timer: &mut Timer) -> Result<(), PartError> {
        let until = clock::now() + LAST_TAKEN_MAX;
        while !self.is_over() && !self.waiting.is_empty() {
            if clock::now() >= until {
                return Err(NotTaken.into());
            }
            timer.until(clock::now() + TRY_AGAIN).await;
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
            .field("target", &self.subject)
            .field("shards", &self.shards.len())
            .finish_non_exhaustive()
    }
}

/// How far beats of one millisecond may be moved apart.
const CROWDED_MILLIS: u64 = 8;

/// Milliseconds of a beat at `now` that comes after one at `last`: the edge of a
/// phase may fall into the millisecond of a beat, and readers of series want each
/// to be later than the one before. A clock that was set back is told as it is.
const fn apart(last: u64, now: u64) -> u64 {
    if now <= last && last - now < CROWDED_MILLIS {
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
        for (last, now, told) in [
            (0, 1000, 1000),
            (1000, 1000, 1001),
            (1001, 1000, 1002),
            (1002, 1003, 1003),
            (5000, 1000, 1000),
        ] {
            assert_eq!(apart(last, now), told, "{last}, {now}");
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
