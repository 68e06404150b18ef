//! Something that is there already and can be written to.

use std::cell::Cell;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stillwell_wire::DialError;
use tokio::net::unix::pipe;

use super::tail::Tail;
use crate::contract::Transport;

#[derive(Clone, Debug)]
pub(crate) struct PassthruFile {
    path: PathBuf,
    tail: Arc<Tail>,
}

impl PassthruFile {
    /// The file at `path`. `ends_lines`: each event ends with a line feed.
    pub(crate) fn new(path: &Path, ends_lines: bool) -> Self {
        Self {
            path: path.to_owned(),
            tail: Arc::new(Tail::new(ends_lines)),
        }
    }

    fn open(&self) -> io::Result<Writer> {
        if fs::metadata(&self.path)?.file_type().is_fifo() {
            let sender = pipe::OpenOptions::new().open_sender(&self.path);
            return sender.map(Writer::Pipe).map_err(|error| {
                // The kernel's error for a pipe without a reader.
                match error.raw_os_error() {
                    Some(NO_SUCH_DEVICE) => io::ErrorKind::ConnectionRefused.into(),
                    _ => error,
                }
            });
        }
        let file = OpenOptions::new().append(true).open(&self.path)?;
        Ok(Writer::File(FileWriter::new(file, &self.tail)))
    }
}

/// `ENXIO`
const NO_SUCH_DEVICE: i32 = 6;

/// The output.
#[derive(Debug)]
pub(crate) enum Writer {
    /// A pipe, which may be full.
    Pipe(pipe::Sender),
    /// Anything else takes all at once, unless there is no room.
    File(FileWriter<File>),
}

/// A file that is appended to.
#[derive(Debug)]
pub(crate) struct FileWriter<F> {
    file: F,
    tail: Arc<Tail>,
    /// True if the last write ended in the middle of an event.
    is_part: Cell<bool>,
}

impl<F> FileWriter<F> {
    fn new(file: F, tail: &Arc<Tail>) -> Self {
        Self {
            file,
            tail: Arc::clone(tail),
            is_part: Cell::new(false),
        }
    }

    /// Writes as many of `bytes` as the file takes at once: the rest of those that were written
    /// in part before, if there were any.
    fn write<'f>(&'f self, bytes: &[u8]) -> io::Result<usize>
    where
        &'f F: io::Write,
    {
        let mut file = &self.file;
        if !self.is_part.get() {
            self.tail.end_cut_line(&mut file)?;
        }
        let written = file.write(bytes);
        match &written {
            Ok(count) => {
                let part = &bytes[..*count];
                let is_part = *count < bytes.len() && !part.ends_with(b"\n");
                self.is_part.set(is_part);
            }
            Err(error) => {
                let (interrupted, full) = (io::ErrorKind::Interrupted, io::ErrorKind::WouldBlock);
                let is_lost = ![interrupted, full].contains(&error.kind());
                // The rest is lost with the connection.
                if is_lost && self.is_part.get() {
                    self.tail.cut();
                }
            }
        }
        written
    }
}

impl Transport for PassthruFile {
    type Connection = Writer;

    const IS_MESSAGES: bool = false;

    async fn connect(&self) -> Result<Writer, DialError> {
        self.open().map_err(|source| DialError {
            address: self.path.display().to_string(),
            source,
        })
    }

    fn try_send(connection: &Writer, bytes: &[u8]) -> io::Result<usize> {
        match connection {
            Writer::Pipe(pipe) => pipe.try_write(bytes),
            Writer::File(file) => file.write(bytes),
        }
    }

    async fn writable(connection: &Writer) -> io::Result<()> {
        match connection {
            Writer::Pipe(pipe) => pipe.writable().await,
            Writer::File(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// A file on a file system with room for so many bytes.
    struct Limited {
        bytes: RefCell<Vec<u8>>,
        room: Cell<usize>,
    }

    impl io::Write for &Limited {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.room.get());
            if count == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.bytes.borrow_mut().extend_from_slice(&bytes[..count]);
            self.room.set(self.room.get() - count);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn writer(tail: &Arc<Tail>, room: usize) -> FileWriter<Limited> {
        let limited = Limited {
            bytes: RefCell::default(),
            room: Cell::new(room),
        };
        FileWriter::new(limited, tail)
    }

    #[test]
    fn the_rest_of_a_short_write_follows_without_a_line_feed() {
        let tail = Arc::new(Tail::new(true));
        let writer = writer(&tail, 4);
        assert_eq!(writer.write(b"aa\nbb\n").unwrap(), 4);
        writer.file.room.set(10);
        assert_eq!(writer.write(b"b\n").unwrap(), 2);
        assert_eq!(writer.write(b"cc\n").unwrap(), 3);
        assert_eq!(writer.file.bytes.take(), b"aa\nbb\ncc\n");
    }

    #[test]
    fn the_line_that_a_lost_connection_has_cut_ends_before_the_next_event() {
        for (room, expected) in [(4, &b"\ncc\n"[..]), (3, b"cc\n"), (0, b"cc\n")] {
            let tail = Arc::new(Tail::new(true));
            let lost = writer(&tail, room);
            if room > 0 {
                assert_eq!(lost.write(b"aa\nbb\n").unwrap(), room);
            }
            lost.write(b"b\n").unwrap_err();
            let next = writer(&tail, 10);
            assert_eq!(next.write(b"cc\n").unwrap(), 3);
            assert_eq!(next.file.bytes.take(), expected, "{room}");
        }
    }
}
