//! Admin interface: counts, addresses of listeners, and the end of the server.

mod pages;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use stillwell_metric::{Labels, SinkShard};
use stillwell_plan::serve::ServeAdminPlan;
use stillwell_scope::{PartError, Token, clock};
use stillwell_units::Moment;
use stillwell_wire::server::{
    Activity, Page, PageRequest, PageServer, Pages, Reader as _, ServerWorker, StreamListener,
    accept, accounted, drive,
};
use stillwell_wire::{ListenError, Stream};
use tokio::io::AsyncWriteExt as _;

use crate::counts::ServeCounter;
use pages::{AdminPage, AdminPages};

/// Connections that are served at once; more wait in the backlog.
const CONNECTIONS_MAX: usize = 16;

/// An admin interface whose socket is bound.
#[derive(Debug)]
pub(crate) struct BoundAdmin {
    pub(crate) address: SocketAddr,
    listener: StreamListener,
    plan: ServeAdminPlan,
}

/// State that the connections of the interface share.
#[derive(Debug)]
struct AdminState {
    pages: AdminPages,
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
    /// Serves until `token` is cancelled or a request ends the server.
    pub(crate) async fn run(
        self,
        counter: ServeCounter,
        listeners: Vec<SocketAddr>,
        token: Token,
    ) -> Result<(), PartError> {
        let shard = Arc::new(SinkShard::new(Labels::none().with("component", "admin")));
        let worker = Rc::new(ServerWorker::new(shard, token.child_token()));
        let admin = Rc::new(AdminState {
            pages: AdminPages {
                counter,
                listeners,
                plan: self.plan,
            },
            started: clock::now(),
            quit: worker.token.clone(),
        });
        let of_connection = Rc::clone(&worker);
        // Its pages are answered at once: a connection is idle between two requests.
        let serve = move |stream: Stream, _activity: Activity| {
            let (worker, admin) = (Rc::clone(&of_connection), Rc::clone(&admin));
            async move { run_session(&worker, &admin, stream).await }
        };
        let accepted = accept(Rc::clone(&worker), self.listener, CONNECTIONS_MAX, serve);
        accounted(worker, accepted).await
    }
}

/// Answers one request after the other.
async fn run_session(worker: &ServerWorker, admin: &Rc<AdminState>, mut stream: Stream) {
    let (mut server, mut state) = (PageServer::new(Visit::of(admin)), worker.begin());
    let end = drive(&mut server, worker, &mut state, &mut stream).await;
    if end.is_some() && server.pages().is_quitting {
        // The answer is on its way before anything ends.
        drop(stream.shutdown().await);
        admin.quit.cancel();
    }
}

/// The pages of one connection.
#[derive(Debug)]
struct Visit {
    admin: Rc<AdminState>,
    is_quitting: bool,
}

impl Visit {
    fn of(admin: &Rc<AdminState>) -> Self {
        Self {
            admin: Rc::clone(admin),
            is_quitting: false,
        }
    }
}

impl Pages for Visit {
    fn page(&mut self, request: &PageRequest) -> Page {
        let uptime = clock::now().since(self.admin.started);
        let (method, target) = (&request.method, &request.target);
        let page = self.admin.pages.page(method, target, uptime);
        self.is_quitting = page.ends_server;
        let is_last = !request.keeps_alive || page.ends_server;
        response(page, method == "HEAD", is_last)
    }

    fn malformed(&mut self) -> Option<Page> {
        let page = AdminPage::text(400, "no request\n");
        Some(response(page, false, true))
    }
}

/// A response to `HEAD` has the head of the page, and nothing behind it.
fn response(page: AdminPage, is_head: bool, is_last: bool) -> Page {
    let mut headers = vec![("content-type", page.kind), ("cache-control", "no-cache")];
    headers.extend(is_last.then_some(("connection", "close")));
    Page {
        status: page.status,
        headers,
        body: page.body.into_bytes(),
        is_head,
        is_last,
    }
}
