//! Profiles of the target in the folder of a run.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use crate::manifest::Manifest;
use crate::read::{OpenError, at};

/// Folder of the profiles within the folder of a run.
pub const PROFILES: &str = "profiles";

/// Ending of the name of a profile.
const ENDING: &str = ".pb.gz";

/// Maximum number of profiles of a run that are read.
const FILES_MAX: usize = 128;

/// Maximum size of a profile.
const FILE_BYTES_MAX: u64 = 32 << 20;

/// Profiles of one run, with the time that was measured.
#[derive(Clone, Debug, Default)]
pub struct RunProfiles {
    /// Wall clock at the start and the end of the measured time: nanoseconds since 1970.
    pub measured_ns: (i64, i64),
    /// The profiles, in the order in which they were stored for each page.
    pub profiles: Vec<StoredProfile>,
}

/// A profile as the target served it.
#[derive(Clone, Debug)]
pub struct StoredProfile {
    /// Last part of the path of its page and number of the page, such as `heap-0`: pages of several processes share a name.
    pub page: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Keeps [`FILES_MAX`] of the sorted `names`: the first and the last one of each page, and the
/// others evenly. The first ones alone would be those of the first pages, and a page may have one.
fn thin(names: &mut Vec<String>) {
    if names.len() <= FILES_MAX {
        return;
    }
    let page = |index: usize| names.get(index).map(|name| page_of(name));
    let is_end = |index: usize| {
        let before = index.checked_sub(1).and_then(page);
        before != page(index) || page(index + 1) != page(index)
    };
    let ends: Vec<bool> = (0..names.len()).map(is_end).collect();
    let fixed = ends.iter().filter(|is_end| **is_end).count();
    let (inner_count, room) = (names.len() - fixed, FILES_MAX.saturating_sub(fixed));
    let (mut ends, mut inner) = (ends.into_iter(), 0);
    names.retain(|_| {
        if ends.next().unwrap_or(true) {
            return true;
        }
        let is_kept = (inner + 1) * room / inner_count > inner * room / inner_count;
        inner += 1;
        is_kept
    });
    // Hundreds of pages have more ends than that.
    names.truncate(FILES_MAX);
}

impl RunProfiles {
    /// Reads the profiles of the run in `folder`; `None` if it has none or did not measure.
    ///
    /// # Errors
    /// [`OpenError`] with the file.
    pub fn open(folder: &Path) -> Result<Option<Self>, OpenError> {
        let path = folder.join(PROFILES);
        let mut names = match names_in(&path) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(at(&path)(error)),
        };
        names.sort();
        thin(&mut names);
        let manifest = Manifest::open(folder)?;
        let Some(measured_ns) = measured(&manifest) else {
            return Ok(None);
        };
        let profiles = names.into_iter().map(|name| {
            let path = path.join(&name);
            let bytes = read_bounded(&path).map_err(at(&path))?;
            let page = page_of(&name).to_owned();
            Ok(StoredProfile { page, bytes })
        });
        let profiles = profiles.collect::<Result<Vec<_>, _>>()?;
        Ok((!profiles.is_empty()).then_some(Self {
            measured_ns,
            profiles,
        }))
    }
}

/// Removes the profiles in `folder`, which an earlier run left there. Files with another name are kept.
pub(crate) fn remove_profiles(folder: &Path) -> io::Result<()> {
    // A link is not followed.
    if !fs::symlink_metadata(folder).is_ok_and(|metadata| metadata.is_dir()) {
        return Ok(());
    }
    let names = names_in(folder)?;
    names
        .iter()
        .try_for_each(|name| fs::remove_file(folder.join(name)))
}

/// Returns the names of profiles in a folder.
fn names_in(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if let Ok(name) = entry.file_name().into_string()
            && name.ends_with(ENDING)
            && entry.file_type()?.is_file()
        {
            names.push(name);
        }
    }
    Ok(names)
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut file = File::open(path)?.take(FILE_BYTES_MAX + 1);
    file.read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let reason = format!("a profile has at most {} MiB", FILE_BYTES_MAX >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
    }
    Ok(bytes)
}

/// Returns the page of a file that is named `PAGE-INDEX.NUMBER.pb.gz`: `PAGE-INDEX`.
fn page_of(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// Returns the measured time by the wall clock.
fn measured(manifest: &Manifest) -> Option<(i64, i64)> {
    let (start, end) = manifest.measured()?;
    let first = manifest.phases.first()?.moment;
    let started_ns = i64::try_from(manifest.started_wall_millis)
        .ok()?
        .checked_mul(1_000_000)?;
    let wall = |moment: stillwell_units::Moment| {
        let since_start = moment.since(first).as_u64();
        started_ns.checked_add(i64::try_from(since_start).ok()?)
    };
    Some((wall(start)?, wall(end)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With more files than are read, each page keeps its share, and the last file stays.
    #[test]
    fn files_are_thinned_evenly() {
        let of = |page: &'static str| {
            (0..2 * FILES_MAX).map(move |number| format!("{page}.{number:05}"))
        };
        let mut names: Vec<String> = of("heap").chain(of("profile")).collect();
        let last = names.last().cloned();
        thin(&mut names);
        assert_eq!(names.len(), FILES_MAX);
        assert_eq!(names.last(), last.as_ref());
        let heaps = names.iter().filter(|name| name.starts_with("heap"));
        assert_eq!(heaps.count(), FILES_MAX / 2);
        let few = vec!["heap.1".to_owned()];
        let mut kept = few.clone();
        thin(&mut kept);
        assert_eq!(kept, few);
    }

    /// The only profile by `perf` was left out beside many files of other pages.
    #[test]
    fn the_first_and_the_last_file_of_each_page_are_kept() {
        let many = (0..2 * FILES_MAX).map(|number| format!("heap-0.{number:04}.pb.gz"));
        let few = ["cpu-perf-0.0000", "mutex-1.0000", "mutex-1.0001"];
        let few = few.map(|name| format!("{name}.pb.gz"));
        let mut names: Vec<String> = many.chain(few).collect();
        names.sort();
        thin(&mut names);
        assert_eq!(names.len(), FILES_MAX);
        for start in [
            "cpu-perf-0.0000",
            "heap-0.0000",
            "heap-0.0255",
            "mutex-1.0000",
            "mutex-1.0001",
        ] {
            let is_kept = names.iter().any(|name| name.starts_with(start));
            assert!(is_kept, "{start}");
        }
    }

    #[test]
    fn files_of_many_pages_are_no_more_than_the_maximum() {
        let pages = (0..2 * FILES_MAX).map(|page| format!("heap-{page:04}.0000.pb.gz"));
        let mut names: Vec<String> = pages.collect();
        thin(&mut names);
        assert_eq!(names.len(), FILES_MAX);
    }

    #[test]
    fn the_page_is_the_name_without_the_number_of_the_file() {
        for (name, page) in [
            ("heap-0.0001.pb.gz", "heap-0"),
            ("cpu-perf-2.0000.pb.gz", "cpu-perf-2"),
            ("mutex.pb.gz", "mutex"),
        ] {
            assert_eq!(page_of(name), page);
        }
    }

    #[test]
    fn a_run_without_profiles_has_none_and_a_large_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(RunProfiles::open(folder.path()).unwrap().is_none());
        let path = folder.path().join("large");
        let file = File::create(&path).unwrap();
        file.set_len(FILE_BYTES_MAX + 1).unwrap();
        let error = read_bounded(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}
