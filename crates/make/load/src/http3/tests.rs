use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use stillwell_http::h3::{BodyLength, H3ResponseBlock};
use stillwell_metric::LoadShard;
use stillwell_plan::load::LoadProtocol;
use stillwell_plan::tls::{
    Alpn, ClientTlsPlan, ServerIdentity, ServerTlsPlan, TlsSuites, Verification,
};
use stillwell_wire::quic::{Came, Line, QuicClient, QuicServer, bind_quic};
use stillwell_wire::tls::{ClientTls, ServerTls};

use super::*;
use crate::fixture::{block_on, slots, ticket};

/// The first of two slots for connections with so many streams and requests at most, and its
/// counts.
fn quic_slot(streams: u32, requests_max: Option<u64>) -> (ConnectionSlot, Arc<LoadShard>) {
    let (mut slots, shard) = slots(LoadProtocol::Http3, 2, streams, requests_max);
    (slots.swap_remove(0), shard)
}

/// Runs a connection until it waits; returns false if it has ended.
async fn waits(mut connection: Pin<&mut impl Future<Output = ConnectionEnd>>) -> bool {
    poll_fn(|context| Poll::Ready(connection.as_mut().poll(context).is_pending())).await
}

async fn flush(server: &mut QuicServer, key: usize) {
    poll_fn(|context| Poll::Ready(server.flush(context, key))).await;
}

/// Closes the first connection at its first request, after the response if `is_answered`.
async fn serve(server: &mut QuicServer, is_answered: bool) {
    loop {
        let came = poll_fn(|context| server.poll(context)).await.unwrap();
        let Came::Line(key) = came else { continue };
        while server.line(key).and_then(Line::next_event).is_some() {}
        let request = server.line(key).and_then(Line::accept_bidi);
        if let (Some(stream), true) = (request, is_answered) {
            let mut response = Vec::new();
            let head = H3ResponseBlock::new(200, &[]).unwrap();
            head.write(&[], BodyLength::None, &mut response);
            let line = server.line(key).unwrap();
            line.write(stream, &mut Bytes::from(response));
            line.finish(stream);
            flush(server, key).await;
        }
        if request.is_some() {
            server.line(key).unwrap().close(H3ErrorCode::NO_ERROR.0);
            return flush(server, key).await;
        }
        flush(server, key).await;
    }
}

/// A server that listens and admits four requests at once, and its address.
fn listening() -> (QuicServer, String) {
    let tls = ServerTls::new(&ServerTlsPlan {
        identity: ServerIdentity::SelfSigned {
            names: vec!["a".to_owned()],
        },
        alpn: vec![Alpn::Http3],
        client_roots: Vec::new(),
        resumption: true,
        suites: TlsSuites::default(),
    });
    let mut bound = bind_quic("127.0.0.1:0".parse().unwrap(), 1, &tls.unwrap(), 4).unwrap();
    let bound = bound.pop().unwrap();
    let address = bound.address().unwrap().to_string();
    (QuicServer::new(bound, 4).unwrap(), address)
}

/// A connection to `server`, which listens on `address`.
async fn connect(server: &mut QuicServer, address: &str) -> Box<QuicConnection> {
    let tls = ClientTls::new(&ClientTlsPlan {
        verification: Verification::None,
        alpn: vec![Alpn::Http3],
        ..ClientTlsPlan::default()
    });
    let tls = tls.unwrap();
    let name = tls.server_name("a").unwrap();
    let client = QuicClient::new(&tls).unwrap();
    let connected = Box::pin(async {
        let mut quic = client.open(None, address, &name).await.unwrap();
        quic.handshake().await.unwrap();
        Box::new(quic)
    });
    tokio::select! {
        quic = connected => quic,
        () = serve(server, false) => panic!("no request was sent"),
    }
}

/// The end of a connection, and the numbers that it leaves.
#[derive(Debug, Eq, PartialEq)]
struct QuicEnded {
    connection: ConnectionEnd,
    answered: u64,
    lost: u64,
    /// Connections that count as ended between two requests, and in the middle of one.
    between: u64,
    cut: u64,
}

/// Sends one request to a server that closes the connection.
fn run(is_answered: bool) -> QuicEnded {
    block_on(async {
        let (mut server, address) = listening();
        let (mut slot, shard) = quic_slot(1, None);
        slot.in_hand.push_back(ticket());
        let quic = connect(&mut server, &address).await;
        let load = slot.multiplex_quic(*quic);
        let (connection, ()) = tokio::join!(load, serve(&mut server, is_answered));
        QuicEnded {
            connection,
            answered: shard.ended(Outcome::Ok),
            lost: shard.ended(Outcome::PeerClosed),
            between: shard.connections_ended.total(),
            cut: shard.connections_cut.total(),
        }
    })
}

/// It counted neither as ended nor as cut.
#[test]
fn a_connection_of_http3_that_the_server_closes_in_the_middle_of_a_request_is_cut() {
    let cut = QuicEnded {
        connection: ConnectionEnd::Lost,
        answered: 0,
        lost: 1,
        between: 0,
        cut: 1,
    };
    let between = QuicEnded {
        connection: ConnectionEnd::Agreed,
        answered: 1,
        lost: 0,
        between: 1,
        cut: 0,
    };
    assert_eq!(run(false), cut);
    assert_eq!(run(true), between);
}

/// It got as many as it has streams, and the surplus waited until it could begin more.
#[test]
fn a_connection_of_http3_is_given_no_more_requests_than_it_can_begin() {
    for (streams, requests_max, expected) in [(2, None, 2), (10, Some(3), 3), (10, None, 4)] {
        block_on(async {
            let (mut server, address) = listening();
            let (mut slot, _shard) = quic_slot(streams, requests_max);
            let pool = Rc::clone(&slot.pool);
            let quic = connect(&mut server, &address).await;
            let mut connection = Box::pin(slot.multiplex_quic(*quic));
            assert!(waits(connection.as_mut()).await);
            let offers = std::iter::repeat_with(|| pool.slots.borrow_mut().offer(ticket()));
            let given = offers.take_while(|is_given| *is_given).count();
            assert_eq!(given, expected, "{streams} streams");
        });
    }
}

/// It waited for the last answer of its connection and for a new one.
#[test]
fn a_request_that_a_connection_of_http3_may_not_begin_goes_to_a_free_one() {
    block_on(async {
        let (mut server, address) = listening();
        let (mut slot, _shard) = quic_slot(2, Some(1));
        slot.in_hand.extend([ticket(), ticket()]);
        let pool = Rc::clone(&slot.pool);
        pool.slots.borrow_mut().free(1, true);
        let quic = connect(&mut server, &address).await;
        let mut connection = Box::pin(slot.multiplex_quic(*quic));
        assert!(waits(connection.as_mut()).await);
        let given = pool.slots.borrow_mut().unaccepted(1);
        assert!(given.is_some());
        assert!(!pool.slots.borrow().is_any_free());
    });
}
