//! Takes what workers counted away, once a second.

use std::borrow::Borrow;
use std::sync::{Arc, LazyLock};

use stillwell_capture::LoadSecond;
use stillwell_metric::{
    Histogram, Interval, LoadShard, LoadTime, Outcome, PackedHistogram, PhasedCell, TimeState,
    add_histogram, empty_histogram,
};
use stillwell_scope::PartEnd;
use stillwell_units::{Moment, Nanos};

use super::snapshot::{LoadPhase, LoadSnapshot, is_unreached};

/// The longest time that a worker takes to hand over its counts.
const HANDED_OVER: Nanos = Nanos::from_millis(15);

/// A shorter piece at the end is no piece of its own.
const PIECE_MIN: Nanos = Nanos::from_millis(100);
/// Length of the first piece if nothing is reached: the load can then be ended at once.
const UNREACHED: Nanos = Nanos::from_millis(100);

/// An empty histogram.
static NOTHING: LazyLock<Histogram<u64>> = LazyLock::new(empty_histogram);

/// The result of one worker.
#[derive(Debug)]
pub(super) struct LoadWorkerResult {
    /// Its counts.
    pub(super) shard: Arc<LoadShard>,
    /// Its times, in the order of [`LoadTime::index`].
    pub(super) times: Vec<Option<Histogram<u64>>>,
    /// CPU time of its thread, connecting included where there is no warm-up.
    pub(super) cpu: Nanos,
    /// Length of measuring.
    pub(super) measured: Nanos,
    /// The number of the predicate that ended it, those of termination first.
    pub(super) predicate: Option<usize>,
}

impl LoadWorkerResult {
    /// The times of one kind.
    pub(super) fn times(&self, time: LoadTime) -> &Histogram<u64> {
        self.times[time.index()].as_ref().unwrap_or(&NOTHING)
    }
}

/// Values of one kind of time, of all workers together.
pub(super) fn total_times(workers: &[LoadWorkerResult], time: LoadTime) -> Histogram<u64> {
    let mut total = empty_histogram();
    for worker in workers {
        add_histogram(&mut total, worker.times(time));
    }
    total
}

/// Takes what `after` has counted and recorded, but no time.
fn join(second: &mut LoadSecond, after: &LoadSecond) {
    second.requested += after.requested;
    second.begun += after.begun;
    second.sent += after.sent;
    for (count, more) in second.outcomes.iter_mut().zip(after.outcomes) {
        *count += more;
    }
    for (count, more) in second.bytes.iter_mut().zip(after.bytes) {
        *count += more;
    }
    for (all, more) in [
        (&mut second.response, &after.response),
        (&mut second.service, &after.service),
        (&mut second.lateness, &after.lateness),
    ] {
        if !more.is_empty() {
            let mut both = all.unpack();
            add_histogram(&mut both, &more.unpack());
            *all = PackedHistogram::new(&both);
        }
    }
}

/// Counts of all workers so far: of the warm-up while that lasts, and of the
/// measured time from then on.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct LoadTotals {
    requested: u64,
    begun: u64,
    sent: u64,
    outcomes: [u64; Outcome::ALL.len()],
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
    /// True if pieces of several generators are added by their number.
    is_of_fleet: bool,
    /// Of each worker since the beginning.
    times: Vec<Vec<Option<Histogram<u64>>>>,
    /// Records of the present piece so far, all workers together.
    open: Vec<Option<Interval>>,
    /// The same of the piece that was closed last.
    last_times: Vec<Option<Interval>>,
    /// And its latencies, as a reader wants them.
    latencies: Histogram<u64>,
    seconds: Vec<LoadSecond>,
    /// The piece of the warm-up that was closed last.
    warmup: Option<LoadSecond>,
    /// When the piece under way began.
    begun_at: Moment,
    /// Counts at that time.
    before: LoadTotals,
    /// Counts at its end, once that has come and times are still to be handed over.
    closing: Option<(Moment, LoadTotals)>,
    /// Accounts at the end of the piece that was closed last, and what it added.
    accounts: Vec<[Nanos; STATES]>,
    last_accounts: Vec<[Nanos; STATES]>,
}

impl Collector {
    /// Nothing yet; the load begins at `begin`, measuring at `start`.
    pub(super) fn new(shards: Vec<Arc<LoadShard>>, begin: Moment, start: Moment) -> Self {
        Self {
            times: shards.iter().map(|_| no_times()).collect(),
            open: no_times(),
            last_times: no_times(),
            latencies: empty_histogram(),
            before: LoadTotals::default(),
            accounts: shards.iter().map(account).collect(),
            last_accounts: Vec::new(),
            shards,
            start,
            is_warm: start <= begin,
            is_of_fleet: false,
            seconds: Vec::new(),
            warmup: None,
            begun_at: begin,
            closing: None,
        }
    }

    /// The same for one of several generators if `is_of_fleet`: its first piece is as long as
    /// theirs, to which it is added. No reader ends such a load early.
    pub(super) fn fleet(self, is_of_fleet: bool) -> Self {
        Self {
            is_of_fleet,
            ..self
        }
    }

    /// The warm-up is over. What belongs to it the shards know themselves.
    pub(super) fn warmed_up(&mut self) {
        self.before = LoadTotals::default();
        self.accounts = self.shards.iter().map(account).collect();
        self.is_warm = true;
        self.begun_at = self.start;
        self.closing = None;
    }

    /// Length of the piece under way.
    fn piece(&self) -> Nanos {
        let is_first = self.seconds.is_empty() && self.warmup.is_none();
        if is_first && !self.is_of_fleet && is_unreached(&self.shards) {
            UNREACHED
        } else {
            Nanos::SECOND
        }
    }

    /// When the next [`Collector::look`] will change anything.
    pub(super) fn next_look(&self) -> Moment {
        match self.closing {
            None => self.begun_at + self.piece(),
            Some((end, _)) => end + HANDED_OVER,
        }
    }

    /// Closes the piece under way where it has lasted a second. Whether it has,
    /// and so whether there is a new [`Collector::snapshot`].
    pub(super) fn look(&mut self, now: Moment) -> bool {
        match self.closing {
            None => {
                if now >= self.begun_at + self.piece() {
                    // Requests the times; they come a little later.
                    self.take();
                    self.closing = Some((now, self.totals()));
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
            worker_times: &self.times,
            latencies: &self.latencies,
        })
    }

    /// All that was found, once the workers have ended.
    pub(super) fn finish(
        mut self,
        ends: &[PartEnd],
    ) -> (Vec<LoadWorkerResult>, Vec<LoadSecond>, Nanos) {
        self.take();
        let start = self.start;
        let stopped = |shard: &Arc<LoadShard>| Moment::new(shard.stopped.total()).max(start);
        let last = self.shards.iter().map(stopped).max().unwrap_or(start);
        let totals = self.totals();
        // Times may come after what they are times of was counted.
        let has_times = self.open.iter().any(Option::is_some);
        if last > self.begun_at || totals != self.before || has_times {
            self.close_second(last.max(self.begun_at), totals);
        }
        self.fit_to_length(last.since(start));
        let workers = self.shards.iter().zip(self.times).enumerate();
        let workers = workers.map(|(index, (shard, times))| LoadWorkerResult {
            measured: stopped(shard).since(start),
            cpu: cpu_of(ends, index).saturating_sub(Nanos::new(shard.warmup_cpu.total())),
            predicate: usize::try_from(shard.predicate.total())
                .ok()
                .and_then(|number| number.checked_sub(1)),
            shard: Arc::clone(shard),
            times,
        });
        (workers.collect(), self.seconds, last.since(start))
    }

    /// Takes the times that workers have handed over, and requests more.
    fn take(&mut self) {
        for (shard, times) in self.shards.iter().zip(&mut self.times) {
            for ((time, all), open) in LoadTime::all().zip(times).zip(&mut self.open) {
                let Some(taken) = shard.times(time).take() else {
                    continue;
                };
                match all {
                    Some(all) => add_histogram(all, &taken),
                    None => *all = Some(taken.clone()),
                }
                match open {
                    Some(open) => open.add(&taken),
                    None => *open = Some(taken),
                }
            }
        }
    }

    fn close_second(&mut self, end: Moment, counts: LoadTotals) {
        let times = std::mem::replace(&mut self.open, no_times());
        let before = std::mem::replace(&mut self.before, counts);
        let origin = if self.is_warm {
            self.start
        } else {
            self.begun_at
        };
        let bytes = [0, 1].map(|way| counts.bytes[way].saturating_sub(before.bytes[way]));
        let [response, service] =
            [LoadTime::Response, LoadTime::Service].map(|time| over_classes(&times, time));
        let lateness = times[LoadTime::Lateness.index()].as_deref();
        let second = LoadSecond {
            begin: self.begun_at.since(origin),
            length: end.since(self.begun_at),
            requested: counts.requested.saturating_sub(before.requested),
            begun: counts.begun.saturating_sub(before.begun),
            sent: counts.sent.saturating_sub(before.sent),
            outcomes: less(counts.outcomes, before.outcomes),
            bytes,
            response: PackedHistogram::new(&response),
            service: PackedHistogram::new(&service),
            lateness: lateness.map(PackedHistogram::new).unwrap_or_default(),
        };
        self.latencies = if response.is_empty() {
            service
        } else {
            response
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

    /// Fits the pieces to the measured length: a later end takes no time, and a moment has no rate.
    fn fit_to_length(&mut self, measured: Nanos) {
        while let [.., before, last] = &mut self.seconds[..]
            && measured.saturating_sub(last.begin) < PIECE_MIN
        {
            join(before, last);
            self.seconds.pop();
        }
        if let Some(last) = self.seconds.last_mut() {
            last.length = measured.saturating_sub(last.begin);
        }
    }

    fn totals(&self) -> LoadTotals {
        let mut totals = LoadTotals::default();
        for shard in &self.shards {
            let outcomes = if self.is_warm {
                &shard.outcomes
            } else {
                &shard.warmup_outcomes
            };
            for (count, cell) in totals.outcomes.iter_mut().zip(outcomes) {
                *count += cell.total();
            }
            let (begun, sent) = if self.is_warm {
                (&shard.begun, &shard.sent)
            } else {
                (&shard.warmup_begun, &shard.warmup_sent)
            };
            totals.begun += begun.total();
            totals.sent += sent.total();
            let count = |cell: &PhasedCell| {
                if self.is_warm {
                    cell.measured()
                } else {
                    cell.total()
                }
            };
            totals.requested += count(&shard.requested);
            totals.bytes[0] += count(&shard.bytes_received);
            totals.bytes[1] += count(&shard.bytes_sent);
        }
        totals
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

fn no_times<T>() -> Vec<Option<T>> {
    (0..LoadTime::COUNT).map(|_| None).collect()
}

/// The times of answers of every class.
fn over_classes<T: Borrow<Histogram<u64>>>(
    times: &[Option<T>],
    time: fn(Outcome) -> LoadTime,
) -> Histogram<u64> {
    let mut all = empty_histogram();
    let classes = Outcome::ANSWERS
        .into_iter()
        .map(|class| time(class).index());
    for histogram in classes.filter_map(|index| times[index].as_ref()) {
        add_histogram(&mut all, histogram.borrow());
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

fn cpu_of(ends: &[PartEnd], index: usize) -> Nanos {
    let name = format!("load-{index}");
    let end = ends.iter().find(|end| end.name == name);
    end.map_or(Nanos::ZERO, |end| end.cpu)
}

#[cfg(test)]
mod tests {
    use stillwell_metric::Recorder;

    use super::*;

    #[test]
    fn a_load_that_reaches_nothing_has_a_short_first_piece() {
        let (shard, _recorders) = LoadShard::pair();
        let shard = Arc::new(shard);
        let start = Moment::new(5);
        let mut collector = Collector::new(vec![Arc::clone(&shard)], start, start);
        shard.connect_failures.add(1);
        assert!(!collector.look(start + UNREACHED));
        assert!(collector.look(start + UNREACHED + HANDED_OVER));
        assert!(collector.snapshot(false).unwrap().is_unreached());
        let next = start + UNREACHED + UNREACHED + HANDED_OVER;
        assert!(!collector.look(next) && !collector.look(next + HANDED_OVER));
        shard.outcomes[Outcome::Ok.index()].add(1);
        assert!(!is_unreached(&[shard]));
    }

    /// A whole second of other generators was added to a piece of a tenth of a second.
    #[test]
    fn the_first_piece_of_a_generator_of_a_fleet_is_never_short() {
        let (shard, _recorders) = LoadShard::pair();
        let shard = Arc::new(shard);
        let start = Moment::new(5);
        let collector = Collector::new(vec![Arc::clone(&shard)], start, start);
        let mut collector = collector.fleet(true);
        shard.connect_failures.add(1);
        assert_eq!(collector.next_look(), start + Nanos::SECOND);
        assert!(!collector.look(start + UNREACHED));
        assert!(!collector.look(start + UNREACHED + HANDED_OVER));
        let end = start + Nanos::SECOND;
        assert!(!collector.look(end));
        assert!(collector.look(end + HANDED_OVER));
        let snapshot = collector.snapshot(false).unwrap();
        assert!(snapshot.is_unreached());
        assert_eq!(snapshot.second.length, Nanos::SECOND);
    }

    #[test]
    fn handed_over_counts_are_in_the_totals_and_in_one_second() {
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
        let counts = seconds.iter().map(|second| second.service.unpack().len());
        let counts: Vec<u64> = counts.collect();
        assert_eq!(counts, [1, 2, 3, 1]);
        assert_eq!(seconds[3].outcomes[Outcome::Dropped.index()], 1);
        assert_eq!(workers[0].times(LoadTime::Service(Outcome::Ok)).len(), 7);
    }

    #[test]
    fn pieces_of_the_warm_up_are_shown_and_not_kept() {
        let (shard, _recorders) = LoadShard::pair();
        let shard = Arc::new(shard);
        shard.warm_up();
        let begin = Moment::new(5);
        let start = begin + Nanos::from_millis(2500);
        let mut collector = Collector::new(vec![Arc::clone(&shard)], begin, start);
        for second in 1_u64..=2 {
            shard.warmup_outcomes[0].add(7);
            shard.warmup_begun.add(7);
            shard.bytes_sent.add(70);
            let end = begin + Nanos::from_secs(second);
            assert!(!collector.look(end));
            assert!(collector.look(end + HANDED_OVER));
            let snapshot = collector.snapshot(false).unwrap();
            assert_eq!(snapshot.phase, LoadPhase::Warmup);
            assert_eq!(snapshot.elapsed, Nanos::from_secs(second));
            let shown = (snapshot.second.outcomes[0], snapshot.second.begun);
            assert_eq!((shown, snapshot.second.bytes[1]), ((7, 7), 70));
        }
        collector.warmed_up();
        // The worker receives it a little later.
        shard.bytes_sent.add(5);
        shard.measure(14, 0, 0);
        shard.outcomes[0].add(3);
        shard.warmup_outcomes[0].add(1);
        shard.begun.add(3);
        shard.sent.add(2);
        shard.bytes_sent.add(20);
        shard.requested.set(18);
        let end = start + Nanos::SECOND;
        assert!(!collector.look(end));
        assert!(collector.look(end + HANDED_OVER));
        let snapshot = collector.snapshot(false).unwrap();
        assert_eq!(snapshot.phase, LoadPhase::Measure);
        assert_eq!(snapshot.elapsed, Nanos::SECOND);
        let second = snapshot.second;
        assert_eq!((second.outcomes[0], second.begun, second.sent), (3, 3, 2));
        assert_eq!((second.requested, second.bytes[1]), (4, 20));
        shard.stopped.set(end.as_u64());
        let (_, seconds, measured) = collector.finish(&[]);
        assert_eq!((seconds.len(), measured), (1, Nanos::SECOND));
    }

    #[test]
    fn pieces_lasted_longer_than_the_load_and_lost_times() {
        let (shard, mut recorders) = LoadShard::pair();
        let shard = Arc::new(shard);
        let start = Moment::new(5);
        let shards = vec![Arc::clone(&shard)];
        let mut collector = Collector::new(shards, start, start);
        // It ends after 1.5 s, and answers come for two more seconds.
        let stopped = start + Nanos::from_millis(1500);
        for millis in [1003, 1018, 2004, 2019, 3005, 3020] {
            shard.outcomes[0].add(1);
            collector.look(start + Nanos::from_millis(millis));
        }
        // One more, and a time that comes late.
        shard.outcomes[0].add(1);
        recorders[LoadTime::Service(Outcome::Ok).index()].record(Nanos::from_millis(1));
        drop(recorders);
        shard.stopped.set(stopped.as_u64());
        let (_, seconds, measured) = collector.finish(&[]);
        let lengths: Vec<Nanos> = seconds.iter().map(|second| second.length).collect();
        assert_eq!(lengths, [1003, 497].map(Nanos::from_millis));
        assert_eq!(measured, Nanos::from_millis(1500));
        assert_eq!(seconds.iter().map(|item| item.outcomes[0]).sum::<u64>(), 7);
        assert_eq!(seconds[1].service.unpack().len(), 1);
    }

    #[test]
    fn a_moment_at_the_end_is_no_second() {
        let (shard, _recorders) = LoadShard::pair();
        let shard = Arc::new(shard);
        let start = Moment::new(5);
        let mut collector = Collector::new(vec![Arc::clone(&shard)], start, start);
        for millis in [1000, 1015] {
            shard.outcomes[0].add(10);
            collector.look(start + Nanos::from_millis(millis));
        }
        shard.outcomes[0].add(10);
        let stopped = start + Nanos::from_millis(1001);
        shard.stopped.set(stopped.as_u64());
        let (_, seconds, measured) = collector.finish(&[]);
        let lengths: Vec<_> = seconds
            .iter()
            .map(|item| (item.length, item.outcomes[0]))
            .collect();
        assert_eq!(lengths, [(measured, 30)]);
    }

    /// Three histograms of each second, which took 800 kB, took gigabytes in an
    /// hour. Ten thousand requests a second with a long tail now take 64 MB.
    #[test]
    fn an_hour_of_seconds_filled_the_memory() {
        const SECONDS_TRIED: u64 = 60;
        const HOUR_MAX: u64 = 64 << 20;
        let (shard, mut recorders) = LoadShard::pair();
        let shard = Arc::new(shard);
        let start = Moment::new(5);
        let mut collector = Collector::new(vec![Arc::clone(&shard)], start, start);
        let mut state = 1_u64;
        let mut draw = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state >> 40
        };
        for second in 1..=SECONDS_TRIED {
            for _ in 0..10_000 {
                // From 100 us on, one of a thousand ten times as long.
                let tail = if draw() % 1000 == 0 { 9 } else { 0 };
                let sum = (0..6).map(|_| draw() % 40_000).sum::<u64>();
                let service = (100_000 + sum) * (1 + tail);
                for (time, more) in [
                    (LoadTime::Service(Outcome::Ok), service),
                    (LoadTime::Response(Outcome::Ok), service + draw() % 60_000),
                    (LoadTime::Lateness, draw() % 60_000),
                ] {
                    recorders[time.index()].record(Nanos::new(more));
                }
            }
            let end = start + Nanos::from_secs(second);
            assert!(!collector.look(end));
            recorders.iter_mut().for_each(Recorder::hand_over);
            assert!(collector.look(end + HANDED_OVER));
        }
        let bytes = collector.seconds.iter().map(|second| {
            let packed = [&second.response, &second.service, &second.lateness];
            let packed = packed
                .iter()
                .map(|answer| answer.bytes().len())
                .sum::<usize>();
            (packed + size_of::<LoadSecond>()) as u64
        });
        let hour = bytes.sum::<u64>() * 3600 / SECONDS_TRIED;
        assert!(hour < HOUR_MAX, "{} MB an hour", hour >> 20);
        let counts = collector
            .seconds
            .iter()
            .map(|item| item.response.unpack().len());
        assert_eq!(counts.sum::<u64>(), SECONDS_TRIED * 10_000);
    }
}
