//! `stillwell disturb`: runs a command, makes it slower by a known share, and ends with its
//! exit code. Calibration checks with it that a comparison finds the change.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::Context as _;
use stillwell_experiment::calibrate::ledger::use_cpu;
use stillwell_experiment::slowdown::{Slowdown, become_tied, run_slowed};

use crate::arguments::DisturbArguments;
use crate::exit::{CommandError, Exit};

/// Runs the command to its end, and ends as it did.
pub(crate) fn run(arguments: &DisturbArguments) -> Result<ExitCode, CommandError> {
    let failed = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    if let Some(percent) = arguments.how.use_cpu {
        let ended = use_cpu(percent, arguments.seed).context("use a CPU");
        return ended.map(|()| ExitCode::SUCCESS).map_err(failed);
    }
    if let Some(parent) = arguments.how.tied_to {
        return Err(failed(become_tied(&arguments.command, parent).into()));
    }
    run_child(arguments).map_err(failed)
}

fn run_child(arguments: &DisturbArguments) -> anyhow::Result<ExitCode> {
    let stillwell = std::env::current_exe().context("find the executable of stillwell")?;
    let mut command = Command::new(stillwell);
    command
        .args([
            "disturb",
            "--tied-to",
            &std::process::id().to_string(),
            "--",
        ])
        .args(&arguments.command);
    let how = match (arguments.how.burn, arguments.how.pause) {
        (Some(share), _) => Some(Slowdown::Burn(share.share())),
        (None, Some(share)) => Some(Slowdown::Pause(share.share())),
        (None, None) => None,
    };
    Ok(exit_code(run_slowed(&mut command, how)?))
}

/// Exit code as a shell reports it.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(u8::MAX),
        (None, Some(signal)) => Exit::Interrupted(signal).code(),
        (None, None) => u8::MAX,
    };
    code.into()
}
