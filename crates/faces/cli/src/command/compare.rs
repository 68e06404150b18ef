//! `stillwell compare`.

mod ancestors;
mod effect;
mod goals;
mod groups;
mod lookup;
mod read;
mod rows;
mod saved;

pub(crate) use self::groups::fits;
use stillwell_report::{ComparisonReport, ComparisonRow, render_comparison};
use stillwell_verdict::Verdict;

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
    let matched = groups::matched(baseline, comparison, same_place, &arguments.only)?;
    remarks.extend(matched.remarks);
    let groups = matched.groups.iter();
    let groups = groups.map(|group| rows::compare_group(group, arguments));
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
