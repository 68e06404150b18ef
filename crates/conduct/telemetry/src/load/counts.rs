//! Counts of exports.

use std::sync::OnceLock;

use stillwell_capture::{SinkFound, SpansFound};
use stillwell_metric::Cell;

/// Counts of the exports to one receiver, written by its task alone.
#[derive(Debug)]
pub(super) struct ExportCounts {
    name: String,
    /// Exports, failed ones included.
    exports: Cell,
    failures: Cell,
    /// Spans that were delivered.
    spans: Cell,
    /// 1 once the last page was delivered, or there is none.
    complete: Cell,
    /// The cause of the first failure.
    first_failure: OnceLock<String>,
}

impl ExportCounts {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            exports: Cell::default(),
            failures: Cell::default(),
            spans: Cell::default(),
            complete: Cell::default(),
            first_failure: OnceLock::new(),
        }
    }

    /// Counts an export that has ended.
    pub(super) fn count(&self, result: Result<(), String>, is_last: bool) {
        self.exports.add(1);
        match result {
            Ok(()) => self.complete.set(is_last.into()),
            Err(cause) => {
                self.failures.add(1);
                self.first_failure.get_or_init(|| cause);
            }
        }
    }

    /// Marks the exports as complete: there was nothing to export.
    pub(super) fn mark_complete(&self) {
        self.complete.set(1);
    }

    /// Counts delivered spans.
    pub(super) fn count_spans(&self, spans: u64) {
        self.spans.add(spans);
    }

    /// Exports, failed ones included.
    pub(super) fn exports(&self) -> u64 {
        self.exports.total()
    }

    /// The result of a stats receiver.
    pub(super) fn stats_result(&self) -> SinkFound {
        SinkFound {
            name: self.name.clone(),
            flushes: self.exports.total(),
            failures: self.failures.total(),
            is_complete: self.complete.total() > 0,
            trouble: self.first_failure.get().cloned(),
        }
    }

    /// The result of a receiver of spans.
    pub(super) fn spans_result(&self, sampled: u64, dropped: u64) -> SpansFound {
        SpansFound {
            name: self.name.clone(),
            sampled,
            dropped,
            exported: self.spans.total(),
            batches: self.exports.total(),
            batches_failed: self.failures.total(),
            trouble: self.first_failure.get().cloned(),
        }
    }
}
