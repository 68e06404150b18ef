//! What became of what one receiver was told.

use std::sync::OnceLock;

use stillwell_metric::Cell;

use super::{SinkFound, SpansFound};

/// Counts of one receiver, written by its task alone.
#[derive(Debug)]
pub(super) struct Account {
    name: String,
    /// Tellings, good or bad.
    pub(super) done: Cell,
    /// Those that failed.
    failed: Cell,
    /// Spans that got through.
    pub(super) spans: Cell,
    /// 1 once the last page got through.
    complete: Cell,
    /// Why the first that failed did.
    trouble: OnceLock<String>,
}

impl Account {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            done: Cell::default(),
            failed: Cell::default(),
            spans: Cell::default(),
            complete: Cell::default(),
            trouble: OnceLock::new(),
        }
    }

    /// One telling has ended.
    pub(super) fn note(&self, result: Result<(), String>, is_last: bool) {
        self.done.add(1);
        match result {
            Ok(()) => self.complete.set(is_last.into()),
            Err(why) => {
                self.failed.add(1);
                // The first one stays.
                self.trouble.get_or_init(|| why);
            }
        }
    }

    pub(super) fn found(&self) -> SinkFound {
        SinkFound {
            name: self.name.clone(),
            flushes: self.done.total(),
            failures: self.failed.total(),
            is_complete: self.complete.total() > 0,
            trouble: self.trouble.get().cloned(),
        }
    }

    pub(super) fn spans_found(&self, sampled: u64, dropped: u64) -> SpansFound {
        SpansFound {
            name: self.name.clone(),
            sampled,
            dropped,
            exported: self.spans.total(),
            batches: self.done.total(),
            batches_failed: self.failed.total(),
            trouble: self.trouble.get().cloned(),
        }
    }
}
