//! Ends of a target's logs.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Number of bytes at a log's end that are read.
const TAIL_BYTES: u64 = 64 * 1024;

/// Returns at most the last `count` lines of the file, from its last 64 KiB; empty if it cannot be read.
pub(crate) fn last_lines(path: &Path, count: usize) -> Vec<String> {
    let Ok(tail) = read_tail(path) else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&tail);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..]
        .iter()
        .map(|line| (*line).to_owned())
        .collect()
}

fn read_tail(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail)?;
    Ok(tail)
}

/// Looks for a text in a file that grows.
#[derive(Debug, Default)]
pub(crate) struct Follower {
    position: u64,
    /// The last, incomplete line.
    unfinished: Vec<u8>,
}

impl Follower {
    /// Limit on one line: a program may never write a line end.
    const LINE_BYTES_MAX: usize = 64 * 1024;
    /// Limit on one search, which nothing can interrupt.
    const BYTES_MAX: u64 = 1 << 20;
    /// Limit on bytes that are not searched yet.
    const LAG_BYTES_MAX: u64 = 8 << 20;

    /// Starts at `position`.
    pub(crate) fn from(position: u64) -> Self {
        Self {
            position,
            unfinished: Vec::new(),
        }
    }

    /// Returns true if a line with `text` was appended since the last call. An incomplete line counts too. Searches
    /// 1 MiB at most, and skips bytes if there are more than 8 MiB.
    pub(crate) fn has_line(&mut self, path: &Path, text: &str) -> std::io::Result<bool> {
        let mut file = File::open(path)?;
        // A log may be cut behind its head.
        let length = file.metadata()?.len();
        self.position = self.position.min(length);
        // Of a program that writes faster than this is read, only the end is searched.
        if length - self.position > Self::LAG_BYTES_MAX {
            self.position = length - Self::BYTES_MAX;
            self.unfinished.clear();
        }
        file.seek(SeekFrom::Start(self.position))?;
        let mut file = file.take(Self::BYTES_MAX);
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let length = file.read(&mut buffer)?;
            if length == 0 {
                return Ok(false);
            }
            self.position += length as u64;
            for line in buffer[..length].split_inclusive(|byte| *byte == b'\n') {
                self.unfinished.extend_from_slice(line);
                if contains(&self.unfinished, text.as_bytes()) {
                    return Ok(true);
                }
                if line.ends_with(b"\n") {
                    self.unfinished.clear();
                } else if self.unfinished.len() > Self::LINE_BYTES_MAX {
                    let surplus = self.unfinished.len() - text.len();
                    self.unfinished.drain(..surplus);
                }
            }
        }
    }
}

fn contains(line: &[u8], text: &[u8]) -> bool {
    text.is_empty() || line.windows(text.len()).any(|window| window == text)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_last_lines_are_those_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        assert!(last_lines(&path, 3).is_empty());
        let text: String = (0..20_000).map(|line| format!("line {line}\n")).collect();
        std::fs::write(&path, text).unwrap();
        assert_eq!(last_lines(&path, 2), ["line 19998", "line 19999"]);
    }

    #[test]
    fn a_search_is_bounded_and_keeps_up_with_a_flood() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let file = File::create(&path).unwrap();
        file.set_len(1 << 40).unwrap();
        let mut follower = Follower::default();
        let has_line = |follower: &mut Follower| follower.has_line(&path, "ready").unwrap();
        assert!(!has_line(&mut follower));
        std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"ready\n")
            .unwrap();
        assert!((0..2).any(|_| has_line(&mut follower)));
    }

    #[test]
    fn a_line_is_seen_though_it_comes_in_parts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut file = File::create(&path).unwrap();
        let mut follower = Follower::default();
        for (part, expected) in [
            ("is it rea", false),
            ("dy\nno", false),
            ("w: re", false),
            ("ady!", true),
        ] {
            file.write_all(part.as_bytes()).unwrap();
            assert_eq!(
                follower.has_line(&path, "w: ready").unwrap(),
                expected,
                "{part}"
            );
        }
    }
}
