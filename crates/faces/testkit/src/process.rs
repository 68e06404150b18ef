//! Processes that end with the test that started them.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::wait_until;

/// A child process; dropping it kills it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    output: TempDir,
}

/// Result of a process.
#[derive(Debug)]
pub struct Finished {
    /// Exit code; 128 plus the signal's number after a signal.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Process {
    /// Starts `command` with its output in files; so a full pipe cannot block it.
    ///
    /// # Panics
    /// If the process cannot be started.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        let output = tempfile::tempdir().expect("a temporary folder can be made");
        let file = |name: &str| File::create(output.path().join(name)).expect("a file can be made");
        let child = command
            .stdin(Stdio::null())
            .stdout(file("stdout"))
            .stderr(file("stderr"))
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} could not be started: {error}"));
        Self { child, output }
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the standard error so far.
    #[must_use]
    pub fn stderr(&self) -> String {
        read(self.output.path(), "stderr")
    }

    /// Returns the standard output so far.
    #[must_use]
    pub fn stdout(&self) -> String {
        read(self.output.path(), "stdout")
    }

    /// Sends `signal`, such as `TERM`.
    ///
    /// # Panics
    /// If there is no `kill` command.
    pub fn signal(&self, signal: &str) {
        signal_process(self.id(), signal);
    }

    /// Waits until the process has ended.
    ///
    /// # Panics
    /// If it runs longer than `at_most`; the message has its standard error.
    #[must_use]
    pub fn finish(mut self, at_most: Duration) -> Finished {
        let mut status = None;
        wait_until(at_most, || {
            status = self.child.try_wait().expect("a child can be waited for");
            status.is_some()
        });
        let Some(status) = status else {
            panic!("still running after {at_most:?}:\n{}", self.stderr());
        };
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        Finished {
            code: status
                .code()
                .or_else(|| signal.map(|s| 128 + s))
                .unwrap_or(-1),
            stdout: self.stdout(),
            stderr: self.stderr(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Sends the process `id` a `signal`, such as `TERM`.
///
/// # Panics
/// If there is no `kill` command.
pub fn signal_process(id: u32, signal: &str) {
    Command::new("kill")
        .args([format!("-{signal}"), id.to_string()])
        .status()
        .expect("kill is there on every system");
}

fn read(folder: &Path, name: &str) -> String {
    let bytes = fs::read(folder.join(name)).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
