//! The capture of a load as a folder: `manifest.json` and `series.parquet`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use stillwell_metric::catalogue::load as metric;
use stillwell_metric::{
    Beat, Histogram, Labels, LoadTime, Metric, Outcome, PackedHistogram, RouteTime, SeriesName,
    Value, decode_histogram, empty_histogram,
};
use stillwell_plan::Phase;
use stillwell_units::{Moment, Nanos, Secrets};

use super::{LOAD_SCHEMA, LoadCapture, LoadManifest, LoadSecond, LoadWorker, RouteCounts};
use crate::journal::Row;
use crate::parquet::{COMPRESSION_LEVEL, Columns, SeriesFile};
use crate::private::{create_private, make_private};
use crate::read::{self, OpenError};
use crate::write::{self, CaptureError, MANIFEST, SERIES};

/// Name under which a new manifest is written, before it replaces the old one.
const NEW_MANIFEST: &str = "manifest.json.new";
const WORKER: &str = "worker";
const OUTCOME: &str = "outcome";
const ROUTE: &str = "route";

impl LoadCapture {
    /// Returns true if `folder` has no manifest, or the one of a load: [`LoadCapture::write`] replaces it.
    #[must_use]
    pub fn can_replace(folder: &Path) -> bool {
        read::can_replace(folder, |schema| schema == LOAD_SCHEMA)
    }

    /// Returns true if the manifest in `folder` is that of a load, by its schema. The rest may be damaged.
    #[must_use]
    pub fn is_load(folder: &Path) -> bool {
        read::has_schema(folder, |schema| schema == LOAD_SCHEMA)
    }

    /// Makes `folder` for [`LoadCapture::write`] and checks that a file can be written there, before a load begins.
    ///
    /// # Errors
    /// [`CaptureError`] with the folder or file and the kernel's answer.
    pub fn prepare(folder: &Path) -> Result<(), CaptureError> {
        make_private(folder).map_err(write::at(folder))?;
        let path = folder.join(NEW_MANIFEST);
        create_private(&path)
            .and_then(|_| fs::remove_file(&path))
            .map_err(write::at(&path))
    }

    /// Writes the capture to `folder`, which is made, with secrets as `secrets` says. What an
    /// earlier capture left there is replaced. Until the new one is complete, the folder has no manifest.
    ///
    /// # Errors
    /// [`CaptureError`] with the file and the kernel's answer.
    pub fn write(&self, folder: &Path, secrets: Secrets) -> Result<(), CaptureError> {
        make_private(folder).map_err(write::at(folder))?;
        // Series are never read with the manifest of an earlier load.
        let path = folder.join(MANIFEST);
        write::removed(fs::remove_file(&path)).map_err(write::at(&path))?;
        let path = folder.join(SERIES);
        let run = self.manifest.plan.telemetry.run.to_string();
        self.write_series(&path, &run).map_err(write::at(&path))?;
        let masked = self.manifest.masked(secrets).map_err(io::Error::from);
        let path = folder.join(MANIFEST);
        write::write_manifest(folder, &masked.map_err(write::at(&path))?)
    }

    fn write_series(&self, path: &Path, run: &str) -> io::Result<()> {
        let mut series =
            SeriesFile::begin(create_private(path)?, Columns::NATIVE, COMPRESSION_LEVEL)?;
        for (index, second) in (0..).zip(&self.seconds) {
            let beat = self.beat(index, second.begin + second.length);
            for (metric, labels, value) in samples(second) {
                series.push(row(beat, Phase::Measure, metric, labels, value));
            }
            series.flush_if_full(run)?;
        }
        let beat = self.beat(self.seconds.len() as u64, self.manifest.measured);
        for (worker, times) in self.times.iter().enumerate() {
            let times = LoadTime::all().zip(times);
            let times = times.filter_map(|(time, histogram)| Some((time, histogram.as_ref()?)));
            for (time, histogram) in times {
                let (metric, outcome) = metric::of_time(time);
                let labels = Labels::none().with(WORKER, worker.to_string());
                let labels = match outcome {
                    Some(name) => labels.with(OUTCOME, name),
                    None => labels,
                };
                let value = Value::Histogram(PackedHistogram::encode(histogram));
                series.push(row(beat, Phase::Close, metric, labels, value));
            }
            self.push_routes(worker, beat, &mut series);
            series.flush_if_full(run)?;
        }
        series.close(run)
    }

    fn push_routes(&self, worker: usize, beat: Beat, series: &mut SeriesFile) {
        let routes = self.manifest.workers.get(worker).into_iter();
        let routes = routes.flat_map(|worker| &worker.routes);
        let times = self.route_times.get(worker).into_iter().flatten();
        for (route, times) in routes.zip(times) {
            for (time, histogram) in RouteTime::ALL.into_iter().zip(times) {
                let labels = Labels::none().with(WORKER, worker.to_string());
                let labels = labels.with(ROUTE, route.name.as_str());
                let value = Value::Histogram(PackedHistogram::encode(histogram));
                series.push(row(
                    beat,
                    Phase::Close,
                    metric::of_route(time),
                    labels,
                    value,
                ));
            }
        }
    }

    /// The beat at `elapsed` after measuring began, which is moment 0.
    fn beat(&self, index: u64, elapsed: Nanos) -> Beat {
        Beat {
            index,
            moment: Moment::new(elapsed.as_u64()),
            wall_millis: (self.manifest.started + elapsed).as_u64() / 1_000_000,
        }
    }

    /// Reads the capture in `folder`.
    ///
    /// # Errors
    /// [`OpenError`] with the file and what was wrong with it.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        let path = folder.join(MANIFEST);
        let manifest = fs::read(&path)
            .and_then(|bytes| serde_json::from_slice(&bytes).map_err(io::Error::from))
            .and_then(known)
            .map_err(read::at(&path))?;
        let path = folder.join(SERIES);
        let mut rows = Vec::new();
        read::read_parquet(&path, &mut |row| rows.push(row)).map_err(read::at(&path))?;
        let (seconds, times) = (seconds(&rows), times(&rows, &manifest));
        Ok(Self {
            seconds: seconds.map_err(read::at(&path))?,
            times: times.map_err(read::at(&path))?,
            route_times: route_times(&rows, &manifest).map_err(read::at(&path))?,
            manifest,
        })
    }
}

fn known(manifest: LoadManifest) -> io::Result<LoadManifest> {
    if manifest.schema == LOAD_SCHEMA {
        return Ok(manifest);
    }
    let schema = &manifest.schema;
    Err(foreign(&format!(
        "its schema is {schema} and not {LOAD_SCHEMA}"
    )))
}

fn foreign(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

fn row(beat: Beat, phase: Phase, metric: Metric, labels: Labels, value: Value) -> Row {
    Row {
        beat,
        phase,
        name: SeriesName::from(metric),
        kind: metric.kind,
        labels,
        value,
    }
}

/// The samples of one second; what is zero or empty is left out, except its length.
fn samples(second: &LoadSecond) -> Vec<(Metric, Labels, Value)> {
    let length = (metric::INTERVAL, second.length.as_u64());
    let counts = [
        (metric::SCHEDULED, second.requested),
        (metric::BEGUN, second.begun),
        (metric::SENT, second.sent),
        (metric::BYTES_RECEIVED, second.bytes[0]),
        (metric::BYTES_SENT, second.bytes[1]),
    ];
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    let counts = std::iter::once(length).chain(counts);
    let counts = counts.map(|(metric, count)| (metric, Labels::none(), Value::Int(count)));
    let ended = Outcome::ALL.into_iter().zip(second.outcomes);
    let ended = ended.filter(|(_, count)| *count > 0).map(|(end, count)| {
        let labels = Labels::none().with(OUTCOME, end.name());
        (metric::ENDED, labels, Value::Int(count))
    });
    let times = [
        (metric::RESPONSE_TIME, &second.response),
        (metric::SERVICE_TIME, &second.service),
        (metric::LATENESS, &second.lateness),
    ];
    let times = times.into_iter().filter(|(_, packed)| !packed.is_empty());
    let times = times.map(|(metric, packed)| {
        let value = Value::Histogram(packed.bytes().to_vec());
        (metric, Labels::none(), value)
    });
    counts.chain(ended).chain(times).collect()
}

/// The seconds, which follow each other without gaps.
fn seconds(rows: &[Row]) -> io::Result<Vec<LoadSecond>> {
    let mut seconds: BTreeMap<u64, LoadSecond> = BTreeMap::new();
    let of_seconds = rows.iter().filter(|row| row.phase == Phase::Measure);
    for row in of_seconds {
        let second = seconds.entry(row.beat.index).or_default();
        let is = |metric: Metric| row.name.as_str() == metric.name;
        match &row.value {
            Value::Int(count) if is(metric::INTERVAL) => {
                second.length = Nanos::new(*count);
                second.begin = Nanos::new(row.beat.moment.as_u64()).saturating_sub(second.length);
            }
            Value::Int(count) if is(metric::SCHEDULED) => second.requested = *count,
            Value::Int(count) if is(metric::BEGUN) => second.begun = *count,
            Value::Int(count) if is(metric::SENT) => second.sent = *count,
            Value::Int(count) if is(metric::BYTES_RECEIVED) => second.bytes[0] = *count,
            Value::Int(count) if is(metric::BYTES_SENT) => second.bytes[1] = *count,
            Value::Int(count) if is(metric::ENDED) => {
                let end = outcome(row).ok_or_else(|| foreign("a row has no known outcome"))?;
                second.outcomes[end.index()] = *count;
            }
            Value::Histogram(bytes) if is(metric::RESPONSE_TIME) => {
                second.response = packed(bytes)?
            }
            Value::Histogram(bytes) if is(metric::SERVICE_TIME) => second.service = packed(bytes)?,
            Value::Histogram(bytes) if is(metric::LATENESS) => second.lateness = packed(bytes)?,
            _ => {}
        }
    }
    Ok(seconds.into_values().collect())
}

fn outcome(row: &Row) -> Option<Outcome> {
    let name = row.labels.value(OUTCOME)?;
    Outcome::ALL.into_iter().find(|end| end.name() == name)
}

fn packed(bytes: &[u8]) -> io::Result<PackedHistogram> {
    PackedHistogram::from_bytes(bytes).ok_or_else(not_encoded)
}

fn histogram(bytes: &[u8]) -> io::Result<Histogram<u64>> {
    decode_histogram(bytes).ok_or_else(not_encoded)
}

fn not_encoded() -> io::Error {
    foreign("a row's histogram is not in V2 encoding")
}

/// Times of each worker.
fn times(rows: &[Row], manifest: &LoadManifest) -> io::Result<Vec<Vec<Option<Histogram<u64>>>>> {
    let series: BTreeMap<(&str, Option<&str>), usize> = LoadTime::all()
        .map(|time| {
            let (metric, outcome) = metric::of_time(time);
            ((metric.name, outcome), time.index())
        })
        .collect();
    let nothing = || (0..LoadTime::COUNT).map(|_| None).collect::<Vec<_>>();
    let mut times: Vec<_> = manifest.workers.iter().map(|_| nothing()).collect();
    for row in rows.iter().filter(|row| row.phase == Phase::Close) {
        let place = series.get(&(row.name.as_str(), row.labels.value(OUTCOME)));
        let worker = row.labels.value(WORKER).and_then(|text| text.parse().ok());
        let worker = worker.and_then(|worker: usize| times.get_mut(worker));
        if let (Some(place), Some(worker), Value::Histogram(bytes)) = (place, worker, &row.value) {
            worker[*place] = Some(histogram(bytes)?);
        }
    }
    Ok(times)
}

/// Times of the routes of each worker.
fn route_times(
    rows: &[Row],
    manifest: &LoadManifest,
) -> io::Result<Vec<Vec<[Histogram<u64>; RouteTime::ALL.len()]>>> {
    let nothing = |worker: &LoadWorker| {
        let routes = worker.routes.iter();
        routes
            .map(|_| RouteTime::ALL.map(|_| empty_histogram()))
            .collect()
    };
    let mut times: Vec<Vec<_>> = manifest.workers.iter().map(nothing).collect();
    for row in rows.iter().filter(|row| row.phase == Phase::Close) {
        let mut all = RouteTime::ALL.into_iter();
        let time = all.position(|time| metric::of_route(time).name == row.name.as_str());
        let (Some(time), Value::Histogram(bytes)) = (time, &row.value) else {
            continue;
        };
        let worker = row.labels.value(WORKER).and_then(|text| text.parse().ok());
        let worker = worker.unwrap_or(usize::MAX);
        let routes = manifest.workers.get(worker).map(|worker| &worker.routes);
        let is_of = |route: &RouteCounts| row.labels.value(ROUTE) == Some(&route.name);
        if let Some(route) = routes.and_then(|routes| routes.iter().position(is_of)) {
            times[worker][route][time] = histogram(bytes)?;
        }
    }
    Ok(times)
}

#[cfg(test)]
pub(super) mod tests;
