//! Trace and span identifiers of requests.

use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use stillwell_units::{RunId, Seed, float_from_u64, floor_to_u64};

/// Trace context of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TraceContext {
    /// The trace; never all zeros.
    pub trace: [u8; 16],
    /// Its only span so far, ours; never all zeros.
    pub span: [u8; 8],
    /// True if spans of this trace are exported.
    pub is_sampled: bool,
}

/// Names the traces of one worker: random ones, a trace for each request.
#[derive(Clone, Debug)]
pub(crate) struct TraceIds {
    random: Xoshiro256PlusPlus,
    /// Traces whose lower half, shifted by one bit, is below this are sampled.
    below: u64,
}

impl TraceIds {
    /// Traces of worker number `worker` in `run`, a share of `sample`, from 0 to
    /// 1, of which is sampled. Whether one is follows from its name alone.
    pub(crate) fn new(run: RunId, worker: u64, sample: f64) -> Self {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(run.bytes());
        let seed = Seed::from_bytes(bytes).derive("trace", worker);
        let all = float_from_u64(1 << 63);
        Self {
            random: Xoshiro256PlusPlus::from_seed(*seed.bytes()),
            below: floor_to_u64(all * sample.clamp(0.0, 1.0)),
        }
    }

    /// The next one. Allocates nothing.
    pub(crate) fn next_context(&mut self) -> TraceContext {
        let (high, low) = (self.random.next_u64(), self.random.next_u64());
        let mut trace = [0; 16];
        trace[..8].copy_from_slice(&high.to_be_bytes());
        trace[8..].copy_from_slice(&low.to_be_bytes());
        // Zeros would mean that there is none; an odd number is never zero.
        let span = (self.random.next_u64() | 1).to_be_bytes();
        trace[0] |= 1;
        TraceContext {
            trace,
            span,
            is_sampled: low >> 1 < self.below,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn ids(worker: u64, sample: f64) -> TraceIds {
        TraceIds::new(RunId::from_bytes([3; 16]), worker, sample)
    }

    #[test]
    fn no_two_requests_of_any_workers_share_a_name() {
        let mut seen = HashSet::new();
        for worker in 0..4 {
            let mut ids = ids(worker, 1.0);
            for _ in 0..1000 {
                let context = ids.next_context();
                assert!(seen.insert(context.trace) && seen.len() < 5000);
                assert_ne!(context.span, [0; 8]);
            }
        }
        assert_ne!(
            TraceIds::new(RunId::from_bytes([4; 16]), 0, 1.0).next_context(),
            ids(0, 1.0).next_context()
        );
    }

    #[test]
    fn the_share_that_is_sampled_is_the_requested_share() {
        let sampled = |share| {
            let mut ids = ids(1, share);
            (0..20_000)
                .filter(|_| ids.next_context().is_sampled)
                .count()
        };
        assert_eq!((sampled(0.0), sampled(1.0)), (0, 20_000));
        // Five standard deviations to either side.
        assert!(sampled(0.25).abs_diff(5000) < 310, "{}", sampled(0.25));
    }
}
