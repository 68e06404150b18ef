//! `stillwell test bench`: a tree of benches, one after another, as
//! `tremor test bench` runs them.

mod report;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use stillwell_config::{BenchFolder, is_wanted};
use stillwell_experiment::bench_tests::{BenchTest, test_bench};
use stillwell_scope::{Token, clock};
use stillwell_units::Nanos;

use crate::arguments::{TestBenchArguments, TestCommand};
use crate::command::{output, places, select};
use crate::exit::{CommandError, Exit};
use crate::formats::loader;
use crate::paint::Paint;
use crate::signals;

use self::report::Outcome;

pub(crate) fn run(command: &TestCommand, paint: &Paint) -> Result<Exit, CommandError> {
    let TestCommand::Bench(arguments) = command;
    let tree = loader()
        .bench_tree(&arguments.root)
        .map_err(|diagnostics| select::refused(&diagnostics, paint))?;
    select::warn(&tree.warnings, paint);
    let outputs: Vec<PathBuf> = arguments.report.iter().cloned().collect();
    output::check_writable(&outputs)?;
    places::refuse_store(arguments.results.as_deref())?;
    let could_not = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    let results = arguments
        .results
        .clone()
        .unwrap_or_else(|| places::fresh("benches", &places::name_of(&arguments.root)));
    let results = std::path::absolute(results).map_err(|error| could_not(error.into()))?;
    let stop = Token::new();
    let raised = stop.clone();
    let signal = std::sync::Arc::new(std::sync::atomic::AtomicI32::new(0));
    let noted = std::sync::Arc::clone(&signal);
    let signals = signals::listen(move |number| {
        noted.store(number, std::sync::atomic::Ordering::Relaxed);
        raised.cancel();
    })
    .map_err(|error| could_not(error.into()))?;
    let outcome = test_all(arguments, &tree.folders, &results, &stop);
    signals.close(Nanos::SECOND);
    let (outcome, printed) = outcome.map_err(could_not)?;
    let summary = report::summary(&outcome, &output::show_path(&results));
    let summary = output::print(&summary);
    let printed = printed.and(summary);
    let kept = keep(arguments, &outcome).map_err(could_not);
    let interrupted = signal.load(std::sync::atomic::Ordering::Relaxed);
    let exit = if interrupted != 0 {
        Exit::Interrupted(interrupted)
    } else if outcome.failed() > 0 {
        Exit::Failed
    } else {
        Exit::Held
    };
    output::exit_after(exit, kept.and(printed), paint)
}

/// Runs the selected benches, and prints the result of each. Returns them, and the first error of printing: benches run
/// although it fails.
fn test_all(
    arguments: &TestBenchArguments,
    folders: &[BenchFolder],
    results: &Path,
    stop: &Token,
) -> anyhow::Result<(Outcome, Result<(), CommandError>)> {
    let stillwell = std::env::current_exe().context("find the executable of stillwell")?;
    let begin = clock::now();
    let mut outcome = Outcome::new(&arguments.includes, &arguments.excludes);
    let mut printed = Ok(());
    for bench in folders {
        if !is_wanted(&bench.tags, &arguments.includes, &arguments.excludes) {
            outcome.skipped.push(bench.name.clone());
            continue;
        }
        if stop.is_cancelled() {
            break;
        }
        let beginning = output::print(&report::beginning(bench));
        printed = printed.and(beginning);
        let evidence = results.join(&bench.name);
        stillwell_capture::make_private(&evidence)
            .with_context(|| format!("make the folder {}", evidence.display()))?;
        let test = BenchTest {
            stillwell: &stillwell,
            bench,
            evidence: &evidence,
            timeout: arguments.timeout,
            stop,
        };
        let tested = test_bench(&test).context("run the benches")?;
        let ending = output::print(&report::ending(&tested, arguments.verbose));
        printed = printed.and(ending);
        outcome.tested.push(tested);
    }
    outcome.elapsed = clock::now().since(begin);
    Ok((outcome, printed))
}

fn keep(arguments: &TestBenchArguments, outcome: &Outcome) -> anyhow::Result<()> {
    let Some(file) = &arguments.report else {
        return Ok(());
    };
    let text = serde_json::to_string_pretty(&report::json(outcome))?;
    fs::write(file, text).with_context(|| format!("write the report to {}", file.display()))
}
