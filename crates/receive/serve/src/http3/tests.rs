//! Sessions and their clients, on one thread.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use stillwell_http::h3::{H3RequestBlock, H3ResponseEvent};
use stillwell_plan::serve::FaultsPlan;
use stillwell_plan::tls::{
    Alpn, ClientTlsPlan, ServerIdentity, ServerTlsPlan, TlsSuites, Verification,
};
use stillwell_wire::quic::{Came, QuicClient, QuicConnection, QuicServer, bind_quic};
use stillwell_wire::tls::{ClientTls, ServerTls};
use tokio::time::timeout;

use super::*;

/// Longest exchange, on a busy machine.
const EXCHANGE_MAX: Duration = Duration::from_secs(60);

/// Code with which the client cancels a request.
const CANCELLED: u64 = H3ErrorCode::REQUEST_CANCELLED.0;

/// Both ends of a connection.
struct Ends {
    server: QuicServer,
    session: Http3,
    client: QuicConnection,
}

impl Ends {
    /// Both ends before their handshake.
    async fn new(faults: FaultsPlan) -> Self {
        let tls = ServerTls::new(&ServerTlsPlan {
            identity: ServerIdentity::SelfSigned {
                names: vec!["a".to_owned()],
            },
            alpn: vec![Alpn::Http3],
            client_roots: Vec::new(),
            resumption: true,
            suites: TlsSuites::default(),
        });
        let address = "127.0.0.1:0".parse().unwrap();
        let mut bound = bind_quic(address, 1, &tls.unwrap(), STREAMS_MAX).unwrap();
        let bound = bound.pop().unwrap();
        let address = bound.address().unwrap().to_string();
        let tls = ClientTls::new(&ClientTlsPlan {
            verification: Verification::None,
            alpn: vec![Alpn::Http3],
            ..ClientTlsPlan::default()
        });
        let tls = tls.unwrap();
        let name = tls.server_name("a").unwrap();
        let client = QuicClient::new(&tls).unwrap();
        let client = client.open(None, &address, &name).await.unwrap();
        Self {
            server: QuicServer::new(bound, 1).unwrap(),
            session: Http3::new(&Rc::new(Service::with_faults(faults))),
            client,
        }
    }

    /// Handles everything that has come to the server.
    fn serve(&mut self, context: &mut Context<'_>) {
        while let Poll::Ready(came) = self.server.poll(context) {
            let Came::Line(key) = came.unwrap() else {
                continue;
            };
            while let Some(event) = self.server.line(key).and_then(Line::next_event) {
                let line = self.server.line(key).unwrap();
                let goes_on = self.session.handle_event(line, &event, clock::now());
                assert!(goes_on, "{event:?}");
            }
            self.server.flush(context, key);
        }
    }

    /// Exchanges datagrams until `is_done`.
    async fn run_until(&mut self, mut is_done: impl FnMut(&mut Self) -> bool) {
        let exchange = poll_fn(|context| {
            loop {
                self.serve(context);
                if is_done(self) {
                    return Poll::Ready(());
                }
                if self.client.poll_event(context).is_pending() {
                    return Poll::Pending;
                }
            }
        });
        timeout(EXCHANGE_MAX, exchange).await.unwrap();
    }

    /// Sends a request once the server allows a stream; without its end unless `is_whole`.
    async fn send(&mut self, is_whole: bool) -> QuicStream {
        let mut opened = None;
        self.run_until(|ends| {
            opened = ends.client.line().open_bidi();
            opened.is_some()
        })
        .await;
        let stream = opened.unwrap();
        let mut bytes = Vec::new();
        let block = H3RequestBlock::new("POST", "a", "/", &[]).unwrap();
        block.write(&[], BodyLength::Unknown, &mut bytes);
        let line = self.client.line();
        assert!(line.write(stream, &mut bytes.into()));
        if is_whole {
            line.finish(stream);
        }
        stream
    }

    /// Reads a response to the end of its stream. Returns the status, the length of the
    /// body, and the verdict about its end.
    async fn response(&mut self, stream: QuicStream) -> (u16, usize, Result<(), H3MessageError>) {
        let (mut bytes, mut end) = (Vec::new(), StreamRead::Open);
        self.run_until(|ends| {
            end = ends.client.line().read(stream, |part| {
                bytes.extend_from_slice(part);
                true
            });
            end != StreamRead::Open
        })
        .await;
        assert_eq!(end, StreamRead::Finished);
        let mut http = H3Connection::client(SECTION_BYTES_MAX);
        let mut reader = H3MessageReader::response(false);
        let (mut read, mut status, mut body_bytes) = (0, 0, 0);
        while let (taken, Some(event)) = http.read_response(&mut reader, &bytes[read..]).unwrap() {
            read += taken;
            match event {
                H3ResponseEvent::Head(head) => status = head.status,
                H3ResponseEvent::Body(part) => body_bytes += part.len(),
                H3ResponseEvent::Trailers(_) => {}
            }
        }
        (status, body_bytes, reader.finish())
    }
}

#[tokio::test]
async fn cancelled_uploads_leave_their_streams_to_later_requests() {
    let mut ends = Ends::new(FaultsPlan::default()).await;
    for _ in 0..=STREAMS_MAX {
        let stream = ends.send(false).await;
        ends.run_until(|ends| ends.session.requests.contains_key(&stream))
            .await;
        // The server handles the end of the response before that of the request.
        ends.client.line().stop(stream, CANCELLED);
        ends.run_until(|ends| ends.session.requests.is_empty())
            .await;
        ends.client.line().reset(stream, CANCELLED);
    }
    let stream = ends.send(true).await;
    let (status, _, end) = ends.response(stream).await;
    assert_eq!((status, end), (200, Ok(())));
}

#[tokio::test]
async fn a_request_that_its_client_cancels_is_not_due() {
    let faults = FaultsPlan {
        delay: Some("600s".parse().unwrap()),
        ..FaultsPlan::default()
    };
    let mut ends = Ends::new(faults).await;
    let streams = [ends.send(true).await, ends.send(true).await];
    ends.run_until(|ends| ends.session.waiting.len() == streams.len())
        .await;
    for (stream, is_due) in streams.into_iter().zip([true, false]) {
        ends.client.line().stop(stream, CANCELLED);
        ends.run_until(|ends| !ends.session.requests.contains_key(&stream))
            .await;
        assert_eq!(ends.session.due().is_some(), is_due);
    }
}

#[tokio::test]
async fn a_truncated_response_has_its_head_and_half_of_its_body() {
    let faults = FaultsPlan {
        error: Some("'truncate'".parse().unwrap()),
        ..FaultsPlan::default()
    };
    let mut ends = Ends::new(faults).await;
    let stream = ends.send(true).await;
    let (status, body_bytes, end) = ends.response(stream).await;
    assert_eq!((status, body_bytes), (200, 50));
    assert!(matches!(end, Err(H3MessageError::Stream(_))), "{end:?}");
}
