//! Lines at the end of a file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use super::backoff::Backoff;
use super::batch::Batch;
use crate::core::Core;
use crate::counters::add;

/// Maximum size of a write, unless one event is longer.
const WRITE_BYTES_MAX: usize = 64 << 10;

/// Writes events to the end of the file at `path`. What the kernel refuses is tried
/// again, as after a full disk, from where it stopped.
pub(super) async fn send_on(core: &Core, path: &Path) {
    let mut backoff = Backoff::new();
    let mut batch = Batch::default();
    let mut open: Option<File> = None;
    while batch.fill(core, u64::MAX, WRITE_BYTES_MAX).await {
        let mut written = 0;
        while written < batch.bytes.len() {
            match write(path, &mut open, &batch.bytes[written..]) {
                Ok(length @ 1..) => {
                    written += length;
                    batch.count(core, written);
                    backoff.reset();
                }
                // What is left counts as that in the buffer. A later write would be in the place of these events.
                Ok(0) | Err(_) if core.token.is_cancelled() => {
                    if core.disk.is_none() {
                        add(&core.counters.events_dropped, batch.uncounted());
                    }
                    return;
                }
                Ok(0) | Err(_) => backoff.wait().await,
            }
        }
    }
}

fn write(path: &Path, open: &mut Option<File>, bytes: &[u8]) -> io::Result<usize> {
    let file = match open {
        Some(file) => file,
        None => {
            let opened = OpenOptions::new().append(true).create(true).open(path)?;
            open.insert(opened)
        }
    };
    file.write(bytes)
}
