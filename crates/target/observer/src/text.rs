//! Numbers in the kernel's texts, read without copying.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Longest file that is read. Files of the kernel are far shorter, except `smaps` of processes with many
/// mappings.
const FILE_BYTES_MAX: usize = 4 << 20;

/// Kilobytes, sectors and pages as bytes: `amount × scale`.
pub(crate) const fn scaled(amount: u64, scale: u64) -> u64 {
    amount.saturating_mul(scale)
}

/// The whole number that `text` starts with, after blanks.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii_start();
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return None;
    }
    text[..digits].iter().try_fold(0_u64, |total, digit| {
        total.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })
}

/// The number after `key` (with its colon or blank) at the start of a line.
pub(crate) fn value(text: &[u8], key: &[u8]) -> Option<u64> {
    lines(text).find_map(|line| number(line.strip_prefix(key)?))
}

pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
}

/// Splits a line into words.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
}

/// A file of the kernel that is read again and again.
#[derive(Debug)]
pub(crate) struct ProcFile {
    path: PathBuf,
    /// The open file, if it is kept open.
    file: Option<File>,
    is_kept: bool,
}

impl ProcFile {
    /// `is_kept` saves the lookup of the path each time and costs a descriptor.
    pub(crate) const fn new(path: PathBuf, is_kept: bool) -> Self {
        Self {
            path,
            file: None,
            is_kept,
        }
    }

    /// Reads the current content into `buffer`.
    pub(crate) fn read<'a>(&mut self, buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        if !self.is_kept {
            return read_file(&File::open(&self.path).ok()?, buffer).ok();
        }
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        read_file(self.file.as_ref()?, buffer).ok()
    }
}

/// Reads the current content of the file at `path` into `buffer`.
pub(crate) fn read<'a>(path: &Path, buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    read_file(&File::open(path).ok()?, buffer).ok()
}

/// Returns true if `text` may be only the beginning of its file.
pub(crate) const fn is_cut(text: &[u8]) -> bool {
    text.len() >= FILE_BYTES_MAX
}

fn read_file<'a>(file: &File, buffer: &'a mut Vec<u8>) -> io::Result<&'a [u8]> {
    if buffer.is_empty() {
        buffer.resize(4096, 0);
    }
    let mut length = 0;
    loop {
        let position = length as u64;
        match file.read_at(&mut buffer[length..], position) {
            Ok(0) => return Ok(&buffer[..length]),
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if length == buffer.len() {
            if length >= FILE_BYTES_MAX {
                return Ok(&buffer[..length]);
            }
            buffer.resize(length * 2, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_read() {
        assert_eq!(number(b"  12 kB"), Some(12));
        for text in [b"".as_slice(), b"x", b"-1", b"99999999999999999999"] {
            assert_eq!(number(text), None, "{text:?}");
        }
        assert_eq!(value(b"A: 1\nAB: 2\n", b"AB:"), Some(2));
        assert_eq!(value(b"A: 1\nAB: 2\n", b"B:"), None);
    }

    #[test]
    fn long_files_are_read_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let text: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        std::fs::write(&path, &text).unwrap();
        let mut buffer = Vec::new();
        assert_eq!(read(&path, &mut buffer), Some(text.as_slice()));
        assert_eq!(
            ProcFile::new(path, true).read(&mut buffer),
            Some(text.as_slice())
        );
    }

    proptest! {
        #[test]
        fn for_all_bytes_nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            number(&bytes);
            value(&bytes, b"a");
            let count = lines(&bytes).flat_map(words).count();
            prop_assert!(count <= bytes.len());
        }
    }
}
