//! Mounts of a run for its target: disks, and logs in a file system of their own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use stillwell_fuse::{Disk, Mount, MountNote, MountOwner};
use stillwell_metric::Shard;
use stillwell_plan::disk::{DiskKind, DiskPlan};
use stillwell_plan::step::DiskChange;
use stillwell_scope::{Place, Scope, explain};
use stillwell_target::Owner;
use stillwell_units::Nanos;
use stillwell_worker::Prepared;

use crate::shell::Shell;

/// The longest time that unmounting may take while requests are still answered. A later request
/// fails.
const END_MAX: Nanos = Nanos::from_secs(2);

/// Unmounts the disks in memory that killed runs left.
pub fn clear_memory_disks() {
    // There is no run whose record could have the notes.
    drop(Mount::clear_memory(is_gone));
}

/// Returns true if the owner of a disk has certainly ended.
fn is_gone(owner: &str) -> bool {
    Owner::parse(owner).is_some_and(|owner| owner.is_gone(Owner::this_process()))
}

/// All that is mounted. Dropping it takes it away.
#[derive(Debug, Default)]
pub(crate) struct Mounts {
    plain: Vec<Mount>,
    /// Each with its place as planned.
    disks: Vec<(PathBuf, Disk)>,
}

impl Mounts {
    /// Mounts the disk of `plan`, whose places are filled in, and answers for it.
    fn add(
        &mut self,
        plan: &DiskPlan,
        scope: &mut Scope,
        place: Place,
        owner: MountOwner<'_>,
    ) -> Result<Vec<MountNote>, String> {
        let folder = match &plan.kind {
            DiskKind::Memory(size) => {
                let mounted = Mount::memory(&plan.path, *size, owner);
                let (mount, notes) = mounted.map_err(|error| explain(&error))?;
                self.plain.push(mount);
                return Ok(notes);
            }
            DiskKind::Folder(folder) => folder,
        };
        let mounted = Disk::mount(&plan.path, folder, owner);
        let (disk, server, notes) = mounted.map_err(|error| explain(&error))?;
        let name = format!("disk-{}", self.disks.len());
        self.disks.push((plan.path.clone(), disk));
        scope
            .thread(place, &name, move |token| server.serve(token))
            .map_err(|error| explain(&error))?;
        Ok(notes)
    }

    /// Returns their counters.
    fn shards(&self) -> impl Iterator<Item = Arc<dyn Shard>> {
        let shards = self.disks.iter().map(|(_, disk)| Arc::clone(disk.shard()));
        shards.map(|shard| shard as Arc<dyn Shard>)
    }

    /// Changes the disk at `at`, a place that is filled in.
    pub(super) fn change(&self, at: &Path, change: &DiskChange) -> Result<(), String> {
        let disk = self.disks.iter().find(|(path, _)| path == at);
        let (_, disk) =
            disk.ok_or_else(|| format!("there is no simulated disk at {}", at.display()))?;
        disk.change(change);
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.disks.is_empty()
    }

    fn end(self) -> Vec<MountNote> {
        let disks = self.disks.into_iter().map(|(_, disk)| disk.end());
        let plain = self.plain.into_iter().map(Mount::end);
        disks.chain(plain).flatten().collect()
    }
}

impl Shell {
    /// Mounts everything that the plan lists, before the target starts.
    pub(super) fn mount(&mut self, generators: &mut [Prepared]) -> Result<(), String> {
        let disks = self.request.plan.disks.clone();
        if disks.is_empty()
            && generators
                .iter()
                .all(|generator| generator.file_system().is_none())
        {
            return Ok(());
        }
        let place = self.place();
        let process = Owner::this_process().to_string();
        let owner = MountOwner {
            process: &process,
            is_gone,
        };
        let mut notes = Mount::clear_all(is_gone);
        for disk in disks {
            let disk = disk.filled(&self.request.places);
            let (scope, place) = (&mut self.scope, place.clone());
            notes.extend(self.mounts.add(&disk, scope, place, owner)?);
        }
        self.shards.extend(self.mounts.shards());
        for generator in generators {
            let file_system = generator.file_system();
            let shown = generator.show(&mut self.scope, &place, owner);
            let Some((mount, more)) = shown.map_err(|error| explain(&error))? else {
                continue;
            };
            self.mounts.plain.push(mount);
            notes.extend(more);
            self.shards
                .extend(file_system.map(|shard| shard as Arc<dyn Shard>));
        }
        self.note_mounts(notes);
        Ok(())
    }

    /// Takes everything away that was mounted, while it is still answered for: programs
    /// may have written what is still to be kept.
    pub(super) fn unmount(&mut self) {
        let mounts = std::mem::take(&mut self.mounts);
        if mounts.is_empty() {
            return;
        }
        let (sender, done) = sync_channel(1);
        self.spawn("unmount", move |_| {
            sender.send(mounts.end()).map_err(Into::into)
        });
        match done.recv_timeout(END_MAX.as_duration()) {
            Ok(notes) => self.note_mounts(notes),
            Err(_) => self.record.note(
                "a file system could not be unmounted in time",
                format!("a process that uses it did not end within {END_MAX}"),
            ),
        }
    }

    fn note_mounts(&mut self, notes: Vec<MountNote>) {
        for note in notes {
            self.record.note(&note.what, &note.why);
        }
    }
}
