//! Who sends, where to, and when.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use stillwell_units::{ByteRate, ByteSize, EventRate, Seed};

use crate::PayloadPlan;

/// One source of load.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct GeneratorPlan {
    /// Unique among the rig's generators; labels what it records.
    pub id: String,
    /// How bytes reach the target.
    pub transport: TransportPlan,
    /// What is sent.
    pub payload: PayloadPlan,
    /// When it is sent: always the total of all connections.
    pub rate: RatePlan,
    /// Connections (or sockets) in all, at least one.
    pub connections: u16,
    /// Threads over which connections are spread, at least one and at most
    /// `connections`.
    pub workers: u16,
    /// From which the payload's bytes follow.
    pub seed: Seed,
}

/// How bytes reach the target.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
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
    /// One HTTP/1.1 POST a block, one request in flight a connection.
    Http {
        /// `http://host:port/path`.
        url: String,
        /// Headers besides Host and Content-Length, in this order.
        headers: Vec<(String, String)>,
    },
}

impl TransportPlan {
    /// The name under which the transport is asked for.
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

    /// The largest block that the transport carries, if it has a limit.
    #[must_use]
    pub const fn block_limit(&self) -> Option<ByteSize> {
        match self {
            // The largest UDP payload over IPv4: 65,535 less 20 and 8 bytes of headers.
            Self::Udp { .. } => Some(ByteSize::new(65_507)),
            // What a default socket buffer certainly takes, as lading has it.
            Self::UnixDatagram { .. } => Some(ByteSize::new(8192)),
            Self::Tcp { .. } | Self::UnixStream { .. } | Self::Http { .. } => None,
        }
    }
}

/// When it is sent.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct RatePlan {
    /// What is counted.
    pub unit: RateUnit,
    /// How many of them are asked for over time.
    pub shape: RateShape,
}

impl RatePlan {
    /// As fast as the target takes it.
    pub const MAX: Self = Self {
        unit: RateUnit::Bytes,
        shape: RateShape::Max,
    };

    /// A constant rate in bytes.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "no link carries 2^53 bytes a second"
    )]
    pub const fn bytes(rate: ByteRate) -> Self {
        Self {
            unit: RateUnit::Bytes,
            shape: RateShape::Constant {
                per_second: rate.bytes_per_second() as f64,
            },
        }
    }

    /// A constant rate in events.
    #[must_use]
    pub const fn events(rate: EventRate) -> Self {
        Self {
            unit: RateUnit::Events,
            shape: RateShape::Constant {
                per_second: rate.events_per_second(),
            },
        }
    }

    /// Whether the schedule never holds the generator back.
    #[must_use]
    pub const fn is_max(&self) -> bool {
        matches!(self.shape, RateShape::Max)
    }
}

/// What a rate counts.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RateUnit {
    /// Payload bytes, without the transport's own.
    Bytes,
    /// Events, as the payload counts them.
    Events,
    /// Whole blocks.
    Blocks,
}

/// How many units are asked for over time. All figures are finite; rates are
/// above zero.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RateShape {
    /// As fast as the target takes it.
    Max,
    /// The same rate all the time.
    Constant {
        /// Units each second.
        per_second: f64,
    },
    /// From `initial_per_second`, growing evenly until `maximum_per_second`.
    Ramp {
        /// Units each second at the start.
        initial_per_second: f64,
        /// Units each second at the end.
        maximum_per_second: f64,
        /// Growth of the rate in each second.
        change_per_second: f64,
    },
}
