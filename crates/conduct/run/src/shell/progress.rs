//! Progress of a run, and the quiet of sinks.

use std::sync::mpsc::SyncSender;

use stillwell_metric::{
    Histogram, Sample, Value, add_histogram, catalogue, decode_histogram, empty_histogram,
};
use stillwell_observer::SampleBatch;
use stillwell_scope::{Token, clock};
use stillwell_units::{Moment, Nanos};

use crate::machine::Event;
use crate::request::{Progress, RunTotals};
use crate::shell::Shell;

/// The time that sinks must be quiet after every event has arrived: later arrivals are duplicates.
const QUIET_COMPLETE: Nanos = Nanos::from_millis(500);

/// Reports to the listener of one or two runs.
#[derive(Clone, Debug)]
pub(crate) struct ProgressSender {
    /// Number of the run.
    pub(crate) run: usize,
    pub(crate) listener: SyncSender<(usize, Progress)>,
}

impl ProgressSender {
    /// Reports to the listener; a slow listener misses it.
    fn report(&self, progress: Progress) {
        let sent = self.listener.try_send((self.run, progress));
        // Full or gone: progress is talk, and never holds the run back.
        sent.unwrap_or_default();
    }
}

/// Returns the totals in the samples of a beat.
fn totals_of(samples: &[Sample]) -> RunTotals {
    let mut totals = RunTotals::default();
    for sample in samples {
        let Some(value) = whole(sample) else { continue };
        let name = sample.name.as_str();
        if name == catalogue::EVENTS_WRITTEN.name {
            totals.events_sent += value;
        } else if name == catalogue::BYTES_WRITTEN.name {
            totals.bytes_sent += value;
        } else if name == catalogue::BYTES_RECEIVED.name {
            totals.bytes_received += value;
        } else if name == catalogue::REQUESTED_UNITS.name {
            totals.scheduled_units[0] += value;
        } else if name == catalogue::SENT_UNITS.name {
            totals.scheduled_units[1] += value;
        } else if name == catalogue::TARGET_CPU.name {
            totals.target_cpu = Some(Nanos::new(value));
        } else if name == catalogue::TARGET_RSS.name {
            totals.rss_bytes = Some(value);
        }
    }
    totals
}

/// Returns the response times of a beat, else the latencies of stamped events.
fn latencies_of(samples: &[Sample]) -> Option<Box<Histogram<u64>>> {
    [catalogue::RESPONSE_TIME, catalogue::EVENT_LATENCY]
        .into_iter()
        .find_map(|metric| latencies(samples, metric.name))
}

/// Returns all series of the histogram with this name together; `None` where nothing was recorded.
fn latencies(samples: &[Sample], name: &str) -> Option<Box<Histogram<u64>>> {
    let mut all = empty_histogram();
    let of_name = samples.iter().filter(|sample| sample.name.as_str() == name);
    for sample in of_name {
        if let Value::Histogram(bytes) = &sample.value {
            add_histogram(&mut all, &decode_histogram(bytes)?);
        }
    }
    (!all.is_empty()).then(|| Box::new(all))
}

const fn whole(sample: &Sample) -> Option<u64> {
    match sample.value {
        Value::Int(value) => Some(value),
        _ => None,
    }
}

impl Shell {
    /// Writes down the beats that have come.
    pub(super) fn take_beats(&mut self) {
        while let Ok(batch) = self.beats.try_recv() {
            self.take_beat(batch);
        }
    }

    pub(super) fn take_beat(&mut self, mut batch: SampleBatch) {
        self.foreign.correct(&mut batch.samples);
        self.record.beat(&batch.beat, &batch.samples);
        let latencies = latencies_of(&batch.samples);
        self.report(Progress::Beat {
            at: batch.beat.moment,
            totals: totals_of(&batch.samples),
            latencies,
        });
    }

    pub(super) fn report(&self, progress: Progress) {
        self.progress.report(progress);
    }

    /// While the target drains: checks if sinks have been quiet for long enough and generators have
    /// ended. Until then requests are retried, and their results are polled.
    pub(super) fn watch_quiet(&mut self) {
        let Some((since, received)) = self.quiet_since else {
            return;
        };
        let now = clock::now();
        let received_now = self.received();
        if received_now != received {
            self.quiet_since = Some((now, received_now));
        } else if now.since(since) >= self.quiet_enough()
            && self.load_over.iter().all(Token::is_cancelled)
            && !self.machine.is_without_target()
            && !self.machine.awaits_step()
            && self.may_be_quiet()
        {
            self.quiet_since = None;
            self.was_quiet = true;
            self.happen(Event::Quiet);
        }
    }

    /// The time that sinks must be quiet: short if nothing is outstanding.
    fn quiet_enough(&self) -> Nanos {
        let quiet = self.request.plan.phases.quiet;
        match &self.ledger {
            Some(ledger) if quiet > QUIET_COMPLETE && ledger.is_complete() => QUIET_COMPLETE,
            _ => quiet,
        }
    }

    /// When sinks received the last of it, if they have received anything.
    pub(super) fn received_at(&self) -> Option<Moment> {
        let received = self.sinks.iter().map(|shard| shard.received_at.total());
        received.max().filter(|at| *at > 0).map(Moment::new)
    }

    /// Bytes that sinks have received, now.
    pub(super) fn received(&self) -> u64 {
        self.sinks.iter().map(|shard| shard.bytes.total()).sum()
    }
}

#[cfg(test)]
mod tests {
    use stillwell_metric::{Labels, Metric, encode_histogram};

    use super::*;

    fn histogram(metric: Metric, values: &[u64]) -> Sample {
        let mut times = empty_histogram();
        for value in values {
            times.record(*value).unwrap();
        }
        let value = Value::Histogram(encode_histogram(&times));
        Sample::new(metric, &Labels::none(), value)
    }

    #[test]
    fn the_latencies_of_a_beat_are_those_of_all_workers_together() {
        let samples = [
            histogram(catalogue::RESPONSE_TIME, &[1_000, 1_000, 1_000]),
            histogram(catalogue::RESPONSE_TIME, &[9_000]),
            histogram(catalogue::EVENT_LATENCY, &[77_000]),
        ];
        let all = latencies_of(&samples).unwrap();
        let [median, tail] = [0.5, 0.99].map(|share| all.value_at_quantile(share));
        assert!((1_000..1_010).contains(&median), "{median}");
        assert!((9_000..9_100).contains(&tail), "{tail}");
        assert_eq!(latencies_of(&[]), None);
    }
}
