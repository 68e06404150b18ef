//! The programs that make and change links.

use std::io::Write as _;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use stillwell_plan::link::LinkUses;
use stillwell_scope::clock;
use stillwell_units::Nanos;

use super::LinkError;
use crate::pause::readable_before;
use crate::program;

/// Folders of administrators' programs that may be missing in `PATH`.
const FOLDERS: [&str; 2] = ["/usr/sbin", "/sbin"];

/// Paths of the required programs.
#[derive(Debug)]
pub(super) struct Tools {
    ip: PathBuf,
    tc: Option<PathBuf>,
    nft: Option<PathBuf>,
}

impl Tools {
    /// Finds what `uses` need.
    pub(super) fn find(uses: &LinkUses) -> Result<Self, LinkError> {
        let find = |program, purpose, package| {
            let name = Path::new(program);
            let elsewhere = || {
                let mut folders = FOLDERS.iter().map(|folder| Path::new(folder).join(name));
                folders.find(|path| path.is_file())
            };
            let path = program::find(name).ok().or_else(elsewhere);
            path.ok_or(LinkError::Program {
                program,
                purpose,
                package,
            })
        };
        let needed = |is_needed: bool, program, purpose, package| {
            is_needed
                .then(|| find(program, purpose, package))
                .transpose()
        };
        Ok(Self {
            ip: find("ip", "links of the target's network", "iproute2")?,
            tc: needed(uses.rate, "tc", "a rate of a link", "iproute2")?,
            nft: needed(uses.loss, "nft", "loss on a link", "nftables")?,
        })
    }

    pub(super) fn ip(&self) -> &Path {
        &self.ip
    }

    pub(super) fn tc(&self) -> Option<&Path> {
        self.tc.as_deref()
    }

    pub(super) fn nft(&self) -> Option<&Path> {
        self.nft.as_deref()
    }
}

/// Time limit of a program that should end immediately.
const TIMEOUT: Nanos = Nanos::from_secs(10);

/// Runs `program` in the calling thread's network. Returns its output.
pub(super) fn run(program: &Path, arguments: &[String], input: &[u8]) -> Result<String, LinkError> {
    run_within(TIMEOUT, program, arguments, input)
}

fn run_within(
    timeout: Nanos,
    program: &Path,
    arguments: &[String],
    input: &[u8],
) -> Result<String, LinkError> {
    let failed = |output: String| LinkError::Command {
        program: program.file_name().map_or_else(String::new, |name| {
            let arguments = arguments.join(" ");
            format!("{} {arguments}", name.to_string_lossy())
        }),
        output,
    };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    if let Some(mut stdin) = child.stdin.take() {
        // Its error output is more useful than a broken pipe.
        stdin.write_all(input).unwrap_or_default();
    }
    let ended = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
    let ended = ended.map_err(|error| failed(error.to_string()));
    let ended = ended.map(|descriptor| {
        let until = clock::now() + timeout;
        readable_before(descriptor.as_fd(), until)
    });
    if !matches!(ended, Ok(true)) {
        child.kill().unwrap_or_default();
    }
    let output = child
        .wait_with_output()
        .map_err(|error| failed(error.to_string()))?;
    if !ended? {
        return Err(failed(format!("it did not end within {timeout}")));
    }
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let output = String::from_utf8_lossy(&output.stderr);
    let output = output.lines().next().unwrap_or("it printed no reason");
    Err(failed(output.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(timeout: Nanos, script: &str) -> Result<String, LinkError> {
        let arguments = ["-c".to_owned(), script.to_owned()];
        run_within(timeout, Path::new("/bin/sh"), &arguments, b"7")
    }

    #[test]
    fn the_output_and_the_error_of_a_program_are_returned() {
        let timeout = Nanos::from_secs(60);
        assert_eq!(tried(timeout, "read a; echo $a").unwrap(), "7\n");
        let error = tried(timeout, "echo no such link >&2; exit 1").unwrap_err();
        assert!(error.to_string().contains("no such link"), "{error}");
    }

    #[test]
    fn a_program_that_never_ended_was_waited_for_without_end() {
        let error = tried(Nanos::from_millis(50), "exec tail -f /dev/null").unwrap_err();
        assert!(error.to_string().contains("did not end within"), "{error}");
    }
}
