//! `stillwell compare`.

use stillwell_plan::goal::Direction;
use stillwell_report::{ComparisonReport, ComparisonRow, FullReport};
use stillwell_sides::{SideOptions, compare_sides};
use stillwell_verdict::Verdict;
use stillwell_verdict::across::CompareOptions;

use crate::arguments::{CompareArguments, Gate};
use crate::command::output;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

pub(crate) fn run(arguments: &CompareArguments, paint: &Paint) -> Result<Exit, CommandError> {
    output::check_writable(&arguments.output.output)?;
    let report = report(arguments)?;
    output::deliver(&arguments.output, paint, &FullReport::from(&report))?;
    Ok(exit(&report, arguments))
}

/// Returns the comparison.
pub(crate) fn report(arguments: &CompareArguments) -> Result<ComparisonReport, CommandError> {
    let comparison = arguments.comparison.as_deref();
    let report = compare_sides(&arguments.baseline, comparison, &options(arguments));
    let mut report = report.map_err(|error| {
        CommandError::new(Exit::Usage, error)
            .hint("`stillwell compare --help` lists what can be compared")
    })?;
    report.command = output::command_line();
    env!("CARGO_PKG_VERSION").clone_into(&mut report.version);
    Ok(report)
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
