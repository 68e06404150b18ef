//! Envoy's admin interface, as far as users of a test server need it: what was
//! counted, where it listens, and how to end it.

mod pages;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use stillwell_http::{PreparedResponse, RequestEvent, RequestParser};
use stillwell_metric::{Labels, SinkShard};
use stillwell_plan::ServeAdminPlan;
use stillwell_scope::{PartError, Token, clock};
use stillwell_units::Moment;
use stillwell_wire::server::{ServerWorker, StreamListener, accept, accounted};
use stillwell_wire::{ListenError, Stream};
use tokio::io::AsyncWriteExt as _;

use crate::counts::ServeCounter;
use pages::{Page, Pages};

/// Connections that are served at once; more wait in the backlog.
const CONNECTIONS_MAX: usize = 16;

/// An admin interface whose socket is bound.
#[derive(Debug)]
pub(crate) struct BoundAdmin {
    pub(crate) address: SocketAddr,
    listener: StreamListener,
    plan: ServeAdminPlan,
}

/// What its connections share.
#[derive(Debug)]
struct Desk {
    pages: Pages,
    started: Moment,
    quit: Token,
}

pub(crate) fn bind(plan: &ServeAdminPlan) -> Result<BoundAdmin, ListenError> {
    let listener = StreamListener::tcp(plan.address)?;
    Ok(BoundAdmin {
        address: listener.address().unwrap_or(plan.address),
        listener,
        plan: plan.clone(),
    })
}

impl BoundAdmin {
    /// Serves until `token` is cancelled or somebody asks the server to end.
    pub(crate) async fn run(
        self,
        counter: ServeCounter,
        listeners: Vec<SocketAddr>,
        token: Token,
    ) -> Result<(), PartError> {
        let shard = Arc::new(SinkShard::new(Labels::none().with("component", "admin")));
        let worker = Rc::new(ServerWorker::new(shard, token.child_token()));
        let desk = Rc::new(Desk {
            pages: Pages {
                counter,
                listeners,
                stat_prefix: self.plan.stat_prefix,
            },
            started: clock::now(),
            quit: worker.token.clone(),
        });
        let of_connection = Rc::clone(&worker);
        let serve = move |stream: Stream| {
            let (worker, desk) = (Rc::clone(&of_connection), Rc::clone(&desk));
            async move { converse(&worker, &desk, stream).await }
        };
        let accepted = accept(Rc::clone(&worker), self.listener, CONNECTIONS_MAX, serve);
        accounted(worker, accepted).await
    }
}

/// Answers one request after the other.
async fn converse(worker: &ServerWorker, desk: &Desk, mut stream: Stream) {
    let mut stopping = worker.stopping_stream();
    let mut talk = Talk::default();
    while !talk.is_over {
        let mut out = Vec::new();
        let take = |bytes: &[u8]| talk.take(bytes, desk, &mut out);
        let Some(Ok(1..)) = worker.receive(&mut stream, &mut stopping, take).await else {
            return;
        };
        if stream.write_all(&out).await.is_err() {
            return;
        }
    }
    if talk.is_quitting {
        // The answer is on its way before anything ends.
        drop(stream.shutdown().await);
        desk.quit.cancel();
    }
}

/// One connection, without I/O.
#[derive(Debug, Default)]
struct Talk {
    parser: RequestParser,
    /// Method, target, and whether another request may follow.
    request: Option<(String, String, bool)>,
    is_over: bool,
    is_quitting: bool,
}

impl Talk {
    /// Takes what was read and appends answers to `out`.
    fn take(&mut self, input: &[u8], desk: &Desk, out: &mut Vec<u8>) {
        let mut read = 0;
        while !self.is_over {
            match self.parser.advance(&input[read..]) {
                Ok((_, None)) => return,
                Ok((taken, Some(event))) => {
                    read += taken;
                    match event {
                        RequestEvent::Head(head) => {
                            let (method, target) = (head.method, head.target);
                            self.request =
                                Some((method.to_owned(), target.to_owned(), head.keep_alive));
                        }
                        RequestEvent::Body(_) => {}
                        RequestEvent::End => self.answer(desk, out),
                    }
                }
                Err(_) => {
                    self.is_over = true;
                    write(&Page::text(400, "no request\n"), false, true, out);
                }
            }
        }
    }

    fn answer(&mut self, desk: &Desk, out: &mut Vec<u8>) {
        let Some((method, target, keeps_alive)) = self.request.take() else {
            return;
        };
        let uptime = clock::now().since(desk.started);
        let page = desk.pages.page(&method, &target, uptime);
        self.is_quitting = page.ends_server;
        self.is_over = !keeps_alive || page.ends_server;
        write(&page, method == "HEAD", self.is_over, out);
    }
}

/// What answers `HEAD` has the head of the page, and nothing behind it.
fn write(page: &Page, head_only: bool, is_last: bool, out: &mut Vec<u8>) {
    let mut headers = vec![("content-type", page.kind), ("cache-control", "no-cache")];
    if is_last {
        headers.push(("connection", "close"));
    }
    // All headers are written here, so that there is nothing to refuse.
    if let Ok(response) = PreparedResponse::new(page.status, &headers, page.body.as_bytes()) {
        out.extend_from_slice(if head_only {
            response.head()
        } else {
            response.bytes()
        });
    }
}
