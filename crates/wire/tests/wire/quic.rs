//! Connections of QUIC, both ends on one worker.

use std::future::poll_fn;
use std::task::Poll;

use stillwell_plan::{Alpn, ClientTlsPlan, ServerIdentity, ServerTlsPlan, TlsSuites, Verification};
use stillwell_wire::quic::{Came, Line, QuicClient, QuicEvent, QuicServer, bind_quic};
use stillwell_wire::tls::{ClientTls, ServerTls};

use super::on_worker;

/// What has happened first on the first connection, of what says whether hands were
/// shaken.
async fn first_word(server: &mut QuicServer) -> QuicEvent {
    loop {
        let came = poll_fn(|context| server.poll(context)).await.unwrap();
        let Came::Line(key) = came else { continue };
        while let Some(event) = server.line(key).and_then(Line::next_event) {
            if let QuicEvent::Connected | QuicEvent::Lost(_) = event {
                return event;
            }
        }
        poll_fn(|context| Poll::Ready(server.settle(context, key))).await;
    }
}

#[test]
fn a_handshake_whose_connection_was_closed_at_once_had_failed_for_the_server() {
    on_worker(|| async {
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
        let mut server = QuicServer::new(bound, 4)?;
        let client = QuicClient::new(&near)?;
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
