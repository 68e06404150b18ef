//! Folders shown at fixed places.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use stillwell_plan::MountPlan;

use crate::kernel::MountStep;

/// How many mounts one subject may have.
const MOUNTS_MAX: usize = 100;

/// Why something cannot be shown at its place.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// There is nothing to show.
    #[error("show {} at {}: the source does not exist", source_path.display(), at.display())]
    SourceMissing {
        /// What was to be shown.
        source_path: PathBuf,
        /// Where.
        at: PathBuf,
    },
    /// The place is not an absolute path below some folder.
    #[error(
        "show anything at {}: write an absolute path below a folder that exists",
        at.display()
    )]
    Place {
        /// The place.
        at: PathBuf,
    },
    /// More than can be.
    #[error("show more than {MOUNTS_MAX} folders")]
    TooMany,
    /// The folder that is laid over the place's parent could not be made.
    #[error("prepare {} for {}", staging.display(), at.display())]
    Staging {
        /// The folder in the run's state folder.
        staging: PathBuf,
        /// The place.
        at: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The kernel does not permit it.
    #[error(
        "show a folder at {}: run as root, or write `{{files}}` in the subject's arguments \
         instead of that path",
        at.display()
    )]
    Refused {
        /// The place.
        at: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// The steps that show every plan's source at its place, and which place each
/// step is for. Where a place does not exist, its nearest parent that does is
/// overlaid, read-only, with a folder made in `staging`.
pub(crate) fn prepare(
    plans: &[MountPlan],
    staging: &Path,
) -> Result<(Vec<MountStep>, Vec<PathBuf>), MountError> {
    if plans.len() > MOUNTS_MAX {
        return Err(MountError::TooMany);
    }
    let mut overlaid: Vec<PathBuf> = Vec::new();
    let (mut overlays, mut binds) = (Vec::new(), Vec::new());
    for plan in plans {
        let place = || MountError::Place {
            at: plan.at.clone(),
        };
        let source = fs::metadata(&plan.source).map_err(|_| MountError::SourceMissing {
            source_path: plan.source.clone(),
            at: plan.at.clone(),
        })?;
        if let Some(parent) = missing_below(&plan.at).ok_or_else(place)? {
            let known = overlaid.iter().position(|other| *other == parent);
            let index = known.unwrap_or(overlaid.len());
            let folder = staging.join(index.to_string());
            stage(plan, &parent, &folder, source.is_dir())?;
            if known.is_none() {
                overlays.push((overlay(plan, &parent, &folder)?, plan.at.clone()));
                overlaid.push(parent);
            }
        }
        let bind = MountStep::Bind {
            source: path_text(&plan.source, plan)?,
            at: path_text(&plan.at, plan)?,
        };
        binds.push((bind, plan.at.clone()));
    }
    // An overlay that came after a bind could hide it.
    Ok(overlays.into_iter().chain(binds).unzip())
}

/// The nearest parent of `at` that exists, if `at` does not; `None` where nothing
/// can be shown there.
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
    // Nothing can be laid over the root itself.
    parent.parent()?;
    Some(Some(parent.to_owned()))
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

/// A path as overlay options want it.
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
        for at in ["etc/x", "/", "/no-such-folder-here", "/etc/../x", ""] {
            let plan = MountPlan {
                source: folder.path().into(),
                at: at.into(),
            };
            let prepared = prepare(&[plan], &folder.path().join("staging"));
            assert!(matches!(prepared, Err(MountError::Place { .. })), "{at}");
        }
        let plan = MountPlan {
            source: "/no-such-source".into(),
            at: "/etc".into(),
        };
        let error = prepare(&[plan], folder.path()).unwrap_err();
        assert!(matches!(error, MountError::SourceMissing { .. }));
    }

    #[test]
    fn a_missing_place_is_made_by_an_overlay_of_its_parent() {
        let folder = tempfile::tempdir().unwrap();
        let staging = folder.path().join("a:b");
        let plan = MountPlan {
            source: folder.path().into(),
            at: "/etc/stillwell-is-not-here/conf".into(),
        };
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
