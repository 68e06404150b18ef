//! Whether a load measured its target, or itself.

use std::fmt;

use stillwell_metric::{LoadTime, Outcome, empty_histogram};
use stillwell_plan::{LoadPace, LoadPlan};
use stillwell_units::{Nanos, float_from_u64};

use super::LoadFound;

/// Above this share of its time on the CPU a worker may be the limit.
const BUSY_MAX: f64 = 0.9;
/// Above this 99th percentile of its own lateness a worker distorts latencies…
const LATE_MAX: Nanos = Nanos::from_millis(1);
/// …and above this share of the median latency.
const LATE_SHARE_MAX: f64 = 0.1;
/// Above this share of its time without a CPU that it wanted.
const DELAY_MAX: f64 = 0.05;
/// In less time than this a share says nothing.
const TOLD_FROM: Nanos = Nanos::from_millis(500);
/// Above this share of the host's time given to others.
const STEAL_MAX: f64 = 0.02;
/// Below this share of the asked rate that was sent.
const ACHIEVED_MIN: f64 = 0.99;

/// A reason to doubt what a load found.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadDoubt {
    /// Workers with a schedule used nearly all of their CPU: what waited for them
    /// looks like latency of the target.
    Saturated {
        /// The largest share of its time that a worker ran.
        share: f64,
    },
    /// Workers without a schedule used nearly all of their CPU: the target may be
    /// faster than this.
    Limit {
        /// The largest share of its time that a worker ran.
        share: f64,
    },
    /// Requests left late although a connection was free.
    Late {
        /// The 99th percentile of that.
        p99: Nanos,
    },
    /// Workers wanted to run and had no CPU.
    NoCpu {
        /// The largest share of its time.
        share: f64,
    },
    /// The hypervisor gave CPU time to others.
    Steal {
        /// The share of the host's CPU time.
        share: f64,
    },
    /// Fewer requests were sent than asked for: the target was not as fast.
    NotAchieved {
        /// The share that was sent.
        share: f64,
    },
    /// Nothing was answered.
    NoAnswer {
        /// Why the first connection could not be had, if that is why.
        why: Option<String>,
    },
    /// Some answers broke the protocol.
    Malformed {
        /// How many.
        count: u64,
        /// What was wrong with the first of them.
        why: String,
    },
    /// Somebody was not told all that was to be told while it went on.
    Untold {
        /// Who, and why.
        what: String,
    },
}

impl LoadDoubt {
    /// A word for programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Saturated { .. } => "saturated",
            Self::Limit { .. } => "generator_limit",
            Self::Late { .. } => "late",
            Self::NoCpu { .. } => "no_cpu",
            Self::Steal { .. } => "steal",
            Self::NotAchieved { .. } => "not_achieved",
            Self::NoAnswer { .. } => "no_answer",
            Self::Malformed { .. } => "malformed",
            Self::Untold { .. } => "untold",
        }
    }

    /// Whether the result must not be taken for the target's.
    #[must_use]
    pub const fn invalidates(&self) -> bool {
        matches!(
            self,
            Self::Saturated { .. } | Self::Late { .. } | Self::NoCpu { .. } | Self::NoAnswer { .. }
        )
    }
}

impl fmt::Display for LoadDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| (share * 1000.0).round() / 10.0;
        match self {
            Self::Saturated { share } => write!(
                f,
                "the generator was busy {} % of the time and may have kept answers waiting: \
                 use more workers (--concurrency) or a lower rate",
                percent(*share)
            ),
            Self::Limit { share } => write!(
                f,
                "the generator was busy {} % of the time: the target may be faster than this",
                percent(*share)
            ),
            Self::Late { p99 } => write!(
                f,
                "the generator itself sent late by {p99} and more in 1 % of all requests: \
                 latencies include that"
            ),
            Self::NoCpu { share } => write!(
                f,
                "a worker had no CPU for {} % of the time although it wanted to run",
                percent(*share)
            ),
            Self::Steal { share } => write!(
                f,
                "the hypervisor gave {} % of the host's CPU time to others",
                percent(*share)
            ),
            Self::NotAchieved { share } => write!(
                f,
                "{} % of the asked rate was sent: connections waited for the target",
                percent(*share)
            ),
            Self::NoAnswer { why: None } => f.write_str("not one request was answered"),
            Self::NoAnswer { why: Some(why) } => {
                write!(f, "not one request was answered: {why}")
            }
            Self::Malformed { count: 1, why } => {
                write!(f, "one answer is not HTTP as it should be: {why}")
            }
            Self::Malformed { count, why } => write!(
                f,
                "{count} answers are not HTTP as it should be; the first of them: {why}"
            ),
            Self::Untold { what } => f.write_str(what),
        }
    }
}

/// What to doubt of `found`, gravest first.
#[must_use]
pub fn load_doubts(plan: &LoadPlan, found: &LoadFound) -> Vec<LoadDoubt> {
    let has_schedule = matches!(plan.pace, LoadPace::Open { .. });
    let share_of =
        |part: u64, whole: Nanos| float_from_u64(part) / float_from_u64(whole.as_u64().max(1));
    let largest = |part: fn(&stillwell_metric::LoadShard) -> u64| {
        let shares = found
            .workers
            .iter()
            .map(|worker| share_of(part(&worker.shard), worker.measured + plan.warmup));
        shares.fold(0.0, f64::max)
    };
    let busy = largest(|shard| shard.account.running.total());
    let delay = largest(|shard| shard.run_delay.total());
    let answered: u64 = found.workers.iter().map(answers).sum();
    let p99 = own_lateness(found);
    let mut doubts = Vec::new();
    if answered == 0 {
        let shards = found.workers.iter().map(|worker| &worker.shard);
        let why = shards
            .filter_map(|shard| shard.connect_trouble.get())
            .next();
        doubts.push(LoadDoubt::NoAnswer { why: why.cloned() });
    }
    doubts.extend(malformed(found));
    // Spinning for the schedule is no work that keeps anything waiting.
    let limited = plan.idle == stillwell_plan::IdleStrategy::Sleep || !has_schedule;
    if busy > BUSY_MAX && has_schedule && (limited || behind(found) > 1.0 - ACHIEVED_MIN) {
        doubts.push(LoadDoubt::Saturated { share: busy });
    } else if busy > BUSY_MAX && !has_schedule {
        doubts.push(LoadDoubt::Limit { share: busy });
    }
    let median = Nanos::new(median_of(found));
    let distorts = float_from_u64(p99.as_u64()) > LATE_SHARE_MAX * float_from_u64(median.as_u64());
    if has_schedule && p99 > LATE_MAX && distorts {
        doubts.push(LoadDoubt::Late { p99 });
    }
    let is_long = found.measured >= TOLD_FROM;
    if delay > DELAY_MAX && is_long {
        doubts.push(LoadDoubt::NoCpu { share: delay });
    }
    let steal = found.host.map_or(0.0, |host| {
        share_of(host.steal.as_u64(), found.measured) / f64::from(host.cpus.max(1))
    });
    if steal > STEAL_MAX && is_long {
        doubts.push(LoadDoubt::Steal { share: steal });
    }
    if has_schedule && behind(found) > 1.0 - ACHIEVED_MIN {
        doubts.push(LoadDoubt::NotAchieved {
            share: 1.0 - behind(found),
        });
    }
    let untold = found.telemetry.troubles().into_iter();
    doubts.extend(untold.map(|what| LoadDoubt::Untold { what }));
    doubts
}

fn malformed(found: &LoadFound) -> Option<LoadDoubt> {
    let shards = || found.workers.iter().map(|worker| &worker.shard);
    let count = shards().map(|shard| shard.ended(Outcome::Malformed)).sum();
    let why = shards().find_map(|shard| shard.answer_trouble.get())?;
    (count > 0).then(|| LoadDoubt::Malformed {
        count,
        why: why.clone(),
    })
}

fn answers(worker: &super::LoadWorkerFound) -> u64 {
    let outcomes = Outcome::ANSWERS.into_iter();
    outcomes.map(|outcome| worker.shard.ended(outcome)).sum()
}

/// The share of what was asked for that was not begun.
fn behind(found: &LoadFound) -> f64 {
    let sum = |count: fn(&stillwell_metric::LoadShard) -> u64| {
        let counts = found.workers.iter().map(|worker| count(&worker.shard));
        float_from_u64(counts.sum())
    };
    let asked = sum(|shard| shard.asked.total());
    if asked > 0.0 {
        1.0 - sum(|shard| shard.begun.total()) / asked
    } else {
        0.0
    }
}

fn own_lateness(found: &LoadFound) -> Nanos {
    let mut all = empty_histogram();
    for worker in &found.workers {
        all.add(worker.times(LoadTime::OwnLateness))
            .unwrap_or_else(|_| unreachable!("both histograms have the same bounds"));
    }
    Nanos::new(all.value_at_quantile(0.99))
}

fn median_of(found: &LoadFound) -> u64 {
    let mut all = empty_histogram();
    for worker in &found.workers {
        for class in Outcome::ANSWERS {
            all.add(worker.times(LoadTime::Service(class)))
                .unwrap_or_else(|_| unreachable!("both histograms have the same bounds"));
        }
    }
    all.value_at_quantile(0.5)
}
