//! `stillwell bisect`.

mod messages;
mod plan;

use std::path::{Path, PathBuf};

use anyhow::Context;
use stillwell_capture::write_private;
use stillwell_experiment::bisect::{
    BisectError, BisectProgress, BisectRecord, OutcomeKind, OutcomeRecord, run_bisect,
};
use stillwell_experiment::{Local, SuiteError};
use stillwell_plan::SuitePlan;
use stillwell_report::{Format, Style};
use stillwell_target::Privileges;

use crate::arguments::BisectArguments;
use crate::command::conduct::Conductor;
use crate::command::{output, places};
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

/// File name of the saved report.
const KEPT: &str = "bisect.txt";

pub(crate) fn run(
    arguments: &BisectArguments,
    paint: &Paint,
    privileges: &Privileges,
) -> Result<Exit, CommandError> {
    output::check_resumed(arguments.resume)?;
    // `runs push` copies no bisections.
    places::refuse_store(arguments.results.as_deref())
        .map_err(|error| error.hint("give a folder: --results DIR"))?;
    let plan = plan::load(arguments, paint)?;
    output::check_outputs(&arguments.output)?;
    let results = results_folder(arguments)?;
    let quiet = arguments.output.quiet;
    let conductor = Conductor::begin(arguments.cache.as_ref(), paint, quiet)?;
    let options = conductor.options(&results, arguments.resume);
    let mut display = conductor.display();
    output::report_privileges(Some(privileges), quiet);
    let searched = run_bisect(
        &plan,
        &options,
        &mut Local,
        conductor.interrupt(),
        &mut |progress| match progress {
            BisectProgress::Suite(progress) => display.suite(progress),
            other if quiet => drop(other),
            other => {
                display.clear();
                Paint::print_message(&messages::progress(&other, &plan, paint));
            }
        },
    );
    display.clear();
    let signal = conductor.end();
    let searched = searched.map_err(|error| refused(error, &results))?;
    let reported = match &searched.record {
        Some(record) => report(arguments, paint, &plan, record, &results),
        None => Ok(()),
    };
    let outcome = searched.record.and_then(|record| record.outcome);
    let exit = match (signal, outcome) {
        (_, Some(outcome)) => exit_of(&outcome),
        (Some(signal), None) => Exit::Interrupted(signal),
        (None, None) => Exit::Invalid,
    };
    output::exit_after(exit, reported, paint)
}

const fn exit_of(outcome: &OutcomeRecord) -> Exit {
    match outcome.kind {
        OutcomeKind::Commit | OutcomeKind::NotWorse => Exit::Held,
        OutcomeKind::Range | OutcomeKind::Unconfirmed | OutcomeKind::Unclear => Exit::Invalid,
    }
}

/// Results folder: the one of --results, a new one, or that of the newest search.
fn results_folder(arguments: &BisectArguments) -> Result<PathBuf, CommandError> {
    let could_not = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    let results = match (&arguments.results, arguments.resume) {
        (Some(folder), _) => folder.clone(),
        (None, false) => {
            let first = arguments.paths.first();
            let name = first.map_or_else(String::new, |path| places::name_of(path));
            places::fresh("bisects", &name)
        }
        (None, true) => {
            BisectRecord::newest(&Path::new(places::HOME).join("bisects")).ok_or_else(|| {
                let error = anyhow::anyhow!("there is no bisection to resume here");
                CommandError::new(Exit::Usage, error)
                    .hint("give --results DIR, or run from the folder that contains .stillwell")
            })?
        }
    };
    std::path::absolute(&results).map_err(|error| could_not(error.into()))
}

fn refused(error: BisectError, results: &Path) -> CommandError {
    let exit = match &error {
        BisectError::Plan { .. }
        | BisectError::Suite(
            SuiteError::AlreadyThere { .. }
            | SuiteError::NothingToResume { .. }
            | SuiteError::PlanChanged { .. }
            | SuiteError::Design { .. },
        ) => Exit::Usage,
        BisectError::Storage { .. } => Exit::Invalid,
        BisectError::Ends { .. } | BisectError::Suite(_) => Exit::CouldNotRun,
    };
    let hint = match &error {
        BisectError::Suite(SuiteError::AlreadyThere { .. }) => {
            let can_resume = BisectRecord::place(results).is_file();
            let resume = if can_resume { "--resume continues it, " } else { "" };
            format!("{resume}--results DIR chooses another folder")
        }
        BisectError::Suite(SuiteError::Revision { .. }) => {
            "GOOD and BAD are commits, tags or branches of --repo, GOOD on the line of first parents of BAD"
                .to_owned()
        }
        BisectError::Suite(SuiteError::PlanChanged { pointer, .. }) if pointer == "/commits" => {
            "a branch or tag moved, or other revisions were given: give the commits of the interrupted \
             search, or another folder with --results DIR"
                .to_owned()
        }
        _ if BisectRecord::place(results).is_file() => format!(
            "finished comparisons are saved; to continue: {}",
            output::resume_line(&output::show_path(results))
        ),
        _ => return CommandError::new(exit, error),
    };
    CommandError::new(exit, error).hint(hint)
}

fn report(
    arguments: &BisectArguments,
    paint: &Paint,
    plan: &SuitePlan,
    record: &BisectRecord,
    results: &Path,
) -> Result<(), CommandError> {
    let shown = output::show_path(results);
    let mut report = messages::report(record, plan, shown.clone());
    match &record.outcome {
        None => report.next.push(output::resume_line(&shown)),
        Some(outcome) => report.next.extend(messages::narrower(outcome)),
    }
    let full = report.with_data(bisect_data(record));
    let delivered = output::deliver(&arguments.output, paint, &full);
    let kept = keep(results, &full.render(Format::Terminal, Style::default()));
    delivered.and(kept)
}

/// Saves the report in the folder of its results.
fn keep(results: &Path, text: &str) -> Result<(), CommandError> {
    let path = results.join(KEPT);
    write_private(&path, text)
        .with_context(|| format!("write the report to {}", path.display()))
        .map_err(|error| CommandError::new(Exit::Invalid, error))
}

/// Returns the record as JSON; a record that was read from JSON can be written as JSON.
fn bisect_data(record: &BisectRecord) -> String {
    serde_json::to_string_pretty(record).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn the_saved_report_is_private_and_replaces_a_link_of_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let link_target = folder.path().join("target");
        fs::write(&link_target, "kept").unwrap();
        let path = folder.path().join(KEPT);
        symlink(&link_target, &path).unwrap();
        keep(folder.path(), "report").unwrap();
        let metadata = fs::symlink_metadata(&path).unwrap();
        assert!(metadata.is_file());
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&path).unwrap(), "report");
        assert_eq!(fs::read_to_string(&link_target).unwrap(), "kept");
    }
}
