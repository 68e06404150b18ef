//! The proxy over HTTP/3: one stream on each connection.

use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use stillwell_http::h3::{
    BodyLength, H3Connection, H3ErrorCode, H3MessageReader, H3RequestEvent, H3ResponseBlock,
    UniStream, write_data_head,
};
use stillwell_scope::{PartError, Token};
use stillwell_wire::quic::{BoundQuic, Came, Line, QuicEvent, QuicServer, QuicStream};
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::net::TcpStream;

use super::proxy::{Manner, text_of};

/// More connections than any load here opens at once.
const CONNECTIONS_MAX: usize = 1000;

/// The longest head that is taken.
const SECTION_BYTES_MAX: usize = 64 << 10;

/// One connection.
struct Session {
    manner: Manner,
    http: H3Connection,
    reader: H3MessageReader,
    stream: Option<QuicStream>,
    unis: Vec<(QuicStream, UniStream)>,
    control: Option<(QuicStream, Bytes)>,
    peer: Option<TcpStream>,
    /// Bytes that wait for space, in each direction.
    there: Vec<u8>,
    back: Bytes,
    requests: Arc<Mutex<Vec<String>>>,
}

/// Serves until `token` is cancelled.
pub(super) async fn serve(
    manner: Manner,
    bound: BoundQuic,
    requested: Arc<Mutex<Vec<String>>>,
    token: Token,
) -> Result<(), PartError> {
    let mut server = QuicServer::new(bound, CONNECTIONS_MAX)?;
    let mut sessions: HashMap<usize, Session> = HashMap::new();
    loop {
        let came = poll_fn(|context| {
            // A later connection may get the number of a closed one.
            sessions.retain(|key, session| {
                if let Some(line) = server.line(*key) {
                    session.carry(line, context);
                }
                server.flush(context, *key)
            });
            server.poll(context)
        });
        // All arms are cancel-safe.
        let came = tokio::select! {
            biased;
            () = token.cancelled() => None,
            came = came => Some(came?),
        };
        let Some(came) = came else {
            poll_fn(|context| {
                server.close(context, H3ErrorCode::NO_ERROR.0);
                Poll::Ready(())
            })
            .await;
            return Ok(());
        };
        let Came::Line(key) = came else {
            continue;
        };
        let session = sessions
            .entry(key)
            .or_insert_with(|| Session::new(manner, &requested));
        if let Some(line) = server.line(key) {
            session.handle_events(line).await?;
        }
        if !poll_fn(|context| Poll::Ready(server.flush(context, key))).await {
            sessions.remove(&key);
        }
    }
}

impl Session {
    fn new(manner: Manner, requested: &Arc<Mutex<Vec<String>>>) -> Self {
        Self {
            manner,
            http: H3Connection::server(SECTION_BYTES_MAX),
            reader: H3MessageReader::request(),
            stream: None,
            unis: Vec::new(),
            control: None,
            peer: None,
            there: Vec::new(),
            back: Bytes::new(),
            requests: Arc::clone(requested),
        }
    }

    async fn handle_events(&mut self, line: &mut Line) -> io::Result<()> {
        while let Some(event) = line.next_event() {
            match event {
                QuicEvent::Connected => {
                    let opening = Bytes::from(self.http.opening());
                    self.control = line.open_uni().map(|stream| (stream, opening));
                    if let Manner::CloseAtAccept | Manner::ResetAtAccept = self.manner {
                        line.close(H3ErrorCode::INTERNAL_ERROR.0);
                    }
                }
                QuicEvent::Opened => {
                    while let Some(stream) = line.accept_uni() {
                        self.unis.push((stream, UniStream::default()));
                        self.read_uni(line, stream);
                    }
                    while let Some(stream) = line.accept_bidi() {
                        assert_eq!(self.stream, None, "one stream a connection");
                        self.stream = Some(stream);
                        self.read(line, stream).await?;
                    }
                }
                // Once its side has ended it makes no room any more.
                QuicEvent::Readable(stream) if self.stream == Some(stream) => {
                    if self.manner != Manner::EndOpened {
                        self.read(line, stream).await?;
                    }
                }
                QuicEvent::Readable(stream) => self.read_uni(line, stream),
                QuicEvent::Lost(_) => self.peer = None,
                QuicEvent::Writable(_) | QuicEvent::Stopped(..) | QuicEvent::Available => {}
            }
        }
        Ok(())
    }

    fn read_uni(&mut self, line: &mut Line, stream: QuicStream) {
        let place = self.unis.iter().position(|(second, _)| *second == stream);
        let uni = &mut self.unis[place.unwrap()].1;
        line.read(stream, |input| self.http.read_uni(uni, input).unwrap());
    }

    async fn read(&mut self, line: &mut Line, stream: QuicStream) -> io::Result<()> {
        let mut begun = None;
        line.read(stream, |input| {
            let mut read = 0;
            loop {
                let advanced = self.http.read_request(&mut self.reader, &input[read..]);
                let (taken, event) = advanced.unwrap();
                read += taken;
                match event {
                    None => return true,
                    Some(H3RequestEvent::Head(head)) => {
                        assert_eq!((head.method, head.path), ("CONNECT", ""), "{head:?}");
                        self.requests.lock().unwrap().push(text_of(&head));
                        begun = Some(head.authority.to_owned());
                    }
                    Some(H3RequestEvent::Body(bytes)) => self.there.extend_from_slice(bytes),
                    Some(H3RequestEvent::Trailers(_)) => {}
                }
            }
        });
        if let Some(to) = begun {
            self.answer(line, stream, to).await?;
        }
        match self.manner {
            Manner::CloseOpened if !self.there.is_empty() => line.close(H3ErrorCode::NO_ERROR.0),
            Manner::CloseOpened | Manner::SwallowOpened => self.there.clear(),
            _ => {}
        }
        Ok(())
    }

    async fn answer(&mut self, line: &mut Line, stream: QuicStream, to: String) -> io::Result<()> {
        let mut response = Vec::new();
        let status = match self.manner {
            Manner::Status(status) => status,
            _ => 200,
        };
        let head = H3ResponseBlock::new(status, &[]).unwrap();
        // A length says nothing about what follows here.
        let length: &[(&str, &[u8])] = match status {
            200 => &[("content-length", b"7")],
            _ => &[],
        };
        head.write(length, BodyLength::None, &mut response);
        match self.manner {
            Manner::Silent => return Ok(()),
            Manner::ResetUnanswered => {
                line.reset(stream, H3ErrorCode::INTERNAL_ERROR.0);
                return Ok(());
            }
            Manner::CloseUnanswered => response.clear(),
            Manner::HalfAnswer => response.truncate(response.len() - 1),
            Manner::Garbage => {
                // A body before its head.
                response.clear();
                write_data_head(1, &mut response);
                response.push(b'?');
            }
            Manner::Well => self.peer = Some(TcpStream::connect(to).await?),
            _ => {}
        }
        line.write(stream, &mut response.into());
        match self.manner {
            Manner::CloseUnanswered | Manner::HalfAnswer => line.close(H3ErrorCode::NO_ERROR.0),
            Manner::Status(_) | Manner::EndOpened => line.finish(stream),
            _ => {}
        }
        Ok(())
    }

    /// Carries what can be carried, there and back, until the peer is gone.
    fn carry(&mut self, line: &mut Line, context: &mut Context<'_>) {
        if let Some((control, rest)) = &mut self.control {
            line.write(*control, rest);
        }
        let (Some(peer), Some(stream)) = (&mut self.peer, self.stream) else {
            return;
        };
        let mut is_over = false;
        while !is_over
            && !self.there.is_empty()
            && let Poll::Ready(sent) = Pin::new(&mut *peer).poll_write(context, &self.there)
        {
            match sent {
                Ok(count) => drop(self.there.drain(..count)),
                Err(_) => is_over = true,
            }
        }
        let mut room = vec![0; 16 << 10];
        while !is_over {
            line.write(stream, &mut self.back);
            let mut buffer = ReadBuf::new(&mut room);
            if !self.back.is_empty()
                || Pin::new(&mut *peer)
                    .poll_read(context, &mut buffer)
                    .is_pending()
            {
                return;
            }
            // An error is an end, too.
            is_over = buffer.filled().is_empty();
            if is_over {
                break;
            }
            let mut frame = Vec::new();
            write_data_head(buffer.filled().len(), &mut frame);
            frame.extend_from_slice(buffer.filled());
            self.back = frame.into();
        }
        line.finish(stream);
        self.peer = None;
    }
}
