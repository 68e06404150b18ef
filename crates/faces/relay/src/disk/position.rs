//! Up to where events were handed over: two places of one file that are written in
//! turn, so a torn one leaves the one before it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::record::checksum;

/// The file within the buffer's folder.
pub(super) const NAME: &str = "position";

/// Size of a place: turn, segment, offset, and the checksum over these.
const PLACE_BYTES: usize = 28;

/// A byte of one of the segments.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Position {
    pub(super) segment: u64,
    pub(super) offset: u64,
}

/// Keeps a position.
#[derive(Debug)]
pub(super) struct PositionFile {
    file: File,
    turn: u64,
}

impl PositionFile {
    /// Opens the one in `folder`, and gives what it says: the beginning where there
    /// is none.
    pub(super) fn open(folder: &Path) -> io::Result<(Self, Position)> {
        let mut options = OpenOptions::new();
        let options = options.create(true).truncate(false).read(true).write(true);
        let file = options.open(folder.join(NAME))?;
        let places = [0, 1].map(|place| read(&file, place));
        let newest = places.into_iter().flatten().max_by_key(|(turn, _)| *turn);
        let (turn, position) = newest.unwrap_or_default();
        Ok((Self { file, turn }, position))
    }

    /// Keeps `position`. It survives this process, not the host: an older one only
    /// sends events again.
    pub(super) fn keep(&mut self, position: Position) -> io::Result<()> {
        self.turn += 1;
        let mut place = [0; PLACE_BYTES];
        let words = [self.turn, position.segment, position.offset];
        for (word, part) in words.iter().zip(place.chunks_mut(8)) {
            part.copy_from_slice(&word.to_le_bytes());
        }
        let sum = checksum(&place[..24]).to_le_bytes();
        place[24..].copy_from_slice(&sum);
        self.file.write_all_at(&place, offset_of(self.turn % 2))
    }
}

/// Apart from each other, so no write touches both.
const fn offset_of(place: u64) -> u64 {
    place * 4096
}

fn read(file: &File, place: u64) -> Option<(u64, Position)> {
    let mut bytes = [0; PLACE_BYTES];
    file.read_exact_at(&mut bytes, offset_of(place)).ok()?;
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| bytes[at + index]));
    let sum = u32::from_le_bytes(std::array::from_fn(|index| bytes[24 + index]));
    let position = Position {
        segment: word(8),
        offset: word(16),
    };
    (sum == checksum(&bytes[..24])).then_some((word(0), position))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_place_leaves_the_one_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |offset| Position { segment: 3, offset };
        let (mut file, position) = PositionFile::open(folder.path()).unwrap();
        assert_eq!(position, Position::default());
        for offset in [10, 20, 30] {
            file.keep(at(offset)).unwrap();
        }
        let (mut file, position) = PositionFile::open(folder.path()).unwrap();
        assert_eq!(position, at(30));
        file.keep(at(40)).unwrap();
        // The newest lies in the first place.
        file.file.write_all_at(b"torn", 8).unwrap();
        let (_, position) = PositionFile::open(folder.path()).unwrap();
        assert_eq!(position, at(30));
    }
}
