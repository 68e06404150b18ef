//! From a plan to a bound socket, and from that to workers.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use stillwell_metric::{Labels, SinkShard};
use stillwell_plan::ServerTlsPlan;
use stillwell_scope::{PartError, Place, Scope, Tasks, Token};
use stillwell_wire::ListenError;
use stillwell_wire::server::{ServerWorker, StreamListener, accept_until};
use stillwell_wire::tls::{ClientTls, ServerTls, TlsError};
use tokio::time::timeout;

use crate::service::executor::{Executor, LoadSlot, work};
use crate::service::grpc::{Methods, serve};
use crate::service::methods::ServiceMethods;
use crate::service::role::Role;
use crate::service::state::ServiceState;
use crate::service::store::Store;

/// Connections at once.
const CONNECTIONS_MAX: usize = 256;

/// Maximum time for calls to end when the service ends: a load waits for its responses.
const END_MAX: Duration = Duration::from_secs(35);

/// A service and its address.
#[derive(Clone, Debug)]
pub struct ServicePlan {
    /// Where; port 0 for one that is free.
    pub listen: SocketAddr,
    /// TLS of the service; `None` for plain TCP.
    pub tls: Option<ServerTlsPlan>,
    /// What.
    pub role: Role,
}

/// A service that cannot start. The source names a remedy.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The address is not available.
    #[error("bind the service")]
    Listen {
        /// The address, and what is the matter with it.
        source: ListenError,
    },
    /// TLS cannot be configured.
    #[error("configure TLS of the service")]
    Tls {
        /// The cause.
        source: Box<TlsError>,
    },
}

/// A service whose socket is bound and whose workers are not started.
#[derive(Debug)]
pub struct BoundService {
    listener: StreamListener,
    address: SocketAddr,
    tls: Option<ServerTls>,
    role: Role,
}

/// Binds the socket of `plan` now, so that a taken address is known before anything
/// starts. Connections wait in the kernel from here on.
///
/// # Errors
/// [`ServiceError`] with what to do about it.
pub fn bind_service(plan: ServicePlan) -> Result<BoundService, ServiceError> {
    let tls = plan.tls.as_ref().map(ServerTls::new).transpose();
    let tls = tls.map_err(|source| ServiceError::Tls {
        source: Box::new(source),
    })?;
    if let Role::Distributor { tls: Some(tls) } = &plan.role {
        // A wrong configuration fails here, not with the first call.
        ClientTls::new(tls).map_err(|source| ServiceError::Tls {
            source: Box::new(source),
        })?;
    }
    let listener = StreamListener::tcp(plan.listen);
    let listener = listener.map_err(|source| ServiceError::Listen { source })?;
    Ok(BoundService {
        address: listener.address().unwrap_or(plan.listen),
        listener,
        tls,
        role: plan.role,
    })
}

impl BoundService {
    /// Returns the address, with the port that the kernel chose for port 0.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate that was made for it, as PEM; none where it was given one.
    #[must_use]
    pub fn certificate_pem(&self) -> Option<String> {
        Some(self.tls.as_ref()?.made_certificate()?.to_owned())
    }

    /// Starts its two threads in `scope`: `service` answers calls, and `executor`
    /// makes loads. When the scope is to end, a load that is on ends early and is
    /// answered.
    ///
    /// # Errors
    /// The kernel's answer where it starts no more threads; what was started ends
    /// with the scope.
    pub fn start(self, scope: &mut Scope, executor: impl Executor) -> io::Result<()> {
        let (sender, jobs) = sync_channel(1);
        let place = LoadSlot::new(sender);
        let freer = place.freer();
        scope.thread(Place::default(), "executor", move |_| {
            work(executor, &jobs, &freer);
            Ok(())
        })?;
        let Self {
            listener,
            tls,
            role,
            ..
        } = self;
        scope.worker(Place::default(), "service", move |token| async move {
            let state = ServiceState {
                role,
                token: token.clone(),
                place,
                store: Store::default(),
            };
            accept(
                listener,
                Rc::new(ServiceMethods(Rc::new(state))),
                tls,
                token,
            )
            .await
        })
    }
}

async fn accept(
    listener: StreamListener,
    methods: Rc<dyn Methods>,
    tls: Option<ServerTls>,
    token: Token,
) -> Result<(), PartError> {
    let shard = SinkShard::new(Labels::none().with("component", "service"));
    let worker = Rc::new(ServerWorker::new(Arc::new(shard), token.clone()));
    let mut tasks = Tasks::new(CONNECTIONS_MAX);
    let serve = |stream| serve(Rc::clone(&methods), tls.clone(), stream, token.clone());
    accept_until(&worker, listener, &mut tasks, pending(), &serve).await?;
    // The remaining ones are cut.
    timeout(END_MAX, tasks.all_ended())
        .await
        .unwrap_or_default();
    Ok(())
}
