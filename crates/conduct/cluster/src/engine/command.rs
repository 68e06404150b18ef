//! Commands of engines, bounded in time and output.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, Write as _};
use std::process::{Command, ExitStatus};

use rustix::fs::{MemfdFlags, memfd_create};
use stillwell_run::Interrupt;
use stillwell_scope::clock;
use stillwell_units::Nanos;

use super::EngineError;
use crate::pause::pause;

/// Time after which a command is killed: a login that waits for a browser never ends.
const COMMAND_MAX: Nanos = Nanos::from_secs(120);
/// Maximum size of an output: that of 4,096 pods is about 30 MB.
const OUTPUT_MAX: u64 = 128 << 20;
/// Time between two looks whether a command has ended.
const LOOK_EVERY: Nanos = Nanos::from_millis(10);

/// Runs a command with `input`, and returns its output.
///
/// Input and outputs are files in memory, so nothing has to read while it runs.
pub(super) fn run(program: &str, words: &[String], input: &str) -> Result<String, EngineError> {
    let failure = |source: std::io::Error| match source.kind() {
        ErrorKind::NotFound => EngineError::NoProgram(program.to_owned()),
        _ => EngineError::Start {
            program: program.to_owned(),
            source,
        },
    };
    let mut stdin = memory().map_err(failure)?;
    stdin.write_all(input.as_bytes()).map_err(failure)?;
    stdin.rewind().map_err(failure)?;
    let (mut stdout, mut stderr) = (memory().map_err(failure)?, memory().map_err(failure)?);
    let mut child = Command::new(program)
        .args(words)
        .stdin(stdin)
        .stdout(stdout.try_clone().map_err(failure)?)
        .stderr(stderr.try_clone().map_err(failure)?)
        .spawn()
        .map_err(failure)?;
    let refused = |output: String| EngineError::Command {
        command: format!("{program} {}", words.join(" ")),
        output,
    };
    let (status, why) = wait(&mut child, [&stdout, &stderr]).map_err(failure)?;
    if let Some(why) = why {
        return Err(refused(why));
    }
    let text = |file: &mut File| -> std::io::Result<String> {
        let mut bytes = Vec::new();
        file.rewind()?;
        file.take(OUTPUT_MAX).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    };
    if status.success() {
        return text(&mut stdout).map_err(failure);
    }
    Err(refused(text(&mut stderr).map_err(failure)?))
}

fn memory() -> std::io::Result<File> {
    Ok(File::from(memfd_create(
        "stillwell-command",
        MemfdFlags::CLOEXEC,
    )?))
}

/// Waits for the end of a command, or ends it and returns the reason.
fn wait(
    child: &mut std::process::Child,
    outputs: [&File; 2],
) -> std::io::Result<(ExitStatus, Option<String>)> {
    let until = clock::now() + COMMAND_MAX;
    let quiet = Interrupt::new();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((status, None));
        }
        let mut size = 0;
        for output in outputs {
            size += output.metadata()?.len();
        }
        let why = match (clock::now() >= until, size > OUTPUT_MAX) {
            (true, _) => Some(format!("it did not end within {COMMAND_MAX}")),
            (_, true) => Some(format!("it wrote more than {OUTPUT_MAX} bytes")),
            _ => None,
        };
        if why.is_some() {
            child.kill()?;
            return Ok((child.wait()?, why));
        }
        pause(&quiet, LOOK_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_its_input_and_reports_why_it_failed() {
        assert_eq!(run("cat", &[], "a\nb\n").unwrap(), "a\nb");
        let words = ["-c".to_owned(), "echo no >&2; exit 3".to_owned()];
        let failed = run("sh", &words, "").unwrap_err();
        assert!(failed.to_string().ends_with("failed: no"), "{failed}");
        let missing = run("no-such-program-of-an-engine", &[], "").unwrap_err();
        assert!(matches!(missing, EngineError::NoProgram(_)), "{missing}");
    }
}
