//! The methods that a service answers.

use std::rc::Rc;

use stillwell_scope::Token;
use tokio::select;

use crate::service::grpc::{Call, CallFailed, Handler, Methods, StatusCode};
use crate::service::role::{
    DISTRIBUTOR, HEALTH, REFLECTION, REFLECTION_ALPHA, REQUEST_SOURCE, SERVICE, SINK,
};
use crate::service::state::ServiceState;
use crate::service::{distribute, execution, health, reflection, requests, sink};

/// The methods of all services of a state.
#[derive(Debug)]
pub(crate) struct ServiceMethods(pub(crate) Rc<ServiceState>);

impl Methods for ServiceMethods {
    fn open(
        &self,
        path: &str,
        authorization: Option<&[u8]>,
        call: Call,
    ) -> Result<Handler, CallFailed> {
        let unknown = || {
            let why = format!("there is no method {path} here");
            CallFailed::new(StatusCode::Unimplemented, why)
        };
        let (service, method) = path
            .strip_prefix('/')
            .and_then(|path| path.split_once('/'))
            .filter(|(service, _)| !service.is_empty() && self.0.role.has_service(service))
            .ok_or_else(unknown)?;
        let state = Rc::clone(&self.0);
        if service != HEALTH {
            authorize(&state, authorization)?;
        }
        // Calls about loads end in an order of their own.
        let handler: Handler = match (service, method) {
            (SERVICE, "ExecutionStream") => return Ok(Box::pin(execution::stream(state, call))),
            (DISTRIBUTOR, "DistributedRequestStream") => {
                return Ok(Box::pin(distribute::stream(state, call)));
            }
            (HEALTH, "Watch") => return Ok(Box::pin(health::watch(state, call))),
            (HEALTH, "Check") => Box::pin(health::check(state, call)),
            (REFLECTION, "ServerReflectionInfo") => Box::pin(reflection::info(state, "v1", call)),
            (REFLECTION_ALPHA, "ServerReflectionInfo") => {
                Box::pin(reflection::info(state, "v1alpha", call))
            }
            (REQUEST_SOURCE, "RequestStream") => Box::pin(requests::stream(state, call)),
            (SINK, "StoreExecutionResponseStream") => Box::pin(sink::put(state, call)),
            (SINK, "SinkRequestStream") => Box::pin(sink::get(state, call)),
            _ => return Err(unknown()),
        };
        Ok(Box::pin(until_the_end(self.0.token.clone(), handler)))
    }
}

/// Refuses a call whose header `authorization` has not the token of the service.
fn authorize(state: &ServiceState, authorization: Option<&[u8]>) -> Result<(), CallFailed> {
    let Some(token) = &state.access.token else {
        return Ok(());
    };
    if authorization.is_some_and(|given| token.is_in(given)) {
        return Ok(());
    }
    let why =
        "this service requires its token in the header `authorization`, after the word `Bearer`";
    Err(CallFailed::new(StatusCode::Unauthenticated, why))
}

/// `handler`, which is given up when the service is to end.
async fn until_the_end(token: Token, handler: Handler) -> Result<(), CallFailed> {
    select! {
        end = handler => end,
        () = token.cancelled() => Err(CallFailed::new(StatusCode::Unavailable, "the service is shutting down")),
    }
}
