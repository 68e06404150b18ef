//! Growth of latency within a probe: a queue that fills.

use stillwell_metric::{Histogram, add_histogram};
use stillwell_units::{Nanos, count, float_from_u64};

use crate::limits::PROBE_GROWTH;

/// Maximum number of pieces whose latencies are compared.
const PIECES_MAX: usize = 4;
/// Fewest latencies of a piece.
const SAMPLES_MIN: u64 = 20;
/// A last piece with a smaller share of the latencies of the first one has only the late ones.
const LAST_SHARE_MIN: f64 = 0.25;
/// Quantiles of the last and of the first piece: nearly all requests of the last one took longer than
/// nearly all of the first one.
const QUANTILES: (f64, f64) = (0.1, 0.9);

/// Growth of latency within a probe.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LatencyGrowth {
    /// Median latency in the first piece of the probe.
    pub from: Nanos,
    /// Median latency in the last piece.
    pub to: Nanos,
}

impl LatencyGrowth {
    /// Returns the difference of both medians.
    #[must_use]
    pub const fn size(self) -> Nanos {
        self.to.saturating_sub(self.from)
    }
}

/// Returns the growth of latency in a probe of this `length`, of which `pieces` are consecutive parts of
/// about the same length; `None` if no queue filled.
///
/// The median rises from piece to piece, by [`PROBE_GROWTH`] of the time or more. Nine of ten requests of the last
/// piece take longer than nine of ten of the first one. So neither a pause nor a slow tail counts.
#[must_use]
pub fn latency_growth(pieces: &[Histogram<u64>], length: Nanos) -> Option<LatencyGrowth> {
    let parts = joined(pieces);
    let (first, last) = (parts.first()?, parts.last()?);
    if parts.len() < 2 || parts.iter().any(|part| part.len() < SAMPLES_MIN) {
        return None;
    }
    let median = |part: &Histogram<u64>| part.value_at_quantile(0.5);
    let rises = parts
        .windows(2)
        .all(|pair| median(&pair[0]) < median(&pair[1]));
    let is_apart = last.value_at_quantile(QUANTILES.0) > first.value_at_quantile(QUANTILES.1);
    let growth = LatencyGrowth {
        from: Nanos::new(median(first)),
        to: Nanos::new(median(last)),
    };
    // From the middle of the first piece to the middle of the last one.
    let steps = float_from_u64(u64::from(count(parts.len())));
    let between = length.as_secs_f64() * (steps - 1.0) / steps;
    let is_queue = growth.size().as_secs_f64() >= PROBE_GROWTH * between;
    (rises && is_apart && is_queue).then_some(growth)
}

/// Joins neighbours to a few parts.
fn joined(pieces: &[Histogram<u64>]) -> Vec<Histogram<u64>> {
    let pieces = match pieces {
        [first, .., last]
            if float_from_u64(last.len()) < LAST_SHARE_MIN * float_from_u64(first.len()) =>
        {
            &pieces[..pieces.len() - 1]
        }
        pieces => pieces,
    };
    let size = pieces.len().div_ceil(PIECES_MAX).max(1);
    let join = |chunk: &[Histogram<u64>]| {
        let mut all = chunk.first()?.clone();
        chunk[1..]
            .iter()
            .for_each(|piece| add_histogram(&mut all, piece));
        Some(all)
    };
    pieces.chunks_exact(size).filter_map(join).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stillwell_metric::empty_histogram;

    use super::*;

    const LENGTH: Nanos = Nanos::from_secs(2);

    /// Latencies in milliseconds, as pieces.
    fn pieces(all: &[Vec<f64>]) -> Vec<Histogram<u64>> {
        let piece = |millis: &Vec<f64>| {
            let mut times = empty_histogram();
            for millis in millis {
                let time = Nanos::from_secs_f64(millis / 1e3);
                times.record(time.as_u64()).unwrap();
            }
            times
        };
        all.iter().map(piece).collect()
    }

    /// A server that takes `service` requests a second and gets `rate`, without noise.
    fn queue(rate: f64, service: f64, seconds: u32) -> Vec<Histogram<u64>> {
        let second = |second: u32| -> Vec<f64> {
            let wait = |at: f64| (at * (rate / service - 1.0)).max(0.0) * 1e3 + 1.0;
            (0..100)
                .map(|n| wait(f64::from(second) + f64::from(n) / 100.0))
                .collect()
        };
        pieces(&(0..seconds).map(second).collect::<Vec<_>>())
    }

    /// F5: a queue that fills within a probe kept the bounds of the probe, and the capacity was too high.
    #[test]
    fn f5_a_queue_that_fills_is_a_growth_of_latency() {
        for seconds in [2, 3, 8, 10] {
            let length = Nanos::from_secs(seconds.into());
            let growth = |rate| latency_growth(&queue(rate, 1000.0, seconds), length);
            assert_eq!(growth(900.0), None);
            assert_eq!(growth(1000.0), None);
            // Half a millisecond each second is within the precision of any search.
            assert_eq!(growth(1000.5), None);
            let growth = growth(1010.0).unwrap();
            assert!(growth.size() >= Nanos::from_millis(9), "{growth:?}");
        }
        assert_eq!(latency_growth(&[], LENGTH), None);
    }

    #[test]
    fn a_pause_or_a_slow_tail_is_no_growth() {
        let usual: Vec<f64> = (0..100).map(|n| 1.0 + f64::from(n) / 100.0).collect();
        let paused: Vec<f64> = (0..100).map(|n| if n < 40 { 300.0 } else { 1.5 }).collect();
        let few = vec![500.0; 10];
        for all in [
            vec![usual.clone(), paused.clone()],
            vec![paused.clone(), usual.clone()],
            // Requests that end after the load was over.
            vec![usual.clone(), usual.clone(), few.clone()],
            vec![few.clone(), few],
            vec![usual.clone(), paused, usual],
        ] {
            assert_eq!(latency_growth(&pieces(&all), LENGTH), None, "{all:?}");
        }
    }

    proptest! {
        /// Latencies of one distribution never grow by chance.
        #[test]
        fn one_distribution_does_not_grow(
            all in prop::collection::vec(prop::collection::vec(1.0..50.0, 40..80), 2..6),
        ) {
            prop_assert_eq!(latency_growth(&pieces(&all), LENGTH), None);
        }
    }
}
