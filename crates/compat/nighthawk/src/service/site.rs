//! What all connections share, and who answers which call.

use std::rc::Rc;

use crate::wire::Schema;
use stillwell_scope::Token;
use stillwell_wire::tls::ServerTls;
use tokio::select;

use crate::service::bind::Role;
use crate::service::executor::Place;
use crate::service::grpc::{Call, Code, Ended, Handler};
use crate::service::store::Store;
use crate::service::{distribute, execution, health, reflection, requests, store};

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) role: Role,
    pub(crate) tls: Option<ServerTls>,
    /// Cancelled when the service is to end.
    pub(crate) token: Token,
    pub(crate) place: Place,
    pub(crate) store: Store,
}

const HEALTH: &str = "grpc.health.v1.Health";
const REFLECTION: &str = "grpc.reflection.v1.ServerReflection";
const REFLECTION_ALPHA: &str = "grpc.reflection.v1alpha.ServerReflection";
const SERVICE: &str = "nighthawk.client.NighthawkService";
const REQUEST_SOURCE: &str = "nighthawk.request_source.NighthawkRequestSourceService";
const DISTRIBUTOR: &str = "nighthawk.NighthawkDistributor";
const SINK: &str = "nighthawk.NighthawkSink";

impl Site {
    /// The full names of the services that are here.
    pub(crate) fn services(&self) -> Vec<String> {
        let all = Schema::own().services();
        all.into_iter()
            .filter(|name| self.has_service(name))
            .collect()
    }

    /// Whether the service `name` is here; the empty one stands for all.
    pub(crate) fn has_service(&self, name: &str) -> bool {
        match name {
            "" | HEALTH | REFLECTION | REFLECTION_ALPHA => true,
            SERVICE => matches!(self.role, Role::TrafficGenerator),
            REQUEST_SOURCE => matches!(self.role, Role::RequestSource(_)),
            DISTRIBUTOR | SINK => matches!(self.role, Role::Distributor { .. }),
            _ => false,
        }
    }

    /// Who answers `call` of the method at `path`.
    pub(crate) fn open(self: &Rc<Self>, path: &str, call: Call) -> Result<Handler, Ended> {
        let unknown = || {
            let why = format!("there is no method {path} here");
            Ended::new(Code::Unimplemented, why)
        };
        let (service, method) = path
            .strip_prefix('/')
            .and_then(|path| path.split_once('/'))
            .filter(|(service, _)| !service.is_empty() && self.has_service(service))
            .ok_or_else(unknown)?;
        let site = Rc::clone(self);
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
            (SINK, "StoreExecutionResponseStream") => Box::pin(store::put(site, call)),
            (SINK, "SinkRequestStream") => Box::pin(store::get(site, call)),
            _ => return Err(unknown()),
        };
        Ok(Box::pin(until_the_end(self.token.clone(), handler)))
    }
}

/// `handler`, which is given up when the service is to end.
async fn until_the_end(token: Token, handler: Handler) -> Result<(), Ended> {
    select! {
        end = handler => end,
        () = token.cancelled() => Err(Ended::new(Code::Unavailable, "the service ends")),
    }
}
