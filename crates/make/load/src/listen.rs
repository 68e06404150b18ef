//! Headers of answers that somebody wants to be told of.
//!
//! They go through one bounded queue to whoever conducts the load; where that is
//! full they are dropped and counted, so that nobody ever waits.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use stillwell_metric::LoadShard;
use stillwell_plan::{AnswerHeadersPlan, LoadPlan};

/// Headers that may wait for whoever is told, of all workers together.
pub(super) const HEADERS_WAITING_MAX: usize = 1 << 14;

/// The status, among headers.
const STATUS: &[u8] = b":status";

/// A header of an answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AnswerHeader {
    /// Its name in lower case; `:status` stands for the status.
    pub name: String,
    /// Its value; what is no UTF-8 is replaced.
    pub value: String,
}

/// Tells headers of answers of one worker.
#[derive(Clone, Debug)]
pub(super) struct HeaderForwarder {
    plan: Arc<LoadPlan>,
    queue: SyncSender<AnswerHeader>,
}

impl HeaderForwarder {
    pub(super) fn new(plan: &Arc<LoadPlan>, queue: &SyncSender<AnswerHeader>) -> Self {
        Self {
            plan: Arc::clone(plan),
            queue: queue.clone(),
        }
    }

    /// An answer has this status and these headers.
    pub(super) fn hear<'h>(
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
            for (name, value) in told(plan, status, &all) {
                let header = AnswerHeader {
                    name: String::from_utf8_lossy(name).to_ascii_lowercase(),
                    value: String::from_utf8_lossy(value).into_owned(),
                };
                if self.queue.try_send(header).is_err() {
                    shard.headers_dropped.add(1);
                }
            }
        }
    }
}

/// Which of `headers` are told, of an answer with this status: in the order in which
/// they are asked for.
fn told<'h>(
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
        let is_it = |own: &&(&[u8], &[u8])| own.0.eq_ignore_ascii_case(name.as_bytes());
        let found: Vec<_> = headers.iter().filter(is_it).copied().collect();
        found
    };
    plan.names.iter().flat_map(of_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_told_by_name_and_by_status() {
        let headers: [(&[u8], &[u8]); 4] = [
            (b":status", b"200"),
            (b"B", b"1"),
            (b"a", b"2"),
            (b"b", b"3"),
        ];
        let told = |names: &[&str], passes_over_2xx, status| {
            let plan = AnswerHeadersPlan {
                names: names.iter().map(|name| (*name).to_owned()).collect(),
                passes_over_2xx,
            };
            let told = told(&plan, status, &headers).into_iter();
            told.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(told(&[], false, 200), ["200", "1", "2", "3"]);
        assert_eq!(told(&["a", "b", "c"], false, 200), ["2", "1", "3"]);
        for (status, count) in [(199, 4), (200, 0), (299, 0), (300, 4), (503, 4)] {
            assert_eq!(told(&[], true, status).len(), count, "{status}");
        }
    }
}
