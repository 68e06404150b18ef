//! A file that the subject writes: read while it grows, through rotations and
//! truncations.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use stillwell_scope::PartError;
use tokio::task::yield_now;
use tokio::time::sleep;

use crate::ledger::Stamps;
use crate::lines::Lines;
use crate::worker::Worker;

/// How often a file is looked at of which everything was read: so much later what
/// is in it may be seen to arrive.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// What is read in one go.
const BUFFER_BYTES: usize = 256 << 10;

/// Why a worker that reads a file ended.
#[derive(Debug, thiserror::Error)]
#[error("read {}", path.display())]
struct FileError {
    path: PathBuf,
    source: io::Error,
}

/// A file that is to be read. What is in it already is none of the run's.
#[derive(Clone, Debug)]
pub(crate) struct Tail {
    path: PathBuf,
    /// The file that was there before, and its length.
    before: Option<(u64, u64)>,
}

impl Tail {
    /// Of what comes to be at `path` from now on.
    pub(crate) fn of(path: &Path) -> Self {
        let metadata = fs::metadata(path).ok();
        Self {
            path: path.to_path_buf(),
            before: metadata.map(|metadata| (metadata.ino(), metadata.len())),
        }
    }

    /// Opens the file that is there now; `None` if there is none.
    fn open(&self) -> io::Result<Option<Open>> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let metadata = file.metadata()?;
        let mut place = 0;
        if let Some((inode, length)) = self.before
            && inode == metadata.ino()
            && length <= metadata.len()
        {
            place = file.seek(SeekFrom::Start(length))?;
        }
        Ok(Some(Open {
            file,
            inode: metadata.ino(),
            place,
        }))
    }
}

/// A file under way.
#[derive(Debug)]
struct Open {
    file: File,
    inode: u64,
    place: u64,
}

impl Open {
    /// The next bytes; 0 where there are none for now. A file that was cut short is
    /// read from its beginning again.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read(buffer) {
                Ok(0) if self.file.metadata()?.len() < self.place => {
                    self.place = self.file.seek(SeekFrom::Start(0))?;
                }
                Ok(bytes) => {
                    self.place += bytes as u64;
                    return Ok(bytes);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether another file is at `path` now.
    fn is_replaced(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|metadata| metadata.ino() != self.inode)
    }
}

/// Counts what comes to be in the file until the worker is to end and all of it was
/// read.
pub(crate) async fn read(worker: Rc<Worker>, tail: Tail) -> Result<(), PartError> {
    let mut reading = Reading {
        buffer: vec![0; BUFFER_BYTES],
        lines: Lines::default(),
        stamps: worker.stamps(),
    };
    let failed = |source| FileError {
        path: tail.path.clone(),
        source,
    };
    let mut open = tail.open().map_err(failed)?;
    loop {
        // Asked first: what is written before the end is read before it.
        let is_over = worker.token.is_cancelled();
        if open.is_none() {
            open = tail.open().map_err(failed)?;
        }
        if let Some(file) = &mut open {
            let is_replaced = file.is_replaced(&tail.path);
            while reading.take(file, &worker).map_err(failed)? {
                yield_now().await;
            }
            if is_replaced {
                reading.finish(&worker);
                open = None;
                continue;
            }
        }
        if is_over {
            reading.finish(&worker);
            return Ok(());
        }
        sleep(LOOK_EVERY).await;
    }
}

struct Reading {
    buffer: Vec<u8>,
    lines: Lines,
    stamps: Stamps,
}

impl Reading {
    /// Takes the next bytes; false where there are none for now.
    fn take(&mut self, file: &mut Open, worker: &Worker) -> io::Result<bool> {
        let bytes = file.read(&mut self.buffer)?;
        let read = &self.buffer[..bytes];
        worker.shard.bytes.add(bytes as u64);
        worker.shard.events.add(self.lines.take(read));
        self.stamps.feed(read);
        Ok(bytes > 0)
    }

    /// Ends a file.
    fn finish(&mut self, worker: &Worker) {
        worker.shard.events.add(self.lines.finish());
        self.lines = Lines::default();
        self.stamps.end();
    }
}
