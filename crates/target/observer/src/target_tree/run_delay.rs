//! Time in which the target's threads waited for a CPU.

use std::collections::BTreeMap;
use std::path::Path;

use super::process::numbered;
use crate::carry::{Carry, sums};
use crate::self_usage::parse_schedstat;
use crate::text::ProcFile;

/// Largest number of threads that are read. A sum over a part would look complete, so there is none beyond it.
const THREADS_MAX: usize = 2048;
/// Number of threads whose files are kept open.
const KEPT_OPEN_MAX: usize = 256;

/// Sums the run delay of all threads. What a thread waited after its last beat is missing.
#[derive(Debug)]
pub(super) struct RunDelay {
    /// Files of the threads, by process, its start and thread.
    files: BTreeMap<(u32, u64, u32), ProcFile>,
    delays: Carry<(u32, u64, u32), 1>,
    has_too_many: bool,
}

impl Default for RunDelay {
    fn default() -> Self {
        Self {
            files: BTreeMap::new(),
            delays: Carry::new(),
            has_too_many: false,
        }
    }
}

impl RunDelay {
    /// Returns the total so far, in nanoseconds. `processes` are the living ones, with their start times. Returns
    /// `None` if the kernel does not count it, or from the first beat with too many threads on.
    pub(super) fn read(
        &mut self,
        proc: &Path,
        processes: impl Iterator<Item = (u32, u64)>,
        buffer: &mut Vec<u8>,
    ) -> Option<u64> {
        if self.has_too_many {
            return None;
        }
        let mut kept = std::mem::take(&mut self.files);
        let mut is_counted = false;
        for (pid, start) in processes {
            let folder = proc.join(pid.to_string()).join("task");
            for thread in numbered(&folder) {
                if self.files.len() >= THREADS_MAX {
                    self.has_too_many = true;
                    self.files.clear();
                    return None;
                }
                let key = (pid, start, thread);
                let is_kept = self.files.len() < KEPT_OPEN_MAX;
                let mut file = kept.remove(&key).unwrap_or_else(|| {
                    ProcFile::new(folder.join(thread.to_string()).join("schedstat"), is_kept)
                });
                if let Some([_, delay]) = file.read(buffer).and_then(parse_schedstat) {
                    is_counted = true;
                    self.delays.record(key, [delay]);
                    self.files.insert(key, file);
                }
            }
        }
        let [total] = sums(self.delays.end_round());
        (is_counted || total > 0).then_some(total)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn write(proc: &Path, pid: u32, thread: u32, delay: u64) {
        let folder = proc.join(format!("{pid}/task/{thread}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("schedstat"), format!("100 {delay} 1\n")).unwrap();
    }

    #[test]
    fn threads_are_summed_and_ended_ones_stay() {
        let folder = tempfile::tempdir().unwrap();
        let proc = folder.path();
        let (mut reader, mut buffer) = (RunDelay::default(), Vec::new());
        let mut read = |reader: &mut RunDelay, pids: &[u32]| {
            let processes = pids.iter().map(|pid| (*pid, 5));
            reader.read(proc, processes, &mut buffer)
        };
        assert_eq!(read(&mut reader, &[7]), None);
        write(proc, 7, 7, 10);
        write(proc, 7, 8, 20);
        write(proc, 9, 9, 400);
        assert_eq!(read(&mut reader, &[7, 9]), Some(430));
        fs::remove_dir_all(proc.join("7/task/8")).unwrap();
        write(proc, 7, 7, 11);
        assert_eq!(read(&mut reader, &[7, 9]), Some(431));
        // A process that ended keeps its share, too.
        assert_eq!(read(&mut reader, &[7]), Some(431));
    }

    #[test]
    fn too_many_threads_give_no_number() {
        let folder = tempfile::tempdir().unwrap();
        let (mut reader, mut buffer) = (RunDelay::default(), Vec::new());
        for thread in 0..=2048 {
            write(folder.path(), 7, thread, 1);
        }
        for _ in 0..2 {
            let processes = [(7, 1)].into_iter();
            assert_eq!(reader.read(folder.path(), processes, &mut buffer), None);
        }
    }
}
