use std::sync::mpsc::sync_channel;

use stillwell_http::Scheme;
use stillwell_http::h2::{BodyLength, Client, ClientEvent, H2RequestBlock, Limits};
use stillwell_plan::tls::{
    Alpn, ClientTlsPlan, RootSource, ServerIdentity, ServerTlsPlan, TlsSuites, Verification,
};
use stillwell_scope::{Place, Scope, Token};
use stillwell_units::Nanos;
use stillwell_wire::tls::{ClientTls, Handshake};
use stillwell_wire::{Stream, dial};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{ANSWER, GET, Server, listener};

fn server() -> Server {
    let mut listener = listener();
    listener.tls = Some(ServerTlsPlan {
        identity: ServerIdentity::SelfSigned {
            names: vec!["localhost".to_owned(), "127.0.0.1".to_owned()],
        },
        alpn: vec![Alpn::Http2, Alpn::Http1],
        client_roots: vec![],
        resumption: true,
        suites: TlsSuites::default(),
    });
    Server::of(listener)
}

/// TLS of a client that accepts the certificate of `server`.
fn client_tls(server: &Server, alpn: Alpn) -> ClientTls {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root.pem");
    std::fs::write(&root, server.certificate.as_ref().unwrap()).unwrap();
    ClientTls::new(&ClientTlsPlan {
        verification: Verification::Roots {
            extra: vec![RootSource::File(root)],
            public: false,
        },
        identity: None,
        alpn: vec![alpn],
        server_name: None,
        resumption: true,
        suites: TlsSuites::default(),
    })
    .unwrap()
}

/// Connects once for each connection, over `alpn`, and returns the results of the
/// handshakes.
fn exchange(server: &Server, alpn: Alpn, connections: usize) -> Vec<Handshake> {
    let tls = client_tls(server, alpn);
    let address = server.addresses[0].to_string();
    let (sender, handshakes) = sync_channel(connections);
    let mut scope = Scope::new(&Token::new());
    scope
        .worker(Place::default(), "client", move |_| async move {
            let name = tls.server_name("127.0.0.1")?;
            for _ in 0..connections {
                let stream = Stream::from(dial::tcp(&address).await?);
                let mut stream = tls.connect(stream, &name).await?;
                match alpn {
                    Alpn::Http1 => {
                        stream.write_all(GET.as_bytes()).await?;
                        stream.flush().await?;
                        let mut bytes = vec![0; ANSWER.len()];
                        stream.read_exact(&mut bytes).await?;
                        assert_eq!(bytes, ANSWER.as_bytes());
                    }
                    Alpn::Http2 => get_http2(&mut stream).await?,
                    Alpn::Http3 => return Err("that goes over no stream".into()),
                }
                sender.send(stream.handshake())?;
            }
            Ok(())
        })
        .unwrap();
    for end in scope.close(Nanos::from_secs(20)) {
        end.result.unwrap();
    }
    handshakes.iter().collect()
}

async fn get_http2(
    stream: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin),
) -> Result<(), stillwell_scope::PartError> {
    let mut client = Client::new(Limits::default());
    let block = H2RequestBlock::new("GET", Scheme::Https, "a", "/", &[])?;
    client.request(&block, BodyLength::None)?;
    let mut buffer = vec![0; 4096];
    loop {
        stream.write_all(client.output()).await?;
        stream.flush().await?;
        client.sent(client.output().len());
        let length = stream.read(&mut buffer).await?;
        let mut read = 0;
        while let (taken, Some(event)) = client.advance(&buffer[read..length])? {
            read += taken;
            if let ClientEvent::End { .. } = event {
                return Ok(());
            }
        }
    }
}

#[test]
fn both_versions_are_used_over_tls_and_sessions_are_resumed() {
    for alpn in [Alpn::Http1, Alpn::Http2] {
        let server = server();
        let handshakes = exchange(&server, alpn, 3);
        assert!(
            handshakes
                .iter()
                .all(|handshake| handshake.alpn == Some(alpn))
        );
        let resumed: Vec<_> = handshakes
            .iter()
            .map(|handshake| handshake.resumed)
            .collect();
        assert_eq!(resumed, [false, true, true]);
        let counts = server.end();
        assert_eq!((counts.requests, counts.connections), (3, 3));
        assert_eq!(
            (counts.handshakes, counts.resumed, counts.handshakes_failed),
            (3, 2, 0)
        );
    }
}

/// A read without the close of TLS fails.
#[test]
fn the_close_of_tls_follows_the_last_response() {
    let server = server();
    let tls = client_tls(&server, Alpn::Http1);
    let address = server.addresses[0].to_string();
    let mut scope = Scope::new(&Token::new());
    scope
        .worker(Place::default(), "client", move |_| async move {
            let name = tls.server_name("127.0.0.1")?;
            let stream = Stream::from(dial::tcp(&address).await?);
            let mut stream = tls.connect(stream, &name).await?;
            let request = GET.replace("host", "connection: close\r\nhost");
            stream.write_all(request.as_bytes()).await?;
            stream.flush().await?;
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).await?;
            assert!(bytes.ends_with(b"\r\n\r\naaa"), "{bytes:?}");
            Ok(())
        })
        .unwrap();
    for end in scope.close(Nanos::from_secs(20)) {
        end.result.unwrap();
    }
    assert_eq!(server.end().requests, 1);
}

#[test]
fn a_peer_without_tls_is_counted() {
    let server = server();
    server.exchange_all(GET);
    let counts = server.end();
    assert_eq!(
        (counts.handshakes, counts.handshakes_failed, counts.requests),
        (0, 1, 0)
    );
}
