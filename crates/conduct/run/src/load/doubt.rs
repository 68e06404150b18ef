//! Whether a load measured its target, or itself.

use std::fmt;

use stillwell_metric::{
    Histogram, LoadShard, LoadTime, Outcome, Remedy, TimeState, Trouble, add_histogram,
    empty_histogram,
};
use stillwell_plan::{LoadPace, LoadPlan, Overflow};
use stillwell_units::{Nanos, float_from_u64};

use super::{LoadFound, LoadSnapshot};

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
/// Above this share of its time in which a worker had no request to send.
const STARVED_MAX: f64 = 0.01;
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
    /// Fewer requests were begun than asked for: the target was not as fast.
    NotAchieved {
        /// The share that was sent.
        share: f64,
    },
    /// Requests that were due waited until somebody handed them out.
    SourceSlow {
        /// How often.
        waits: u64,
        /// How long, as a share of a worker's time.
        share: f64,
    },
    /// Whoever hands requests out broke off.
    SourceFailed {
        /// How many requests he had handed out by then.
        requests: u64,
        /// Why.
        why: String,
    },
    /// It ended within its warm-up.
    AllWarmup,
    /// Nothing was due, or could be begun.
    NoRequest {
        /// How many were due.
        asked: u64,
        /// Why the first connection could not be had, if that is why.
        why: Option<Trouble>,
    },
    /// Nothing was answered.
    NoAnswer {
        /// Why the first connection could not be had, if that is why.
        why: Option<Trouble>,
    },
    /// Some answers broke the protocol.
    Malformed {
        /// How many.
        count: u64,
        /// What was wrong with the first of them.
        why: Trouble,
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
            Self::SourceSlow { .. } => "source_slow",
            Self::SourceFailed { .. } => "source_failed",
            Self::AllWarmup => "all_warmup",
            Self::NoRequest { .. } => "no_request",
            Self::NoAnswer { .. } => "no_answer",
            Self::Malformed { .. } => "malformed",
            Self::Untold { .. } => "untold",
        }
    }

    /// What can be asked for that may help, if anything: each command has its own words
    /// for it, and [`Display`](fmt::Display) none.
    #[must_use]
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::NoRequest { why, .. } | Self::NoAnswer { why } => why.as_ref()?.remedy,
            Self::Malformed { why, .. } => why.remedy,
            _ => None,
        }
    }

    /// Whether the result must not be taken for the target's.
    #[must_use]
    pub const fn invalidates(&self) -> bool {
        matches!(
            self,
            Self::Saturated { .. }
                | Self::Late { .. }
                | Self::NoCpu { .. }
                | Self::SourceSlow { .. }
                | Self::AllWarmup
                | Self::NoRequest { .. }
                | Self::NoAnswer { .. }
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
            Self::SourceSlow { .. } | Self::SourceFailed { .. } => self.tell_source(f),
            Self::AllWarmup => f.write_str(
                "it ended before its warm-up was over, and nothing was measured: use a shorter \
                 --warmup, or more requests",
            ),
            Self::NoRequest { asked: 0, why: None } => f.write_str(
                "not one request was due in that time: let it last longer, or ask for a higher rate",
            ),
            Self::NoRequest { asked, why: None } => write!(
                f,
                "of {asked} requests that were due not one was begun: no connection was free, or \
                 the generator had no CPU"
            ),
            Self::NoRequest {
                why: Some(Trouble { why, .. }),
                ..
            } => write!(f, "not one request was begun: {why}"),
            Self::NoAnswer { why: None } => f.write_str("not one request was answered"),
            Self::NoAnswer {
                why: Some(Trouble { why, .. }),
            } => write!(f, "not one request was answered: {why}"),
            Self::Malformed {
                count: 1,
                why: Trouble { why, .. },
            } => write!(f, "one answer is not HTTP as it should be: {why}"),
            Self::Malformed {
                count,
                why: Trouble { why, .. },
            } => write!(
                f,
                "{count} answers are not HTTP as it should be; the first of them: {why}"
            ),
            Self::Untold { what } => f.write_str(what),
        }
    }
}

impl LoadDoubt {
    /// What is told of whoever hands requests out.
    fn tell_source(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SourceSlow { waits, share } => write!(
                f,
                "requests that were due waited {waits} times for whoever hands them out, {} % of \
                 the time: latencies from the intended time include that",
                (share * 1000.0).round() / 10.0
            ),
            Self::SourceFailed { requests, why } => write!(
                f,
                "whoever hands requests out broke off after {requests} of them: {why}"
            ),
            _ => Ok(()),
        }
    }
}

/// What a schedule says about latency.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LoadPacing {
    /// There is none.
    Closed,
    /// Latency counts from the sent time all the same.
    Deferred,
    /// Latency counts from the intended time.
    Open,
}

impl LoadPacing {
    /// That of `plan`.
    #[must_use]
    pub fn of(plan: &LoadPlan) -> Self {
        match &plan.pace {
            LoadPace::Closed => Self::Closed,
            LoadPace::Open { overflow, .. } => match overflow {
                Overflow::Defer => Self::Deferred,
                Overflow::Wait | Overflow::Hold { .. } | Overflow::Drop { .. } => Self::Open,
            },
        }
    }
}

/// What says whether the generator was the limit, of any stretch of time.
struct Figures {
    pacing: LoadPacing,
    /// The largest share of its time that a worker ran.
    busy: f64,
    /// The 99th percentile of requests' own lateness.
    late: Nanos,
    /// The median latency from the sent time.
    median: Nanos,
}

impl Figures {
    /// Why the generator may be what is measured, if it may.
    fn doubts(&self) -> Vec<LoadDoubt> {
        let mut doubts = Vec::new();
        let share = self.busy;
        if share > BUSY_MAX {
            doubts.push(match self.pacing {
                LoadPacing::Closed => LoadDoubt::Limit { share },
                LoadPacing::Deferred | LoadPacing::Open => LoadDoubt::Saturated { share },
            });
        }
        let [late, median] = [self.late, self.median].map(|it| float_from_u64(it.as_u64()));
        let distorts = late > LATE_SHARE_MAX * median;
        if self.pacing == LoadPacing::Open && self.late > LATE_MAX && distorts {
            doubts.push(LoadDoubt::Late { p99: self.late });
        }
        doubts
    }
}

/// What to doubt of the generator in the piece of time that `snapshot` tells of,
/// gravest first, by the limits of [`load_doubts`].
#[must_use]
pub fn snapshot_doubts(pacing: LoadPacing, snapshot: &LoadSnapshot<'_>) -> Vec<LoadDoubt> {
    let quantile = |times: Option<&Histogram<u64>>, share: f64| {
        Nanos::new(times.map_or(0, |times| times.value_at_quantile(share)))
    };
    let busy = snapshot.accounts.iter().map(|account| {
        let whole: u64 = account.iter().map(|time| time.as_u64()).sum();
        share_of(
            account[TimeState::Running.index()].as_u64(),
            Nanos::new(whole),
        )
    });
    let figures = Figures {
        pacing,
        busy: busy.fold(0.0, f64::max),
        late: quantile(snapshot.times(LoadTime::OwnLateness), 0.99),
        median: Nanos::new(snapshot.second.service.unpack().value_at_quantile(0.5)),
    };
    figures.doubts()
}

/// What to doubt of `found`, gravest first.
#[must_use]
pub fn load_doubts(plan: &LoadPlan, found: &LoadFound) -> Vec<LoadDoubt> {
    let is_long = found.measured >= TOLD_FROM;
    let largest = |part: fn(&LoadShard) -> u64| {
        let workers = found.workers.iter().filter(|_| is_long);
        let shares = workers.map(|worker| {
            let spent = TimeState::ALL.map(|state| worker.shard.spent(state));
            share_of(part(&worker.shard), Nanos::new(spent.iter().sum()))
        });
        shares.fold(0.0, f64::max)
    };
    let mut doubts: Vec<LoadDoubt> = nothing_found(plan, found).into_iter().collect();
    doubts.extend(malformed(found));
    let figures = Figures {
        pacing: LoadPacing::of(plan),
        busy: largest(|shard| shard.spent(TimeState::Running)),
        late: own_lateness(found),
        median: Nanos::new(median_of(found)),
    };
    doubts.extend(figures.doubts());
    let delay = largest(|shard| shard.run_delay.measured());
    if delay > DELAY_MAX {
        doubts.push(LoadDoubt::NoCpu { share: delay });
    }
    let steal = found.host.map_or(0.0, |host| {
        share_of(host.steal.as_u64(), found.measured) / f64::from(host.cpus.max(1))
    });
    if steal > STEAL_MAX && is_long {
        doubts.push(LoadDoubt::Steal { share: steal });
    }
    let pacing = LoadPacing::of(plan);
    let of_source = source(found);
    let is_source = !of_source.is_empty();
    doubts.extend(of_source);
    if !is_source && of_due(pacing, found, |shard| shard.begun.total()) < ACHIEVED_MIN {
        let share = of_due(pacing, found, |shard| shard.sent.total());
        doubts.push(LoadDoubt::NotAchieved { share });
    }
    let untold = found.telemetry.troubles().into_iter().chain(unheard(found));
    doubts.extend(untold.map(|what| LoadDoubt::Untold { what }));
    doubts
}

fn share_of(part: u64, whole: Nanos) -> f64 {
    float_from_u64(part) / float_from_u64(whole.as_u64().max(1))
}

/// Why there is nothing to tell, where that is so.
fn nothing_found(plan: &LoadPlan, found: &LoadFound) -> Option<LoadDoubt> {
    let shards = || found.workers.iter().map(|worker| &worker.shard);
    let answers = |ended: fn(&LoadShard, Outcome) -> u64| -> u64 {
        let of = |shard| -> u64 {
            Outcome::ANSWERS
                .map(|class| ended(shard, class))
                .iter()
                .sum()
        };
        shards().map(|shard| of(shard)).sum()
    };
    if answers(LoadShard::ended) > 0 {
        return None;
    }
    let measured: u64 = shards().map(|shard| shard.begun.total()).sum();
    let is_warmup = plan.warmup > Nanos::ZERO && measured == 0;
    if is_warmup && answers(LoadShard::ended_ever) > 0 {
        return Some(LoadDoubt::AllWarmup);
    }
    let why = shards()
        .find_map(|shard| {
            let of_source = shard.source.trouble.get().cloned();
            let trouble = of_source.map(Trouble::plain);
            let trouble = trouble.or_else(|| shard.connect_trouble.get().cloned());
            trouble.or_else(|| shard.answer_trouble.get().cloned())
        })
        .or_else(|| {
            let handed: u64 = shards().map(|shard| shard.source.requests.total()).sum();
            let waits: u64 = shards().map(|shard| shard.source.waits.total()).sum();
            let is_silent = handed == 0 && waits > 0;
            is_silent.then(|| Trouble::plain("not one was handed out".to_owned()))
        });
    Some(if measured == 0 {
        let asked = shards().map(|shard| shard.asked.measured()).sum();
        LoadDoubt::NoRequest { asked, why }
    } else {
        LoadDoubt::NoAnswer { why }
    })
}

/// Whether requests were there when they were due, where others hand them out.
fn source(found: &LoadFound) -> Vec<LoadDoubt> {
    let shards = || found.workers.iter().map(|worker| &worker.shard);
    let mut doubts = Vec::new();
    let trouble = shards().find_map(|shard| shard.source.trouble.get());
    let requests = shards().map(|shard| shard.source.requests.total()).sum();
    // Without any there is no load, and that is why.
    if let Some(why) = trouble.filter(|_| requests > 0) {
        let why = why.clone();
        doubts.push(LoadDoubt::SourceFailed { requests, why });
    }
    let shares = found.workers.iter().map(|worker| {
        let waited = worker.shard.source.waited.measured();
        share_of(waited, worker.measured)
    });
    let share = shares.fold(0.0, f64::max).min(1.0);
    if share > STARVED_MAX {
        let waits = shards().map(|shard| shard.source.waits.measured()).sum();
        doubts.push(LoadDoubt::SourceSlow { waits, share });
    }
    doubts
}

/// Headers of answers that were to be told, and were not.
fn unheard(found: &LoadFound) -> Option<String> {
    let dropped = found.workers.iter();
    let dropped = dropped.map(|worker| worker.shard.headers_dropped.measured());
    let dropped: u64 = dropped.sum();
    (dropped > 0).then(|| {
        format!("{dropped} headers of answers were not told: they came faster than that goes")
    })
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

/// A count as a share of what was due; all without a schedule. What waits for
/// answers has no moments of its own, and the curve says how many there were.
fn of_due(pacing: LoadPacing, found: &LoadFound, count: fn(&LoadShard) -> u64) -> f64 {
    let sum = |count: fn(&LoadShard) -> u64| {
        let counts = found.workers.iter().map(|worker| count(&worker.shard));
        float_from_u64(counts.sum())
    };
    let due = match pacing {
        LoadPacing::Closed => 0.0,
        LoadPacing::Deferred => sum(|shard| shard.asked.measured()),
        LoadPacing::Open => sum(LoadShard::due),
    };
    if due > 0.0 { sum(count) / due } else { 1.0 }
}

fn own_lateness(found: &LoadFound) -> Nanos {
    let mut all = empty_histogram();
    for worker in &found.workers {
        add_histogram(&mut all, worker.times(LoadTime::OwnLateness));
    }
    Nanos::new(all.value_at_quantile(0.99))
}

fn median_of(found: &LoadFound) -> u64 {
    let mut all = empty_histogram();
    for worker in &found.workers {
        add_histogram(&mut all, &worker.times_of_answers(LoadTime::Service));
    }
    all.value_at_quantile(0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubts(pacing: LoadPacing, busy: f64, late_ms: u64) -> Vec<&'static str> {
        let figures = Figures {
            pacing,
            busy,
            late: Nanos::from_millis(late_ms),
            median: Nanos::from_millis(3),
        };
        figures.doubts().iter().map(LoadDoubt::code).collect()
    }

    #[test]
    fn a_generator_is_doubted_by_what_it_distorts() {
        for pacing in [LoadPacing::Closed, LoadPacing::Deferred, LoadPacing::Open] {
            assert_eq!(doubts(pacing, 0.89, 1), [""; 0], "{pacing:?}");
        }
        assert_eq!(doubts(LoadPacing::Open, 0.95, 2), ["saturated", "late"]);
        assert_eq!(doubts(LoadPacing::Closed, 0.95, 0), ["generator_limit"]);
        // Latency does not count from the intended time there.
        assert_eq!(doubts(LoadPacing::Deferred, 0.95, 2), ["saturated"]);
    }
}
