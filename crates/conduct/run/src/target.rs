//! The target's stage: its CPUs, its cgroup, its logs; then its start.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stillwell_capture::{TargetEnd, create_private_log};
use stillwell_observer::CgroupFiles;
use stillwell_plan::placement::{CpuChoice, Wanted};
use stillwell_plan::{RunPlan, TargetKind, TargetPlan};
use stillwell_scope::{NetworkNamespace, explain};
use stillwell_target::{
    Cgroup, Division, Exit, Limits, Priority, StartError, StartOptions, Stopped, TargetLog,
    TargetProcess, answering_already, divide, divide_without_target, online, separate_ends,
};
use stillwell_units::{ByteSize, Nanos};

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
    /// The files for the target's output.
    pub(crate) logs: Option<[TargetLog; 2]>,
    /// The raised priority of the conductor, of our threads and of the target.
    priority: Option<Priority>,
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
        let mut division = if starts_target(&plan.target) {
            divide(&online, &plan.target.cpus, &plan.placement.ours)
        } else {
            divide_without_target(&online, &plan.placement.ours)
        };
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
        let priority = raise_priority(plan, cgroup.as_deref(), record)?;
        Ok(Self {
            division,
            cgroup,
            logs: logs(request)?,
            priority,
        })
    }

    /// CPUs of sinks and of generators of `plan` that have none in common, if the run starts no
    /// target and has both.
    pub(crate) fn separate_ends(&self, plan: &RunPlan) -> Option<(Vec<u16>, Vec<u16>)> {
        let is_meant = !starts_target(&plan.target)
            && plan.placement.ours == CpuChoice::Auto
            && !plan.generators.is_empty()
            && !plan.sinks.is_empty();
        separate_ends(self.division.ours.as_deref()?).filter(|_| is_meant)
    }

    /// CPUs of the target on which none of ours may run; empty if it may use any.
    pub(crate) fn cpus_of_target_alone(&self) -> Vec<u16> {
        let Division { target, ours, .. } = &self.division;
        match (target, ours) {
            (Some(target), Some(ours)) if !ours.iter().any(|cpu| target.contains(cpu)) => {
                target.clone()
            }
            _ => Vec::new(),
        }
    }

    /// Starts the target of `plan`, whose places are filled in, in `network` or else in the calling
    /// thread's. The kernel ends it with the calling thread, so must be the conductor's.
    pub(crate) fn start(
        &self,
        plan: &TargetPlan,
        request: &RunRequest,
        network: Option<NetworkNamespace>,
    ) -> Result<TargetProcess, StartError> {
        let Some([stdout, stderr]) = self.logs.clone() else {
            return stillwell_target::attach(plan);
        };
        let options = StartOptions {
            state: request.places.state.clone(),
            stdout,
            stderr,
            cpus: self.division.target.clone(),
            cgroup: self.cgroup.clone(),
            network,
        };
        let target = stillwell_target::start(plan, &options)?;
        if let (Some(priority), Some(pid), TargetKind::Child(_)) =
            (&self.priority, target.pid(), &plan.kind)
        {
            priority.raise_session_of(pid);
        }
        Ok(target)
    }
}

/// Makes the files for the target's output, if the run starts it.
fn logs(request: &RunRequest) -> Result<Option<[TargetLog; 2]>, String> {
    let TargetKind::Child(child) = &request.plan.target.kind else {
        return Ok(None);
    };
    let exports = &request.exports;
    let limit = Some(child.log_limit);
    let stdout = open_log(&exports.stdout, &request.folder, "target.stdout.log", limit)?;
    let stderr = open_log(&exports.stderr, &request.folder, "target.stderr.log", limit)?;
    Ok(Some([stdout, stderr]))
}

/// Opens the log that a user named, or else makes `name` in the capture's `folder`, with a largest size.
pub(crate) fn open_log(
    named: &Option<PathBuf>,
    folder: &Path,
    name: &str,
    limit: Option<ByteSize>,
) -> Result<TargetLog, String> {
    let path = named.clone().unwrap_or_else(|| folder.join(name));
    let log = match named {
        Some(_) => TargetLog::create(path.clone()),
        None => create_private_log(&path).map(|file| TargetLog::new(path.clone(), file, limit)),
    };
    log.map_err(|error| format!("write a program's output to {}: {error}", path.display()))
}

/// Returns true if the run starts the target of `plan`, or gives it CPUs.
fn starts_target(plan: &TargetPlan) -> bool {
    let has_cpus = matches!(plan.cpus, CpuChoice::Count(_) | CpuChoice::List(_));
    has_cpus || !(plan.is_others() || matches!(plan.kind, TargetKind::None))
}

/// Raises the priority of the conductor's thread, which all other threads of the run and a started target
/// inherit, and the weight of the target's groups. A failure is a note, or the reason why the run is refused.
fn raise_priority(
    plan: &RunPlan,
    cgroup: Option<&Cgroup>,
    record: &mut Record,
) -> Result<Option<Priority>, String> {
    let wanted = plan.isolation.priority;
    if wanted == Wanted::No {
        return Ok(None);
    }
    let (priority, note) = Priority::raise();
    if let Some(note) = note {
        if wanted == Wanted::Required {
            return Err(format!(
                "{} is required by the plan: {}",
                note.what, note.why
            ));
        }
        record.note(&note.what, &note.why);
    }
    let mut text = format!("nice {}", priority.nice());
    if let Some(weight) = cgroup.and_then(Cgroup::raise_weight) {
        text.push_str(&format!(", weight {weight} for the target's cgroup"));
    }
    record.prioritised(text);
    Ok(Some(priority))
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

/// Returns the end of the target, for the manifest. `rss_max_bytes` is the largest sample of its memory.
pub(crate) fn ending(
    target: &TargetProcess,
    exit: Exit,
    killed: bool,
    rss_max_bytes: u64,
) -> TargetEnd {
    TargetEnd {
        code: exit.code,
        signal: exit.signal,
        killed,
        cpu_user: Nanos::new(exit.cpu_user_micros.saturating_mul(1000)),
        cpu_system: Nanos::new(exit.cpu_system_micros.saturating_mul(1000)),
        rss_max_bytes,
        last_lines: target.last_lines(LAST_LINES),
    }
}

/// A stop in words, if it was not as it should be.
pub(crate) fn describe_stop(stopped: &Stopped) -> Option<String> {
    if stopped.killed {
        return Some("the target did not end within its grace period and was killed".to_owned());
    }
    match stopped.left_behind {
        0 => None,
        1 => Some("the target left 1 process behind, which was killed".to_owned()),
        count => Some(format!(
            "the target left {count} processes behind, which were killed"
        )),
    }
}

/// Returns the reason why the target of `plan`, whose places are filled in, cannot be started: another program accepts
/// connections where its probe connects to. A target that runs before is not checked.
pub(crate) fn address_in_use(plan: &TargetPlan) -> Option<String> {
    if plan.is_others() || matches!(plan.kind, TargetKind::None) {
        return None;
    }
    let address = answering_already(&plan.ready)?;
    Some(format!(
        "{address} is already in use: stop that program, or change the port of the target"
    ))
}

/// Returns the reason why the target could not be started, in words.
pub(crate) fn describe_start(error: &StartError) -> String {
    explain(error)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use stillwell_plan::step::TargetSignal;
    use stillwell_plan::target::{
        ChildPlan, ContainerOrigin, ContainerTarget, EnvironmentPlan, ImagePlan, LOG_LIMIT_DEFAULT,
        ReadyProbe, StopPlan,
    };

    use super::*;

    #[test]
    fn a_target_that_stillwell_starts_needs_an_address_without_another_program() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let child = ChildPlan {
            program: "server".into(),
            arguments: Vec::new(),
            environment: EnvironmentPlan::default(),
            directory: None,
            mounts: Vec::new(),
            log_limit: LOG_LIMIT_DEFAULT,
        };
        let container = |origin| {
            TargetKind::Container(Box::new(ContainerTarget {
                socket: "/run/engine.sock".into(),
                origin,
            }))
        };
        let image = ContainerOrigin::Image(ImagePlan::default());
        let named = ContainerOrigin::Named("web".to_owned());
        for (kind, is_refused) in [
            (TargetKind::Child(child), true),
            (container(image), true),
            (container(named), false),
            (TargetKind::Pid(1), false),
            (TargetKind::Url("http://localhost/".to_owned()), false),
            (TargetKind::None, false),
        ] {
            let plan = TargetPlan {
                name: "server".to_owned(),
                kind,
                ready: ReadyProbe::Tcp {
                    address: format!("localhost:{port}"),
                },
                cpus: CpuChoice::Any,
                memory: None,
                stop: StopPlan {
                    signal: TargetSignal::Term,
                    grace: Nanos::SECOND,
                },
            };
            let reason = address_in_use(&plan);
            assert_eq!(reason.is_some(), is_refused, "{:?}", plan.kind);
        }
    }
}
