//! SMP cases: `experiment.yaml`, `lading/lading.yaml` and folders to show.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stillwell_config::files::{Files, read_source};
use stillwell_config::foreign::{CaseFolder, ForeignCase, has_key};
use stillwell_config::rules::ready_probe_of;
use stillwell_config::shared::default_goals;
use stillwell_plan::experiment::{MAX_TIME_DEFAULT, OperatingPoint};
use stillwell_plan::placement::{CpuChoice, IsolationPlan, Wanted};
use stillwell_plan::stopping::{DesignPlan, WarmupPlan};
use stillwell_plan::target::{ChildPlan, EnvironmentPlan, STOP_DEFAULT};
use stillwell_plan::{
    ExperimentPlan, GeneratorPlan, GoalMetric, GoalPlan, PhasesPlan, PlacementPlan, RunPlan,
    StoppingPlan, TargetKind, TargetPlan, TransportPlan, VariantPlan,
};
use stillwell_text::{Diagnostic, Diagnostics, Place, Source, code};

use crate::experiment::{self, SmpExperiment, SmpGoal, SmpTarget};
use crate::file::{self, LadingFile};
use crate::series::rename_recorded;

mod layout;
mod named;
mod suite;

pub(crate) use layout::{LOADS, load_of};
pub(crate) use named::named_files;

/// Returns true if the folder is a case: a load is in it, or its experiment is SMP's.
pub(crate) fn is_case(case: &CaseFolder<'_>) -> bool {
    // The folder `lading` of a case is none itself.
    let is_part = case.folder.file_name().is_some_and(|name| name == "lading");
    let load = load_of(case.files, case.folder).filter(|_| !is_part);
    // Beside a native experiment a `lading.yaml` is just a file.
    let is_flat = load.as_deref().and_then(Path::parent) == Some(case.folder);
    let has_load = load.is_some() && !(is_flat && case.experiment.is_some());
    has_load || matches!(case.experiment, Some(Ok(source)) if is_experiment(source.text()))
}

/// Returns true if the text is an experiment of SMP. Native experiments have `target`, too.
fn is_experiment(text: &str) -> bool {
    const NATIVE: [&str; 7] = [
        "workload", "variants", "goals", "phases", "matrix", "pairs", "seed",
    ];
    has_key(text, &["optimization_goal", "config_only"])
        || has_key(text, &["target"]) && !has_key(text, &NATIVE)
}

/// Reads a case; errors go to `diagnostics`.
pub(crate) fn read_case(
    case: &CaseFolder<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<ForeignCase> {
    let files = case.files;
    let mut errors = Diagnostics::new();
    let read = read_experiment(case, &mut errors);
    // If its target has errors, the name of the target is unknown.
    let has_errors = errors.has_errors();
    diagnostics.append(errors);
    let mut experiment = read?;
    if let Some(settings) = suite::read(files, case.folder, diagnostics) {
        settings.complete(&mut experiment);
    }
    let source = case.experiment.and_then(Result::ok);
    // Without a file, messages name its expected place.
    let load = load_of(files, case.folder);
    let load = load.unwrap_or_else(|| case.folder.join("lading/lading.yaml"));
    let run_plan = read_load(files, &load, true, diagnostics)?;
    let mut target = experiment.target.clone().unwrap_or_default();
    if target.name.is_empty() && !has_errors {
        target.name = layout::target_of(files, case.folder, diagnostics);
    }
    let has_program = target.command.is_some() || has_errors;
    let operating_point = operating_point_of(&run_plan);
    let goals = goals_of(&experiment, &run_plan, source, diagnostics);
    let variants = ["baseline", "comparison"].map(|name| VariantPlan {
        environment: environment_of(&experiment, name),
        ..VariantPlan::unchanged(name.to_owned())
    });
    let subject = subject_of(files, case.folder, target, &run_plan);
    let mut plan_run = run_of(run_plan, subject);
    let mut checks = experiment.checks;
    for check in &mut checks {
        rename_recorded(&mut check.series, &plan_run);
    }
    plan_run.checks = checks;
    Some(ForeignCase {
        plan: ExperimentPlan {
            name: case.name.to_owned(),
            summary: experiment.description,
            folder: case.folder.to_path_buf(),
            run_plan: plan_run,
            variants: variants.to_vec(),
            goals,
            stopping: StoppingPlan::DEFAULT,
            design: DesignPlan::Paired,
            warmup: WarmupPlan::Stated,
            max_time: MAX_TIME_DEFAULT,
            builds: 1,
            confirm: true,
            family: None,
            operating_point,
            stated_max: Vec::new(),
            report_links: experiment.report_links,
            // Without a goal only the checks gate.
            erratic: experiment.erratic || experiment.goal == SmpGoal::None,
        },
        has_program,
    })
}

fn read_experiment(case: &CaseFolder<'_>, diagnostics: &mut Diagnostics) -> Option<SmpExperiment> {
    match case.experiment {
        None => {
            let message = format!("{} has no `experiment.yaml`", case.folder.display());
            diagnostics.push(Diagnostic::warning(code::UNREADABLE, message).help(
                "the default goals are used, and the program must be given on the command line",
            ));
            Some(SmpExperiment::default())
        }
        Some(Ok(source)) => {
            let (experiment, remarks) = experiment::read(source);
            diagnostics.append(remarks);
            experiment
        }
        Some(Err(error)) => {
            diagnostics.push(error.clone());
            None
        }
    }
}

/// Reads the `lading.yaml` at `path`.
fn read_load(
    files: &dyn Files,
    path: &Path,
    has_subject: bool,
    diagnostics: &mut Diagnostics,
) -> Option<LadingFile> {
    match read_source(files, path) {
        Ok(source) => read_text(files, path, &source, has_subject, diagnostics),
        Err(error) => {
            diagnostics.push(*error);
            None
        }
    }
}

/// Reads `source`, a `lading.yaml` from `path`.
pub(crate) fn read_text(
    files: &dyn Files,
    path: &Path,
    source: &Arc<Source>,
    has_subject: bool,
    diagnostics: &mut Diagnostics,
) -> Option<LadingFile> {
    let (run_plan, remarks) = file::read(source, has_subject, named_files(files, path, source));
    diagnostics.append(remarks);
    run_plan
}

/// Returns the run of a `lading.yaml` around `subject`.
pub(crate) fn run_of(load: LadingFile, subject: TargetPlan) -> RunPlan {
    let is_in_cluster =
        |plan: &GeneratorPlan| matches!(plan.transport, TransportPlan::Kubernetes(_));
    let mut isolation = IsolationPlan::default();
    if load.generators.iter().any(is_in_cluster) {
        // The network with the cluster; the reader has reported it.
        isolation.network = Wanted::No;
    }
    RunPlan {
        seed: load.seed,
        generators: load.generators,
        sinks: load.sinks,
        target: subject,
        disks: Vec::new(),
        observer: load.observer,
        phases: PhasesPlan::default(),
        timeline: Vec::new(),
        isolation,
        placement: PlacementPlan::default(),
        checks: Vec::new(),
    }
}

/// Keeps the rates of the file; a load without rates runs at full speed.
fn operating_point_of(run_plan: &LadingFile) -> OperatingPoint {
    let mut rates = run_plan.generators.iter().map(|generator| &generator.rate);
    if !run_plan.generators.is_empty() && rates.all(|rate| rate.is_max()) {
        OperatingPoint::Max
    } else {
        OperatingPoint::Stated
    }
}

fn goals_of(
    experiment: &SmpExperiment,
    run_plan: &LadingFile,
    source: Option<&Arc<Source>>,
    diagnostics: &mut Diagnostics,
) -> Vec<GoalPlan> {
    let has_generators = !run_plan.generators.is_empty();
    let SmpGoal::Metric(metric) = &experiment.goal else {
        return default_goals(has_generators);
    };
    let missing = match metric {
        GoalMetric::IngressThroughput if !has_generators => Some("generator"),
        GoalMetric::EgressThroughput if run_plan.sinks.is_empty() => Some("blackhole"),
        _ => None,
    };
    // A load with mistakes may have lost its parts to them.
    if let (Some(missing), false) = (missing, diagnostics.has_errors()) {
        let message = format!("`{}` can never be measured here", metric.name());
        let mut warning = Diagnostic::warning(code::GOAL_WITHOUT_LOAD, message)
            .label(format!("the load has no {missing}"))
            .help("the default goals are used");
        if let (Some(source), Some(span)) = (source, experiment.goal_span) {
            warning = warning.at(Place::new(source, span));
        }
        diagnostics.push(warning);
        return default_goals(has_generators);
    }
    let mut goals = vec![GoalPlan::new(metric.clone())];
    if has_generators && *metric != GoalMetric::CpuPerEvent {
        goals.push(GoalPlan::new(GoalMetric::CpuPerEvent));
    }
    goals
}

fn environment_of(experiment: &SmpExperiment, variant: &str) -> BTreeMap<String, String> {
    let environment = experiment.config_only.get(variant);
    environment.cloned().unwrap_or_default()
}

fn subject_of(
    files: &dyn Files,
    folder: &Path,
    target: SmpTarget,
    load: &LadingFile,
) -> TargetPlan {
    let name = if target.name.is_empty() {
        "target".to_owned()
    } else {
        target.name
    };
    let mut words = target
        .command
        .unwrap_or_else(|| vec![name.clone()])
        .into_iter();
    let program: PathBuf = words.next().unwrap_or_else(|| name.clone()).into();
    let mounts = layout::mounts(files, folder, &name, &load.generators);
    TargetPlan {
        kind: TargetKind::Child(ChildPlan {
            program,
            arguments: words.collect(),
            environment: EnvironmentPlan {
                inherit: false,
                variables: target.environment,
            },
            directory: None,
            mounts,
            log_limit: stillwell_plan::target::LOG_LIMIT_DEFAULT,
        }),
        ready: ready_probe_of(&load.generators, load.sinks.iter()),
        cpus: target.cpus.map_or(CpuChoice::Auto, CpuChoice::Count),
        memory: target.memory,
        name,
        stop: STOP_DEFAULT,
    }
}
