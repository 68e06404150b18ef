//! The page of a load's metrics, for scrapers.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use stillwell_plan::load::StatsPagePlan;
use stillwell_units::Nanos;
use stillwell_wire::ListenError;
use stillwell_wire::server::StreamListener;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use super::counts::ExportCounts;
use crate::format::page::Origin;
use crate::format::prometheus::prometheus_text;
use crate::published::Published;
use crate::server::{PageService, PageText};

const SERVICE: PageService = PageService {
    path: Some("/metrics"),
    connections_max: 16,
    connection_time_max: Nanos::from_secs(10).as_duration(),
    keeps_alive: true,
};

/// A bound page.
#[derive(Debug)]
pub(super) struct MetricsPageServer {
    listener: StreamListener,
    linger: Nanos,
    origin: Arc<Origin>,
    counts: Arc<ExportCounts>,
}

/// State that all connections share.
struct SharedPage {
    published: watch::Receiver<Published>,
    origin: Arc<Origin>,
    counts: Arc<ExportCounts>,
    /// True if the last page was sent to a scraper.
    is_last_sent: Cell<bool>,
    last_sent: Notify,
}

impl MetricsPageServer {
    pub(super) fn bind(plan: &StatsPagePlan, origin: &Arc<Origin>) -> Result<Self, ListenError> {
        Ok(Self {
            listener: StreamListener::tcp(plan.address)?,
            linger: plan.linger,
            origin: Arc::clone(origin),
            counts: Arc::new(ExportCounts::new("page")),
        })
    }

    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.listener.address()
    }

    pub(super) const fn counts(&self) -> &Arc<ExportCounts> {
        &self.counts
    }

    /// Serves the page until the last one was published, and then until it was sent
    /// once or has lingered.
    pub(super) async fn run(self, mut published: watch::Receiver<Published>) {
        let Ok(listener) = self.listener.socket.watched() else {
            return;
        };
        let shared = Rc::new(SharedPage {
            published: published.clone(),
            origin: self.origin,
            counts: self.counts,
            is_last_sent: Cell::new(false),
            last_sent: Notify::new(),
        });
        let end = async {
            // An error means that no more pages come.
            drop(published.wait_for(|published| published.is_last).await);
            if self.linger > Nanos::ZERO && !shared.is_last_sent.get() {
                let sent = shared.last_sent.notified();
                drop(timeout(self.linger.as_duration(), sent).await);
            }
        };
        let accept = || std::future::poll_fn(|context| listener.poll_accept(context));
        let text = || ConnectionPage {
            shared: Rc::clone(&shared),
            is_last: false,
        };
        tokio::select! {
            () = end => {}
            never = SERVICE.serve(accept, text) => match never {},
        }
    }
}

/// The page as one connection sends it.
struct ConnectionPage {
    shared: Rc<SharedPage>,
    /// True if the page in transmission is the last one.
    is_last: bool,
}

impl PageText for ConnectionPage {
    fn text(&mut self) -> String {
        let published = self.shared.published.borrow().clone();
        self.is_last = published.is_last;
        prometheus_text(&self.shared.origin, &published.shown())
    }

    fn sent(&mut self) {
        self.shared.counts.count(Ok(()), self.is_last);
        if self.is_last {
            self.shared.is_last_sent.set(true);
            self.shared.last_sent.notify_one();
        }
    }
}
