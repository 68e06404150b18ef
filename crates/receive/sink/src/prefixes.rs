//! Times before events, as `ingest-ns` writes them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stillwell_metric::{
    Intervals, Labels, Recorder, Sample, Shard, Value, catalogue, encode_histogram,
};
use stillwell_plan::stamp::PrefixFraming;
use stillwell_scope::clock::{self, FixedWall};
use stillwell_stamp::prefix::{Framing, Plausible, PrefixReader, Prefixed};
use stillwell_units::{Moment, Nanos};

use crate::lines::Lines;

/// Maximum time that the clock of a writer may be ahead.
const AHEAD_MAX: Nanos = Nanos::SECOND;

/// Latencies of events by the times before them, for all workers of a sink.
///
/// Each worker locks it for as long as it enters what one read held.
#[derive(Debug)]
pub(crate) struct SharedPrefixes {
    framing: Framing,
    wall: FixedWall,
    plausible: Plausible,
    labels: Labels,
    intervals: Intervals,
    state: Mutex<PrefixState>,
}

#[derive(Debug)]
struct PrefixState {
    latency: Recorder,
    /// Trusted times, and all other text in their place.
    read: u64,
    implausible: u64,
}

impl SharedPrefixes {
    /// For the sink called `id`, of type `name`. Times from before now are not
    /// accepted: nothing was sent yet.
    pub(crate) fn new(id: &str, name: &str, framing: PrefixFraming) -> Self {
        let (latency, intervals) = Recorder::pair();
        let wall = FixedWall::now();
        Self {
            framing: match framing {
                PrefixFraming::Lines => Framing::Lines,
                PrefixFraming::LengthPrefixed => Framing::Lengths,
            },
            plausible: Plausible::new(wall.at(clock::now()), AHEAD_MAX),
            wall,
            labels: Labels::none()
                .with("component", "sink")
                .with("component_name", name)
                .with("id", id),
            intervals,
            state: Mutex::new(PrefixState {
                latency,
                read: 0,
                implausible: 0,
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, PrefixState> {
        // Entering never panics half way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shard for SharedPrefixes {
    fn sample(&self, samples: &mut Vec<Sample>) {
        {
            let mut state = self.lock();
            for (metric, count) in [
                (catalogue::PREFIXES_READ, state.read),
                (catalogue::PREFIXES_IMPLAUSIBLE, state.implausible),
            ] {
                samples.push(Sample::int(metric, &self.labels, count));
            }
            state.latency.flush();
        }
        if let Some(histogram) = self.intervals.take().filter(|h| !h.is_empty()) {
            let value = Value::Histogram(encode_histogram(&histogram));
            samples.push(Sample::new(catalogue::EVENT_LATENCY, &self.labels, value));
        }
    }
}

impl PrefixState {
    /// Enters one; gives the events that ended with it.
    fn enter(&mut self, prefixed: Prefixed, plausible: &Plausible, now: Moment) -> u64 {
        let time = match prefixed {
            Prefixed::Event(time) => time,
            Prefixed::Cut | Prefixed::Unframed => {
                self.implausible += 1;
                return 0;
            }
        };
        match plausible.latency(time, now) {
            Some(latency) => {
                self.read += 1;
                self.latency.record(latency);
            }
            None => self.implausible += 1,
        }
        1
    }
}

/// Counts the events of one connection: lines, or what has a time before it, which is
/// entered.
#[derive(Debug)]
pub(crate) enum Events {
    Lines(Lines),
    Prefixed(PrefixReader, Arc<SharedPrefixes>),
}

impl Events {
    pub(crate) fn new(prefixes: Option<&Arc<SharedPrefixes>>) -> Self {
        match prefixes {
            None => Self::Lines(Lines::default()),
            Some(shared) => Self::Prefixed(PrefixReader::new(shared.framing), Arc::clone(shared)),
        }
    }

    /// The events that end within `bytes`.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> u64 {
        match self {
            Self::Lines(lines) => lines.take(bytes),
            Self::Prefixed(reader, shared) => enter(shared, |take| reader.take(bytes, take)),
        }
    }

    /// The events that the end of all ends. Later bytes begin a new stream.
    pub(crate) fn finish(&mut self) -> u64 {
        match self {
            Self::Lines(lines) => std::mem::take(lines).finish(),
            Self::Prefixed(reader, shared) => enter(shared, |take| reader.finish(take)),
        }
    }

    /// Returns true if an event has begun and not ended.
    pub(crate) const fn is_within_event(&self) -> bool {
        match self {
            Self::Lines(lines) => lines.is_within_line(),
            Self::Prefixed(reader, _) => reader.is_within_event(),
        }
    }
}

/// Enters all results of `read`; returns the number of events that ended.
fn enter(shared: &SharedPrefixes, read: impl FnOnce(&mut dyn FnMut(Prefixed))) -> u64 {
    let now = shared.wall.at(clock::now());
    let (mut state, mut events) = (shared.lock(), 0);
    read(&mut |found| events += state.enter(found, &shared.plausible, now));
    events
}
