//! The request log: an entry for each request, on request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use stillwell_scope::clock;
use stillwell_units::Nanos;

/// Maximum number of entries that wait to be read. Later ones are dropped and counted.
const ENTRIES_MAX: usize = 65_536;

/// A request, and the response that was chosen for it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RequestLogEntry {
    /// Time since 1970 at which the request was complete.
    pub time: Nanos,
    /// Method, as the client sent it.
    pub method: Box<str>,
    /// Path and query, as the client sent them.
    pub path: Box<str>,
    /// `HTTP/1`, `HTTP/2` or `HTTP/3`.
    pub version: &'static str,
    /// Response.
    pub result: LoggedResult,
    /// Time that the response is delayed on purpose.
    pub delay: Nanos,
}

/// The response to a request of the log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LoggedResult {
    /// A response with this status.
    Status(u16),
    /// A fault, by its name.
    Fault(&'static str),
}

/// Entries of requests in the order of their responses' choice.
#[derive(Debug)]
pub struct RequestLog {
    entries: Receiver<RequestLogEntry>,
    dropped: Arc<AtomicU64>,
}

/// The workers' end of a [`RequestLog`].
#[derive(Clone, Debug)]
pub(crate) struct RequestLogSender {
    entries: SyncSender<RequestLogEntry>,
    dropped: Arc<AtomicU64>,
}

/// The head of a request that will be logged.
#[derive(Clone, Debug)]
pub(crate) struct LoggedRequest {
    method: Box<str>,
    path: Box<str>,
    version: &'static str,
}

impl RequestLog {
    pub(crate) fn new() -> (RequestLogSender, Self) {
        let (sender, entries) = sync_channel(ENTRIES_MAX);
        let dropped = Arc::new(AtomicU64::new(0));
        let sender = RequestLogSender {
            entries: sender,
            dropped: Arc::clone(&dropped),
        };
        (sender, Self { entries, dropped })
    }

    /// Takes the entries that wait. Does not block.
    pub fn take(&self) -> impl Iterator<Item = RequestLogEntry> {
        self.entries.try_iter()
    }

    /// Number of requests that have no entry because too many entries waited.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl RequestLogSender {
    /// Enters a request. Does not block.
    pub(crate) fn send(&self, request: LoggedRequest, result: LoggedResult, delay: Nanos) {
        let entry = RequestLogEntry {
            time: clock::wall(),
            method: request.method,
            path: request.path,
            version: request.version,
            result,
            delay,
        };
        if self.entries.try_send(entry).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl LoggedRequest {
    /// `headers` include the pseudo-headers.
    pub(crate) fn of(version: &'static str, headers: &[(&[u8], &[u8])]) -> Self {
        let value = |name: &[u8]| {
            let header = headers.iter().find(|header| header.0 == name);
            let value = header.map_or(&[] as &[u8], |header| header.1);
            String::from_utf8_lossy(value).into()
        };
        Self {
            method: value(b":method"),
            path: value(b":path"),
            version,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_beyond_the_limit_are_dropped_and_counted() {
        let (sender, log) = RequestLog::new();
        let headers: [(&[u8], &[u8]); 2] = [(b":path", b"/a"), (b":method", b"GET")];
        let request = LoggedRequest::of("HTTP/2", &headers);
        for _ in 0..ENTRIES_MAX + 3 {
            sender.send(request.clone(), LoggedResult::Status(200), Nanos::ZERO);
        }
        assert_eq!(log.dropped(), 3);
        assert_eq!(log.take().count(), ENTRIES_MAX);
        sender.send(request, LoggedResult::Fault("close"), Nanos::SECOND);
        let entry = log.take().next().unwrap();
        assert_eq!((&*entry.method, &*entry.path), ("GET", "/a"));
        assert_eq!(entry.result, LoggedResult::Fault("close"));
        assert_eq!(entry.delay, Nanos::SECOND);
    }
}
