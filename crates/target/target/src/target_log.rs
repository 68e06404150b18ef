//! Files for the output of a target, kept small while it writes.
//!
//! A target writes to its file itself, so a cap costs it nothing. Blocks between head and tail are given back
//! to the file system while the file grows, and at the end the tail is moved behind the head. Where the file
//! system cannot give back blocks (not ext4, XFS, Btrfs or tmpfs), the file is cut behind its head instead.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{FallocateFlags, fallocate};
use stillwell_scope::{Place, Scope};
use stillwell_units::ByteSize;

/// Blocks are multiples of this size in every file system that gives them back.
const BLOCK: u64 = 4096;
/// Pause between two looks at small logs.
const PAUSE: Duration = Duration::from_millis(50);
/// Pause while a log is larger than its cap.
const PAUSE_FULL: Duration = Duration::from_millis(5);
/// Number of bytes that are moved at once.
const PART: usize = 64 * 1024;

/// A file for standard output or standard error of a target. Clones are the same file.
#[derive(Clone, Debug)]
pub struct TargetLog {
    inner: Arc<LogFile>,
}

#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    file: File,
    /// Largest size; `None` for a file that is never cut.
    cap: Option<u64>,
    cut: Mutex<Cut>,
}

/// Bytes of a log that are gone.
#[derive(Clone, Copy, Debug, Default)]
struct Cut {
    dropped: u64,
    /// End of the hole behind the head, while the tail is not moved.
    hole_end: u64,
}

impl TargetLog {
    /// Wraps `file` at `path`, which is empty and appended to. Its first and last bytes are kept, `cap` in all.
    #[must_use]
    pub fn new(path: PathBuf, file: File, cap: Option<ByteSize>) -> Self {
        Self {
            inner: Arc::new(LogFile {
                path,
                file,
                cap: cap.map(ByteSize::bytes),
                cut: Mutex::default(),
            }),
        }
    }

    /// Makes or empties the file at `path`, without a cap.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn create(path: PathBuf) -> io::Result<Self> {
        let file = File::create(&path)?;
        Ok(Self::new(path, file, None))
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Returns its size, dropped bytes included until [`Self::finish`].
    pub(crate) fn length(&self) -> u64 {
        self.inner.file.metadata().map_or(0, |data| data.len())
    }

    /// Returns a handle for a child.
    pub(crate) fn handle(&self) -> io::Result<File> {
        self.inner.file.try_clone()
    }

    /// Keeps `logs` below their caps, on a thread of `scope`, until the scope ends.
    ///
    /// # Errors
    /// The operating system's error if no thread can be started.
    pub fn watch(logs: Vec<Self>, scope: &mut Scope, place: Place) -> io::Result<()> {
        scope.worker(place, "target-logs", move |token| async move {
            let mut pause = PAUSE;
            loop {
                tokio::select! {
                    // Cancel-safe: only looks.
                    () = token.cancelled() => return Ok(()),
                    // Cancel-safe: nothing is lost.
                    () = tokio::time::sleep(pause) => {}
                }
                // A log that cannot be cut grows on: the run reports a full disk.
                let is_cut = |log: &Self| log.trim().unwrap_or(false);
                let cut = logs.iter().filter(|log| is_cut(log)).count();
                pause = if cut > 0 { PAUSE_FULL } else { PAUSE };
            }
        })
    }

    /// Gives back blocks between head and tail; returns true if some were.
    pub(crate) fn trim(&self) -> io::Result<bool> {
        let Some(cap) = self.inner.cap else {
            return Ok(false);
        };
        let length = self.length();
        let head = head(cap);
        let mut cut = self
            .inner
            .cut
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let end = length.saturating_sub(cap - head) / BLOCK * BLOCK;
        let begin = cut.hole_end.max(head);
        if end <= begin {
            return Ok(false);
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(&self.inner.file, flags, begin, end - begin) {
            Ok(()) => {
                cut.dropped += end - begin;
                cut.hole_end = end;
            }
            Err(_) => {
                self.inner.file.set_len(head)?;
                cut.dropped += length - head;
            }
        }
        Ok(true)
    }

    /// Moves the tail behind the head, once nothing writes any more. Returns the number of dropped bytes.
    ///
    /// # Errors
    /// The operating system's error; the file then keeps its hole.
    pub fn finish(&self) -> io::Result<u64> {
        self.trim()?;
        let mut cut = self
            .inner
            .cut
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (Some(cap), true) = (self.inner.cap, cut.hole_end > 0) else {
            return Ok(cut.dropped);
        };
        // The file's own handle appends, wherever is written.
        let handle = format!("/proc/self/fd/{}", self.inner.file.as_raw_fd());
        let file = OpenOptions::new().read(true).write(true).open(handle)?;
        let mark = format!("\n[{} bytes of output dropped here]\n", cut.dropped);
        file.write_all_at(mark.as_bytes(), head(cap))?;
        let mut to = head(cap) + mark.len() as u64;
        let (mut from, mut part) = (cut.hole_end, vec![0; PART]);
        loop {
            let length = file.read_at(&mut part, from)?;
            if length == 0 {
                break;
            }
            file.write_all_at(&part[..length], to)?;
            (from, to) = (from + length as u64, to + length as u64);
        }
        file.set_len(to)?;
        cut.hole_end = 0;
        Ok(cut.dropped)
    }
}

/// Size of the part at the beginning that is kept.
const fn head(cap: u64) -> u64 {
    cap / 2 / BLOCK * BLOCK
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::MetadataExt as _;

    use proptest::prelude::*;

    use super::*;

    fn log(folder: &Path, cap: u64) -> TargetLog {
        let path = folder.join("log");
        let file = OpenOptions::new()
            .append(true)
            .read(true)
            .create_new(true)
            .open(&path)
            .unwrap();
        TargetLog::new(path, file, Some(ByteSize::new(cap)))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn for_all_outputs_head_and_tail_are_kept_and_the_rest_is_counted(
            parts in prop::collection::vec(1_usize..60_000, 1..20), cap in 2_u64..40,
        ) {
            let cap = cap * BLOCK;
            let folder = tempfile::tempdir().unwrap();
            let log = log(folder.path(), cap);
            let (mut whole, mut writer) = (Vec::new(), log.handle().unwrap());
            for (number, length) in parts.into_iter().enumerate() {
                let part: Vec<u8> = (0..length).map(|at| b'a' + u8::try_from((number + at) % 26).unwrap()).collect();
                writer.write_all(&part).unwrap();
                whole.extend(part);
                log.trim().unwrap();
                let blocks = log.inner.file.metadata().unwrap().blocks() * 512;
                prop_assert!(blocks <= cap + 2 * BLOCK, "{blocks} of {cap}");
            }
            let dropped = usize::try_from(log.finish().unwrap()).unwrap();
            let kept = std::fs::read(log.path()).unwrap();
            if dropped == 0 {
                prop_assert_eq!(kept, whole);
            } else {
                let mark = format!("\n[{dropped} bytes of output dropped here]\n");
                let head = usize::try_from(head(cap)).unwrap();
                let tail = &kept[head + mark.len()..];
                prop_assert_eq!(&kept[..head], &whole[..head]);
                prop_assert_eq!(&kept[head..head + mark.len()], mark.as_bytes());
                prop_assert_eq!(tail, &whole[head + dropped..]);
            }
        }
    }
}
