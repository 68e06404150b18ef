//! Files of one process, as proc(5) describes them.

use crate::numbers::Numbers;

/// Bytes of a page.
const PAGE: u64 = 4096;

/// A simulated process. Its files are consistent with each other.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pid: u32,
    parent: u32,
    /// At most 15 bytes, as the kernel keeps it.
    name: String,
    arguments: Vec<String>,
    threads: u64,
    user_ticks: u64,
    system_ticks: u64,
    start_ticks: u64,
    faults: u64,
    virtual_pages: u64,
    resident_pages: u64,
    shared_pages: u64,
    read_bytes: u64,
    written_bytes: u64,
    switches: u64,
}

impl Process {
    pub(super) fn draw(pid: u32, numbers: &mut Numbers) -> Self {
        let below = |numbers: &mut Numbers, end: u64| numbers.next() % end;
        let resident_pages = 256 + below(numbers, 65_536);
        let length = 4 + u32::try_from(below(numbers, 12)).unwrap_or(0);
        let name = numbers.name(length);
        let count = below(numbers, 6);
        Self {
            pid,
            // Parents are earlier processes; the first process has no parent.
            parent: u32::try_from(below(numbers, u64::from(pid))).unwrap_or(0),
            arguments: (0..count)
                .map(|_| format!("--{}", numbers.name(8)))
                .collect(),
            name,
            threads: 1 + below(numbers, 32),
            user_ticks: below(numbers, 1_000_000),
            system_ticks: below(numbers, 500_000),
            start_ticks: 100 + below(numbers, 100_000),
            faults: below(numbers, 1_000_000),
            virtual_pages: resident_pages * (2 + below(numbers, 8)),
            resident_pages,
            shared_pages: below(numbers, resident_pages),
            read_bytes: below(numbers, 1 << 20) * PAGE,
            written_bytes: below(numbers, 1 << 20) * PAGE,
            switches: below(numbers, 1_000_000),
        }
    }

    /// Names and texts of its files.
    pub(super) fn files(&self) -> [(&'static str, String); 7] {
        let words = std::iter::once(format!("/usr/bin/{}", self.name));
        let words = words.chain(self.arguments.iter().cloned());
        [
            ("cmdline", words.map(|word| word + "\0").collect()),
            ("comm", format!("{}\n", self.name)),
            ("io", self.io()),
            ("limits", LIMITS.to_owned()),
            ("stat", self.stat()),
            ("statm", self.statm()),
            ("status", self.status()),
        ]
    }

    fn io(&self) -> String {
        let (read, written) = (self.read_bytes, self.written_bytes);
        format!(
            "rchar: {}\nwchar: {}\nsyscr: {}\nsyscw: {}\nread_bytes: {read}\nwrite_bytes: {written}\n\
             cancelled_write_bytes: 0\n",
            read * 2,
            written * 2,
            read / PAGE,
            written / PAGE,
        )
    }

    /// The 52 fields of `stat`.
    fn stat(&self) -> String {
        let pid = self.pid;
        let before = [u64::from(self.parent), u64::from(pid), u64::from(pid), 0];
        let mut text = format!("{pid} ({}) S", self.name);
        for field in before {
            text += &format!(" {field}");
        }
        text += " -1 4194304";
        let fields = [
            self.faults,
            0,
            self.faults / 1000,
            0,
            self.user_ticks,
            self.system_ticks,
            0,
            0,
            20,
            0,
            self.threads,
            0,
            self.start_ticks,
            self.virtual_pages * PAGE,
            self.resident_pages,
            u64::MAX,
        ];
        for field in fields {
            text += &format!(" {field}");
        }
        // Addresses, signals and other fields that readers ignore.
        for field in [0_u64; 12] {
            text += &format!(" {field}");
        }
        text += " 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
        text
    }

    fn statm(&self) -> String {
        format!(
            "{} {} {} 64 0 {} 0\n",
            self.virtual_pages,
            self.resident_pages,
            self.shared_pages,
            self.resident_pages / 2
        )
    }

    fn status(&self) -> String {
        let kilobytes = |pages: u64| pages * (PAGE / 1024);
        let (pid, anonymous) = (self.pid, self.resident_pages - self.shared_pages);
        format!(
            "Name:\t{}\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t{pid}\nNgid:\t0\nPid:\t{pid}\n\
             PPid:\t{}\nTracerPid:\t0\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nFDSize:\t64\nGroups:\t\n\
             VmPeak:\t{virtual_kb:8} kB\nVmSize:\t{virtual_kb:8} kB\nVmLck:\t       0 kB\n\
             VmPin:\t       0 kB\nVmHWM:\t{resident_kb:8} kB\nVmRSS:\t{resident_kb:8} kB\n\
             RssAnon:\t{anonymous_kb:8} kB\nRssFile:\t{shared_kb:8} kB\nRssShmem:\t       0 kB\n\
             VmData:\t{anonymous_kb:8} kB\nVmStk:\t     132 kB\nVmExe:\t     256 kB\n\
             VmLib:\t    2048 kB\nVmPTE:\t      64 kB\nVmSwap:\t       0 kB\nThreads:\t{}\n\
             voluntary_ctxt_switches:\t{}\nnonvoluntary_ctxt_switches:\t{}\n",
            self.name,
            self.parent,
            self.threads,
            self.switches,
            self.switches / 10,
            virtual_kb = kilobytes(self.virtual_pages),
            resident_kb = kilobytes(self.resident_pages),
            anonymous_kb = kilobytes(anonymous),
            shared_kb = kilobytes(self.shared_pages),
        )
    }
}

const LIMITS: &str = "\
Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max file size             unlimited            unlimited            bytes     
Max data size             unlimited            unlimited            bytes     
Max stack size            8388608              unlimited            bytes     
Max resident set          unlimited            unlimited            bytes     
Max processes             127000               127000               processes 
Max open files            1024                 524288               files     
Max locked memory         8388608              8388608              bytes     
Max address space         unlimited            unlimited            bytes     
";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stillwell_units::Seed;

    use super::*;

    fn text(process: &Process, name: &str) -> String {
        let files = process.files();
        files
            .into_iter()
            .find(|(file_name, _)| *file_name == name)
            .unwrap()
            .1
    }

    fn value(text: &str, key: &str) -> u64 {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(key))
            .unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    proptest! {
        #[test]
        fn for_all_processes_its_files_agree(pid in 1_u32..1_000_000, number: u64) {
            let process = Process::draw(pid, &mut Numbers::new(&Seed::from_number(number)));
            let stat = text(&process, "stat");
            let fields: Vec<&str> = stat.split_whitespace().collect();
            prop_assert_eq!(fields.len(), 52);
            let name = fields[1].trim_matches(['(', ')']);
            prop_assert!(name.len() <= 15);
            let comm = text(&process, "comm");
            prop_assert_eq!(comm.trim_end(), name);
            let status = text(&process, "status");
            prop_assert_eq!(value(&status, "Pid:"), u64::from(pid));
            prop_assert_eq!(value(&status, "PPid:").to_string(), fields[3]);
            prop_assert!(value(&status, "PPid:") < u64::from(pid));
            prop_assert_eq!(value(&status, "Threads:").to_string(), fields[19]);
            let resident: u64 = fields[23].parse().unwrap();
            prop_assert_eq!(value(&status, "VmRSS:"), resident * 4);
            prop_assert_eq!(value(&status, "RssAnon:") + value(&status, "RssFile:"), resident * 4);
            let statm = text(&process, "statm");
            let pages: Vec<u64> = statm.split_whitespace().map(|w| w.parse().unwrap()).collect();
            prop_assert_eq!(pages[1], resident);
            prop_assert_eq!(pages[0] * PAGE, fields[22].parse::<u64>().unwrap());
            let cmdline = text(&process, "cmdline");
            prop_assert!(cmdline.ends_with('\0') && cmdline.contains(name));
            prop_assert!(value(&text(&process, "io"), "read_bytes:").is_multiple_of(PAGE));
        }
    }
}
