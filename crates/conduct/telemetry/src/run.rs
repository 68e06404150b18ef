//! Export of the samples of runs while they run.

use std::collections::BTreeMap;
use std::sync::Arc;

use stillwell_capture::TelemetryResult;
use stillwell_metric::{
    Histogram, Kind, Labels, Metric, Sample, SeriesName, Value, add_histogram, catalogue,
    decode_histogram, empty_histogram,
};
use stillwell_plan::ObserverPlan;
use stillwell_plan::load::TelemetryPlan;
use stillwell_plan::tls::ClientTlsPlan;
use stillwell_scope::clock;
use stillwell_units::Nanos;
use stillwell_wire::tls::ClientTls;
use tokio::sync::watch;

use crate::format::page::{MetricPoint, MetricsPage, Origin, PointValue, Times};
use crate::load::{ExportThread, TelemetryError};
use crate::newest::NewestSamples;
use crate::published::{FlushTimer, PageWriter, Published};

/// Exports what runs record, one run after the other or several at once.
#[derive(Debug)]
pub struct RunTelemetry {
    thread: ExportThread,
    metrics: RunMetrics,
}

/// Sender of metrics from runs to the exporting thread, which all clones share.
#[derive(Clone, Debug)]
pub struct RunMetrics {
    published: watch::Sender<Published>,
    flush_every: Nanos,
}

/// Collects the samples of one run. When it is dropped, the run has ended: its last values are exported.
#[derive(Debug)]
pub struct RunMetricsWriter {
    published: watch::Sender<Published>,
    writer: PageWriter,
    flush_timer: FlushTimer,
    labels: Labels,
    started: Nanos,
    newest: NewestSamples,
    times: BTreeMap<(SeriesName, Labels), SeriesTimes>,
}

#[derive(Debug)]
struct SeriesTimes {
    all: Histogram<u64>,
    recent: Histogram<u64>,
}

impl RunTelemetry {
    /// Starts the exporting thread if `plan` has exporters.
    ///
    /// # Errors
    /// [`TelemetryError`] if the page, TLS or the thread is not available.
    pub fn start(plan: &TelemetryPlan) -> Result<Option<Self>, TelemetryError> {
        if !plan.has_exporters() {
            return Ok(None);
        }
        let origin = Arc::new(Origin {
            run: plan.run,
            version: env!("CARGO_PKG_VERSION"),
            labels: plan.labels.clone(),
        });
        let tls = ClientTls::new(&ClientTlsPlan::default())?;
        let thread = ExportThread::start(plan, &origin, &tls, None)?;
        let metrics = RunMetrics {
            published: thread.published.clone(),
            flush_every: plan.flush_every,
        };
        Ok(Some(Self { thread, metrics }))
    }

    /// Returns the sender for runs.
    #[must_use]
    pub fn metrics(&self) -> RunMetrics {
        self.metrics.clone()
    }

    /// Exports the newest samples once more and waits for the receivers up to a limit. `wait` pauses for a moment and
    /// returns whether the user has interrupted the command.
    #[must_use]
    pub fn finish(self, wait: &dyn Fn() -> bool) -> TelemetryResult {
        self.thread.finish(wait)
    }
}

impl RunMetrics {
    /// Begins a run that `observer` watches and whose series carry `labels` beside their own.
    #[must_use]
    pub fn begin(&self, labels: Labels, observer: &ObserverPlan) -> RunMetricsWriter {
        RunMetricsWriter {
            published: self.published.clone(),
            writer: Published::add_writer(&self.published),
            flush_timer: FlushTimer::new(self.flush_every, clock::now()),
            labels,
            started: clock::wall(),
            newest: NewestSamples::new(observer),
            times: BTreeMap::new(),
        }
    }
}

impl RunMetricsWriter {
    /// Publishes the newest sample of each series, after those of a second; receivers get them if a flush is due.
    /// Series that were scraped from the target are left out.
    pub fn beat(&mut self, samples: &[Sample]) {
        self.add_times(samples);
        let known = samples.iter();
        let known = known.filter(|sample| metric(sample.name.as_str()).is_some());
        let now = clock::now();
        self.newest.add(now, known);
        let is_due = self.flush_timer.take_due(now);
        let page = self.page(clock::wall());
        self.published
            .send_modify(|published| published.publish(self.writer, page, is_due));
        if is_due {
            self.times
                .values_mut()
                .for_each(|times| times.recent.reset());
        }
    }

    fn add_times(&mut self, samples: &[Sample]) {
        for sample in samples {
            let Value::Histogram(bytes) = &sample.value else {
                continue;
            };
            let Some(interval) = decode_histogram(bytes) else {
                continue;
            };
            let series = (sample.name.clone(), sample.labels.clone());
            let times = self.times.entry(series).or_insert_with(|| SeriesTimes {
                all: empty_histogram(),
                recent: empty_histogram(),
            });
            add_histogram(&mut times.all, &interval);
            add_histogram(&mut times.recent, &interval);
        }
    }

    /// Returns the page of the newest samples and of all times so far, those of one metric next to each other.
    fn page(&self, taken: Nanos) -> MetricsPage {
        let numbers = self.newest.iter().filter_map(|sample| {
            let value = match &sample.value {
                Value::Int(value) if sample.kind == Kind::Counter => PointValue::Counter(*value),
                Value::Int(_) | Value::Float(_) => PointValue::Gauge(sample.value.number()?),
                Value::Histogram(_) => return None,
            };
            self.point(&sample.name, &sample.labels, value)
        });
        let times = self.times.iter().filter_map(|((name, labels), times)| {
            let value = Times::new(&times.all, &times.recent);
            self.point(name, labels, PointValue::Times(Box::new(value)))
        });
        let mut points: Vec<MetricPoint> = numbers.chain(times).collect();
        points.sort_by(|a, b| (a.metric.name, &a.labels).cmp(&(b.metric.name, &b.labels)));
        points.dedup_by(|a, b| a.metric == b.metric && a.labels == b.labels);
        MetricsPage {
            started: self.started,
            taken,
            points,
            named: Vec::new(),
        }
    }

    fn point(&self, name: &SeriesName, labels: &Labels, value: PointValue) -> Option<MetricPoint> {
        let labels = labels
            .iter()
            .fold(self.labels.clone(), |all, (key, value)| {
                all.with(key, value)
            });
        let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        Some(MetricPoint {
            metric: metric(name.as_str())?,
            labels: labels.iter().map(owned).collect(),
            value,
        })
    }
}

impl Drop for RunMetricsWriter {
    fn drop(&mut self) {
        self.published
            .send_modify(|published| published.end(self.writer));
    }
}

/// Returns the metric of the catalogue with this name.
fn metric(name: &str) -> Option<Metric> {
    let mut all = catalogue::ALL.iter();
    all.find(|metric| metric.name == name).copied()
}

#[cfg(test)]
mod tests {
    use stillwell_metric::encode_histogram;
    use stillwell_units::RunId;

    use super::*;
    use crate::format::prometheus::prometheus_text;

    fn metrics() -> RunMetrics {
        RunMetrics {
            published: watch::Sender::new(Published::default()),
            flush_every: Nanos::from_secs(3600),
        }
    }

    fn begin(metrics: &RunMetrics, labels: Labels) -> RunMetricsWriter {
        metrics.begin(labels, &ObserverPlan::default())
    }

    fn origin() -> Origin {
        Origin {
            run: RunId::from_bytes([1; 16]),
            version: "0",
            labels: vec![("variant".to_owned(), "of the user".to_owned())],
        }
    }

    fn seconds(count: u64) -> Value {
        let mut times = empty_histogram();
        times.record_n(1_000_000, count).unwrap();
        Value::Histogram(encode_histogram(&times))
    }

    #[test]
    fn samples_of_a_run_become_a_page_with_its_labels() {
        let metrics = metrics();
        let labels = Labels::none().with("experiment", "a").with("variant", "b");
        let mut writer = begin(&metrics, labels);
        let id = Labels::none().with("id", "x");
        let sample = |count| {
            [
                Sample::int(catalogue::TARGET_RSS, &Labels::none(), 4096),
                Sample::int(catalogue::BYTES_WRITTEN, &id, 7),
                Sample::new(catalogue::RESPONSE_TIME, &id, seconds(count)),
                Sample {
                    name: SeriesName::scraped("up"),
                    ..Sample::int(catalogue::TARGET_RSS, &Labels::none(), 1)
                },
            ]
        };
        writer.beat(&sample(2));
        writer.beat(&sample(3));
        let published = metrics.published.borrow().clone();
        assert_eq!(published.flush, 0, "a flush is due every hour");
        let text = prometheus_text(&origin(), &published.shown());
        let shared = r#"exported_variant="of the user""#;
        for line in [
            format!(r#"stillwell_total_rss_bytes{{experiment="a",variant="b",{shared}}} 4096"#),
            format!(
                r#"stillwell_bytes_written_total{{experiment="a",id="x",variant="b",{shared}}} 7"#
            ),
            format!(
                r#"stillwell_response_time_seconds_count{{experiment="a",id="x",variant="b",{shared}}} 5"#
            ),
        ] {
            assert!(text.lines().any(|known| known == line), "{line}\n{text}");
        }
        assert!(!text.contains("up"), "{text}");
    }

    #[test]
    fn the_page_of_a_run_has_the_newest_value_of_every_series() {
        let metrics = metrics();
        let mut writer = begin(&metrics, Labels::none());
        let none = Labels::none();
        // Details are not in every beat.
        writer.beat(&[
            Sample::int(catalogue::TARGET_THREADS, &none, 1),
            Sample::int(catalogue::TARGET_PSS, &none, 4096),
        ]);
        writer.beat(&[Sample::int(catalogue::TARGET_THREADS, &none, 2)]);
        let page = writer.page(Nanos::ZERO);
        let points = page
            .points
            .iter()
            .map(|point| (point.metric.name, &point.value));
        assert_eq!(
            points.collect::<Vec<_>>(),
            [
                ("target_threads", &PointValue::Gauge(2.0)),
                ("total_pss_bytes", &PointValue::Gauge(4096.0)),
            ]
        );
    }

    #[test]
    fn the_last_values_of_a_run_shorter_than_the_flush_interval_are_exported() {
        let metrics = metrics();
        let mut writer = begin(&metrics, Labels::none());
        writer.beat(&[Sample::int(catalogue::TARGET_RSS, &Labels::none(), 7)]);
        assert!(metrics.published.borrow().due_after(0).is_empty());
        drop(writer);
        let due = metrics.published.borrow().due_after(0);
        assert_eq!(due[0].points[0].value, PointValue::Gauge(7.0));
    }

    #[test]
    fn two_runs_at_once_are_on_the_page_together() {
        let metrics = metrics();
        let writer = |variant: &str| begin(&metrics, Labels::none().with("variant", variant));
        let (mut first, mut second) = (writer("a"), writer("b"));
        for (writer, bytes) in [(&mut first, 1), (&mut second, 2)] {
            writer.beat(&[Sample::int(catalogue::TARGET_RSS, &Labels::none(), bytes)]);
        }
        let text = prometheus_text(&origin(), &metrics.published.borrow().shown());
        for (variant, bytes) in [("a", 1), ("b", 2)] {
            let line = format!(
                r#"stillwell_total_rss_bytes{{variant="{variant}",exported_variant="of the user"}} {bytes}"#
            );
            assert!(text.lines().any(|known| known == line), "{line}\n{text}");
        }
        assert_eq!(text.matches("# TYPE").count(), 1, "{text}");
    }
}
