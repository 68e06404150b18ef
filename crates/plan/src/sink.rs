//! Who receives what the subject sends on.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use stillwell_units::Nanos;

/// One receiver.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct SinkPlan {
    /// Unique among the rig's sinks; labels what it records.
    pub id: String,
    /// What it speaks.
    pub protocol: SinkProtocol,
    /// Threads, at least one.
    pub workers: u16,
}

/// What a sink speaks.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SinkProtocol {
    /// Reads and counts; events are lines.
    Tcp {
        /// Where it listens.
        address: SocketAddr,
    },
    /// Reads and counts; events are lines, a datagram holds at least one.
    Udp {
        /// Where it listens.
        address: SocketAddr,
    },
    /// Reads and counts; events are lines.
    UnixStream {
        /// Its socket; a stale one is replaced.
        path: PathBuf,
    },
    /// Reads and counts; events are lines, a datagram holds at least one.
    UnixDatagram {
        /// Its socket; a stale one is replaced.
        path: PathBuf,
    },
    /// Answers every HTTP/1.1 request.
    Http {
        /// Where it listens.
        address: SocketAddr,
        /// Status of every answer.
        status: u16,
        /// Headers of every answer, besides Content-Length.
        headers: Vec<(String, String)>,
        /// Body of every answer.
        body: SinkBody,
        /// Time between the end of a request and its answer.
        delay: Nanos,
        /// Connections served at once; more wait in the backlog.
        connections_max: u32,
    },
}

impl SinkProtocol {
    /// The name under which the protocol is asked for.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Tcp { .. } => "tcp",
            Self::Udp { .. } => "udp",
            Self::UnixStream { .. } => "unix_stream",
            Self::UnixDatagram { .. } => "unix_datagram",
            Self::Http { .. } => "http",
        }
    }
}

/// The body of every answer of an HTTP sink.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SinkBody {
    /// No bytes.
    Empty,
    /// Always these bytes.
    Static(Vec<u8>),
}
