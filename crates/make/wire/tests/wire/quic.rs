//! Connections of QUIC, both ends on one worker.

use std::future::poll_fn;
use std::task::Poll;

use bytes::Bytes;
use stillwell_plan::tls::{
    Alpn, ClientTlsPlan, ServerIdentity, ServerTlsPlan, TlsSuites, Verification,
};
use stillwell_scope::{PartError, clock};
use stillwell_wire::quic::{Came, Line, QuicClient, QuicEvent, QuicServer, bind_quic};
use stillwell_wire::tls::{ClientTls, ServerTls};

use super::on_worker;

/// The first event on the first connection that shows the result of the handshake.
async fn first_word(server: &mut QuicServer) -> QuicEvent {
    loop {
        let came = poll_fn(|context| server.poll(context)).await.unwrap();
        let Came::Line(key) = came else { continue };
        while let Some(event) = server.line(key).and_then(Line::next_event) {
            if let QuicEvent::Connected | QuicEvent::Lost(_) = event {
                return event;
            }
        }
        poll_fn(|context| Poll::Ready(server.flush(context, key))).await;
    }
}

/// Both ends, and where the server is.
fn ends() -> Result<(QuicServer, QuicClient, ClientTls, String), PartError> {
    let far = ServerTls::new(&ServerTlsPlan {
        identity: ServerIdentity::SelfSigned {
            names: vec!["a".to_owned()],
        },
        alpn: vec![Alpn::Http3],
        client_roots: Vec::new(),
        resumption: true,
        suites: TlsSuites::default(),
    })?;
    let near = ClientTls::new(&ClientTlsPlan {
        verification: Verification::None,
        alpn: vec![Alpn::Http3],
        ..ClientTlsPlan::default()
    })?;
    let mut bound = bind_quic("127.0.0.1:0".parse()?, 1, &far, 4)?;
    let bound = bound.pop().unwrap();
    let address = bound.address().unwrap().to_string();
    let client = QuicClient::new(&near)?;
    Ok((QuicServer::new(bound, 4)?, client, near, address))
}

#[test]
fn a_handshake_whose_connection_was_closed_at_once_had_failed_for_the_server() {
    on_worker(|| async {
        let (mut server, client, near, address) = ends()?;
        let name = near.server_name("a")?;
        let connect = async {
            let mut quic = client.open(None, &address, &name).await.unwrap();
            quic.handshake().await.unwrap();
            quic.line().close(0);
            poll_fn(|context| {
                quic.flush(context);
                Poll::Ready(())
            })
            .await;
        };
        let ((), word) = tokio::join!(connect, first_word(&mut server));
        assert!(matches!(word, QuicEvent::Connected), "{word:?}");
        Ok(())
    });
}

/// The kernel sends what is for the unspecified address to the loopback, whose address answers
/// carry: they counted as those of another host.
#[test]
fn a_server_at_the_unspecified_address_is_this_host() {
    on_worker(|| async {
        let (mut server, client, near, address) = ends()?;
        let name = near.server_name("a")?;
        let address = address.replace("127.0.0.1", "0.0.0.0");
        let connect = async {
            let mut quic = client.open(None, &address, &name).await.unwrap();
            quic.handshake().await.unwrap();
        };
        let ((), word) = tokio::join!(connect, first_word(&mut server));
        assert!(matches!(word, QuicEvent::Connected), "{word:?}");
        Ok(())
    });
}

/// The key of the first connection whose hands are shaken.
async fn first_line(server: &mut QuicServer) -> usize {
    loop {
        let came = poll_fn(|context| server.poll(context)).await.unwrap();
        let Came::Line(key) = came else { continue };
        let mut is_connected = false;
        while let Some(event) = server.line(key).and_then(Line::next_event) {
            is_connected |= matches!(event, QuicEvent::Connected);
        }
        poll_fn(|context| Poll::Ready(server.flush(context, key))).await;
        if is_connected {
            return key;
        }
    }
}

/// Returns true if one of ten messages over a new connection came before the time at which the writer looked.
async fn comes_before_the_read() -> Result<bool, PartError> {
    let (mut server, client, near, address) = ends()?;
    let name = near.server_name("a")?;
    let connect = async {
        let mut quic = client.open(None, &address, &name).await.unwrap();
        quic.handshake().await.unwrap();
        quic
    };
    let (mut quic, key) = tokio::join!(connect, first_line(&mut server));
    let mut came_before = false;
    for _ in 0..10 {
        let line = server.line(key).unwrap();
        let stream = line.open_uni().unwrap();
        assert!(line.write(stream, &mut Bytes::from_static(b"hello")));
        poll_fn(|context| Poll::Ready(server.flush(context, key))).await;
        let looked = clock::now();
        while !matches!(
            poll_fn(|context| quic.poll_event(context)).await,
            QuicEvent::Opened | QuicEvent::Readable(_)
        ) {}
        assert!(quic.came() <= clock::now());
        came_before |= quic.came() < looked;
    }
    Ok(came_before)
}

/// A worker that pauses, or has no CPU, reads late what came in time. A busy kernel may deliver a message late, and it
/// begins to note arrivals some milliseconds after the first socket of the machine has requested it.
#[test]
fn arrivals_have_their_own_time_before_the_read() {
    on_worker(|| async {
        for _ in 0..100 {
            if comes_before_the_read().await? {
                return Ok(());
            }
        }
        panic!("no arrival of 100 connections was before its read");
    });
}
