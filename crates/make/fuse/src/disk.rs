//! A folder, shown through a disk that may be slow, small and late with `fsync`.

mod answer;
mod controls;
mod nodes;
mod room;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stillwell_metric::DiskShard;
use stillwell_plan::disk::FolderDiskPlan;
use stillwell_plan::step::DiskChange;
use stillwell_scope::{PartError, Token};
use stillwell_units::ByteSize;

use crate::mount::{Device, ExistingEntries, Mount, MountError, MountNote, MountOwner};
use crate::serve::serve;
use answer::Files;
pub use controls::DiskControls;

/// A mounted disk. Dropping it unmounts it; written data stays in the folder that it shows.
#[derive(Debug)]
pub struct Disk {
    mount: Mount,
    controls: Arc<DiskControls>,
    shard: Arc<DiskShard>,
}

/// The server of a [`Disk`].
#[derive(Debug)]
pub struct DiskServer {
    device: Device,
    files: Files,
}

/// A disk that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// It could not be mounted.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// The folder that it shows cannot be made, opened or gone through.
    #[error("cannot open {}, the folder that the simulated disk shows", path.display())]
    Backing {
        /// The folder.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The disk would show itself.
    #[error(
        "cannot show {} at {}: one contains the other; name a folder elsewhere",
        backing.display(),
        at.display()
    )]
    Within {
        /// The folder.
        backing: PathBuf,
        /// The disk's place.
        at: PathBuf,
    },
}

impl Disk {
    /// Mounts the disk of `plan` at `at`. Nothing answers for it before
    /// [`DiskServer::serve`] does, on a thread that is not the one that ends it.
    ///
    /// # Errors
    /// [`DiskError`], which says what to do.
    pub fn mount(
        at: &Path,
        plan: &FolderDiskPlan,
        owner: MountOwner<'_>,
    ) -> Result<(Self, DiskServer, Vec<MountNote>), DiskError> {
        let folder = plan.backing.as_deref().unwrap_or(at);
        let backing = |source| DiskError::Backing {
            path: folder.to_owned(),
            source,
        };
        // First, since all other calls wait for the server of a file system at the place.
        let mut notes: Vec<MountNote> = Mount::clear(at, owner)?.into_iter().collect();
        fs::create_dir_all(folder).map_err(backing)?;
        let existing = if plan.backing.is_some() {
            refuse_within(folder, at)?;
            ExistingEntries::Nothing
        } else {
            ExistingEntries::Shown
        };
        let root = File::open(folder).map_err(backing)?;
        let controls = Arc::new(DiskControls::new(plan));
        let shard = Arc::new(DiskShard::new(&at.to_string_lossy()));
        let files = Files::new(root, Arc::clone(&controls), Arc::clone(&shard));
        let files = files.map_err(backing)?;
        let (mount, device, more) = Mount::fuse(at, existing, owner)?;
        notes.extend(more);
        let disk = Self {
            mount,
            controls,
            shard,
        };
        Ok((disk, DiskServer { device, files }, notes))
    }

    /// Returns the mount point.
    #[must_use]
    pub fn at(&self) -> &Path {
        self.mount.at()
    }

    /// Returns the settings that may change while it is in use.
    #[must_use]
    pub const fn controls(&self) -> &Arc<DiskControls> {
        &self.controls
    }

    /// Does what a step of a timeline says.
    pub fn change(&self, change: &DiskChange) {
        let used = ByteSize::new(self.shard.used.total());
        self.controls.change(change, used);
    }

    /// Returns its counters.
    #[must_use]
    pub const fn shard(&self) -> &Arc<DiskShard> {
        &self.shard
    }

    /// Takes it away, as [`Mount::end`] does.
    #[must_use]
    pub fn end(self) -> Option<MountNote> {
        self.mount.end()
    }
}

impl DiskServer {
    /// Answers until `token` is cancelled or the disk was taken away.
    ///
    /// # Errors
    /// The kernel's answer where it no longer hands out requests.
    pub fn serve(mut self, token: &Token) -> Result<(), PartError> {
        serve(self.device, &mut self.files, token)
    }
}

/// A disk that shows the folder that it lies in would request data from itself, and wait for ever.
fn refuse_within(backing: &Path, at: &Path) -> Result<(), DiskError> {
    let absolute = |path: &Path| {
        let there = path.ancestors().find_map(|part| {
            let whole = fs::canonicalize(part).ok()?;
            let rest = path.strip_prefix(part).ok()?;
            Some(whole.join(rest))
        });
        there.unwrap_or_else(|| path.to_owned())
    };
    let (folder, place) = (absolute(backing), absolute(at));
    if folder.starts_with(&place) || place.starts_with(&folder) {
        return Err(DiskError::Within {
            backing: backing.to_owned(),
            at: at.to_owned(),
        });
    }
    Ok(())
}
