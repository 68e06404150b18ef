//! Scheduling priority of a run.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getpriority_process, getrlimit};

use crate::{Note, kernel};

/// Nice value of a run: the highest priority of ordinary programs.
const NICE: i32 = -20;

/// Time slice of a run, in nanoseconds: the shortest that kernels accept. A program with a longer slice yields to one
/// that wakes with a shorter slice; with equal slices it runs until its slice ends, even if its nice value is higher.
const SLICE: u64 = 100_000;

/// The feature, as notes call it.
const FEATURE: &str = "a higher CPU priority";

/// A raised priority of the calling thread, and of all threads and programs that it starts from then on.
///
/// Where the kernel schedules sessions as groups (`sched_autogroup_enabled`), the session is raised as well, and
/// lowered again on drop.
#[derive(Debug)]
pub struct Priority {
    proc: PathBuf,
    nice: i32,
    /// Nice value of the session before, if it was raised.
    session_before: Option<i32>,
}

impl Priority {
    /// Raises the priority of the calling thread to nice -20, or as far as the kernel permits, and shortens its time
    /// slice. The note is the reason why the priority is lower than that.
    #[must_use]
    pub fn raise() -> (Self, Option<Note>) {
        let before = nice_value();
        let mut note = None;
        if let Err(error) = kernel::set_scheduling(NICE, SLICE) {
            let lowest = lowest_permitted().min(before);
            // A shorter slice needs no permission.
            let is_set = kernel::set_scheduling(lowest, SLICE).is_ok();
            let why = if is_set && lowest < before {
                format!("this process may only have nice {lowest}; raise RLIMIT_NICE")
            } else {
                format!("{error}; run as root, or raise RLIMIT_NICE")
            };
            note = Some(Note::new(FEATURE, why));
        }
        let mut raised = Self {
            proc: PathBuf::from("/proc"),
            nice: nice_value(),
            session_before: None,
        };
        raised.raise_session();
        (raised, note)
    }

    /// Returns the nice value of the calling thread.
    #[must_use]
    pub const fn nice(&self) -> i32 {
        self.nice
    }

    /// Raises the session of the process `pid`, which has its own.
    pub fn raise_session_of(&self, pid: u32) {
        if has_session_groups(&self.proc) {
            write_session(&self.proc.join(pid.to_string()), self.nice);
        }
    }

    /// Raises the session of this process, unless another run has done so.
    fn raise_session(&mut self) {
        let self_proc = self.proc.join("self");
        let before = fs::read_to_string(self_proc.join("autogroup"));
        let before = before.ok().as_deref().and_then(parse_session);
        if has_session_groups(&self.proc)
            && let Some(before) = before.filter(|before| *before > self.nice)
            && write_session(&self_proc, self.nice)
        {
            self.session_before = Some(before);
        }
    }
}

impl Drop for Priority {
    fn drop(&mut self) {
        if let Some(before) = self.session_before {
            write_session(&self.proc.join("self"), before);
        }
    }
}

fn nice_value() -> i32 {
    getpriority_process(None).unwrap_or(0)
}

/// Lowest nice value that the limit of this process permits.
fn lowest_permitted() -> i32 {
    let limit = getrlimit(Resource::Nice).current;
    limit.map_or(NICE, |limit| {
        (20 - i32::try_from(limit).unwrap_or(0)).max(NICE)
    })
}

/// Returns true if the kernel schedules each session as a group.
fn has_session_groups(proc: &Path) -> bool {
    let text = fs::read_to_string(proc.join("sys/kernel/sched_autogroup_enabled"));
    text.is_ok_and(|text| text.trim() == "1")
}

/// Parses `/autogroup-123 nice 0`.
fn parse_session(text: &str) -> Option<i32> {
    text.trim().rsplit(' ').next()?.parse().ok()
}

fn write_session(process: &Path, nice: i32) -> bool {
    fs::write(process.join("autogroup"), nice.to_string()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(enabled: &str, before: &str) -> (tempfile::TempDir, Priority) {
        let folder = tempfile::tempdir().unwrap();
        let kernel = folder.path().join("sys/kernel");
        for folder in [
            &kernel,
            &folder.path().join("self"),
            &folder.path().join("7"),
        ] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(kernel.join("sched_autogroup_enabled"), enabled).unwrap();
        fs::write(folder.path().join("self/autogroup"), before).unwrap();
        let priority = Priority {
            proc: folder.path().to_owned(),
            nice: -20,
            session_before: None,
        };
        (folder, priority)
    }

    #[test]
    fn a_session_is_raised_and_restored() {
        let (folder, mut priority) = session("1\n", "/autogroup-12 nice 3\n");
        let read = |name: &str| fs::read_to_string(folder.path().join(name).join("autogroup"));
        priority.raise_session();
        priority.raise_session_of(7);
        assert_eq!(read("self").unwrap(), "-20");
        assert_eq!(read("7").unwrap(), "-20");
        drop(priority);
        assert_eq!(read("self").unwrap(), "3");
    }

    #[test]
    fn a_session_that_another_run_raised_is_left_alone() {
        let (folder, mut priority) = session("1", "/autogroup-12 nice -20\n");
        priority.raise_session();
        drop(priority);
        let after = fs::read_to_string(folder.path().join("self/autogroup")).unwrap();
        assert_eq!(after, "/autogroup-12 nice -20\n");
    }

    #[test]
    fn without_session_groups_no_session_is_raised() {
        let (folder, mut priority) = session("0", "/autogroup-12 nice 0\n");
        priority.raise_session();
        priority.raise_session_of(7);
        assert!(!folder.path().join("7/autogroup").exists());
        assert_eq!(priority.session_before, None);
    }
}
