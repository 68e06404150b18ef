//! A page that others scrape.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use stillwell_export::{Origin, PROMETHEUS_TEXT, prometheus_text};
use stillwell_http::{RequestEvent, RequestParser, write_response};
use stillwell_scope::Tasks;
use stillwell_units::Nanos;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
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
                            let served = serve(&shared, stream);
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
async fn serve(shared: &Shared, mut stream: TcpStream) -> io::Result<()> {
    let mut parser = RequestParser::new();
    let mut buffer = vec![0; 8 << 10];
    let (mut status, mut keep_alive) = (400, false);
    loop {
        let length = stream.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        let mut read = 0;
        loop {
            let step = parser.advance(&buffer[read..length]);
            let Ok((taken, event)) = step else {
                return Ok(());
            };
            read += taken;
            match event {
                None => break,
                Some(RequestEvent::Head(head)) => {
                    keep_alive = head.keep_alive;
                    status = match (head.method, head.target.split('?').next()) {
                        ("GET", Some("/metrics")) => 200,
                        (_, Some("/metrics")) => 405,
                        _ => 404,
                    };
                }
                Some(RequestEvent::Body(_)) => {}
                Some(RequestEvent::End) => answer(shared, &mut stream, status).await?,
            }
        }
        if parser.is_idle() && !keep_alive {
            return stream.shutdown().await;
        }
    }
}

async fn answer(shared: &Shared, stream: &mut TcpStream, status: u16) -> io::Result<()> {
    let board = shared.board.borrow().clone();
    let text = match (status, &board.page) {
        (200, Some(page)) => prometheus_text(&shared.origin, page),
        // Nothing was counted yet.
        (200, None) => String::new(),
        _ => "there is /metrics\n".to_owned(),
    };
    let kind = if status == 200 {
        PROMETHEUS_TEXT
    } else {
        "text/plain"
    };
    let mut out = Vec::new();
    write_response(status, &[("content-type", kind)], text.as_bytes(), &mut out)
        .map_err(io::Error::other)?;
    stream.write_all(&out).await?;
    if status == 200 {
        shared.account.done.add(1);
        if board.is_last {
            shared.is_seen.set(true);
            shared.seen.notify_one();
        }
    }
    Ok(())
}
