//! Histograms that a worker fills and the sampler takes away.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use stillwell_units::Nanos;

/// Longest recorded time; longer times count as this long.
pub(crate) const LONGEST: Nanos = Nanos::from_secs(3600);
pub(crate) const SIGNIFICANT_DIGITS: u8 = 3;

/// Histograms that go round: the worker's, one on its way or ready, and those of the
/// interval under way and of the one that is shown.
const ROUND: usize = 4;

/// The worker's end: records into its histogram and hands it over when the sampler
/// has requested it. Histograms go round between both ends: the kernel's
/// first touch of a new one would keep the worker from its work for longer than all
/// that it records in a second.
pub struct Recorder {
    /// `None` until there is something to record.
    current: Option<Histogram<u64>>,
    shared: Arc<Shared>,
}

/// The sampler's end.
#[derive(Clone)]
pub struct Intervals {
    shared: Arc<Shared>,
}

struct Shared {
    wanted: AtomicBool,
    table: Mutex<Table>,
}

/// State shared by both ends.
#[derive(Default)]
struct Table {
    /// For the sampler.
    finished: Option<Histogram<u64>>,
    /// For the worker, empty.
    spares: Vec<Histogram<u64>>,
    /// Number of histograms at both ends and in between.
    made: usize,
}

/// Histogram of an interval. Goes back to the worker once it is dropped.
pub struct Interval {
    histogram: Option<Histogram<u64>>,
    shared: Arc<Shared>,
}

impl Recorder {
    /// A recorder and the other end of it, with all that the first records need.
    #[must_use]
    pub fn pair() -> (Self, Intervals) {
        Self::with(2)
    }

    /// The same of what is rarely recorded, which takes no memory until it is.
    #[must_use]
    pub fn rare_pair() -> (Self, Intervals) {
        Self::with(0)
    }

    fn with(made: usize) -> (Self, Intervals) {
        let mut spares: Vec<_> = (0..made).map(|_| empty_histogram()).collect();
        let current = spares.pop();
        let table = Table {
            finished: None,
            spares,
            made,
        };
        let shared = Arc::new(Shared {
            wanted: AtomicBool::new(false),
            table: Mutex::new(table),
        });
        let recorder = Self {
            current,
            shared: Arc::clone(&shared),
        };
        (recorder, Intervals { shared })
    }

    /// Records one time. Constant time; no allocation where the sampler keeps up, except
    /// for the first one of a rare kind.
    pub fn record(&mut self, time: Nanos) {
        self.record_many(time, 1);
    }

    /// Records the same time `count` times.
    pub fn record_many(&mut self, time: Nanos, count: u64) {
        let value = time.as_u64().clamp(1, LONGEST.as_u64());
        let current = match &mut self.current {
            Some(current) => current,
            none => none.insert(self.shared.histogram()),
        };
        current.saturating_record_n(value, count);
    }

    /// Hands the interval over if the sampler has requested it. To be called
    /// between operations; costs one relaxed load when it has not.
    pub fn hand_over(&mut self) {
        if self.shared.wanted.load(Ordering::Relaxed) {
            self.shared.wanted.store(false, Ordering::Relaxed);
            self.flush();
        }
    }

    /// Hands over the interval, requested or not.
    pub fn flush(&mut self) {
        let Some(current) = &mut self.current else {
            return;
        };
        if current.is_empty() {
            return;
        }
        let mut table = self.shared.lock();
        match table.finished.as_mut() {
            // The sampler was slow: keep both intervals together.
            Some(waiting) => {
                add_histogram(waiting, current);
                current.reset();
            }
            None => {
                let spare = table.spares.pop();
                table.finished = std::mem::replace(&mut self.current, spare);
            }
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.flush();
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let recorded = self.current.as_ref().map_or(0, Histogram::len);
        f.debug_struct("Recorder")
            .field("recorded", &recorded)
            .finish_non_exhaustive()
    }
}

impl Intervals {
    /// Takes the interval that the worker has handed over since the last call, and
    /// requests the next. `None` if the worker has handed over nothing yet.
    #[must_use]
    pub fn take(&self) -> Option<Interval> {
        let mut table = self.shared.lock();
        let finished = table.finished.take();
        let is_short = table.made > 0 && table.made < ROUND && table.spares.is_empty();
        table.made += usize::from(is_short);
        drop(table);
        if is_short {
            self.shared.give(empty_histogram());
        }
        self.shared.wanted.store(true, Ordering::Relaxed);
        finished.map(|histogram| Interval {
            histogram: Some(histogram),
            shared: Arc::clone(&self.shared),
        })
    }
}

impl fmt::Debug for Intervals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intervals").finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An empty histogram for the worker. Apart, since it is rare and what is not
    /// must stay short.
    #[cold]
    #[inline(never)]
    fn histogram(&self) -> Histogram<u64> {
        let mut table = self.lock();
        if let Some(spare) = table.spares.pop() {
            return spare;
        }
        table.made += 1;
        drop(table);
        empty_histogram()
    }

    /// Lays an empty histogram ready for the worker, unless enough are.
    fn give(&self, spare: Histogram<u64>) {
        let mut table = self.lock();
        if table.spares.len() < ROUND {
            table.spares.push(spare);
            return;
        }
        table.made -= 1;
        drop(table);
        drop(spare);
    }
}

impl Deref for Interval {
    type Target = Histogram<u64>;

    fn deref(&self) -> &Histogram<u64> {
        match &self.histogram {
            Some(histogram) => histogram,
            None => unreachable!("it is there until the interval is dropped"),
        }
    }
}

impl Borrow<Histogram<u64>> for Interval {
    fn borrow(&self) -> &Histogram<u64> {
        self
    }
}

impl Interval {
    /// Adds the values of another interval or worker.
    pub fn add(&mut self, added: &Histogram<u64>) {
        if let Some(histogram) = &mut self.histogram {
            add_histogram(histogram, added);
        }
    }
}

impl Drop for Interval {
    fn drop(&mut self) {
        if let Some(mut histogram) = self.histogram.take() {
            histogram.reset();
            self.shared.give(histogram);
        }
    }
}

impl fmt::Debug for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interval")
            .field("recorded", &self.len())
            .finish_non_exhaustive()
    }
}

/// A histogram of times from 1 ns to an hour to three significant digits, as
/// every recorder uses it; all of them merge exactly.
#[must_use]
pub fn empty_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST.as_u64(), SIGNIFICANT_DIGITS)
        .unwrap_or_else(|_| unreachable!("the bounds are constants that the library accepts"))
}

/// Adds the samples of `part` to `all`; both as [`empty_histogram`] makes them.
pub fn add_histogram(all: &mut Histogram<u64>, part: &Histogram<u64>) {
    all.add(part)
        .unwrap_or_else(|_| unreachable!("both histograms have the same bounds"));
}

/// `histogram` in the HdrHistogram V2 encoding.
#[must_use]
pub fn encode_histogram(histogram: &Histogram<u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    V2Serializer::new()
        .serialize(histogram, &mut bytes)
        .unwrap_or_else(|_| unreachable!("a vector takes every byte"));
    bytes
}

/// The histogram that `bytes` encode in HdrHistogram V2, or `None` if they do
/// not.
#[must_use]
pub fn decode_histogram(bytes: &[u8]) -> Option<Histogram<u64>> {
    Deserializer::new().deserialize(&mut &*bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_recorded_is_lost_between_the_ends() {
        let (mut recorder, intervals) = Recorder::pair();
        assert!(intervals.take().is_none());
        recorder.record(Nanos::from_millis(1));
        recorder.hand_over();
        recorder.record(Nanos::from_millis(2));
        let first = intervals.take().map_or(0, |h| h.len());
        drop(recorder);
        let second = intervals.take().map_or(0, |h| h.len());
        assert_eq!((first, second), (1, 1));
    }

    #[test]
    fn a_slow_sampler_gets_both_intervals() {
        let (mut recorder, intervals) = Recorder::pair();
        recorder.record(Nanos::new(5));
        recorder.flush();
        recorder.record(Nanos::new(7));
        recorder.flush();
        assert_eq!(intervals.take().map_or(0, |h| h.len()), 2);
    }

    /// Like the collector: requests an interval, takes it a little later, shows a second
    /// until the next is there, and takes for longer than it shows.
    #[test]
    fn histograms_go_round_and_come_back_empty() {
        for (mut recorder, intervals) in [Recorder::pair(), Recorder::rare_pair()] {
            let (mut shown, mut all, mut expected) = (None, empty_histogram(), 0);
            for number in 1..=20_u64 {
                recorder.record_many(Nanos::from_millis(number), number);
                let mut open = intervals.take();
                recorder.hand_over();
                recorder.record(Nanos::from_secs(number));
                if let Some(taken) = intervals.take() {
                    add_histogram(&mut all, &taken);
                    match &mut open {
                        Some(open) => open.add(&taken),
                        None => open = Some(taken),
                    }
                }
                recorder.hand_over();
                // Values between two requests belong to the next second.
                expected += number + u64::from(number > 1);
                let open = open.expect("something was recorded");
                assert_eq!(open.len(), number + u64::from(number > 1));
                shown = Some(open);
            }
            let made = intervals.shared.lock().made;
            assert!(made <= ROUND, "{made} histograms");
            assert_eq!(all.len(), expected - 19);
            drop(shown);
            assert_eq!(intervals.shared.lock().made, made);
        }
    }

    #[test]
    fn more_histograms_than_go_round_are_given_up() {
        let (mut recorder, intervals) = Recorder::rare_pair();
        let mut kept = Vec::new();
        for number in 1..=10_u64 {
            recorder.record_many(Nanos::new(number), number);
            recorder.flush();
            kept.extend(intervals.take());
        }
        let lengths: Vec<u64> = kept.iter().map(|interval| interval.len()).collect();
        assert_eq!(lengths, (1..=10).collect::<Vec<u64>>());
        drop(kept);
        let table = intervals.shared.lock();
        assert_eq!(table.spares.len(), ROUND);
        let held = usize::from(recorder.current.is_some());
        assert_eq!(table.made, ROUND + held);
        assert!(table.spares.iter().all(Histogram::is_empty));
    }

    #[test]
    fn histograms_read_back() {
        let (mut recorder, intervals) = Recorder::pair();
        recorder.record_many(Nanos::from_secs(7200), 3);
        recorder.flush();
        let histogram = intervals.take().unwrap();
        let again = decode_histogram(&encode_histogram(&histogram)).unwrap();
        assert_eq!(*histogram, again);
        assert!(decode_histogram(b"not a histogram").is_none());
    }
}
