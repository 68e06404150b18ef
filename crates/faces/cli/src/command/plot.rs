//! `stillwell plot`.

use std::fs;

use anyhow::Context;

use crate::arguments::{Gate, PlotArguments};
use crate::command::report;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

pub(crate) fn run(arguments: &PlotArguments) -> Result<Exit, CommandError> {
    let could_not = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    let (report, _) = report::saved(&arguments.results, Gate::Normal)?;
    let charts = report.charts();
    let Some(name) = &arguments.chart else {
        let lines = charts
            .iter()
            .map(|chart| format!("{}  {}\n", chart.name, chart.title));
        Paint::data(&lines.collect::<String>()).map_err(|error| could_not(error.into()))?;
        return Ok(Exit::Held);
    };
    let chart = charts.iter().find(|chart| chart.name == **name);
    let chart = chart.ok_or_else(|| {
        let error = anyhow::anyhow!("{} has no chart `{name}`", arguments.results.display());
        CommandError::new(Exit::Usage, error)
            .hint("`stillwell plot DIR` without a name lists the charts")
    })?;
    match &arguments.output {
        None => Paint::data(&chart.svg).map_err(|error| could_not(error.into()))?,
        Some(file) => fs::write(file, &chart.svg)
            .with_context(|| format!("write the chart to {}", file.display()))
            .map_err(could_not)?,
    }
    Ok(Exit::Held)
}
