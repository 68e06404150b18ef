//! A CONNECT proxy over any version of HTTP, correct or with a fault.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use stillwell_http::capsule::{CapsuleReader, write_datagram};
use stillwell_http::h2::{
    BodyLength, H2ResponseBlock, Limits, RequestHead, Server as Frames, ServerEvent, Stream,
};
use stillwell_plan::load::TunnelProtocol;
use stillwell_scope::{Place, Scope, Token};
use stillwell_units::Nanos;
use stillwell_wire::quic::bind_quic;
use stillwell_wire::tls::ServerTls;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpStream, UdpSocket};

use super::streamed;
use crate::faulty_peer::server::{PeerSession, Server};

/// The behaviour after a CONNECT request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Manner {
    /// It connects.
    Well,
    /// It answers with this status.
    Status(u16),
    CloseAtAccept,
    ResetAtAccept,
    CloseUnanswered,
    ResetUnanswered,
    /// It ends within its answer.
    HalfAnswer,
    Garbage,
    /// It never answers.
    Silent,
    /// It connects, and closes when something is sent.
    CloseOpened,
    /// Connects, and discards all bytes.
    SwallowOpened,
    /// It connects, and ends its side before it makes room for anything.
    EndOpened,
    /// Over HTTP/2: it connects to no port of UDP, and says so.
    NoDatagrams,
}

/// A proxy that keeps its requests.
pub(crate) struct Proxy {
    serving: Serving,
    requests: Arc<Mutex<Vec<String>>>,
}

enum Serving {
    Tcp(Server),
    Quic(Scope, SocketAddr),
}

impl Proxy {
    /// Over HTTP/3 there is `tls`.
    pub(crate) fn start(manner: Manner, protocol: TunnelProtocol, tls: Option<ServerTls>) -> Self {
        let requested = Arc::default();
        let serving = match protocol {
            TunnelProtocol::Http1 | TunnelProtocol::Http2 => {
                let is_http2 = protocol == TunnelProtocol::Http2;
                Serving::Tcp(over_tcp(manner, is_http2, tls, &requested))
            }
            TunnelProtocol::Http3 => over_quic(manner, &tls.unwrap(), &requested),
        };
        Self {
            serving,
            requests: requested,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        match &self.serving {
            Serving::Tcp(server) => server.address,
            Serving::Quic(_, address) => *address,
        }
    }

    /// Ends it and returns the heads of its requests.
    pub(crate) fn stop(self) -> Vec<String> {
        match self.serving {
            Serving::Tcp(server) => drop(server.stop()),
            Serving::Quic(scope, _) => {
                let ends = scope.close(Nanos::from_secs(20));
                assert!(ends.iter().all(|end| end.result.is_ok()), "{ends:?}");
            }
        }
        let mut requested = self.requests.lock().unwrap();
        std::mem::take(&mut *requested)
    }
}

fn over_tcp(
    manner: Manner,
    is_http2: bool,
    tls: Option<ServerTls>,
    requested: &Arc<Mutex<Vec<String>>>,
) -> Server {
    let keeper = Arc::clone(requested);
    Server::start_over(tls, move |session| {
        let requested = Arc::clone(&keeper);
        async move {
            match manner {
                Manner::CloseAtAccept => Ok(()),
                Manner::ResetAtAccept => session.reset(),
                _ if is_http2 => http2(manner, session, &requested).await,
                _ => http1(manner, session, &requested).await,
            }
        }
    })
}

fn over_quic(manner: Manner, tls: &ServerTls, requested: &Arc<Mutex<Vec<String>>>) -> Serving {
    let bound = bind_quic("127.0.0.1:0".parse().unwrap(), 1, tls, 1);
    let bound = bound.unwrap().remove(0);
    let address = bound.address().unwrap();
    let mut scope = Scope::new(&Token::new());
    let requested = Arc::clone(requested);
    let serve = move |token: Token| streamed::serve(manner, bound, requested, token);
    scope.worker(Place::default(), "proxy", serve).unwrap();
    Serving::Quic(scope, address)
}

/// The text of a request head, with the headers.
pub(super) fn text_of(head: &RequestHead<'_>) -> String {
    let fields = head.fields.iter();
    let fields: Vec<String> = fields
        .map(|(name, value)| {
            let text = String::from_utf8_lossy;
            format!("{}: {}", text(name), text(value))
        })
        .collect();
    let to = match head.protocol {
        None => head.authority.to_owned(),
        Some(protocol) => format!("{protocol} {}", head.path),
    };
    format!("CONNECT {to} {}", fields.join("\n"))
}

async fn http1(
    manner: Manner,
    mut session: PeerSession,
    requested: &Mutex<Vec<String>>,
) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(session.stream.read_u8().await?);
    }
    let head = String::from_utf8(head).unwrap();
    let to = head.split(' ').nth(1).unwrap().to_owned();
    assert!(head.starts_with("CONNECT "), "{head}");
    requested.lock().unwrap().push(head);
    let response: &[u8] = match manner {
        Manner::CloseUnanswered => return Ok(()),
        Manner::ResetUnanswered => return session.reset(),
        Manner::Silent => return session.fall_silent().await,
        Manner::Garbage => b"220 smtp.example ESMTP\r\n\r\n",
        Manner::HalfAnswer => b"HTTP/1.1 200 Conn",
        Manner::Status(status) => {
            let response = format!("HTTP/1.1 {status} No\r\ncontent-length: 2\r\n\r\nno");
            session.stream.write_all(response.as_bytes()).await?;
            return session.fall_silent().await;
        }
        // A length says nothing about what follows here.
        _ => b"HTTP/1.1 100 Wait\r\n\r\nHTTP/1.0 200 Connection established\r\ncontent-length: 7\r\n\r\n",
    };
    session.stream.write_all(response).await?;
    session.flush().await?;
    match manner {
        Manner::Well => {
            let mut peer = TcpStream::connect(to).await?;
            copy_bidirectional(&mut session.stream, &mut peer).await?;
        }
        Manner::CloseOpened => drop(session.stream.read_u8().await?),
        Manner::SwallowOpened => return session.fall_silent().await,
        _ => {}
    }
    Ok(())
}

/// The requested destination.
enum Peer {
    Tcp(TcpStream),
    Udp(UdpSocket, CapsuleReader),
}

impl Peer {
    /// `path` is empty, or names a port of UDP.
    async fn connect(authority: &str, path: &str) -> io::Result<Self> {
        if path.is_empty() {
            return Ok(Self::Tcp(TcpStream::connect(authority).await?));
        }
        let rest = path.strip_prefix("/.well-known/masque/udp/").unwrap();
        let (host, port) = rest.strip_suffix('/').unwrap().split_once('/').unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").await?;
        socket.connect(format!("{host}:{port}")).await?;
        Ok(Self::Udp(socket, CapsuleReader::new()))
    }

    async fn send(&mut self, sent: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(sent).await,
            Self::Udp(socket, reader) => {
                let mut read = 0;
                while let (taken, Some(datagram)) = reader.advance(&sent[read..]).unwrap() {
                    read += taken;
                    // Datagrams may get lost.
                    socket.send(datagram).await.unwrap_or_default();
                }
                Ok(())
            }
        }
    }

    /// Puts what comes behind `back`; 0 at the end. Cancel-safe.
    async fn receive(&mut self, room: &mut [u8], back: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => {
                let count = stream.read(room).await?;
                back.extend_from_slice(&room[..count]);
                Ok(count)
            }
            Self::Udp(socket, _) => {
                let count = socket.recv(room).await?;
                write_datagram(&room[..count], back);
                Ok(count)
            }
        }
    }
}

/// One stream on each connection.
struct Framed<'a> {
    manner: Manner,
    frames: Frames,
    peer: Option<(Stream, Peer)>,
    /// Bytes that wait for space on the way back.
    back: Vec<u8>,
    is_over: bool,
    requests: &'a Mutex<Vec<String>>,
}

async fn http2(
    manner: Manner,
    mut session: PeerSession,
    requested: &Mutex<Vec<String>>,
) -> io::Result<()> {
    let mut framed = Framed {
        manner,
        // Small windows, so both sides have to wait for room.
        frames: Frames::new(Limits {
            stream_window_bytes: 16 << 10,
            connect_protocol: manner != Manner::NoDatagrams,
            ..Limits::default()
        }),
        peer: None,
        back: Vec::new(),
        is_over: false,
        requests: requested,
    };
    let mut input = vec![0; 16 << 10];
    let mut room = vec![0; 64 << 10];
    loop {
        framed.send_back();
        session.stream.write_all(framed.frames.output()).await?;
        framed.frames.sent(framed.frames.output().len());
        session.flush().await?;
        match manner {
            Manner::EndOpened if framed.is_over => {
                session.stream.shutdown().await?;
                return session.fall_silent().await;
            }
            _ if framed.is_over => return Ok(()),
            _ => {}
        }
        let Framed { peer, back, .. } = &mut framed;
        let peer = peer.as_mut().filter(|_| back.is_empty());
        // All arms are cancel-safe.
        tokio::select! {
            read = session.stream.read(&mut input) => match read? {
                0 => return Ok(()),
                count => match framed.take(&input[..count]).await? {
                    true => {}
                    false => return leave(manner, session).await,
                }
            },
            read = async { match peer {
                Some((_, peer)) => peer.receive(&mut room, back).await,
                None => std::future::pending().await,
            }} => if read? == 0 {
                return Ok(());
            },
        }
    }
}

async fn leave(manner: Manner, mut session: PeerSession) -> io::Result<()> {
    let response: &[u8] = match manner {
        Manner::ResetUnanswered => return session.reset(),
        Manner::Silent => return session.fall_silent().await,
        Manner::Garbage => b"220 smtp.example ESMTP\r\n\r\n",
        // A head of 40 bytes of which 3 come.
        Manner::HalfAnswer => &[0, 0, 40, 1, 4, 0, 0, 0, 1, 0x88, 0, 0],
        _ => b"",
    };
    session.stream.write_all(response).await?;
    session.close().await
}

impl Framed<'_> {
    /// `false` where the manners end it.
    async fn take(&mut self, input: &[u8]) -> io::Result<bool> {
        let (mut read, mut sent, mut begun) = (0, Vec::new(), None);
        loop {
            let advanced = self.frames.advance(&input[read..]);
            let (taken, event) = advanced.map_err(io::Error::other)?;
            read += taken;
            match event {
                None => break,
                Some(ServerEvent::Head { stream, head, .. }) => {
                    assert_eq!(head.method, "CONNECT", "{head:?}");
                    assert_eq!(head.path.is_empty(), head.protocol.is_none(), "{head:?}");
                    self.requests.lock().unwrap().push(text_of(&head));
                    begun = Some((stream, head.authority.to_owned(), head.path.to_owned()));
                }
                Some(ServerEvent::Body { bytes, .. }) => sent.extend_from_slice(bytes),
                Some(_) => {}
            }
        }
        if let Some((stream, to, path)) = begun {
            let status = match self.manner {
                Manner::Well | Manner::CloseOpened | Manner::SwallowOpened | Manner::EndOpened => {
                    200
                }
                Manner::Status(status) => status,
                _ => return Ok(false),
            };
            let head = H2ResponseBlock::new(status, &[]).unwrap();
            // A length says nothing about what follows here, either.
            let (head, length) = match status {
                200 => (head.with_content_length(7), BodyLength::Unknown),
                _ => (head, BodyLength::None),
            };
            self.frames.respond(stream, &head, length).unwrap();
            if status == 200 {
                self.peer = Some((stream, Peer::connect(&to, &path).await?));
            }
        }
        match (&mut self.peer, self.manner) {
            (_, Manner::CloseOpened) => self.is_over = !sent.is_empty(),
            (peer, Manner::EndOpened) => self.is_over = peer.is_some(),
            (Some((_, peer)), Manner::Well) => peer.send(&sent).await?,
            _ => {}
        }
        Ok(true)
    }

    fn send_back(&mut self) {
        if let Some((stream, _)) = &self.peer {
            let sent = self
                .frames
                .send_body(*stream, &self.back, false)
                .unwrap_or(0);
            self.back.drain(..sent);
        }
    }
}
