//! Calls that are made, one on each connection.

use std::io::{self, Read as _};

use flate2::read::GzDecoder;
use stillwell_plan::tls::{Alpn, ClientTlsPlan};
use stillwell_units::Nanos;
use stillwell_wire::DialError;
use stillwell_wire::client::{
    ConnectError, Endpoint, GrpcCall, GrpcEnd, GrpcError, GrpcMessage, GrpcRequest,
};
use stillwell_wire::tls::{ClientTls, HandshakeError, TlsError};
use tokio::time::timeout;

use super::status::{CallFailed, StatusCode, unescaped_message};

/// The longest message that is taken, in bytes.
const MESSAGE_BYTES_MAX: u32 = 64 << 20;

/// The address of a service and its TLS.
#[derive(Clone, Debug)]
pub struct Channel {
    address: String,
    endpoint: Endpoint,
}

/// A call that could not be made, or broke off.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// No connection.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// No connection in time, or a server that sends nothing on it.
    #[error(
        "connect to {address}: no HTTP/2 connection within {limit}, TLS handshake and the server's \
         settings included"
    )]
    Late {
        /// Address of the server.
        address: String,
        /// The timeout.
        limit: Nanos,
    },
    /// TLS cannot be configured.
    #[error("configure TLS")]
    Tls(#[from] TlsError),
    /// The TLS handshake failed.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// The connection broke.
    #[error("the connection to {address} broke")]
    Broken {
        /// Address of the server.
        address: String,
        /// Cause.
        source: io::Error,
    },
    /// The server does not speak gRPC.
    #[error("{address} does not speak gRPC: {problem}")]
    Foreign {
        /// Address of the server.
        address: String,
        /// Its response.
        problem: String,
    },
    /// The call ended with an error status.
    #[error(transparent)]
    CallFailed(#[from] CallFailed),
}

/// A call in progress on its own connection.
#[derive(Debug)]
pub struct ClientCall {
    address: String,
    call: GrpcCall,
}

impl Channel {
    /// To `address`, HOST:PORT, over TLS where there is a plan of it.
    ///
    /// # Errors
    /// [`ChannelError::Tls`] if TLS cannot be configured.
    pub fn new(address: &str, tls: Option<&ClientTlsPlan>) -> Result<Self, ChannelError> {
        let endpoint = match tls {
            None => Endpoint::tcp(address),
            Some(plan) => Endpoint::Tls {
                address: address.to_owned(),
                tls: ClientTls::new(plan)?.offering(&[Alpn::Http2]),
                host: address
                    .rsplit_once(':')
                    .map_or_else(String::new, |(host, _)| host.to_owned()),
            },
        };
        Ok(Self {
            address: address.to_owned(),
            endpoint,
        })
    }

    /// Begins a call of the method at `path`, with further headers, whose names
    /// are in lower case.
    ///
    /// # Errors
    /// [`ChannelError`] without a connection.
    pub async fn call(
        &self,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Result<ClientCall, ChannelError> {
        let request = GrpcRequest {
            authority: &self.address,
            path,
            headers,
            message_bytes_max: MESSAGE_BYTES_MAX,
        };
        let call = GrpcCall::open(&self.endpoint, &request).await;
        Ok(ClientCall {
            address: self.address.clone(),
            call: call.map_err(|error| ChannelError::new(&self.address, error))?,
        })
    }

    /// As [`Self::call`], if there is a connection within `limit`, TLS handshake and the settings of
    /// the server included.
    ///
    /// # Errors
    /// [`ChannelError`] without a connection by then.
    pub(crate) async fn call_within(
        &self,
        limit: Nanos,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Result<ClientCall, ChannelError> {
        let call = timeout(limit.as_duration(), async {
            let mut call = self.call(path, headers).await?;
            call.await_settings().await?;
            Ok::<_, ChannelError>(call)
        });
        call.await.unwrap_or_else(|_| {
            let address = self.address.clone();
            Err(ChannelError::Late { address, limit })
        })
    }
}

impl ChannelError {
    /// The failure `error` of a call to the service at `address`.
    fn new(address: &str, error: GrpcError) -> Self {
        let address = address.to_owned();
        match error {
            GrpcError::Connect(ConnectError::Dial(error)) => error.into(),
            GrpcError::Connect(ConnectError::ServerName(error)) => (*error).into(),
            GrpcError::Connect(ConnectError::Handshake(error)) => error.into(),
            GrpcError::Exchange(source) => Self::Broken { address, source },
            GrpcError::Closed => Self::Broken {
                address,
                source: io::ErrorKind::UnexpectedEof.into(),
            },
            GrpcError::HttpStatus { status } => Self::Foreign {
                address,
                problem: format!("it answers with status {status}"),
            },
            error @ (GrpcError::Head(_)
            | GrpcError::Refused(_)
            | GrpcError::Connection(_)
            | GrpcError::Message(_)) => Self::Foreign {
                address,
                problem: error.to_string(),
            },
        }
    }
}

impl ClientCall {
    /// Lays out a message; it goes out while [`Self::next`] is waited for.
    pub fn send(&mut self, message: &[u8]) {
        // Nothing as long as that is ever sent.
        self.call.send(message).unwrap_or_default();
    }

    /// Says that no more messages come.
    pub const fn end(&mut self) {
        self.call.finish();
    }

    /// Waits for the settings of the server, which a server of HTTP/2 sends at once. Cancel-safe.
    ///
    /// # Errors
    /// [`ChannelError`] where the connection broke or the server does not speak HTTP/2.
    pub(crate) async fn await_settings(&mut self) -> Result<(), ChannelError> {
        let received = self.call.await_settings().await;
        received.map_err(|error| ChannelError::new(&self.address, error))
    }

    /// Returns true once the head of a gRPC response has arrived.
    #[must_use]
    pub const fn is_answered(&self) -> bool {
        self.call.is_answered()
    }

    /// The next message; `None` once the call has ended well. Cancel-safe.
    ///
    /// # Errors
    /// [`ChannelError`] where it ended otherwise.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, ChannelError> {
        let next = self.call.next().await;
        match next.map_err(|error| ChannelError::new(&self.address, error))? {
            Some(message) => self.plain(message).map(Some),
            None => match self.call.end() {
                Some(end) => Ok(ended(end).map(|()| None)?),
                None => Ok(None),
            },
        }
    }

    fn plain(&self, message: GrpcMessage) -> Result<Vec<u8>, ChannelError> {
        if !message.is_compressed {
            return Ok(message.bytes);
        }
        let plain = inflate(&message.bytes, self.call.coding());
        plain.map_err(|problem| ChannelError::Foreign {
            address: self.address.clone(),
            problem,
        })
    }
}

/// Decompresses a message: some servers compress without a request for it.
fn inflate(message: &[u8], coding: &[u8]) -> Result<Vec<u8>, String> {
    if coding != b"gzip" {
        let coding = String::from_utf8_lossy(coding);
        return Err(format!(
            "it compresses its responses by `{coding}`, which is not supported"
        ));
    }
    let mut plain = Vec::new();
    let mut reader = GzDecoder::new(message).take(u64::from(MESSAGE_BYTES_MAX) + 1);
    let read = reader.read_to_end(&mut plain);
    read.map_err(|error| format!("its compressed message cannot be read: {error}"))?;
    if plain.len() as u64 > u64::from(MESSAGE_BYTES_MAX) {
        return Err(format!(
            "one of its messages has more than {MESSAGE_BYTES_MAX} bytes"
        ));
    }
    Ok(plain)
}

fn ended(end: &GrpcEnd) -> Result<(), CallFailed> {
    let (code, message) = match end {
        GrpcEnd::Status { status: 0, .. } => return Ok(()),
        GrpcEnd::Status { status, message } => {
            (StatusCode::of(*status), unescaped_message(message))
        }
        GrpcEnd::NoStatus => (
            StatusCode::Internal,
            "the call ended without a status".to_owned(),
        ),
        GrpcEnd::Failed(cause) => (StatusCode::Unavailable, format!("the call failed: {cause}")),
    };
    Err(CallFailed::new(code, message))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    #[test]
    fn compressed_messages_are_decompressed() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(b"answer").unwrap();
        let packed = packed.finish().unwrap();
        assert_eq!(inflate(&packed, b"gzip").unwrap(), b"answer");
        assert!(inflate(&packed, b"br").unwrap_err().contains("`br`"));
        let cut = inflate(&packed[..9], b"gzip").unwrap_err();
        assert!(cut.contains("cannot be read"), "{cut}");
    }
}
