//! From a plan to a bound socket, and from that to workers.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::pending;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use stillwell_metric::{Labels, SinkShard};
use stillwell_plan::tls::ServerTlsPlan;
use stillwell_scope::{PartError, Place, Scope, Tasks, Token};
use stillwell_wire::server::{Activity, ServerWorker, StreamListener, accept_until};
use stillwell_wire::tls::{ClientTls, ServerTls, TlsError};
use stillwell_wire::{ListenError, Stream};
use tokio::time::timeout;

use crate::service::access::{AccessPlan, Caller};
use crate::service::executor::{Executor, LoadSlot, work};
use crate::service::grpc::{Methods, serve};
use crate::service::methods::ServiceMethods;
use crate::service::role::Role;
use crate::service::state::ServiceState;
use crate::service::store::Store;

/// Connections at once.
const CONNECTIONS_MAX: usize = 256;

/// Connections of one caller at once. Callers on this machine have no such limit.
const CALLER_CONNECTIONS_MAX: usize = 64;

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
    /// Rights of callers.
    pub access: Arc<AccessPlan>,
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
    access: Arc<AccessPlan>,
}

/// Binds the socket of `plan` now, so a taken address is known before anything
/// starts. Connections wait in the kernel from here on.
///
/// # Errors
/// [`ServiceError`] with what to do about it.
pub fn bind_service(plan: ServicePlan) -> Result<BoundService, ServiceError> {
    let tls = plan.tls.as_ref().map(ServerTls::new).transpose();
    let tls = tls.map_err(|source| ServiceError::Tls {
        source: Box::new(source),
    })?;
    if let Role::Distributor { tls: Some(tls), .. } = &plan.role {
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
        access: plan.access,
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
            access,
            ..
        } = self;
        scope.worker(Place::default(), "service", move |token| async move {
            let state = ServiceState {
                role,
                token: token.clone(),
                place,
                store: Store::default(),
                access,
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
    let open = OpenByCaller::default();
    let serve = |stream: Stream, activity: Activity| {
        let (methods, tls, token) = (Rc::clone(&methods), tls.clone(), token.clone());
        let open = open.clone();
        async move {
            let Some(caller) = caller_of(&stream) else {
                return;
            };
            // One that has too many is closed without an answer.
            if let Some(_counted) = CountedCaller::new(open, caller) {
                serve(methods, tls, (stream, activity), caller, token).await;
            }
        }
    };
    accept_until(&worker, listener, &mut tasks, pending(), &serve).await?;
    // The remaining ones are cut.
    timeout(END_MAX, tasks.all_ended())
        .await
        .unwrap_or_default();
    Ok(())
}

/// Numbers of open connections, by the addresses of callers.
#[derive(Clone, Default)]
struct OpenByCaller(Rc<RefCell<BTreeMap<IpAddr, usize>>>);

/// An open connection, which counts for its caller until it is dropped.
struct CountedCaller {
    open: OpenByCaller,
    address: IpAddr,
}

impl CountedCaller {
    /// Returns `None` if `caller` has as many connections as it may have.
    fn new(open: OpenByCaller, caller: Caller) -> Option<Self> {
        let address = caller.address;
        {
            let mut counts = open.0.borrow_mut();
            let count = counts.entry(address).or_insert(0);
            if *count >= CALLER_CONNECTIONS_MAX && !caller.is_local() {
                return None;
            }
            *count += 1;
        }
        Some(Self { open, address })
    }
}

impl Drop for CountedCaller {
    fn drop(&mut self) {
        let mut counts = self.open.0.borrow_mut();
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

/// Returns the source of a connection; `None` if it has gone already.
fn caller_of(stream: &Stream) -> Option<Caller> {
    match stream {
        Stream::Tcp(stream) => Some(Caller {
            address: stream.peer_addr().ok()?.ip().to_canonical(),
        }),
        Stream::Unix(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_has_so_many_connections_and_another_one_is_served() {
        let open = OpenByCaller::default();
        let of = |text: &str| {
            let address = text.parse().unwrap();
            CountedCaller::new(open.clone(), Caller { address })
        };
        let first: Vec<_> = (0..CALLER_CONNECTIONS_MAX)
            .map(|_| of("10.0.0.1").unwrap())
            .collect();
        assert!(of("10.0.0.1").is_none());
        assert!(of("10.0.0.2").is_some());
        let local: Vec<_> = (0..2 * CALLER_CONNECTIONS_MAX)
            .map(|_| of("127.0.0.1"))
            .collect();
        assert!(local.iter().all(Option::is_some));
        drop((first, local));
        assert!(of("10.0.0.1").is_some());
        assert!(open.0.borrow().is_empty());
    }
}
