//! `stillwell calibrate --ledger FILE`.

use std::path::Path;

use stillwell_experiment::calibrate::ledger::{Ledger, LedgerProgress, fill, markdown};
use stillwell_scope::{clock, explain};
use stillwell_target::prepare_privileges;
use stillwell_units::Nanos;

use super::{Host, results_folder};
use crate::arguments::CalibrateArguments;
use crate::command::conduct::Conductor;
use crate::command::output;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

pub(super) fn run(
    arguments: &CalibrateArguments,
    path: &Path,
    paint: &Paint,
) -> Result<Exit, CommandError> {
    let could_not = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    let usage = |error: anyhow::Error| CommandError::new(Exit::Usage, error);
    if arguments.table {
        let ledger = Ledger::read(path).map_err(|error| usage(error.into()))?;
        Paint::data(&markdown(&ledger)).map_err(|error| could_not(error.into()))?;
        return Ok(Exit::Held);
    }
    let mut ledger = match (path.exists(), arguments.resume) {
        (true, true) => Ledger::read(path),
        (true, false) => {
            let error = anyhow::anyhow!("{} exists", path.display());
            return Err(usage(error).hint("--resume continues it, --table prints it"));
        }
        (false, _) => Ledger::create(path),
    }
    .map_err(|error| could_not(error.into()))?;
    let quiet = arguments.output.quiet;
    // Only a process with a single thread can enter new namespaces.
    output::report_privileges(Some(&prepare_privileges()), quiet);
    let root = results_folder(arguments)?;
    let conductor = Conductor::begin(arguments.cache.as_ref(), paint, true)?;
    let mut host = Host {
        conductor: &conductor,
        display: None,
        is_quiet: true,
        facts: Vec::new(),
    };
    let until = clock::now() + Nanos::from_secs(60 * u64::from(arguments.minutes));
    let filled = fill(
        &mut ledger,
        &root,
        Some(until),
        &mut host,
        &mut |progress| match progress {
            LedgerProgress::Added(_) | LedgerProgress::Full if quiet => {}
            LedgerProgress::Added(line) => Paint::print_message(&line),
            LedgerProgress::Full => Paint::print_message(
                "the ledger has all of its experiments: nothing is left to run",
            ),
            LedgerProgress::Failed(error) => Paint::print_message(&explain(error)),
        },
    );
    let signal = conductor.end();
    filled.map_err(|error| could_not(error.into()))?;
    Ok(signal.map_or(Exit::Held, Exit::Interrupted))
}
