//! Files that are read while they grow: each connection is one, each block one write.

use std::cell::RefCell;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use stillwell_metric::Outcome;
use stillwell_plan::generator::{FileLayout, WhenFull};
use stillwell_scope::{Tasks, clock};
use stillwell_units::{Moment, Nanos, Seed};
use stillwell_wire::DialError;
use stillwell_worker::{FileControl, Opener, Worker};
use tokio::time::sleep;

use crate::contract::{Failure, Transport};
use crate::drive::push_all;

use super::tail::{Tail, write_most};

/// Placeholder of the number in a template.
const NUMBER: &str = "%NNN%";

#[derive(Clone, Debug)]
pub(crate) struct Files {
    shared: Arc<FilesShared>,
}

#[derive(Debug)]
struct FilesShared {
    bytes_max: u64,
    naming: Naming,
    control: FileControl,
    /// Number of requested rotations that are done.
    rotations_done: AtomicU64,
    /// Bytes written to a log before its connection, the only one, was lost.
    log_written: AtomicU64,
}

#[derive(Debug)]
enum Naming {
    Numbered {
        template: String,
        delete: bool,
        next: AtomicU64,
        /// Files of connections that were lost. They are deleted before the next one is created.
        lost: Mutex<Vec<PathBuf>>,
    },
    Rotated {
        rotations: u8,
        /// Logs that no connection writes to, and whether this run has begun them.
        free: Mutex<Vec<(PathBuf, bool)>>,
    },
    Log {
        path: PathBuf,
        full: WhenFull,
        rotations: u8,
        pause: Nanos,
    },
    Appended {
        path: PathBuf,
        tail: Tail,
    },
}

impl Files {
    /// Files in `layout`. `ends_lines`: each event ends with a line feed.
    pub(crate) fn new(
        layout: &FileLayout,
        bytes_max: u64,
        files: u16,
        seed: &Seed,
        ends_lines: bool,
    ) -> Self {
        let naming = match layout {
            FileLayout::Numbered { template, delete } => Naming::Numbered {
                template: template.clone(),
                delete: *delete,
                next: AtomicU64::new(0),
                lost: Mutex::default(),
            },
            FileLayout::Rotated {
                root,
                depth_max,
                rotations,
            } => {
                // The last is taken first.
                let names = (0..files).rev();
                let names = names
                    .map(|index| log_path(root, *depth_max, &seed.derive("log", index.into())))
                    .map(|path| (path, false));
                Naming::Rotated {
                    rotations: *rotations,
                    free: Mutex::new(names.collect()),
                }
            }
            FileLayout::Log {
                path,
                full,
                rotations,
                pause,
            } => Naming::Log {
                path: path.clone(),
                full: *full,
                rotations: *rotations,
                pause: *pause,
            },
            // A mounted file system writes nothing and is no connection.
            FileLayout::Appended { path } | FileLayout::Mounted { at: path, .. } => {
                Naming::Appended {
                    path: path.clone(),
                    tail: Tail::new(ends_lines),
                }
            }
        };
        Self {
            shared: Arc::new(FilesShared {
                bytes_max,
                naming,
                control: FileControl::default(),
                rotations_done: AtomicU64::new(0),
                log_written: AtomicU64::new(0),
            }),
        }
    }
}

impl Opener for Files {
    /// None, except for a log.
    fn files(&self) -> Option<FileControl> {
        let is_log = matches!(self.shared.naming, Naming::Log { .. });
        is_log.then(|| self.shared.control.clone())
    }

    fn open(&self, worker: &Rc<Worker>, connections: u16, tasks: &mut Tasks) {
        push_all(self.clone(), worker, connections, tasks);
    }
}

/// The path of a log: a name and folders that follow from `seed`.
fn log_path(root: &Path, depth_max: u8, seed: &Seed) -> PathBuf {
    let bytes = seed.bytes();
    let number = |from: usize| u64::from_le_bytes(std::array::from_fn(|at| bytes[from + at]));
    let mut path = root.to_owned();
    let depth = number(0) % (u64::from(depth_max) + 1);
    for level in 0..depth {
        path.push((seed.derive("folder", level).bytes()[0]).to_string());
    }
    path.push(format!("{}.log", number(8)));
    path
}

/// A file that is written to.
#[derive(Debug)]
pub(crate) struct Open {
    shared: Arc<FilesShared>,
    path: PathBuf,
    /// True for a log that was written to before: it goes on after a failure.
    is_begun: bool,
    /// `None` where a new one is to be begun.
    file: Option<File>,
    written: u64,
    /// From when on a log that is full may make room.
    ready_at: Moment,
    /// The error after part of a block was written: the result of the next write.
    failure: Option<io::Error>,
    /// True once a write failed: its connection is lost.
    is_lost: bool,
}

impl Open {
    fn begin(shared: &Arc<FilesShared>) -> io::Result<Self> {
        let (path, is_begun) = match &shared.naming {
            Naming::Numbered {
                template,
                next,
                lost,
                ..
            } => {
                delete_lost(lost)?;
                (numbered(template, next), false)
            }
            Naming::Rotated { free, .. } => {
                // A thread that panicked with it in hand left it whole.
                let mut free = free.lock().unwrap_or_else(PoisonError::into_inner);
                free.pop().ok_or(io::ErrorKind::NotFound)?
            }
            Naming::Appended { path, .. } | Naming::Log { path, .. } => (path.clone(), true),
        };
        let mut open = Self {
            shared: Arc::clone(shared),
            path,
            is_begun,
            file: None,
            written: shared.log_written.load(Ordering::Relaxed),
            ready_at: Moment::new(0),
            failure: None,
            is_lost: false,
        };
        open.file = Some(open.create()?);
        Ok(open)
    }

    fn create(&mut self) -> io::Result<File> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut options = OpenOptions::new();
        if self.is_begun {
            // Bytes of another program, or of an earlier run, stay; and after a truncation the
            // end is the beginning.
            options.append(true);
        } else {
            options.write(true).truncate(true);
        }
        let file = options.create(true).open(&self.path)?;
        self.written = match &self.shared.naming {
            Naming::Rotated { .. } if self.is_begun => file.metadata()?.len(),
            // After a failure it goes on. It may hold bytes of an earlier run, which do not count.
            Naming::Log { .. } => self.written,
            _ => 0,
        };
        self.is_begun = !matches!(self.shared.naming, Naming::Numbered { .. });
        Ok(file)
    }

    /// Writes a whole block, to the next file where this one is full. Of a block that does not fit
    /// into a file that is appended to, part is written; the next call returns the error.
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        let written = match self.failure.take() {
            Some(failure) => Err(failure),
            None => self.write_next(block),
        };
        let is_waiting = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
        self.is_lost |= written.as_ref().is_err_and(|error| !is_waiting(error));
        written
    }

    fn write_next(&mut self, block: &[u8]) -> io::Result<usize> {
        self.rotate_if_requested()?;
        if self.written > self.shared.bytes_max {
            if self.pause_left() > Nanos::ZERO {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.roll()?;
        }
        let file = match self.file.take() {
            Some(file) => file,
            None => self.create()?,
        };
        let file = self.file.insert(file);
        let length = match &self.shared.naming {
            Naming::Appended { tail, .. } => {
                let (length, failure) = tail.append(file, block)?;
                self.failure = failure;
                length
            }
            _ => {
                write_whole(file, block)?;
                block.len()
            }
        };
        self.written += length as u64;
        if let Naming::Log { pause, .. } = &self.shared.naming
            && self.written > self.shared.bytes_max
        {
            self.ready_at = clock::now() + *pause;
        }
        Ok(length)
    }

    /// Rotates if a step of the timeline requested it since the last block.
    fn rotate_if_requested(&mut self) -> io::Result<()> {
        let count = self.shared.control.count();
        if self.shared.rotations_done.load(Ordering::Relaxed) == count {
            return Ok(());
        }
        let latest = self.shared.control.latest();
        if let (Some(how), Naming::Log { rotations, .. }) = (latest, &self.shared.naming)
            && !self.make_room(how, *rotations)?
        {
            self.file = None;
            self.written = 0;
        }
        self.shared.rotations_done.store(count, Ordering::Relaxed);
        Ok(())
    }

    /// Time left in which a full log is not changed while its reader catches up.
    fn pause_left(&self) -> Nanos {
        match &self.shared.naming {
            Naming::Log { pause, .. } if *pause > Nanos::ZERO => self.ready_at.since(clock::now()),
            _ => Nanos::ZERO,
        }
    }

    /// The next block begins a new file.
    fn roll(&mut self) -> io::Result<()> {
        match &self.shared.naming {
            Naming::Numbered {
                template,
                delete,
                next,
                ..
            } => {
                if *delete {
                    pass_if_absent(fs::remove_file(&self.path))?;
                }
                self.path = numbered(template, next);
            }
            Naming::Rotated { rotations, .. } => rotate(&self.path, *rotations)?,
            Naming::Log {
                full, rotations, ..
            } => {
                if self.make_room(*full, *rotations)? {
                    return Ok(());
                }
            }
            // However long it grows.
            Naming::Appended { .. } => {}
        }
        self.file = None;
        self.written = 0;
        Ok(())
    }
}

impl Open {
    /// Moves or empties a log that is full; whether the same file goes on.
    fn make_room(&mut self, full: WhenFull, rotations: u8) -> io::Result<bool> {
        match (full, &self.file) {
            (WhenFull::Rename, _) | (_, None) => {
                rotate(&self.path, rotations)?;
                return Ok(false);
            }
            (WhenFull::CopyTruncate, Some(file)) => {
                let older = older(&self.path, rotations);
                if let Some(newest) = older.first() {
                    // A copy that fails leaves all older parts as they are, and readers of `*.log*` do not see it.
                    let name = newest.file_name().unwrap_or_default().to_string_lossy();
                    let copy = newest.with_file_name(format!(".{name}.part"));
                    let copied = fs::copy(&self.path, &copy);
                    if copied.is_err() {
                        pass_if_absent(fs::remove_file(&copy))?;
                    }
                    copied?;
                    shift(&older)?;
                    fs::rename(&copy, newest)?;
                }
                file.set_len(0)?;
            }
            (WhenFull::Truncate, Some(file)) => file.set_len(0)?,
        }
        self.written = 0;
        Ok(true)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        match &self.shared.naming {
            Naming::Rotated { free, .. } => {
                let mut free = free.lock().unwrap_or_else(PoisonError::into_inner);
                free.push((std::mem::take(&mut self.path), self.is_begun));
            }
            Naming::Log { .. } => {
                let written = self.written;
                self.shared.log_written.store(written, Ordering::Relaxed);
            }
            Naming::Numbered {
                delete: true, lost, ..
            } if self.is_lost => {
                let mut lost = lost.lock().unwrap_or_else(PoisonError::into_inner);
                lost.push(std::mem::take(&mut self.path));
            }
            Naming::Numbered { .. } | Naming::Appended { .. } => {}
        }
    }
}

/// Deletes the files of connections that were lost.
fn delete_lost(lost: &Mutex<Vec<PathBuf>>) -> io::Result<()> {
    let mut lost = lost.lock().unwrap_or_else(PoisonError::into_inner);
    while let Some(path) = lost.last() {
        pass_if_absent(fs::remove_file(path))?;
        lost.pop();
    }
    Ok(())
}

/// Writes a block to a file that no other program writes to. Of a block that does not fit, the
/// written part is taken back: the block is whole when it is sent again.
fn write_whole(file: &mut File, block: &[u8]) -> io::Result<()> {
    let (length, error) = write_most(file, block);
    let Some(error) = error else {
        return Ok(());
    };
    if length > 0 {
        let end = file.metadata()?.len();
        file.set_len(end.saturating_sub(length as u64))?;
    }
    Err(error)
}

fn numbered(template: &str, next: &AtomicU64) -> PathBuf {
    let number = next.fetch_add(1, Ordering::Relaxed);
    template.replace(NUMBER, &format!("{number:04}")).into()
}

/// Moves each part of the log at `path` to the next older name; the oldest goes.
fn rotate(path: &Path, rotations: u8) -> io::Result<()> {
    let mut names = vec![path.to_owned()];
    names.extend(older(path, rotations));
    shift(&names)
}

/// The names of the older parts of the log at `path`, the newest first.
fn older(path: &Path, rotations: u8) -> Vec<PathBuf> {
    let names = (0..rotations).map(|age| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{age}"));
        PathBuf::from(name)
    });
    names.collect()
}

/// Moves what has each of `names` to the next one; what has the last one goes.
fn shift(names: &[PathBuf]) -> io::Result<()> {
    if let Some(oldest) = names.last() {
        pass_if_absent(fs::remove_file(oldest))?;
    }
    for pair in names.windows(2).rev() {
        pass_if_absent(fs::rename(&pair[0], &pair[1]))?;
    }
    Ok(())
}

/// A part that is not there, since there were too few yet or it was removed, is no
/// failure.
fn pass_if_absent(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

impl Transport for Files {
    type Connection = RefCell<Open>;

    const IS_MESSAGES: bool = true;

    async fn connect(&self) -> Result<Self::Connection, DialError> {
        let open = Open::begin(&self.shared).map_err(|source| DialError {
            address: "a file".to_owned(),
            source,
        })?;
        Ok(RefCell::new(open))
    }

    fn try_send(connection: &Self::Connection, bytes: &[u8]) -> io::Result<usize> {
        connection.borrow_mut().write(bytes)
    }

    async fn writable(connection: &Self::Connection) -> io::Result<()> {
        let length = connection.borrow().pause_left();
        sleep(length.as_duration()).await;
        Ok(())
    }

    /// Another file begins, or the same one continues behind the written part of the block.
    fn failure(_error: &io::Error) -> Failure {
        Failure {
            outcome: Outcome::SendFailed,
            is_good: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn numbered_files_follow_each_other_and_may_go() {
        for (delete, expected) in [(false, &["0000", "0001", "0002"][..]), (true, &["0002"])] {
            let folder = tempfile::tempdir().unwrap();
            let template = folder.path().join("%NNN%").display().to_string();
            let layout = FileLayout::Numbered { template, delete };
            let files = Files::new(&layout, 10, 1, &Seed::from_number(1), true);
            let mut open = Open::begin(&files.shared).unwrap();
            for _ in 0..5 {
                // Two blocks exceed the limit, which is a soft one.
                assert_eq!(open.write(b"block\n").unwrap(), 6);
            }
            assert_eq!(names(folder.path()), expected);
            let last = fs::read(folder.path().join("0002")).unwrap();
            assert_eq!(last, b"block\n");
        }
    }

    /// A write to a file that is open for reading alone fails, as one to a full file system does.
    #[test]
    fn a_numbered_file_that_failed_is_deleted_before_the_next_one_is_created() {
        for (delete, expected) in [(false, &["0000", "0001"][..]), (true, &["0001"])] {
            let folder = tempfile::tempdir().unwrap();
            let template = folder.path().join("%NNN%").display().to_string();
            let layout = FileLayout::Numbered { template, delete };
            let files = Files::new(&layout, 1000, 1, &Seed::from_number(1), true);
            let mut open = Open::begin(&files.shared).unwrap();
            open.write(b"block\n").unwrap();
            open.file = Some(File::open(&open.path).unwrap());
            open.write(b"block\n").unwrap_err();
            drop(open);
            Open::begin(&files.shared).unwrap();
            assert_eq!(names(folder.path()), expected, "{delete}");
            // The file of a connection that ends in order stays.
            assert!(folder.path().join("0001").exists());
            Open::begin(&files.shared).unwrap();
            assert!(folder.path().join("0001").exists());
        }
    }

    #[test]
    fn the_line_that_a_failed_write_has_cut_ends_before_the_next_block() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in");
        fs::write(&path, "whole\ncu").unwrap();
        let layout = FileLayout::Appended { path: path.clone() };
        let files = Files::new(&layout, 1000, 1, &Seed::from_number(1), true);
        let Naming::Appended { tail, .. } = &files.shared.naming else {
            panic!("{files:?}");
        };
        tail.cut_after(b"whole\ncu");
        for _ in 0..2 {
            let mut open = Open::begin(&files.shared).unwrap();
            assert_eq!(open.write(b"next\n").unwrap(), 5);
        }
        assert_eq!(fs::read(&path).unwrap(), b"whole\ncu\nnext\nnext\n");
    }

    /// So its block counts as cut, and is not sent again.
    #[test]
    fn the_error_after_part_of_a_block_is_the_result_of_the_next_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in");
        let layout = FileLayout::Appended { path: path.clone() };
        let files = Files::new(&layout, 1000, 1, &Seed::from_number(1), true);
        let mut open = Open::begin(&files.shared).unwrap();
        open.failure = Some(io::ErrorKind::StorageFull.into());
        let error = open.write(b"rest\n").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).unwrap(), b"");
    }

    #[test]
    fn content_of_a_file_that_is_appended_to_was_destroyed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in");
        fs::write(&path, "before\n").unwrap();
        let layout = FileLayout::Appended { path: path.clone() };
        let files = Files::new(&layout, 1, 1, &Seed::from_number(1), true);
        for _ in 0..2 {
            let mut open = Open::begin(&files.shared).unwrap();
            open.write(b"a\n").unwrap();
            open.write(b"b\n").unwrap();
        }
        assert_eq!(fs::read(&path).unwrap(), b"before\na\nb\na\nb\n");
        assert_eq!(names(folder.path()), ["in"]);
    }

    /// A failure begins a connection again, and the log of a folder continues.
    #[test]
    fn a_log_of_a_folder_is_emptied_once_in_a_run() {
        let folder = tempfile::tempdir().unwrap();
        let layout = FileLayout::Rotated {
            root: folder.path().to_owned(),
            depth_max: 0,
            rotations: 1,
        };
        let files = Files::new(&layout, 1000, 1, &Seed::from_number(1), true);
        let mut path = PathBuf::new();
        for block in [b"a\n", b"b\n"] {
            let mut open = Open::begin(&files.shared).unwrap();
            open.write(block).unwrap();
            path.clone_from(&open.path);
        }
        assert_eq!(fs::read(&path).unwrap(), b"a\nb\n");
        // Another run begins with an empty one.
        let files = Files::new(&layout, 1000, 1, &Seed::from_number(1), true);
        Open::begin(&files.shared).unwrap().write(b"c\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"c\n");
    }

    #[test]
    fn a_log_that_is_full_keeps_its_name() {
        for (full, older) in [
            (WhenFull::Rename, &["a.log.0", "a.log.1"][..]),
            (WhenFull::CopyTruncate, &["a.log.0", "a.log.1"]),
            (WhenFull::Truncate, &[]),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.log");
            let layout = FileLayout::Log {
                path: path.clone(),
                full,
                rotations: 2,
                pause: Nanos::ZERO,
            };
            let files = Files::new(&layout, 3, 1, &Seed::from_number(1), true);
            let mut open = Open::begin(&files.shared).unwrap();
            for number in 0..5 {
                open.write(format!("{number}\n").as_bytes()).unwrap();
            }
            // The fifth event begins the third part: two are as long as a part may be.
            assert_eq!(fs::read(&path).unwrap(), b"4\n", "{full:?}");
            assert_eq!(names(folder.path())[1..], *older, "{full:?}");
            for (name, text) in older.iter().zip(["2\n3\n", "0\n1\n"]) {
                assert_eq!(fs::read_to_string(folder.path().join(name)).unwrap(), text);
            }
        }
    }

    /// A failure begins a connection again, and the log goes on.
    #[test]
    fn a_log_is_no_longer_than_others_after_failures() {
        for full in WhenFull::ALL {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.log");
            // Bytes of an earlier run do not count.
            fs::write(&path, "before\n").unwrap();
            let layout = FileLayout::Log {
                path: path.clone(),
                full,
                rotations: 1,
                pause: Nanos::ZERO,
            };
            let files = Files::new(&layout, 3, 1, &Seed::from_number(1), true);
            let mut lengths = Vec::new();
            for block in [b"0\n", b"1\n", b"2\n", b"3\n", b"4\n"] {
                let mut open = Open::begin(&files.shared).unwrap();
                open.write(block).unwrap();
                lengths.push(fs::metadata(&path).unwrap().len());
            }
            assert_eq!(lengths, [9, 11, 2, 4, 2], "{full:?}");
        }
    }

    #[test]
    fn a_full_log_is_left_alone_before_it_is_emptied() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        let layout = FileLayout::Log {
            path: path.clone(),
            full: WhenFull::Truncate,
            rotations: 0,
            pause: Nanos::from_secs(3600),
        };
        let files = Files::new(&layout, 1, 1, &Seed::from_number(1), true);
        let mut open = Open::begin(&files.shared).unwrap();
        open.write(b"whole\n").unwrap();
        let refused = open.write(b"later\n").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(fs::read(&path).unwrap(), b"whole\n");
        open.ready_at = Moment::new(0);
        open.write(b"later\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"later\n");
    }

    #[test]
    fn rotated_parts_grow_older_until_they_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        for number in 0..4 {
            fs::write(&path, number.to_string()).unwrap();
            rotate(&path, 2).unwrap();
        }
        assert_eq!(names(folder.path()), ["a.log.0", "a.log.1"]);
        assert_eq!(fs::read(folder.path().join("a.log.0")).unwrap(), b"3");
        assert_eq!(fs::read(folder.path().join("a.log.1")).unwrap(), b"2");
        // Without older names the log itself goes.
        fs::write(&path, "x").unwrap();
        rotate(&path, 0).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn logs_have_names_of_their_own_within_the_depth() {
        let root = Path::new("/logs");
        let above = root.components().count() + 1;
        for depth_max in [0, 1, 3] {
            let path = |number| log_path(root, depth_max, &Seed::from_number(number));
            let paths: BTreeSet<PathBuf> = (0..50).map(path).collect();
            assert_eq!(paths.len(), 50);
            assert!(paths.iter().all(|path| path.starts_with(root)));
            let depths = paths.iter().map(|path| path.components().count() - above);
            let depths: BTreeSet<usize> = depths.collect();
            let expected: BTreeSet<usize> = (0..=usize::from(depth_max)).collect();
            assert_eq!(depths, expected);
        }
    }
}
