//! `stillwell compare`.

use std::path::Path;

use stillwell_capture::{Capture, LoadCapture};
use stillwell_experiment::Results;
use stillwell_plan::goal::Direction;
use stillwell_report::load::LoadOverlay;
use stillwell_report::{ComparisonReport, ComparisonRow, FullReport, overlaid_runs};
use stillwell_sides::{SideOptions, compare_sides};
use stillwell_verdict::Verdict;
use stillwell_verdict::across::CompareOptions;

use crate::arguments::{CompareArguments, Gate};
use crate::command::output;
use crate::command::report::{self as saved, runs};
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

/// Returns the given flags that have no effect on a comparison of two loads.
fn flags_without_effect(arguments: &CompareArguments) -> Vec<&'static str> {
    let flags = [
        ("--metric", !arguments.metric.is_empty()),
        ("--tolerance", arguments.tolerance.is_some()),
        ("--better", arguments.better.is_some()),
        ("--paired", arguments.paired),
        ("--unpaired", arguments.unpaired),
        ("--method", arguments.method.is_some()),
        ("--warmup", arguments.warmup.is_some()),
        ("--cpus", arguments.cpus != 1),
        ("--target-name", arguments.target_name.is_some()),
        ("--run-id", arguments.run_id.is_some()),
        ("--only", !arguments.only.is_empty()),
        ("--rows-are-runs", arguments.rows_are_runs),
    ];
    let given = flags.into_iter().filter(|(_, is_given)| *is_given);
    given.map(|(flag, _)| flag).collect()
}

/// Returns the exit code of a comparison of two loads, which has no verdict.
fn exit_of_loads(arguments: &CompareArguments) -> Result<Exit, CommandError> {
    let flags = match flags_without_effect(arguments).as_slice() {
        [] => None,
        [flag] => Some(format!("{flag} has")),
        [first @ .., last] => Some(format!("{} and {last} have", first.join(", "))),
    };
    if let Some(flags) = flags {
        let error = anyhow::anyhow!("captures of loads are shown side by side: {flags} no effect");
        return Err(CommandError::new(Exit::Usage, error)
            .hint("compare the JSON files of the loads (`load -o FILE.json`)"));
    }
    Ok(match arguments.gate {
        Gate::Strict if !arguments.exit_zero => Exit::Invalid,
        _ => Exit::Held,
    })
}

pub(crate) fn run(arguments: &CompareArguments, paint: &Paint) -> Result<Exit, CommandError> {
    output::check_outputs(&arguments.output)?;
    let (report, exit) = report(arguments, output::command_line())?;
    output::deliver(&arguments.output, paint, &report)?;
    Ok(exit)
}

/// Returns the comparison and its exit code; `command` is the line that gives it again.
pub(crate) fn report(
    arguments: &CompareArguments,
    command: String,
) -> Result<(FullReport, Exit), CommandError> {
    let comparison = arguments.comparison.as_deref();
    let loads = both(&arguments.baseline, comparison, |side| {
        let folder = Path::new(side);
        LoadCapture::is_load(folder).then(|| LoadCapture::open(folder))
    });
    if let Some(loads) = loads {
        let reports = loads.into_iter().map(|(name, capture)| {
            let capture = capture.map_err(|error| CommandError::new(Exit::Usage, error))?;
            Ok((name, saved::report_of_load(&capture)))
        });
        let overlay = LoadOverlay {
            loads: reports.collect::<Result<_, CommandError>>()?,
            command,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        return Ok((FullReport::from(&overlay), exit_of_loads(arguments)?));
    }
    for side in [Some(arguments.baseline.as_str()), comparison]
        .into_iter()
        .flatten()
    {
        if LoadCapture::is_load(Path::new(side)) {
            let error =
                anyhow::anyhow!("{side} is a load, which can only be compared with another load");
            return Err(CommandError::new(Exit::Usage, error).hint(
                "give the captures of two loads, or the results of `stillwell ab` and `run`",
            ));
        }
    }
    let report = compare_sides(&arguments.baseline, comparison, &options(arguments));
    let mut report = report.map_err(|error| {
        CommandError::new(Exit::Usage, error)
            .hint("`stillwell compare --help` lists what can be compared")
    })?;
    let captures = both(&arguments.baseline, comparison, |side| {
        let path = Path::new(side);
        let is_run = path.join("manifest.json").exists();
        is_run.then(|| Capture::open(path).ok()).flatten()
    });
    if let (Some(captures), Some(group)) = (captures, report.groups.first_mut()) {
        group.curves = overlaid_runs(&captures);
    }
    let suites = both(&arguments.baseline, comparison, |side| {
        let results = Results::new(Path::new(side).to_path_buf());
        results.suite().exists().then_some(results)
    });
    // Of the same results, the variants are compared; their report has these charts.
    if let Some(suites) = suites.filter(|_| comparison != Some(&arguments.baseline)) {
        let names = report.groups.iter().map(|group| group.name.clone());
        let curves = runs::compared(&suites, &names.collect::<Vec<_>>());
        for (group, curves) in report.groups.iter_mut().zip(curves) {
            group.curves = curves;
        }
    }
    report.command = command;
    env!("CARGO_PKG_VERSION").clone_into(&mut report.version);
    Ok((FullReport::from(&report), exit(&report, arguments)))
}

/// Returns both sides with their names, if `read` can read both.
fn both<T>(
    baseline: &str,
    comparison: Option<&str>,
    read: impl Fn(&str) -> Option<T>,
) -> Option<Vec<(String, T)>> {
    let comparison = comparison?;
    let sides = [read(baseline)?, read(comparison)?];
    // The last part of a path is enough, unless it is the same.
    let short = |path: &str| Some(Path::new(path).file_name()?.to_string_lossy().into_owned());
    let names = match (short(baseline), short(comparison)) {
        (Some(first), Some(second)) if first != second => [first, second],
        _ => [baseline.to_owned(), comparison.to_owned()],
    };
    Some(names.into_iter().zip(sides).collect())
}

fn options(arguments: &CompareArguments) -> SideOptions {
    SideOptions {
        compare: CompareOptions {
            metrics: arguments.metric.clone(),
            paired: arguments.paired,
            unpaired: arguments.unpaired,
            better: arguments.better.map(Direction::from),
            tolerance: arguments.tolerance,
        },
        only: arguments.only.clone(),
        method: arguments.method.map(stillwell_sides::Method::from),
        warmup: arguments.warmup,
        cpus: arguments.cpus,
        target_name: arguments.target_name.clone(),
        run_id: arguments.run_id.clone(),
        rows_are_runs: arguments.rows_are_runs,
    }
}

/// By the primary metric of every experiment.
fn exit(report: &ComparisonReport, arguments: &CompareArguments) -> Exit {
    let rows = report.groups.iter().flat_map(|group| &group.rows);
    let primary: Vec<&ComparisonRow> = rows.filter(|row| row.primary).collect();
    let any =
        |wanted: &dyn Fn(Option<Verdict>) -> bool| primary.iter().any(|row| wanted(row.verdict));
    if arguments.exit_zero {
        Exit::Held
    } else if any(&|verdict| verdict == Some(Verdict::Regressed)) {
        Exit::Failed
    } else if arguments.gate == Gate::Strict
        && any(&|verdict| matches!(verdict, None | Some(Verdict::Inconclusive)))
    {
        Exit::Invalid
    } else {
        Exit::Held
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct TypedComparison {
        #[command(flatten)]
        compare: CompareArguments,
    }

    fn loads(words: &str) -> Result<Exit, String> {
        let line = ["compare", "old", "new"].into_iter();
        let typed = TypedComparison::parse_from(line.chain(words.split_whitespace()));
        exit_of_loads(&typed.compare).map_err(|error| {
            assert_eq!(error.exit, Exit::Usage);
            error.to_string()
        })
    }

    #[test]
    fn flags_without_an_effect_on_two_loads_are_refused_by_name() {
        for words in [
            "--metric latency_p99",
            "--tolerance 2%",
            "--better lower",
            "--paired",
            "--unpaired",
            "--method soak-2022",
            "--warmup 5s",
            "--cpus 2",
            "--target-name relay",
            "--run-id 7",
            "--only quick*",
            "--rows-are-runs",
        ] {
            let flag = words.split(' ').next().unwrap();
            let error = loads(words).unwrap_err();
            assert!(
                error.ends_with(&format!(": {flag} has no effect")),
                "{error}"
            );
        }
        let error = loads("--only a --paired --metric b").unwrap_err();
        let expected = ": --metric, --paired and --only have no effect";
        assert!(error.ends_with(expected), "{error}");
    }

    #[test]
    fn two_loads_have_no_verdict_and_fail_only_a_strict_gate() {
        for (words, exit) in [
            ("", Exit::Held),
            ("--format json --gate strict", Exit::Invalid),
            ("--gate strict --exit-zero", Exit::Held),
        ] {
            assert_eq!(loads(words), Ok(exit), "{words}");
        }
    }
}
