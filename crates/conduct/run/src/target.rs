//! The target's stage: its CPUs, its cgroup, its logs; then its start.

use std::path::PathBuf;
use std::sync::Arc;

use stillwell_capture::TargetEnd;
use stillwell_observer::CgroupFiles;
use stillwell_plan::{TargetKind, TargetPlan, Wanted};
use stillwell_scope::{NetworkNamespace, explain};
use stillwell_target::{
    Cgroup, Division, Exit, Limits, StartError, StartOptions, Stopped, TargetProcess, divide,
    online,
};
use stillwell_units::Nanos;

use crate::record::Record;
use crate::request::RunRequest;
use crate::together::{Link, Together, divide_duet};

/// Lines of the target's logs that the manifest keeps.
const LAST_LINES: usize = 20;

/// Places of the target and of our parts.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) division: Division,
    pub(crate) cgroup: Option<Arc<Cgroup>>,
}

impl Stage {
    /// Divides the CPUs and makes the cgroup. Unavailable features are notes, or the reason why the
    /// run is refused.
    pub(crate) fn set(
        request: &RunRequest,
        link: Option<&Link>,
        record: &mut Record,
    ) -> Result<Self, String> {
        let plan = &request.plan;
        let _staging = link.map(Link::staging);
        let online = online();
        let mut division = divide(&online, &plan.target.cpus, &plan.placement.ours);
        if let Some(link) = link.filter(|link| link.together == Together::Duet) {
            division = divide_duet(division, &online, link.side, &link.seed)?;
        }
        for note in &division.notes {
            record.note(&note.what, &note.why);
        }
        record.placed(division.target.as_deref(), division.ours.as_deref());
        let is_child = matches!(plan.target.kind, TargetKind::Child(_));
        let mut cgroup = None;
        if is_child && plan.isolation.cgroup != Wanted::No {
            let limits = Limits {
                memory: plan.target.memory,
                cpus: division.target.clone(),
            };
            let (made, notes) = Cgroup::create(request.run, &limits);
            for note in &notes {
                record.note(&note.what, &note.why);
            }
            if made.is_none() && plan.isolation.cgroup == Wanted::Required {
                let why = notes.first().map_or("", |note| note.why.as_str());
                return Err(format!("a cgroup is required by the plan: {why}"));
            }
            cgroup = made.map(Arc::new);
        }
        Ok(Self { division, cgroup })
    }

    /// Starts the target of `plan`, whose places are filled in, in `network` or else in the calling
    /// thread's; `is_again` where it ran before. The kernel ends it with the calling thread, so
    /// that must be the conductor's.
    pub(crate) fn start(
        &self,
        plan: &TargetPlan,
        request: &RunRequest,
        network: Option<NetworkNamespace>,
        is_again: bool,
    ) -> Result<TargetProcess, StartError> {
        let log = |wanted: &Option<PathBuf>, name| {
            wanted.clone().unwrap_or_else(|| request.folder.join(name))
        };
        let options = StartOptions {
            state: request.places.state.clone(),
            stdout: log(&request.exports.stdout, "target.stdout.log"),
            stderr: log(&request.exports.stderr, "target.stderr.log"),
            cpus: self.division.target.clone(),
            cgroup: self.cgroup.clone(),
            network,
            is_again,
        };
        stillwell_target::start(plan, &options)
    }
}

/// Paths of the target's cgroup counters for the observer.
pub(crate) fn cgroup_files(cgroup: &Arc<Cgroup>) -> CgroupFiles {
    let folders = cgroup.folders();
    CgroupFiles {
        unified: folders.unified.clone(),
        cpuacct: folders.cpuacct.clone(),
        memory: folders.memory.clone(),
    }
}

/// Returns the end of the target, for the manifest.
pub(crate) fn ending(target: &TargetProcess, exit: Exit, killed: bool) -> TargetEnd {
    TargetEnd {
        code: exit.code,
        signal: exit.signal,
        killed,
        cpu_user: Nanos::new(exit.cpu_user_micros.saturating_mul(1000)),
        cpu_system: Nanos::new(exit.cpu_system_micros.saturating_mul(1000)),
        rss_max_bytes: exit.rss_peak_bytes,
        last_lines: target.last_lines(LAST_LINES),
    }
}

/// A stop in words, if it was not as it should be.
pub(crate) fn describe_stop(stopped: &Stopped) -> Option<String> {
    if stopped.killed {
        return Some("the target outlived its grace and was killed".to_owned());
    }
    match stopped.left_behind {
        0 => None,
        1 => Some("the target left 1 process behind, which was killed".to_owned()),
        count => Some(format!(
            "the target left {count} processes behind, which were killed"
        )),
    }
}

/// Returns the reason why the target could not be started, in words.
pub(crate) fn describe_start(error: &StartError) -> String {
    explain(error)
}
