//! The end of a file that is appended to. A failed write may have cut an event there.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// End of a file. Shared by all connections that append to the file.
#[derive(Debug)]
pub(super) struct Tail {
    /// True if a line feed ends each event.
    ends_lines: bool,
    /// True if the file ends with part of an event whose rest is not sent any more.
    is_cut: AtomicBool,
}

impl Tail {
    pub(super) const fn new(ends_lines: bool) -> Self {
        Self {
            ends_lines,
            is_cut: AtomicBool::new(false),
        }
    }

    /// Appends `block`. Returns the number of written bytes, and the error that prevented the
    /// rest. An error before the first byte is the error of the call.
    pub(super) fn append(
        &self,
        out: &mut impl Write,
        block: &[u8],
    ) -> io::Result<(usize, Option<io::Error>)> {
        self.end_cut_line(out)?;
        match write_most(out, block) {
            (0, Some(error)) => Err(error),
            (length, error) => {
                if error.is_some() {
                    self.cut_after(&block[..length]);
                }
                Ok((length, error))
            }
        }
    }

    /// Notes that the file ends with `part` of a block, and that the rest does not follow.
    pub(super) fn cut_after(&self, part: &[u8]) {
        if !part.is_empty() && !part.ends_with(b"\n") {
            self.cut();
        }
    }

    /// Notes that the file ends in the middle of an event, and that the rest does not follow.
    pub(super) fn cut(&self) {
        if self.ends_lines {
            self.is_cut.store(true, Ordering::Relaxed);
        }
    }

    /// Writes a line feed if the file ends with a cut event: one event is one line.
    pub(super) fn end_cut_line(&self, out: &mut impl Write) -> io::Result<()> {
        // Mostly nothing is cut, and reading does not take the cache line from other threads.
        if !self.is_cut.load(Ordering::Relaxed) || !self.is_cut.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let ended = out.write_all(b"\n");
        if ended.is_err() {
            self.is_cut.store(true, Ordering::Relaxed);
        }
        ended
    }
}

/// Writes as much of `block` as possible. Returns the number of written bytes, and the error
/// that prevented the rest.
pub(super) fn write_most(out: &mut impl Write, block: &[u8]) -> (usize, Option<io::Error>) {
    let mut length = 0;
    while length < block.len() {
        match out.write(&block[length..]) {
            Ok(0) => return (length, Some(io::ErrorKind::WriteZero.into())),
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (length, Some(error)),
        }
    }
    (length, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file on a file system with room for so many bytes.
    struct Limited {
        bytes: Vec<u8>,
        room: usize,
    }

    impl Write for Limited {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.room);
            if count == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.bytes.extend_from_slice(&bytes[..count]);
            self.room -= count;
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn for_all_lengths_of_a_cut_each_event_is_one_line_and_is_written_once() {
        let (first, second) = (b"a1\na2\na3\n", b"b1\nb2\n");
        for room in 0..=first.len() {
            let tail = Tail::new(true);
            let bytes = Vec::new();
            let mut file = Limited { bytes, room };
            let written = match tail.append(&mut file, first) {
                Ok((length, error)) => {
                    assert_eq!(error.is_some(), length < first.len(), "{room}");
                    length
                }
                Err(_) => 0,
            };
            assert_eq!(written, room);
            file.room = 100;
            // A block without a written byte is sent again, a cut one is not.
            let again: &[u8] = if written == 0 { first } else { b"" };
            for block in [again, second] {
                let (length, error) = tail.append(&mut file, block).unwrap();
                assert!(length == block.len() && error.is_none(), "{room}");
            }
            let mut expected = first[..written].to_vec();
            if !expected.is_empty() && !expected.ends_with(b"\n") {
                expected.push(b'\n');
            }
            expected.extend_from_slice(again);
            expected.extend_from_slice(second);
            assert_eq!(file.bytes, expected, "{room}");
        }
    }

    #[test]
    fn a_cut_line_that_cannot_be_ended_is_ended_before_the_next_block() {
        let tail = Tail::new(true);
        let (bytes, room) = (Vec::new(), 2);
        let mut file = Limited { bytes, room };
        assert_eq!(tail.append(&mut file, b"aaa\n").unwrap().0, 2);
        // Not even the line feed has room.
        assert!(tail.append(&mut file, b"bbb\n").is_err());
        file.room = 100;
        tail.append(&mut file, b"bbb\n").unwrap();
        tail.append(&mut file, b"ccc\n").unwrap();
        assert_eq!(file.bytes, b"aa\nbbb\nccc\n");
    }

    #[test]
    fn nothing_is_added_to_a_format_without_lines() {
        let tail = Tail::new(false);
        let (bytes, room) = (Vec::new(), 2);
        let mut file = Limited { bytes, room };
        assert_eq!(tail.append(&mut file, b"aaaa").unwrap().0, 2);
        file.room = 100;
        tail.append(&mut file, b"bbbb").unwrap();
        assert_eq!(file.bytes, b"aabbbb");
    }
}
