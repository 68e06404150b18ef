//! From a plan to bound sockets, and from those to workers.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use stillwell_http::HeadError;
use stillwell_metric::{Labels, Shard, SinkShard, sink_worker_name};
use stillwell_plan::generator::MessageLength;
use stillwell_plan::sink::LinesPlan;
use stillwell_plan::{SinkPlan, SinkProtocol};
use stillwell_scope::{Place, Scope};
use stillwell_units::{ByteRate, Seed, as_usize};
use stillwell_wire::server::{Activity, StreamListener, accounted};
use stillwell_wire::{ListenError, SocketFile, Stream, listen};

use crate::accept::accept;
use crate::file::{self, Tail};
use crate::http::{self, Answers};
use crate::intake::{self, Intake};
use crate::ledger::SharedLedger;
use crate::prefixes::SharedPrefixes;
use crate::socket::{DatagramSocket, Place as SocketPlace};
use crate::steering::{SinkControl, Steering};
use crate::throttle::Throttle;
use crate::worker::Worker;
use crate::{datagram, round_trip, stream};

/// Connections that only send, served at once by one worker; more wait in the
/// backlog.
const STREAMS_MAX: usize = 4096;

/// Reason why a sink cannot start. The source says what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Its address is unavailable.
    #[error("bind sink `{id}`")]
    Listen {
        /// The sink.
        id: String,
        /// The address, and what is the matter with it.
        source: ListenError,
    },
    /// Its answer is no HTTP response.
    #[error("build the response of sink `{id}`")]
    Answer {
        /// The sink.
        id: String,
        /// Reason why it is invalid.
        source: HeadError,
    },
    /// The kernel has no descriptor for one more worker.
    #[error("share the socket of sink `{id}` among {workers} workers")]
    Share {
        /// The sink.
        id: String,
        /// Expected number.
        workers: u16,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// A sink whose sockets are bound and whose workers are not started.
#[derive(Debug)]
pub struct BoundSink {
    id: String,
    address: Option<SocketAddr>,
    workers: Vec<(Arc<SinkShard>, Receiver)>,
    ledger: Option<Arc<SharedLedger>>,
    limit: Option<ByteRate>,
    steering: Option<Arc<Steering>>,
    lines: Option<Arc<LinesPlan>>,
    prefixes: Option<Arc<SharedPrefixes>>,
}

/// Binds the sockets of `plan` now, so a taken address is known before
/// anything starts. Connections and datagrams wait in the kernel from here on.
///
/// # Errors
/// [`BindError`] with the sink's id.
pub fn bind(plan: &SinkPlan) -> Result<BoundSink, BindError> {
    let first = Receiver::bind(plan)?;
    let address = first.address();
    let mut receivers = Vec::with_capacity(usize::from(plan.workers.get()));
    for _ in 1..plan.workers.get() {
        receivers.push(first.share().map_err(|source| BindError::Share {
            id: plan.id.clone(),
            workers: plan.workers.get(),
            source,
        })?);
    }
    receivers.push(first);
    let shard_of = |worker: usize| {
        let labels = Labels::none()
            .with("component", "sink")
            .with("component_name", plan.protocol.name())
            .with("id", plan.id.as_str())
            .with("worker", worker.to_string());
        Arc::new(SinkShard::new(labels))
    };
    let workers = receivers
        .into_iter()
        .enumerate()
        .map(|(worker, receiver)| (shard_of(worker), receiver))
        .collect();
    Ok(BoundSink {
        id: plan.id.clone(),
        address,
        workers,
        ledger: None,
        limit: plan.limit,
        steering: None,
        lines: plan.lines.clone().map(Arc::new),
        prefixes: plan
            .prefix
            .map(|framing| SharedPrefixes::new(&plan.id, plan.protocol.name(), framing))
            .map(Arc::new),
    })
}

impl BoundSink {
    /// Counts of its workers, in the order of their numbers.
    #[must_use]
    pub fn shards(&self) -> Vec<Arc<SinkShard>> {
        self.workers
            .iter()
            .map(|(shard, _)| Arc::clone(shard))
            .collect()
    }

    /// The same, entering all stamps that it receives into `ledger`.
    #[must_use]
    pub fn with_ledger(self, ledger: Arc<SharedLedger>) -> Self {
        Self {
            ledger: Some(ledger),
            ..self
        }
    }

    /// The same, and what changes how it behaves while it runs. Chance in that follows
    /// from `seed`.
    #[must_use]
    pub fn steered(mut self, seed: &Seed) -> (Self, SinkControl) {
        let place = match self.workers.first() {
            Some((_, receiver)) => receiver.place(),
            None => SocketPlace::Nowhere,
        };
        let steering = Steering::new(place, self.workers.len(), self.limit, seed);
        let steering = Arc::new(steering);
        self.steering = Some(Arc::clone(&steering));
        (self, SinkControl(steering))
    }

    /// Series that it records from what it receives, if it does: of its metrics, or of
    /// the times before its events.
    #[must_use]
    pub fn recorded(&self) -> Option<Arc<dyn Shard>> {
        let receivers = self.workers.iter().map(|(_, receiver)| receiver);
        let mut recorded = receivers.filter_map(|receiver| match receiver {
            Receiver::Intake { intake, .. } => intake.recorded(),
            _ => None,
        });
        // All workers share one, and only an intake can.
        let recorded = recorded.next().map(|recorded| recorded as Arc<dyn Shard>);
        let prefixes = self.prefixes.clone();
        recorded.or_else(|| prefixes.map(|prefixes| prefixes as Arc<dyn Shard>))
    }

    /// The address that it listens on, with the port that the kernel chose where
    /// the plan says 0; `None` for Unix sockets.
    #[must_use]
    pub const fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Starts its workers in `scope` at `place`, named by [`sink_worker_name`].
    ///
    /// # Errors
    /// The kernel's answer where it starts no more threads; those that were
    /// started end with the scope.
    pub fn start(self, scope: &mut Scope, place: &Place) -> io::Result<()> {
        let count = self.workers.len();
        for (number, (shard, receiver)) in self.workers.into_iter().enumerate() {
            let name = sink_worker_name(&self.id, &number);
            let ledger = self.ledger.clone();
            let lines = self.lines.clone();
            let (steering, prefixes) = (self.steering.clone(), self.prefixes.clone());
            let throttle = self.limit.map(|limit| Throttle::share(limit, count));
            scope.worker(place.clone(), &name, move |token| async move {
                let worker = Worker::new(shard, token)
                    .with_ledger(ledger)
                    .with_lines(lines)
                    .with_prefixes(prefixes);
                let worker = worker.with_throttle(throttle).with_steering(steering);
                let worker = Rc::new(worker);
                accounted(Rc::clone(&worker.base), receiver.run(worker)).await
            })?;
        }
        Ok(())
    }
}

/// The receiver of one worker.
#[derive(Debug)]
enum Receiver {
    Stream(StreamListener),
    Http {
        listener: StreamListener,
        connections_max: usize,
        answers: Arc<Answers>,
    },
    Intake {
        listener: StreamListener,
        connections_max: usize,
        intake: Arc<Intake>,
    },
    RoundTrip {
        listener: StreamListener,
        request_bytes: usize,
        response_bytes: usize,
    },
    File(Tail),
    Datagram {
        socket: DatagramSocket,
        file: Option<Arc<SocketFile>>,
    },
}

impl Receiver {
    fn bind(plan: &SinkPlan) -> Result<Self, BindError> {
        let refused = |source| BindError::Listen {
            id: plan.id.clone(),
            source,
        };
        Ok(match &plan.protocol {
            SinkProtocol::Tcp { address } => {
                Self::Stream(StreamListener::tcp(*address).map_err(refused)?)
            }
            SinkProtocol::UnixStream { path } => {
                Self::Stream(StreamListener::unix(path).map_err(refused)?)
            }
            SinkProtocol::File { path } => Self::File(Tail::of(path)),
            SinkProtocol::Udp { address } => Self::Datagram {
                socket: DatagramSocket::Udp(listen::udp(*address).map_err(refused)?),
                file: None,
            },
            SinkProtocol::UnixDatagram { path } => Self::Datagram {
                socket: DatagramSocket::Unix(listen::unix_datagram(path).map_err(refused)?),
                file: SocketFile::at(path).map(Arc::new),
            },
            SinkProtocol::Http {
                address,
                status,
                headers,
                body,
                delay,
                connections_max,
            } => {
                let answers = Answers::new(*status, headers, body, *delay);
                let answers = answers.map_err(|source| BindError::Answer {
                    id: plan.id.clone(),
                    source,
                })?;
                Self::Http {
                    listener: StreamListener::tcp(*address).map_err(refused)?,
                    connections_max: as_usize(*connections_max),
                    answers: Arc::new(answers),
                }
            }
            SinkProtocol::Intake {
                service,
                address,
                delay,
                connections_max,
            } => Self::Intake {
                listener: StreamListener::tcp(*address).map_err(refused)?,
                connections_max: as_usize(*connections_max),
                intake: Arc::new(Intake::new(&plan.id, service, *delay)),
            },
            SinkProtocol::TcpRr {
                address,
                request_bytes,
                response_bytes,
            } => {
                let length = |bytes: MessageLength| as_usize(bytes.bytes());
                Self::RoundTrip {
                    listener: StreamListener::tcp(*address).map_err(refused)?,
                    request_bytes: length(*request_bytes),
                    response_bytes: length(*response_bytes),
                }
            }
        })
    }

    /// A receiver for one more worker, from the same socket.
    fn share(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Stream(listener) => Self::Stream(listener.share()?),
            // Two that read one file would count it twice.
            Self::File(_) => return Err(io::ErrorKind::Unsupported.into()),
            Self::Http {
                listener,
                connections_max,
                answers,
            } => Self::Http {
                listener: listener.share()?,
                connections_max: *connections_max,
                answers: Arc::clone(answers),
            },
            Self::Intake {
                listener,
                connections_max,
                intake,
            } => Self::Intake {
                listener: listener.share()?,
                connections_max: *connections_max,
                intake: Arc::clone(intake),
            },
            Self::RoundTrip {
                listener,
                request_bytes,
                response_bytes,
            } => Self::RoundTrip {
                listener: listener.share()?,
                request_bytes: *request_bytes,
                response_bytes: *response_bytes,
            },
            Self::Datagram { socket, file } => Self::Datagram {
                socket: socket.share()?,
                file: file.clone(),
            },
        })
    }

    /// Returns the place where it listens.
    fn place(&self) -> SocketPlace {
        let path = |file: &Option<Arc<SocketFile>>| file.as_ref().map(|file| file.path().into());
        let (address, file, is_datagram) = match self {
            Self::Stream(listener)
            | Self::Http { listener, .. }
            | Self::Intake { listener, .. }
            | Self::RoundTrip { listener, .. } => (listener.address(), path(&listener.file), false),
            Self::Datagram { file, .. } => (self.address(), path(file), true),
            Self::File(_) => (None, None, false),
        };
        match (address, file, is_datagram) {
            (Some(address), _, false) => SocketPlace::Tcp(address),
            (Some(address), _, true) => SocketPlace::Udp(address),
            (None, Some(path), false) => SocketPlace::UnixStream(path),
            (None, Some(path), true) => SocketPlace::UnixDatagram(path),
            (None, None, _) => SocketPlace::Nowhere,
        }
    }

    fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Stream(listener)
            | Self::Http { listener, .. }
            | Self::Intake { listener, .. }
            | Self::RoundTrip { listener, .. } => listener.address(),
            Self::File(_) => None,
            Self::Datagram { socket, .. } => match socket {
                DatagramSocket::Udp(socket) => socket.local_addr().ok(),
                DatagramSocket::Unix(_) => None,
            },
        }
    }

    async fn run(self, worker: Rc<Worker>) -> Result<(), stillwell_scope::PartError> {
        match self {
            Self::Stream(listener) => accept(worker, listener, STREAMS_MAX, stream::count).await,
            Self::File(tail) => file::read(worker, tail).await,
            Self::Http {
                listener,
                connections_max,
                answers,
            } => {
                let serve = |worker: Rc<Worker>, stream: Stream, activity: Activity| {
                    http::serve(worker, Arc::clone(&answers), stream, activity)
                };
                accept(worker, listener, connections_max, serve).await
            }
            Self::Intake {
                listener,
                connections_max,
                intake,
            } => {
                let serve = |worker: Rc<Worker>, stream: Stream, activity: Activity| {
                    intake::serve(worker, Arc::clone(&intake), stream, activity)
                };
                accept(worker, listener, connections_max, serve).await
            }
            Self::RoundTrip {
                listener,
                request_bytes,
                response_bytes,
            } => {
                let serve = |worker: Rc<Worker>, stream: Stream, activity: Activity| {
                    let lengths = (request_bytes, response_bytes);
                    round_trip::answer(worker, lengths, stream, activity)
                };
                accept(worker, listener, STREAMS_MAX, serve).await
            }
            Self::Datagram { socket, file } => datagram::receive(worker, socket, file).await,
        }
    }
}
