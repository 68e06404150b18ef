//! Disks that a run makes for its target.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use stillwell_units::{ByteRate, ByteSize, Nanos};

use crate::target::Places;

/// A disk that exists from before the target's start until after its end.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct DiskPlan {
    /// Mount point; may hold [`Places`].
    pub path: PathBuf,
    /// Kind of disk.
    pub kind: DiskKind,
}

/// Kind of a disk.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DiskKind {
    /// Memory of this size, which is gone with the run.
    Memory(ByteSize),
    /// A folder, shown through a disk that counts and may be slow.
    Folder(FolderDiskPlan),
}

/// A folder, shown through a disk that counts and may be slow.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct FolderDiskPlan {
    /// The folder, which is made if it is not there; knows [`Places`]. `None` for the
    /// one that the disk is mounted over.
    pub backing: Option<PathBuf>,
    /// Additional time of each `fsync`.
    pub fsync_delay: Nanos,
    /// Additional time for each MiB that `fsync` makes durable.
    pub fsync_delay_per_mib: Nanos,
    /// Bytes that it takes each second; `None` for as many as the folder does.
    pub write_rate: Option<ByteRate>,
    /// Bytes that it holds; `None` for as many as the folder does.
    pub limit: Option<ByteSize>,
}

impl DiskPlan {
    /// The same disk with every place filled in.
    #[must_use]
    pub fn filled(&self, places: &Places) -> Self {
        let fill = |path: &PathBuf| PathBuf::from(places.fill(&path.to_string_lossy()));
        let mut disk = self.clone();
        disk.path = fill(&self.path);
        if let DiskKind::Folder(folder) = &mut disk.kind {
            folder.backing = folder.backing.as_ref().map(fill);
        }
        disk
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_in() {
        let places = Places {
            stillwell: "/bin/stillwell".into(),
            state: "/state".into(),
            files: None,
            experiment: "/lab/one".into(),
        };
        let disk = DiskPlan {
            path: "{state}/buffer".into(),
            kind: DiskKind::Folder(FolderDiskPlan {
                backing: Some("{experiment}/disk".into()),
                ..FolderDiskPlan::default()
            }),
        };
        let filled = disk.filled(&places);
        assert_eq!(filled.path, PathBuf::from("/state/buffer"));
        let DiskKind::Folder(folder) = filled.kind else {
            panic!("{:?}", filled.kind);
        };
        assert_eq!(folder.backing, Some("/lab/one/disk".into()));
    }
}
