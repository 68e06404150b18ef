//! Takes what workers counted away, once a second.

use std::sync::Arc;

use stillwell_metric::{Histogram, LoadShard, LoadTime, Outcome, TimeState, empty_histogram};
use stillwell_scope::PartEnd;
use stillwell_units::{Moment, Nanos};

use super::snapshot::{LoadPhase, LoadSnapshot};

/// How long a worker takes at most to hand over what it was asked for.
const HANDED_OVER: Nanos = Nanos::from_millis(15);

/// What one worker found.
#[derive(Debug)]
pub struct LoadWorkerFound {
    /// Its counts.
    pub shard: Arc<LoadShard>,
    /// Its times, in the order of [`LoadTime::index`].
    pub times: Vec<Histogram<u64>>,
    /// CPU time of its thread, connecting included.
    pub cpu: Nanos,
    /// How long it was measured.
    pub measured: Nanos,
    /// The number of the predicate that ended it, those of termination first.
    pub predicate: Option<usize>,
}

impl LoadWorkerFound {
    /// The times of one kind.
    #[must_use]
    pub fn times(&self, time: LoadTime) -> &Histogram<u64> {
        &self.times[time.index()]
    }
}

/// One second of all workers, or what was left at the end.
#[derive(Debug)]
pub struct LoadSecond {
    /// Since measuring began.
    pub begin: Nanos,
    /// How long it was.
    pub length: Nanos,
    /// Requests that the schedule asked for.
    pub asked: u64,
    /// Requests begun.
    pub begun: u64,
    /// How requests ended, in the order of [`Outcome::ALL`].
    pub outcomes: [u64; Outcome::ALL.len()],
    /// Bytes received and sent.
    pub bytes: [u64; 2],
    /// Latencies from the intended time; empty without a schedule.
    pub response: Histogram<u64>,
    /// Latencies from the sent time.
    pub service: Histogram<u64>,
    /// Sent time less intended time.
    pub lateness: Histogram<u64>,
}

/// Counts of all workers so far.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    asked: u64,
    begun: u64,
    outcomes: [u64; Outcome::ALL.len()],
    /// Of requests of the warm-up.
    warmup_outcomes: [u64; Outcome::ALL.len()],
    bytes: [u64; 2],
}

/// Ways in which a worker's time can go.
const STATES: usize = TimeState::ALL.len();

#[derive(Debug)]
pub(super) struct Collector {
    shards: Vec<Arc<LoadShard>>,
    /// When measuring begins.
    start: Moment,
    is_warm: bool,
    /// Of each worker since the beginning.
    times: Vec<Vec<Histogram<u64>>>,
    /// What the piece under way has recorded so far, all workers together.
    open: Vec<Option<Histogram<u64>>>,
    /// The same of the piece that was closed last.
    last_times: Vec<Option<Histogram<u64>>>,
    seconds: Vec<LoadSecond>,
    /// The piece of the warm-up that was closed last.
    warmup: Option<LoadSecond>,
    /// When the piece under way began.
    begun_at: Moment,
    /// Counts at that time.
    before: Totals,
    /// Counts at its end, once that has come and times are still to be handed over.
    closing: Option<(Moment, Totals)>,
    /// Accounts at the end of the piece that was closed last, and what it added.
    accounts: Vec<[Nanos; STATES]>,
    last_accounts: Vec<[Nanos; STATES]>,
}

impl Collector {
    /// Nothing yet; the load begins at `begin`, measuring at `start`.
    pub(super) fn new(shards: Vec<Arc<LoadShard>>, begin: Moment, start: Moment) -> Self {
        let times = || (0..LoadTime::COUNT).map(|_| empty_histogram()).collect();
        Self {
            times: shards.iter().map(|_| times()).collect(),
            open: no_times(),
            last_times: no_times(),
            before: totals(&shards),
            accounts: shards.iter().map(account).collect(),
            last_accounts: Vec::new(),
            shards,
            start,
            is_warm: start <= begin,
            seconds: Vec::new(),
            warmup: None,
            begun_at: begin,
            closing: None,
        }
    }

    /// What was counted until now belongs to the warm-up, but for outcomes, which
    /// tell it apart themselves.
    pub(super) fn warmed_up(&mut self) {
        self.before = Totals {
            outcomes: [0; Outcome::ALL.len()],
            ..totals(&self.shards)
        };
        self.is_warm = true;
        self.begun_at = self.start;
        self.closing = None;
    }

    /// Closes the piece under way where it has lasted a second. Whether it has,
    /// and so whether there is a new [`Collector::snapshot`].
    pub(super) fn look(&mut self, now: Moment) -> bool {
        match self.closing {
            None => {
                if now >= self.begun_at + Nanos::SECOND {
                    // Asks for the times; they come a little later.
                    self.take();
                    self.closing = Some((now, totals(&self.shards)));
                }
                false
            }
            Some((end, counts)) => {
                if now < end + HANDED_OVER {
                    return false;
                }
                self.take();
                self.close_second(end, counts);
                true
            }
        }
    }

    /// The load at the end of the piece that was closed last.
    pub(super) fn snapshot(&self, is_draining: bool) -> Option<LoadSnapshot<'_>> {
        let (phase, second) = if !self.is_warm {
            (LoadPhase::Warmup, self.warmup.as_ref()?)
        } else if is_draining {
            (LoadPhase::Drain, self.seconds.last()?)
        } else {
            (LoadPhase::Measure, self.seconds.last()?)
        };
        Some(LoadSnapshot {
            phase,
            elapsed: second.begin + second.length,
            shards: &self.shards,
            second,
            accounts: &self.last_accounts,
            times: &self.last_times,
        })
    }

    /// All that was found, once the workers have ended.
    pub(super) fn finish(
        mut self,
        ends: &[PartEnd],
    ) -> (Vec<LoadWorkerFound>, Vec<LoadSecond>, Nanos) {
        self.take();
        let start = self.start;
        let stopped = |shard: &Arc<LoadShard>| Moment::new(shard.stopped.total()).max(start);
        let last = self.shards.iter().map(stopped).max().unwrap_or(start);
        let found = totals(&self.shards);
        if last > self.begun_at || found.outcomes != self.before.outcomes {
            self.close_second(last.max(self.begun_at), found);
        }
        let workers = self.shards.iter().zip(self.times).enumerate();
        let workers = workers.map(|(index, (shard, times))| LoadWorkerFound {
            measured: stopped(shard).since(start),
            cpu: cpu_of(ends, index),
            predicate: usize::try_from(shard.predicate.total())
                .ok()
                .and_then(|number| number.checked_sub(1)),
            shard: Arc::clone(shard),
            times,
        });
        (workers.collect(), self.seconds, last.since(start))
    }

    /// Takes the times that workers have handed over, and asks for more.
    fn take(&mut self) {
        for (shard, times) in self.shards.iter().zip(&mut self.times) {
            for ((time, all), open) in every_time().zip(times).zip(&mut self.open) {
                let Some(taken) = shard.times(time).take() else {
                    continue;
                };
                add(all, &taken);
                match open {
                    Some(open) => add(open, &taken),
                    None => *open = Some(taken),
                }
            }
        }
    }

    fn close_second(&mut self, end: Moment, counts: Totals) {
        let times = std::mem::replace(&mut self.open, no_times());
        let before = std::mem::replace(&mut self.before, counts);
        let mut outcomes = less(counts.outcomes, before.outcomes);
        if !self.is_warm {
            let warmup = less(counts.warmup_outcomes, before.warmup_outcomes);
            for (count, warmup) in outcomes.iter_mut().zip(warmup) {
                *count += warmup;
            }
        }
        let origin = if self.is_warm {
            self.start
        } else {
            self.begun_at
        };
        let bytes = [0, 1].map(|way| counts.bytes[way] - before.bytes[way]);
        let second = LoadSecond {
            begin: self.begun_at.since(origin),
            length: end.since(self.begun_at),
            asked: counts.asked.saturating_sub(before.asked),
            begun: counts.begun.saturating_sub(before.begun),
            outcomes,
            bytes,
            response: over_classes(&times, LoadTime::Response),
            service: over_classes(&times, LoadTime::Service),
            lateness: of(&times, LoadTime::Lateness),
        };
        self.keep(second);
        self.last_times = times;
        let accounts: Vec<[Nanos; STATES]> = self.shards.iter().map(account).collect();
        let pairs = accounts.iter().zip(&self.accounts);
        self.last_accounts = pairs
            .map(|(now, before)| {
                let mut spent = *now;
                for (spent, before) in spent.iter_mut().zip(before) {
                    *spent = spent.saturating_sub(*before);
                }
                spent
            })
            .collect();
        self.accounts = accounts;
        self.begun_at = end;
        self.closing = None;
    }

    /// Pieces of the warm-up are no part of what is found.
    fn keep(&mut self, second: LoadSecond) {
        if self.is_warm {
            self.seconds.push(second);
            return;
        }
        let begin = self
            .warmup
            .as_ref()
            .map_or(Nanos::ZERO, |last| last.begin + last.length);
        self.warmup = Some(LoadSecond { begin, ..second });
    }
}

fn no_times() -> Vec<Option<Histogram<u64>>> {
    (0..LoadTime::COUNT).map(|_| None).collect()
}

/// Many seconds are kept: unlike a copy, adding up touches no memory that has
/// nothing to say.
fn of(times: &[Option<Histogram<u64>>], time: LoadTime) -> Histogram<u64> {
    let mut all = empty_histogram();
    if let Some(histogram) = &times[time.index()] {
        add(&mut all, histogram);
    }
    all
}

fn over_classes(times: &[Option<Histogram<u64>>], time: fn(Outcome) -> LoadTime) -> Histogram<u64> {
    let mut all = empty_histogram();
    let classes = Outcome::ANSWERS
        .into_iter()
        .map(|class| time(class).index());
    for histogram in classes.filter_map(|index| times[index].as_ref()) {
        add(&mut all, histogram);
    }
    all
}

fn less(
    mut counts: [u64; Outcome::ALL.len()],
    before: [u64; Outcome::ALL.len()],
) -> [u64; Outcome::ALL.len()] {
    for (count, before) in counts.iter_mut().zip(before) {
        *count = count.saturating_sub(before);
    }
    counts
}

fn account(shard: &Arc<LoadShard>) -> [Nanos; STATES] {
    TimeState::ALL.map(|state| Nanos::new(shard.account.of(state).total()))
}

/// All times in the order of their places.
fn every_time() -> impl Iterator<Item = LoadTime> {
    let service = Outcome::ANSWERS.into_iter().map(LoadTime::Service);
    let response = Outcome::ANSWERS.into_iter().map(LoadTime::Response);
    service.chain(response).chain([
        LoadTime::FirstByte,
        LoadTime::Lateness,
        LoadTime::OwnLateness,
        LoadTime::Connect,
        LoadTime::Handshake,
        LoadTime::Blocked,
        LoadTime::Origin,
    ])
}

fn add(all: &mut Histogram<u64>, part: &Histogram<u64>) {
    all.add(part)
        .unwrap_or_else(|_| unreachable!("both histograms have the same bounds"));
}

fn totals(shards: &[Arc<LoadShard>]) -> Totals {
    let mut totals = Totals::default();
    for shard in shards {
        totals.asked += shard.asked.total();
        totals.begun += shard.begun.total();
        for (count, cell) in totals.outcomes.iter_mut().zip(&shard.outcomes) {
            *count += cell.total();
        }
        let warmup = totals.warmup_outcomes.iter_mut();
        for (count, cell) in warmup.zip(&shard.warmup_outcomes) {
            *count += cell.total();
        }
        totals.bytes[0] += shard.bytes_received.total();
        totals.bytes[1] += shard.bytes_sent.total();
    }
    totals
}

fn cpu_of(ends: &[PartEnd], index: usize) -> Nanos {
    let name = format!("load-{index}");
    let end = ends.iter().find(|end| end.name == name);
    end.map_or(Nanos::ZERO, |end| end.cpu)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_walked_in_the_order_of_their_places() {
        let places: Vec<usize> = every_time().map(LoadTime::index).collect();
        assert_eq!(places, (0..LoadTime::COUNT).collect::<Vec<_>>());
    }

    #[test]
    fn what_workers_hand_over_stands_in_the_totals_and_in_one_second() {
        let (shard, mut recorders) = LoadShard::pair();
        let shard = Arc::new(shard);
        let start = Moment::new(5);
        let mut collector = Collector::new(vec![Arc::clone(&shard)], start, start);
        let class = LoadTime::Service(Outcome::Ok).index();
        for second in 1_u64..=3 {
            recorders[class].record_many(Nanos::from_millis(second), second);
            shard.outcomes[Outcome::Ok.index()].add(second);
            shard.begun.add(second);
            shard.account.running.add(second);
            let end = start + Nanos::from_secs(second);
            assert!(!collector.look(end));
            recorders[class].hand_over();
            assert!(collector.look(end + HANDED_OVER));
            let snapshot = collector.snapshot(second == 3).unwrap();
            let phase = [LoadPhase::Measure, LoadPhase::Drain][usize::from(second == 3)];
            assert_eq!(snapshot.phase, phase);
            assert_eq!(snapshot.elapsed, Nanos::from_secs(second));
            assert_eq!(snapshot.second.outcomes[Outcome::Ok.index()], second);
            assert_eq!(
                snapshot.sum(|shard| shard.begun.total()),
                (1..=second).sum::<u64>()
            );
            assert_eq!(snapshot.latencies().len(), second);
            let of_class = snapshot.times(LoadTime::Service(Outcome::Ok));
            assert_eq!(of_class.unwrap().len(), second);
            assert!(snapshot.times(LoadTime::Connect).is_none());
            let running = snapshot.accounts[0][TimeState::Running.index()];
            assert_eq!(running, Nanos::new(second));
        }
        recorders[class].record(Nanos::from_millis(9));
        shard.outcomes[Outcome::Dropped.index()].add(1);
        shard
            .stopped
            .set((start + Nanos::from_millis(3500)).as_u64());
        drop(recorders);
        let (workers, seconds, measured) = collector.finish(&[]);
        assert_eq!(measured, Nanos::from_millis(3500));
        let counts: Vec<u64> = seconds.iter().map(|second| second.service.len()).collect();
        assert_eq!(counts, [1, 2, 3, 1]);
        assert_eq!(seconds[3].outcomes[Outcome::Dropped.index()], 1);
        assert_eq!(workers[0].times(LoadTime::Service(Outcome::Ok)).len(), 7);
    }

    #[test]
    fn pieces_of_the_warm_up_are_shown_and_not_kept() {
        let (shard, _recorders) = LoadShard::pair();
        let shard = Arc::new(shard);
        let begin = Moment::new(5);
        let start = begin + Nanos::from_millis(2500);
        let mut collector = Collector::new(vec![Arc::clone(&shard)], begin, start);
        for second in 1_u64..=2 {
            shard.warmup_outcomes[0].add(7);
            shard.begun.add(7);
            let end = begin + Nanos::from_secs(second);
            assert!(!collector.look(end));
            assert!(collector.look(end + HANDED_OVER));
            let snapshot = collector.snapshot(false).unwrap();
            assert_eq!(snapshot.phase, LoadPhase::Warmup);
            assert_eq!(snapshot.elapsed, Nanos::from_secs(second));
            assert_eq!((snapshot.second.outcomes[0], snapshot.second.begun), (7, 7));
        }
        collector.warmed_up();
        shard.outcomes[0].add(3);
        shard.warmup_outcomes[0].add(1);
        shard.begun.add(3);
        let end = start + Nanos::SECOND;
        assert!(!collector.look(end));
        assert!(collector.look(end + HANDED_OVER));
        let snapshot = collector.snapshot(false).unwrap();
        assert_eq!(snapshot.phase, LoadPhase::Measure);
        assert_eq!(snapshot.elapsed, Nanos::SECOND);
        assert_eq!((snapshot.second.outcomes[0], snapshot.second.begun), (3, 3));
        shard.stopped.set(end.as_u64());
        let (_, seconds, measured) = collector.finish(&[]);
        assert_eq!((seconds.len(), measured), (1, Nanos::SECOND));
    }
}
