//! Something that is there already and can be written to.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use stillwell_wire::DialError;
use tokio::net::unix::pipe;

use crate::contract::Transport;

#[derive(Clone, Debug)]
pub(crate) struct PassthruFile {
    path: PathBuf,
}

impl PassthruFile {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
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
        Ok(Writer::File(file))
    }
}

/// `ENXIO`
const NO_SUCH_DEVICE: i32 = 6;

/// The output.
#[derive(Debug)]
pub(crate) enum Writer {
    /// A pipe, which may be full.
    Pipe(pipe::Sender),
    /// Anything else takes all at once.
    File(File),
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
            Writer::File(file) => {
                let mut file = file;
                file.write(bytes)
            }
        }
    }

    async fn writable(connection: &Writer) -> io::Result<()> {
        match connection {
            Writer::Pipe(pipe) => pipe.writable().await,
            Writer::File(_) => Ok(()),
        }
    }
}
