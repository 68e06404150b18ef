//! The catalogue of ways in which bytes reach a target.

mod files;
mod passthru_file;
mod tcp;
mod tls;
mod udp;
mod unix_datagram;
mod unix_stream;

use std::future::Future;
use std::io::{self, ErrorKind};
use std::rc::Rc;

use stillwell_http::{HeadError, TargetError};
use stillwell_metric::Outcome;
use stillwell_plan::{AcknowledgedBy, GeneratorPlan, LoadPlanError, TransportPlan};
use stillwell_scope::Tasks;
use stillwell_units::Nanos;
use stillwell_wire::DialError;
use stillwell_wire::tls::TlsError;

use crate::acknowledged::{self, Posts};
use crate::broker::{Amqp, Kafka, Nats, Producer};
use crate::container::{self, ContainersToBe};
use crate::drive::drive;
use crate::exchange;
use crate::file_tree::{self, FileTree};
use crate::grpc::{self, Grpc};
use crate::hec::Hec;
use crate::kubernetes::{self, ClusterError, ObjectsToBe};
use crate::load::BlockLine;
use crate::proc_fs::{self, LayOutError, ProcFs};
use crate::process_tree::{self, ProcessTree, ProgramMissing};
use crate::round_trip::{self, RoundTrip};
use crate::trace_agent;
use crate::worker::{GRACE, Worker};
pub use files::FileControl;
use files::Files;
use passthru_file::PassthruFile;
use tcp::Tcp;
use tls::Tls;
use udp::Udp;
use unix_datagram::UnixDatagram;
use unix_stream::UnixStream;

/// Takes bytes and says nothing back; driven by [`drive`].
pub(crate) trait Transport: 'static {
    /// One open connection or socket.
    type Connection;

    /// Whether each block is a message of its own; else blocks join.
    const IS_MESSAGES: bool;

    /// Opens one more connection.
    fn connect(&self) -> impl Future<Output = Result<Self::Connection, DialError>>;

    /// Hands bytes to the kernel, as many as it takes at once; all or none where
    /// they are a message.
    fn try_send(connection: &Self::Connection, bytes: &[u8]) -> io::Result<usize>;

    /// Waits until the kernel may take more. Cancel-safe.
    fn writable(connection: &Self::Connection) -> impl Future<Output = io::Result<()>>;

    /// Sees to it that what was handed over arrives, before the connection goes. May
    /// be cut off.
    fn finish(_connection: &Self::Connection) -> impl Future<Output = ()> {
        std::future::ready(())
    }

    /// What a refusal by the kernel means.
    fn failure(error: &io::Error) -> Failure;
}

/// What a refusal by the kernel means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Failure {
    pub(crate) outcome: Outcome,
    /// Whether the connection is still good.
    pub(crate) is_good: bool,
}

/// One of the transports, ready to be opened on a worker.
#[derive(Clone, Debug)]
pub(crate) enum Line {
    Tcp(Tcp),
    Udp(Udp),
    UnixStream(UnixStream),
    UnixDatagram(UnixDatagram),
    Http(BlockLine),
    SplunkHec(Hec),
    Posts(Posts),
    Grpc(Grpc),
    Files(Files),
    PassthruFile(PassthruFile),
    RoundTrip(RoundTrip),
    FileTree(Box<FileTree>),
    Tls(Tls),
    ProcessTree(Box<ProcessTree>),
    ProcFs(ProcFs),
    Container(Box<ContainersToBe>),
    Kubernetes(Box<ObjectsToBe>),
    Kafka(Producer<Kafka>),
    Nats(Producer<Nats>),
    Amqp(Producer<Amqp>),
}

/// Why nothing can be sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LineError {
    #[error(transparent)]
    Url(#[from] TargetError),
    #[error(transparent)]
    Head(#[from] HeadError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Program(#[from] ProgramMissing),
    #[error(transparent)]
    LayOut(#[from] LayOutError),
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(transparent)]
    Requests(#[from] LoadPlanError),
}

impl Line {
    pub(crate) fn new(plan: &GeneratorPlan) -> Result<Self, LineError> {
        Ok(match &plan.transport {
            TransportPlan::Tcp { address } => Self::Tcp(Tcp::new(address)),
            TransportPlan::Udp { address, bind } => Self::Udp(Udp::new(address, bind)),
            TransportPlan::UnixStream { path } => Self::UnixStream(UnixStream::new(path)),
            TransportPlan::UnixDatagram { path } => Self::UnixDatagram(UnixDatagram::new(path)),
            TransportPlan::Http {
                url,
                headers,
                exchange,
            } => Self::Http(exchange::line(url, headers, exchange)?),
            TransportPlan::SplunkHec {
                url,
                token,
                acknowledgements,
            } => Self::SplunkHec(Hec::new(plan, url, token, *acknowledgements)?),
            TransportPlan::Acknowledged(asked) => match &asked.by {
                AcknowledgedBy::Status { headers } => Self::Posts(Posts::new(asked, headers)?),
                AcknowledgedBy::SplunkHec { token, questions } => {
                    let hec = Hec::new(plan, &asked.url, token, Some(*questions))?;
                    Self::SplunkHec(hec.acknowledged(asked))
                }
            },
            TransportPlan::Grpc { url } => Self::Grpc(Grpc::new(url)?),
            TransportPlan::TraceAgent { url, retries } => {
                Self::Posts(trace_agent::posts(plan, url, *retries)?)
            }
            TransportPlan::Files { layout, bytes_max } => {
                let (bytes_max, files) = (bytes_max.bytes(), plan.connections);
                Self::Files(Files::new(layout, bytes_max, files, &plan.seed))
            }
            TransportPlan::PassthruFile { path } => Self::PassthruFile(PassthruFile::new(path)),
            TransportPlan::TcpRr {
                address,
                request_bytes,
                response_bytes,
            } => Self::RoundTrip(RoundTrip {
                address: address.clone(),
                request_bytes: *request_bytes,
                response_bytes: *response_bytes,
            }),
            TransportPlan::FileTree(tree) => {
                Self::FileTree(Box::new(FileTree::new(tree, &plan.seed)))
            }
            TransportPlan::Tls { to, tls } => Self::Tls(Tls::new(to, tls)?),
            TransportPlan::ProcessTree(tree) => {
                Self::ProcessTree(Box::new(ProcessTree::new(tree, &plan.seed)?))
            }
            TransportPlan::ProcFs(folder) => Self::ProcFs(ProcFs::new(folder, &plan.seed)?),
            TransportPlan::Container(containers) => {
                Self::Container(Box::new(ContainersToBe::new(containers, &plan.id)))
            }
            TransportPlan::Kubernetes(objects) => {
                Self::Kubernetes(Box::new(ObjectsToBe::new(objects, &plan.id)?))
            }
            TransportPlan::Kafka(to) => Self::Kafka(Producer::new(plan, Kafka::new(to)?)),
            TransportPlan::Nats(to) => Self::Nats(Producer::new(plan, Nats::new(to)?)),
            TransportPlan::Amqp(to) => Self::Amqp(Producer::new(plan, Amqp::new(to)?)),
        })
    }

    /// What moves or empties the log that is written, if one is.
    pub(crate) fn files(&self) -> Option<FileControl> {
        match self {
            Self::Files(files) => files.control(),
            _ => None,
        }
    }

    /// Whether blocks that leave together are answered one by one.
    pub(crate) const fn answers_blocks(&self) -> bool {
        matches!(self, Self::Kafka(_) | Self::Nats(_) | Self::Amqp(_))
    }

    /// How long what was begun may take to end after a stop.
    pub(crate) fn grace(&self) -> Nanos {
        let patience = match self {
            Self::Posts(posts) => posts.patience(),
            Self::SplunkHec(hec) => hec.patience(),
            _ => Nanos::ZERO,
        };
        patience.max(self.grace_at_the_end())
    }

    /// The same after the end of everything, where nobody else waits for it.
    pub(crate) const fn grace_at_the_end(&self) -> Nanos {
        match self {
            // What is not deleted by then stays in the cluster.
            Self::Kubernetes(_) => kubernetes::GRACE,
            _ => GRACE,
        }
    }

    /// Tasks of so many connections at most.
    pub(crate) fn tasks_of(&self, connections: u16) -> usize {
        let connections = usize::from(connections);
        match self {
            Self::SplunkHec(hec) => connections * hec.tasks_each(),
            // And the one that says when.
            Self::Http(_) => connections + 1,
            Self::Container(containers) => usize::try_from(containers.count()).unwrap_or(1),
            Self::Kubernetes(objects) => objects.count(),
            _ => connections,
        }
    }

    /// Starts the tasks of `connections` connections.
    pub(crate) fn open(self, worker: &Rc<Worker>, connections: u16, tasks: &mut Tasks) {
        match self {
            Self::Tcp(tcp) => push(tcp, worker, connections, tasks),
            Self::Udp(udp) => push(udp, worker, connections, tasks),
            Self::UnixStream(unix) => push(unix, worker, connections, tasks),
            Self::UnixDatagram(unix) => push(unix, worker, connections, tasks),
            Self::Http(http) => http.open(worker, connections, tasks),
            Self::SplunkHec(hec) => {
                for _ in 0..connections {
                    hec.open(worker, tasks);
                }
            }
            Self::Posts(posts) => {
                for _ in 0..connections {
                    tasks.spawn(acknowledged::send(Rc::clone(worker), posts.clone()));
                }
            }
            Self::Grpc(grpc) => {
                for _ in 0..connections {
                    tasks.spawn(grpc::send(Rc::clone(worker), grpc.clone()));
                }
            }
            Self::Files(files) => push(files, worker, connections, tasks),
            Self::PassthruFile(file) => push(file, worker, connections, tasks),
            Self::RoundTrip(plan) => {
                for _ in 0..connections {
                    tasks.spawn(round_trip::send(Rc::clone(worker), plan.clone()));
                }
            }
            Self::FileTree(tree) => tasks.spawn(file_tree::work(Rc::clone(worker), *tree)),
            Self::Tls(tls) => push(tls.for_worker(), worker, connections, tasks),
            Self::ProcessTree(trees) => {
                tasks.spawn(process_tree::work(Rc::clone(worker), *trees));
            }
            Self::ProcFs(laid_out) => tasks.spawn(proc_fs::tell(Rc::clone(worker), laid_out)),
            Self::Container(containers) => {
                let count = containers.count();
                let containers = containers.on_worker();
                for _ in 0..count {
                    tasks.spawn(container::churn(Rc::clone(worker), containers.clone()));
                }
            }
            Self::Kubernetes(objects) => objects.open(worker, tasks),
            Self::Kafka(producer) => producer.open(worker, connections, tasks),
            Self::Nats(producer) => producer.open(worker, connections, tasks),
            Self::Amqp(producer) => producer.open(worker, connections, tasks),
        }
    }
}

fn push(transport: impl Transport, worker: &Rc<Worker>, connections: u16, tasks: &mut Tasks) {
    let transport = Rc::new(transport);
    for _ in 0..connections {
        tasks.spawn(drive(Rc::clone(worker), Rc::clone(&transport)));
    }
}

/// What a refusal on a stream counts as.
pub(crate) fn stream_outcome(error: &io::Error) -> Outcome {
    match error.kind() {
        // An end that TLS has not announced is one all the same.
        ErrorKind::BrokenPipe
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::UnexpectedEof => Outcome::PeerClosed,
        // What arrived is no TLS.
        ErrorKind::InvalidData => Outcome::Malformed,
        ErrorKind::TimedOut => Outcome::TimedOut,
        _ => Outcome::SendFailed,
    }
}
