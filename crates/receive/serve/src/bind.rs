//! From a plan to bound sockets, and from those to workers.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use stillwell_http::HeadError;
use stillwell_metric::{Labels, SinkShard};
use stillwell_plan::ServePlan;
use stillwell_plan::serve::{ChainClients, ServeListenerPlan, ServeProtocols};
use stillwell_scope::{PartError, Place, Scope, clock};
use stillwell_units::{Seed, as_usize};
use stillwell_wire::quic::{BindQuicError, BoundQuic, bind_quic};
use stillwell_wire::server::{Activity, ServerWorker, StreamListener, accept, accounted};
use stillwell_wire::tls::{ServerTls, TlsError};
use stillwell_wire::{ListenError, Stream};

use crate::admin::{self, BoundAdmin};
use crate::answers::Answers;
use crate::connection::{ListenerServices, serve};
use crate::counts::{ServeCounter, ServeShard};
use crate::http3::STREAMS_MAX;
use crate::quic;
use crate::request_log::RequestLog;
use crate::service::{Service, Site};

/// Reason why a test server cannot start. The source says what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// An address is not available.
    #[error("bind the test server")]
    Listen {
        /// The address, and what is the matter with it.
        source: ListenError,
    },
    /// Its answer is no HTTP response.
    #[error("build the responses at {address}")]
    Answer {
        /// Where.
        address: SocketAddr,
        /// The reason.
        source: HeadError,
    },
    /// Its TLS cannot be configured.
    #[error("configure TLS at {address}")]
    Tls {
        /// Where.
        address: SocketAddr,
        /// The reason.
        source: Box<TlsError>,
    },
    /// The kernel has no descriptor for one more worker.
    #[error("share the test server's sockets among {workers} workers")]
    Share {
        /// Expected number.
        workers: u16,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// A source of connections.
#[derive(Debug)]
enum WorkerListener {
    Streams(StreamListener),
    Quic(BoundQuic),
}

/// Sites that the workers of one listener share.
#[derive(Debug)]
struct ListenerSites {
    fallback: Arc<Site>,
    chains: Vec<(ChainClients, Arc<Site>)>,
}

impl ListenerSites {
    fn all(&self) -> impl Iterator<Item = &Arc<Site>> {
        std::iter::once(&self.fallback).chain(self.chains.iter().map(|(_, site)| site))
    }
}

/// A test server whose sockets are bound and whose workers are not started.
#[derive(Debug)]
pub struct BoundServer {
    addresses: Vec<SocketAddr>,
    workers: Vec<Vec<(Arc<ListenerSites>, WorkerListener)>>,
    counter: ServeCounter,
    seed: Seed,
    admin: Option<BoundAdmin>,
}

/// Binds the sockets of `plan` now, so a taken address is known before
/// anything starts. Connections wait in the kernel from here on.
///
/// # Errors
/// [`ServeError`] with what to do about it.
pub fn bind_server(plan: &ServePlan) -> Result<BoundServer, ServeError> {
    let mut addresses = Vec::new();
    let mut workers: Vec<Vec<_>> = (0..plan.workers.get()).map(|_| Vec::new()).collect();
    for listener in &plan.listeners {
        let (sites, worker_listeners) = worker_listeners(listener, workers.len(), &mut addresses)?;
        for (worker, listening) in workers.iter_mut().zip(worker_listeners) {
            worker.push((Arc::clone(&sites), listening));
        }
    }
    let admin = plan.admin.as_ref().map(admin::bind).transpose();
    let shard = |number: usize| {
        let labels = Labels::none()
            .with("component", "serve")
            .with("worker", number.to_string());
        (
            Arc::new(SinkShard::new(labels)),
            Arc::new(ServeShard::new()),
        )
    };
    Ok(BoundServer {
        addresses,
        counter: ServeCounter {
            shards: (0..workers.len()).map(shard).collect(),
        },
        workers,
        seed: plan.seed,
        admin: admin.map_err(|source| ServeError::Listen { source })?,
    })
}

/// The shared state of a listener, and a listener for each of its workers.
fn worker_listeners(
    plan: &ServeListenerPlan,
    workers: usize,
    addresses: &mut Vec<SocketAddr>,
) -> Result<(Arc<ListenerSites>, Vec<WorkerListener>), ServeError> {
    let count = u16::try_from(workers).unwrap_or(u16::MAX);
    if plan.protocols == ServeProtocols::Http3 {
        let site = Arc::new(site(plan)?);
        let tls = |source| ServeError::Tls {
            address: plan.address,
            source: Box::new(source),
        };
        let server_tls = site.tls.as_ref().ok_or(TlsError::NoTls13).map_err(tls)?;
        let bound = bind_quic(plan.address, count, server_tls, STREAMS_MAX);
        let bound = bound.map_err(|error| match error {
            BindQuicError::Listen(source) => ServeError::Listen { source },
            BindQuicError::Tls(source) => tls(source),
        })?;
        let address = bound.first().and_then(BoundQuic::address);
        addresses.push(address.unwrap_or(plan.address));
        let sites = ListenerSites {
            fallback: site,
            chains: Vec::new(),
        };
        let bound = bound.into_iter().map(WorkerListener::Quic);
        return Ok((Arc::new(sites), bound.collect()));
    }
    let socket = StreamListener::tcp(plan.address);
    let socket = socket.map_err(|source| ServeError::Listen { source })?;
    addresses.push(socket.address().unwrap_or(plan.address));
    let sites = Arc::new(sites(plan)?);
    let shared = (0..workers).map(|_| socket.share().map(WorkerListener::Streams));
    let shared = shared.collect::<io::Result<_>>();
    let shared = shared.map_err(|source| ServeError::Share {
        workers: count,
        source,
    })?;
    Ok((sites, shared))
}

fn sites(plan: &ServeListenerPlan) -> Result<ListenerSites, ServeError> {
    let chains = plan.chains.iter().map(|chain| {
        let plan = ServeListenerPlan {
            tls: chain.tls.clone(),
            protocols: chain.protocols,
            answer: chain.answer.clone(),
            chains: Vec::new(),
            ..plan.clone()
        };
        Ok((chain.clients.clone(), Arc::new(site(&plan)?)))
    });
    Ok(ListenerSites {
        chains: chains.collect::<Result<_, ServeError>>()?,
        fallback: Arc::new(site(plan)?),
    })
}

fn site(plan: &ServeListenerPlan) -> Result<Site, ServeError> {
    let answers = Answers::new(&plan.answer).map_err(|source| ServeError::Answer {
        address: plan.address,
        source,
    })?;
    let tls = plan.tls.as_ref().map(ServerTls::new).transpose();
    let tls = tls.map_err(|source| ServeError::Tls {
        address: plan.address,
        source: Box::new(source),
    })?;
    Ok(Site::new(plan.clone(), answers, tls, clock::now()))
}

impl BoundServer {
    /// The addresses that it listens on, in the plan's order, with the ports
    /// that the kernel chose where the plan says 0.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The address of its admin interface, where it has one.
    #[must_use]
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(|admin| admin.address)
    }

    /// The certificate that was made for the first listener that has none of its
    /// own, as PEM.
    #[must_use]
    pub fn certificate_pem(&self) -> Option<String> {
        let mut sites = self
            .workers
            .first()?
            .iter()
            .map(|(sites, _)| &sites.fallback);
        sites.find_map(|site| Some(site.tls.as_ref()?.made_certificate()?.to_owned()))
    }

    /// Returns its counters.
    #[must_use]
    pub fn counter(&self) -> ServeCounter {
        self.counter.clone()
    }

    /// Enables the request log, of all listeners together. It costs time for each request.
    #[must_use]
    pub fn log_requests(&self) -> RequestLog {
        let (sender, log) = RequestLog::new();
        let sites = self.workers.iter().flatten();
        for site in sites.flat_map(|(sites, _)| sites.all()) {
            // The workers share the site of a listener: it has the log already.
            site.log.set(sender.clone()).unwrap_or_default();
        }
        log
    }

    /// Starts its workers in `scope` at `place`, called `serve-NUMBER`. The admin
    /// interface is one more, `admin`, which ends when a request ends the
    /// server.
    ///
    /// # Errors
    /// The kernel's answer where it starts no more threads; those that were
    /// started end with the scope.
    pub fn start(self, scope: &mut Scope, place: &Place) -> io::Result<()> {
        if let Some(admin) = self.admin {
            let (counter, listeners) = (self.counter.clone(), self.addresses);
            scope.worker(place.clone(), "admin", move |token| {
                admin.run(counter, listeners, token)
            })?;
        }
        let shards = self.counter.shards.into_iter();
        for (number, (listeners, (sink, shard))) in
            (0_u64..).zip(self.workers.into_iter().zip(shards))
        {
            let seed = self.seed.derive("serve", number);
            let name = format!("serve-{number}");
            scope.worker(place.clone(), &name, move |token| async move {
                let worker = Rc::new(ServerWorker::new(sink, token));
                let all = listeners.into_iter().map(|(sites, listener)| {
                    let service = |site: &Arc<Site>| {
                        Rc::new(Service::new(Arc::clone(site), Arc::clone(&shard), &seed))
                    };
                    let chains = sites.chains.iter();
                    let chains = chains.map(|(clients, site)| (clients.clone(), service(site)));
                    let services = ListenerServices {
                        chains: chains.collect(),
                        fallback: service(&sites.fallback),
                    };
                    listen(Rc::clone(&worker), Rc::new(services), listener)
                });
                accounted(Rc::clone(&worker), until_all(all.collect())).await
            })?;
        }
        Ok(())
    }
}

fn listen(
    worker: Rc<ServerWorker>,
    services: Rc<ListenerServices>,
    listening: WorkerListener,
) -> Pin<Box<dyn Future<Output = Result<(), PartError>>>> {
    let listener = match listening {
        WorkerListener::Quic(bound) => {
            return Box::pin(quic::serve(worker, Rc::clone(&services.fallback), bound));
        }
        WorkerListener::Streams(listener) => listener,
    };
    let connections_max = as_usize(services.fallback.site.plan.connections_max);
    let of_connection = Rc::clone(&worker);
    let serve = move |stream: Stream, activity: Activity| {
        let (worker, services) = (Rc::clone(&of_connection), Rc::clone(&services));
        serve(worker, services, stream, activity)
    };
    Box::pin(accept(worker, listener, connections_max, serve))
}

/// Until all of `futures` have ended, or one has failed.
async fn until_all<F>(mut futures: Vec<F>) -> Result<(), PartError>
where
    F: Future<Output = Result<(), PartError>> + Unpin,
{
    poll_fn(|context| {
        let mut failed = None;
        futures.retain_mut(|future| match Pin::new(future).poll(context) {
            Poll::Pending => true,
            Poll::Ready(Ok(())) => false,
            Poll::Ready(Err(error)) => {
                failed = Some(error);
                false
            }
        });
        match failed {
            Some(error) => Poll::Ready(Err(error)),
            None if futures.is_empty() => Poll::Ready(Ok(())),
            None => Poll::Pending,
        }
    })
    .await
}
