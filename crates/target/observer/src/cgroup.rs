//! Counters of a control group.
//!
//! CPU time is exact to a nanosecond from the v1 controller `cpuacct`, and to a microsecond from v2. The v1
//! split into user and system is exact as well.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use stillwell_metric::{Labels, Sample, catalogue as metric};

use crate::host::pressure;
use crate::text;

/// The target's cgroups, by the folders of their hierarchies; each may be missing.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CgroupFiles {
    /// In the v2 hierarchy.
    pub unified: Option<PathBuf>,
    /// In the v1 hierarchy with the controller `cpuacct`.
    pub cpuacct: Option<PathBuf>,
    /// In the v1 hierarchy with the controller `memory`.
    pub memory: Option<PathBuf>,
}

/// CPU times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct CpuTimes {
    pub(crate) total: u64,
    pub(crate) user: u64,
    pub(crate) system: u64,
}

impl CpuTimes {
    /// Returns the sums of both.
    pub(crate) const fn plus(self, rhs: Self) -> Self {
        Self {
            total: self.total.saturating_add(rhs.total),
            user: self.user.saturating_add(rhs.user),
            system: self.system.saturating_add(rhs.system),
        }
    }
}

impl CgroupFiles {
    /// CPU time of all that was ever in the group.
    pub(crate) fn cpu(&self, buffer: &mut Vec<u8>) -> Option<CpuTimes> {
        self.cpu_v1(buffer).or_else(|| self.cpu_v2(buffer))
    }

    /// The processes in it and in the groups below it.
    pub(crate) fn pids(&self, buffer: &mut Vec<u8>) -> Option<Vec<u32>> {
        let folders = [&self.unified, &self.cpuacct, &self.memory];
        let folder = folders.into_iter().flatten().next()?;
        let mut pids = pids_of(folder, buffer)?;
        for inner in groups_below(folder) {
            // A group of threads lists no processes. One that was removed since has none.
            pids.extend(pids_of(&inner, buffer).unwrap_or_default());
        }
        Some(pids)
    }

    /// Returns true if all of its processes are frozen.
    pub(crate) fn is_frozen(&self, buffer: &mut Vec<u8>) -> bool {
        let folder = self.unified.as_ref();
        let events = folder.and_then(|folder| text::read(&folder.join("cgroup.events"), buffer));
        events.and_then(|text| text::value(text, b"frozen ")) == Some(1)
    }

    /// Samples of its memory, its kills and its throttling.
    pub(crate) fn sample(&self, buffer: &mut Vec<u8>, samples: &mut Vec<Sample>) {
        let none = Labels::none();
        let mut add = |metric, value: Option<u64>| {
            samples.extend(value.map(|value| Sample::int(metric, &none, value)));
        };
        let old = [
            "memory.usage_in_bytes",
            "memory.max_usage_in_bytes",
            "memory.oom_control",
        ];
        let new = ["memory.current", "memory.peak", "memory.events"];
        let pressure = self.unified.as_ref();
        let pressure = pressure
            .and_then(|folder| pressure::parse(text::read(&folder.join("cpu.pressure"), buffer)?));
        add(metric::CGROUP_PRESSURE_CPU, pressure);
        let (folder, names) = match (&self.memory, &self.unified) {
            (Some(folder), _) => (folder, old),
            (None, Some(folder)) => (folder, new),
            (None, None) => return,
        };
        let mut number = |name: &str| text::number(text::read(&folder.join(name), buffer)?);
        add(metric::CGROUP_MEMORY, number(names[0]));
        add(metric::CGROUP_MEMORY_PEAK, number(names[1]));
        let events = text::read(&folder.join(names[2]), buffer);
        let kills = events.and_then(|text| text::value(text, b"oom_kill "));
        add(metric::TARGET_OOM_KILLS, kills);
        let stat = self.unified.as_ref();
        let stat = stat.and_then(|folder| text::read(&folder.join("cpu.stat"), buffer));
        let throttled = stat.and_then(|text| text::value(text, b"throttled_usec "));
        add(
            metric::CGROUP_THROTTLED,
            throttled.map(|micros| text::scaled(micros, 1000)),
        );
    }

    fn cpu_v1(&self, buffer: &mut Vec<u8>) -> Option<CpuTimes> {
        let folder = self.cpuacct.as_ref()?;
        let mut number = |name: &str| text::number(text::read(&folder.join(name), buffer)?);
        Some(CpuTimes {
            total: number("cpuacct.usage")?,
            user: number("cpuacct.usage_user")?,
            system: number("cpuacct.usage_sys")?,
        })
    }

    fn cpu_v2(&self, buffer: &mut Vec<u8>) -> Option<CpuTimes> {
        let text = text::read(&self.unified.as_ref()?.join("cpu.stat"), buffer)?;
        let nanos = |key: &[u8]| Some(text::scaled(text::value(text, key)?, 1000));
        Some(CpuTimes {
            total: nanos(b"usage_usec ")?,
            user: nanos(b"user_usec ")?,
            system: nanos(b"system_usec ")?,
        })
    }
}

/// The processes in one group, without those below it.
fn pids_of(group: &Path, buffer: &mut Vec<u8>) -> Option<Vec<u32>> {
    let text = text::read(&group.join("cgroup.procs"), buffer)?;
    let pids = text::lines(text).filter_map(|line| u32::try_from(text::number(line)?).ok());
    Some(pids.collect())
}

/// Returns all groups below the group `folder`. A group that is removed meanwhile may be missing.
fn groups_below(folder: &Path) -> Vec<PathBuf> {
    let mut below = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(group) = waiting.pop() {
        // A folder has two links, and one more for each folder in it. Most groups need no walk.
        if fs::metadata(&group).is_ok_and(|metadata| metadata.nlink() == 2) {
            continue;
        }
        let entries = fs::read_dir(&group).into_iter().flatten().flatten();
        // A symbolic link is no group.
        let inner = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let inner: Vec<PathBuf> = inner.map(|entry| entry.path()).collect();
        below.extend_from_slice(&inner);
        waiting.extend(inner);
    }
    below
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plain folders have the places of groups.
    #[test]
    fn the_processes_of_a_group_are_also_those_of_the_groups_below_it() {
        let root = tempfile::tempdir().unwrap();
        let group = root.path().join("group");
        for (name, text) in [
            ("group", "7\n"),
            ("group/inner", ""),
            ("group/inner/deepest", "12\n13\n"),
            ("outside", "99\n"),
        ] {
            let folder = root.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("cgroup.procs"), text).unwrap();
        }
        fs::create_dir(group.join("threads")).unwrap();
        std::os::unix::fs::symlink(root.path().join("outside"), group.join("link")).unwrap();
        let files = CgroupFiles {
            unified: Some(group.clone()),
            ..CgroupFiles::default()
        };
        let mut pids = files.pids(&mut Vec::new()).unwrap();
        pids.sort_unstable();
        assert_eq!(pids, [7, 12, 13]);
        fs::remove_file(group.join("cgroup.procs")).unwrap();
        assert_eq!(files.pids(&mut Vec::new()), None);
    }

    #[test]
    fn either_version_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write(
            "cpu.stat",
            "usage_usec 30\nuser_usec 20\nsystem_usec 10\nthrottled_usec 4\n",
        );
        write("cgroup.procs", "7\n12\n");
        write("memory.current", "4096\n");
        write("memory.events", "low 0\noom 1\noom_kill 2\n");
        let mut files = CgroupFiles {
            unified: Some(folder.path().into()),
            ..CgroupFiles::default()
        };
        let mut buffer = Vec::new();
        let times = |total, user, system| CpuTimes {
            total,
            user,
            system,
        };
        assert_eq!(files.cpu(&mut buffer), Some(times(30_000, 20_000, 10_000)));
        assert_eq!(files.pids(&mut buffer), Some(vec![7, 12]));
        let mut samples = Vec::new();
        files.sample(&mut buffer, &mut samples);
        let names: Vec<&str> = samples.iter().map(|sample| sample.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "cgroup_memory_bytes",
                "target_oom_kills",
                "cgroup_throttled"
            ]
        );
        write("cpuacct.usage", "31\n");
        write("cpuacct.usage_user", "21\n");
        write("cpuacct.usage_sys", "10\n");
        files.cpuacct = files.unified.clone();
        assert_eq!(files.cpu(&mut buffer), Some(times(31, 21, 10)));
        assert_eq!(CgroupFiles::default().cpu(&mut buffer), None);
    }
}
