//! Kernel counters of the target, as lading records them: memory and CPU of each process, mappings, working
//! set, control group, and `/proc/vmstat`.
//!
//! Most are cheap. Mappings (`smaps`) are read only with details: the kernel walks all page tables for them.
//! The working set is the memory touched since the last detailed sample. It comes from idle page tracking if
//! available. Otherwise referenced bits are read and cleared (`clear_refs`), which on some processors costs the
//! target a page fault for each page that it touches again.

mod files;
mod idle;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use stillwell_metric::{Labels, Sample, kernel as series};
use stillwell_plan::observer::KernelSeries;
use stillwell_scope::clock;
use stillwell_units::{Moment, float_from_u64};

use crate::cgroup::CpuTimes;
use crate::text;
use files::{Mappings, ROLLUP_FIELDS, cgroup_numbers, kilobytes};
use idle::IdlePages;

/// Longest part of a command line that is kept.
const COMMAND_LINE_MAX: usize = 256;

/// Largest number of processes with their own series; those with the lowest ids.
const PROCESSES_MAX: usize = 64;

/// Reads them, beat after beat.
#[derive(Debug)]
pub(crate) struct KernelReader {
    proc: PathBuf,
    requested: KernelSeries,
    /// Labels of each process, and its CPU ticks at the last beat: user, system.
    processes: BTreeMap<u32, (Labels, [u64; 2])>,
    last: Option<Moment>,
    /// CPU time of the target at the last beat.
    cpu_last: CpuTimes,
    /// Cores of the machine, in thousandths.
    machine_millicores: f64,
    /// Idle page tracking, if it is available and requested.
    idle: Option<IdlePages>,
    /// All referenced bits were cleared at the last sample.
    is_cleared: bool,
}

/// One process as it was seen in this beat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessTicks {
    pub(crate) pid: u32,
    pub(crate) user_ticks: u64,
    pub(crate) system_ticks: u64,
}

impl KernelReader {
    pub(crate) fn new(proc: &Path, requested: KernelSeries) -> Self {
        Self::with_marks(proc, requested, Path::new(idle::BITMAP))
    }

    /// [`new`](Self::new), where idle pages are marked in the file `marks`.
    fn with_marks(proc: &Path, requested: KernelSeries, marks: &Path) -> Self {
        let is_requested = requested.working_set || requested.idle_pages;
        Self {
            proc: proc.to_owned(),
            requested,
            processes: BTreeMap::new(),
            last: None,
            cpu_last: CpuTimes::default(),
            machine_millicores: machine_millicores(proc),
            idle: is_requested.then(|| IdlePages::open(marks)).flatten(),
            is_cleared: false,
        }
    }

    /// Adds samples of the processes `living`, whose cgroup is `cgroup` if it has one, and which have used
    /// `cpu` so far.
    pub(crate) fn sample(
        &mut self,
        living: &[ProcessTicks],
        (cgroup, cpu): (Option<&Path>, CpuTimes),
        (is_detailed, tick_nanos): (bool, u64),
        buffer: &mut Vec<u8>,
        samples: &mut Vec<Sample>,
    ) {
        let now = clock::now();
        let since = self.last.map(|last| now.since(last).as_u64());
        self.last = Some(now);
        let target_group = cgroup.map(Path::to_owned);
        let group = target_group.or_else(|| self.group_of(living.first()?.pid, buffer));
        let granted = group
            .as_deref()
            .and_then(|folder| granted_in(folder, buffer));
        let granted = granted.unwrap_or(self.machine_millicores);
        self.add_total_cpu(cpu, since, granted, samples);
        self.processes
            .retain(|pid, _| living.iter().any(|process| process.pid == *pid));
        for process in living.iter().take(PROCESSES_MAX) {
            let folder = self.proc.join(process.pid.to_string());
            let ticks = [process.user_ticks, process.system_ticks];
            let processes = self.processes.entry(process.pid);
            let (labels, before) =
                processes.or_insert_with(|| (labels_of(&folder, process.pid, buffer), ticks));
            let spent = [0, 1].map(|at| ticks[at].saturating_sub(before[at]) * tick_nanos);
            *before = ticks;
            if self.requested.processes {
                if let Some(since) = since.filter(|since| *since > 0) {
                    add_cpu(labels, spent, (since, granted), samples);
                }
                add_sizes(&folder, labels, buffer, samples);
            }
            if self.requested.smaps && is_detailed {
                add_mappings(&folder, labels, buffer, samples);
            }
        }
        if is_detailed {
            self.add_working_set(living, buffer, samples);
        }
        if let Some(folder) = group.filter(|_| self.requested.cgroup) {
            add_cgroup(&folder, buffer, samples);
        }
        if self.requested.vmstat
            && let Some(text) = text::read(&self.proc.join("vmstat"), buffer)
        {
            let numbers = text::lines(text).filter_map(|line| {
                let mut words = text::words(line);
                let key = std::str::from_utf8(words.next()?).ok()?;
                Some(series::vmstat(key, text::number(words.next()?)?))
            });
            samples.extend(numbers);
        }
    }

    /// Adds the usage of all processes since the last sample.
    fn add_total_cpu(
        &mut self,
        cpu: CpuTimes,
        since: Option<u64>,
        granted: f64,
        samples: &mut Vec<Sample>,
    ) {
        let last = std::mem::replace(&mut self.cpu_last, cpu);
        let Some(since) = since.filter(|since| *since > 0 && self.requested.processes) else {
            return;
        };
        let used = [
            cpu.total.saturating_sub(last.total),
            cpu.user.saturating_sub(last.user),
            cpu.system.saturating_sub(last.system),
        ];
        samples.extend(series::total_cpu(
            used.map(|used| millicores(used, since)),
            granted,
        ));
    }

    /// Adds the memory touched since the last sample.
    fn add_working_set(
        &mut self,
        living: &[ProcessTicks],
        buffer: &mut Vec<u8>,
        samples: &mut Vec<Sample>,
    ) {
        if let Some(idle) = &self.idle {
            let folders = living
                .iter()
                .map(|process| self.proc.join(process.pid.to_string()));
            let folders: Vec<PathBuf> = folders.collect();
            let bytes = idle.sample(&folders, buffer);
            // Before they were marked once, it would be all that they have.
            let is_marked = std::mem::replace(&mut self.is_cleared, bytes.is_some());
            samples.extend(bytes.filter(|_| is_marked).map(series::working_set));
        } else if self.requested.working_set {
            self.add_referenced(living, buffer, samples);
        }
    }

    /// The same by marks of another kind, which are cleared for the next time.
    fn add_referenced(
        &mut self,
        living: &[ProcessTicks],
        buffer: &mut Vec<u8>,
        samples: &mut Vec<Sample>,
    ) {
        let (mut total, mut is_cleared) = (None, true);
        for process in living {
            let folder = self.proc.join(process.pid.to_string());
            let text = text::read(&folder.join("smaps_rollup"), buffer);
            // A process without the field has ended.
            let Some(bytes) = text.and_then(|text| kilobytes(text, b"Referenced:")) else {
                continue;
            };
            total = Some(total.unwrap_or(0) + bytes);
            // Without permission the bits remain, and count since the process's start.
            is_cleared &= fs::write(folder.join("clear_refs"), "1").is_ok();
        }
        // Without a clearing before it would be all that was ever touched.
        if self.is_cleared {
            samples.extend(total.map(series::working_set));
        }
        self.is_cleared = is_cleared && total.is_some();
    }

    /// The folder of the version 2 group that a process is in, unless that is the root.
    fn group_of(&self, pid: u32, buffer: &mut Vec<u8>) -> Option<PathBuf> {
        let text = text::read(&self.proc.join(pid.to_string()).join("cgroup"), buffer)?;
        let path = text::lines(text).find_map(|line| line.strip_prefix(b"0::/"))?;
        let path = std::str::from_utf8(path)
            .ok()
            .filter(|path| !path.is_empty())?;
        Some(Path::new("/sys/fs/cgroup").join(path))
    }
}

/// Returns the labels of a process.
fn labels_of(folder: &Path, pid: u32, buffer: &mut Vec<u8>) -> Labels {
    let mut labels = Labels::none().with("pid", pid.to_string());
    if let Ok(program) = fs::read_link(folder.join("exe")) {
        labels = labels.with("exe", program.to_string_lossy());
    }
    for (key, file) in [("cmdline", "cmdline"), ("comm", "comm")] {
        if let Some(text) = text::read(&folder.join(file), buffer) {
            let text = &text[..text.len().min(COMMAND_LINE_MAX)];
            let text = String::from_utf8_lossy(text).replace('\0', " ");
            labels = labels.with(key, text.trim());
        }
    }
    labels
}

fn add_cpu(
    labels: &Labels,
    [user, system]: [u64; 2],
    (since, granted): (u64, f64),
    samples: &mut Vec<Sample>,
) {
    let used = [user + system, user, system].map(|nanos| millicores(nanos, since));
    samples.extend(series::cpu(labels, used, granted));
}

/// Thousandths of a core that were busy for `nanos` of `since` nanoseconds.
fn millicores(nanos: u64, since: u64) -> f64 {
    float_from_u64(nanos) * 1000.0 / float_from_u64(since)
}

/// Thousandths of a core that this machine has.
fn machine_millicores(proc: &Path) -> f64 {
    let stat = fs::read_to_string(proc.join("stat")).unwrap_or_default();
    let is_core = |line: &&str| {
        let number = line.strip_prefix("cpu").unwrap_or_default();
        number.starts_with(|letter: char| letter.is_ascii_digit())
    };
    let cores = stat.lines().filter(is_core).count().max(1);
    float_from_u64(u64::try_from(cores).unwrap_or(1)) * 1000.0
}

/// Thousandths of a core that a group may use, where that has a limit.
fn granted_in(folder: &Path, buffer: &mut Vec<u8>) -> Option<f64> {
    let text = text::read(&folder.join("cpu.max"), buffer)?;
    let mut words = text::words(text).map(text::number);
    let (quota, period) = (words.next()??, words.next()??);
    (period > 0).then(|| millicores(quota, period))
}

/// The sizes of `status` and `smaps_rollup`.
fn add_sizes(folder: &Path, labels: &Labels, buffer: &mut Vec<u8>, samples: &mut Vec<Sample>) {
    if let Some(text) = text::read(&folder.join("status"), buffer) {
        let sizes = text::lines(text).filter_map(|line| {
            let (field, value) = files::field(line)?;
            let is_size = value.ends_with(b"kB");
            let bytes = text::scaled(text::number(value).filter(|_| is_size)?, 1024);
            Some(series::status(field, labels, bytes))
        });
        samples.extend(sizes);
    }
}

fn add_mappings(folder: &Path, labels: &Labels, buffer: &mut Vec<u8>, samples: &mut Vec<Sample>) {
    if let Some(text) = text::read(&folder.join("smaps_rollup"), buffer) {
        let sizes = ROLLUP_FIELDS.iter().filter_map(|field| {
            let bytes = kilobytes(text, format!("{field}:").as_bytes())?;
            Some(series::smaps_rollup(field, labels, bytes))
        });
        samples.extend(sizes);
    }
    if let Some(text) = text::read(&folder.join("smaps"), buffer) {
        // Sums over a part would look complete.
        if text::is_cut(text) {
            samples.push(series::smaps_too_long(labels));
            return;
        }
        for (pathname, sizes) in Mappings::read(text).by_pathname {
            let sizes = sizes.into_iter();
            samples
                .extend(sizes.map(|(field, bytes)| series::smaps(field, labels, &pathname, bytes)));
        }
    }
}

fn add_cgroup(folder: &Path, buffer: &mut Vec<u8>, samples: &mut Vec<Sample>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort_unstable();
    for name in names {
        // Lists of processes are no figures.
        if matches!(name.as_str(), "cgroup.procs" | "cgroup.threads") {
            continue;
        }
        if let Some(text) = text::read(&folder.join(&name), buffer) {
            let numbers = cgroup_numbers(text).into_iter();
            samples.extend(numbers.map(|number| {
                let labels = match number.device {
                    Some(device) => Labels::none().with("device", device),
                    None => Labels::none(),
                };
                series::cgroup(&name, &number.keys, &labels, number.value)
            }));
        }
    }
}

#[cfg(test)]
mod tests;
