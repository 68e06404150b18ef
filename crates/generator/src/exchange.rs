//! The loop of request and response: one HTTP/1.1 POST a block, one request in
//! flight on each connection.

mod lane;

use std::rc::Rc;

use stillwell_http::{RequestTemplate, ResponseParser, Target};
use stillwell_wire::dial;
use tokio::net::TcpStream;

use crate::backoff::Backoff;
use crate::slice::Slice;
use crate::transport::LineError;
use crate::worker::Worker;
use lane::Lane;

/// What all requests of a generator have in common.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    /// `host:port` to dial.
    address: String,
    template: RequestTemplate,
}

impl Exchange {
    pub(crate) fn new(url: &str, headers: &[(String, String)]) -> Result<Self, LineError> {
        let target: Target = url.parse()?;
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let template = RequestTemplate::new(
            "POST",
            target.path_and_query(),
            &target.authority(),
            &headers,
        )?;
        let host = target.host();
        let address = if host.contains(':') {
            format!("[{host}]:{}", target.port())
        } else {
            format!("{host}:{}", target.port())
        };
        Ok(Self { address, template })
    }
}

/// One connection, opened again whenever it is lost or has done its last
/// request, until the worker ends.
pub(crate) async fn exchange(worker: Rc<Worker>, exchange: Rc<Exchange>) {
    let mut lane = Lane::new(&worker, &exchange.template);
    let mut backoff = Backoff::new();
    let mut left = None;
    while let Some(mut stream) = worker
        .connect(&mut backoff, || dial::tcp(&exchange.address))
        .await
    {
        match converse(&mut lane, &mut stream, &mut left, &mut backoff).await {
            Parting::Ended => return,
            Parting::Agreed => {}
            Parting::Lost => {
                if worker.pause(&mut backoff).await.is_none() {
                    return;
                }
            }
        }
    }
}

/// How a connection came to its end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Parting {
    /// The worker is to end.
    Ended,
    /// The server wanted it, between two requests.
    Agreed,
    /// In the middle of a request.
    Lost,
}

/// Sends request after request on one connection. A request that fails is not
/// sent again; one that found the connection closed before it began is `left`.
async fn converse(
    lane: &mut Lane<'_>,
    stream: &mut TcpStream,
    left: &mut Option<Slice>,
    backoff: &mut Backoff,
) -> Parting {
    let worker = lane.worker();
    let mut parser = ResponseParser::new();
    let mut is_proven = false;
    loop {
        let slice = match left.take() {
            Some(slice) => slice,
            None => match worker.ask(&worker.next, 0).await {
                Some(slice) => slice,
                None => return Parting::Ended,
            },
        };
        // Servers close connections that were idle too long. On a connection
        // that never answered this is no such thing, but a failure.
        if is_proven && lane.is_closed(stream) {
            *left = Some(slice);
            return Parting::Agreed;
        }
        match lane.request(stream, &mut parser, slice).await {
            Ok(answer) => {
                worker.shard.count(answer.outcome());
                backoff.reset();
                is_proven = true;
                if !answer.keep_alive {
                    return Parting::Agreed;
                }
            }
            Err(outcome) => {
                worker.shard.count(outcome);
                return Parting::Lost;
            }
        }
    }
}
