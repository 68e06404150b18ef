//! A load that a service of others makes.

use std::sync::mpsc::sync_channel;

use anyhow::Context;
use stillwell_nighthawk::CommandLineOptions;
use stillwell_nighthawk::format::{LoadFormat, render_nighthawk};
use stillwell_nighthawk::service::Channel;
use stillwell_nighthawk::wire::{
    ExecutionRequest, ExecutionResponse, decode_response, encode_request,
};
use stillwell_plan::{Alpn, ClientTlsPlan, TlsSuites, Verification};
use stillwell_scope::{Place, Scope, Token};
use stillwell_units::Nanos;
use tokio::select;

use super::log::Log;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;
use crate::signals;

/// The port of a service that names none.
const PORT: u16 = 8443;

const EXECUTION: &str = "/nighthawk.client.NighthawkService/ExecutionStream";

/// Has the service at `uri` make the load of `options`, and prints what it found. A
/// signal is passed on to it: what it found until then is printed.
pub(super) fn execute(
    uri: &str,
    options: CommandLineOptions,
    format: LoadFormat,
    log: Log,
) -> Result<Exit, CommandError> {
    let could_not = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    let request = encode_request(&ExecutionRequest::Start(Box::new(options)));
    let request = request.map_err(|error| CommandError::new(Exit::Usage, error))?;
    let channel = channel(uri).map_err(could_not)?;
    let cancelled = Token::new();
    let cancel = cancelled.clone();
    let signals = signals::listen(move |_| cancel.cancel());
    let signals = signals.map_err(|error| could_not(error.into()))?;
    let response = wait(async move || ask(&channel, &request, &cancelled).await);
    signals.close(Nanos::SECOND);
    let response = response
        .with_context(|| format!("ask the service at {uri}"))
        .map_err(could_not)?;
    if let Some(output) = &response.output {
        let text = render_nighthawk(output, format, None);
        let text = text.map_err(|error| CommandError::new(Exit::Invalid, error))?;
        Paint::data(&text).map_err(|error| could_not(error.into()))?;
    }
    // A failure there is a failure here.
    let failed = response.error_detail.filter(|detail| detail.code != 0);
    if let Some(detail) = failed {
        log.error(&format!("The service has failed: {}", detail.message));
        return Ok(Exit::Failed);
    }
    log.info("Done.");
    Ok(Exit::Held)
}

async fn ask(
    channel: &Channel,
    request: &[u8],
    cancelled: &Token,
) -> anyhow::Result<ExecutionResponse> {
    let mut call = channel.call(EXECUTION, &[]).await?;
    call.send(request);
    let mut is_cancelled = false;
    loop {
        // Both arms are cancel-safe.
        select! {
            bytes = call.next() => {
                let bytes = bytes?.context("it ended the call without an answer")?;
                return Ok(decode_response(&bytes)?);
            }
            () = cancelled.cancelled(), if !is_cancelled => {
                is_cancelled = true;
                call.send(&encode_request(&ExecutionRequest::Cancel)?);
            }
        }
    }
}

/// To the service at `uri`: `grpc://HOST:PORT` or the like, over TLS by `https` or
/// `grpcs`.
pub(super) fn channel(uri: &str) -> anyhow::Result<Channel> {
    let (scheme, rest) = uri.split_once("://").unwrap_or(("grpc", uri));
    let authority = rest.split('/').next().unwrap_or_default();
    let has_port = authority
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let address = match has_port {
        true => authority.to_owned(),
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
    Ok(Channel::new(&address, is_secure.then_some(&plan))?)
}

/// What `make` comes to, on a thread of its own.
fn wait<T: Send + 'static>(
    make: impl AsyncFnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    let (sender, done) = sync_channel(1);
    let mut scope = Scope::new(&Token::new());
    scope.worker(Place::default(), "client", move |_| async move {
        // There is room for one.
        sender.send(make().await).ok();
        Ok(())
    })?;
    let made = done.recv().context("the client broke off")?;
    scope.close(Nanos::SECOND);
    made
}
