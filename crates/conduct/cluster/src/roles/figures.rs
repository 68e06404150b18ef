//! Figures of a run while it goes on, from the signs of life of its parts.
//!
//! Each part writes its totals with the time since the agreed start. The controller adds them up for
//! the latest time that all parts have reached, so a part that is read later changes no rate.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use stillwell_metric::{Histogram, decode_histogram, empty_histogram, encode_histogram};
use stillwell_plan::{Phase, PhasesPlan};
use stillwell_run::{Progress, RunTotals};
use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos};

use crate::beats::SignOfLife;
use crate::job::{Start, beat_name};
use crate::store::JobStore;

/// Time between two looks at signs of life.
const LOOK_EVERY: Nanos = Nanos::SECOND;
/// Shortest and longest time between two signs of life during a run.
const BEAT_EVERY: [Nanos; 2] = [Nanos::from_secs(2), Nanos::from_secs(10)];
/// Time between two signs of life for each task: a store gets at most eight of them each second,
/// unless there are more than 80 tasks.
const BEAT_EVERY_OF_TASK: Nanos = Nanos::from_millis(125);
/// Part of the time since the start after which the next sign of life follows: long runs write few.
const BEAT_EVERY_SHARE: u64 = 50;
/// Shortest time between two beats for readers.
const SHOWN_EVERY: Nanos = Nanos::from_millis(500);

/// Totals of a part, in its signs of life.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct PartTotals {
    /// Time since the agreed start.
    at: Nanos,
    #[serde(flatten)]
    totals: RunTotals,
    /// Latencies since the sign of life before, encoded.
    latencies: Vec<u8>,
}

/// Returns the time between two signs of life of a task of a run with `tasks`, which began
/// `elapsed` ago.
pub(super) fn beat_every(tasks: u16, elapsed: Nanos) -> Nanos {
    let [least, most] = BEAT_EVERY;
    let for_all = Nanos::new(BEAT_EVERY_OF_TASK.as_u64() * u64::from(tasks));
    let for_length = Nanos::new(elapsed.as_u64() / BEAT_EVERY_SHARE);
    for_all.max(for_length).clamp(least, most)
}

/// Figures of a part, between its run and its signs of life. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct PartFigures(Arc<Mutex<PartState>>);

#[derive(Debug, Default)]
struct PartState {
    /// The agreed start, by the clock of this machine.
    start: Option<Moment>,
    latest: Option<PartTotals>,
    /// Latencies since the last sign of life.
    latencies: Option<Histogram<u64>>,
}

impl PartFigures {
    /// Sets the agreed start.
    pub(super) fn begin(&self, start: Moment) {
        self.state().start = Some(start);
    }

    /// Returns the agreed start.
    pub(super) fn start(&self) -> Option<Moment> {
        self.state().start
    }

    /// Takes what the run reports.
    pub(super) fn take(&self, progress: Progress) {
        let Progress::Beat {
            at,
            totals,
            latencies,
        } = progress
        else {
            return;
        };
        let mut state = self.state();
        let Some(start) = state.start.filter(|start| at >= *start) else {
            return;
        };
        state.latest = Some(PartTotals {
            at: at.since(start),
            totals,
            latencies: Vec::new(),
        });
        add(&mut state.latencies, latencies.as_deref());
    }

    /// Returns the totals for the next sign of life.
    pub(super) fn totals(&self) -> Option<PartTotals> {
        let mut state = self.state();
        let latencies = state.latencies.take();
        let latest = state.latest.clone()?;
        Some(PartTotals {
            latencies: latencies.map_or_else(Vec::new, |all| encode_histogram(&all)),
            ..latest
        })
    }

    fn state(&self) -> MutexGuard<'_, PartState> {
        // Nothing that is done under the lock can leave it half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds `part` to `all`.
fn add(all: &mut Option<Histogram<u64>>, part: Option<&Histogram<u64>>) {
    if let Some(part) = part {
        let all = all.get_or_insert_with(empty_histogram);
        // One that cannot be added is not from a part of this run.
        all.add(part).unwrap_or_default();
    }
}

/// Figures of a run, as its controller has them.
#[derive(Debug)]
pub(super) struct RunFigures {
    /// The agreed start, by the clock of this machine.
    start: Moment,
    next: Moment,
    phase: Option<Phase>,
    parts: Vec<PartSeries>,
    /// Time since the start up to which figures were shown.
    shown: Option<Nanos>,
    /// Response times that were not shown, and latencies of events.
    responses: Option<Histogram<u64>>,
    events: Option<Histogram<u64>>,
    /// Response times have come. Then those of events are not shown, as in a run on one machine.
    has_responses: bool,
}

/// The last two totals of a part.
#[derive(Clone, Debug, Default)]
struct PartSeries {
    /// Its latencies are response times.
    is_generator: bool,
    /// Number of the sign of life that is read next.
    next: u32,
    before: Option<PartTotals>,
    latest: Option<PartTotals>,
}

impl RunFigures {
    /// No figures yet; true for each task with generators.
    pub(super) fn new(start: &Start, tasks: impl Iterator<Item = bool>) -> Self {
        let (now, wall) = (clock::now(), clock::wall());
        Self {
            start: now + start.at.saturating_sub(wall) - wall.saturating_sub(start.at),
            next: now,
            phase: None,
            parts: tasks
                .map(|is_generator| PartSeries {
                    is_generator,
                    ..PartSeries::default()
                })
                .collect(),
            shown: None,
            responses: None,
            events: None,
            has_responses: false,
        }
    }

    /// Reports a phase that has begun, and figures that are new. `is_open` is true for tasks
    /// without a result. A store that does not answer is read again later.
    pub(super) fn look(
        &mut self,
        store: &JobStore,
        phases: &PhasesPlan,
        is_open: &dyn Fn(usize) -> bool,
        show: &dyn Fn(Progress),
    ) {
        let now = clock::now();
        self.look_at_phase(now, phases, show);
        if now < self.next || self.phase.is_none() {
            return;
        }
        self.next = now + LOOK_EVERY;
        for task in 0..self.parts.len() {
            self.read(store, task);
        }
        if let Some(beat) = self.beat(is_open) {
            show(beat);
        }
    }

    /// Reports the phase that the parts are in, if it has just begun.
    fn look_at_phase(&mut self, now: Moment, phases: &PhasesPlan, show: &dyn Fn(Progress)) {
        if now < self.start {
            return;
        }
        let elapsed = now.since(self.start);
        let (phase, length) = if elapsed < phases.warmup {
            (Phase::Warmup, phases.warmup)
        } else if elapsed < phases.warmup + phases.measure {
            (Phase::Measure, phases.measure)
        } else {
            (Phase::Drain, phases.drain)
        };
        if self.phase.replace(phase) != Some(phase) {
            let ends_in = Some(length);
            show(Progress::Phase { phase, ends_in });
        }
    }

    /// Reads new signs of life of a task.
    fn read(&mut self, store: &JobStore, task: usize) {
        loop {
            let name = beat_name(task, self.parts[task].next);
            let bytes = store.store().get(&format!("{}/{name}", store.job()));
            let Ok(Some(bytes)) = bytes else { return };
            self.parts[task].next += 1;
            let sign = serde_json::from_slice::<SignOfLife>(&bytes).ok();
            // The first ones are of times before the start.
            if let Some(totals) = sign.and_then(|sign| sign.totals) {
                let times = decode_histogram(&totals.latencies);
                let part = &mut self.parts[task];
                if part.is_generator {
                    self.has_responses |= times.is_some();
                    add(&mut self.responses, times.as_ref());
                } else {
                    add(&mut self.events, times.as_ref());
                }
                part.before = part.latest.replace(totals);
            }
        }
    }

    /// Returns the figures of all parts for the latest time that all of them have reached, if that
    /// is new.
    fn beat(&mut self, is_open: &dyn Fn(usize) -> bool) -> Option<Progress> {
        let latest = |part: &PartSeries| part.latest.as_ref().map(|totals| totals.at);
        let open = self.parts.iter().enumerate();
        let open = open.filter(|(task, _)| is_open(*task));
        let reached: Option<Vec<Nanos>> = open.map(|(_, part)| latest(part)).collect();
        let at = reached?.into_iter().min()?;
        let is_new = |shown: Nanos| at >= shown + SHOWN_EVERY;
        if !self.shown.is_none_or(is_new) {
            return None;
        }
        self.shown = Some(at);
        let (responses, events) = (self.responses.take(), self.events.take());
        let latencies = if self.has_responses {
            responses
        } else {
            events
        };
        let parts: Vec<RunTotals> = self.parts.iter().filter_map(|part| part.at(at)).collect();
        Some(Progress::Beat {
            at: self.start + at,
            totals: totals_of_all(&parts),
            latencies: latencies.map(Box::new),
        })
    }
}

/// Returns the totals of all parts. The resident memory is that of the part with most.
fn totals_of_all(parts: &[RunTotals]) -> RunTotals {
    let sum = |value: fn(&RunTotals) -> u64| parts.iter().map(value).sum::<u64>();
    let cpu = parts.iter().filter_map(|part| part.target_cpu);
    RunTotals {
        events_sent: sum(|part| part.events_sent),
        bytes_sent: sum(|part| part.bytes_sent),
        bytes_received: sum(|part| part.bytes_received),
        target_cpu: cpu.reduce(|all, more| all + more),
        rss_bytes: parts.iter().filter_map(|part| part.rss_bytes).max(),
        scheduled_units: [
            sum(|part| part.scheduled_units[0]),
            sum(|part| part.scheduled_units[1]),
        ],
    }
}

impl PartSeries {
    /// Returns the totals at a time, on a line between the last two.
    fn at(&self, at: Nanos) -> Option<RunTotals> {
        let latest = self.latest.as_ref()?;
        let Some(before) = self.before.as_ref().filter(|_| at < latest.at) else {
            return Some(latest.totals);
        };
        let (elapsed, whole) = (
            at.saturating_sub(before.at),
            latest.at.saturating_sub(before.at),
        );
        let between = |from: u64, to: u64| {
            let growth = u128::from(to.saturating_sub(from)) * u128::from(elapsed.as_u64());
            let growth = growth / u128::from(whole.as_u64().max(1));
            from.saturating_add(u64::try_from(growth).unwrap_or(u64::MAX))
        };
        let (before, latest) = (before.totals, latest.totals);
        let cpu = before.target_cpu.zip(latest.target_cpu);
        let cpu = cpu.map(|(from, to)| Nanos::new(between(from.as_u64(), to.as_u64())));
        let units = |at: usize| between(before.scheduled_units[at], latest.scheduled_units[at]);
        Some(RunTotals {
            events_sent: between(before.events_sent, latest.events_sent),
            bytes_sent: between(before.bytes_sent, latest.bytes_sent),
            bytes_received: between(before.bytes_received, latest.bytes_received),
            target_cpu: cpu,
            rss_bytes: latest.rss_bytes,
            scheduled_units: [units(0), units(1)],
        })
    }
}

#[cfg(test)]
mod tests;
