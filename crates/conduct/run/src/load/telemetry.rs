//! What is told to others while a load goes on, by one thread of its own.
//!
//! The thread that conducts hands a page over for each flush, made from the same
//! cells and recorders as the result; the last one is made from the result itself,
//! so that whoever was told everything knows the totals of the report. Each sink is
//! a task that waits for the next page. One that fails is counted and told the
//! next time; it never disturbs the load, or another sink.

mod account;
mod gather;
mod post;
mod scrape;
mod sink;
mod spans;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use stillwell_export::{Origin, Page, Span};
use stillwell_metric::LoadShard;
use stillwell_plan::{ClientTlsPlan, LoadPlan, Verification};
use stillwell_scope::{Place, Scope, Tasks, Token, clock, explain};
use stillwell_units::{Moment, Nanos};
use stillwell_wire::tls::{ClientTls, TlsError};
use stillwell_wire::{ListenError, listen};
use tokio::sync::watch;

use super::{LOOK_EVERY, LoadSnapshot, LoadWorkerFound, Pause};
use crate::interrupt::Interrupt;
use account::Account;
use gather::Gatherer;
pub use stillwell_capture::{PageFound, SinkFound, SpansFound, TelemetryFound};

/// How long sinks may take for the last page.
const LAST_MAX: Nanos = Nanos::from_secs(6);
/// The same where somebody waits for the end.
const LAST_HURRIED: Nanos = Nanos::from_secs(2);
/// How long the thread may take to end once it is asked to.
const CLOSE_MAX: Nanos = Nanos::from_secs(1);

/// Why nobody can be told anything.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The page cannot be had where it was asked for.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// TLS that cannot be configured.
    #[error("prepare TLS for those who are told")]
    Tls(#[from] TlsError),
    /// The kernel starts no more threads.
    #[error("start the thread that tells others")]
    Start(#[source] std::io::Error),
}

/// What is told next, for every task to see.
#[derive(Clone, Debug, Default)]
struct Board {
    page: Option<Arc<Page>>,
    /// Rises when sinks are to be told.
    flush: u64,
    is_last: bool,
}

/// The thread that tells, and what it is told.
#[derive(Debug)]
pub(super) struct Telemetry {
    gatherer: Gatherer,
    flush_every: Nanos,
    next_flush: Moment,
    linger: Nanos,
    has_page: bool,
    board: watch::Sender<Board>,
    scope: Scope,
    sinks: Vec<Arc<Account>>,
    spans: Option<Arc<Account>>,
    page: Option<(SocketAddr, Arc<Account>)>,
}

/// What the thread begins with.
struct Parts {
    sinks: Vec<sink::Sink>,
    page: Option<scrape::ScrapedPage>,
    spans: Option<spans::Exporter>,
    board: watch::Receiver<Board>,
}

impl Telemetry {
    /// Starts the thread where `plan` has it tell anybody anything. `spans` comes
    /// from the workers.
    pub(super) fn start(
        plan: &LoadPlan,
        spans: Option<Receiver<Span>>,
    ) -> Result<Option<Self>, TelemetryError> {
        let telemetry = &plan.telemetry;
        if !telemetry.tells_anybody() {
            return Ok(None);
        }
        let origin = Arc::new(Origin {
            run: telemetry.run,
            version: env!("CARGO_PKG_VERSION"),
            labels: telemetry.labels.clone(),
        });
        let tls = ClientTls::new(&tls_plan(plan))?;
        let page = telemetry.page.map(|page| {
            let listener = listen::tcp(page.address)?;
            Ok::<_, ListenError>((listener, page))
        });
        let page = page.transpose()?;
        let board = watch::Sender::new(Board::default());
        let sinks = telemetry.sinks.iter();
        let parts = Parts {
            sinks: sinks.map(|it| sink::Sink::new(it, &origin, &tls)).collect(),
            page: page
                .as_ref()
                .map(|(listener, page)| scrape::ScrapedPage::new(listener, page.linger, &origin))
                .transpose()
                .map_err(TelemetryError::Start)?,
            spans: telemetry.trace.as_ref().and_then(|trace| {
                let export = trace.export.as_ref()?;
                Some(spans::Exporter::new(export, plan, spans?, &origin, &tls))
            }),
            board: board.subscribe(),
        };
        let mut telling = Self {
            gatherer: Gatherer::new(plan, clock::wall()),
            flush_every: telemetry.flush_every,
            next_flush: clock::now() + telemetry.flush_every,
            linger: telemetry.page.map_or(Nanos::ZERO, |page| page.linger),
            has_page: parts.page.is_some(),
            board,
            scope: Scope::new(&Token::new()),
            sinks: parts
                .sinks
                .iter()
                .map(|it| Arc::clone(it.account()))
                .collect(),
            spans: parts.spans.as_ref().map(|it| Arc::clone(it.account())),
            page: parts
                .page
                .as_ref()
                .map(|it| (it.address(), Arc::clone(it.account()))),
        };
        telling
            .scope
            .worker(Place::default(), "telemetry", move |token| async move {
                parts.run(&token).await;
                Ok(())
            })
            .map_err(TelemetryError::Start)?;
        Ok(Some(telling))
    }

    /// The load begins now.
    pub(super) fn begin(&mut self) {
        self.gatherer.begin(clock::wall());
        self.next_flush = clock::now() + self.flush_every;
    }

    /// Takes what a snapshot adds, and tells it where that is due.
    pub(super) fn tell(&mut self, snapshot: &LoadSnapshot<'_>) {
        self.gatherer.take(snapshot);
        let now = clock::now();
        let is_due = now >= self.next_flush;
        if !is_due && !self.has_page {
            return;
        }
        let page = Arc::new(self.gatherer.page(snapshot.shards, clock::wall()));
        self.board.send_modify(|board| {
            board.page = Some(page);
            board.flush += u64::from(is_due);
        });
        if is_due {
            self.gatherer.flushed();
            self.next_flush = now + self.flush_every;
        }
    }

    /// Tells the result and waits until all have got it, but not for long.
    pub(super) fn finish(
        mut self,
        workers: &[LoadWorkerFound],
        interrupt: &Interrupt,
        pause: &Pause,
    ) -> TelemetryFound {
        let page = Arc::new(self.gatherer.finish(workers, clock::wall()));
        self.board.send_modify(|board| {
            board.page = Some(page);
            board.flush += 1;
            board.is_last = true;
        });
        let begun = clock::now();
        let is_over = || {
            let most = match interrupt.signal() {
                Some(_) => LAST_HURRIED,
                None => LAST_MAX.max(self.linger + LAST_HURRIED),
            };
            clock::now() >= begun + most
        };
        let mut ends = self.scope.ends();
        while ends.is_empty() && !is_over() {
            pause.wait(LOOK_EVERY);
            ends.extend(self.scope.ends());
        }
        ends.extend(self.scope.close(CLOSE_MAX));
        let failure = ends.iter().find_map(|end| end.result.as_ref().err());
        TelemetryFound {
            sinks: self.sinks.iter().map(|it| it.found()).collect(),
            page: self.page.map(|(address, account)| PageFound {
                address,
                scrapes: account.done.total(),
            }),
            spans: self.spans.map(|account| {
                let sum = |count: fn(&LoadShard) -> u64| {
                    workers.iter().map(|worker| count(&worker.shard)).sum()
                };
                let sampled = sum(|shard| shard.spans_sampled.total());
                account.spans_found(sampled, sum(|shard| shard.spans_dropped.total()))
            }),
            failure: failure.map(explain),
        }
    }
}

impl Parts {
    /// Until all have got the last page, or the thread is to end.
    async fn run(self, token: &Token) {
        let mut tasks = Tasks::new(self.sinks.len() + 2);
        for sink in self.sinks {
            tasks.spawn(sink.run(self.board.clone()));
        }
        if let Some(page) = self.page {
            tasks.spawn(page.run(self.board.clone()));
        }
        if let Some(spans) = self.spans {
            tasks.spawn(spans.run());
        }
        // What has not ended when the thread is to end is dropped with the tasks.
        token
            .run_until_cancelled(tasks.all_ended())
            .await
            .unwrap_or_default();
    }
}

/// As with targets, but that certificates are checked in any case, and that we
/// show none of our own.
fn tls_plan(plan: &LoadPlan) -> ClientTlsPlan {
    ClientTlsPlan {
        verification: match &plan.tls.verification {
            Verification::None => Verification::Roots {
                extra: Vec::new(),
                public: true,
            },
            roots @ Verification::Roots { .. } => roots.clone(),
        },
        identity: None,
        alpn: Vec::new(),
        server_name: None,
        resumption: true,
        suites: plan.tls.suites.clone(),
    }
}
