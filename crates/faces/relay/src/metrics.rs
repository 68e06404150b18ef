//! The page that is scraped.

use std::net::TcpListener;
use std::rc::Rc;

use stillwell_scope::PartError;
use stillwell_wire::server::Activity;
use stillwell_wire::{Listener, Stream};

use crate::core::Core;
use crate::input::accept;
use crate::server::{self, Answer, Request};

const CONNECTIONS_MAX: usize = 16;
const CONTENT_TYPE: &str = "text/plain; version=0.0.4";

/// Answers `/metrics` until the relay is to end.
pub(crate) async fn answer(core: &Rc<Core>, socket: TcpListener) -> Result<(), PartError> {
    accept(core, Listener::tcp(socket)?, CONNECTIONS_MAX, serve).await
}

async fn serve(core: Rc<Core>, stream: Stream, activity: Activity) {
    server::serve(&core, stream, &activity, async |request| {
        page(&core, &request)
    })
    .await;
}

fn page(core: &Core, request: &Request) -> Answer {
    if request.method != "GET" {
        return Answer::status(405);
    }
    match request.target.split('?').next() {
        Some("/metrics") => Answer::text(CONTENT_TYPE, core.report().prometheus()),
        _ => Answer::status(404),
    }
}
