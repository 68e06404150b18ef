//! File systems at their places: mounting, and going again on every way out.

mod holders;
mod table;

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::{getegid, geteuid};
use stillwell_units::ByteSize;

/// The kernel's device for such file systems.
const DEVICE: &str = "/dev/fuse";
/// The kind that ours have in the kernel's table of mounts.
const KIND: &str = "fuse.stillwell";
/// The kind of file systems in memory.
const MEMORY: &str = "tmpfs";
/// The source of ours in that table; behind it and a dash is its owner.
const SOURCE: &str = "stillwell";

/// A file system that could not be mounted.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The kernel has no FUSE, or we are not let at it.
    #[error(
        "cannot open {DEVICE}, which the file system at {} needs: load the kernel's module with \
         `modprobe fuse`; in a container, start it with `--device {DEVICE} --cap-add SYS_ADMIN`",
        at.display()
    )]
    Device {
        /// The mount point.
        at: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// We may not mount.
    #[error("cannot mount a file system at {}: run as root (CAP_SYS_ADMIN)", at.display())]
    Forbidden {
        /// The mount point.
        at: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The kernel refused for another reason.
    #[error("cannot mount a file system at {}", at.display())]
    Refused {
        /// The mount point.
        at: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The place cannot be made, or looked at.
    #[error("prepare {} as a mount point", at.display())]
    Place {
        /// The place.
        at: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// There is something that is no folder.
    #[error("cannot mount at {}: it is not a folder", at.display())]
    NoFolder {
        /// The place.
        at: PathBuf,
    },
    /// The folder has an entry, which the mount would hide.
    #[error(
        "cannot mount at {}: `{entry}` and perhaps more lies in it and would be hidden: empty the \
         folder, or name another",
        at.display()
    )]
    NotEmpty {
        /// The place.
        at: PathBuf,
        /// Something that lies there.
        entry: String,
    },
    /// Another run has it.
    #[error(
        "cannot mount at {0}: a file system of another run is there; wait until that has ended, or \
         name another folder; if no such run is left, `umount -l {0}` detaches it",
        at.display()
    )]
    Busy {
        /// The place.
        at: PathBuf,
    },
    /// A file system of another program is there, and its server has ended.
    #[error(
        "cannot mount at {}: the {kind} file system there has no server any more: \
         `umount -l {}` removes it",
        at.display(),
        at.display()
    )]
    Stale {
        /// The place.
        at: PathBuf,
        /// Its type.
        kind: String,
    },
}

/// A mounted file system. Dropping it unmounts it.
#[derive(Debug)]
pub struct Mount {
    at: PathBuf,
    /// The folder was made for it, and goes with it.
    is_made: bool,
    is_there: bool,
}

/// The kernel's side of a file system: requests are read from it, answers written to it. Once it is
/// dropped, all processes that still use the file system get an error.
#[derive(Debug)]
pub struct Device(pub(crate) File);

/// The process that mounts, as the source of its file systems names it.
#[derive(Clone, Copy, Debug)]
pub struct MountOwner<'o> {
    /// Its name, without spaces.
    pub process: &'o str,
    /// Returns true if the process with this name has certainly ended.
    pub is_gone: fn(&str) -> bool,
}

impl MountOwner<'_> {
    fn source(self) -> String {
        format!("{SOURCE}-{}", self.process)
    }

    /// Returns true if `source` is that of another process, which may still run.
    fn is_beside(self, source: &str) -> bool {
        owner_of(source).is_some_and(|owner| owner != self.process && !(self.is_gone)(owner))
    }
}

/// Something that a reader of a run should know.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MountNote {
    /// The event.
    pub what: String,
    /// And why.
    pub why: String,
}

/// Treatment of entries that are below the mount point already.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ExistingEntries {
    /// Nothing may.
    Nothing,
    /// Any entry: the file system shows it.
    Shown,
}

impl Mount {
    /// Mounts a file system of ours at `at`, which is made if it is not there. What a
    /// killed run left there is taken away first, and noted. `owner` is the process that
    /// unmounts it. Nothing answers for it before [`crate::serve`] does.
    ///
    /// # Errors
    /// [`MountError`], which says what to do.
    pub fn fuse(
        at: &Path,
        existing: ExistingEntries,
        owner: MountOwner<'_>,
    ) -> Result<(Self, Device, Vec<MountNote>), MountError> {
        let place = Place::prepare(at, existing, owner)?;
        let device = open_device(&place.at).inspect_err(|_| place.give_up())?;
        let options = format!(
            "fd={},rootmode=40000,user_id={},group_id={},allow_other,default_permissions",
            device.as_raw_fd(),
            geteuid().as_raw(),
            getegid().as_raw(),
        );
        let mounted = place.mount(&owner.source(), KIND, &options)?;
        Ok((mounted, Device(device.into()), place.notes))
    }

    /// Mounts a file system in memory, of `size` bytes at most, at `at`, which is made
    /// if it is not there. `owner` is the process that unmounts it.
    ///
    /// # Errors
    /// [`MountError`], which says what to do.
    pub fn memory(
        at: &Path,
        size: ByteSize,
        owner: MountOwner<'_>,
    ) -> Result<(Self, Vec<MountNote>), MountError> {
        let place = Place::prepare(at, ExistingEntries::Nothing, owner)?;
        let options = format!("size={},mode=0755", size.bytes());
        let mounted = place.mount(&owner.source(), MEMORY, &options)?;
        Ok((mounted, place.notes))
    }

    /// Takes away what a killed run of ours left at `at`. Waits for no other process of ours.
    ///
    /// # Errors
    /// [`MountError`] where it cannot be taken away, is not ours, or is of a process that may still
    /// run.
    pub(crate) fn clear(at: &Path, owner: MountOwner<'_>) -> Result<Option<MountNote>, MountError> {
        // A suspended owner answers no request, not even one for the metadata.
        let mounted = table::mounted_at(at);
        if mounted.is_some_and(|(kind, source)| kind == KIND && owner.is_beside(&source)) {
            return Err(MountError::Busy { at: at.to_owned() });
        }
        // The kernel says so of a file system whose server has gone.
        let gone = Some(Errno::NOTCONN.raw_os_error());
        match fs::symlink_metadata(at) {
            Err(error) if error.raw_os_error() == gone => clear_stale(at).map(Some),
            _ => Ok(None),
        }
    }

    /// Unmounts all file systems whose owner `is_gone`. Waits for no other process.
    #[must_use]
    pub fn clear_all(is_gone: impl Fn(&str) -> bool) -> Vec<MountNote> {
        let mut notes = Self::clear_kind(KIND, &is_gone);
        notes.extend(Self::clear_kind(MEMORY, &is_gone));
        notes
    }

    /// Unmounts all file systems in memory whose owner `is_gone`. Waits for no other process.
    #[must_use]
    pub fn clear_memory(is_gone: impl Fn(&str) -> bool) -> Vec<MountNote> {
        Self::clear_kind(MEMORY, &is_gone)
    }

    fn clear_kind(kind: &str, is_gone: &impl Fn(&str) -> bool) -> Vec<MountNote> {
        let mounted = table::sources_of(kind).into_iter();
        let left = mounted.filter(|(_, source)| owner_of(source).is_some_and(is_gone));
        // One that cannot be taken away stays.
        left.filter_map(|(at, _)| detach(&at).ok()).collect()
    }

    /// Returns the mount point.
    #[must_use]
    pub fn at(&self) -> &Path {
        &self.at
    }

    /// Unmounts it. Where processes still use it, it disappears at once from its place and
    /// completely once they have ended; the note names them. Must not be called by the thread that
    /// serves it.
    #[must_use]
    pub fn end(mut self) -> Option<MountNote> {
        self.take_away()
    }

    fn take_away(&mut self) -> Option<MountNote> {
        if !std::mem::take(&mut self.is_there) {
            return None;
        }
        let note = match unmount(&self.at, UnmountFlags::NOFOLLOW) {
            Err(Errno::BUSY) => {
                let held = holders::describe(&self.at);
                let flags = UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
                let detached = unmount(&self.at, flags);
                Some(match detached {
                    Ok(()) => self.note("was unmounted while it was in use", held),
                    Err(error) => self.note("was not unmounted", error.to_string()),
                })
            }
            // Another process has unmounted it.
            Ok(()) | Err(Errno::INVAL | Errno::NOENT) => None,
            Err(error) => Some(self.note("was not unmounted", error.to_string())),
        };
        if self.is_made {
            // Who has put something there meanwhile keeps it.
            drop(fs::remove_dir(&self.at));
        }
        note
    }

    fn note(&self, what: &str, why: String) -> MountNote {
        MountNote {
            what: format!("{} {what}", self.at.display()),
            why,
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        drop(self.take_away());
    }
}

/// A place that is fit.
struct Place {
    at: PathBuf,
    is_made: bool,
    notes: Vec<MountNote>,
}

impl Place {
    fn prepare(
        at: &Path,
        existing: ExistingEntries,
        owner: MountOwner<'_>,
    ) -> Result<Self, MountError> {
        let failed = |source| MountError::Place {
            at: at.to_owned(),
            source,
        };
        let notes = Mount::clear(at, owner)?.into_iter().collect();
        let is_made = !at.exists();
        if is_made {
            fs::create_dir_all(at).map_err(failed)?;
        }
        let at = fs::canonicalize(at).map_err(failed)?;
        if !at.is_dir() {
            return Err(MountError::NoFolder { at });
        }
        if table::mounted_at(&at).is_some_and(|(kind, _)| kind == KIND) {
            return Err(MountError::Busy { at });
        }
        if existing == ExistingEntries::Nothing
            && let Some(entry) = fs::read_dir(&at).map_err(failed)?.next()
        {
            let entry = entry.map_err(failed)?.file_name();
            let entry = entry.to_string_lossy().into_owned();
            return Err(MountError::NotEmpty { at, entry });
        }
        Ok(Self { at, is_made, notes })
    }

    /// It has no effect: the folder is removed again if it was made.
    fn give_up(&self) {
        if self.is_made {
            drop(fs::remove_dir(&self.at));
        }
    }

    fn mount(&self, source: &str, kind: &str, options: &str) -> Result<Mount, MountError> {
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        let text = std::ffi::CString::new(options).unwrap_or_default();
        let mounted = mount(source, &self.at, kind, flags, Some(text.as_c_str()));
        let mounted = mounted.map_err(|error| {
            let (at, source) = (self.at.clone(), error.into());
            match error {
                Errno::PERM | Errno::ACCESS => MountError::Forbidden { at, source },
                Errno::NODEV => MountError::Device { at, source },
                _ => MountError::Refused { at, source },
            }
        });
        if mounted.is_err() {
            self.give_up();
        }
        mounted.map(|()| Mount {
            at: self.at.clone(),
            is_made: self.is_made,
            is_there: true,
        })
    }
}

fn open_device(at: &Path) -> Result<OwnedFd, MountError> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    open(DEVICE, flags, Mode::empty()).map_err(|error| MountError::Device {
        at: at.to_owned(),
        source: error.into(),
    })
}

/// Unmounts what a killed run left; other file systems stay.
fn clear_stale(at: &Path) -> Result<MountNote, MountError> {
    let kind = table::mounted_at(at).map_or_else(|| "FUSE".to_owned(), |(kind, _)| kind);
    if kind != KIND {
        let at = at.to_owned();
        return Err(MountError::Stale { at, kind });
    }
    detach(at)
}

/// Returns the owner of the file system with this source, if it is ours.
fn owner_of(source: &str) -> Option<&str> {
    source.strip_prefix(SOURCE)?.strip_prefix('-')
}

/// Unmounts what a killed run left at `at`.
fn detach(at: &Path) -> Result<MountNote, MountError> {
    let flags = UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
    unmount(at, flags).map_err(|error| MountError::Place {
        at: at.to_owned(),
        source: error.into(),
    })?;
    Ok(MountNote {
        what: format!("a file system was removed from {}", at.display()),
        why: "the run that mounted it was killed".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_file_systems_of_stillwell_have_an_owner() {
        assert_eq!(owner_of("stillwell-a-1"), Some("a-1"));
        for source in ["stillwell", "tmpfs", "none", "other-a-1"] {
            assert_eq!(owner_of(source), None, "{source}");
        }
    }
}
