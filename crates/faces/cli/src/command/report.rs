//! `stillwell report`.

pub(super) mod runs;

use std::path::Path;

use stillwell_capture::LoadCapture;
use stillwell_config::requests::read_text;
use stillwell_experiment::Results;
use stillwell_plan::load::LoadPacing;
use stillwell_report::load::{
    BriefLoad, LoadReportInput, human, load_report, read_load_json, render_brief,
};
use stillwell_report::{SuiteReport, render_targets};
use stillwell_units::Nanos;
use stillwell_verdict::{
    GatePolicy, apply_error_budget, exit_code, judge, load_warnings, summarise,
};

use crate::arguments::{Gate, ReportArguments};
use crate::command::load::remedy::OptionNames;
use crate::command::output;
use crate::command::run::targets;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

pub(crate) fn run(arguments: &ReportArguments, paint: &Paint) -> Result<Exit, CommandError> {
    let could_not = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    output::check_writable(&arguments.output.output)?;
    if arguments.results.is_file() {
        return saved_load(arguments, paint);
    }
    if arguments.results.join("manifest.json").exists() {
        if let Ok(capture) = LoadCapture::open(&arguments.results) {
            return one_load(&capture, arguments, paint);
        }
        return one_run(&arguments.results, paint).map_err(could_not);
    }
    let results =
        std::path::absolute(&arguments.results).map_err(|error| could_not(error.into()))?;
    let results = Results::new(results);
    if results.targets().exists() {
        let (report, code) = targets::read(&results).map_err(could_not)?;
        output::deliver_text(&arguments.output, paint, |format, style| {
            render_targets(&report, format, style)
        })?;
        let code = if arguments.exit_zero { 0 } else { code };
        return Ok(Exit::from_code(code));
    }
    let report = read(&arguments.results).map_err(|error| {
        CommandError::new(Exit::Usage, error)
            .hint("give a results folder of `stillwell run` or a capture of `stillwell observe`")
    })?;
    output::deliver(&report, &arguments.output, paint)?;
    let policy = match arguments.gate {
        Gate::Normal => GatePolicy::Normal,
        Gate::Strict => GatePolicy::Strict,
    };
    if arguments.exit_zero {
        return Ok(Exit::Held);
    }
    Ok(Exit::from_code(exit_code(&report.experiments, policy)))
}

/// The report of a load that was saved as JSON: the full result, or the summary.
fn saved_load(arguments: &ReportArguments, paint: &Paint) -> Result<Exit, CommandError> {
    let path = &arguments.results;
    let text = read_text(path).map_err(|error| CommandError::new(Exit::Usage, error))?;
    if let Ok(brief) = serde_json::from_str::<BriefLoad>(&text) {
        output::deliver_text(&arguments.output, paint, |format, style| {
            render_brief(&brief, format, style)
        })?;
        return Ok(Exit::Held);
    }
    let report = read_load_json(&text).map_err(|error| {
        CommandError::new(Exit::Usage, anyhow::anyhow!("{}: {error}", path.display()))
            .hint("give JSON of `stillwell load`, or a folder of results")
    })?;
    output::deliver_text(&arguments.output, paint, |format, style| {
        human::render(&report, format, style)
    })?;
    Ok(Exit::Held)
}

fn one_load(
    capture: &LoadCapture,
    arguments: &ReportArguments,
    paint: &Paint,
) -> Result<Exit, CommandError> {
    let warnings = load_warnings(LoadPacing::of(&capture.manifest.plan), &capture.evidence());
    let report = load_report(&LoadReportInput {
        capture,
        original: None,
        warnings: &OptionNames::Load.health_warnings(&warnings),
    });
    output::deliver_text(&arguments.output, paint, |format, style| {
        human::render(&report, format, style)
    })?;
    Ok(Exit::Held)
}

fn one_run(folder: &Path, paint: &Paint) -> anyhow::Result<Exit> {
    let capture = stillwell_capture::Capture::open(folder)?;
    let summary = summarise(&capture);
    Paint::data(&stillwell_report::run_terminal(
        &summary,
        output::styled(paint),
    ))?;
    Ok(Exit::Held)
}

/// The report of what lies in `folder`, judged again from its record and the
/// summaries of both stages.
fn read(folder: &Path) -> anyhow::Result<SuiteReport> {
    let results = Results::new(std::path::absolute(folder)?);
    let record = results.record()?;
    let mut experiments = Vec::new();
    for experiment in &record.plan.experiments {
        let runs = results.summaries(experiment)?;
        if !runs.is_empty() {
            experiments.push(judge(experiment, &runs));
        }
    }
    anyhow::ensure!(
        !experiments.is_empty(),
        "no experiment in {} has a finished run yet",
        folder.display()
    );
    let budget = apply_error_budget(&mut experiments, &record.plan.experiments);
    let names = record
        .plan
        .experiments
        .first()
        .map(|e| e.variants.as_slice());
    let name = |at: usize| {
        names
            .and_then(|variants| variants.get(at))
            .map_or_else(String::new, |variant| variant.name.clone())
    };
    Ok(SuiteReport {
        title: output::show_path(results.root()),
        baseline: name(0),
        comparison: name(1),
        experiments,
        budget,
        results_folder: output::show_path(results.root()),
        command: output::typed(&record.command),
        seed: record.plan.seed.to_string(),
        version: record.version,
        host: results.host_facts(&record.plan),
        elapsed: Nanos::ZERO,
        next: Vec::new(),
        runs: runs::read(&results, &record.plan.experiments),
    })
}
