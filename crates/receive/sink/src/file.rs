//! A file that the target writes: read while it grows, through rotations and truncations.

mod chain;

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use stillwell_scope::PartError;
use tokio::task::yield_now;
use tokio::time::sleep;

use crate::ledger::Stamps;
use crate::lines::Lines;
use crate::worker::Worker;
use chain::{Chain, Took};

/// Interval of the looks at a file of which everything was read: the delay until new
/// bytes can be seen to arrive.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Maximum bytes of one read.
const BUFFER_BYTES: usize = 256 << 10;

/// Reason why a worker that reads a file ended.
#[derive(Debug, thiserror::Error)]
#[error("read {}", path.display())]
struct FileError {
    path: PathBuf,
    source: io::Error,
}

/// A file that is to be read. What is in it already is none of the run's.
#[derive(Debug)]
pub(crate) struct Tail(Chain);

impl Tail {
    /// Of what is created at `path` from now on.
    pub(crate) fn of(path: &Path) -> Self {
        Self(Chain::of(path))
    }
}

/// Counts what is written to the file until the worker is to end and all that was
/// in it by then was read.
pub(crate) async fn read(worker: Rc<Worker>, tail: Tail) -> Result<(), PartError> {
    let Tail(mut chain) = tail;
    let mut reading = Reading {
        buffer: vec![0; BUFFER_BYTES],
        lines: Lines::default(),
        stamps: worker.stamps(),
        left: None,
    };
    let path = chain.path().to_path_buf();
    let failed = |source| FileError {
        path: path.clone(),
        source,
    };
    loop {
        // Read first: bytes written before the end are read before it.
        let is_over = worker.base.token.is_cancelled();
        // Also between two reads: a file may be rotated more than once meanwhile.
        chain.look().map_err(failed)?;
        if is_over && reading.left.is_none() {
            reading.left = Some(chain.unread().map_err(failed)?);
        }
        let took = chain.read(&mut reading.buffer).map_err(failed)?;
        match took {
            Took::Bytes(bytes) => reading.take(bytes, &worker),
            Took::End => reading.finish(&worker),
            Took::Nothing => {}
        }
        let is_read = took == Took::Nothing || reading.left == Some(0);
        if is_over && is_read {
            reading.finish(&worker);
            return Ok(());
        }
        if took == Took::Nothing {
            sleep(LOOK_EVERY).await;
        } else {
            yield_now().await;
        }
    }
}

struct Reading {
    buffer: Vec<u8>,
    lines: Lines,
    stamps: Stamps,
    /// Bytes still to be read once the worker is to end: a program that writes on and on does
    /// not delay it.
    left: Option<u64>,
}

impl Reading {
    /// Takes the bytes in the buffer.
    fn take(&mut self, bytes: usize, worker: &Worker) {
        let read = &self.buffer[..bytes];
        worker.base.shard.bytes.add(bytes as u64);
        worker.base.shard.events.add(self.lines.take(read));
        self.stamps.feed(read);
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(bytes as u64);
        }
    }

    /// Ends a file.
    fn finish(&mut self, worker: &Worker) {
        worker.base.shard.events.add(self.lines.finish());
        self.lines = Lines::default();
        self.stamps.end();
    }
}
