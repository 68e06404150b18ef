//! Forwards response headers to the thread that conducts the load.
//!
//! Headers go through one bounded queue. If it is full they are dropped and counted, so no
//! worker waits.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use stillwell_metric::LoadShard;
use stillwell_plan::LoadPlan;
use stillwell_plan::load::AnswerHeadersPlan;

/// Maximum number of waiting headers, of all workers together.
pub(super) const HEADERS_WAITING_MAX: usize = 1 << 14;

/// The status, among headers.
const STATUS: &[u8] = b":status";

/// A header of an answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AnswerHeader {
    /// Its name in lower case; `:status` for the status.
    pub name: String,
    /// Its value; what is no UTF-8 is replaced.
    pub value: String,
}

/// Forwards response headers of one worker.
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
