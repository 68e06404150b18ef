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
use stillwell_scope::{PartError, Place as CpuPlace, Scope, Tasks, Token};
use stillwell_wire::ListenError;
use stillwell_wire::server::{ServerWorker, StreamListener, accept_until};
use stillwell_wire::tls::{ClientTls, ServerTls, TlsError};
use tokio::time::timeout;

use crate::service::executor::{Executor, Place, work};
use crate::service::grpc::{Methods, serve};
use crate::service::methods::SiteMethods;
use crate::service::role::Role;
use crate::service::site::Site;
use crate::service::store::Store;

/// Connections at once.
const CONNECTIONS_MAX: usize = 256;

/// So long calls may take to end once the service is to end: a load waits for its
/// answers.
const END_MAX: Duration = Duration::from_secs(35);

/// What is served, and where.
#[derive(Clone, Debug)]
pub struct ServicePlan {
    /// Where; port 0 for one that is free.
    pub listen: SocketAddr,
    /// How TLS is spoken, if it is.
    pub tls: Option<ServerTlsPlan>,
    /// What.
    pub role: Role,
}

/// Why there is no service. The source says what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The address cannot be had.
    #[error("bind the service")]
    Listen {
        /// The address, and what is the matter with it.
        source: ListenError,
    },
    /// TLS cannot be configured.
    #[error("configure TLS of the service")]
    Tls {
        /// What is the matter.
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
        // What cannot be spoken is told before anybody asks.
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
    /// Where it listens, with the port that the kernel chose where the plan says 0.
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
        let place = Place::new(sender);
        let freer = place.freer();
        scope.thread(CpuPlace::default(), "executor", move |_| {
            work(executor, &jobs, &freer);
            Ok(())
        })?;
        let Self {
            listener,
            tls,
            role,
            ..
        } = self;
        scope.worker(CpuPlace::default(), "service", move |token| async move {
            let site = Site {
                role,
                token: token.clone(),
                place,
                store: Store::default(),
            };
            accept(listener, Rc::new(SiteMethods(Rc::new(site))), tls, token).await
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
    // Those that are left then are ended where they stand.
    timeout(END_MAX, tasks.all_ended())
        .await
        .unwrap_or_default();
    Ok(())
}
