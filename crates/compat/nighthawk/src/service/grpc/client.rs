//! Calls that are made, one on each connection.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, Read as _};
use std::pin::Pin;

use flate2::read::GzDecoder;
use stillwell_http::Scheme;
use stillwell_http::grpc::{MessageReader, status, write_message};
use stillwell_http::h2::{BodyLength, Client, ClientEvent, Limits, RequestBlock, Stream};
use stillwell_plan::{Alpn, ClientTlsPlan};
use stillwell_wire::tls::{ClientTls, HandshakeError, TlsError};
use stillwell_wire::{Connection, DialError, dial};
use tokio::io::{AsyncReadExt as _, AsyncWrite as _, AsyncWriteExt as _};

use super::status::{Code, Ended, unescaped_message};

/// The longest message that is taken, in bytes.
const MESSAGE_BYTES_MAX: u32 = 64 << 20;

/// Where a service is.
#[derive(Clone, Debug)]
pub struct Channel {
    address: String,
    tls: Option<ClientTls>,
}

/// Why a call could not be made, or broke off.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// Nobody is there.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// TLS cannot be spoken as it should be.
    #[error("configure TLS")]
    Tls(#[from] TlsError),
    /// TLS could not be agreed on.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// The connection broke.
    #[error("the connection to {address} broke")]
    Broken {
        /// Whose.
        address: String,
        /// How.
        source: io::Error,
    },
    /// Who is there does not speak gRPC.
    #[error("{address} does not speak gRPC: {problem}")]
    Foreign {
        /// Who.
        address: String,
        /// What it says instead.
        problem: String,
    },
    /// The call ended other than well.
    #[error(transparent)]
    Ended(#[from] Ended),
}

/// A call under way on a connection of its own.
#[derive(Debug)]
pub struct ClientCall {
    address: String,
    connection: Connection,
    client: Client,
    stream: Stream,
    reader: MessageReader,
    inbox: VecDeque<Vec<u8>>,
    /// How messages are packed that say that they are.
    coding: Vec<u8>,
    /// What is left of messages that are sent.
    out: Vec<u8>,
    wants_end: bool,
    is_answered: bool,
    end: Option<Result<(), Ended>>,
    buffer: Vec<u8>,
}

impl Channel {
    /// To `address`, HOST:PORT, over TLS where there is a plan of it.
    ///
    /// # Errors
    /// [`ChannelError::Tls`] where TLS cannot be spoken so.
    pub fn new(address: &str, tls: Option<&ClientTlsPlan>) -> Result<Self, ChannelError> {
        let tls = tls.map(ClientTls::new).transpose()?;
        Ok(Self {
            address: address.to_owned(),
            tls: tls.map(|tls| tls.offering(&[Alpn::Http2])),
        })
    }

    /// Begins a call of the method at `path`, with further headers, whose names
    /// are in lower case.
    ///
    /// # Errors
    /// [`ChannelError`] where nobody is there.
    pub async fn call(
        &self,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Result<ClientCall, ChannelError> {
        let stream = dial::tcp(&self.address).await?;
        // A peer that has gone already is noticed when it is read from.
        stream.set_nodelay(true).unwrap_or_default();
        let stream = stillwell_wire::Stream::from(stream);
        let connection = match &self.tls {
            None => Connection::from(stream),
            Some(tls) => {
                let host = self.address.rsplit_once(':').map_or("", |(host, _)| host);
                let name = tls.server_name(host)?;
                tls.connect(stream, &name).await?.into()
            }
        };
        self.begin(connection, path, headers)
    }

    fn foreign(&self, problem: impl ToString) -> ChannelError {
        ChannelError::Foreign {
            address: self.address.clone(),
            problem: problem.to_string(),
        }
    }

    fn begin(
        &self,
        connection: Connection,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Result<ClientCall, ChannelError> {
        let mut all = vec![("content-type", "application/grpc"), ("te", "trailers")];
        all.extend(headers);
        let scheme = if self.tls.is_some() {
            Scheme::Https
        } else {
            Scheme::Http
        };
        let request = RequestBlock::new("POST", scheme, &self.address, path, &all);
        let request = request.map_err(|error| self.foreign(error))?;
        let mut client = Client::new(Limits::default());
        let stream = client.request(&request, BodyLength::Unknown);
        Ok(ClientCall {
            address: self.address.clone(),
            connection,
            stream: stream.map_err(|error| self.foreign(error))?,
            client,
            reader: MessageReader::new(MESSAGE_BYTES_MAX),
            inbox: VecDeque::new(),
            coding: Vec::new(),
            out: Vec::new(),
            wants_end: false,
            is_answered: false,
            end: None,
            buffer: vec![0; 64 << 10],
        })
    }
}

impl ClientCall {
    /// Lays out a message; it goes out while [`Self::next`] is waited for, and
    /// with [`Self::flush`].
    pub fn send(&mut self, message: &[u8]) {
        // Nothing as long as that is ever sent.
        write_message(message, false, &mut self.out).unwrap_or_default();
    }

    /// Says that no more messages come.
    pub fn end(&mut self) {
        self.wants_end = true;
    }

    /// Whether the server has begun to answer, by gRPC.
    #[must_use]
    pub const fn is_answered(&self) -> bool {
        self.is_answered
    }

    /// Sends all that is laid out and that the server has room for.
    ///
    /// # Errors
    /// [`ChannelError::Broken`] where the connection is.
    pub async fn flush(&mut self) -> Result<(), ChannelError> {
        self.pump();
        let (address, mut has_sent) = (&self.address, false);
        let broken = |source| ChannelError::Broken {
            address: address.clone(),
            source,
        };
        while !self.client.output().is_empty() {
            let (connection, client) = (&mut self.connection, &self.client);
            let write = |context: &mut std::task::Context<'_>| {
                Pin::new(&mut *connection).poll_write(context, client.output())
            };
            let length = poll_fn(write).await.map_err(broken)?;
            if length == 0 {
                return Err(broken(io::ErrorKind::WriteZero.into()));
            }
            self.client.sent(length);
            has_sent = true;
        }
        if has_sent {
            self.connection.flush().await.map_err(broken)?;
        }
        Ok(())
    }

    /// The next message; `None` once the call has ended well. Cancel-safe.
    ///
    /// # Errors
    /// [`ChannelError::Ended`] where it ended otherwise.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, ChannelError> {
        loop {
            if let Some(message) = self.inbox.pop_front() {
                return Ok(Some(message));
            }
            match &self.end {
                Some(Ok(())) => return Ok(None),
                Some(Err(ended)) => return Err(ended.clone().into()),
                None => {}
            }
            self.flush().await?;
            let read = self.connection.read(&mut self.buffer).await;
            let length = match read {
                Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
                other => other,
            };
            let length = length.map_err(|source| ChannelError::Broken {
                address: self.address.clone(),
                source,
            })?;
            self.take(length)?;
        }
    }

    /// Lays out as much of what is to be sent as there is room for.
    fn pump(&mut self) {
        if !self.out.is_empty() || self.wants_end {
            let sent = self
                .client
                .send_body(self.stream, &self.out, self.wants_end);
            // Where the call is over nothing more goes out.
            let taken = sent.unwrap_or(self.out.len());
            if taken == self.out.len() {
                self.wants_end = false;
            }
            self.out.drain(..taken);
        }
    }

    /// Takes in what was read.
    fn take(&mut self, length: usize) -> Result<(), ChannelError> {
        let foreign = |problem: String| ChannelError::Foreign {
            address: self.address.clone(),
            problem,
        };
        let mut read = 0;
        loop {
            let advanced = self.client.advance(&self.buffer[read..length]);
            let (taken, event) = advanced.map_err(|error| foreign(error.to_string()))?;
            read += taken;
            match event {
                None => return Ok(()),
                Some(ClientEvent::Head { head, .. }) => {
                    if head.status != 200 {
                        return Err(foreign(format!("it answers with status {}", head.status)));
                    }
                    self.is_answered = true;
                    self.coding = head.fields.value("grpc-encoding").unwrap_or(b"").to_vec();
                    // A call without messages may end in its head.
                    if let Some(number) = status(head.fields).filter(|number| *number > 0) {
                        let message = head.fields.value("grpc-message");
                        self.end = Some(ended(number, message));
                    }
                }
                Some(ClientEvent::Body { bytes, .. }) => {
                    let mut at = 0;
                    loop {
                        let advanced = self.reader.advance(&bytes[at..]);
                        let advanced = advanced.map_err(|error| foreign(error.to_string()))?;
                        let (taken, Some(message)) = advanced else {
                            break;
                        };
                        let plain = if message.is_compressed {
                            inflate(message.bytes, &self.coding).map_err(foreign)?
                        } else {
                            message.bytes.to_vec()
                        };
                        self.inbox.push_back(plain);
                        at += taken;
                    }
                }
                Some(ClientEvent::End { trailers, .. }) => {
                    let end = match trailers.and_then(status) {
                        Some(number) => {
                            ended(number, trailers.and_then(|own| own.value("grpc-message")))
                        }
                        None => Err(Ended::new(
                            Code::Internal,
                            "the call ended without a status",
                        )),
                    };
                    self.end.get_or_insert(end);
                }
                Some(ClientEvent::Failed { cause, .. }) => {
                    let end = Ended::new(Code::Unavailable, format!("the call failed: {cause}"));
                    self.end.get_or_insert(Err(end));
                }
                Some(ClientEvent::Room { .. }) => {}
            }
        }
    }
}

/// A message that was packed although nobody asked for it, as some servers do.
fn inflate(message: &[u8], coding: &[u8]) -> Result<Vec<u8>, String> {
    if coding != b"gzip" {
        let coding = String::from_utf8_lossy(coding);
        return Err(format!(
            "it compresses its answers by `{coding}`, which is not known here"
        ));
    }
    let mut plain = Vec::new();
    let mut reader = GzDecoder::new(message).take(u64::from(MESSAGE_BYTES_MAX) + 1);
    let read = reader.read_to_end(&mut plain);
    read.map_err(|error| format!("what it compressed cannot be read: {error}"))?;
    if plain.len() as u64 > u64::from(MESSAGE_BYTES_MAX) {
        return Err(format!(
            "a message of it has more than {MESSAGE_BYTES_MAX} bytes"
        ));
    }
    Ok(plain)
}

fn ended(number: u32, message: Option<&[u8]>) -> Result<(), Ended> {
    if number == 0 {
        return Ok(());
    }
    let message = unescaped_message(message.unwrap_or_default());
    Err(Ended::new(Code::of(number), message))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    /// Reflection of a server that compresses whatever it says could not be read.
    #[test]
    fn what_a_server_packs_unasked_is_unpacked() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(b"answer").unwrap();
        let packed = packed.finish().unwrap();
        assert_eq!(inflate(&packed, b"gzip").unwrap(), b"answer");
        assert!(inflate(&packed, b"br").unwrap_err().contains("`br`"));
        let cut = inflate(&packed[..9], b"gzip").unwrap_err();
        assert!(cut.contains("cannot be read"), "{cut}");
    }
}
