//! The thread that exports pages: one task for each receiver, one for the page to scrape.

use std::net::SocketAddr;
use std::sync::Arc;

use stillwell_capture::{PageFound, TelemetryResult};
use stillwell_plan::load::TelemetryPlan;
use stillwell_scope::{Place, Scope, Tasks, Token, clock, explain};
use stillwell_units::Nanos;
use stillwell_wire::tls::ClientTls;
use tokio::sync::watch;

use super::TelemetryError;
use super::counts::ExportCounts;
use super::page::MetricsPageServer;
use super::spans::SpanExporter;
use super::stats::StatsExporter;
use crate::format::page::Origin;
use crate::published::Published;

/// Maximum time for the export of the last page.
const LAST_MAX: Nanos = Nanos::from_secs(6);
/// The same after an interrupt.
const LAST_INTERRUPTED_MAX: Nanos = Nanos::from_secs(2);
/// Maximum time in which the cancelled thread ends.
const CLOSE_MAX: Nanos = Nanos::from_secs(1);

/// The exporting thread.
#[derive(Debug)]
pub(crate) struct ExportThread {
    pub(crate) published: watch::Sender<Published>,
    linger: Nanos,
    scope: Scope,
    stats: Vec<Arc<ExportCounts>>,
    page: Option<(SocketAddr, Arc<ExportCounts>)>,
}

/// Tasks of the exporting thread.
struct ExportTasks {
    stats: Vec<StatsExporter>,
    page: Option<MetricsPageServer>,
    spans: Option<SpanExporter>,
    published: watch::Receiver<Published>,
}

impl ExportThread {
    /// Starts the thread with the receivers and the page of `plan`.
    pub(crate) fn start(
        plan: &TelemetryPlan,
        origin: &Arc<Origin>,
        tls: &ClientTls,
        spans: Option<SpanExporter>,
    ) -> Result<Self, TelemetryError> {
        let page = plan.page.as_ref();
        let page = page.map(|page| MetricsPageServer::bind(page, origin));
        let page = page.transpose()?;
        let published = watch::Sender::new(Published::default());
        let (sinks, names) = (plan.sinks.iter(), plan.statsd_names.as_ref());
        let tasks = ExportTasks {
            stats: sinks
                .map(|sink| StatsExporter::new(sink, names, origin, tls))
                .collect(),
            page,
            spans,
            published: published.subscribe(),
        };
        let counts = tasks.stats.iter().map(StatsExporter::counts);
        let page = tasks.page.as_ref();
        let mut thread = Self {
            published,
            linger: plan.page.map_or(Nanos::ZERO, |page| page.linger),
            scope: Scope::new(&Token::new()),
            stats: counts.map(Arc::clone).collect(),
            page: page.and_then(|page| Some((page.address()?, Arc::clone(page.counts())))),
        };
        thread
            .scope
            .worker(Place::default(), "telemetry", move |token| async move {
                tasks.run(&token).await;
                Ok(())
            })
            .map_err(TelemetryError::Start)?;
        Ok(thread)
    }

    /// Returns true if there is a page to scrape.
    pub(crate) const fn has_page(&self) -> bool {
        self.page.is_some()
    }

    /// Exports the shown pages once more and waits for the receivers up to a limit. `wait` pauses for a moment and
    /// returns whether the user has interrupted the command.
    pub(crate) fn finish(mut self, wait: &dyn Fn() -> bool) -> TelemetryResult {
        self.published.send_modify(Published::finish);
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
        TelemetryResult {
            sinks: stats.collect(),
            page: self.page.map(|(address, counts)| PageFound {
                address,
                scrapes: counts.exports(),
            }),
            spans: None,
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
