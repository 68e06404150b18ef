//! A stream of blocks over TLS, nothing between them.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use stillwell_plan::generator::StreamTarget;
use stillwell_plan::tls::ClientTlsPlan;
use stillwell_scope::Tasks;
use stillwell_units::Nanos;
use stillwell_wire::tls::{ClientTls, TlsError, TlsStream};
use stillwell_wire::{DialError, Stream, dial};
use tokio::io::AsyncWrite;

use super::end_stream;
use crate::contract::Transport;
use crate::drive::push_all;
use stillwell_worker::{Opener, Worker};

/// Longest time of a handshake.
const HANDSHAKE_MAX: Nanos = Nanos::from_secs(30);

#[derive(Clone, Debug)]
pub(crate) struct Tls {
    to: StreamTarget,
    /// The host that the certificate must be for.
    host: String,
    client: ClientTls,
}

impl Tls {
    pub(crate) fn new(to: &StreamTarget, plan: &ClientTlsPlan) -> Result<Self, TlsError> {
        let host = match to {
            StreamTarget::Tcp(address) => address
                .rsplit_once(':')
                .map_or(address.as_str(), |(host, _)| host),
            // A socket file has no name of its own.
            StreamTarget::Unix(_) => "localhost",
        };
        let client = ClientTls::new(plan)?;
        // Reported before the run, and not with every connection.
        client.server_name(host)?;
        Ok(Self {
            to: to.clone(),
            host: host.to_owned(),
            client,
        })
    }

    /// The same with sessions of one worker's own.
    fn for_worker(&self) -> Self {
        Self {
            client: self.client.for_worker(),
            ..self.clone()
        }
    }
}

impl Opener for Tls {
    fn open(&self, worker: &Rc<Worker>, connections: u16, tasks: &mut Tasks) {
        push_all(self.for_worker(), worker, connections, tasks);
    }
}

impl Transport for Tls {
    type Connection = RefCell<TlsStream>;

    const IS_MESSAGES: bool = false;

    async fn connect(&self) -> Result<Self::Connection, DialError> {
        let (stream, address) = match &self.to {
            StreamTarget::Tcp(address) => {
                (Stream::from(dial::tcp(address).await?), address.clone())
            }
            StreamTarget::Unix(path) => (
                Stream::from(dial::unix_stream(path).await?),
                path.display().to_string(),
            ),
        };
        let failed = |source| DialError {
            address: address.clone(),
            source,
        };
        let name = self.client.server_name(&self.host);
        let name = name.map_err(|error| failed(io::Error::other(error)))?;
        let shaking = self.client.connect(stream, &name);
        let shaken = tokio::time::timeout(HANDSHAKE_MAX.as_duration(), shaking).await;
        let shaken = shaken.map_err(|_| failed(ErrorKind::TimedOut.into()))?;
        let stream = shaken.map_err(|error| DialError::handshake(&address, error))?;
        Ok(RefCell::new(stream))
    }

    fn try_send(connection: &Self::Connection, bytes: &[u8]) -> io::Result<usize> {
        let mut context = Context::from_waker(Waker::noop());
        let mut stream = connection.borrow_mut();
        match Pin::new(&mut *stream).poll_write(&mut context, bytes) {
            Poll::Ready(result) => result,
            Poll::Pending => Err(ErrorKind::WouldBlock.into()),
        }
    }

    /// Encrypted bytes leave first: then there is room again.
    async fn writable(connection: &Self::Connection) -> io::Result<()> {
        poll_fn(|context| Pin::new(&mut *connection.borrow_mut()).poll_flush(context)).await
    }

    async fn finish(connection: Self::Connection) {
        end_stream(connection.into_inner()).await;
    }
}
