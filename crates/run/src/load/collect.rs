//! Takes what workers counted away, once a second.

use std::sync::Arc;

use stillwell_metric::{Histogram, LoadShard, LoadTime, Outcome, empty_histogram};
use stillwell_scope::PartEnd;
use stillwell_units::{Moment, Nanos};

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

/// What a reader is told while a load goes on: totals since measuring began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadBeat {
    /// Since measuring began.
    pub elapsed: Nanos,
    /// Requests that ended in the last second.
    pub ended: u64,
    /// Those of them that were answered as they should.
    pub good: u64,
    /// Median and 99th percentile of the last second's latency, from the intended
    /// time where there is a schedule.
    pub latency: [Nanos; 2],
}

/// Counts of all workers so far.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    asked: u64,
    begun: u64,
    outcomes: [u64; Outcome::ALL.len()],
    bytes: [u64; 2],
}

#[derive(Debug)]
pub(super) struct Collector {
    shards: Vec<Arc<LoadShard>>,
    start: Moment,
    times: Vec<Vec<Histogram<u64>>>,
    /// What the second under way has recorded so far.
    open: Open,
    seconds: Vec<LoadSecond>,
    /// When the second under way began.
    begun_at: Moment,
    /// Counts at that time.
    before: Totals,
    /// Counts at its end, once that has come and times are still to be handed over.
    closing: Option<(Moment, Totals)>,
}

#[derive(Debug)]
struct Open {
    response: Histogram<u64>,
    service: Histogram<u64>,
    lateness: Histogram<u64>,
}

impl Open {
    fn new() -> Self {
        Self {
            response: empty_histogram(),
            service: empty_histogram(),
            lateness: empty_histogram(),
        }
    }
}

impl Collector {
    /// Nothing yet; measuring begins at `start`.
    pub(super) fn new(shards: Vec<Arc<LoadShard>>, start: Moment) -> Self {
        let times = || (0..LoadTime::COUNT).map(|_| empty_histogram()).collect();
        Self {
            times: shards.iter().map(|_| times()).collect(),
            before: totals(&shards),
            shards,
            start,
            open: Open::new(),
            seconds: Vec::new(),
            begun_at: start,
            closing: None,
        }
    }

    /// What was counted until now belongs to the warm-up, but for outcomes, which
    /// tell it apart themselves.
    pub(super) fn warmed_up(&mut self) {
        let outcomes = self.before.outcomes;
        self.before = Totals {
            outcomes,
            ..totals(&self.shards)
        };
    }

    /// Closes the second under way where it is over.
    pub(super) fn look(&mut self, now: Moment) -> Option<LoadBeat> {
        match self.closing {
            None => {
                if now >= self.begun_at + Nanos::SECOND {
                    // Asks for the times; they come a little later.
                    self.take();
                    self.closing = Some((now, totals(&self.shards)));
                }
                None
            }
            Some((end, counts)) => {
                if now < end + HANDED_OVER {
                    return None;
                }
                self.take();
                self.close_second(end, counts);
                self.beat()
            }
        }
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
            for (time, all) in every_time().zip(times) {
                let Some(taken) = shard.times(time).take() else {
                    continue;
                };
                add(all, &taken);
                match time {
                    LoadTime::Service(_) => add(&mut self.open.service, &taken),
                    LoadTime::Response(_) => add(&mut self.open.response, &taken),
                    LoadTime::Lateness => add(&mut self.open.lateness, &taken),
                    _ => {}
                }
            }
        }
    }

    fn close_second(&mut self, end: Moment, counts: Totals) {
        let Open {
            response,
            service,
            lateness,
        } = std::mem::replace(&mut self.open, Open::new());
        let before = std::mem::replace(&mut self.before, counts);
        let mut outcomes = counts.outcomes;
        for (count, before) in outcomes.iter_mut().zip(before.outcomes) {
            *count = count.saturating_sub(before);
        }
        let bytes = [0, 1].map(|way| counts.bytes[way] - before.bytes[way]);
        self.seconds.push(LoadSecond {
            begin: self.begun_at.since(self.start),
            length: end.since(self.begun_at),
            asked: counts.asked.saturating_sub(before.asked),
            begun: counts.begun.saturating_sub(before.begun),
            outcomes,
            bytes,
            response,
            service,
            lateness,
        });
        self.begun_at = end;
        self.closing = None;
    }

    fn beat(&self) -> Option<LoadBeat> {
        let second = self.seconds.last()?;
        let latency = if second.response.is_empty() {
            &second.service
        } else {
            &second.response
        };
        Some(LoadBeat {
            elapsed: second.begin + second.length,
            ended: second.outcomes.iter().sum(),
            good: second.outcomes[Outcome::Ok.index()],
            latency: [0.5, 0.99].map(|quantile| Nanos::new(latency.value_at_quantile(quantile))),
        })
    }
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
        let mut collector = Collector::new(vec![Arc::clone(&shard)], start);
        let class = LoadTime::Service(Outcome::Ok).index();
        for second in 1_u64..=3 {
            recorders[class].record_many(Nanos::from_millis(second), second);
            shard.outcomes[Outcome::Ok.index()].add(second);
            shard.begun.add(second);
            let end = start + Nanos::from_secs(second);
            assert_eq!(collector.look(end), None);
            recorders[class].hand_over();
            let beat = collector.look(end + HANDED_OVER).unwrap();
            assert_eq!((beat.ended, beat.good), (second, second));
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
}
