//! Recovery of the events that an earlier relay left in the folder.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::position::{Position, PositionFile};
use super::segment::{self, SegmentReader, Writer};
use super::{DiskCounts, content_type, remove};

/// The file that keeps others out.
const LOCK: &str = "lock";

/// Reasons for which a buffer on disk cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// Another relay uses it.
    #[error("the buffer in {} is used by another relay: give each its own folder", folder.display())]
    Taken {
        /// Its folder.
        folder: PathBuf,
    },
    /// The kernel refuses.
    #[error("use the buffer in {}", folder.display())]
    Storage {
        /// Its folder.
        folder: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// The buffer of an earlier relay.
#[derive(Debug)]
pub(super) struct Recovered {
    pub(super) lock: File,
    pub(super) writer: Writer,
    pub(super) position: PositionFile,
    pub(super) handed_over: Position,
    pub(super) segments: Vec<(u64, u64)>,
    pub(super) counts: DiskCounts,
    pub(super) content_type: Vec<u8>,
}

/// Makes the buffer in `folder` ready.
pub(super) fn open(folder: &Path, is_synced: bool) -> Result<Recovered, DiskError> {
    let failed = |source| DiskError::Storage {
        folder: folder.to_path_buf(),
        source,
    };
    fs::create_dir_all(folder).map_err(failed)?;
    let mut options = OpenOptions::new();
    let options = options.create(true).truncate(false).write(true);
    let lock = options.open(folder.join(LOCK)).map_err(failed)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let folder = folder.to_path_buf();
            return Err(DiskError::Taken { folder });
        }
        Err(TryLockError::Error(source)) => return Err(failed(source)),
    }
    scan(folder, lock, is_synced).map_err(failed)
}

fn scan(folder: &Path, lock: File, is_synced: bool) -> io::Result<Recovered> {
    let (position, mut handed_over) = PositionFile::open(folder)?;
    let mut counts = DiskCounts::default();
    let mut segments = Vec::new();
    let mut last = handed_over.segment;
    for number in segment::numbers(folder)? {
        last = last.max(number);
        let path = segment::path(folder, number);
        if number < handed_over.segment {
            remove(&path)?;
            continue;
        }
        let from = if number == handed_over.segment {
            handed_over.offset
        } else {
            0
        };
        let length = fs::metadata(&path)?.len();
        let Some(whole) = whole(folder, number, from, length)? else {
            counts.torn_bytes += length;
            remove(&path)?;
            continue;
        };
        counts.recovered += whole.events;
        if whole.end < length {
            counts.torn_bytes += length - whole.end;
            OpenOptions::new()
                .write(true)
                .open(&path)?
                .set_len(whole.end)?;
        }
        if number == handed_over.segment {
            handed_over.offset = handed_over.offset.min(whole.end);
        }
        if whole.events == 0 {
            remove(&path)?;
        } else {
            segments.push((number, whole.end));
        }
    }
    if counts.recovered == 0 {
        // It was that of events which were all handed over.
        remove(&content_type::path(folder))?;
    }
    Ok(Recovered {
        lock,
        writer: Writer::begin(folder, last + 1, is_synced)?,
        position,
        handed_over,
        segments,
        counts,
        content_type: content_type::read(folder)?,
    })
}

/// The part of a segment that holds whole events.
struct Whole {
    events: u64,
    end: u64,
}

/// The length of the whole records from `from` on; `None` if the file is not a segment of a
/// relay.
fn whole(folder: &Path, number: u64, from: u64, length: u64) -> io::Result<Option<Whole>> {
    let Some(mut reader) = SegmentReader::open(folder, number, from.min(length))? else {
        return Ok(None);
    };
    let mut events = 0;
    while reader.next(length)?.is_some() {
        events += 1;
    }
    Ok(Some(Whole {
        events,
        end: reader.offset.min(length),
    }))
}
