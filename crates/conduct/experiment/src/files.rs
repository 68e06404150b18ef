//! Small files, written in one step.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use data_encoding::HEXLOWER;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use stillwell_capture::{make_private, replace_private};

use crate::SuiteError;

/// Replaces `path` in one step, so a reader sees the old or the new file
/// and never half of it; makes its folder if it is not there.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), SuiteError> {
    let write = || {
        if let Some(folder) = path.parent() {
            make_private(folder)?;
        }
        replace_private(path, |file| {
            serde_json::to_writer_pretty(&mut *file, value)?;
            file.write_all(b"\n")
        })
    };
    write().map_err(|source| SuiteError::Write {
        path: path.to_path_buf(),
        source,
    })
}

pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, SuiteError> {
    fs::read(path)
        .and_then(|bytes| serde_json::from_slice(&bytes).map_err(io::Error::from))
        .map_err(|source| SuiteError::Read {
            path: path.to_path_buf(),
            source,
        })
}

/// SHA-256 of a file's bytes, in hexadecimal digits.
pub(crate) fn sha256_of_file(path: &Path) -> io::Result<String> {
    const PART: usize = 1 << 16;
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut part = vec![0; PART];
    loop {
        match file.read(&mut part)? {
            0 => return Ok(HEXLOWER.encode(&hash.finalize())),
            length => hash.update(&part[..length]),
        }
    }
}

/// SHA-256 of `bytes`, in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}

/// Removes a folder and all that is in it; it need not be there.
pub(crate) fn remove_folder(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
