//! Counters of the simulated file systems.

use crate::catalogue as metric;
use crate::cell::Cell;
use crate::sample::{Labels, Sample};
use crate::shard::Shard;

/// Counters of a simulated disk.
#[derive(Debug)]
pub struct DiskShard {
    labels: Labels,
    /// Bytes that programs wrote.
    pub written: Cell,
    /// Those of them that an `fsync` came after and was answered.
    pub synced: Cell,
    /// Answered `fsync`s of files and folders.
    pub fsyncs: Cell,
    /// Writes that found no room, or not enough.
    pub refused: Cell,
    /// Bytes of all files.
    pub used: Cell,
}

impl DiskShard {
    /// For the disk that is mounted at `path`.
    #[must_use]
    pub fn new(path: &str) -> Self {
        Self {
            labels: Labels::none().with("component", "disk").with("id", path),
            written: Cell::default(),
            synced: Cell::default(),
            fsyncs: Cell::default(),
            refused: Cell::default(),
            used: Cell::default(),
        }
    }
}

impl Shard for DiskShard {
    fn sample(&self, samples: &mut Vec<Sample>) {
        for (metric, cell) in [
            (metric::DISK_BYTES_WRITTEN, &self.written),
            (metric::DISK_BYTES_SYNCED, &self.synced),
            (metric::DISK_FSYNCS, &self.fsyncs),
            (metric::DISK_WRITES_REFUSED, &self.refused),
            (metric::DISK_BYTES_USED, &self.used),
        ] {
            samples.push(Sample::int(metric, &self.labels, cell.total()));
        }
    }
}

/// Counters of a file system of growing logs, besides those of its generator.
#[derive(Debug)]
pub struct LogFsShard {
    labels: Labels,
    /// Bytes that programs read, each time that they did.
    pub read: Cell,
    /// Bytes that were deleted unread.
    pub missed: Cell,
    /// Bytes of existing files that are not read yet.
    pub unread: Cell,
    /// Files that were given an older name since they were full.
    pub rotated: Cell,
    /// Files that were deleted since there were enough older ones.
    pub deleted: Cell,
    /// Listings of folders.
    pub listings: Cell,
    /// Requests of the kernel, for each log.
    pub requests: Vec<LogRequests>,
}

/// Requests of the kernel for the files of one log.
#[derive(Debug, Default)]
pub struct LogRequests {
    /// Reads.
    pub reads: Cell,
    /// Opens.
    pub opens: Cell,
    /// Names that were found.
    pub lookups: Cell,
    /// Questions for attributes.
    pub attributes: Cell,
    /// Files that were closed.
    pub releases: Cell,
}

impl LogFsShard {
    /// For `logs` logs; `labels` are the generator's.
    #[must_use]
    pub fn new(labels: Labels, logs: usize) -> Self {
        Self {
            labels,
            read: Cell::default(),
            missed: Cell::default(),
            unread: Cell::default(),
            rotated: Cell::default(),
            deleted: Cell::default(),
            listings: Cell::default(),
            requests: std::iter::repeat_with(LogRequests::default)
                .take(logs)
                .collect(),
        }
    }
}

impl Shard for LogFsShard {
    fn sample(&self, samples: &mut Vec<Sample>) {
        for (metric, cell) in [
            (metric::BYTES_READ, &self.read),
            (metric::MISSED_BYTES, &self.missed),
            (metric::UNREAD_BYTES, &self.unread),
            (metric::LOGS_ROTATED, &self.rotated),
            (metric::LOGS_DELETED, &self.deleted),
            (metric::LOG_LISTINGS, &self.listings),
        ] {
            samples.push(Sample::int(metric, &self.labels, cell.total()));
        }
        for (group, requests) in self.requests.iter().enumerate() {
            let labels = self.labels.clone().with("group_id", group.to_string());
            for (metric, cell) in [
                (metric::LOG_READS, &requests.reads),
                (metric::LOG_OPENS, &requests.opens),
                (metric::LOG_LOOKUPS, &requests.lookups),
                (metric::LOG_ATTRIBUTES, &requests.attributes),
                (metric::LOG_RELEASES, &requests.releases),
            ] {
                samples.push(Sample::int(metric, &labels, cell.total()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_log_has_its_own_figures() {
        let shard = LogFsShard::new(Labels::none().with("id", "logs"), 2);
        shard.requests[1].reads.add(3);
        shard.missed.add(7);
        let mut samples = Vec::new();
        shard.sample(&mut samples);
        let value = |name: &str, group: Option<&str>| {
            let sample = samples.iter().find(|sample| {
                sample.name.as_str() == name && sample.labels.value("group_id") == group
            });
            sample.map(|sample| sample.value.clone())
        };
        assert_eq!(value("missed_bytes", None), Some(crate::Value::Int(7)));
        assert_eq!(value("fs_read", Some("0")), Some(crate::Value::Int(0)));
        assert_eq!(value("fs_read", Some("1")), Some(crate::Value::Int(3)));
    }
}
