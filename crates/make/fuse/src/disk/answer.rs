//! Answers of a disk to the kernel's requests, carried out in the folder that it shows.

mod change;

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirEntryExt, FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, open, statvfs};
use rustix::io::Errno;
use stillwell_metric::DiskShard;
use stillwell_units::{Moment, as_usize, count};

use super::controls::DiskControls;
use super::nodes::Nodes;
use super::room::Room;
use crate::protocol::{
    Attributes, FolderEntry, OpenFlags, Operation, Request, Validity, forgotten, put_attributes,
    put_entry, put_folder_entry, put_open, put_statfs, put_written,
};
use crate::serve::{Answer, FileSystem};

/// All changes come through the disk, so the kernel may cache a name for a while; but
/// a file with two names is two nodes, and what is done to one shows at both.
const VALIDITY: Validity = Validity {
    name_secs: 1,
    attributes_secs: 0,
};
/// Of the flags of an open: what the folder's own files are opened with.
const OPEN_FLAGS: OFlags = OFlags::RDWR.union(OFlags::WRONLY);

type Answered = Result<Answer, Errno>;

/// Device and inode of a file.
type FileId = (u64, u64);

/// The folder, and what the kernel knows about it.
#[derive(Debug)]
pub(super) struct Files {
    /// The folder's own path, which no mount over it changes.
    root: PathBuf,
    /// Holds the folder, so the path stays good.
    _folder: File,
    nodes: Nodes,
    handles: HashMap<u64, Handle>,
    next_handle: u64,
    room: Room,
    /// Bytes of each file, by its inode, that no `fsync` came after.
    unsynced: HashMap<u64, u64>,
    /// File and bytes that become durable with each `fsync` that is not answered yet.
    syncing: HashMap<u64, (Option<u64>, u64)>,
    /// When the disk has taken all that was written, where it is slow.
    busy_until: Moment,
    controls: Arc<DiskControls>,
    /// Number of restores that were seen here.
    restored: u64,
    shard: Arc<DiskShard>,
}

#[derive(Debug)]
struct Handle {
    node: u64,
    what: Opened,
}

#[derive(Debug)]
enum Opened {
    /// A file; any of its names may have been opened.
    File { file: File, id: FileId },
    /// A folder, with what it held when its listing began.
    Folder(Vec<(OsString, u64, u32)>),
}

impl Files {
    pub(super) fn new(
        folder: File,
        controls: Arc<DiskControls>,
        shard: Arc<DiskShard>,
    ) -> io::Result<Self> {
        let root = PathBuf::from(format!("/proc/self/fd/{}/.", folder.as_raw_fd()));
        let room = Room::new(bytes_below(&root)?);
        shard.used.set(room.used());
        Ok(Self {
            root,
            _folder: folder,
            nodes: Nodes::new(),
            handles: HashMap::new(),
            next_handle: 1,
            room,
            unsynced: HashMap::new(),
            syncing: HashMap::new(),
            busy_until: Moment::new(0),
            restored: controls.restored(),
            controls,
            shard,
        })
    }

    fn path(&self, node: u64) -> Result<PathBuf, Errno> {
        let path = self.nodes.path(node).ok_or(Errno::NOENT)?;
        Ok(self.root.join(path))
    }

    fn path_of(&self, parent: u64, name: &OsStr) -> Result<PathBuf, Errno> {
        let path = self.nodes.path_of(parent, name).ok_or(Errno::NOENT)?;
        Ok(self.root.join(path))
    }

    /// Returns the metadata of a node; without a name, through an open handle.
    fn metadata(&self, node: u64) -> Result<Metadata, Errno> {
        match self.path(node) {
            Ok(path) => fs::symlink_metadata(path).map_err(errno),
            Err(error) => {
                let handle = self.nodes.handle(node).ok_or(error)?;
                self.file(handle)?.metadata().map_err(errno)
            }
        }
    }

    fn file(&self, handle: u64) -> Result<&File, Errno> {
        match self.handles.get(&handle).map(|handle| &handle.what) {
            Some(Opened::File { file, .. }) => Ok(file),
            _ => Err(Errno::BADF),
        }
    }

    /// Answers with the node of this name.
    fn answer_entry(&mut self, parent: u64, name: &OsStr, out: &mut Vec<u8>) -> Answered {
        let path = self.path_of(parent, name)?;
        let metadata = fs::symlink_metadata(path).map_err(errno)?;
        let node = self.nodes.look_up(parent, name);
        put_entry(out, node, &attributes(&metadata), VALIDITY);
        Ok(Answer::Done)
    }

    fn open(&mut self, node: u64, flags: u32) -> Result<u64, Errno> {
        let path = self.path(node)?;
        let flags = OFlags::from_bits_truncate(flags) & OPEN_FLAGS;
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = File::from(open(&path, flags, Mode::empty())?);
        let id = id_of(&file.metadata().map_err(errno)?);
        Ok(self.keep(node, Opened::File { file, id }))
    }

    /// Returns true if a process has the file open, by any of its names.
    fn is_open(&self, metadata: &Metadata) -> bool {
        let id = id_of(metadata);
        let mut handles = self.handles.values();
        handles.any(|handle| matches!(handle.what, Opened::File { id: opened, .. } if opened == id))
    }

    fn keep(&mut self, node: u64, what: Opened) -> u64 {
        let handle = self.next_handle;
        self.next_handle += 1;
        self.nodes.open(node, handle);
        self.handles.insert(handle, Handle { node, what });
        handle
    }

    fn release(&mut self, handle: u64) -> Answered {
        let closed = self.handles.remove(&handle).ok_or(Errno::BADF)?;
        self.nodes.close(closed.node, handle);
        let Opened::File { file, .. } = closed.what else {
            return Ok(Answer::Done);
        };
        // The last that held a file without a name gives its room back.
        if let Ok(metadata) = file.metadata()
            && metadata.nlink() == 0
            && !self.is_open(&metadata)
        {
            self.gone(&metadata);
        }
        Ok(Answer::Done)
    }

    /// A file is not there any more.
    fn gone(&mut self, metadata: &Metadata) {
        self.resized(metadata.len(), 0);
        self.unsynced.remove(&metadata.ino());
    }

    fn resized(&mut self, before: u64, after: u64) {
        self.room.resized(before, after);
        self.shard.used.set(self.room.used());
    }

    fn read(&self, handle: u64, offset: u64, size: u32, out: &mut Vec<u8>) -> Answered {
        let file = self.file(handle)?;
        let from = out.len();
        out.resize(from + usize::try_from(size).unwrap_or(0), 0);
        let mut filled = from;
        while filled < out.len() {
            let at = offset + (filled - from) as u64;
            match file.read_at(&mut out[filled..], at) {
                Ok(0) => break,
                Ok(bytes) => filled += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(errno(error)),
            }
        }
        out.truncate(filled);
        Ok(Answer::Done)
    }

    fn write(
        &mut self,
        (handle, offset): (u64, u64),
        data: &[u8],
        now: Moment,
        out: &mut Vec<u8>,
    ) -> Answered {
        let metadata = self.file(handle)?.metadata().map_err(errno)?;
        let (size, length) = (metadata.len(), data.len() as u64);
        let fits = self.room.fit(size, offset, length, self.controls.limit());
        if fits != Some(length) {
            self.shard.refused.add(1);
        }
        let fits = usize::try_from(fits.ok_or(Errno::NOSPC)?).unwrap_or(data.len());
        let written = self.file(handle)?.write_at(&data[..fits], offset);
        let written = written.map_err(errno)?;
        let bytes = written as u64;
        self.resized(size, size.max(offset + bytes));
        *self.unsynced.entry(metadata.ino()).or_default() += bytes;
        self.shard.written.add(bytes);
        put_written(out, count(written));
        let time = self.controls.write_time_of(bytes);
        if time.as_u64() == 0 {
            return Ok(Answer::Done);
        }
        self.busy_until = self.busy_until.max(now) + time;
        Ok(Answer::At(self.busy_until))
    }

    fn fsync(&mut self, request: &Request<'_>, now: Moment) -> Answered {
        let mut inode = None;
        match request.operation {
            Operation::Fsync { handle, data_only } => {
                let file = self.file(handle)?;
                let synced = if data_only {
                    file.sync_data()
                } else {
                    file.sync_all()
                };
                synced.map_err(errno)?;
                inode = Some(file.metadata().map_err(errno)?.ino());
            }
            _ => {
                let folder = File::open(self.path(request.node)?).map_err(errno)?;
                folder.sync_all().map_err(errno)?;
            }
        }
        let bytes = inode
            .and_then(|inode| self.unsynced.remove(&inode))
            .unwrap_or(0);
        self.syncing.insert(request.unique, (inode, bytes));
        let delay = self.controls.fsync_delay_of(bytes);
        if delay.as_u64() == 0 {
            self.finish_delayed(request.unique, false);
            return Ok(Answer::Done);
        }
        Ok(Answer::At(now + delay))
    }

    fn list(&mut self, request: &Request<'_>, out: &mut Vec<u8>) -> Answered {
        let Operation::ReadFolder {
            handle,
            offset,
            size,
        } = request.operation
        else {
            return Err(Errno::INVAL);
        };
        let path = self.path(request.node)?;
        let Some(Opened::Folder(entries)) =
            self.handles.get_mut(&handle).map(|handle| &mut handle.what)
        else {
            return Err(Errno::BADF);
        };
        // Who begins again sees what is there now.
        if offset == 0 {
            *entries = listing(&path).map_err(errno)?;
        }
        let from = out.len();
        let first = as_usize(offset);
        for (entry, at) in entries.iter().skip(first).zip(offset + 1..) {
            let (name, inode, kind) = entry;
            let entry = FolderEntry {
                inode: *inode,
                offset: at,
                kind: *kind,
                name,
            };
            if !put_folder_entry(out, from, size, entry) {
                break;
            }
        }
        Ok(Answer::Done)
    }

    fn room_left(&self, out: &mut Vec<u8>) -> Answered {
        let there = statvfs(&self.root)?;
        let (bytes, free) = (
            there.f_blocks * there.f_frsize,
            there.f_bavail * there.f_frsize,
        );
        let (bytes, free) = match self.controls.limit() {
            Some(limit) => (limit, limit.saturating_sub(self.room.used()).min(free)),
            None => (bytes, free),
        };
        put_statfs(out, bytes, free);
        Ok(Answer::Done)
    }

    fn link_target(&self, node: u64, out: &mut Vec<u8>) -> Answered {
        let target = fs::read_link(self.path(node)?).map_err(errno)?;
        out.extend(target.as_os_str().as_bytes());
        Ok(Answer::Done)
    }

    fn done(&mut self, request: &Request<'_>, now: Moment, out: &mut Vec<u8>) -> Answered {
        let node = request.node;
        match request.operation {
            Operation::Lookup { name } => self.answer_entry(node, name, out),
            Operation::Forget { count } => {
                self.nodes.forget(node, count);
                Ok(Answer::Done)
            }
            Operation::ForgetMany { pairs } => {
                for (node, count) in forgotten(pairs) {
                    self.nodes.forget(node, count);
                }
                Ok(Answer::Done)
            }
            Operation::GetAttributes => {
                put_attributes(out, &attributes(&self.metadata(node)?), VALIDITY);
                Ok(Answer::Done)
            }
            Operation::ReadLink => self.link_target(node, out),
            Operation::Open { flags } => {
                let handle = self.open(node, flags)?;
                put_open(out, handle, OpenFlags::Cached);
                Ok(Answer::Done)
            }
            Operation::OpenFolder => {
                let handle = self.keep(node, Opened::Folder(Vec::new()));
                put_open(out, handle, OpenFlags::Cached);
                Ok(Answer::Done)
            }
            Operation::Read {
                handle,
                offset,
                size,
            } => self.read(handle, offset, size, out),
            Operation::Write {
                handle,
                offset,
                data,
            } => self.write((handle, offset), data, now, out),
            Operation::Flush { .. } => Ok(Answer::Done),
            Operation::Release { handle } | Operation::ReleaseFolder { handle } => {
                self.release(handle)
            }
            Operation::Fsync { .. } | Operation::FsyncFolder => self.fsync(request, now),
            Operation::ReadFolder { .. } => self.list(request, out),
            Operation::StatFs => self.room_left(out),
            _ => self.change(request, out),
        }
    }
}

impl FileSystem for Files {
    fn answer(&mut self, request: &Request<'_>, now: Moment, out: &mut Vec<u8>) -> Answer {
        self.done(request, now, out).unwrap_or_else(Answer::Failed)
    }

    fn beat(&mut self, _now: Moment) {}

    fn is_hurried(&mut self) -> bool {
        let before = std::mem::replace(&mut self.restored, self.controls.restored());
        if self.restored == before {
            return false;
        }
        self.busy_until = Moment::new(0);
        true
    }

    fn finish_delayed(&mut self, unique: u64, is_given_up: bool) {
        // A delayed write needs nothing more: its bytes are in the file.
        let Some((inode, bytes)) = self.syncing.remove(&unique) else {
            return;
        };
        if !is_given_up {
            self.shard.fsyncs.add(1);
            self.shard.synced.add(bytes);
        } else if let Some(inode) = inode {
            *self.unsynced.entry(inode).or_default() += bytes;
        }
    }
}

fn id_of(metadata: &Metadata) -> FileId {
    (metadata.dev(), metadata.ino())
}

fn attributes(metadata: &Metadata) -> Attributes {
    let rest = |nanoseconds: i64| u32::try_from(nanoseconds).unwrap_or(0);
    Attributes {
        inode: metadata.ino(),
        size: metadata.len(),
        blocks: metadata.blocks(),
        accessed: (metadata.atime(), rest(metadata.atime_nsec())),
        modified: (metadata.mtime(), rest(metadata.mtime_nsec())),
        changed: (metadata.ctime(), rest(metadata.ctime_nsec())),
        mode: metadata.mode(),
        links: u32::try_from(metadata.nlink()).unwrap_or(u32::MAX),
        uid: metadata.uid(),
        gid: metadata.gid(),
        device: u32::try_from(metadata.rdev()).unwrap_or(0),
    }
}

/// Name, inode and kind of everything in a folder.
fn listing(path: &Path) -> io::Result<Vec<(OsString, u64, u32)>> {
    let entries = fs::read_dir(path)?.map(|entry| {
        let entry = entry?;
        let kind = entry.file_type()?;
        let kind = [
            (kind.is_dir(), 0o040_000),
            (kind.is_symlink(), 0o120_000),
            (kind.is_fifo(), 0o010_000),
            (kind.is_socket(), 0o140_000),
            (kind.is_char_device(), 0o020_000),
            (kind.is_block_device(), 0o060_000),
        ]
        .into_iter()
        .find_map(|(is_it, mode)| is_it.then_some(mode));
        Ok((entry.file_name(), entry.ino(), kind.unwrap_or(0o100_000)))
    });
    entries.collect()
}

/// Bytes of all files in a folder and below; a file with several names counts once.
fn bytes_below(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    let mut counted = HashSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                let metadata = entry.metadata()?;
                if metadata.nlink() == 1 || counted.insert(id_of(&metadata)) {
                    bytes += metadata.len();
                }
            }
        }
    }
    Ok(bytes)
}

#[expect(clippy::needless_pass_by_value, reason = "shaped for `map_err`")]
fn errno(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests;
