//! Forwards notes about answers to the thread that conducts the load.
//!
//! Notes go through one bounded queue. If it is full they are dropped and counted, so no
//! worker waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;

use stillwell_metric::LoadShard;
use stillwell_plan::LoadPlan;
use stillwell_plan::load::AnswerHeadersPlan;

/// Maximum number of waiting notes, of all workers together.
pub(super) const NOTES_WAITING_MAX: usize = 1 << 14;

/// The status, among headers.
const STATUS: &[u8] = b":status";

/// A note about an answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AnswerNote {
    /// A header.
    Header {
        /// Its name in lower case; `:status` for the status.
        name: String,
        /// Its value; what is no UTF-8 is replaced.
        value: String,
    },
    /// The end of an answer over HTTP/1.1.
    Complete {
        /// Number of the connection, in the order of first answers, from 0 on.
        connection: u64,
        /// Status of the answer.
        status: u16,
    },
}

/// Forwards notes about the answers of one worker.
#[derive(Clone, Debug)]
pub(super) struct NoteForwarder {
    plan: Arc<LoadPlan>,
    queue: SyncSender<AnswerNote>,
    /// The number of the next connection, of all workers.
    next_connection: Arc<AtomicU64>,
}

impl NoteForwarder {
    pub(super) fn new(plan: &Arc<LoadPlan>, queue: &SyncSender<AnswerNote>) -> Self {
        Self {
            plan: Arc::clone(plan),
            queue: queue.clone(),
            next_connection: Arc::default(),
        }
    }

    /// Returns true if headers are forwarded.
    pub(super) fn forwards_headers(&self) -> bool {
        !self.plan.telemetry.headers.is_empty()
    }

    /// Forwards the end of an answer on a connection, which gets its number by the first.
    pub(super) fn complete(&self, shard: &LoadShard, number: &mut Option<u64>, status: u16) {
        if !self.plan.telemetry.completions {
            return;
        }
        let next = || self.next_connection.fetch_add(1, Ordering::Relaxed);
        let connection = *number.get_or_insert_with(next);
        self.send(shard, AnswerNote::Complete { connection, status });
    }

    fn send(&self, shard: &LoadShard, note: AnswerNote) {
        if self.queue.try_send(note).is_err() {
            shard.headers_dropped.add(1);
        }
    }

    /// Forwards the headers of a response.
    pub(super) fn forward<'h>(
        &self,
        shard: &LoadShard,
        status: u16,
        headers: impl Iterator<Item = (&'h [u8], &'h [u8])>,
    ) {
        let text = status.to_string();
        let mut all: Vec<(&[u8], &[u8])> = vec![(STATUS, text.as_bytes())];
        for header in headers.filter(|(name, _)| *name != STATUS) {
            all.push(header);
        }
        for plan in &self.plan.telemetry.headers {
            for (name, value) in selected(plan, status, &all) {
                let note = AnswerNote::Header {
                    name: String::from_utf8_lossy(name).to_ascii_lowercase(),
                    value: String::from_utf8_lossy(value).into_owned(),
                };
                self.send(shard, note);
            }
        }
    }
}

/// Selects the headers that `plan` names, in its order.
fn selected<'h>(
    plan: &AnswerHeadersPlan,
    status: u16,
    headers: &[(&'h [u8], &'h [u8])],
) -> Vec<(&'h [u8], &'h [u8])> {
    if plan.passes_over_2xx && (200..300).contains(&status) {
        return Vec::new();
    }
    if plan.names.is_empty() {
        return headers.to_vec();
    }
    let of_name = |name: &String| {
        let has_name = |header: &&(&[u8], &[u8])| header.0.eq_ignore_ascii_case(name.as_bytes());
        let named: Vec<_> = headers.iter().filter(has_name).copied().collect();
        named
    };
    plan.names.iter().flat_map(of_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_reported_by_name_and_by_status() {
        let headers: [(&[u8], &[u8]); 4] = [
            (b":status", b"200"),
            (b"B", b"1"),
            (b"a", b"2"),
            (b"b", b"3"),
        ];
        let values = |names: &[&str], passes_over_2xx, status| {
            let plan = AnswerHeadersPlan {
                names: names.iter().map(|name| (*name).to_owned()).collect(),
                passes_over_2xx,
            };
            let headers = selected(&plan, status, &headers).into_iter();
            headers
                .map(|(_, value)| String::from_utf8_lossy(value).into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(values(&[], false, 200), ["200", "1", "2", "3"]);
        assert_eq!(values(&["a", "b", "c"], false, 200), ["2", "1", "3"]);
        for (status, count) in [(199, 4), (200, 0), (299, 0), (300, 4), (503, 4)] {
            assert_eq!(values(&[], true, status).len(), count, "{status}");
        }
    }
}
