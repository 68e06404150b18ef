//! The attempt that this process is, from its environment.

use stillwell_run::Interrupt;

use crate::clocks::ClockShift;
use crate::engine::JobHandle;
use crate::job::ENGINE;
use crate::store::{JobStore, StoreError};

/// One attempt of a task: engines may start a task again, or twice.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Attempt {
    /// Index of the task.
    pub task: u16,
    /// Name of the attempt; no other one has it.
    pub name: String,
    /// Name of the node.
    pub node: String,
    /// Identity of the boot of the node.
    pub boot: String,
    /// Planted error of its clocks, for tests.
    pub(crate) shift: ClockShift,
}

/// An environment without a task.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "no engine started this process: none of STILLWELL_TASK, JOB_COMPLETION_INDEX and \
     SLURM_ARRAY_TASK_ID is set to a number"
)]
pub struct AttemptError;

/// Returns the identity of the boot of this machine.
pub(crate) fn boot_id() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    boot.unwrap_or_default().trim().to_owned()
}

impl Attempt {
    /// Returns the attempt that the environment describes.
    ///
    /// # Errors
    /// [`AttemptError`] if it describes none.
    pub fn from_env() -> Result<Self, AttemptError> {
        let host = rustix::system::uname();
        Self::from_variables(
            &|name| std::env::var(name).ok(),
            &host.nodename().to_string_lossy(),
            &boot_id(),
        )
    }

    fn from_variables(
        variable: &dyn Fn(&str) -> Option<String>,
        host: &str,
        boot: &str,
    ) -> Result<Self, AttemptError> {
        let number = |name: &str| variable(name)?.parse::<u16>().ok();
        let text = |name: &str| variable(name).unwrap_or_default();
        let boot = boot.to_owned();
        if let Some(task) = number("STILLWELL_TASK") {
            return Ok(Self {
                task,
                name: format!("local-{}-{task}", text("STILLWELL_ATTEMPT")),
                node: host.to_owned(),
                boot,
                shift: ClockShift::of_task(task, &text("STILLWELL_TEST_CLOCK")),
            });
        }
        if let (Some(task), Some(pod)) = (number("JOB_COMPLETION_INDEX"), variable("STILLWELL_POD"))
        {
            return Ok(Self {
                task,
                name: format!("kubernetes-{pod}"),
                node: variable("STILLWELL_NODE").unwrap_or_else(|| host.to_owned()),
                boot,
                shift: ClockShift::default(),
            });
        }
        let task = number("SLURM_ARRAY_TASK_ID").ok_or(AttemptError)?;
        let restart = variable("SLURM_RESTART_COUNT").unwrap_or_else(|| "0".to_owned());
        Ok(Self {
            task,
            name: format!("slurm-{}-{task}-{restart}", text("SLURM_ARRAY_JOB_ID")),
            node: variable("SLURMD_NODENAME").unwrap_or_else(|| host.to_owned()),
            boot,
            shift: ClockShift::default(),
        })
    }
}

/// Returns false if an engine started the attempt of this name for other tasks than those of `handle`.
pub(crate) fn may_be_of(attempt: &str, handle: &JobHandle) -> bool {
    let (engine, id) = (&*handle.engine, &handle.id);
    match engine {
        // The name of a pod does not have that of its Job.
        "kubernetes" => attempt.starts_with("kubernetes-"),
        _ => attempt.starts_with(&format!("{engine}-{id}-")),
    }
}

/// Returns true if the job of `store` has the tasks of another controller, and the attempt of this name is none of them.
/// The controller that started it cancels it.
pub(crate) fn is_foreign(
    store: &JobStore,
    interrupt: &Interrupt,
    attempt: &str,
) -> Result<bool, StoreError> {
    let kept: Option<JobHandle> = store.get_json(interrupt, ENGINE)?;
    Ok(kept.is_some_and(|kept| !may_be_of(attempt, &kept)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn attempt(variables: &[(&str, &str)]) -> Result<Attempt, AttemptError> {
        let variable = |name: &str| {
            let pair = variables.iter().find(|(key, _)| *key == name);
            pair.map(|(_, value)| (*value).to_owned())
        };
        Attempt::from_variables(&variable, "host", "boot")
    }

    #[test]
    fn a_task_that_an_engine_starts_again_is_another_attempt() {
        let local = attempt(&[("STILLWELL_TASK", "2"), ("STILLWELL_ATTEMPT", "7")]).unwrap();
        assert_eq!((local.task, &*local.name), (2, "local-7-2"));
        let slurm = [
            ("SLURM_ARRAY_TASK_ID", "3"),
            ("SLURM_ARRAY_JOB_ID", "41"),
            ("SLURMD_NODENAME", "n1"),
        ];
        let first = attempt(&slurm).unwrap();
        assert_eq!((&*first.name, &*first.node), ("slurm-41-3-0", "n1"));
        let again = attempt(&[&slurm[..], &[("SLURM_RESTART_COUNT", "1")]].concat()).unwrap();
        assert_eq!(again.name, "slurm-41-3-1");
        let pod = [
            ("JOB_COMPLETION_INDEX", "1"),
            ("STILLWELL_POD", "f00d"),
            ("STILLWELL_NODE", "n1"),
        ];
        let pod = attempt(&pod).unwrap();
        assert_eq!(
            (pod.task, &*pod.name, &*pod.node),
            (1, "kubernetes-f00d", "n1")
        );
        assert_eq!(attempt(&[]), Err(AttemptError));
        assert_eq!(attempt(&[("STILLWELL_TASK", "x")]), Err(AttemptError));
    }

    /// Every attempt was one of a job of Kubernetes.
    #[test]
    fn an_attempt_is_of_the_job_for_which_its_engine_started_it() {
        for (engine, id, name, expected) in [
            ("local", "7-12", "local-7-12-0", true),
            ("local", "7-12", "local-7-123-0", false),
            ("slurm", "41", "slurm-41-3-0", true),
            ("slurm", "41", "slurm-41-3-1", true),
            ("slurm", "41", "slurm-4-1-0", false),
            ("slurm", "41", "local-41-0", false),
            ("kubernetes", "stillwell-a", "kubernetes-f00d", true),
            ("kubernetes", "stillwell-a", "slurm-41-3-0", false),
            ("kubernetes", "stillwell-a", "local-7-12-0", false),
        ] {
            let handle = JobHandle::new(engine, id, 4, Path::new(""));
            assert_eq!(may_be_of(name, &handle), expected, "{name}: {engine} {id}");
        }
    }
}
