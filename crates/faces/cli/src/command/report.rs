//! `stillwell report`.

pub(super) mod runs;

use std::path::Path;

use stillwell_capture::{Capture, LoadCapture};
use stillwell_config::requests::read_text;
use stillwell_experiment::{Results, host_facts};
use stillwell_report::load::{BriefLoad, LoadReport, LoadReportInput, load_report, read_load_json};
use stillwell_report::{
    CapacityJsonError, FullReport, RunReport, ScenarioReport, SuiteProblem, SuiteReport,
    read_capacity_json,
};
use stillwell_sides::read_saved_load;
use stillwell_units::Nanos;
use stillwell_verdict::{LoadRules, apply_error_budget, judge, load_warnings, summarise};

use crate::arguments::{Gate, ReportArguments};
use crate::command::load::remedy::OptionNames;
use crate::command::run::targets;
use crate::command::{find_capacity, output, problems};
use crate::exit::{CommandError, Exit, exit_of_verdicts};
use crate::paint::Paint;

pub(crate) fn run(arguments: &ReportArguments, paint: &Paint) -> Result<Exit, CommandError> {
    output::check_outputs(&arguments.output)?;
    let (report, exit) = saved(&arguments.results, arguments.gate)?;
    output::deliver(&arguments.output, paint, &report)?;
    Ok(exit_of_verdicts(exit, arguments.exit_zero))
}

/// Returns the report of saved results, and its exit code.
pub(super) fn saved(path: &Path, gate: Gate) -> Result<(FullReport, Exit), CommandError> {
    let could_not = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    if path.is_file() {
        return Ok((saved_file(path)?, Exit::Held));
    }
    let search = path.join(find_capacity::SAVED);
    if search.exists() {
        return Ok((saved_file(&search)?, Exit::Held));
    }
    if path.join("manifest.json").exists() {
        if LoadCapture::is_load(path) {
            let capture = LoadCapture::open(path).map_err(|error| could_not(error.into()))?;
            return Ok((one_load(&capture), Exit::Held));
        }
        return one_run(path).map_err(could_not);
    }
    let results = std::path::absolute(path).map_err(|error| could_not(error.into()))?;
    let results = Results::new(results);
    if results.targets().exists() {
        let (report, code) = targets::read(&results).map_err(could_not)?;
        return Ok((FullReport::from(&report), Exit::from_code(code)));
    }
    let report = suite(path)?;
    let exit = Exit::from_code(report.exit_code(gate.into()));
    Ok((FullReport::from(&report), exit))
}

/// Returns the report of the suite in a folder of results.
pub(super) fn suite(folder: &Path) -> Result<SuiteReport, CommandError> {
    let results = Results::new(folder.to_path_buf());
    if !results.suite().exists() {
        if let Some(report) = not_run(&results) {
            return Ok(report);
        }
        let error = anyhow::anyhow!("there are no results in {}", folder.display());
        return Err(CommandError::new(Exit::Usage, error).hint(
            "give a results folder of `stillwell run`, such as .stillwell/results/NAME, or a \
             capture of `stillwell observe`",
        ));
    }
    read(folder).map_err(|error| {
        CommandError::new(Exit::Usage, error)
            .hint("give a results folder of `stillwell run` or a capture of `stillwell observe`")
    })
}

/// Returns the report of a command that could not run, if its reason is in the folder.
fn not_run(results: &Results) -> Option<SuiteReport> {
    let record = results.problems().ok().flatten()?;
    Some(SuiteReport {
        problems: problems::shown(record.problems),
        command: output::typed(&record.command),
        version: record.version,
        ..without_verdicts(results.root())
    })
}

/// Returns the report of a folder that has neither results nor the reason for that.
pub(super) fn without_results(folder: &Path, reason: &str) -> SuiteReport {
    SuiteReport {
        problems: vec![SuiteProblem {
            experiment: None,
            reason: reason.to_owned(),
            exit_code: Exit::CouldNotRun.code(),
        }],
        ..without_verdicts(folder)
    }
}

fn without_verdicts(folder: &Path) -> SuiteReport {
    SuiteReport {
        title: output::show_path(folder),
        baseline: String::new(),
        comparison: String::new(),
        experiments: Vec::new(),
        budget: apply_error_budget(&mut [], &[]),
        problems: Vec::new(),
        results_folder: output::show_path(folder),
        command: String::new(),
        seed: String::new(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host: Vec::new(),
        elapsed: Nanos::ZERO,
        next: Vec::new(),
        runs: Vec::new(),
    }
}

/// Returns the report of a saved load or of a saved search.
fn saved_file(path: &Path) -> Result<FullReport, CommandError> {
    let text = read_text(path).map_err(|error| CommandError::new(Exit::Usage, error))?;
    if let Ok(brief) = serde_json::from_str::<BriefLoad>(&text) {
        return Ok(FullReport::from(&brief));
    }
    if let Ok(scenario) = ScenarioReport::parse(&text) {
        return Ok(FullReport::from(&scenario));
    }
    let refused = |error: String| {
        CommandError::new(Exit::Usage, anyhow::anyhow!("{}: {error}", path.display()))
            .hint("give a saved load, the JSON of `find-capacity`, or a folder of results")
    };
    match read_capacity_json(&text) {
        Ok(report) => return Ok(FullReport::from(&report)),
        Err(CapacityJsonError::Value(key)) => {
            return Err(refused(CapacityJsonError::Value(key).to_string()));
        }
        Err(CapacityJsonError::Json(_) | CapacityJsonError::Schema) => {}
    }
    match read_load_json(&text) {
        Ok(report) => Ok(FullReport::from(&report)),
        Err(_) => read_saved_load(path)
            .map(|load| FullReport::from(&load))
            .map_err(|error| refused(error.root_cause().to_string())),
    }
}

fn one_load(capture: &LoadCapture) -> FullReport {
    FullReport::from(&report_of_load(capture))
}

/// Returns the result of a load, judged again from its capture.
pub(super) fn report_of_load(capture: &LoadCapture) -> LoadReport {
    let rules = LoadRules::of(&capture.manifest.plan);
    let warnings = load_warnings(rules, &capture.evidence());
    load_report(&LoadReportInput {
        capture,
        original: None,
        warnings: &OptionNames::Load.health_warnings(rules, &warnings),
    })
}

/// Returns the report of a single run, which has no gate.
fn one_run(folder: &Path) -> anyhow::Result<(FullReport, Exit)> {
    let capture = Capture::open(folder)?;
    let summary = summarise(&capture);
    let command = output::typed(&capture.manifest.command);
    let report = RunReport {
        host: host_facts(&capture.manifest),
        profiles: runs::profiles_of(("", &summary.target), [(&summary, folder.to_path_buf())]),
        ..RunReport::new(summary, &capture, output::show_path(folder), command)
    };
    Ok((FullReport::from(&report), Exit::Held))
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
    let saved = results.problems()?.map(|record| record.problems);
    let not_finished = problems::shown(saved.unwrap_or_default());
    anyhow::ensure!(
        !experiments.is_empty() || !not_finished.is_empty(),
        "no experiment in {} has a finished run yet",
        folder.display()
    );
    let problems = problems::with_not_run(not_finished, &record.plan, &experiments);
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
    let runs = runs::read(&results, &record.plan.experiments, &experiments);
    Ok(SuiteReport {
        title: output::show_path(results.root()),
        baseline: name(0),
        comparison: name(1),
        experiments,
        budget,
        problems,
        results_folder: output::show_path(results.root()),
        command: output::typed(&record.command),
        seed: record.plan.seed.to_string(),
        version: record.version,
        host: results.host_facts(&record.plan),
        elapsed: Nanos::ZERO,
        next: Vec::new(),
        runs,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use stillwell_capture::RunStage;
    use stillwell_experiment::{SUITE_SCHEMA, SavedProblem, SuiteRecord};
    use stillwell_plan::{GoalMetric, GoalPlan, SuitePlan};
    use stillwell_units::{Secrets, Seed};
    use stillwell_verdict::{GatePolicy, synthetic};

    use super::*;

    /// Saves a suite of these experiments; only the first has runs.
    fn save(results: &Results, names: [&str; 3]) {
        let goal = || vec![GoalPlan::new(GoalMetric::CpuPerEvent)];
        let record = SuiteRecord {
            schema: SUITE_SCHEMA.to_owned(),
            version: "0.1.0".to_owned(),
            command: Vec::new(),
            started_wall_millis: 1_795_269_933_000,
            fingerprint: String::new(),
            binaries: Vec::new(),
            plan: SuitePlan {
                experiments: names.map(|name| synthetic::plan(name, goal())).to_vec(),
                seed: Seed::from_number(1),
            },
            health: Vec::new(),
        };
        fs::write(results.suite(), serde_json::to_vec(&record).unwrap()).unwrap();
        for (pair, variant, cost) in [
            (1, "baseline", 100.0),
            (1, "comparison", 100.1),
            (2, "baseline", 100.3),
            (2, "comparison", 100.2),
        ] {
            let place = (RunStage::Search, pair, variant);
            let run = synthetic::run(names[0], place, &[(GoalMetric::CpuPerEvent, cost)]);
            let folder = results.run(names[0], pair, variant);
            fs::create_dir_all(&folder).unwrap();
            let text = serde_json::to_vec(&run).unwrap();
            fs::write(folder.join("summary.json"), text).unwrap();
        }
    }

    #[test]
    fn an_experiment_that_was_not_run_is_a_problem_of_the_saved_suite() {
        let folder = tempfile::tempdir().unwrap();
        let results = Results::new(folder.path().to_path_buf());
        save(&results, ["judged", "failed", "later"]);
        let failed = SavedProblem {
            experiment: Some("failed".to_owned()),
            exit_code: Exit::Invalid.code(),
            reason: "all 3 pairs failed".to_owned(),
        };
        let saved = results.write_problems(Vec::new(), vec![failed], Secrets::Masked);
        saved.unwrap();
        let report = suite(folder.path()).unwrap();
        let judged = report.experiments.iter().map(|entry| entry.name.as_str());
        assert_eq!(judged.collect::<Vec<_>>(), ["judged"]);
        let lines: Vec<_> = report.problems.iter().map(SuiteProblem::line).collect();
        let expected = [
            "failed: all 3 pairs failed",
            "later: it was not run: the suite ended early, or is still running",
        ];
        assert_eq!(lines, expected);
        let code = report.exit_code(GatePolicy::Normal);
        assert_eq!(code, Exit::Invalid.code());
    }
}
