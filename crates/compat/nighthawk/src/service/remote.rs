//! The client of a service that makes loads for others.

use std::sync::mpsc::sync_channel;

use stillwell_plan::tls::{Alpn, ClientTlsPlan, TlsSuites, Verification};
use stillwell_scope::{Place, Scope, Token};
use stillwell_units::Nanos;
use tokio::select;
use tokio::time::timeout;

use crate::CommandLineOptions;
use crate::request::NighthawkLoad;
use crate::request::values::bracketed;
use crate::service::access::AccessToken;
use crate::service::grpc::{Channel, ChannelError, ClientCall};
use crate::wire::{
    ExecutionMessageError, ExecutionRequest, ExecutionResponse, WireError, decode_response,
    encode_request,
};

/// The port of a service that names none.
const PORT: u16 = 8443;

/// A load that is cancelled ends after its timeout at the latest; its result may take this much
/// longer.
const END_MARGIN: Nanos = Nanos::from_secs(10);

const EXECUTION: &str = "/nighthawk.client.NighthawkService/ExecutionStream";

impl Channel {
    /// A channel to the service at `uri`: `grpc://HOST:PORT` or the like, over TLS by
    /// `https` or `grpcs`.
    ///
    /// # Errors
    /// TLS cannot be configured.
    pub fn of_uri(uri: &str) -> Result<Self, ChannelError> {
        let (scheme, _) = uri.split_once("://").unwrap_or(("grpc", uri));
        let plan = ClientTlsPlan {
            verification: Verification::Roots {
                extra: Vec::new(),
                public: true,
            },
            identity: None,
            alpn: vec![Alpn::Http2],
            server_name: None,
            resumption: false,
            suites: TlsSuites::default(),
        };
        let is_secure = matches!(scheme, "https" | "grpcs");
        Self::new(&dial_address(uri), is_secure.then_some(&plan))
    }
}

/// Returns the `host:port` that a channel to the service at `uri` dials.
pub(super) fn dial_address(uri: &str) -> String {
    let rest = uri.split_once("://").map_or(uri, |(_, rest)| rest);
    let authority = bracketed(rest.split('/').next().unwrap_or_default());
    let has_port = authority
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    match has_port {
        true => authority,
        false => format!("{authority}:{PORT}"),
    }
}

/// A load for a service to make.
#[derive(Debug)]
pub struct RemoteLoad {
    request: Vec<u8>,
    /// Timeout of the load, which applies to the connection to the service, too.
    timeout: Nanos,
    authorization: Option<String>,
}

/// A service without a response.
#[derive(Debug, thiserror::Error)]
pub enum RemoteLoadError {
    /// The client could not be started.
    #[error("start the client")]
    Start(#[source] std::io::Error),
    /// The client ended without a result.
    #[error("the client ended the call")]
    BrokeOff,
    /// The call failed.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The service ended the call first.
    #[error("it ended the call without a response")]
    NoAnswer,
    /// The caller cancelled the load before the service had it, or waits no longer.
    #[error("interrupted before the service responded")]
    Interrupted,
    /// The load was cancelled, and the service did not respond.
    #[error("the service did not respond within {within} after the load was cancelled")]
    Silent {
        /// The longest wait.
        within: Nanos,
    },
    /// The answer cannot be read.
    #[error(transparent)]
    Answer(#[from] ExecutionMessageError),
    /// The request to end the load cannot be written.
    #[error(transparent)]
    Cancel(#[from] WireError),
}

impl RemoteLoad {
    /// A load with these options.
    ///
    /// # Errors
    /// [`WireError`] where they hold a message that is not known.
    pub fn new(options: CommandLineOptions) -> Result<Self, WireError> {
        let timeout = connect_limit(&options);
        let request = encode_request(&ExecutionRequest::Start(Box::new(options)))?;
        Ok(Self {
            request,
            timeout,
            authorization: None,
        })
    }

    /// The same load, requested with `token`.
    #[must_use]
    pub fn with_token(mut self, token: Option<&AccessToken>) -> Self {
        self.authorization = token.map(AccessToken::header_value);
        self
    }

    /// Executes the load at the service behind `channel`, which must accept the connection within
    /// the timeout of the load. If `cancelled` is, the service ends the load and returns its
    /// result so far. That wait is bounded, and `aborted` ends it at once.
    ///
    /// # Errors
    /// [`RemoteLoadError`] without a response.
    pub fn execute(
        self,
        channel: Channel,
        cancelled: Token,
        aborted: Token,
    ) -> Result<ExecutionResponse, RemoteLoadError> {
        let (sender, done) = sync_channel(1);
        let mut scope = Scope::new(&Token::new());
        let started = scope.worker(Place::default(), "client", move |_| async move {
            // There is room for one.
            sender
                .send(self.call(&channel, &cancelled, &aborted).await)
                .ok();
            Ok(())
        });
        started.map_err(RemoteLoadError::Start)?;
        let response = done.recv().map_err(|_| RemoteLoadError::BrokeOff)?;
        scope.close(Nanos::SECOND);
        response
    }

    async fn call(
        &self,
        channel: &Channel,
        cancelled: &Token,
        aborted: &Token,
    ) -> Result<ExecutionResponse, RemoteLoadError> {
        let authorization = self.authorization.as_deref();
        let headers = authorization.map(|value| ("authorization", value));
        let headers = headers.into_iter().collect::<Vec<_>>();
        // All arms are cancel-safe: the service has no load yet.
        let mut call = select! {
            call = channel.call_within(self.timeout, EXECUTION, &headers) => call?,
            () = cancelled.cancelled() => return Err(RemoteLoadError::Interrupted),
            () = aborted.cancelled() => return Err(RemoteLoadError::Interrupted),
        };
        // Both arms are cancel-safe: a service ends the load of a client that has gone.
        select! {
            response = self.exchange(&mut call, cancelled) => response,
            () = aborted.cancelled() => Err(RemoteLoadError::Interrupted),
        }
    }

    async fn exchange(
        &self,
        call: &mut ClientCall,
        cancelled: &Token,
    ) -> Result<ExecutionResponse, RemoteLoadError> {
        call.send(&self.request);
        // Both arms are cancel-safe.
        select! {
            bytes = call.next() => return response_of(bytes?),
            () = cancelled.cancelled() => {}
        }
        call.send(&encode_request(&ExecutionRequest::Cancel)?);
        let within = end_limit(self.timeout);
        match timeout(within.as_duration(), call.next()).await {
            Ok(bytes) => response_of(bytes?),
            Err(_) => Err(RemoteLoadError::Silent { within }),
        }
    }
}

fn response_of(bytes: Option<Vec<u8>>) -> Result<ExecutionResponse, RemoteLoadError> {
    let bytes = bytes.ok_or(RemoteLoadError::NoAnswer)?;
    Ok(decode_response(&bytes)?)
}

/// Returns the longest wait for a connection to a service that is to make the load of `options`.
pub(super) fn connect_limit(options: &CommandLineOptions) -> Nanos {
    options.timeout.unwrap_or(NighthawkLoad::DEFAULT.timeout)
}

/// Returns the longest wait for the response to a load with this timeout that was cancelled.
pub(super) fn end_limit(timeout: Nanos) -> Nanos {
    timeout + END_MARGIN
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::join;
    use tokio::net::TcpListener;

    use super::*;

    /// The frame of HTTP/2 that a server sends first.
    const EMPTY_SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

    fn load() -> RemoteLoad {
        let options = CommandLineOptions {
            timeout: Some(Nanos::from_secs(7)),
            ..CommandLineOptions::default()
        };
        RemoteLoad::new(options).unwrap()
    }

    /// A service that accepts connections and sends nothing, and its channel.
    async fn silent(scheme: &str) -> (TcpListener, Channel) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let channel = Channel::of_uri(&format!("{scheme}://{address}")).unwrap();
        (listener, channel)
    }

    /// Without TLS it was waited for without an end.
    #[tokio::test(start_paused = true)]
    async fn a_connection_has_the_timeout_of_the_load_for_its_handshake_and_settings() {
        for scheme in ["grpcs", "grpc"] {
            let (_listener, channel) = silent(scheme).await;
            let called = load().call(&channel, &Token::new(), &Token::new()).await;
            let error = called.unwrap_err();
            assert!(
                matches!(&error, RemoteLoadError::Channel(ChannelError::Late { limit, .. })
                    if *limit == Nanos::from_secs(7)),
                "{scheme}: {error}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancellation_ends_the_wait_for_a_connection() {
        let (_listener, channel) = silent("grpcs").await;
        let cancelled = Token::new();
        cancelled.cancel();
        let called = load().call(&channel, &cancelled, &Token::new()).await;
        let error = called.unwrap_err();
        assert!(matches!(error, RemoteLoadError::Interrupted), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_load_waits_for_its_response_no_longer_than_its_timeout_and_a_margin() {
        let (_listener, channel) = silent("grpc").await;
        let mut call = channel.call(EXECUTION, &[]).await.unwrap();
        let cancelled = Token::new();
        cancelled.cancel();
        let error = load().exchange(&mut call, &cancelled).await.unwrap_err();
        let expected = Nanos::from_secs(17);
        assert!(
            matches!(error, RemoteLoadError::Silent { within } if within == expected),
            "{error}"
        );
    }

    #[tokio::test]
    async fn an_abort_ends_the_wait_for_a_response_at_once() {
        let (listener, channel) = silent("grpc").await;
        let (load, aborted) = (load(), Token::new());
        // It settles the connection, and has the whole request before the abort.
        let service = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(EMPTY_SETTINGS).await.unwrap();
            let mut received = Vec::new();
            let mut has_request = false;
            while !has_request {
                assert_ne!(stream.read_buf(&mut received).await.unwrap(), 0);
                let mut parts = received.windows(load.request.len());
                has_request = parts.any(|part| part == load.request);
            }
            aborted.cancel();
            stream
        };
        let cancelled = Token::new();
        let (called, _stream) = join!(load.call(&channel, &cancelled, &aborted), service);
        let error = called.unwrap_err();
        assert!(matches!(error, RemoteLoadError::Interrupted), "{error}");
        // There is no connection yet.
        let (_listener, channel) = silent("grpc").await;
        let called = load.call(&channel, &cancelled, &aborted).await;
        let error = called.unwrap_err();
        assert!(matches!(error, RemoteLoadError::Interrupted), "{error}");
    }
}
