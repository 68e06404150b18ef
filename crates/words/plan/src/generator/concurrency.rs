//! Connections of a generator and the threads that they are spread over.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::load::FleetShare;

/// Connections (or sockets) of a generator in all, at least one, and the threads over which
/// they are spread, at least one and at most as many.
///
/// If several processes share a generator, each has the same number of threads, and the
/// connections that these threads would have in one process with all threads.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(try_from = "ConcurrencyParts")]
pub struct Concurrency {
    /// Of all processes.
    connections: u16,
    /// Of this process.
    workers: u16,
    #[serde(rename = "part", skip_serializing_if = "Option::is_none")]
    share: Option<FleetShare>,
}

#[derive(Deserialize)]
struct ConcurrencyParts {
    connections: u16,
    workers: u16,
    #[serde(default)]
    part: Option<FleetShare>,
}

/// Numbers of connections and workers that do not go together.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "`workers` is {workers} and `connections` is {connections}: use at least one worker, and at \
     least one connection for each worker"
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
        share: None,
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
            share: None,
        })
    }

    /// Returns the concurrency of `processes` processes together, each with the threads of this
    /// one: the same connections, or one for each thread if these are fewer.
    ///
    /// # Errors
    /// No process, or more than 65,535 threads.
    pub fn of_processes(self, processes: u16) -> Result<Self, ConcurrencyError> {
        let connections = self.connections;
        let workers = self
            .workers
            .checked_mul(processes)
            .filter(|_| processes > 0);
        let workers = workers.ok_or(ConcurrencyError {
            connections,
            workers: processes,
        })?;
        Self::try_new(connections.max(workers), workers)
    }

    /// Returns the part of one of several processes that share this concurrency.
    ///
    /// # Errors
    /// Threads that cannot be shared evenly.
    pub fn part(self, share: FleetShare) -> Result<Self, ConcurrencyError> {
        let (connections, workers) = (self.connections, self.workers);
        if !workers.is_multiple_of(share.of()) {
            return Err(ConcurrencyError {
                connections,
                workers,
            });
        }
        Ok(Self {
            connections,
            workers: workers / share.of(),
            share: Some(share),
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
            share: None,
        }
    }

    /// Number of connections of this process.
    #[must_use]
    pub fn connections(self) -> u16 {
        self.worker_numbers()
            .map(|worker| self.connections_of(worker))
            .sum()
    }

    /// Number of connections of all processes.
    #[must_use]
    pub const fn all_connections(self) -> u16 {
        self.connections
    }

    /// Number of connections of the processes before this one.
    #[must_use]
    pub fn connections_before(self) -> u16 {
        (0..self.worker_numbers().start)
            .map(|worker| self.connections_of(worker))
            .sum()
    }

    /// Threads over which the connections of this process are spread.
    #[must_use]
    pub const fn workers(self) -> u16 {
        self.workers
    }

    /// Number of threads of all processes.
    #[must_use]
    pub fn all_workers(self) -> u32 {
        u32::from(self.workers) * self.share.map_or(1, |share| share.of().into())
    }

    /// Numbers of the threads of this process among those of all processes.
    #[must_use]
    pub fn worker_numbers(self) -> Range<u32> {
        let index = self.share.map_or(0, |share| share.index().into());
        let first = u32::from(self.workers) * index;
        first..first + u32::from(self.workers)
    }

    /// Number of connections of a thread: an even share, and one of the odd ones for the first
    /// threads.
    #[must_use]
    pub fn connections_of(self, worker: u32) -> u16 {
        let (connections, workers) = (u32::from(self.connections), self.all_workers());
        let count = connections / workers + u32::from(worker < connections % workers);
        u16::try_from(count).unwrap_or(u16::MAX)
    }
}

impl TryFrom<ConcurrencyParts> for Concurrency {
    type Error = ConcurrencyError;

    fn try_from(parts: ConcurrencyParts) -> Result<Self, ConcurrencyError> {
        let whole = Self::try_new(parts.connections, parts.workers)?;
        let Some(share) = parts.part else {
            return Ok(whole);
        };
        let processes = whole.of_processes(share.of())?;
        if processes.connections > whole.connections {
            return Err(ConcurrencyError {
                connections: whole.connections,
                workers: processes.workers,
            });
        }
        processes.part(share)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn for_all_processes_the_parts_are_the_whole(
            processes in 1_u16..40,
            threads in 1_u16..5,
            spare in 0_u16..200,
        ) {
            let single = Concurrency::try_new(threads + spare, threads).unwrap();
            let whole = single.of_processes(processes).unwrap();
            prop_assert_eq!(whole.all_connections(), (threads + spare).max(threads * processes));
            let shares = (0..processes).filter_map(|index| FleetShare::new(index, processes));
            let parts: Vec<_> = shares.map(|share| whole.part(share).unwrap()).collect();
            let connections: u16 = parts.iter().map(|part| part.connections()).sum();
            prop_assert_eq!(connections, whole.connections());
            let mut before = 0;
            for part in &parts {
                prop_assert_eq!(part.connections_before(), before);
                before += part.connections();
                prop_assert_eq!(part.all_workers(), u32::from(whole.workers()));
                let text = serde_json::to_string(part).unwrap();
                prop_assert_eq!(&serde_json::from_str::<Concurrency>(&text).unwrap(), part);
            }
            let numbers: Vec<u32> = parts.iter().flat_map(|part| part.worker_numbers()).collect();
            prop_assert_eq!(numbers, (0..u32::from(whole.workers())).collect::<Vec<_>>());
        }
    }

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
