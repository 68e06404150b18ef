//! The client of a service that makes loads for others.

use std::sync::mpsc::sync_channel;

use stillwell_plan::tls::{Alpn, ClientTlsPlan, TlsSuites, Verification};
use stillwell_scope::{Place, Scope, Token};
use stillwell_units::Nanos;
use tokio::select;

use crate::CommandLineOptions;
use crate::request::values::bracketed;
use crate::service::access::AccessToken;
use crate::service::grpc::{Channel, ChannelError};
use crate::wire::{
    ExecutionMessageError, ExecutionRequest, ExecutionResponse, WireError, decode_response,
    encode_request,
};

/// The port of a service that names none.
const PORT: u16 = 8443;

const EXECUTION: &str = "/nighthawk.client.NighthawkService/ExecutionStream";

impl Channel {
    /// A channel to the service at `uri`: `grpc://HOST:PORT` or the like, over TLS by
    /// `https` or `grpcs`.
    ///
    /// # Errors
    /// TLS cannot be configured.
    pub fn of_uri(uri: &str) -> Result<Self, ChannelError> {
        let (scheme, rest) = uri.split_once("://").unwrap_or(("grpc", uri));
        let authority = bracketed(rest.split('/').next().unwrap_or_default());
        let has_port = authority
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let address = match has_port {
            true => authority,
            false => format!("{authority}:{PORT}"),
        };
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
        Self::new(&address, is_secure.then_some(&plan))
    }
}

/// A load for a service to make.
#[derive(Debug)]
pub struct RemoteLoad {
    request: Vec<u8>,
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
        let request = encode_request(&ExecutionRequest::Start(Box::new(options)))?;
        Ok(Self {
            request,
            authorization: None,
        })
    }

    /// The same load, requested with `token`.
    #[must_use]
    pub fn with_token(mut self, token: Option<&AccessToken>) -> Self {
        self.authorization = token.map(AccessToken::header_value);
        self
    }

    /// Executes the load at the service behind `channel`. If `cancelled` is, the service ends the
    /// load and returns its result so far.
    ///
    /// # Errors
    /// [`RemoteLoadError`] without a response.
    pub fn execute(
        self,
        channel: Channel,
        cancelled: Token,
    ) -> Result<ExecutionResponse, RemoteLoadError> {
        let (sender, done) = sync_channel(1);
        let mut scope = Scope::new(&Token::new());
        let started = scope.worker(Place::default(), "client", move |_| async move {
            // There is room for one.
            sender.send(self.call(&channel, &cancelled).await).ok();
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
    ) -> Result<ExecutionResponse, RemoteLoadError> {
        let authorization = self.authorization.as_deref();
        let headers = authorization.map(|value| ("authorization", value));
        let headers = headers.into_iter().collect::<Vec<_>>();
        let mut call = channel.call(EXECUTION, &headers).await?;
        call.send(&self.request);
        let mut is_cancelled = false;
        loop {
            // Both arms are cancel-safe.
            select! {
                bytes = call.next() => {
                    let bytes = bytes?.ok_or(RemoteLoadError::NoAnswer)?;
                    return Ok(decode_response(&bytes)?);
                }
                () = cancelled.cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    call.send(&encode_request(&ExecutionRequest::Cancel)?);
                }
            }
        }
    }
}
