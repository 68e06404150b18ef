//! Opens and reads files that a user names.
//!
//! A read ends in any case: a regular file has a largest size, a pipe also a longest wait, and
//! devices and sockets are refused.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;

/// `O_NONBLOCK` of Linux.
const NONBLOCK: i32 = 0o4000;
/// Device number of `/dev/null`.
const NULL_DEVICE: u64 = 0x103;
/// Pause between two reads of a pipe.
const PAUSE: Duration = Duration::from_millis(20);
/// Longest wait for a writer of a pipe, in pauses.
const WRITER_PAUSES: u32 = 40;
/// Longest wait for more bytes of a pipe with a writer, in pauses: a minute.
const BYTES_PAUSES: u32 = 3000;

/// Reads the file or pipe at `path`, such as `/dev/stdin`.
///
/// # Errors
/// It cannot be read, is a device, a socket or a folder, or has more than `limit` bytes; or a
/// pipe has no writer, or brings nothing for a minute.
pub fn read_input(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let metadata = std::fs::metadata(path)?;
    if metadata.rdev() == NULL_DEVICE && metadata.file_type().is_char_device() {
        return Ok(Vec::new());
    }
    if metadata.file_type().is_fifo() {
        let pipe = OpenOptions::new()
            .read(true)
            .custom_flags(NONBLOCK)
            .open(path)?;
        return read_pipe(pipe, limit);
    }
    let file = open_checked(path, &metadata)?;
    if metadata.len() > limit {
        return Err(too_large(limit));
    }
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if exceeds(&bytes, limit) {
        return Err(too_large(limit));
    }
    Ok(bytes)
}

/// Opens the regular file at `path`.
///
/// # Errors
/// It cannot be opened, or is a pipe, a device, a socket or a folder.
pub fn open_input(path: &Path) -> io::Result<File> {
    open_checked(path, &std::fs::metadata(path)?)
}

fn open_checked(path: &Path, metadata: &Metadata) -> io::Result<File> {
    let kind = metadata.file_type();
    if kind.is_file() {
        return File::open(path);
    }
    let message = if kind.is_dir() {
        "this is a folder, not a file"
    } else if kind.is_fifo() {
        "this is a pipe, not a file"
    } else {
        "this is a device or a socket, not a file"
    };
    Err(io::Error::other(message))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a pipe without a writer cannot be waited for; the number of pauses is bounded"
)]
fn read_pipe(mut pipe: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut part = vec![0; 1 << 16];
    let (mut pauses, mut has_writer) = (0, false);
    loop {
        match pipe.read(&mut part) {
            Ok(0) if has_writer => return Ok(bytes),
            Ok(0) if pauses >= WRITER_PAUSES => {
                return Err(io::Error::other("nothing writes to this pipe"));
            }
            Ok(0) => {}
            Ok(count) => {
                (pauses, has_writer) = (0, true);
                bytes.extend_from_slice(&part[..count]);
                if exceeds(&bytes, limit) {
                    return Err(too_large(limit));
                }
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                has_writer = true;
                if pauses >= BYTES_PAUSES {
                    return Err(io::Error::other(
                        "no data came through this pipe for a minute",
                    ));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        std::thread::sleep(PAUSE);
        pauses += 1;
    }
}

fn exceeds(bytes: &[u8], limit: u64) -> bool {
    u64::try_from(bytes.len()).is_ok_and(|length| length > limit)
}

fn too_large(limit: u64) -> io::Error {
    let limit = match limit >> 20 {
        0 => format!("{limit} bytes"),
        mebibytes => format!("{mebibytes} MiB"),
    };
    io::Error::other(format!("larger than {limit}"))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn fifo(folder: &Path) -> std::path::PathBuf {
        let path = folder.join("pipe");
        let made = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        path
    }

    #[test]
    fn regular_files_are_read_up_to_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "four").unwrap();
        assert_eq!(read_input(&path, 4).unwrap(), b"four");
        let error = read_input(&path, 3).unwrap_err();
        assert_eq!(error.to_string(), "larger than 3 bytes");
        assert!(open_input(&path).is_ok());
        assert!(
            !read_input(Path::new("/proc/self/status"), 1 << 20)
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn devices_folders_and_pipes_without_a_writer_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = fifo(folder.path());
        for (path, message) in [
            (Path::new("/dev/zero"), "device"),
            (folder.path(), "folder"),
            (&pipe, "nothing writes"),
        ] {
            let error = read_input(path, 1 << 20).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        assert!(open_input(&pipe).is_err());
        assert_eq!(read_input(Path::new("/dev/null"), 1).unwrap(), b"");
    }

    #[test]
    fn pipes_are_read_to_their_end_and_no_further_than_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = fifo(folder.path());
        for (script, limit, expected) in [
            ("sleep 0.1; printf a; sleep 0.1; printf b", 2, Ok("ab")),
            ("cat /dev/zero", 1 << 20, Err("larger than 1 MiB")),
        ] {
            let shell = format!("exec 2>/dev/null; ({script}) > {}", pipe.display());
            let mut writer = Command::new("sh");
            let mut writer = writer
                .args(["-c", &shell])
                .stdin(Stdio::null())
                .spawn()
                .unwrap();
            let read = read_input(&pipe, limit);
            let read = read.map(|bytes| String::from_utf8(bytes).unwrap());
            let read = read.as_deref().map_err(ToString::to_string);
            assert_eq!(read, expected.map_err(str::to_owned), "{script}");
            drop(writer.wait());
        }
    }
}
