//! The files that one after the other are at a path, oldest first.
//!
//! A file that is moved away is known by its inode, which stays its own for as long as it
//! is held open. A rotation gives it the name `NAME.1`, and each further rotation a
//! number that is one higher: so where the newest file that is held has become `NAME.3`,
//! there are two more between it and the one that is at the path now.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Files that are held open at most; those beyond are found by their names once
/// some were read.
const OPEN_MAX: usize = 16;

/// The highest number that a file is looked for under.
const NUMBER_MAX: u32 = 1000;

/// Maximum number of repeated looks at names that change meanwhile.
const TRIES_MAX: usize = 8;

/// Files that are or were at a path, and are not read to the end yet.
#[derive(Debug)]
pub(super) struct Chain {
    path: PathBuf,
    /// Those that are held, oldest first; the last one is kept after it was read.
    open: VecDeque<Open>,
    /// The newest file that is no longer of interest.
    known: Option<u64>,
}

/// Result of a read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Took {
    /// So many bytes.
    Bytes(usize),
    /// The end of a file; another one follows.
    End,
    /// Nothing for now.
    Nothing,
}

/// A file under way.
#[derive(Debug)]
struct Open {
    file: File,
    inode: u64,
    place: u64,
}

impl Chain {
    /// Files that appear at `path` from now on.
    pub(super) fn of(path: &Path) -> Self {
        let mut chain = Self {
            path: path.to_path_buf(),
            open: VecDeque::new(),
            known: None,
        };
        // A file that cannot be opened, or is none, is reported when it is to be read.
        let is_file = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
        if is_file && let Ok(Some(before)) = Open::at_end(path) {
            chain.open.push_back(before);
        } else {
            chain.known = inode_at(&chain.numbered(1)).unwrap_or_default();
        }
        chain
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens files that were created since.
    pub(super) fn look(&mut self) -> io::Result<()> {
        let newest = self.open.back().map(|open| open.inode);
        if newest.is_some() && newest == inode_at(&self.path)? {
            return Ok(());
        }
        let newest = newest.or(self.known);
        for _ in 0..TRIES_MAX {
            if self.open.len() >= OPEN_MAX {
                return Ok(());
            }
            if let Some(files) = self.newer_than(newest)? {
                // The oldest first; what finds no room is found again.
                let room = OPEN_MAX - self.open.len();
                self.open.extend(files.into_iter().take(room));
                return Ok(());
            }
        }
        // It is rotated all the time; the next look may find it at rest.
        Ok(())
    }

    /// The files that came after the one with the inode `newest`, oldest first;
    /// `None` where names have changed meanwhile.
    fn newer_than(&self, newest: Option<u64>) -> io::Result<Option<Vec<Open>>> {
        let Some(place) = self.place_of(newest)? else {
            // It was moved elsewhere or removed: only the present file can be reported.
            let now = Open::at_start(&self.path)?;
            return Ok(Some(now.into_iter().collect()));
        };
        let mut files = Vec::new();
        for number in (1..place).rev() {
            match Open::at_start(&self.numbered(number))? {
                Some(file) => files.push(file),
                None => return Ok(None),
            }
        }
        let now = Open::at_start(&self.path)?;
        let is_same = self.place_of(newest)? == Some(place)
            && inode_at(&self.path)? == now.as_ref().map(|open| open.inode);
        files.extend(now);
        Ok(is_same.then_some(files))
    }

    /// The number behind the name that the file with the inode `newest` has now;
    /// without one, the first that no file has.
    fn place_of(&self, newest: Option<u64>) -> io::Result<Option<u32>> {
        for number in 1..=NUMBER_MAX {
            match (inode_at(&self.numbered(number))?, newest) {
                (None, None) => return Ok(Some(number)),
                (None, Some(_)) => return Ok(None),
                (inode, Some(_)) if inode == newest => return Ok(Some(number)),
                (Some(_), _) => {}
            }
        }
        Ok(None)
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut name = OsString::from(&self.path);
        name.push(format!(".{number}"));
        PathBuf::from(name)
    }

    /// Reads on. A file has ended where it holds no more and one that came after it holds
    /// something, or a second one appeared: the writer has moved on.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<Took> {
        let later = self.open.iter().skip(1);
        let is_left = self.open.len() > 2 || later.into_iter().any(Open::has_begun);
        let Some(oldest) = self.open.front_mut() else {
            return Ok(Took::Nothing);
        };
        match oldest.read(buffer)? {
            0 if is_left => {
                self.open.pop_front();
                Ok(Took::End)
            }
            0 => Ok(Took::Nothing),
            bytes => Ok(Took::Bytes(bytes)),
        }
    }

    /// Returns the number of held bytes that are still to be read.
    pub(super) fn unread(&self) -> io::Result<u64> {
        let unread = |open: &Open| Ok(open.file.metadata()?.len().saturating_sub(open.place));
        self.open.iter().map(unread).sum()
    }
}

impl Open {
    /// The file that is at `path` now; `None` if there is none.
    fn at_start(path: &Path) -> io::Result<Option<Self>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let inode = file.metadata()?.ino();
        Ok(Some(Self {
            file,
            inode,
            place: 0,
        }))
    }

    /// The same, of which all that is in it was read.
    fn at_end(path: &Path) -> io::Result<Option<Self>> {
        let mut open = Self::at_start(path)?;
        if let Some(open) = &mut open {
            open.place = open.file.seek(SeekFrom::End(0))?;
        }
        Ok(open)
    }

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

    fn has_begun(&self) -> bool {
        self.file
            .metadata()
            .is_ok_and(|metadata| metadata.len() > 0)
    }
}

/// The inode of what is at `path`; `None` if nothing is.
fn inode_at(path: &Path) -> io::Result<Option<u64>> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
