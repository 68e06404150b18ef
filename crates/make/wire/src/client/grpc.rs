//! One call of gRPC on a connection of its own.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;

use stillwell_http::grpc::{GrpcMessageError, GrpcMessageReader, status, write_message};
use stillwell_http::h2::{
    BodyLength, Client, ClientEvent, Fields, H2ConnectionError, H2RequestBlock, H2StreamFailure,
    Limits, RequestRefused, Stream,
};
use stillwell_http::{HeadError, Scheme};
use tokio::io::{AsyncReadExt as _, AsyncWrite as _, AsyncWriteExt as _};

use super::{ConnectError, Endpoint};
use crate::Connection;

/// One read.
const BUFFER_BYTES: usize = 64 << 10;

/// The head of a call.
#[derive(Clone, Copy, Debug)]
pub struct GrpcRequest<'r> {
    /// The value of `:authority`.
    pub authority: &'r str,
    /// Such as `/package.Service/Method`.
    pub path: &'r str,
    /// Further headers, whose names are in lower case.
    pub headers: &'r [(&'r str, &'r str)],
    /// The longest message that is read, in bytes.
    pub message_bytes_max: u32,
}

/// A received message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GrpcMessage {
    /// The bytes as they were sent.
    pub bytes: Vec<u8>,
    /// True if they are compressed, by [`GrpcCall::coding`].
    pub is_compressed: bool,
}

/// The end of a call, as the server reports it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum GrpcEnd {
    /// A status, 0 being success, and its message as it was sent: percent-encoded.
    Status {
        /// The number of the status.
        status: u32,
        /// The value of `grpc-message`.
        message: Vec<u8>,
    },
    /// The response ended without a status.
    NoStatus,
    /// The stream failed.
    Failed(H2StreamFailure),
}

/// A call that could not be made, or broke off. Displays the cause alone.
#[derive(Debug, thiserror::Error)]
pub enum GrpcError {
    /// No connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The head cannot be written.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// The connection takes no request.
    #[error(transparent)]
    Refused(#[from] RequestRefused),
    /// The connection broke.
    #[error(transparent)]
    Exchange(io::Error),
    /// The server closed the connection before the call had ended.
    #[error("it closes the connection without a response")]
    Closed,
    /// The server does not speak HTTP/2.
    #[error(transparent)]
    Connection(#[from] H2ConnectionError),
    /// The response is not one of gRPC.
    #[error("it answers {status}")]
    HttpStatus {
        /// The status of HTTP.
        status: u16,
    },
    /// A message is too long, or not framed as one.
    #[error(transparent)]
    Message(#[from] GrpcMessageError),
}

/// A call in progress: messages out, messages in, one end.
#[derive(Debug)]
pub struct GrpcCall {
    connection: Connection,
    client: Client,
    stream: Stream,
    reader: GrpcMessageReader,
    inbox: VecDeque<GrpcMessage>,
    coding: Vec<u8>,
    /// The rest of the messages that are sent.
    unsent: Vec<u8>,
    is_end_pending: bool,
    /// True if encrypted bytes may have stayed behind.
    needs_flush: bool,
    is_answered: bool,
    /// A status of success in the head of the response.
    head_end: Option<GrpcEnd>,
    end: Option<GrpcEnd>,
    buffer: Vec<u8>,
}

impl GrpcCall {
    /// Connects to `endpoint` and lays out the head of a call. A call may wait for hours, so the
    /// connection has [keepalive](Connection::set_keepalive).
    ///
    /// # Errors
    /// [`GrpcError`] without a connection, or where the head cannot be written.
    pub async fn open(endpoint: &Endpoint, request: &GrpcRequest<'_>) -> Result<Self, GrpcError> {
        let mut headers = vec![("content-type", "application/grpc"), ("te", "trailers")];
        headers.extend(request.headers);
        let scheme = if endpoint.is_tls() {
            Scheme::Https
        } else {
            Scheme::Http
        };
        let (authority, path) = (request.authority, request.path);
        let block = H2RequestBlock::new("POST", scheme, authority, path, &headers)?;
        let connection = endpoint.connect().await?;
        connection.set_keepalive();
        let mut client = Client::new(Limits::default());
        let stream = client.request(&block, BodyLength::Unknown)?;
        Ok(Self {
            connection,
            client,
            stream,
            reader: GrpcMessageReader::new(request.message_bytes_max),
            inbox: VecDeque::new(),
            coding: Vec::new(),
            unsent: Vec::new(),
            is_end_pending: false,
            needs_flush: false,
            is_answered: false,
            head_end: None,
            end: None,
            buffer: vec![0; BUFFER_BYTES],
        })
    }

    /// Lays out a message; it goes out during [`Self::next`] and [`Self::flush`].
    ///
    /// # Errors
    /// [`GrpcError::Message`] for 2³² bytes and more.
    pub fn send(&mut self, message: &[u8]) -> Result<(), GrpcError> {
        write_message(message, false, &mut self.unsent)?;
        Ok(())
    }

    /// Ends the request: no more messages follow.
    pub const fn finish(&mut self) {
        self.is_end_pending = true;
    }

    /// Returns true once the head of a gRPC response has arrived.
    #[must_use]
    pub const fn is_answered(&self) -> bool {
        self.is_answered
    }

    /// The name of the coding of compressed messages.
    #[must_use]
    pub fn coding(&self) -> &[u8] {
        &self.coding
    }

    /// The end of the call, once [`Self::next`] has returned `None`.
    #[must_use]
    pub const fn end(&self) -> Option<&GrpcEnd> {
        self.end.as_ref()
    }

    /// Sends everything that is laid out and that the server has room for. Cancel-safe.
    ///
    /// # Errors
    /// [`GrpcError::Exchange`] where the connection broke.
    pub async fn flush(&mut self) -> Result<(), GrpcError> {
        loop {
            // Once all was written, the output has room for more of a large message.
            self.pump();
            if self.client.output().is_empty() {
                break;
            }
            while !self.client.output().is_empty() {
                let (connection, client) = (&mut self.connection, &self.client);
                let write = |context: &mut std::task::Context<'_>| {
                    Pin::new(&mut *connection).poll_write(context, client.output())
                };
                let length = poll_fn(write).await.map_err(GrpcError::Exchange)?;
                if length == 0 {
                    return Err(GrpcError::Exchange(io::ErrorKind::WriteZero.into()));
                }
                self.client.sent(length);
                self.needs_flush = true;
            }
        }
        if self.needs_flush {
            self.connection.flush().await.map_err(GrpcError::Exchange)?;
            self.needs_flush = false;
        }
        Ok(())
    }

    /// The next message; `None` once the call has ended. Cancel-safe.
    ///
    /// # Errors
    /// [`GrpcError`] where the connection broke or the server does not speak gRPC.
    pub async fn next(&mut self) -> Result<Option<GrpcMessage>, GrpcError> {
        loop {
            if let Some(message) = self.inbox.pop_front() {
                return Ok(Some(message));
            }
            if self.end.is_some() {
                return Ok(None);
            }
            self.exchange_once().await?;
        }
    }

    /// Waits for the settings of the server, which is the first that a server of HTTP/2 sends. Cancel-safe.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub async fn await_settings(&mut self) -> Result<(), GrpcError> {
        while !self.client.is_ready() {
            self.exchange_once().await?;
        }
        Ok(())
    }

    /// Sends what there is room for, and takes in what one read returns. Cancel-safe.
    async fn exchange_once(&mut self) -> Result<(), GrpcError> {
        self.flush().await?;
        let read = self.connection.read(&mut self.buffer).await;
        match read.map_err(GrpcError::Exchange)? {
            0 => Err(GrpcError::Closed),
            length => self.take(length),
        }
    }

    /// Hands over as much of the messages as there is room for.
    fn pump(&mut self) {
        if self.unsent.is_empty() && !self.is_end_pending {
            return;
        }
        let sent = self
            .client
            .send_body(self.stream, &self.unsent, self.is_end_pending);
        // Where the call is over nothing more goes out.
        let taken = sent.unwrap_or(self.unsent.len());
        if taken == self.unsent.len() {
            self.is_end_pending = false;
        }
        self.unsent.drain(..taken);
    }

    /// Takes in the first `length` bytes of the buffer.
    fn take(&mut self, length: usize) -> Result<(), GrpcError> {
        let mut read = 0;
        loop {
            let (taken, event) = self.client.advance(&self.buffer[read..length])?;
            read += taken;
            match event {
                None => return Ok(()),
                Some(ClientEvent::Head { head, .. }) => {
                    if head.status != 200 {
                        let status = head.status;
                        return Err(GrpcError::HttpStatus { status });
                    }
                    self.is_answered = true;
                    let coding = head.fields.value("grpc-encoding");
                    self.coding = coding.unwrap_or_default().to_vec();
                    match end_of(head.fields) {
                        // A refused call may end in its head.
                        Some(end @ GrpcEnd::Status { status: 1.., .. }) => self.end = Some(end),
                        end => self.head_end = end,
                    }
                }
                Some(ClientEvent::Body { bytes, .. }) => {
                    let mut at = 0;
                    while let (taken, Some(message)) = self.reader.advance(&bytes[at..])? {
                        self.inbox.push_back(GrpcMessage {
                            bytes: message.bytes.to_vec(),
                            is_compressed: message.is_compressed,
                        });
                        at += taken;
                    }
                }
                Some(ClientEvent::End { trailers, .. }) => {
                    let end = trailers.and_then(end_of).or_else(|| self.head_end.take());
                    self.end
                        .get_or_insert_with(|| end.unwrap_or(GrpcEnd::NoStatus));
                }
                Some(ClientEvent::Failed { cause, .. }) => {
                    self.end.get_or_insert(GrpcEnd::Failed(cause));
                }
                Some(ClientEvent::Room { .. }) => {}
            }
        }
    }
}

/// Makes a call with one message each way, and returns the last message that the server
/// sent and the end of the call.
///
/// # Errors
/// [`GrpcError`].
pub async fn unary(
    endpoint: &Endpoint,
    request: &GrpcRequest<'_>,
    message: &[u8],
) -> Result<(Option<GrpcMessage>, GrpcEnd), GrpcError> {
    let mut call = GrpcCall::open(endpoint, request).await?;
    call.send(message)?;
    call.finish();
    let mut last = None;
    while let Some(message) = call.next().await? {
        last = Some(message);
    }
    Ok((last, call.end.unwrap_or(GrpcEnd::NoStatus)))
}

fn end_of(fields: Fields<'_>) -> Option<GrpcEnd> {
    let message = fields.value("grpc-message").unwrap_or_default();
    Some(GrpcEnd::Status {
        status: status(fields)?,
        message: message.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use socket2::SockRef;
    use tokio::net::TcpListener;

    use super::*;
    use crate::Stream as ByteStream;

    #[tokio::test]
    async fn the_connection_of_a_call_has_keepalive() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = Endpoint::tcp(listener.local_addr().unwrap().to_string());
        let request = GrpcRequest {
            authority: "a",
            path: "/a/b",
            headers: &[],
            message_bytes_max: 0,
        };
        let call = GrpcCall::open(&endpoint, &request).await.unwrap();
        let Connection::Plain(ByteStream::Tcp(stream)) = &call.connection else {
            unreachable!("the endpoint is TCP without TLS")
        };
        assert!(SockRef::from(stream).keepalive().unwrap());
    }
}
