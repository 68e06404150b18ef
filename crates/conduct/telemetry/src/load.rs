//! Export of a load's metrics and spans, by one thread.
//!
//! The conducting thread publishes a page for each flush, made from the same cells and
//! recorders as the result. The last page is made from the result itself, so its totals
//! are those of the report. Each receiver is a task that waits for the next page.

mod counts;
mod gather;
mod page;
mod receiver;
mod spans;
mod stats;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use stillwell_capture::{PageFound, TelemetryResult};
use stillwell_load::Span;
use stillwell_metric::{Histogram, Interval, LoadShard, LoadTime};
use stillwell_plan::LoadPlan;
use stillwell_plan::tls::{ClientTlsPlan, Verification};
use stillwell_scope::{Place, Scope, Tasks, Token, clock, explain};
use stillwell_units::{Moment, Nanos};
use stillwell_wire::ListenError;
use stillwell_wire::tls::{ClientTls, TlsError};
use tokio::sync::watch;

use crate::format::page::{MetricsPage, Origin};
use counts::ExportCounts;
use gather::Gatherer;
use page::MetricsPageServer;
use spans::SpanExporter;
use stats::StatsExporter;

/// Maximum time for the export of the last page.
const LAST_MAX: Nanos = Nanos::from_secs(6);
/// The same after an interrupt.
const LAST_INTERRUPTED_MAX: Nanos = Nanos::from_secs(2);
/// Maximum time in which the cancelled thread ends.
const CLOSE_MAX: Nanos = Nanos::from_secs(1);

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

/// The newest page, for every receiver.
#[derive(Clone, Debug, Default)]
struct Published {
    page: Option<Arc<MetricsPage>>,
    /// Number of flushes so far.
    flush: u64,
    is_last: bool,
}

/// Exports what a load counts.
#[derive(Debug)]
pub struct LoadTelemetry {
    gatherer: Gatherer,
    flush_every: Nanos,
    next_flush: Moment,
    linger: Nanos,
    published: watch::Sender<Published>,
    scope: Scope,
    stats: Vec<Arc<ExportCounts>>,
    spans: Option<Arc<ExportCounts>>,
    page: Option<(SocketAddr, Arc<ExportCounts>)>,
}

/// Tasks of the exporting thread.
struct ExportTasks {
    stats: Vec<StatsExporter>,
    page: Option<MetricsPageServer>,
    spans: Option<SpanExporter>,
    published: watch::Receiver<Published>,
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
        let page = telemetry.page.as_ref();
        let page = page.map(|page| MetricsPageServer::bind(page, &origin));
        let page = page.transpose()?;
        let sinks = telemetry.sinks.iter();
        let names = telemetry.statsd_names.as_ref();
        let published = watch::Sender::new(Published::default());
        let tasks = ExportTasks {
            stats: sinks
                .map(|sink| StatsExporter::new(sink, names, &origin, &tls))
                .collect(),
            page,
            spans: telemetry.trace.as_ref().and_then(|trace| {
                let export = trace.export.as_ref()?;
                Some(SpanExporter::new(export, plan, spans?, &origin, &tls))
            }),
            published: published.subscribe(),
        };
        let counts = tasks.stats.iter().map(StatsExporter::counts);
        let page = tasks.page.as_ref();
        let mut exporting = Self {
            gatherer: Gatherer::new(plan, clock::wall()),
            flush_every: telemetry.flush_every,
            next_flush: clock::now() + telemetry.flush_every,
            linger: telemetry.page.map_or(Nanos::ZERO, |page| page.linger),
            published,
            scope: Scope::new(&Token::new()),
            stats: counts.map(Arc::clone).collect(),
            spans: tasks.spans.as_ref().map(|spans| Arc::clone(spans.counts())),
            page: page.and_then(|page| Some((page.address()?, Arc::clone(page.counts())))),
        };
        exporting
            .scope
            .worker(Place::default(), "telemetry", move |token| async move {
                tasks.run(&token).await;
                Ok(())
            })
            .map_err(TelemetryError::Start)?;
        Ok(Some(exporting))
    }

    /// Marks the start of the load.
    pub fn begin(&mut self) {
        self.gatherer.begin(clock::wall());
        self.next_flush = clock::now() + self.flush_every;
    }

    /// Adds the `times` of an interval, in the order of [`LoadTime::index`], and flushes if
    /// that is due.
    pub fn export(&mut self, shards: &[Arc<LoadShard>], times: &[Option<Interval>]) {
        self.gatherer.add(times);
        let now = clock::now();
        let is_due = now >= self.next_flush;
        if !is_due && self.page.is_none() {
            return;
        }
        let page = Arc::new(self.gatherer.page(shards, clock::wall()));
        self.published.send_modify(|published| {
            published.page = Some(page);
            published.flush += u64::from(is_due);
        });
        if is_due {
            self.gatherer.flushed();
            self.next_flush = now + self.flush_every;
        }
    }

    /// Exports the result, in which `totals` gives all values of one kind of time, and
    /// waits for the receivers up to a limit. `wait` pauses for a moment and returns
    /// whether the user has interrupted the load.
    pub fn finish(
        mut self,
        shards: &[Arc<LoadShard>],
        totals: &dyn Fn(LoadTime) -> Histogram<u64>,
        wait: &dyn Fn() -> bool,
    ) -> TelemetryResult {
        let page = Arc::new(self.gatherer.finish(shards, totals, clock::wall()));
        self.published.send_modify(|published| {
            published.page = Some(page);
            published.flush += 1;
            published.is_last = true;
        });
        let last_max = LAST_MAX.max(self.linger + LAST_INTERRUPTED_MAX);
        let begun = clock::now();
        let mut until = begun + last_max;
        let mut ends = self.scope.ends();
        while ends.is_empty() && clock::now() < until {
            if wait() {
                until = begun + LAST_INTERRUPTED_MAX;
            }
            ends.extend(self.scope.ends());
        }
        ends.extend(self.scope.close(CLOSE_MAX));
        let failure = ends.iter().find_map(|end| end.result.as_ref().err());
        let stats = self.stats.iter().map(|counts| counts.stats_result());
        let sum = |count: fn(&LoadShard) -> u64| shards.iter().map(|shard| count(shard)).sum();
        TelemetryResult {
            sinks: stats.collect(),
            page: self.page.map(|(address, counts)| PageFound {
                address,
                scrapes: counts.exports(),
            }),
            spans: self.spans.map(|counts| {
                let sampled = sum(|shard| shard.spans_sampled.total());
                counts.spans_result(sampled, sum(|shard| shard.spans_dropped.total()))
            }),
            failure: failure.map(explain),
        }
    }
}

impl ExportTasks {
    /// Runs until every receiver has the last page, or the thread is cancelled.
    async fn run(self, token: &Token) {
        let mut tasks = Tasks::new(self.stats.len() + 2);
        for stats in self.stats {
            tasks.spawn(stats.run(self.published.clone()));
        }
        if let Some(page) = self.page {
            tasks.spawn(page.run(self.published.clone()));
        }
        if let Some(spans) = self.spans {
            tasks.spawn(spans.run());
        }
        // Cancellation drops the tasks that have not ended.
        token
            .run_until_cancelled(tasks.all_ended())
            .await
            .unwrap_or_default();
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
