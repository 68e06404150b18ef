//! `stillwell compare`.

mod ancestors;
mod goals;
mod lookup;
mod read;

use stillwell_plan::Direction;
use stillwell_report::{ComparisonGroup, ComparisonReport, ComparisonRow, render_comparison};
use stillwell_verdict::Verdict;
use stillwell_verdict::across::{CompareOptions, RunGroup, compare_group, match_runs};

use crate::arguments::{CompareArguments, Gate};
use crate::command::output;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

pub(crate) fn run(arguments: &CompareArguments, paint: &Paint) -> Result<Exit, CommandError> {
    output::check_writable(&arguments.output.output)?;
    let report = compare(arguments).map_err(|error| {
        CommandError::new(Exit::Usage, error)
            .hint("`stillwell compare --help` lists what can be compared")
    })?;
    output::deliver_text(&arguments.output, paint, |format, style| {
        render_comparison(&report, format, style)
    })?;
    Ok(exit(&report, arguments))
}

fn compare(arguments: &CompareArguments) -> anyhow::Result<ComparisonReport> {
    let mut reader = read::SideReader::new(arguments);
    let baseline = reader.read(&arguments.baseline)?;
    let comparison = reader.read(&arguments.comparison)?;
    let same_place = arguments.baseline == arguments.comparison;
    let mut remarks = reader.into_remarks();
    let matched = match_runs(baseline, comparison, same_place, &arguments.only)?;
    remarks.extend(matched.remarks);
    let groups = matched.groups.iter();
    let groups = groups.map(|group| compared(group, arguments));
    let groups = groups.collect::<anyhow::Result<Vec<_>>>()?;
    Ok(ComparisonReport {
        baseline: arguments.baseline.clone(),
        comparison: arguments.comparison.clone(),
        groups,
        remarks,
        command: output::command_line(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

fn compared(
    group: &RunGroup<read::Run>,
    arguments: &CompareArguments,
) -> anyhow::Result<ComparisonGroup> {
    let options = CompareOptions {
        metrics: arguments.metric.clone(),
        paired: arguments.paired,
        unpaired: arguments.unpaired,
        better: arguments.better.map(Direction::from),
        tolerance: arguments.tolerance,
    };
    let compared = compare_group(group, &options)?;
    let names = compared.rows.iter().map(|row| row.metric.clone());
    let names: Vec<String> = names.collect();
    let ancestors = match arguments.method {
        Some(method) => Some(ancestors::tables(group, method, &names, arguments)?),
        None => None,
    };
    Ok(ComparisonGroup {
        name: group.name.clone(),
        rows: compared.rows,
        ancestors,
        remarks: compared.remarks,
    })
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
