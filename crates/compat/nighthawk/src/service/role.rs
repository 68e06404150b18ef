//! Services that may be served, and what each role makes of them.

use stillwell_plan::tls::ClientTlsPlan;

use crate::service::access::AccessToken;
use crate::wire::Schema;

pub(super) const HEALTH: &str = "grpc.health.v1.Health";
pub(super) const REFLECTION: &str = "grpc.reflection.v1.ServerReflection";
pub(super) const REFLECTION_ALPHA: &str = "grpc.reflection.v1alpha.ServerReflection";
pub(super) const SERVICE: &str = "nighthawk.client.NighthawkService";
pub(super) const REQUEST_SOURCE: &str = "nighthawk.request_source.NighthawkRequestSourceService";
pub(super) const DISTRIBUTOR: &str = "nighthawk.NighthawkDistributor";
pub(super) const SINK: &str = "nighthawk.NighthawkSink";

/// The task of a service.
#[derive(Clone, Debug)]
pub enum Role {
    /// It makes loads.
    TrafficGenerator,
    /// It hands these requests out, one after the other.
    RequestSource(Vec<OfferedRequest>),
    /// It has other services make loads, keeps their results and puts them
    /// together.
    Distributor {
        /// TLS to these services; `None` for plain TCP.
        tls: Option<ClientTlsPlan>,
        /// Token of the calls to these services, if any.
        token: Option<AccessToken>,
    },
}

/// A request that a source hands out. The client that sends it chooses absent parts.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct OfferedRequest {
    /// Such as `GET`.
    pub method: Option<String>,
    /// Begins with `/`.
    pub path: Option<String>,
    /// Value of `Host`.
    pub authority: Option<String>,
    /// Bytes of its body.
    pub body_bytes: Option<u32>,
    /// Names and values.
    pub headers: Vec<(String, String)>,
}

impl Role {
    /// Returns the full names of the services that are served.
    pub(crate) fn services(&self) -> Vec<String> {
        let all = Schema::shared().services();
        all.into_iter()
            .filter(|name| self.has_service(name))
            .collect()
    }

    /// Returns true if the service `name` is served; the empty name means all.
    pub(crate) fn has_service(&self, name: &str) -> bool {
        match name {
            "" | HEALTH | REFLECTION | REFLECTION_ALPHA => true,
            SERVICE => matches!(self, Self::TrafficGenerator),
            REQUEST_SOURCE => matches!(self, Self::RequestSource(_)),
            DISTRIBUTOR | SINK => matches!(self, Self::Distributor { .. }),
            _ => false,
        }
    }
}
