//! Counters of a test server.

use std::array;
use std::collections::BTreeMap;
use std::sync::Arc;

use stillwell_metric::{Cell, SinkShard};
use stillwell_plan::serve::Fault;

const STATUS_MIN: u16 = 200;
const STATUSES: usize = 400;

/// Counters of one worker.
#[derive(Debug)]
pub(crate) struct ServeShard {
    pub(crate) requests: Cell,
    pub(crate) body_bytes: Cell,
    pub(crate) sent_bytes: Cell,
    pub(crate) received_bytes: Cell,
    pub(crate) malformed: Cell,
    pub(crate) abandoned: Cell,
    pub(crate) handshakes: Cell,
    pub(crate) resumed: Cell,
    pub(crate) handshakes_failed: Cell,
    statuses: [Cell; STATUSES],
    faults: [Cell; Fault::NAMED.len()],
}

impl ServeShard {
    pub(crate) fn new() -> Self {
        Self {
            requests: Cell::default(),
            body_bytes: Cell::default(),
            sent_bytes: Cell::default(),
            received_bytes: Cell::default(),
            malformed: Cell::default(),
            abandoned: Cell::default(),
            handshakes: Cell::default(),
            resumed: Cell::default(),
            handshakes_failed: Cell::default(),
            statuses: array::from_fn(|_| Cell::default()),
            faults: array::from_fn(|_| Cell::default()),
        }
    }

    /// One more answer with `status`, from 200 to 599.
    pub(crate) fn count_status(&self, status: u16) {
        let at = usize::from(status.saturating_sub(STATUS_MIN));
        if let Some(cell) = self.statuses.get(at) {
            cell.add(1);
        }
    }

    /// One more `fault` that has a name.
    pub(crate) fn count_fault(&self, fault: Fault) {
        if let Some(at) = Fault::NAMED.iter().position(|named| *named == fault) {
            self.faults[at].add(1);
        }
    }
}

/// Reader of a test server's counters, at any time.
#[derive(Clone, Debug)]
pub struct ServeCounter {
    pub(crate) shards: Vec<(Arc<SinkShard>, Arc<ServeShard>)>,
}

/// Counts of a test server.
///
/// Every request that came whole is in exactly one place: under its status,
/// under its fault, or among the abandoned.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ServeCounts {
    /// Connections accepted.
    pub connections: u64,
    /// Requests that came whole.
    pub requests: u64,
    /// Answers by status; a status that was never sent is not there.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests that met a fault, by its name.
    pub faults: BTreeMap<&'static str, u64>,
    /// Requests whose client, or whose server, went before their answer was due.
    pub abandoned: u64,
    /// Requests that break HTTP, answered by 400 or by a reset of their stream, and
    /// connections that do.
    pub malformed: u64,
    /// Bytes of requests' bodies.
    pub body_bytes: u64,
    /// Bytes of answers that were sent, heads included and TLS excluded.
    pub sent_bytes: u64,
    /// Bytes of requests that were received, heads included and TLS excluded.
    pub received_bytes: u64,
    /// TLS handshakes that succeeded.
    pub handshakes: u64,
    /// Those of them that resumed a session.
    pub resumed: u64,
    /// TLS handshakes that failed.
    pub handshakes_failed: u64,
}

impl ServeCounter {
    /// Returns the number of workers that count.
    pub(crate) fn workers(&self) -> u64 {
        self.shards.len() as u64
    }

    /// The counts so far, of all workers together.
    #[must_use]
    pub fn total(&self) -> ServeCounts {
        let mut total = ServeCounts::default();
        for (sink, shard) in &self.shards {
            total.connections += sink.connections.total();
            total.requests += shard.requests.total();
            total.abandoned += shard.abandoned.total();
            total.malformed += shard.malformed.total();
            total.body_bytes += shard.body_bytes.total();
            total.sent_bytes += shard.sent_bytes.total();
            total.received_bytes += shard.received_bytes.total();
            total.handshakes += shard.handshakes.total();
            total.resumed += shard.resumed.total();
            total.handshakes_failed += shard.handshakes_failed.total();
            for (status, cell) in (STATUS_MIN..).zip(&shard.statuses) {
                if cell.total() > 0 {
                    *total.statuses.entry(status).or_default() += cell.total();
                }
            }
            for (fault, cell) in Fault::NAMED.iter().zip(&shard.faults) {
                if cell.total() > 0 {
                    *total.faults.entry(fault.name()).or_default() += cell.total();
                }
            }
        }
        total
    }
}
