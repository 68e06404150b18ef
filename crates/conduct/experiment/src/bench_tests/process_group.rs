//! A program and all that it starts: one group of processes, which ends as a whole.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use stillwell_scope::clock;
use stillwell_units::Nanos;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

/// The longest time that a group may take after SIGTERM.
const GRACE: Nanos = Nanos::from_secs(20);
/// The longest time that the kernel may take to end one that was killed.
const KILLED: Nanos = Nanos::from_secs(5);
/// Interval at which the group is checked.
const LOOK_EVERY: Nanos = Nanos::from_millis(20);

/// A program and all that it started, save what made a group of its own.
#[derive(Debug)]
pub(super) struct ProcessGroup {
    child: Child,
    /// Known from its start on: it stays that of the others once the program is gone.
    id: Option<Pid>,
}

impl ProcessGroup {
    /// Starts `command`, with its outputs in files of these names in `folder`.
    pub(super) fn start(
        command: &mut Command,
        folder: &Path,
        names: &[String; 2],
    ) -> io::Result<Self> {
        let file = |name: &String| File::create(folder.join(name));
        let [out, err] = names;
        let child = command
            .stdin(Stdio::null())
            .stdout(file(out)?)
            .stderr(file(err)?)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        let id = id.and_then(Pid::from_raw);
        Ok(Self { child, id })
    }

    /// Waits for the program itself. Cancel-safe.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Ends the whole group, also after the program has ended: first SIGTERM, then SIGKILL.
    pub(super) async fn end(&mut self) {
        let Some(id) = self.id else { return };
        for (signal, most) in [(Signal::TERM, GRACE), (Signal::KILL, KILLED)] {
            if !runs(id) {
                break;
            }
            // Who is gone meanwhile needs no signal.
            kill_process_group(id, signal).unwrap_or_default();
            gone(id, most).await;
        }
        // The process has ended, so the wait returns at once.
        timeout(KILLED.as_duration(), self.child.wait()).await.ok();
    }
}

/// Waits until no process of the group runs, at most for `most`.
async fn gone(id: Pid, most: Nanos) {
    let deadline = clock::now() + most;
    while runs(id) && clock::now() < deadline {
        sleep(LOOK_EVERY.as_duration()).await;
    }
}

/// Returns true if a process of the group runs. Zombies do not count, and they may stay for ever.
fn runs(id: Pid) -> bool {
    if test_kill_process_group(id) == Err(Errno::SRCH) {
        return false;
    }
    let Ok(processes) = fs::read_dir("/proc") else {
        return true;
    };
    let group = id.as_raw_nonzero().to_string();
    processes.flatten().any(|process| {
        let stat = fs::read(process.path().join("stat")).unwrap_or_default();
        is_running(&String::from_utf8_lossy(&stat), &group)
    })
}

/// Returns true if a process with this `stat` is of `group` and has not ended.
fn is_running(stat: &str, group: &str) -> bool {
    // A name may hold blanks and brackets.
    let Some((_, rest)) = stat.rsplit_once(')') else {
        return false;
    };
    let words: Vec<&str> = rest.split_whitespace().take(3).collect();
    matches!(words.as_slice(), [state, _, of] if !matches!(*state, "Z" | "X") && *of == group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_ended_does_not_run() {
        for (stat, runs) in [
            ("7 (sh) S 1 7 7 0 -1", true),
            ("7 (a) Z 9 (b) R 1 7 7 0 -1", true),
            ("7 (sh) Z 1 7 7 0 -1", false),
            ("7 (sh) S 7 8 7 0 -1", false),
            ("", false),
        ] {
            assert_eq!(is_running(stat, "7"), runs, "{stat}");
        }
    }

    #[tokio::test]
    async fn what_a_program_that_had_ended_left_behind_went_on() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["out", "err"].map(str::to_owned);
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & echo started"]);
        let mut group = ProcessGroup::start(&mut command, folder.path(), &names).unwrap();
        assert!(group.wait().await.unwrap().success());
        let id = group.id.unwrap();
        assert!(runs(id));
        group.end().await;
        assert!(!runs(id));
    }
}
