//! Services that may be served, and what each role makes of them.

use stillwell_plan::ClientTlsPlan;

use crate::wire::Schema;

pub(super) const HEALTH: &str = "grpc.health.v1.Health";
pub(super) const REFLECTION: &str = "grpc.reflection.v1.ServerReflection";
pub(super) const REFLECTION_ALPHA: &str = "grpc.reflection.v1alpha.ServerReflection";
pub(super) const SERVICE: &str = "nighthawk.client.NighthawkService";
pub(super) const REQUEST_SOURCE: &str = "nighthawk.request_source.NighthawkRequestSourceService";
pub(super) const DISTRIBUTOR: &str = "nighthawk.NighthawkDistributor";
pub(super) const SINK: &str = "nighthawk.NighthawkSink";

/// What a service does.
#[derive(Clone, Debug)]
pub enum Role {
    /// It makes loads.
    TrafficGenerator,
    /// It hands these requests out, one after the other.
    RequestSource(Vec<HandedOut>),
    /// It has other services make loads, keeps their results and puts them
    /// together.
    Distributor {
        /// How TLS is spoken with them, if it is.
        tls: Option<ClientTlsPlan>,
    },
}

/// A request that is handed out. What it does not say is up to whoever sends it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HandedOut {
    /// Such as `GET`.
    pub method: Option<String>,
    /// Begins with `/`.
    pub path: Option<String>,
    /// What stands in `Host`.
    pub authority: Option<String>,
    /// Bytes of its body.
    pub body_bytes: Option<u32>,
    /// Names and values.
    pub headers: Vec<(String, String)>,
}

impl Role {
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
            SERVICE => matches!(self, Role::TrafficGenerator),
            REQUEST_SOURCE => matches!(self, Role::RequestSource(_)),
            DISTRIBUTOR | SINK => matches!(self, Role::Distributor { .. }),
            _ => false,
        }
    }
}
