use std::cell::RefCell;
use std::collections::VecDeque;

use stillwell_http::h2::PREFACE;
use stillwell_plan::load::LoadProtocol::Http2;
use tokio::io::ReadBuf;

use super::*;
use crate::fixture::{block_on, slots, ticket};

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

/// A server that waits after its last part; a test adds parts meanwhile.
#[derive(Clone, Default)]
struct WaitingServer(Rc<RefCell<ScriptedServer>>);

impl WaitingServer {
    /// Sends `part` with the next read.
    fn send(&self, part: Vec<u8>) {
        self.0.borrow_mut().parts.push_back(part);
    }

    /// Number of requests that were received.
    fn requests(&self) -> usize {
        requests_in(&self.0.borrow().received)
    }
}

impl AsyncRead for WaitingServer {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut server = self.0.borrow_mut();
        if server.parts.is_empty() {
            return Poll::Pending;
        }
        Pin::new(&mut *server).poll_read(context, buffer)
    }
}

impl AsyncWrite for WaitingServer {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut server = self.0.borrow_mut();
        Pin::new(&mut *server).poll_write(context, bytes)
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

/// Adds so many requests in hand.
fn give(slot: &mut ConnectionSlot, requests: usize) {
    let tickets = std::iter::repeat_n(ticket(), requests);
    slot.in_hand.extend(tickets);
}

/// Runs a connection until it waits or has ended.
async fn proceed(
    mut connection: Pin<&mut impl Future<Output = ConnectionEnd>>,
) -> Poll<ConnectionEnd> {
    poll_fn(|context| Poll::Ready(connection.as_mut().poll(context))).await
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
    block_on(async {
        let (mut slots, shard) = slots(Http2, 1, streams, None);
        give(&mut slots[0], requests);
        let connection = slots[0].multiplex(server).await;
        Ended {
            connection,
            answered: shard.ended(Outcome::Ok),
            lost: shard.ended(Outcome::PeerClosed),
            in_hand: slots[0].in_hand.len(),
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

/// They were given to the connection, and waited for its last answer and a new connection.
#[test]
fn requests_are_given_to_another_connection_once_a_server_goes_away() {
    block_on(async {
        let (mut slots, shard) = slots(Http2, 2, 2, None);
        let pool = Rc::clone(&slots[0].pool);
        let servers = [WaitingServer::default(), WaitingServer::default()];
        servers.iter().for_each(|server| server.send(settings(&[])));
        let [first, second] = slots.as_mut_slice() else {
            panic!("not two slots");
        };
        let mut first = Box::pin(first.multiplex(servers[0].clone()));
        let mut second = Box::pin(second.multiplex(servers[1].clone()));
        assert_eq!(proceed(first.as_mut()).await, Poll::Pending);
        assert_eq!(proceed(second.as_mut()).await, Poll::Pending);
        let offer = || pool.slots.borrow_mut().offer(ticket());
        assert!(offer());
        servers[0].send(go_away(1));
        assert_eq!(proceed(first.as_mut()).await, Poll::Pending);
        assert_eq!([offer(), offer(), offer()], [true, true, false]);
        assert_eq!(proceed(second.as_mut()).await, Poll::Pending);
        let received = servers.each_ref().map(WaitingServer::requests);
        assert_eq!(received, [1, 2], "the first one is in flight");
        servers[0].send(answers(0..1));
        let agreed = Poll::Ready(ConnectionEnd::Agreed);
        assert_eq!(proceed(first.as_mut()).await, agreed);
        assert_eq!(shard.ended(Outcome::Ok), 1);
    });
}

/// They waited for the last answer of their connection and for a new one.
#[test]
fn requests_that_a_server_did_not_begin_are_given_to_a_free_connection_at_once() {
    for (streams, requests, part) in [
        // The third one is refused, the second one in flight.
        (3, 3, [answers(0..1), go_away(3)].concat()),
        // The second one is not sent.
        (1, 2, go_away(1)),
    ] {
        block_on(async {
            let (mut slots, shard) = slots(Http2, 2, streams, None);
            give(&mut slots[0], requests);
            let servers = [WaitingServer::default(), WaitingServer::default()];
            servers.iter().for_each(|server| server.send(settings(&[])));
            let [first, second] = slots.as_mut_slice() else {
                panic!("not two slots");
            };
            let mut first = Box::pin(first.multiplex(servers[0].clone()));
            let mut second = Box::pin(second.multiplex(servers[1].clone()));
            assert_eq!(proceed(first.as_mut()).await, Poll::Pending);
            assert_eq!(proceed(second.as_mut()).await, Poll::Pending);
            servers[0].send(part);
            assert_eq!(proceed(first.as_mut()).await, Poll::Pending);
            assert_eq!(proceed(second.as_mut()).await, Poll::Pending);
            assert_eq!(servers[1].requests(), 1, "{streams} streams");
            assert_eq!(shard.ended(Outcome::PeerClosed), 0);
        });
    }
}

/// It got as many as it has streams, and the surplus waited for a new connection.
#[test]
fn a_connection_is_given_no_more_requests_than_it_can_begin() {
    for (streams, requests_max, settings, expected) in [
        (2, None, settings(&[]), 2),
        (10, Some(3), settings(&[]), 3),
        // The server states its limit after all places were declared.
        (10, None, settings(&[0, 3, 0, 0, 0, 4]), 4),
    ] {
        block_on(async {
            let (mut slots, _shard) = slots(Http2, 1, streams, requests_max);
            let pool = Rc::clone(&slots[0].pool);
            let server = WaitingServer::default();
            server.send(settings);
            let mut connection = Box::pin(slots[0].multiplex(server.clone()));
            assert_eq!(proceed(connection.as_mut()).await, Poll::Pending);
            let offers = std::iter::repeat_with(|| pool.slots.borrow_mut().offer(ticket()));
            let given = offers.take_while(|is_given| *is_given).count();
            assert_eq!(given, expected);
            assert_eq!(proceed(connection.as_mut()).await, Poll::Pending);
            assert_eq!(server.requests(), expected, "each is sent at once");
        });
    }
}
