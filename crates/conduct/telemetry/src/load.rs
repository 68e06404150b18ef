//! Export of a load's metrics and spans, by one thread.
//!
//! The conducting thread publishes a page for each flush, made from the same cells and
//! recorders as the result. The last page is made from the result itself, so its totals
//! are those of the report. Each receiver is a task that waits for the next page.

mod counts;
mod export;
mod gather;
mod page;
mod receiver;
mod spans;
mod stats;

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use stillwell_capture::TelemetryResult;
use stillwell_load::Span;
use stillwell_metric::{Histogram, Interval, LoadShard, LoadTime};
use stillwell_plan::LoadPlan;
use stillwell_plan::tls::{ClientTlsPlan, Verification};
use stillwell_scope::clock;
use stillwell_wire::ListenError;
use stillwell_wire::tls::{ClientTls, TlsError};

use crate::format::page::{MetricsPage, Origin};
use crate::published::{FlushTimer, PageWriter, Published};
use counts::ExportCounts;
pub(crate) use export::ExportThread;
use gather::Gatherer;
use spans::SpanExporter;

/// Times of one worker, in the order of [`LoadTime::index`]; `None` where nothing was recorded.
pub type WorkerTimes = Vec<Option<Histogram<u64>>>;

/// A failure to start the export.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The page cannot be served at its address.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// Invalid TLS configuration.
    #[error("prepare TLS for metrics exporters")]
    Tls(#[from] TlsError),
    /// The kernel starts no more threads.
    #[error("start the thread that exports metrics")]
    Start(#[source] std::io::Error),
}

/// Exports what a load counts.
#[derive(Debug)]
pub struct LoadTelemetry {
    gatherer: Gatherer,
    flush_timer: FlushTimer,
    thread: ExportThread,
    writer: PageWriter,
    spans: Option<Arc<ExportCounts>>,
}

impl LoadTelemetry {
    /// Starts the exporting thread if `plan` has exporters. `spans` is the queue of
    /// the workers.
    ///
    /// # Errors
    /// [`TelemetryError`] if the page, TLS or the thread is not available.
    pub fn start(
        plan: &LoadPlan,
        spans: Option<Receiver<Span>>,
    ) -> Result<Option<Self>, TelemetryError> {
        let telemetry = &plan.telemetry;
        if !telemetry.has_exporters() {
            return Ok(None);
        }
        let origin = Arc::new(Origin {
            run: telemetry.run,
            version: env!("CARGO_PKG_VERSION"),
            labels: telemetry.labels.clone(),
        });
        let tls = ClientTls::new(&tls_plan(plan))?;
        let spans = telemetry.trace.as_ref().and_then(|trace| {
            let export = trace.export.as_ref()?;
            Some(SpanExporter::new(export, plan, spans?, &origin, &tls))
        });
        let counts = spans.as_ref().map(|spans| Arc::clone(spans.counts()));
        let thread = ExportThread::start(telemetry, &origin, &tls, spans)?;
        Ok(Some(Self {
            gatherer: Gatherer::new(plan, clock::wall()),
            flush_timer: FlushTimer::new(telemetry.flush_every, clock::now()),
            writer: Published::add_writer(&thread.published),
            thread,
            spans: counts,
        }))
    }

    /// Marks the start of the load.
    pub fn begin(&mut self) {
        self.gatherer.begin(clock::wall());
        self.flush_timer.restart(clock::now());
    }

    /// Adds the `times` of an interval, in the order of [`LoadTime::index`], and flushes if
    /// that is due. `by_worker` are all times of each worker so far, in the same order.
    pub fn export(
        &mut self,
        shards: &[Arc<LoadShard>],
        times: &[Option<Interval>],
        by_worker: &[WorkerTimes],
    ) {
        self.gatherer.add(times);
        let is_due = self.flush_timer.take_due(clock::now());
        if !is_due && !self.thread.has_page() {
            return;
        }
        let page = self.gatherer.page(shards, by_worker, clock::wall());
        self.publish(page, is_due);
        if is_due {
            self.gatherer.flushed(by_worker);
        }
    }

    /// Exports the result, in which `totals` gives all values of one kind of time and `by_worker` those
    /// of each worker, and waits for the receivers up to a limit. `wait` pauses for a moment and
    /// returns whether the user has interrupted the load.
    pub fn finish(
        mut self,
        shards: &[Arc<LoadShard>],
        (totals, by_worker): (&dyn Fn(LoadTime) -> Histogram<u64>, &[WorkerTimes]),
        wait: &dyn Fn() -> bool,
    ) -> TelemetryResult {
        let times = (totals, by_worker);
        let page = self.gatherer.finish(shards, times, clock::wall());
        self.publish(page, false);
        let result = self.thread.finish(wait);
        let sum = |count: fn(&LoadShard) -> u64| shards.iter().map(|shard| count(shard)).sum();
        TelemetryResult {
            spans: self.spans.map(|counts| {
                let sampled = sum(|shard| shard.spans_sampled.total());
                counts.spans_result(sampled, sum(|shard| shard.spans_dropped.total()))
            }),
            ..result
        }
    }

    fn publish(&self, page: MetricsPage, is_due: bool) {
        let published = &self.thread.published;
        published.send_modify(|published| published.publish(self.writer, page, is_due));
    }
}

/// The TLS configuration of the targets, but with verified certificates and without a
/// client certificate.
fn tls_plan(plan: &LoadPlan) -> ClientTlsPlan {
    ClientTlsPlan {
        verification: match &plan.client.tls.verification {
            Verification::None | Verification::Name => Verification::Roots {
                extra: Vec::new(),
                public: true,
            },
            roots @ Verification::Roots { .. } => roots.clone(),
        },
        identity: None,
        alpn: Vec::new(),
        server_name: None,
        resumption: true,
        suites: plan.client.tls.suites.clone(),
    }
}
