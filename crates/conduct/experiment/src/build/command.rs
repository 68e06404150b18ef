//! Commands of a build, each ended by the interrupt.

use std::fs::File;
use std::io;
use std::path::Path;
use std::pin::pin;
use std::process::{ExitStatus, Output, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use stillwell_run::Interrupt;
use stillwell_target::build_mark;
use tokio::process::{Child, Command};
use tokio::runtime::{Builder, Runtime};

use crate::SuiteError;

/// The longest time that git or a build may take after SIGTERM before it is killed, and that its end may take then.
const GRACE: Duration = Duration::from_secs(2);
/// The longest time that git may take to tidy up.
const GIT_TIDY_MAX: Duration = Duration::from_secs(20);
/// Time between attempts to take a lock that another process holds.
const PAUSE: Duration = Duration::from_millis(100);
/// The variable by which a build command shuffles what it links.
const SEED_VARIABLE: &str = "STILLWELL_BUILD_SEED";
/// Variables of a hook's environment that would point git to another repository.
const GIT_VARIABLES: [&str; 5] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
];

/// Starts commands and waits for them.
#[derive(Debug)]
pub(crate) struct Commands<'a> {
    runtime: Runtime,
    interrupt: &'a Interrupt,
}

/// The end of a build command.
#[derive(Debug)]
pub(super) enum CommandEnd {
    /// With exit code 0.
    Well,
    /// In any other way of its own, said here.
    Failed(String),
    /// The build was interrupted.
    Interrupted,
}

impl<'a> Commands<'a> {
    pub(crate) fn new(interrupt: &'a Interrupt) -> Result<Self, SuiteError> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| SuiteError::Program {
                program: "sh",
                source,
            })?;
        Ok(Self { runtime, interrupt })
    }

    /// The output of git with these arguments, or its error message; `None` if it was interrupted. Git removes
    /// its unfinished files at SIGTERM.
    pub(crate) fn git<'b>(
        &self,
        repository: &Path,
        arguments: impl IntoIterator<Item = &'b str>,
    ) -> Result<Option<Result<String, String>>, SuiteError> {
        if self.interrupt.signal().is_some() {
            return Ok(None);
        }
        let mut command = git(repository, arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let output: io::Result<Option<Output>> = self.runtime.block_on(async {
            let child = command.spawn()?;
            let group = group_of(&child);
            let mut output = pin!(child.wait_with_output());
            // Both arms are cancel-safe: the output is polled again after the signal.
            tokio::select! {
                output = output.as_mut() => output.map(Some),
                () = self.interrupt.token().cancelled() => {
                    if let Some(group) = group {
                        end_leader(group, output).await?;
                    }
                    Ok(None)
                }
            }
        });
        let output = output.map_err(|source| SuiteError::Program {
            program: "git",
            source,
        })?;
        Ok(output.map(|output| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
            if output.status.success() {
                Ok(text(&output.stdout))
            } else {
                Err(text(&output.stderr))
            }
        }))
    }

    /// Has git tidy up after a build, also after one that was interrupted. Returns its output, if it succeeds.
    fn git_tidy<'b>(
        &self,
        repository: &Path,
        arguments: impl IntoIterator<Item = &'b str>,
    ) -> Option<String> {
        let mut command = git(repository, arguments);
        let output = self
            .runtime
            .block_on(async { tokio::time::timeout(GIT_TIDY_MAX, command.output()).await });
        let output = output.ok()?.ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then_some(text)
    }

    /// Removes all worktrees whose paths start with the text `prefix` from the repository. Their folders may be gone.
    /// A worktree that git cannot remove now is removed at the next build.
    pub(super) fn remove_worktrees(&self, repository: &Path, prefix: &Path) {
        let listed = self.git_tidy(repository, ["worktree", "list", "--porcelain"]);
        let (Some(listed), Some(prefix)) = (listed, prefix.to_str()) else {
            return;
        };
        let trees = listed
            .lines()
            .filter_map(|line| line.strip_prefix("worktree "));
        for tree in trees.filter(|tree| tree.starts_with(prefix)) {
            self.remove_worktree(repository, tree);
        }
    }

    /// Removes the worktree `tree` and its entry in the repository, also if git was killed while it made them:
    /// git keeps such an entry locked.
    pub(super) fn remove_worktree(&self, repository: &Path, tree: &str) {
        self.git_tidy(repository, ["worktree", "unlock", tree]);
        let remove = ["worktree", "remove", "--force", "--force", tree];
        self.git_tidy(repository, remove);
    }

    /// The first line that is not empty of what `words` says, standard error where
    /// there is none on standard output; `None` where it does not start, fails to
    /// say anything within `limit`, or is interrupted.
    pub(crate) fn first_line(&self, words: &[String], limit: Duration) -> Option<String> {
        let (program, arguments) = words.split_first()?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let output = self.runtime.block_on(async {
            let child = command.spawn().ok()?;
            let group = group_of(&child);
            // Both arms are cancel-safe: the program dies with its future.
            let output = tokio::select! {
                biased;
                () = self.interrupt.token().cancelled() => None,
                output = tokio::time::timeout(limit, child.wait_with_output()) => output.ok(),
            };
            // What it has started would otherwise stay.
            if let (None, Some(group)) = (&output, group) {
                send(group, Signal::KILL).unwrap_or_default();
            }
            output?.ok()
        })?;
        [&output.stdout, &output.stderr]
            .into_iter()
            .find_map(|bytes| {
                let text = String::from_utf8_lossy(bytes);
                let mut lines = text.lines().map(str::trim);
                lines.find(|line| !line.is_empty()).map(str::to_owned)
            })
    }

    /// Runs `build` in `tree`; all that it says goes to `log`.
    pub(super) fn build(
        &self,
        build: &str,
        tree: &Path,
        (revision, seed): (&str, Option<u32>),
        log: &Path,
    ) -> Result<CommandEnd, SuiteError> {
        let unwritable = |source| SuiteError::Write {
            path: log.to_path_buf(),
            source,
        };
        let output = File::create(log).map_err(unwritable)?;
        let errors = output.try_clone().map_err(unwritable)?;
        let mut command = Command::new("sh");
        command
            .args(["-c", build])
            .current_dir(tree)
            .env("STILLWELL_REVISION", revision)
            .envs([build_mark()])
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            // Of its own, so all that it starts can be ended with it.
            .process_group(0)
            .kill_on_drop(true);
        match seed {
            Some(seed) => command.env(SEED_VARIABLE, seed.to_string()),
            None => command.env_remove(SEED_VARIABLE),
        };
        for variable in GIT_VARIABLES {
            command.env_remove(variable);
        }
        let ended = self.runtime.block_on(async {
            let mut child = command.spawn()?;
            // Both arms are cancel-safe: `wait` can be called again.
            tokio::select! {
                status = child.wait() => status.map(describe),
                () = self.interrupt.token().cancelled() => {
                    end_group(&mut child).await?;
                    Ok(CommandEnd::Interrupted)
                }
            }
        });
        ended.map_err(|source| SuiteError::Program {
            program: "sh",
            source,
        })
    }

    /// Waits a little; `false` if interrupted meanwhile.
    pub(super) fn pause(&self) -> bool {
        self.runtime.block_on(async {
            // Both arms are cancel-safe.
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => true,
                () = self.interrupt.token().cancelled() => false,
            }
        })
    }
}

fn git<'b>(repository: &Path, arguments: impl IntoIterator<Item = &'b str>) -> Command {
    let mut command = Command::new("git");
    command
        .arg("-C")
        .arg(repository)
        .args(arguments)
        .env("GIT_TERMINAL_PROMPT", "0")
        // Its messages are compared with English ones.
        .env("LANGUAGE", "C")
        .envs([build_mark()])
        .stdin(Stdio::null())
        .process_group(0)
        .kill_on_drop(true);
    for variable in GIT_VARIABLES {
        command.env_remove(variable);
    }
    command
}

async fn end_group(child: &mut Child) -> io::Result<()> {
    match group_of(child) {
        Some(group) => end_leader(group, child.wait()).await,
        None => Ok(()),
    }
}

/// Ends a group whose leader has ended once `ended` is ready: by SIGTERM, and the rest by SIGKILL.
async fn end_leader(group: Pid, ended: impl Future) -> io::Result<()> {
    let mut ended = pin!(ended);
    send(group, Signal::TERM)?;
    let waited = tokio::time::timeout(GRACE, ended.as_mut()).await;
    send(group, Signal::KILL)?;
    if waited.is_err() {
        // A process outside the group may still have its output open.
        drop(tokio::time::timeout(GRACE, ended).await);
    }
    Ok(())
}

/// The group that it leads; `None` once it has ended.
fn group_of(child: &Child) -> Option<Pid> {
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    id.and_then(Pid::from_raw)
}

fn send(group: Pid, signal: Signal) -> io::Result<()> {
    match kill_process_group(group, signal) {
        // A group that is gone already is what is wanted.
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn describe(status: ExitStatus) -> CommandEnd {
    if status.success() {
        CommandEnd::Well
    } else {
        CommandEnd::Failed(status.to_string())
    }
}
