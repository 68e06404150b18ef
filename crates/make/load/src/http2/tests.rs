use std::collections::VecDeque;
use std::sync::Arc;

use stillwell_http::h2::PREFACE;
use stillwell_metric::LoadShard;
use stillwell_plan::load::{
    BodyPlan, ClientPlan, ConnectingPlan, EndpointPlan, IdleStrategy, LoadProtocol, RequestPlan,
    Reuse,
};
use stillwell_plan::tls::ClientTlsPlan;
use tokio::io::ReadBuf;

use super::*;
use crate::build::RequestEncoder;
use crate::routes::RouteTally;
use crate::slots::Slots;
use crate::worker::{RequestSource, WorkerSetup};

/// A server that sends one part with each read, and ends the connection after the last.
#[derive(Default)]
struct ScriptedServer {
    parts: VecDeque<Vec<u8>>,
    /// True if each write fails, as after a reset.
    refuses: bool,
    received: Vec<u8>,
    /// Number of requests that were received before each read.
    requests: Vec<usize>,
}

impl AsyncRead for ScriptedServer {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let requests = requests_in(&self.received);
        self.requests.push(requests);
        buffer.put_slice(&self.parts.pop_front().unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ScriptedServer {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.refuses {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        self.received.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Number of requests in the bytes of a client.
fn requests_in(received: &[u8]) -> usize {
    let mut frames = received.get(PREFACE.len()..).unwrap_or_default();
    let mut requests = 0;
    while let Some(([_, high, low, kind, ..], rest)) = frames.split_first_chunk::<9>() {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        requests += usize::from(*kind == 1);
        frames = rest.get(length..).unwrap_or_default();
    }
    requests
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    let mut bytes = vec![0, 0, length, kind, flags];
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

fn settings(payload: &[u8]) -> Vec<u8> {
    frame(4, 0, 0, payload)
}

/// Status 200, from the static table, for some requests counted from zero.
fn answers(requests: std::ops::Range<u32>) -> Vec<u8> {
    let answers = requests.map(|request| frame(1, 5, 2 * request + 1, &[0x88]));
    answers.collect::<Vec<_>>().concat()
}

/// The server began with no stream above `last`.
fn go_away(last: u32) -> Vec<u8> {
    frame(7, 0, 0, &[last.to_be_bytes(), [0; 4]].concat())
}

/// A slot with `requests` in hand for a connection with so many streams, and its counts.
fn slot(streams: u32, requests: usize) -> (ConnectionSlot, Arc<LoadShard>) {
    let client = ClientPlan {
        connecting: ConnectingPlan {
            connections: 1,
            protocol: LoadProtocol::Http2,
            streams,
            prefetch: false,
            over: Nanos::ZERO,
            reuse: Reuse::Lru,
            requests_max: None,
            timeout: Nanos::from_secs(20),
            without_alpn: false,
            states_empty_length: false,
            source: None,
        },
        tunnel: None,
        tls: ClientTlsPlan::default(),
        timeout: Nanos::from_secs(20),
        idle: IdleStrategy::Sleep,
    };
    let plan = EndpointPlan {
        address: "127.0.0.1:1".to_owned(),
        tls_host: None,
        weight: 1,
        requests: vec![RequestPlan {
            method: "GET".to_owned(),
            path: "/".to_owned(),
            authority: "a".to_owned(),
            headers: Vec::new(),
            body: BodyPlan::None,
        }],
    };
    let endpoint = RequestEncoder::of_generator(&client).endpoint(&plan);
    let (shard, recorders) = LoadShard::pair();
    let shard = Arc::new(shard);
    let setup = WorkerSetup {
        client,
        endpoints: vec![endpoint.unwrap()].into(),
        tls: None,
        shard: Arc::clone(&shard),
        recorders,
        routes: RouteTally::default(),
    };
    let worker = Rc::new(Worker::new(setup, RequestSource::Plan));
    let slots = Slots::new(1, streams, Reuse::Lru);
    let pool = Rc::new(Pool::new(0, (1, 0), slots, &RequestSource::Plan));
    let mut slot = ConnectionSlot::new(worker, pool, 0);
    let ticket = Ticket {
        endpoint: 0,
        request: 0,
        intended: clock::now(),
        sent: None,
    };
    slot.in_hand.extend(std::iter::repeat_n(ticket, requests));
    (slot, shard)
}

/// The end of a connection, and the numbers that it leaves.
#[derive(Debug, Eq, PartialEq)]
struct Ended {
    connection: ConnectionEnd,
    answered: u64,
    lost: u64,
    /// Requests for the next connection.
    in_hand: usize,
    /// Connections that count as ended between two requests, and in the middle of one.
    between: u64,
    cut: u64,
}

/// Sends `requests` to `server` over one connection.
fn run(server: &mut ScriptedServer, streams: u32, requests: usize) -> Ended {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (mut slot, shard) = slot(streams, requests);
        let connection = slot.multiplex(server).await;
        Ended {
            connection,
            answered: shard.ended(Outcome::Ok),
            lost: shard.ended(Outcome::PeerClosed),
            in_hand: slot.in_hand.len(),
            between: shard.connections_ended.total(),
            cut: shard.connections_cut.total(),
        }
    })
}

/// It counted as ended between two requests, and a generator connected again without a pause.
#[test]
fn a_connection_that_ends_in_the_middle_of_a_request_is_lost() {
    let cut = Ended {
        connection: ConnectionEnd::Lost,
        answered: 0,
        lost: 1,
        in_hand: 0,
        between: 0,
        cut: 1,
    };
    let between = Ended {
        connection: ConnectionEnd::Agreed,
        answered: 1,
        lost: 0,
        in_hand: 0,
        between: 1,
        cut: 0,
    };
    for (parts, expected) in [
        (vec![settings(&[])], cut),
        (vec![settings(&[]), answers(0..1)], between),
    ] {
        let mut server = ScriptedServer {
            parts: parts.into(),
            ..ScriptedServer::default()
        };
        assert_eq!(run(&mut server, 1, 1), expected);
    }
}

/// They were lost with the connection. The second request goes over another: the server gives
/// it back, or it is not sent.
#[test]
fn answers_that_arrived_before_a_write_was_refused_count() {
    for (streams, arrived) in [
        (2, [settings(&[]), answers(0..1), go_away(1)].concat()),
        (1, [settings(&[]), answers(0..1)].concat()),
    ] {
        let mut server = ScriptedServer {
            parts: [arrived].into(),
            refuses: true,
            ..ScriptedServer::default()
        };
        let expected = Ended {
            connection: ConnectionEnd::Agreed,
            answered: 1,
            lost: 0,
            in_hand: 1,
            between: 1,
            cut: 0,
        };
        assert_eq!(run(&mut server, streams, 2), expected);
    }
}

/// All were sent at once, and a server refuses those beyond the limit that it states.
#[test]
fn requests_beyond_the_limit_of_a_server_wait_before_its_settings_and_after_them() {
    let mut server = ScriptedServer {
        parts: [
            settings(&[0, 3, 0, 0, 0, 120]),
            answers(0..120),
            answers(120..150),
        ]
        .into(),
        ..ScriptedServer::default()
    };
    let ended = run(&mut server, 150, 150);
    assert_eq!((ended.answered, ended.lost), (150, 0));
    assert_eq!(server.requests[..3], [100, 120, 150]);
}
