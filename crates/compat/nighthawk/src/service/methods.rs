//! The methods that a service answers.

use std::rc::Rc;

use stillwell_scope::Token;
use tokio::select;

use crate::service::grpc::{Call, Code, Ended, Handler, Methods};
use crate::service::role::{
    DISTRIBUTOR, HEALTH, REFLECTION, REFLECTION_ALPHA, REQUEST_SOURCE, SERVICE, SINK,
};
use crate::service::site::Site;
use crate::service::{distribute, execution, health, reflection, requests, sink};

/// The methods of all services of a site.
#[derive(Debug)]
pub(crate) struct SiteMethods(pub(crate) Rc<Site>);

impl Methods for SiteMethods {
    fn open(&self, path: &str, call: Call) -> Result<Handler, Ended> {
        let unknown = || {
            let why = format!("there is no method {path} here");
            Ended::new(Code::Unimplemented, why)
        };
        let (service, method) = path
            .strip_prefix('/')
            .and_then(|path| path.split_once('/'))
            .filter(|(service, _)| !service.is_empty() && self.0.role.has_service(service))
            .ok_or_else(unknown)?;
        let site = Rc::clone(&self.0);
        // Calls about loads end in an order of their own.
        let handler: Handler = match (service, method) {
            (SERVICE, "ExecutionStream") => return Ok(Box::pin(execution::stream(site, call))),
            (DISTRIBUTOR, "DistributedRequestStream") => {
                return Ok(Box::pin(distribute::stream(site, call)));
            }
            (HEALTH, "Watch") => return Ok(Box::pin(health::watch(site, call))),
            (HEALTH, "Check") => Box::pin(health::check(site, call)),
            (REFLECTION, "ServerReflectionInfo") => Box::pin(reflection::info(site, "v1", call)),
            (REFLECTION_ALPHA, "ServerReflectionInfo") => {
                Box::pin(reflection::info(site, "v1alpha", call))
            }
            (REQUEST_SOURCE, "RequestStream") => Box::pin(requests::stream(site, call)),
            (SINK, "StoreExecutionResponseStream") => Box::pin(sink::put(site, call)),
            (SINK, "SinkRequestStream") => Box::pin(sink::get(site, call)),
            _ => return Err(unknown()),
        };
        Ok(Box::pin(until_the_end(self.0.token.clone(), handler)))
    }
}

/// `handler`, which is given up when the service is to end.
async fn until_the_end(token: Token, handler: Handler) -> Result<(), Ended> {
    select! {
        end = handler => end,
        () = token.cancelled() => Err(Ended::new(Code::Unavailable, "the service ends")),
    }
}
