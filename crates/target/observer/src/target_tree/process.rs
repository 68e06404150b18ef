//! Kernel counters of one process.

use std::fs;
use std::path::{Path, PathBuf};

use crate::text::{self, ProcFile};

/// Fields of `/proc/PID/stat`. Times are in clock ticks, usually of 10 ms.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct ProcessStat {
    pub(crate) is_zombie: bool,
    /// A signal or a tracer stopped it.
    pub(crate) is_stopped: bool,
    pub(crate) parent: u32,
    pub(crate) faults_minor: u64,
    pub(crate) faults_major: u64,
    pub(crate) user_ticks: u64,
    pub(crate) system_ticks: u64,
    /// User time of waited-for children and their waited-for children.
    pub(crate) children_user_ticks: u64,
    /// System time of the same.
    pub(crate) children_system_ticks: u64,
    pub(crate) threads: u64,
    /// Start time; with the process id it identifies the process.
    pub(crate) start_ticks: u64,
    /// Kernels from 6.2 count it per CPU and may be up to 32 pages per CPU off.
    pub(crate) rss_pages: u64,
}

/// Parses the name in `stat`, which is in brackets.
pub(crate) fn parse_name(line: &[u8]) -> Option<String> {
    let first = line.iter().position(|byte| *byte == b'(')? + 1;
    let last = line.iter().rposition(|byte| *byte == b')')?;
    Some(String::from_utf8_lossy(line.get(first..last)?).into_owned())
}

pub(crate) fn parse_stat(line: &[u8]) -> Option<ProcessStat> {
    // The name may contain brackets: the last one ends it.
    let after = line.iter().rposition(|byte| *byte == b')')? + 1;
    let mut words = text::words(line.get(after..)?);
    let state = words.next()?;
    let mut fields = [0; 21];
    for field in &mut fields {
        // Priorities and terminals may be negative; none of those is used.
        *field = text::number(words.next()?).unwrap_or(0);
    }
    Some(ProcessStat {
        is_zombie: matches!(state, b"Z" | b"X"),
        is_stopped: matches!(state, b"T" | b"t"),
        parent: u32::try_from(fields[0]).ok()?,
        faults_minor: fields[6],
        faults_major: fields[8],
        user_ticks: fields[10],
        system_ticks: fields[11],
        children_user_ticks: fields[12],
        children_system_ticks: fields[13],
        threads: fields[16],
        start_ticks: fields[18],
        rss_pages: fields[20],
    })
}

/// Returns the bytes that a process read from storage and wrote to it.
pub(crate) fn parse_io(text: &[u8]) -> Option<[u64; 2]> {
    let read = text::value(text, b"read_bytes:")?;
    Some([read, text::value(text, b"write_bytes:")?])
}

/// Returns the voluntary and involuntary context switches of one thread.
pub(crate) fn parse_switches(status: &[u8]) -> Option<[u64; 2]> {
    let waited = text::value(status, b"voluntary_ctxt_switches:")?;
    Some([waited, text::value(status, b"nonvoluntary_ctxt_switches:")?])
}

/// A process that is read every beat.
#[derive(Debug)]
pub(crate) struct Process {
    folder: PathBuf,
    stat: ProcFile,
    io: ProcFile,
}

impl Process {
    /// `is_kept` keeps its files open from beat to beat.
    pub(crate) fn new(proc: &Path, pid: u32, is_kept: bool) -> Self {
        let folder = proc.join(pid.to_string());
        Self {
            stat: ProcFile::new(folder.join("stat"), is_kept),
            io: ProcFile::new(folder.join("io"), is_kept),
            folder,
        }
    }

    /// Returns `None` if the process has ended.
    pub(crate) fn stat(&mut self, buffer: &mut Vec<u8>) -> Option<ProcessStat> {
        parse_stat(self.stat.read(buffer)?)
    }

    /// Returns true if it has not ended.
    pub(crate) fn runs(&mut self, buffer: &mut Vec<u8>) -> bool {
        self.stat(buffer).is_some_and(|stat| !stat.is_zombie)
    }

    /// `None` where it is another user's, or has ended.
    pub(crate) fn io(&mut self, buffer: &mut Vec<u8>) -> Option<[u64; 2]> {
        parse_io(self.io.read(buffer)?)
    }

    /// Number of open descriptors; `None` for another user's process.
    pub(crate) fn descriptors(&self) -> Option<u64> {
        let folder = self.folder.join("fd");
        // Since 6.2 the kernel reports the number as the folder's size.
        match fs::metadata(&folder).ok()?.len() {
            0 => u64::try_from(fs::read_dir(&folder).ok()?.count()).ok(),
            count => Some(count),
        }
    }

    /// Its share of memory in bytes, each page divided by how many share it.
    pub(crate) fn pss(&self, buffer: &mut Vec<u8>) -> Option<u64> {
        let text = text::read(&self.folder.join("smaps_rollup"), buffer)?;
        Some(text::scaled(text::value(text, b"Pss:")?, 1024))
    }

    /// The largest resident memory that the kernel noted, in bytes.
    pub(crate) fn rss_peak(&self, buffer: &mut Vec<u8>) -> Option<u64> {
        let text = text::read(&self.folder.join("status"), buffer)?;
        Some(text::scaled(text::value(text, b"VmHWM:")?, 1024))
    }

    /// Context switches of each of its threads.
    pub(crate) fn switches(&self, buffer: &mut Vec<u8>) -> Vec<(u32, [u64; 2])> {
        let mut switches = Vec::new();
        for thread in self.threads() {
            let path = self
                .folder
                .join("task")
                .join(thread.to_string())
                .join("status");
            let counts = text::read(&path, buffer).and_then(parse_switches);
            switches.extend(counts.map(|counts| (thread, counts)));
        }
        switches
    }

    /// Adds its children. Returns false if the kernel does not list them.
    pub(crate) fn children(&self, buffer: &mut Vec<u8>, children: &mut Vec<u32>) -> bool {
        let mut is_listed = false;
        for thread in self.threads() {
            let path = self
                .folder
                .join("task")
                .join(thread.to_string())
                .join("children");
            let Some(text) = text::read(&path, buffer) else {
                continue;
            };
            is_listed = true;
            children.extend(text::words(text).filter_map(|w| u32::try_from(text::number(w)?).ok()));
        }
        is_listed
    }

    fn threads(&self) -> impl Iterator<Item = u32> {
        numbered(&self.folder.join("task"))
    }
}

/// The entries of a folder that are numbers.
pub(crate) fn numbered(folder: &Path) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_process_is_read() {
        let line =
            b"42 (a) Z 1) R 7 42 42 0 -1 4194304 100 5 3 1 11 12 2 4 20 0 6 0 9000 1000 55 1\n";
        let stat = parse_stat(line).unwrap();
        let expected = ProcessStat {
            is_zombie: false,
            is_stopped: false,
            parent: 7,
            faults_minor: 100,
            faults_major: 3,
            user_ticks: 11,
            system_ticks: 12,
            children_user_ticks: 2,
            children_system_ticks: 4,
            threads: 6,
            start_ticks: 9000,
            rss_pages: 55,
        };
        assert_eq!(stat, expected);
        let io = b"rchar: 9\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 1\n";
        assert_eq!(parse_io(io), Some([4096, 8192]));
        let status = b"Name:\tx\nvoluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t4\n";
        assert_eq!(parse_switches(status), Some([3, 4]));
        assert_eq!(parse_switches(b"Name:\tx\n"), None);
    }

    proptest! {
        #[test]
        fn for_all_bytes_nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            parse_stat(&bytes);
            parse_stat(&[b"1 (x) ".as_slice(), &bytes].concat());
            parse_io(&bytes);
            parse_switches(&bytes);
        }
    }
}
