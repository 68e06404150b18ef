//! Connections of a generator and the threads that they are spread over.

use serde::{Deserialize, Serialize};

/// Connections (or sockets) of a generator in all, at least one, and the threads over which
/// they are spread, at least one and at most as many.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(try_from = "ConcurrencyParts")]
pub struct Concurrency {
    connections: u16,
    workers: u16,
}

#[derive(Deserialize)]
struct ConcurrencyParts {
    connections: u16,
    workers: u16,
}

/// Numbers of connections and workers that do not go together.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "{workers} workers cannot share {connections} connections: each has at least one, and there is \
     at least one worker"
)]
pub struct ConcurrencyError {
    connections: u16,
    workers: u16,
}

impl Concurrency {
    /// One connection on one thread.
    pub const ONE: Self = Self {
        connections: 1,
        workers: 1,
    };

    /// Returns `connections` on `workers` threads.
    ///
    /// # Errors
    /// No worker, or fewer connections than workers.
    pub const fn try_new(connections: u16, workers: u16) -> Result<Self, ConcurrencyError> {
        if workers == 0 || connections < workers {
            return Err(ConcurrencyError {
                connections,
                workers,
            });
        }
        Ok(Self {
            connections,
            workers,
        })
    }

    /// Returns as many threads, or one for each of `connections` if these are fewer. There is
    /// at least one connection.
    #[must_use]
    pub fn with_connections(self, connections: u16) -> Self {
        let connections = connections.max(1);
        Self {
            connections,
            workers: self.workers.min(connections),
        }
    }

    /// Total number of connections.
    #[must_use]
    pub const fn connections(self) -> u16 {
        self.connections
    }

    /// Threads over which they are spread.
    #[must_use]
    pub const fn workers(self) -> u16 {
        self.workers
    }
}

impl TryFrom<ConcurrencyParts> for Concurrency {
    type Error = ConcurrencyError;

    fn try_from(parts: ConcurrencyParts) -> Result<Self, ConcurrencyError> {
        Self::try_new(parts.connections, parts.workers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_worker_has_a_connection() {
        for (connections, workers) in [(0, 0), (1, 0), (0, 1), (1, 2), (7, 8)] {
            assert!(Concurrency::try_new(connections, workers).is_err());
        }
        let both = Concurrency::try_new(8, 3).unwrap();
        assert_eq!((both.connections(), both.workers()), (8, 3));
        assert_eq!(
            both.with_connections(2),
            Concurrency::try_new(2, 2).unwrap()
        );
        assert_eq!(both.with_connections(0), Concurrency::ONE);
    }

    #[test]
    fn a_recorded_plan_is_checked() {
        let read = |text| serde_json::from_str::<Concurrency>(text);
        let both = Concurrency::try_new(2, 1).unwrap();
        assert_eq!(read(r#"{"connections":2,"workers":1}"#).unwrap(), both);
        assert!(read(r#"{"connections":2,"workers":3}"#).is_err());
    }
}
