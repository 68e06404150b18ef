//! Resource usage of the target's process tree.
//!
//! The tree is the first process, all processes that were seen below it (also after their parents have ended),
//! and all in its cgroup and the groups below that.
//!
//! CPU time comes from the cgroup if there is one: it is exact and complete. Otherwise it is the sum of the
//! processes' CPU clocks, in nanoseconds, ended threads included. For an ended process, the usage after its
//! last beat is missing, unless its parent waited for it. Then the kernel has added it to the parent's counter
//! of children, exact to a tick (10 ms) per living parent. The larger of both sums counts, with its user and
//! system time. These are in ticks then. Both sums begin again when the target is started again: the counter
//! of children ends with the first process.
//!
//! Bytes of storage and open descriptors of another user's process cannot be read. While such a process lives, these
//! samples are left out.
//!
//! Context switches, PSS and peak RSS are read only on request: they need every thread or page table.

pub(crate) mod process;
mod run_delay;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use stillwell_metric::{Labels, Metric, Sample, catalogue as metric};
use stillwell_plan::observer::KernelSeries;

use crate::carry::{Carry, sums};
use crate::cgroup::{CgroupFiles, CpuTimes};
use crate::cpu_clock;
use crate::instructions::InstructionReader;
use crate::kernel::{KernelReader, ProcessTicks};
use crate::text;
use process::{Process, ProcessStat, numbered, parse_stat};
use run_delay::RunDelay;

/// Of how many processes files are kept open; two each.
const KEPT_OPEN_MAX: usize = 64;
/// Number of attempts in a beat to open counters of all threads.
const ATTEMPTS_MAX: usize = 5;

/// The processes to watch.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TargetProbe {
    /// The target's first process.
    pub pid: u32,
    /// The target ran before the run. Its earlier usage is excluded from the calculation of foreign load. It is
    /// in none of Stillwell's cgroups, so `cgroup` is ignored.
    pub ran_before: bool,
    /// Its groups, if it has any.
    pub cgroup: CgroupFiles,
    /// The target was watched before and was started again in the same cgroups.
    pub is_again: bool,
    /// CPUs that only the target may use, of all of Stillwell's processes; empty if unknown.
    pub cpus: Vec<u16>,
}

/// Reads the target's process tree at each beat.
#[derive(Debug)]
pub struct TargetReader {
    proc: PathBuf,
    probe: TargetProbe,
    processes: BTreeMap<u32, Process>,
    /// Counters since the last start.
    counters: Carry<(u32, u64), COUNTERS>,
    /// Totals of the counters until the last start.
    counters_before: [u64; COUNTERS],
    switches: Carry<(u32, u64), 2>,
    run_delay: RunDelay,
    cpu_last: CpuTimes,
    /// CPU times until the last start, with those of waited-for children.
    cpu_before: CpuTimes,
    tick_nanos: u64,
    page_bytes: u64,
    buffer: Vec<u8>,
    /// It was stopped at an earlier beat.
    was_stopped: bool,
    /// Reader of additional kernel counters, if requested.
    kernel: Option<KernelReader>,
    /// Reader of the CPU's counters, if requested.
    instructions: Option<InstructionReader>,
}

/// Number of counters of a process: CPU nanoseconds, ticks of user and system time, page faults (minor, major),
/// bytes read and written.
const COUNTERS: usize = 7;

/// Sums over living processes.
#[derive(Debug, Default)]
struct Gauges {
    processes: u64,
    threads: u64,
    rss_bytes: u64,
    descriptors: u64,
    /// The descriptors of some process cannot be read.
    are_descriptors_hidden: bool,
    /// The bytes that some process read and wrote cannot be read.
    is_io_hidden: bool,
    /// User and system time of waited-for children.
    children_ticks: [u64; 2],
}

impl TargetReader {
    /// Creates a reader of the processes in `proc`, which is `/proc` except in tests.
    #[must_use]
    pub fn new(proc: &Path, mut probe: TargetProbe) -> Self {
        if probe.ran_before {
            probe.cgroup = CgroupFiles::default();
        }
        let ticks = rustix::param::clock_ticks_per_second().max(1);
        Self {
            proc: proc.to_owned(),
            probe,
            processes: BTreeMap::new(),
            counters: Carry::new(),
            counters_before: [0; COUNTERS],
            switches: Carry::new(),
            run_delay: RunDelay::default(),
            cpu_last: CpuTimes::default(),
            cpu_before: CpuTimes::default(),
            tick_nanos: 1_000_000_000 / ticks,
            page_bytes: u64::try_from(rustix::param::page_size()).unwrap_or(4096),
            buffer: Vec::new(),
            was_stopped: false,
            kernel: None,
            instructions: None,
        }
    }

    /// Follows a restarted target, whose first process is `pid`. Its earlier usage stays in the totals.
    pub fn follow(&mut self, pid: u32) {
        self.probe.pid = pid;
        // All of its earlier processes have ended.
        self.processes.clear();
        let counters = self.counters.restart();
        self.counters_before = sums((self.counters_before, counters));
        self.cpu_before = self.cpu_last;
        if let Some(instructions) = &mut self.instructions {
            instructions.detach();
        }
    }

    /// Counts the target's instructions, if `is_requested`.
    #[must_use]
    pub fn with_instructions(mut self, is_requested: bool) -> Self {
        self.instructions = is_requested.then(InstructionReader::new);
        self
    }

    /// Adds the kernel's counters that are `requested`.
    #[must_use]
    pub fn with_kernel(mut self, requested: KernelSeries) -> Self {
        self.kernel = (!requested.is_none()).then(|| KernelReader::new(&self.proc, requested));
        self
    }

    /// Adds samples of the tree, with expensive ones if `is_detailed`. Returns the CPU time so far, in
    /// nanoseconds.
    pub fn sample(&mut self, is_detailed: bool, samples: &mut Vec<Sample>) -> u64 {
        let living = self.look();
        let gauges = self.count(&living);
        let totals = self.counters.end_round();
        let cpu = self.cpu(totals, &gauges);
        let counters = sums((self.counters_before, sums(totals)));
        let [_, _, _, faults_minor, faults_major, read, written] = counters;
        let none = Labels::none();
        let mut add = |metric: Metric, value| samples.push(Sample::int(metric, &none, value));
        add(metric::TARGET_CPU, cpu.total);
        add(metric::TARGET_CPU_USER, cpu.user);
        add(metric::TARGET_CPU_SYSTEM, cpu.system);
        add(metric::TARGET_RSS, gauges.rss_bytes);
        add(metric::TARGET_PROCESSES, gauges.processes);
        add(metric::TARGET_THREADS, gauges.threads);
        add(metric::TARGET_FAULTS_MINOR, faults_minor);
        add(metric::TARGET_FAULTS_MAJOR, faults_major);
        if !gauges.are_descriptors_hidden {
            add(metric::TARGET_FDS, gauges.descriptors);
        }
        if !gauges.is_io_hidden {
            add(metric::TARGET_READ_BYTES, read);
            add(metric::TARGET_WRITE_BYTES, written);
        }
        let running = living.iter().filter(|(_, stat)| !stat.is_zombie);
        let running = running.map(|(pid, stat)| (*pid, stat.start_ticks));
        if let Some(delay) = self.run_delay.read(&self.proc, running, &mut self.buffer) {
            add(metric::TARGET_RUN_DELAY, delay);
        }
        self.sample_instructions(&living, samples);
        self.sample_stopped(&living, samples);
        if is_detailed {
            self.sample_details(&living, samples);
        }
        self.probe.cgroup.sample(&mut self.buffer, samples);
        if let Some(kernel) = &mut self.kernel {
            let processes: Vec<ProcessTicks> = living
                .iter()
                .filter(|(_, stat)| !stat.is_zombie)
                .map(|(pid, stat)| ProcessTicks {
                    pid: *pid,
                    user_ticks: stat.user_ticks,
                    system_ticks: stat.system_ticks,
                })
                .collect();
            let group = self.probe.cgroup.unified.as_deref();
            let how = (is_detailed, self.tick_nanos);
            kernel.sample(&processes, (group, cpu), how, &mut self.buffer, samples);
        }
        cpu.total
    }

    /// Samples the instructions of the tree, and opens their counters once there is a tree.
    fn sample_instructions(
        &mut self,
        living: &BTreeMap<u32, ProcessStat>,
        samples: &mut Vec<Sample>,
    ) {
        let Some(mut reader) = self.instructions.take() else {
            return;
        };
        let mut threads = match reader.is_waiting() {
            true => self.threads(living),
            false => BTreeSet::new(),
        };
        let mut attempts = 0..ATTEMPTS_MAX;
        while reader.is_waiting() && !threads.is_empty() && attempts.next().is_some() {
            reader.open(&threads);
            let again = self.look();
            let now = self.threads(&again);
            reader.accept(&threads, &now);
            threads = now;
        }
        reader.sample(samples);
        self.instructions = Some(reader);
    }

    /// Threads of `living`.
    fn threads(&self, living: &BTreeMap<u32, ProcessStat>) -> BTreeSet<u32> {
        let running = living.iter().filter(|(_, stat)| !stat.is_zombie);
        let folders = running.map(|(pid, _)| self.proc.join(pid.to_string()).join("task"));
        folders.flat_map(|folder| numbered(&folder)).collect()
    }

    /// Samples that the target is stopped, and that it no longer is.
    fn sample_stopped(&mut self, living: &BTreeMap<u32, ProcessStat>, samples: &mut Vec<Sample>) {
        let mut running = living.values().filter(|stat| !stat.is_zombie).peekable();
        let is_stopped = running.peek().is_some() && running.all(|stat| stat.is_stopped)
            || self.probe.cgroup.is_frozen(&mut self.buffer);
        self.was_stopped |= is_stopped;
        if self.was_stopped {
            let value = u64::from(is_stopped);
            samples.push(Sample::int(metric::TARGET_STOPPED, &Labels::none(), value));
        }
    }

    /// Returns the living processes of the tree with their `stat`.
    fn look(&mut self) -> BTreeMap<u32, ProcessStat> {
        let mut waiting: Vec<u32> = self.processes.keys().copied().collect();
        waiting.push(self.probe.pid);
        let in_group = self.probe.cgroup.pids(&mut self.buffer);
        let has_group = in_group.is_some();
        waiting.extend(in_group.unwrap_or_default());
        let mut living = BTreeMap::new();
        let mut looked = BTreeSet::new();
        let mut is_listed = true;
        while let Some(pid) = waiting.pop() {
            if !looked.insert(pid) {
                continue;
            }
            let is_kept = self.processes.len() < KEPT_OPEN_MAX;
            let process = self
                .processes
                .entry(pid)
                .or_insert_with(|| Process::new(&self.proc, pid, is_kept));
            let Some(stat) = process.stat(&mut self.buffer) else {
                self.processes.remove(&pid);
                continue;
            };
            living.insert(pid, stat);
            if !has_group && !stat.is_zombie {
                is_listed &= process.children(&mut self.buffer, &mut waiting);
            }
        }
        if !is_listed {
            self.look_everywhere(&mut living);
        }
        living
    }

    /// Finds the tree if the kernel does not list children.
    fn look_everywhere(&mut self, living: &mut BTreeMap<u32, ProcessStat>) {
        let mut unassigned: BTreeMap<u32, ProcessStat> = numbered(&self.proc)
            .filter(|pid| !living.contains_key(pid))
            .filter_map(|pid| {
                let path = self.proc.join(pid.to_string()).join("stat");
                Some((pid, parse_stat(text::read(&path, &mut self.buffer)?)?))
            })
            .collect();
        loop {
            let mut children = unassigned
                .iter()
                .filter(|(_, stat)| living.contains_key(&stat.parent));
            let Some((pid, stat)) = children.next().map(|(pid, stat)| (*pid, *stat)) else {
                return;
            };
            unassigned.remove(&pid);
            self.processes
                .insert(pid, Process::new(&self.proc, pid, false));
            living.insert(pid, stat);
        }
    }

    fn count(&mut self, living: &BTreeMap<u32, ProcessStat>) -> Gauges {
        let mut gauges = Gauges::default();
        for (pid, stat) in living {
            let Some(process) = self.processes.get_mut(pid) else {
                continue;
            };
            let owner = (*pid, stat.start_ticks);
            let io = process.io(&mut self.buffer);
            // A process that ends after its `stat` was read keeps the bytes of its last beat.
            let [read, written] = io.unwrap_or_else(|| {
                let [.., read, written] = self.counters.last(owner).unwrap_or_default();
                [read, written]
            });
            let ticks = stat.user_ticks.saturating_add(stat.system_ticks);
            let nanos = cpu_clock::process_nanos(*pid);
            let counters = [
                nanos.unwrap_or_else(|| text::scaled(ticks, self.tick_nanos)),
                stat.user_ticks,
                stat.system_ticks,
                stat.faults_minor,
                stat.faults_major,
                read,
                written,
            ];
            self.counters.record(owner, counters);
            gauges.children_ticks[0] += stat.children_user_ticks;
            gauges.children_ticks[1] += stat.children_system_ticks;
            if !stat.is_zombie {
                gauges.processes += 1;
                gauges.threads += stat.threads;
                gauges.rss_bytes += text::scaled(stat.rss_pages, self.page_bytes);
                let descriptors = process.descriptors();
                // One that has just ended hides nothing.
                if (io.is_none() || descriptors.is_none()) && process.runs(&mut self.buffer) {
                    gauges.is_io_hidden |= io.is_none();
                    gauges.are_descriptors_hidden |= descriptors.is_none();
                }
                gauges.descriptors += descriptors.unwrap_or(0);
            }
        }
        gauges
    }

    fn cpu(&mut self, totals: ([u64; COUNTERS], [u64; COUNTERS]), gauges: &Gauges) -> CpuTimes {
        let summed = || {
            let times = process_times(totals, gauges.children_ticks, self.tick_nanos);
            times.plus(self.cpu_before)
        };
        let cpu = self.probe.cgroup.cpu(&mut self.buffer);
        let cpu = cpu.unwrap_or_else(summed);
        // Clocks of an ending process may be read at slightly different times.
        let last = self.cpu_last;
        self.cpu_last = CpuTimes {
            total: cpu.total.max(last.total),
            user: cpu.user.max(last.user),
            system: cpu.system.max(last.system),
        };
        self.cpu_last
    }

    fn sample_details(&mut self, living: &BTreeMap<u32, ProcessStat>, samples: &mut Vec<Sample>) {
        let (mut pss, mut peak) = (None, None);
        let add = |total: &mut Option<u64>, value: Option<u64>| {
            *total = value.map_or(*total, |value| Some(total.unwrap_or(0) + value));
        };
        for (pid, stat) in living {
            let Some(process) = self.processes.get(pid).filter(|_| !stat.is_zombie) else {
                continue;
            };
            add(&mut pss, process.pss(&mut self.buffer));
            add(&mut peak, process.rss_peak(&mut self.buffer));
            for (thread, counts) in process.switches(&mut self.buffer) {
                self.switches.record((thread, stat.start_ticks), counts);
            }
        }
        let [waited, forced] = sums(self.switches.end_round());
        let values = [
            (metric::TARGET_PSS, pss),
            (metric::TARGET_RSS_PEAK, peak),
            (metric::TARGET_SWITCHES_VOLUNTARY, Some(waited)),
            (metric::TARGET_SWITCHES_FORCED, Some(forced)),
        ];
        let none = Labels::none();
        for (metric, value) in values {
            samples.extend(value.map(|value| Sample::int(metric, &none, value)));
        }
    }
}

/// Returns the CPU times since the last start: those of living processes, and the larger of the sum over ended ones
/// and of `children_ticks`, the user and system time of waited-for children.
fn process_times(
    (living, ended): ([u64; COUNTERS], [u64; COUNTERS]),
    children_ticks: [u64; 2],
    tick_nanos: u64,
) -> CpuTimes {
    let [living_nanos, living_user, living_system, ..] = living;
    let [ended_nanos, ended_user, ended_system, ..] = ended;
    let [children_user, children_system] = children_ticks;
    let nanos = |ticks| text::scaled(ticks, tick_nanos);
    let children_nanos = nanos(children_user.saturating_add(children_system));
    // User and system time come from the same sum as the total, so they add up to it.
    let (total, user, system) = if children_nanos > ended_nanos {
        (children_nanos, children_user, children_system)
    } else {
        (ended_nanos, ended_user, ended_system)
    };
    CpuTimes {
        total: living_nanos.saturating_add(total),
        user: nanos(living_user.saturating_add(user)),
        system: nanos(living_system.saturating_add(system)),
    }
}

#[cfg(test)]
mod tests;
