//! Histograms that a worker fills and the sampler takes away.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use stillwell_units::Nanos;

/// The longest time that is told apart; longer ones count as this long.
const LONGEST: Nanos = Nanos::from_secs(3600);
const SIGNIFICANT_DIGITS: u8 = 3;

/// The worker's end: records into a histogram of its own and hands it over when
/// the sampler has asked for it.
pub struct Recorder {
    current: Histogram<u64>,
    shared: Arc<Shared>,
}

/// The sampler's end.
#[derive(Clone)]
pub struct Intervals {
    shared: Arc<Shared>,
}

struct Shared {
    wanted: AtomicBool,
    finished: Mutex<Option<Histogram<u64>>>,
}

impl Recorder {
    /// A recorder and the other end of it.
    #[must_use]
    pub fn pair() -> (Self, Intervals) {
        let shared = Arc::new(Shared {
            wanted: AtomicBool::new(false),
            finished: Mutex::new(None),
        });
        let recorder = Self {
            current: empty_histogram(),
            shared: Arc::clone(&shared),
        };
        (recorder, Intervals { shared })
    }

    /// Records one time. Constant time, no allocation.
    pub fn record(&mut self, time: Nanos) {
        self.record_many(time, 1);
    }

    /// Records the same time `count` times.
    pub fn record_many(&mut self, time: Nanos, count: u64) {
        let value = time.as_u64().clamp(1, LONGEST.as_u64());
        self.current.saturating_record_n(value, count);
    }

    /// Hands the interval over if the sampler has asked for it. To be called
    /// between operations; costs one relaxed load when it has not.
    pub fn hand_over(&mut self) {
        if self.shared.wanted.load(Ordering::Relaxed) {
            self.shared.wanted.store(false, Ordering::Relaxed);
            if !self.current.is_empty() {
                self.flush();
            }
        }
    }

    /// Hands over what was recorded since, whether asked or not.
    pub fn flush(&mut self) {
        let mut finished = lock(&self.shared.finished);
        match finished.as_mut() {
            // The sampler was slow: keep both intervals together.
            Some(waiting) => {
                add_histogram(waiting, &self.current);
                self.current.reset();
            }
            None => *finished = Some(std::mem::replace(&mut self.current, empty_histogram())),
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
        f.debug_struct("Recorder")
            .field("recorded", &self.current.len())
            .finish_non_exhaustive()
    }
}

impl Intervals {
    /// What the worker has handed over since the last call, and a request for
    /// the next interval. `None` if it has handed over nothing yet.
    #[must_use]
    pub fn take(&self) -> Option<Histogram<u64>> {
        self.shared.wanted.store(true, Ordering::Relaxed);
        lock(&self.shared.finished).take()
    }
}

impl fmt::Debug for Intervals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intervals").finish_non_exhaustive()
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

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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

    #[test]
    fn histograms_read_back() {
        let (mut recorder, intervals) = Recorder::pair();
        recorder.record_many(Nanos::from_secs(7200), 3);
        recorder.flush();
        let histogram = intervals.take().unwrap();
        let again = decode_histogram(&encode_histogram(&histogram)).unwrap();
        assert_eq!(histogram, again);
        assert!(decode_histogram(b"not a histogram").is_none());
    }
}
