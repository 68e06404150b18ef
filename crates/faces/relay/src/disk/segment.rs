//! The files of a buffer on disk: each has a number, and begins with a word that says
//! what it is.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use stillwell_units::as_usize;

use super::record::{self, Read};

/// The first bytes of every segment.
pub(super) const MAGIC: &[u8; 8] = b"swbuf001";

/// Offset of the first event.
pub(super) const FIRST: u64 = MAGIC.len() as u64;

const SUFFIX: &str = ".segment";

/// Size of a read, unless an event is longer.
const READ_BYTES: usize = 256 << 10;

pub(super) fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:012}{SUFFIX}"))
}

/// The numbers of the segments in `folder`, in their order.
pub(super) fn numbers(folder: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(SUFFIX));
        numbers.extend(number.and_then(|number| number.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// The segment that is written.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) file: File,
    pub(super) number: u64,
    /// Offset of the next event.
    pub(super) end: u64,
    /// End of the events that are synced.
    synced: u64,
    /// True if the kernel refused the last sync.
    is_sync_refused: bool,
}

impl Writer {
    /// Begins a new one, over what is left of a try that failed before: on a full disk
    /// its name may be all that there was room for. Where it must survive the host, so
    /// must its name.
    pub(super) fn begin(folder: &Path, number: u64, is_synced: bool) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let mut file = options
            .create(true)
            .truncate(true)
            .write(true)
            .open(path(folder, number))?;
        file.write_all(MAGIC)?;
        if is_synced {
            File::open(folder)?.sync_all()?;
        }
        Ok(Self {
            file,
            number,
            end: FIRST,
            synced: FIRST,
            is_sync_refused: false,
        })
    }

    /// Writes `bytes`, whole events, behind what is there; what was begun and failed
    /// is written over the next time.
    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.end)?;
        self.end += bytes.len() as u64;
        Ok(())
    }

    /// Syncs the appended events. The kernel reports a failed write to the disk once, and may count its bytes as
    /// written from then on: after a refusal, unsynced events are written again before the next sync.
    pub(super) fn sync(&mut self, folder: &Path) -> io::Result<()> {
        if self.is_sync_refused {
            self.write_again(folder)?;
        }
        self.is_sync_refused = true;
        self.file.sync_data()?;
        self.is_sync_refused = false;
        self.synced = self.end;
        Ok(())
    }

    /// Writes unsynced events again.
    fn write_again(&self, folder: &Path) -> io::Result<()> {
        let reader = SegmentReader::open(folder, self.number, self.synced)?;
        let mut reader = reader.ok_or(io::ErrorKind::InvalidData)?;
        let mut bytes = Vec::new();
        while reader.offset < self.end {
            let offset = reader.offset;
            let event = reader.next(self.end)?;
            let (event, _) = event.ok_or(io::ErrorKind::InvalidData)?;
            bytes.clear();
            record::write(event, &mut bytes);
            self.file.write_all_at(&bytes, offset)?;
        }
        Ok(())
    }
}

/// The segment that is read.
#[derive(Debug)]
pub(super) struct SegmentReader {
    file: File,
    pub(super) number: u64,
    /// Offset of the next event.
    pub(super) offset: u64,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were already returned.
    taken: usize,
}

impl SegmentReader {
    /// Reads segment `number` from `offset` on; `None` if it is none of ours.
    pub(super) fn open(folder: &Path, number: u64, offset: u64) -> io::Result<Option<Self>> {
        let file = File::open(path(folder, number))?;
        let mut magic = [0; MAGIC.len()];
        match file.read_exact_at(&mut magic, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        Ok((magic == *MAGIC).then_some(Self {
            file,
            number,
            offset: offset.max(FIRST),
            buffer: Vec::new(),
            taken: 0,
        }))
    }

    /// The next event before `end`, and what it takes in the segment; `None` where
    /// there is none, or no whole one.
    pub(super) fn next(&mut self, end: u64) -> io::Result<Option<(&[u8], usize)>> {
        let mut wanted = record::HEAD_BYTES;
        loop {
            let here = &self.buffer[self.taken..];
            match record::read(here) {
                Read::Event(_, length) => {
                    let start = self.taken + record::HEAD_BYTES;
                    self.taken += length;
                    self.offset += length as u64;
                    return Ok(Some((&self.buffer[start..self.taken], length)));
                }
                Read::Torn => return Ok(None),
                Read::Part(needed) => wanted = wanted.max(needed),
            }
            if !self.fill(wanted, end)? {
                return Ok(None);
            }
        }
    }

    /// Reads on until `wanted` bytes are there; false where there are fewer.
    fn fill(&mut self, wanted: usize, end: u64) -> io::Result<bool> {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        let held = self.buffer.len();
        let from = self.offset + held as u64;
        let left = as_usize(end.saturating_sub(from));
        let length = left.min(READ_BYTES.max(wanted - held.min(wanted)));
        if held + length < wanted {
            return Ok(false);
        }
        self.buffer.resize(held + length, 0);
        self.file.read_exact_at(&mut self.buffer[held..], from)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_events_are_read_up_to_the_given_end() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::begin(folder.path(), 7, true).unwrap();
        let mut bytes = Vec::new();
        let long = vec![b'x'; 2 * READ_BYTES];
        for event in [b"one".as_slice(), b"", &long] {
            record::write(event, &mut bytes);
        }
        writer.append(&bytes).unwrap();
        assert_eq!(numbers(folder.path()).unwrap(), [7]);
        let mut reader = SegmentReader::open(folder.path(), 7, 0).unwrap().unwrap();
        assert_eq!(reader.next(FIRST).unwrap(), None);
        for event in [b"one".as_slice(), b"", &long] {
            let (read, length) = reader.next(writer.end).unwrap().unwrap();
            assert_eq!((read, length), (event, event.len() + record::HEAD_BYTES));
        }
        assert_eq!(reader.next(writer.end).unwrap(), None);
        assert_eq!(reader.offset, writer.end);
        // From the middle on, and cut.
        let mut reader = SegmentReader::open(folder.path(), 7, FIRST + 11)
            .unwrap()
            .unwrap();
        assert_eq!(reader.next(writer.end).unwrap(), Some((b"".as_slice(), 8)));
        assert_eq!(reader.next(writer.end - 1).unwrap(), None);
    }

    #[test]
    fn a_segment_that_was_begun_on_a_full_disk_could_never_be_begun_again() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(path(folder.path(), 3), &MAGIC[..2]).unwrap();
        let mut writer = Writer::begin(folder.path(), 3, true).unwrap();
        let mut bytes = Vec::new();
        record::write(b"one", &mut bytes);
        writer.append(&bytes).unwrap();
        let mut reader = SegmentReader::open(folder.path(), 3, 0).unwrap().unwrap();
        assert_eq!(
            reader.next(writer.end).unwrap(),
            Some((b"one".as_slice(), 11))
        );
    }

    #[test]
    fn what_is_none_of_ours_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["", "short", "something else"] {
            fs::write(path(folder.path(), 1), text).unwrap();
            assert!(SegmentReader::open(folder.path(), 1, 0).unwrap().is_none());
        }
    }
}
