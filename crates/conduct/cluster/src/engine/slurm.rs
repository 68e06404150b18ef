//! The engine `slurm`: an array of jobs, by Slurm's own commands.

use std::path::PathBuf;

use super::{
    Engine, EngineError, JobHandle, Submission, TaskState, command, make_logs, not_submitted,
    write_secrets,
};

/// Slurm, by `sbatch`, `squeue` and `scancel`.
#[derive(Clone, Debug, Default)]
pub struct SlurmEngine {
    /// Further options of `sbatch`, such as `--partition=bench`.
    pub options: Vec<String>,
}

impl Engine for SlurmEngine {
    fn name(&self) -> &'static str {
        "slurm"
    }

    fn submit(&self, submission: &Submission<'_>) -> Result<JobHandle, EngineError> {
        make_logs(submission.logs)?;
        let secrets = write_secrets(submission)?;
        let script = script(submission, secrets.clone());
        let submitted = command::run("sbatch", &self.words(submission), &script);
        let output = submitted.map_err(|error| not_submitted(secrets.as_deref(), error))?;
        let (id, cluster) = submitted_job(&output);
        Ok(JobHandle {
            options: self.options.clone(),
            cluster,
            secrets,
            ..JobHandle::new(self.name(), &id, submission.tasks, submission.logs)
        })
    }

    fn render(&self, submission: &Submission<'_>) -> Result<String, EngineError> {
        let words: Vec<String> = self
            .words(submission)
            .iter()
            .map(|word| quoted(word))
            .collect();
        let secrets = submission
            .secrets
            .map(|_| submission.logs.join(super::SECRETS));
        let script = script(submission, secrets);
        Ok(format!("sbatch {} <<'END'\n{script}END\n", words.join(" ")))
    }

    fn poll(&self, handle: &JobHandle) -> Result<Vec<TaskState>, EngineError> {
        let words = [
            "--noheader",
            "--array",
            "--states=all",
            "--format=%K %T",
            "--jobs",
        ];
        match command::run("squeue", &words_about(handle, &words), "") {
            Ok(output) => Ok(states(&output, handle.tasks)),
            // Slurm forgets jobs some minutes after their end.
            Err(EngineError::Command { output, .. }) if output.contains("Invalid job id") => {
                Ok(vec![TaskState::Ended; handle.tasks.into()])
            }
            Err(error) => Err(error),
        }
    }

    fn cancel(&self, handle: &JobHandle) -> Result<(), EngineError> {
        command::run("scancel", &words_about(handle, &[]), "").map(drop)
    }

    fn waiting(&self, handle: &JobHandle) -> Result<Option<String>, EngineError> {
        let words = [
            "--noheader",
            "--array",
            "--states=PENDING",
            "--format=%r",
            "--jobs",
        ];
        let output = command::run("squeue", &words_about(handle, &words), "")?;
        Ok(first_reason(&output))
    }
}

impl SlurmEngine {
    /// Returns the words of `sbatch`.
    fn words(&self, submission: &Submission<'_>) -> Vec<String> {
        let logs = submission.logs.display();
        let words = [
            "--parsable".to_owned(),
            format!("--job-name={}", submission.job),
            format!("--array=0-{}", submission.tasks.saturating_sub(1)),
            "--nodes=1".to_owned(),
            "--ntasks=1".to_owned(),
            "--exclusive".to_owned(),
            // A load that was cut short cannot go on.
            "--no-requeue".to_owned(),
            "--open-mode=append".to_owned(),
            format!("--output={logs}/task-%a.log"),
        ];
        words.into_iter().chain(self.options.clone()).collect()
    }
}

/// Returns the script of a task, which becomes the program.
fn script(submission: &Submission<'_>, secrets: Option<PathBuf>) -> String {
    let program = submission.program.display().to_string();
    let words = std::iter::once(program).chain(submission.words(secrets));
    let words: Vec<String> = words.map(|word| quoted(&word)).collect();
    format!("#!/bin/sh\nexec {}\n", words.join(" "))
}

/// Returns the number of the job and the name of its cluster from the output of `sbatch --parsable`: `12`, or
/// `12;east` if Slurm has several clusters.
fn submitted_job(output: &str) -> (String, Option<String>) {
    let output = output.trim();
    let (id, cluster) = output.split_once(';').unwrap_or((output, ""));
    let cluster = Some(cluster.trim()).filter(|cluster| !cluster.is_empty());
    (id.trim().to_owned(), cluster.map(str::to_owned))
}

/// Returns the words of a command about the job of `handle`: its cluster, `words` and its number. Another cluster may
/// have another job of the same number.
fn words_about(handle: &JobHandle, words: &[&str]) -> Vec<String> {
    let cluster = handle.cluster.iter();
    let cluster = cluster.map(|cluster| format!("--clusters={cluster}"));
    let words = words.iter().map(|word| (*word).to_owned());
    cluster.chain(words).chain([handle.id.clone()]).collect()
}

/// Returns the first reason of the lines of `squeue`, which may name the cluster before them.
fn first_reason(output: &str) -> Option<String> {
    let mut lines = output.lines().map(str::trim);
    let reason = lines.find(|line| !line.is_empty() && !line.starts_with("CLUSTER:"));
    reason.map(str::to_owned)
}

/// Returns `word` as one word of a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Reads lines of an index and a state; a task without a line has ended.
fn states(output: &str, tasks: u16) -> Vec<TaskState> {
    let mut states = vec![TaskState::Ended; tasks.into()];
    for line in output.lines() {
        let mut words = line.split_whitespace();
        let index = words.next().and_then(|word| word.parse::<usize>().ok());
        let state = match words.next() {
            Some("PENDING" | "CONFIGURING" | "REQUEUED" | "REQUEUE_HOLD" | "SPECIAL_EXIT") => {
                TaskState::Waiting
            }
            Some("RUNNING" | "COMPLETING" | "SUSPENDED" | "STOPPED" | "RESIZING" | "SIGNALING") => {
                TaskState::Running
            }
            Some("NODE_FAIL") => TaskState::NodeLost,
            _ => continue,
        };
        if let Some(place) = index.and_then(|index| states.get_mut(index)) {
            *place = state;
        }
    }
    states
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use stillwell_units::Nanos;

    use super::*;

    #[test]
    fn a_script_keeps_every_word() {
        let words = ["a b".to_owned(), "it's".to_owned(), "$HOME".to_owned()];
        let submission = Submission {
            job: "a",
            tasks: 1,
            cpus: 1,
            connects_tasks: false,
            program: Path::new("/bin/x"),
            arguments: &words,
            folder: None,
            logs: Path::new("/l"),
            secrets: None,
            end_max: Nanos::ZERO,
        };
        assert_eq!(
            script(&submission, None),
            "#!/bin/sh\nexec '/bin/x' 'a b' 'it'\\''s' '$HOME'\n"
        );
    }

    fn with_secret(logs: &Path) -> Submission<'_> {
        Submission {
            job: "a",
            tasks: 1,
            cpus: 1,
            connects_tasks: false,
            program: Path::new("/bin/x"),
            arguments: &[],
            folder: None,
            logs,
            secrets: Some("hunter2"),
            end_max: Nanos::ZERO,
        }
    }

    #[test]
    fn a_submission_that_is_refused_leaves_no_secret_and_keeps_those_of_others() {
        let folder = tempfile::tempdir().unwrap();
        let submission = with_secret(folder.path());
        let engine = SlurmEngine {
            options: vec!["--no-such-option".to_owned()],
        };
        engine.submit(&submission).unwrap_err();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        // The tasks of another controller still need them.
        let kept = write_secrets(&submission).unwrap().unwrap();
        engine.submit(&submission).unwrap_err();
        let left = std::fs::read_dir(folder.path()).unwrap().flatten();
        let left: Vec<PathBuf> = left.map(|entry| entry.path()).collect();
        assert_eq!(left, [kept]);
    }

    fn handle(logs: &Path) -> JobHandle {
        JobHandle::new("slurm", "1", 1, logs)
    }

    /// They were about the default cluster: all tasks had ended there, and a job of the same number was cancelled.
    #[test]
    fn commands_about_a_job_name_its_cluster() {
        for (output, id, cluster) in [
            ("12\n", "12", None),
            ("12;", "12", None),
            ("12;east\n", "12", Some("east")),
        ] {
            let expected = (id.to_owned(), cluster.map(str::to_owned));
            assert_eq!(submitted_job(output), expected, "{output}");
        }
        let single = handle(Path::new("/l"));
        assert_eq!(words_about(&single, &["--jobs"]), ["--jobs", "1"]);
        let job = JobHandle {
            cluster: Some("east".to_owned()),
            ..single
        };
        assert_eq!(
            words_about(&job, &["--jobs"]),
            ["--clusters=east", "--jobs", "1"]
        );
        assert_eq!(words_about(&job, &[]), ["--clusters=east", "1"]);
        assert_eq!(
            first_reason("CLUSTER: east\nPriority\nResources\n"),
            Some("Priority".to_owned())
        );
        assert_eq!(first_reason("CLUSTER: east\n\n"), None);
    }

    #[test]
    fn a_job_of_an_older_version_has_no_cluster_and_a_kept_job_has_its_own() {
        let older = r#"{"engine": "slurm", "id": "1", "tasks": 1, "logs": "/l"}"#;
        let single: JobHandle = serde_json::from_str(older).unwrap();
        assert_eq!(single, handle(Path::new("/l")));
        let job = JobHandle {
            cluster: Some("east".to_owned()),
            ..single
        };
        let text = serde_json::to_string(&job).unwrap();
        assert_eq!(serde_json::from_str::<JobHandle>(&text).unwrap(), job);
    }

    #[test]
    fn a_controller_withdraws_its_own_secrets_and_a_job_forgets_all() {
        let folder = tempfile::tempdir().unwrap();
        let submission = with_secret(folder.path());
        let [first, second] = [(); 2].map(|()| write_secrets(&submission).unwrap().unwrap());
        assert_ne!(first, second);
        let handle = JobHandle {
            secrets: Some(second.clone()),
            ..handle(folder.path())
        };
        let engine = SlurmEngine::default();
        engine.withdraw_secrets(&handle).unwrap();
        assert!(first.exists() && !second.exists());
        engine.forget_secrets(&handle).unwrap();
        assert!(!first.exists());
    }

    #[test]
    fn a_task_that_the_queue_does_not_have_has_ended() {
        let output =
            "0 RUNNING\n2 PENDING\n3 COMPLETED\n9 RUNNING\nN/A x\n1 COMPLETING\n4 NODE_FAIL\n";
        assert_eq!(
            states(output, 5),
            [
                TaskState::Running,
                TaskState::Running,
                TaskState::Waiting,
                TaskState::Ended,
                TaskState::NodeLost
            ]
        );
    }
}
