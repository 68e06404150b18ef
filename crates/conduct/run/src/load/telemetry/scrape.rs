//! A page that others scrape.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use stillwell_export::{Origin, PROMETHEUS_TEXT, prometheus_text};
use stillwell_scope::Tasks;
use stillwell_units::Nanos;
use stillwell_wire::Stream;
use stillwell_wire::server::{
    Page, PageRequest, PageServer, Pages, PlainReader, Reader as _, drive,
};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use super::Board;
use super::account::Account;

/// Connections that are served at once; more wait.
const CONNECTIONS_MAX: usize = 16;
/// How long one may take.
const SERVE_MAX: Nanos = Nanos::from_secs(10);

/// The page, and where it is to be had.
#[derive(Debug)]
pub(super) struct ScrapedPage {
    listener: std::net::TcpListener,
    address: SocketAddr,
    linger: Nanos,
    origin: Arc<Origin>,
    account: Arc<Account>,
}

/// What connections share.
struct Shared {
    board: watch::Receiver<Board>,
    origin: Arc<Origin>,
    account: Arc<Account>,
    /// Whether somebody has got the last state.
    is_seen: Cell<bool>,
    seen: Notify,
}

impl ScrapedPage {
    pub(super) fn new(
        listener: &std::net::TcpListener,
        linger: Nanos,
        origin: &Arc<Origin>,
    ) -> io::Result<Self> {
        Ok(Self {
            listener: listener.try_clone()?,
            address: listener.local_addr()?,
            linger,
            origin: Arc::clone(origin),
            account: Arc::new(Account::new("page")),
        })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) const fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Serves the page until the load is over, and as much longer as it lingers
    /// unless somebody sees the last state earlier.
    pub(super) async fn run(self, mut board: watch::Receiver<Board>) {
        let Ok(listener) = TcpListener::from_std(self.listener) else {
            return;
        };
        let shared = Rc::new(Shared {
            board: board.clone(),
            origin: self.origin,
            account: self.account,
            is_seen: Cell::new(false),
            seen: Notify::new(),
        });
        let until = async {
            // An error says that there will be no more.
            drop(board.wait_for(|board| board.is_last).await);
            if self.linger > Nanos::ZERO && !shared.is_seen.get() {
                let seen = shared.seen.notified();
                drop(timeout(self.linger.as_duration(), seen).await);
            }
        };
        let mut tasks = Tasks::new(CONNECTIONS_MAX);
        let accepting = async {
            loop {
                // Both arms are cancel-safe.
                let accepted = tokio::select! {
                    () = tasks.next_end(), if !tasks.is_empty() => continue,
                    accepted = listener.accept(), if tasks.has_room() => accepted,
                };
                match accepted {
                    Ok((stream, _)) => {
                        let shared = Rc::clone(&shared);
                        tasks.spawn(async move {
                            let served = serve(&shared, stream.into());
                            // Whoever asks too slowly asks again.
                            drop(timeout(SERVE_MAX.as_duration(), served).await);
                        });
                    }
                    // Of one connection only, or too many of them are open.
                    Err(_) => sleep(Nanos::from_millis(10).as_duration()).await,
                }
            }
        };
        // Both arms only wait, or serve what may be cut off at the end.
        tokio::select! {
            () = until => {}
            () = accepting => {}
        }
    }
}

/// Answers the requests of one connection.
async fn serve(shared: &Shared, mut stream: Stream) {
    let pages = Scrapes {
        shared,
        shows_last: false,
    };
    let (mut server, mut buffer) = (PageServer::new(pages), PlainReader.begin());
    let end = drive(&mut server, &PlainReader, &mut buffer, &mut stream).await;
    if end.is_some() {
        // A peer that has gone needs no end.
        stream.shutdown().await.unwrap_or_default();
    }
}

/// The pages of one connection.
struct Scrapes<'s> {
    shared: &'s Shared,
    /// Whether the page that is sent is the last state.
    shows_last: bool,
}

impl Pages for Scrapes<'_> {
    fn page(&mut self, request: &PageRequest) -> Page {
        let path = request.target.split('?').next();
        let status = match (request.method.as_str(), path) {
            ("GET", Some("/metrics")) => 200,
            (_, Some("/metrics")) => 405,
            _ => 404,
        };
        let board = self.shared.board.borrow().clone();
        self.shows_last = board.is_last;
        let text = match (status, &board.page) {
            (200, Some(page)) => prometheus_text(&self.shared.origin, page),
            // Nothing was counted yet.
            (200, None) => String::new(),
            _ => "there is /metrics\n".to_owned(),
        };
        let kind = if status == 200 {
            PROMETHEUS_TEXT
        } else {
            "text/plain"
        };
        Page {
            status,
            headers: vec![("content-type", kind)],
            body: text.into_bytes(),
            is_head: false,
            is_last: !request.keeps_alive,
        }
    }

    fn sent(&mut self, status: u16) {
        if status != 200 {
            return;
        }
        self.shared.account.done.add(1);
        if self.shows_last {
            self.shared.is_seen.set(true);
            self.shared.seen.notify_one();
        }
    }
}
