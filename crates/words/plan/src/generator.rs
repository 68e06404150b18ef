//! Senders of load: destination, payload and rate.

mod acknowledged;
mod broker;
mod concurrency;
mod exchange;
mod kubernetes;
mod message_length;
mod places;
mod properties;
mod renames;
mod requests;
mod system;

use std::num::NonZeroU32;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use stillwell_units::{ByteSize, Nanos, Seed};

use crate::load::Spacing;
use crate::scenario::ScenarioPlan;
use crate::tls::ClientTlsPlan;
use crate::{PayloadPlan, RatePlan, StampPlan};

pub use acknowledged::{AcknowledgedBy, AcknowledgedPlan};
pub use broker::{
    AmqpPlan, KafkaAcks, KafkaCompression, KafkaPlan, Login, MessageOf, NatsAcks, NatsLogin,
    NatsPlan, ProducerPlan,
};
pub use concurrency::{Concurrency, ConcurrencyError};
pub use exchange::ExchangePlan;
pub use kubernetes::{KubernetesKind, KubernetesPlan};
pub use message_length::{MessageLength, MessageLengthError};
pub use properties::{
    EventsDefault, StampForms, TransportProperties, TransportRecords, TransportTarget,
};
pub use renames::{RenameShare, RenameShareError};
pub use requests::RequestsPlan;
pub use system::{ContainerPlan, ExecutablePlan, ProcFsPlan, ProcessTreePlan, WordsPlan};

/// One source of load.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct GeneratorPlan {
    /// Unique among the run's generators; labels what it records.
    pub id: String,
    /// The transport of bytes to the target.
    pub transport: TransportPlan,
    /// The sent content.
    pub payload: PayloadPlan,
    /// When it is sent: always the total of all connections.
    pub rate: RatePlan,
    /// Its connections and threads.
    #[serde(flatten)]
    pub concurrency: Concurrency,
    /// From which the payload's bytes follow.
    pub seed: Seed,
    /// The stamped events; `None` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamps: Option<StampPlan>,
}

impl GeneratorPlan {
    /// Number of the streams of stamped events of all processes that share this generator: each
    /// connection has some, also if nothing is stamped.
    #[must_use]
    pub fn all_streams(&self) -> u32 {
        let connections = u32::from(self.concurrency.all_connections());
        self.transport
            .properties()
            .streams
            .saturating_mul(connections)
    }
}

/// The transport of bytes to the target.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TransportPlan {
    /// A TCP stream of blocks, nothing between them.
    Tcp {
        /// `host:port` of the target.
        address: String,
    },
    /// One datagram a block.
    Udp {
        /// `host:port` of the target.
        address: String,
        /// Local `host:port` to send from.
        bind: String,
    },
    /// A Unix stream of blocks, nothing between them.
    UnixStream {
        /// The target's socket.
        path: PathBuf,
    },
    /// One Unix datagram a block.
    UnixDatagram {
        /// The target's socket.
        path: PathBuf,
    },
    /// One HTTP POST a block.
    Http {
        /// `http://host:port/path`, or `https://…`.
        url: String,
        /// Headers besides Host and Content-Length, in this order.
        headers: Vec<(String, String)>,
        /// Over which connections.
        #[serde(default)]
        exchange: Box<ExchangePlan>,
    },
    /// HTTP requests of any kind, sent in turn. The payload only paces: a block a request.
    Requests(Box<RequestsPlan>),
    /// Users that follow steps over HTTP/1.1, a connection each. The payload only paces: a block a
    /// user.
    Scenario(Box<ScenarioPlan>),
    /// Splunk's HTTP event collector: one HTTP/1.1 POST a block, one request in
    /// flight a connection, each connection a channel of its own.
    SplunkHec {
        /// `http://host:port`; the path follows from the payload's encoding.
        url: String,
        /// The token after `Splunk` in `Authorization`.
        token: String,
        /// Polling for acknowledgements of the events, if any.
        acknowledgements: Option<HecAcknowledgements>,
    },
    /// One HTTP POST a block, again until it is acknowledged.
    Acknowledged(Box<AcknowledgedPlan>),
    /// One unary gRPC call a block over HTTP/2, one call in flight a connection.
    Grpc {
        /// `http://host:port/package.Service/Method`.
        url: String,
    },
    /// Traces for Datadog's agent: one HTTP/1.1 POST a block, one request in flight
    /// a connection.
    TraceAgent {
        /// `http://host:port`; the path is `/v0.4/traces`.
        url: String,
        /// Maximum number of repetitions of a request that was answered with 429 or 503,
        /// after pauses that double.
        retries: u32,
    },
    /// Files that a program reads while they grow: each connection is one, each
    /// block one write.
    Files {
        /// The names of the files.
        layout: FileLayout,
        /// A file that is longer after a block is followed by a new one.
        bytes_max: ByteSize,
    },
    /// Something that is there already and can be written to: a pipe, a device,
    /// the end of a file.
    PassthruFile {
        /// Its path.
        path: PathBuf,
    },
    /// Requests of fixed length over TCP, and answers of fixed length; one
    /// request in flight a connection. The payload only paces: a block a request.
    TcpRr {
        /// `host:port` of the target.
        address: String,
        /// Length of a request.
        request_bytes: MessageLength,
        /// Length of a response.
        response_bytes: MessageLength,
    },
    /// Creates, opens and renames files and folders. The payload
    /// only paces: a block an operation.
    FileTree(FileTreePlan),
    /// A stream of blocks over TLS, nothing between them.
    Tls {
        /// The destination.
        to: StreamTarget,
        /// The settings of TLS.
        tls: Box<ClientTlsPlan>,
    },
    /// Trees of processes that start, run programs and end. The payload only
    /// paces: a block a tree.
    ProcessTree(ProcessTreePlan),
    /// A folder that looks like `/proc`, laid out before the run. Nothing is sent.
    ProcFs(ProcFsPlan),
    /// Containers that come and go. The payload only paces: a block a container.
    Container(Box<ContainerPlan>),
    /// Objects of a Kubernetes cluster that come and go. The payload only paces: a block
    /// an object.
    Kubernetes(Box<KubernetesPlan>),
    /// Records for a topic of Kafka.
    Kafka(Box<KafkaPlan>),
    /// Messages for NATS.
    Nats(Box<NatsPlan>),
    /// Messages for an exchange of AMQP 0-9-1.
    Amqp(Box<AmqpPlan>),
}

/// Destination of a stream.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamTarget {
    /// `host:port`.
    Tcp(String),
    /// A Unix socket.
    Unix(PathBuf),
}

/// Names of the files of a generator.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileLayout {
    /// By number, each new file the next one.
    Numbered {
        /// An absolute path; `%NNN%` is replaced by the number.
        template: String,
        /// True if a file is deleted when the next one begins.
        delete: bool,
    },
    /// As `logrotate` has it: the newest part under the log's own name, older ones
    /// behind it under `.0`, `.1` and so on.
    Rotated {
        /// The folder of all logs; it is made where it is not there.
        root: PathBuf,
        /// Logs lie at most so many folders below it.
        depth_max: u8,
        /// Older parts that are kept of each log.
        rotations: u8,
    },
    /// One log under one name, for one connection: what is full is moved or emptied,
    /// and the same name goes on.
    Log {
        /// The log; it is made where it is not there.
        path: PathBuf,
        /// The action on a full file.
        full: WhenFull,
        /// Older parts that are kept, under `.0`, `.1` and so on.
        rotations: u8,
        /// Pause in writing before that happens, so a reader can have
        /// read all of it.
        #[serde(rename = "settle")]
        pause: Nanos,
    },
    /// The same in a file system of our own, which holds nothing: contents are there when
    /// a program reads them, and unread bytes that are dropped are counted. Older parts are
    /// called `.1`, `.2` and so on.
    Mounted {
        /// Mount point; a missing folder is created.
        at: PathBuf,
        /// Logs lie at most so many folders below it.
        depth_max: u8,
        /// Older parts that are kept of each log.
        rotations: u8,
    },
    /// One file to which everything is appended, also after existing content.
    Appended {
        /// The file; it is made where it is not there.
        path: PathBuf,
    },
}

/// The action on a full log.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// It gets another name, and a new file its own.
    Rename,
    /// Its content is copied to another name, then the file is emptied.
    CopyTruncate,
    /// It is emptied.
    Truncate,
}

impl WhenFull {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Rename, Self::CopyTruncate, Self::Truncate];

    /// The word in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rename => "rename",
            Self::CopyTruncate => "copy_truncate",
            Self::Truncate => "truncate",
        }
    }
}

/// A tree of files, and how fast it is worked on.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct FileTreePlan {
    /// The folder that all lie in.
    pub root: PathBuf,
    /// Folders within folders.
    pub depth_max: NonZeroU32,
    /// Folders in each folder.
    pub folders_max: NonZeroU32,
    /// Files in each folder.
    pub files_max: NonZeroU32,
    /// Files and folders in all.
    pub nodes_max: NonZeroU32,
    /// Characters of a name.
    pub name_length: NonZeroU32,
    /// Share of operations that rename.
    #[serde(flatten)]
    pub renames: RenameShare,
}

/// Polling for Splunk's acknowledgements.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct HecAcknowledgements {
    /// Time between two questions on one channel; above zero.
    pub every: Nanos,
    /// A request that is not acknowledged within this time counts as lost.
    pub timeout: Nanos,
}

impl TransportPlan {
    /// Spacing of single sends on the rate: only requests have one that is not even.
    #[must_use]
    pub const fn spacing(&self) -> Spacing {
        match self {
            Self::Requests(plan) => plan.spacing(),
            _ => Spacing::Even,
        }
    }

    /// The common part of producers for all brokers, if this is one.
    #[must_use]
    pub fn producer(&self) -> Option<&ProducerPlan> {
        match self {
            Self::Kafka(plan) => Some(&plan.producer),
            Self::Nats(plan) => Some(&plan.producer),
            Self::Amqp(plan) => Some(&plan.producer),
            _ => None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
