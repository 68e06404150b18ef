//! Folders shown at fixed places.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use stillwell_plan::target::MountPlan;

use crate::kernel::MountStep;

/// Largest number of mounts of one target.
const MOUNTS_MAX: usize = 100;

/// An error while mounting.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The source does not exist.
    #[error("cannot mount {} at {}: the source does not exist", source_path.display(), at.display())]
    SourceMissing {
        /// The source.
        source_path: PathBuf,
        /// The mount point.
        at: PathBuf,
    },
    /// The place is not an absolute path below some folder.
    #[error(
        "cannot show a folder at {}: write an absolute path below a folder that exists",
        at.display()
    )]
    Place {
        /// The place.
        at: PathBuf,
    },
    /// More than can be.
    #[error("cannot show more than {MOUNTS_MAX} folders to the target")]
    TooMany,
    /// A folder of the run's own, which is to be shown or to be laid over the place's
    /// parent, could not be made.
    #[error("prepare {} for {}", staging.display(), at.display())]
    Staging {
        /// The folder in the run's state folder.
        staging: PathBuf,
        /// The place.
        at: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The kernel does not permit it.
    #[error(
        "cannot mount a folder at {}: run as root, or write `{{files}}` in the target's arguments \
         instead of that path",
        at.display()
    )]
    Refused {
        /// The place.
        at: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

/// Returns the steps that mount each plan's source, with the mount point of each step.
///
/// If a mount point does not exist, its nearest existing parent is overlaid, read-only, with a folder in
/// `staging`. The root cannot be overlaid with all mounts below it. For mount points directly below it, a
/// folder in `staging` becomes the new root, which contains everything of the old one.
pub(crate) fn prepare(
    plans: &[MountPlan],
    staging: &Path,
) -> Result<(Vec<MountStep>, Vec<PathBuf>), MountError> {
    if plans.len() > MOUNTS_MAX {
        return Err(MountError::TooMany);
    }
    let mut overlaid: Vec<PathBuf> = Vec::new();
    let (mut overlays, mut binds) = (Vec::new(), Vec::new());
    let mut below_root = Vec::new();
    for plan in plans {
        let place = || MountError::Place {
            at: plan.at.clone(),
        };
        let is_folder = is_folder(plan)?;
        match missing_below(&plan.at).ok_or_else(place)? {
            Some(parent) if parent.parent().is_none() => {
                below_root.push((plan, is_folder));
                continue;
            }
            Some(parent) => {
                let existing = overlaid.iter().position(|folder| *folder == parent);
                let index = existing.unwrap_or(overlaid.len());
                let folder = staging.join(index.to_string());
                stage(plan, &parent, &folder, is_folder)?;
                if existing.is_none() {
                    overlays.push((overlay(plan, &parent, &folder)?, plan.at.clone()));
                    overlaid.push(parent);
                }
            }
            None => {}
        }
        binds.push((bind(plan, &plan.at)?, plan.at.clone()));
    }
    if !below_root.is_empty() {
        // Last, because it includes the earlier overlays and bind mounts.
        binds.extend(new_root(&below_root, &staging.join("root"))?);
    }
    // A later overlay could hide a bind mount.
    Ok(overlays.into_iter().chain(binds).unzip())
}

/// Returns true for a folder, false for a file. A writable source is created if it is missing.
fn is_folder(plan: &MountPlan) -> Result<bool, MountError> {
    if plan.writable {
        fs::create_dir_all(&plan.source).map_err(|source| MountError::Staging {
            staging: plan.source.clone(),
            at: plan.at.clone(),
            source,
        })?;
    }
    match fs::metadata(&plan.source) {
        Ok(source) => Ok(source.is_dir()),
        Err(_) => Err(MountError::SourceMissing {
            source_path: plan.source.clone(),
            at: plan.at.clone(),
        }),
    }
}

/// Returns the nearest existing parent of `at`, if `at` does not exist; `None` if nothing can be mounted there.
fn missing_below(at: &Path) -> Option<Option<PathBuf>> {
    let is_plain = at
        .components()
        .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if !at.is_absolute() || !is_plain || at.parent().is_none() {
        return None;
    }
    if at.exists() {
        return Some(None);
    }
    let parent = at.ancestors().find(|path| path.is_dir())?;
    Some(Some(parent.to_owned()))
}

fn bind(plan: &MountPlan, at: &Path) -> Result<MountStep, MountError> {
    Ok(MountStep::Bind {
        source: path_text(&plan.source, plan)?,
        at: path_text(at, plan)?,
        is_read_only: !plan.writable,
    })
}

/// Returns the steps that make `folder` the root, with the content of the old root and the plans. Content of an
/// earlier start is reused.
fn new_root(
    plans: &[(&MountPlan, bool)],
    folder: &Path,
) -> Result<Vec<(MountStep, PathBuf)>, MountError> {
    let Some((first, _)) = plans.first() else {
        return Ok(Vec::new());
    };
    let failed = |source| MountError::Staging {
        staging: folder.to_owned(),
        at: first.at.clone(),
        source,
    };
    let at = |path: &Path| path_text(path, first);
    fs::create_dir_all(folder).map_err(failed)?;
    let mut steps = vec![MountStep::Base { at: at(folder)? }];
    for entry in fs::read_dir("/").map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (old, new) = (entry.path(), folder.join(entry.file_name()));
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_symlink() {
            let to = fs::read_link(&old).map_err(failed)?;
            match std::os::unix::fs::symlink(to, &new) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => made.map_err(failed)?,
            }
            continue;
        }
        if kind.is_dir() {
            fs::create_dir_all(&new).map_err(failed)?;
        } else {
            fs::write(&new, "").map_err(failed)?;
        }
        steps.push(MountStep::Bind {
            source: at(&old)?,
            at: at(&new)?,
            is_read_only: false,
        });
    }
    let mut steps: Vec<_> = steps
        .into_iter()
        .map(|step| (step, first.at.clone()))
        .collect();
    for (plan, is_folder) in plans {
        stage(plan, Path::new("/"), folder, *is_folder)?;
        let rest = plan.at.strip_prefix("/").unwrap_or(&plan.at);
        steps.push((bind(plan, &folder.join(rest))?, plan.at.clone()));
    }
    steps.push((MountStep::Root { at: at(folder)? }, first.at.clone()));
    Ok(steps)
}

/// Makes an empty thing of the source's kind, on which the source can be shown.
fn stage(
    plan: &MountPlan,
    parent: &Path,
    folder: &Path,
    is_folder: bool,
) -> Result<(), MountError> {
    let rest = plan.at.strip_prefix(parent).unwrap_or(&plan.at);
    let staged = folder.join(rest);
    let made = if is_folder {
        fs::create_dir_all(&staged)
    } else {
        let above = staged.parent().unwrap_or(folder);
        fs::create_dir_all(above).and_then(|()| fs::write(&staged, ""))
    };
    made.map_err(|source| MountError::Staging {
        staging: staged,
        at: plan.at.clone(),
        source,
    })
}

fn overlay(plan: &MountPlan, parent: &Path, folder: &Path) -> Result<MountStep, MountError> {
    let layers = [
        b"lowerdir=".as_slice(),
        &escaped(folder),
        b":",
        &escaped(parent),
    ]
    .concat();
    Ok(MountStep::Overlay {
        at: path_text(parent, plan)?,
        data: CString::new(layers).map_err(|_| MountError::Place {
            at: plan.at.clone(),
        })?,
    })
}

/// Escapes a path for overlay options.
fn escaped(path: &Path) -> Vec<u8> {
    let bytes = path.as_os_str().as_bytes().iter();
    bytes
        .flat_map(|byte| match byte {
            b':' | b',' | b'\\' => vec![b'\\', *byte],
            _ => vec![*byte],
        })
        .collect()
}

fn path_text(path: &Path, plan: &MountPlan) -> Result<CString, MountError> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| MountError::Place {
        at: plan.at.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_cannot_be_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        for at in ["etc/x", "/", "/etc/../x", ""] {
            let plan = MountPlan::read_only(folder.path().into(), at.into());
            let prepared = prepare(&[plan], &folder.path().join("staging"));
            assert!(matches!(prepared, Err(MountError::Place { .. })), "{at}");
        }
        let plan = MountPlan::read_only("/no-such-source".into(), "/etc".into());
        let error = prepare(&[plan], folder.path()).unwrap_err();
        assert!(matches!(error, MountError::SourceMissing { .. }));
    }

    #[test]
    fn a_target_with_a_mount_point_below_the_root_could_not_be_started_again() {
        let folder = tempfile::tempdir().unwrap();
        let staging = folder.path().join("staging");
        let at = "/stillwell-is-not-here";
        let plan = [MountPlan::read_only(folder.path().into(), at.into())];
        let (first, _) = prepare(&plan, &staging).unwrap();
        let (again, _) = prepare(&plan, &staging).unwrap();
        assert_eq!(first.len(), again.len());
        assert!(matches!(again.last(), Some(MountStep::Root { .. })));
    }

    #[test]
    fn a_missing_place_is_made_by_an_overlay_of_its_parent() {
        let folder = tempfile::tempdir().unwrap();
        let staging = folder.path().join("a:b");
        let at = "/etc/stillwell-is-not-here/conf";
        let plan = MountPlan::read_only(folder.path().into(), at.into());
        let (steps, places) = prepare(&[plan], &staging).unwrap();
        assert_eq!((steps.len(), places.len()), (2, 2));
        let MountStep::Overlay { at, data } = &steps[0] else {
            panic!("{steps:?}");
        };
        assert_eq!(at.to_str(), Ok("/etc"));
        assert!(data.to_str().unwrap().ends_with("a\\:b/0:/etc"), "{data:?}");
        assert!(staging.join("0/stillwell-is-not-here/conf").is_dir());
    }
}
