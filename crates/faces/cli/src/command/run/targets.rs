//! `stillwell run` with several targets.

use std::path::Path;

use stillwell_capture::Manifest;
use stillwell_config::TargetsOverrides;
use stillwell_config::files::read_input;
use stillwell_experiment::{
    Local, NotInstalled, ObjectStore, Results, TargetsOutcome, TargetsRecord, host_facts,
    not_installed, run_targets,
};
use stillwell_plan::TargetsPlan;
use stillwell_report::{FullReport, TargetProfiles, TargetsReport};
use stillwell_run::{Interrupt, RunTelemetry};
use stillwell_target::Privileges;
use stillwell_verdict::{RunSummary, TargetsVerdict, judge_targets, targets_exit_code};

use crate::arguments::{RunArguments, SelectArguments};
use crate::command::conduct::Conductor;
use crate::command::report::runs::profiles_of as read_profiles;
use crate::command::{export, output, privileges, problems, select};
use crate::exit::{CommandError, Exit, exit_of_verdicts};
use crate::formats::loader;
use crate::paint::Paint;

pub(super) fn run(
    arguments: &RunArguments,
    paint: &Paint,
    prepared: Option<&Privileges>,
) -> Result<Exit, CommandError> {
    let overrides = overrides(&arguments.select, &arguments.targets, arguments.runs);
    let overrides = overrides.map_err(|error| {
        error.hint(
            "`--runs N` sets the number of runs of each target, `--targets A,B` selects targets",
        )
    })?;
    let loaded = loader()
        .targets(&arguments.paths, &overrides)
        .map_err(|diagnostics| select::refused(&diagnostics, paint))?;
    select::warn(&loaded.warnings, paint);
    let mut plans = loaded.plan;
    let uses_namespaces = plans.iter().any(TargetsPlan::uses_namespaces);
    let prepared = prepared.cloned();
    let privileges = prepared.or_else(|| privileges::prepare(uses_namespaces));
    if let Some(validity) = arguments.validity {
        for plan in &mut plans {
            plan.run_plan.observer.validity = validity.into();
        }
    }
    output::check_outputs(&arguments.output)?;
    let quiet = arguments.output.quiet;
    let left_out = leave_out(&mut plans, !overrides.targets.is_empty())?;
    for target in left_out.iter().filter(|_| !quiet) {
        Paint::print_message(&format!("skipped: {}: {}", target.name, target.reason));
    }
    let store = super::store_of(arguments)?;
    let results = super::results_folder(arguments, store.as_ref())?;
    let conductor = Conductor::begin(arguments.cache.as_ref(), paint, quiet)?;
    let mut options = conductor.options(&results, arguments.resume);
    let telemetry = export::start(&arguments.stats)?;
    options.metrics = telemetry.as_ref().map(RunTelemetry::metrics);
    let mut display = conductor.display();
    output::report_privileges(privileges.as_ref(), quiet);
    let interrupt = conductor.interrupt();
    display.begin();
    let ran = run_targets(&plans, &options, &mut Local, interrupt, &mut |progress| {
        display.suite(progress);
    });
    display.clear();
    export::finish(telemetry, interrupt, quiet);
    let ran = ran.map_err(|error| super::suite_error(error, &results));
    let result = ran.and_then(|outcome| {
        let has_begun = Results::new(results.clone()).targets().exists();
        let has_nothing = outcome.runs.iter().all(Vec::is_empty) && outcome.problems.is_empty();
        // Before the first run there is nothing to report, and reports of an earlier session stay.
        if outcome.interrupted.is_some() && has_nothing && (arguments.resume || !has_begun) {
            super::print_interrupted(&results, has_begun);
            return Ok(exit_of(&outcome, &[]));
        }
        let verdicts = plans.iter().zip(&outcome.runs);
        let verdicts: Vec<TargetsVerdict> = verdicts
            .filter(|(_, runs)| !runs.is_empty())
            .map(|(plan, runs)| judge_targets(plan, runs))
            .collect();
        let exit = exit_of_verdicts(exit_of(&outcome, &verdicts), arguments.exit_zero);
        let report = report(arguments, &plans, &outcome, verdicts, &left_out, &results);
        let delivered = deliver(&report, arguments, paint, &results);
        let kept = keep_table(&results, store.as_ref(), interrupt, quiet);
        let kept = kept.map_err(|error| super::upload_error(error, interrupt));
        output::exit_after(exit, output::with_upload(delivered, kept), paint)
    });
    conductor.end();
    result
}

/// Writes the table of all numbers beside the captures, and to the store if there is
/// one. `interrupt` ends the upload.
fn keep_table(
    results: &Path,
    store: Option<&ObjectStore>,
    interrupt: &Interrupt,
    quiet: bool,
) -> anyhow::Result<()> {
    let name = results.file_name().unwrap_or_default().to_string_lossy();
    let bytes = Results::new(results.to_path_buf()).write_table(&name)?;
    match store {
        Some(store) => super::put_table(&store.ending_with(interrupt), results, bytes, quiet),
        None => Ok(()),
    }
}

/// Flags that change experiments with several targets.
const FLAGS: [&str; 5] = ["--measure", "--only", "--rate", "--seed", "--warmup"];

/// Overrides from flags: `named` targets and their number of `runs`. Flags about variants are errors.
pub(crate) fn overrides(
    select: &SelectArguments,
    named: &[String],
    runs: Option<u32>,
) -> Result<TargetsOverrides, CommandError> {
    let mut given = select::given_flags(select).into_iter();
    if let Some(flag) = given.find(|flag| !FLAGS.contains(flag)) {
        let error =
            anyhow::anyhow!("`{flag}` is for variants, and this experiment has several targets");
        return Err(CommandError::new(Exit::Usage, error));
    }
    let named = named.iter().map(|name| name.trim().to_owned());
    let named: Vec<String> = named.filter(|name| !name.is_empty()).collect();
    let is_all = named.iter().any(|name| name == "all");
    let changes = &select.changes;
    Ok(TargetsOverrides {
        only: changes.only.clone(),
        targets: if is_all { Vec::new() } else { named },
        runs,
        warmup: changes.course.warmup,
        measure: changes.course.measure,
        seed: changes.seed,
        rate: changes.rate.clone(),
    })
}

/// Removes targets whose programs are not installed; a named one is an error.
fn leave_out(
    plans: &mut Vec<TargetsPlan>,
    are_named: bool,
) -> Result<Vec<NotInstalled>, CommandError> {
    let could_not = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    let stillwell = std::env::current_exe().map_err(|error| could_not(error.into()))?;
    let mut left_out: Vec<NotInstalled> = Vec::new();
    for plan in plans.iter_mut() {
        for missing in not_installed(plan, &stillwell) {
            plan.targets.retain(|kept| kept.name != missing.name);
            if !left_out.iter().any(|left| left.name == missing.name) {
                left_out.push(missing);
            }
        }
    }
    plans.retain(|plan| !plan.targets.is_empty());
    match left_out.first() {
        Some(first) if are_named => Err(could_not(anyhow::anyhow!(
            "target `{}` is not installed: {}",
            first.name,
            first.reason
        ))
        .hint("install it, put its folder into PATH, or leave it out of --targets")),
        Some(_) if plans.is_empty() => Err(could_not(anyhow::anyhow!("no target is installed"))
            .hint("install one of them, or put its folder into PATH")),
        _ => Ok(left_out),
    }
}

fn exit_of(outcome: &TargetsOutcome, verdicts: &[TargetsVerdict]) -> Exit {
    if let Some(signal) = outcome.interrupted {
        return Exit::Interrupted(signal);
    }
    let judged = Exit::from_code(targets_exit_code(verdicts));
    let most_severe = outcome.problems.iter().max_by_key(|problem| problem.kind);
    match (judged, most_severe) {
        (Exit::Failed, _) => Exit::Failed,
        (_, Some(problem)) if problem.kind.is_about_starting() => Exit::CouldNotRun,
        (_, Some(_)) => Exit::Invalid,
        (judged, None) => judged,
    }
}

fn report(
    arguments: &RunArguments,
    plans: &[TargetsPlan],
    outcome: &TargetsOutcome,
    verdicts: Vec<TargetsVerdict>,
    left_out: &[NotInstalled],
    results: &Path,
) -> TargetsReport {
    let shown = output::show_path(results);
    let mut next = Vec::new();
    if outcome.interrupted.is_some() {
        next.push(output::resume_line(&shown));
    }
    next.push(output::report_line(&shown));
    let runs = plans.iter().zip(&outcome.runs);
    let folders = Results::new(results.to_path_buf());
    let profiles = runs.flat_map(|(plan, runs)| profiles_of(&folders, plan, runs));
    let profiles = profiles.collect();
    let versions = outcome.identities.iter();
    let left_out = left_out.iter();
    let known = outcome.problems.iter();
    let problems = known
        .clone()
        .filter_map(|target| target.reason.lines().next().map(str::to_owned));
    let known: Vec<&str> = known.map(|target| target.experiment.as_str()).collect();
    let problems = problems.chain(without_runs(plans, &verdicts, &known));
    let problems = problems.collect();
    TargetsReport {
        title: super::plan_title(arguments),
        verdicts,
        versions: versions
            .map(|(name, tool)| (name.clone(), tool.version.clone()))
            .collect(),
        left_out: left_out
            .map(|target| (target.name.clone(), target.reason.clone()))
            .collect(),
        problems,
        host: host_of(&Results::new(results.to_path_buf()), plans),
        results_folder: shown,
        command: output::command_line(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        elapsed: Some(outcome.elapsed),
        next,
        profiles,
    }
}

/// Returns a line for each experiment that has neither a verdict nor a known problem: the command ended before it, and
/// must not look complete.
fn without_runs(plans: &[TargetsPlan], verdicts: &[TargetsVerdict], known: &[&str]) -> Vec<String> {
    let names = plans.iter().map(|plan| plan.name.as_str());
    let named = names.filter(|name| {
        !known.contains(name) && !verdicts.iter().any(|verdict| verdict.name == **name)
    });
    named
        .map(|name| format!("{name}: {}", problems::NOT_RUN))
        .collect()
}

/// Returns the profiles of the targets of one experiment that have some.
fn profiles_of(results: &Results, plan: &TargetsPlan, runs: &[RunSummary]) -> Vec<TargetProfiles> {
    let targets = plan.targets.iter().map(|target| {
        let of_target = runs.iter().filter_map(|run| {
            let identity = run.identity.as_ref()?;
            let folder = results.run(&plan.name, identity.pair, &identity.variant);
            (identity.variant == target.name).then_some((run, folder))
        });
        read_profiles((&plan.name, &target.name), of_target)
    });
    let stored =
        |profiles: &TargetProfiles| !profiles.summaries.is_empty() || profiles.unreadable.is_some();
    targets.filter(stored).collect()
}

/// Largest manifest.
const MANIFEST_MAX: u64 = 64 << 20;

/// Facts about the host, from the first manifest that there is.
fn host_of(results: &Results, plans: &[TargetsPlan]) -> Vec<(String, String)> {
    let folders = plans.iter().flat_map(|plan| {
        let targets = plan.targets.iter();
        targets.map(|target| results.run(&plan.name, 1, &target.name))
    });
    let mut manifests = folders.filter_map(|folder| {
        let bytes = read_input(&folder.join("manifest.json"), MANIFEST_MAX).ok()?;
        serde_json::from_slice::<Manifest>(&bytes).ok()
    });
    manifests
        .next()
        .map_or_else(Vec::new, |manifest| host_facts(&manifest))
}

/// Prints the report, writes it to the files of --output, and saves it with the results.
fn deliver(
    report: &TargetsReport,
    arguments: &RunArguments,
    paint: &Paint,
    results: &Path,
) -> Result<(), CommandError> {
    let full = FullReport::from(report);
    let delivered = output::deliver(&arguments.output, paint, &full);
    let kept = output::keep(&full, results);
    delivered.and(kept)
}

/// The report of what lies in `results`, judged again, and its exit code.
///
/// # Errors
/// A record or summary that cannot be read; no finished run.
pub(crate) fn read(results: &Results) -> anyhow::Result<(TargetsReport, u8)> {
    let record: TargetsRecord = results.targets_record()?;
    let (mut verdicts, mut profiles) = (Vec::new(), Vec::new());
    for plan in &record.plans {
        let runs = results.targets_summaries(plan)?;
        if !runs.is_empty() {
            verdicts.push(judge_targets(plan, &runs));
            profiles.extend(profiles_of(results, plan, &runs));
        }
    }
    let shown = output::show_path(results.root());
    anyhow::ensure!(!verdicts.is_empty(), "no run in {shown} is finished yet");
    let names: Vec<&str> = record.plans.iter().map(|plan| plan.name.as_str()).collect();
    let versions = record.identities.iter();
    let problems = without_runs(&record.plans, &verdicts, &[]);
    let code = match targets_exit_code(&verdicts) {
        0 if !problems.is_empty() => Exit::Invalid.code(),
        code => code,
    };
    let report = TargetsReport {
        title: names.join(", "),
        verdicts,
        versions: versions
            .map(|(name, tool)| (name.clone(), tool.version.clone()))
            .collect(),
        left_out: Vec::new(),
        problems,
        host: host_of(results, &record.plans),
        results_folder: shown,
        command: output::typed(&record.command),
        version: record.version.clone(),
        elapsed: None,
        next: Vec::new(),
        profiles,
    };
    Ok((report, code))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use stillwell_capture::RunStage;
    use stillwell_experiment::TARGETS_SCHEMA;
    use stillwell_plan::targets::ComparedTargetPlan;
    use stillwell_units::Seed;
    use stillwell_verdict::synthetic;

    use super::*;

    fn plan(name: &str) -> TargetsPlan {
        let run_plan = synthetic::plan(name, Vec::new()).run_plan;
        let target = ComparedTargetPlan {
            name: "relay".to_owned(),
            target: run_plan.target.clone(),
            program: None,
            version: None,
            files: Vec::new(),
            durability: None,
            delivery: None,
        };
        TargetsPlan {
            name: name.to_owned(),
            summary: None,
            folder: name.into(),
            run_plan,
            targets: vec![target],
            runs: 1,
            seed: Seed::from_number(1),
        }
    }

    #[test]
    fn an_experiment_without_a_run_is_a_problem_of_saved_targets() {
        let folder = tempfile::tempdir().unwrap();
        let results = Results::new(folder.path().to_path_buf());
        let record = TargetsRecord {
            schema: TARGETS_SCHEMA.to_owned(),
            version: "0.1.0".to_owned(),
            command: Vec::new(),
            started_wall_millis: 1_795_269_933_000,
            plans: ["judged", "later"].map(plan).to_vec(),
            identities: BTreeMap::new(),
        };
        fs::write(results.targets(), serde_json::to_vec(&record).unwrap()).unwrap();
        let run = synthetic::run("judged", (RunStage::Search, 1, "relay"), &[]);
        let place = results.run("judged", 1, "relay");
        fs::create_dir_all(&place).unwrap();
        let text = serde_json::to_vec(&run).unwrap();
        fs::write(place.join("summary.json"), text).unwrap();
        let (report, code) = read(&results).unwrap();
        let judged = report.verdicts.iter().map(|verdict| verdict.name.as_str());
        assert_eq!(judged.collect::<Vec<_>>(), ["judged"]);
        let line = "later: it was not run: the suite ended early, or is still running";
        assert_eq!(report.problems, [line]);
        assert_eq!(code, Exit::Invalid.code());
        // One whose problem is known is not named twice.
        assert!(without_runs(&record.plans, &report.verdicts, &["later"]).is_empty());
    }
}
