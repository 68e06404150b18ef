//! The engine `slurm`: an array of jobs, by Slurm's own commands.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::{Engine, EngineError, JobHandle, Submission, TaskState, make_logs};

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
        let words: Vec<String> = words.into_iter().chain(self.options.clone()).collect();
        let script = script(
            &submission.program.display().to_string(),
            submission.arguments,
        );
        let output = command("sbatch", &words, &script)?;
        // With several clusters the name of one follows.
        let id = output.trim().split(';').next().unwrap_or_default();
        Ok(JobHandle {
            engine: self.name().to_owned(),
            id: id.to_owned(),
            tasks: submission.tasks,
            logs: submission.logs.to_owned(),
            processes: Vec::new(),
        })
    }

    fn poll(&self, handle: &JobHandle) -> Result<Vec<TaskState>, EngineError> {
        let words = ["--noheader", "--array", "--format=%K %T", "--jobs"];
        let mut words = words.map(str::to_owned).to_vec();
        words.push(handle.id.clone());
        match command("squeue", &words, "") {
            Ok(output) => Ok(states(&output, handle.tasks)),
            // Slurm forgets jobs some minutes after their end.
            Err(EngineError::Command { output, .. }) if output.contains("Invalid job id") => {
                Ok(vec![TaskState::Ended; handle.tasks.into()])
            }
            Err(error) => Err(error),
        }
    }

    fn cancel(&self, handle: &JobHandle) -> Result<(), EngineError> {
        command("scancel", std::slice::from_ref(&handle.id), "").map(drop)
    }
}

/// Returns the script of a task, which becomes the program.
fn script(program: &str, arguments: &[String]) -> String {
    let words = std::iter::once(program).chain(arguments.iter().map(String::as_str));
    let words: Vec<String> = words.map(quoted).collect();
    format!("#!/bin/sh\nexec {}\n", words.join(" "))
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
            _ => continue,
        };
        if let Some(place) = index.and_then(|index| states.get_mut(index)) {
            *place = state;
        }
    }
    states
}

/// Runs a command of Slurm with `input`, and returns its output.
fn command(program: &str, words: &[String], input: &str) -> Result<String, EngineError> {
    let failure = |source| EngineError::Start {
        program: program.to_owned(),
        source,
    };
    let mut child = Command::new(program)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failure)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command that reads nothing may have ended.
        stdin.write_all(input.as_bytes()).unwrap_or_default();
    }
    let output = child.wait_with_output().map_err(failure)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    Err(EngineError::Command {
        command: format!("{program} {}", words.join(" ")),
        output: text(&output.stderr),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_keeps_every_word() {
        let words = ["a b".to_owned(), "it's".to_owned(), "$HOME".to_owned()];
        assert_eq!(
            script("/bin/x", &words),
            "#!/bin/sh\nexec '/bin/x' 'a b' 'it'\\''s' '$HOME'\n"
        );
    }

    #[test]
    fn a_task_that_the_queue_does_not_have_has_ended() {
        let output = "0 RUNNING\n2 PENDING\n3 COMPLETED\n9 RUNNING\nN/A x\n1 COMPLETING\n";
        assert_eq!(
            states(output, 5),
            [
                TaskState::Running,
                TaskState::Running,
                TaskState::Waiting,
                TaskState::Ended,
                TaskState::Ended
            ]
        );
    }
}
