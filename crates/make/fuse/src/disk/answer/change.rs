//! Requests that make, change, move or remove files.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Timespec, Timestamps, mknodat, open,
    renameat_with, utimensat,
};
use rustix::io::Errno;

use super::{Answered, Files, OPEN_FLAGS, Opened, VALIDITY, attributes, errno, id_of};
use crate::protocol::{
    OpenFlags, Operation, Request, SetAttributes, put_attributes, put_entry, put_open,
};
use crate::serve::Answer;

/// The nanoseconds that mean "now" in `utimensat`.
const UTIME_NOW: i64 = 0x3fff_ffff;
/// And for what there is already.
const UTIME_OMIT: i64 = 0x3fff_fffe;
/// The permission bits of a mode.
const PERMISSIONS: u32 = 0o7777;

impl Files {
    pub(super) fn change(&mut self, request: &Request<'_>, out: &mut Vec<u8>) -> Answered {
        let node = request.node;
        match request.operation {
            Operation::SetAttributes(change) => self.set(node, change, out),
            Operation::SymbolicLink { name, target } => {
                let path = self.path_of(node, name)?;
                symlink(target, &path).map_err(errno)?;
                chown(&path, request)?;
                self.answer_entry(node, name, out)
            }
            Operation::MakeNode { mode, device, name } => {
                let path = self.path_of(node, name)?;
                let kind = FileType::from_raw_mode(mode);
                let permissions = Mode::from_bits_truncate(mode & PERMISSIONS);
                mknodat(CWD, &path, kind, permissions, device.into())?;
                chown(&path, request)?;
                permit(&path, mode)?;
                self.answer_entry(node, name, out)
            }
            Operation::MakeFolder { mode, name } => {
                let path = self.path_of(node, name)?;
                fs::create_dir(&path).map_err(errno)?;
                chown(&path, request)?;
                permit(&path, mode)?;
                self.answer_entry(node, name, out)
            }
            Operation::Create { flags, mode, name } => {
                self.create(request, (flags, mode), name, out)
            }
            Operation::Unlink { name } => self.unlink(node, name),
            Operation::RemoveFolder { name } => {
                fs::remove_dir(self.path_of(node, name)?).map_err(errno)?;
                self.nodes.unlink(node, name);
                Ok(Answer::Done)
            }
            Operation::Rename {
                folder,
                flags,
                from,
                to,
            } => self.rename((node, from), (folder, to), flags),
            Operation::Link { from, name } => {
                let path = self.path_of(node, name)?;
                fs::hard_link(self.path(from)?, path).map_err(errno)?;
                self.answer_entry(node, name, out)
            }
            // The kernel knows what to do without, and does not repeat the request.
            _ => Err(Errno::NOSYS),
        }
    }

    fn create(
        &mut self,
        request: &Request<'_>,
        (flags, mode): (u32, u32),
        name: &OsStr,
        out: &mut Vec<u8>,
    ) -> Answered {
        let path = self.path_of(request.node, name)?;
        let flags = OFlags::from_bits_truncate(flags);
        let wanted = (flags & (OPEN_FLAGS | OFlags::EXCL)) | OFlags::CREATE;
        let is_new = !path.exists();
        let permissions = Mode::from_bits_truncate(mode & PERMISSIONS);
        let file = open(
            &path,
            wanted | OFlags::CLOEXEC | OFlags::NOFOLLOW,
            permissions,
        )?;
        let file = File::from(file);
        if is_new {
            chown(&path, request)?;
            permit(&path, mode)?;
        }
        if flags.contains(OFlags::TRUNC) {
            self.resize(&file, 0)?;
        }
        let metadata = file.metadata().map_err(errno)?;
        let node = self.nodes.look_up(request.node, name);
        put_entry(out, node, &attributes(&metadata), VALIDITY);
        let id = id_of(&metadata);
        let handle = self.keep(node, Opened::File { file, id });
        put_open(out, handle, OpenFlags::Cached);
        Ok(Answer::Done)
    }

    fn unlink(&mut self, parent: u64, name: &OsStr) -> Answered {
        let path = self.path_of(parent, name)?;
        let metadata = fs::symlink_metadata(&path).map_err(errno)?;
        fs::remove_file(&path).map_err(errno)?;
        self.nodes.unlink(parent, name);
        if self.is_gone(&metadata) {
            self.gone(&metadata);
        }
        Ok(Answer::Done)
    }

    /// Returns true if there is no file any more that had `before` until one of its names was removed.
    fn is_gone(&self, before: &Metadata) -> bool {
        before.is_file() && before.nlink() == 1 && !self.is_open(before)
    }

    fn rename(&mut self, from: (u64, &OsStr), to: (u64, &OsStr), flags: u32) -> Answered {
        let flags = RenameFlags::from_bits_retain(flags);
        if flags.intersects(RenameFlags::NOREPLACE.complement()) {
            return Err(Errno::INVAL);
        }
        let (old, new) = (self.path_of(from.0, from.1)?, self.path_of(to.0, to.1)?);
        let replaced = fs::symlink_metadata(&new).ok();
        let moved = fs::symlink_metadata(&old).map_err(errno)?;
        renameat_with(CWD, &old, CWD, &new, flags)?;
        match replaced {
            // Two names of one file: the kernel leaves both.
            Some(replaced) if replaced.ino() == moved.ino() => return Ok(Answer::Done),
            Some(replaced) if self.is_gone(&replaced) => self.gone(&replaced),
            _ => {}
        }
        self.nodes.rename(from, to);
        Ok(Answer::Done)
    }

    fn set(&mut self, node: u64, change: SetAttributes, out: &mut Vec<u8>) -> Answered {
        let handle = change.handle.or_else(|| self.nodes.handle(node));
        if let Some(size) = change.size {
            let file = match change.handle {
                Some(handle) => self.file(handle)?.try_clone(),
                None => File::options().write(true).open(self.path(node)?),
            };
            self.resize(&file.map_err(errno)?, size)?;
        }
        let path = match (self.path(node), handle) {
            (Ok(path), _) => path,
            (Err(_), Some(handle)) => through(self.file(handle)?),
            (Err(error), None) => return Err(error),
        };
        if let Some(mode) = change.mode {
            permit(&path, mode)?;
        }
        if change.uid.is_some() || change.gid.is_some() {
            lchown(&path, change.uid, change.gid).map_err(errno)?;
        }
        if change.accessed.is_some() || change.modified.is_some() {
            let times = Timestamps {
                last_access: timestamp(change.accessed),
                last_modification: timestamp(change.modified),
            };
            utimensat(CWD, &path, &times, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        put_attributes(out, &attributes(&self.metadata(node)?), VALIDITY);
        Ok(Answer::Done)
    }

    fn resize(&mut self, file: &File, size: u64) -> Result<(), Errno> {
        let before = file.metadata().map_err(errno)?.len();
        if size > before {
            let fits = self
                .room
                .fit(before, before, size - before, self.controls.limit());
            if fits != Some(size - before) {
                self.shard.refused.add(1);
                return Err(Errno::NOSPC);
            }
        }
        file.set_len(size).map_err(errno)?;
        self.resized(before, size);
        Ok(())
    }
}

/// Returns the path of an open file, whose name may be gone.
fn through(file: &File) -> std::path::PathBuf {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

fn chown(path: &Path, request: &Request<'_>) -> Result<(), Errno> {
    lchown(path, Some(request.uid), Some(request.gid)).map_err(errno)
}

/// Exactly these permissions: the kernel has taken the program's mask off already.
fn permit(path: &Path, mode: u32) -> Result<(), Errno> {
    let permissions = fs::Permissions::from_mode(mode & PERMISSIONS);
    fs::set_permissions(path, permissions).map_err(errno)
}

fn timestamp(time: Option<Option<(i64, u32)>>) -> Timespec {
    let (tv_sec, tv_nsec) = match time {
        None => (0, UTIME_OMIT),
        Some(None) => (0, UTIME_NOW),
        Some(Some((seconds, rest))) => (seconds, rest.into()),
    };
    Timespec { tv_sec, tv_nsec }
}
