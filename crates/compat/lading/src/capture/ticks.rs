//! Converts beats at any time to lading's ticks, one per second.
//!
//! Each tick has a row for each series: its last value, from that second or an earlier one. Pure.

use std::collections::BTreeMap;

use stillwell_capture::rows::Row;
use stillwell_capture::schema;
use stillwell_metric::{
    Beat, Kind, Labels, Sample, SeriesName, Value, catalogue, decode_histogram, encode_histogram,
};
use stillwell_plan::Phase;
use stillwell_units::{Moment, Nanos, float_from_u64};

use super::sketch::sketch;
use crate::series::{
    CPU_MILLICORES, LADING_RUNNING, PHASE_MARKER, TARGET_RUNNING, lading_series, lading_value,
};

/// Limit on ticks without a beat that are filled: a machine that slept for a day does not get a day of rows.
const GAP_MAX: u64 = 60;
const MILLIS_A_TICK: u64 = 1000;
/// Names that labels cannot have, because lines have these keys.
const RESERVED: [&str; 7] = [
    schema::RUN_ID,
    schema::TIME,
    schema::FETCH_INDEX,
    schema::METRIC_NAME,
    schema::METRIC_KIND,
    schema::VALUE,
    schema::VALUE_HISTOGRAM,
];

/// Series on their way into a capture of lading's.
#[derive(Debug)]
pub(super) struct Ticks {
    /// Labels of every row.
    everywhere: Labels,
    /// Ticks that a series is written on without a new value.
    kept: u64,
    /// Start of the ticks.
    start: Option<(Moment, u64)>,
    open: Option<Tick>,
    held: BTreeMap<(SeriesName, Labels), Held>,
    cpu: [CpuRate; CPU_MILLICORES.len()],
    /// True if the target had a process in its last sample.
    target_runs: bool,
}

/// One tick while beats may still fall into it.
#[derive(Clone, Copy, Debug)]
struct Tick {
    index: u64,
    moment: Moment,
    wall_millis: u64,
    phase: Phase,
}

/// The last value of a series.
#[derive(Debug)]
struct Held {
    kind: Kind,
    value: Value,
    /// The tick of the value.
    taken: u64,
}

/// Makes a share of a core of a counter of nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct CpuRate {
    before: Option<(Moment, u64)>,
    last: Option<(Moment, u64)>,
}

impl Ticks {
    /// Rows carry `everywhere` beside their own labels. A series without a new
    /// value for longer than `expiration` is no longer written.
    pub(super) fn new(everywhere: &Labels, expiration: Option<Nanos>) -> Self {
        let ticks = |length: Nanos| length.as_u64() / 1_000_000_000;
        Self {
            everywhere: extended(Labels::none(), everywhere),
            kept: expiration.map_or(u64::MAX, ticks),
            start: None,
            open: None,
            held: BTreeMap::new(),
            cpu: Default::default(),
            target_runs: false,
        }
    }

    /// Takes a beat in; adds the rows of every tick that it shows to be over.
    pub(super) fn beat(
        &mut self,
        beat: &Beat,
        phase: Phase,
        samples: &[Sample],
        rows: &mut Vec<Row>,
    ) {
        let (start, start_millis) = *self.start.get_or_insert((beat.moment, beat.wall_millis));
        let millis = beat.moment.since(start).as_u64() / 1_000_000;
        let tick = Tick {
            // A beat a little before its second belongs to that second.
            index: (millis + MILLIS_A_TICK / 2) / MILLIS_A_TICK,
            moment: beat.moment,
            // Not the wall clock's: that may be set back, and ticks may not.
            wall_millis: start_millis + millis,
            phase,
        };
        if let Some(open) = self.open.filter(|open| open.index < tick.index) {
            self.close(open, rows);
            let from = tick.index.saturating_sub(GAP_MAX).max(open.index + 1);
            for index in from..tick.index {
                let wall_millis = start_millis + index * MILLIS_A_TICK;
                let gap = Tick {
                    index,
                    wall_millis,
                    ..open
                };
                self.write(gap, rows);
            }
        }
        for sample in samples {
            self.take(&tick, sample);
        }
        self.open = Some(tick);
    }

    /// Adds the rows of the tick that is still open.
    pub(super) fn finish(&mut self, rows: &mut Vec<Row>) {
        if let Some(open) = self.open.take() {
            self.close(open, rows);
        }
    }

    fn take(&mut self, tick: &Tick, sample: &Sample) {
        let name = sample.name.as_str();
        let place = CPU_MILLICORES
            .iter()
            .position(|(counter, _)| *counter == name);
        if let (Some(place), Value::Int(nanos)) = (place, &sample.value) {
            self.cpu[place].last = Some((tick.moment, *nanos));
        }
        if name == catalogue::TARGET_PROCESSES.name {
            self.target_runs = sample.value != Value::Int(0);
        }
        let value = lading_value(sample);
        if let Value::Float(value) = value
            && !value.is_finite()
        {
            // JSON has no such number.
            return;
        }
        let (name, labels) = lading_series(sample);
        self.hold(
            tick.index,
            name,
            sample.kind,
            self.with_common_labels(&labels),
            value,
        );
    }

    fn with_common_labels(&self, labels: &Labels) -> Labels {
        extended(self.everywhere.clone(), labels)
    }

    fn hold(&mut self, index: u64, name: SeriesName, kind: Kind, labels: Labels, value: Value) {
        let new = Held {
            kind,
            value,
            taken: index,
        };
        match self.held.entry((name, labels)) {
            std::collections::btree_map::Entry::Vacant(place) => drop(place.insert(new)),
            std::collections::btree_map::Entry::Occupied(mut place) => {
                let value = match (&place.get().value, &new.value) {
                    (Value::Histogram(left), Value::Histogram(right)) => merged(left, right),
                    _ => None,
                };
                let value = value.map_or(new.value, Value::Histogram);
                place.insert(Held { value, ..new });
            }
        }
    }

    fn close(&mut self, tick: Tick, rows: &mut Vec<Row>) {
        for (place, (_, name)) in CPU_MILLICORES.iter().enumerate() {
            let Some(millicores) = self.cpu[place].take() else {
                continue;
            };
            let labels = self.with_common_labels(&Labels::none().with("focus", "target"));
            let name = SeriesName::recorded((*name).to_owned());
            let value = Value::Float(millicores);
            self.hold(tick.index, name, Kind::Gauge, labels, value);
        }
        self.write(tick, rows);
    }

    /// Writes a row for each series, one with the phase, and those that say what runs.
    fn write(&mut self, tick: Tick, rows: &mut Vec<Row>) {
        let beat = Beat {
            index: tick.index,
            moment: tick.moment,
            wall_millis: tick.wall_millis,
        };
        let row = |name: &SeriesName, kind, labels: &Labels, value| Row {
            beat,
            phase: tick.phase,
            name: name.clone(),
            kind,
            labels: labels.clone(),
            value,
        };
        let kept = self.kept;
        self.held
            .retain(|_, held| tick.index.saturating_sub(held.taken) <= kept);
        for ((name, labels), held) in &self.held {
            let value = match &held.value {
                Value::Histogram(bytes) => sketch(bytes).map(Value::Histogram),
                value => Some(value.clone()),
            };
            rows.extend(value.map(|value| row(name, held.kind, labels, value)));
        }
        // The values of a histogram belong to this tick only.
        self.held
            .retain(|_, held| !matches!(held.value, Value::Histogram(_)));
        let name = SeriesName::recorded(PHASE_MARKER.to_owned());
        let phase = Labels::none().with(PHASE_MARKER, tick.phase.name());
        let labels = self.with_common_labels(&phase);
        rows.push(row(&name, Kind::Gauge, &labels, Value::Float(1.0)));
        let running = [(LADING_RUNNING, true), (TARGET_RUNNING, self.target_runs)];
        for (name, _) in running.into_iter().filter(|(_, runs)| *runs) {
            let name = SeriesName::recorded(name.to_owned());
            rows.push(row(&name, Kind::Gauge, &self.everywhere, Value::Float(1.0)));
        }
    }
}

impl CpuRate {
    /// Thousandths of a core between the last two ticks.
    fn take(&mut self) -> Option<f64> {
        let last = self.last.take()?;
        let (before, used) = self.before.replace(last)?;
        let elapsed = last.0.since(before).as_u64();
        let used = last.1.saturating_sub(used);
        (elapsed > 0).then(|| 1000.0 * float_from_u64(used) / float_from_u64(elapsed))
    }
}

/// `labels` and those of `more` that a row may have.
fn extended(labels: Labels, more: &Labels) -> Labels {
    let more = more.iter().filter(|(key, _)| !RESERVED.contains(key));
    more.fold(labels, |all, (key, value)| all.with(key, value))
}

fn merged(left: &[u8], right: &[u8]) -> Option<Vec<u8>> {
    let mut sum = decode_histogram(left)?;
    sum.add(decode_histogram(right)?).ok()?;
    Some(encode_histogram(&sum))
}

#[cfg(test)]
mod tests;
