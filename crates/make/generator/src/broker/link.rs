//! A connection to a broker while it is being opened: one word, one answer.

use std::sync::Arc;

use stillwell_broker::Malformed;
use stillwell_metric::Outcome;
use stillwell_plan::generator::ProducerPlan;
use stillwell_wire::tls::{ClientTls, TlsError};
use stillwell_wire::{Connection, Stream, dial};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use stillwell_wire::stream_outcome;

/// TLS settings for a broker.
#[derive(Clone, Debug)]
pub(super) struct Security(Arc<ClientTls>);

impl Security {
    /// As `plan` says, if it does.
    pub(super) fn of(plan: &ProducerPlan) -> Result<Option<Self>, TlsError> {
        let Some(tls) = plan.tls.as_deref() else {
            return Ok(None);
        };
        let client = ClientTls::new(tls)?;
        // Reported before the run, and not with every connection.
        client.server_name(host_of(&plan.address))?;
        Ok(Some(Self(Arc::new(client))))
    }

    /// Completes a handshake over `stream` with the host of `address`.
    pub(super) async fn shake(&self, stream: Stream, address: &str) -> Result<Connection, Outcome> {
        let name = self.0.server_name(host_of(address));
        let name = name.map_err(|_| Outcome::HandshakeFailed)?;
        let shaken = self.0.connect(stream, &name).await;
        let shaken = shaken.map_err(|error| match error.outcome() {
            Outcome::PeerClosed => Outcome::PeerClosed,
            _ => Outcome::HandshakeFailed,
        });
        Ok(shaken?.into())
    }
}

fn host_of(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(host, _)| host)
}

/// A connection, and what was received and not read yet.
#[derive(Debug)]
pub(crate) struct Link {
    pub(super) connection: Connection,
    pub(super) input: Vec<u8>,
}

impl Link {
    /// A stream in the clear.
    pub(super) async fn dial(address: &str) -> Result<Stream, Outcome> {
        let stream = dial::tcp(address).await;
        stream.map(Stream::from).map_err(|error| error.outcome())
    }

    /// A connection over TLS, where there is `security`.
    pub(super) async fn open(address: &str, security: Option<&Security>) -> Result<Self, Outcome> {
        let stream = Self::dial(address).await?;
        Ok(Self::new(match security {
            Some(security) => security.shake(stream, address).await?,
            None => stream.into(),
        }))
    }

    pub(super) fn new(connection: Connection) -> Self {
        Self {
            connection,
            input: Vec::new(),
        }
    }

    /// Writes all of `bytes`, and forgets them.
    pub(super) async fn send(&mut self, bytes: &mut Vec<u8>) -> Result<(), Outcome> {
        let written = async {
            self.connection.write_all(bytes).await?;
            self.connection.flush().await
        };
        written.await.map_err(|error| stream_outcome(&error))?;
        bytes.clear();
        Ok(())
    }

    /// The first word that `read` finds in what is received, as `take` copies it.
    pub(super) async fn receive<T>(
        &mut self,
        mut read: impl FnMut(&[u8]) -> Result<Option<(T, usize)>, Malformed>,
    ) -> Result<T, Outcome> {
        loop {
            match read(&self.input) {
                Ok(Some((word, used))) => {
                    self.input.drain(..used);
                    return Ok(word);
                }
                Ok(None) => {}
                Err(_) => return Err(Outcome::Malformed),
            }
            let received = self.connection.read_buf(&mut self.input).await;
            if received.map_err(|error| stream_outcome(&error))? == 0 {
                return Err(Outcome::PeerClosed);
            }
        }
    }
}
