//! Time for which the schedule of a worker was held.

use stillwell_metric::LoadTime;
use stillwell_pacer::Arrivals;
use stillwell_units::Moment;

use super::recorder::RequestRecorder;

/// The schedule of a worker on which only so many requests may wait.
#[derive(Debug)]
pub(super) struct Hold {
    waiting_max: u64,
    /// The schedule from the first request on that may not wait any more.
    ahead: Arrivals,
    /// When a request was taken last.
    last: Moment,
    /// Since when the schedule had been held at that time; later than that
    /// where it had not.
    still_from: Moment,
}

impl Hold {
    /// Nothing was taken from `ahead` yet.
    pub(super) fn new(mut ahead: Arrivals, waiting_max: u64) -> Self {
        ahead.skip(waiting_max);
        Self {
            waiting_max,
            ahead,
            last: Moment::default(),
            still_from: Moment::default(),
        }
    }

    /// A request was taken from the schedule `now`.
    pub(super) fn take(&mut self, now: Moment) {
        self.still_from = self.ahead.next_due().max(self.last);
        self.ahead.advance();
        self.last = now;
    }

    /// That request had waited for a connection that was busy.
    pub(super) fn record(&self, recorder: &mut RequestRecorder, now: Moment) {
        if self.waiting_max > 0 {
            recorder.shard.waited_for_free.add(1);
        }
        if self.still_from < now {
            recorder.record(LoadTime::Blocked, now.since(self.still_from));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use stillwell_metric::{LoadShard, Sizes};
    use stillwell_pacer::{Part, Share};
    use stillwell_plan::RateShape;
    use stillwell_plan::load::Spacing;
    use stillwell_units::{Nanos, Seed};

    use super::*;

    fn recorder() -> RequestRecorder {
        let (shard, recorders) = LoadShard::pair();
        let shard = Arc::new(shard);
        RequestRecorder {
            watched: vec![Arc::clone(&shard)],
            shard,
            watches: Vec::new(),
            recorders,
            routes: Default::default(),
            has_schedule: true,
            has_response: true,
            measure_from: Moment::default(),
            count_from: Moment::default(),
            is_warming: false,
            heads: Sizes::default(),
            bodies: Sizes::default(),
            in_flight: 0,
            last_end: Moment::default(),
        }
    }

    /// Time for which the schedule, one request every millisecond, waited while a connection
    /// took one every ten.
    fn still(waiting_max: u64) -> (u64, Vec<u64>) {
        let curve = RateShape::Constant { per_second: 1000.0 };
        let part = Part::whole(Share::WHOLE);
        let start = Moment::new(0);
        let seed = Seed::from_number(1);
        let arrivals = Arrivals::new(&curve, Spacing::Even, part, start, &seed);
        let mut hold = Hold::new(arrivals, waiting_max);
        let mut recorder = recorder();
        let mut lengths = Vec::new();
        for number in 1..=5 {
            let now = start + Nanos::from_millis(10 * number);
            hold.take(now);
            hold.record(&mut recorder, now);
            lengths.push(now.since(hold.still_from).as_u64() / 1_000_000);
        }
        (recorder.shard.waited_for_free.total(), lengths)
    }

    #[test]
    fn it_waits_from_when_one_too_many_is_due_until_one_is_taken() {
        assert_eq!(still(0), (0, vec![9, 10, 10, 10, 10]));
        // Fifteen may wait: the sixteenth is due at 16 ms, the seventeenth at 17.
        assert_eq!(still(15), (5, vec![0, 3, 10, 10, 10]));
        // A walk to the first that may not wait took minutes.
        assert_eq!(still(u64::from(u32::MAX)), (5, vec![0; 5]));
    }
}
