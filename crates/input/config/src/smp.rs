//! SMP cases: `experiment.yaml`, `lading/lading.yaml` and folders to show.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use std::sync::Arc;
use stillwell_legacy::lading::{self, LadingRig};
use stillwell_legacy::smp::{self, SmpExperiment, SmpGoal, SmpTarget};
use stillwell_plan::{
    ChildPlan, CpuChoice, DesignPlan, EnvironmentPlan, ExperimentPlan, GeneratorPlan, GoalMetric,
    GoalPlan, IsolationPlan, OperatingPoint, PhasesPlan, PlacementPlan, RigPlan, StoppingPlan,
    SubjectKind, SubjectPlan, TransportPlan, VariantPlan, Wanted, WarmupPlan,
};
use stillwell_text::{Diagnostic, Diagnostics, Place, Source, code, ready_probe_of};

use crate::discover::Case;
use crate::files::{Files, read_source};
use crate::spec::{STOP_DEFAULT, default_goals};

mod layout;
mod named;

pub(crate) use layout::load_of;
pub(crate) use named::{files_in, named_files};

/// An SMP case, and whether it names a program, as far as its mistakes let one see.
pub(crate) struct SmpCase {
    pub(crate) plan: ExperimentPlan,
    pub(crate) has_program: bool,
}

/// Reads a case; what is wrong with it goes to `found`.
pub(crate) fn read_case(
    files: &dyn Files,
    case: &Case,
    found: &mut Diagnostics,
) -> Option<SmpCase> {
    let mut own = Diagnostics::new();
    let read = read_experiment(files, case, &mut own);
    // Where its target has a mistake, nobody knows whether it names one.
    let has_mistakes = own.has_errors();
    found.append(own);
    let (experiment, source) = read?;
    // Where there is none, messages name the place where one should be.
    let load = load_of(files, &case.folder);
    let load = load.unwrap_or_else(|| case.folder.join("lading/lading.yaml"));
    let rig = read_load(files, &load, true, found)?;
    let mut target = experiment.target.clone().unwrap_or_default();
    if target.name.is_empty() && !has_mistakes {
        target.name = layout::target_of(files, &case.folder, found);
    }
    let has_program = target.command.is_some() || has_mistakes;
    let operating_point = operating_point_of(&rig);
    let goals = goals_of(&experiment, &rig, source.as_ref(), found);
    let variants = ["baseline", "comparison"].map(|name| VariantPlan {
        environment: environment_of(&experiment, name),
        ..VariantPlan::unchanged(name.to_owned())
    });
    let subject = subject_of(files, &case.folder, target, &rig);
    let mut plan_rig = rig_of(rig, subject);
    plan_rig.checks = experiment.checks;
    Some(SmpCase {
        plan: ExperimentPlan {
            name: case.name.clone(),
            summary: experiment.description,
            folder: case.folder.clone(),
            rig: plan_rig,
            variants: variants.to_vec(),
            goals,
            stopping: StoppingPlan::DEFAULT,
            design: DesignPlan::Paired,
            warmup: WarmupPlan::Stated,
            confirm: true,
            family: None,
            operating_point,
            report_links: experiment.report_links,
            // Without a goal only the checks gate.
            erratic: experiment.erratic || experiment.goal == SmpGoal::None,
        },
        has_program,
    })
}

fn read_experiment(
    files: &dyn Files,
    case: &Case,
    found: &mut Diagnostics,
) -> Option<(SmpExperiment, Option<Arc<Source>>)> {
    let Some(file) = &case.file else {
        let message = format!("{} has no `experiment.yaml`", case.folder.display());
        found.push(
            Diagnostic::warning(code::UNREADABLE, message)
                .help("usual goals are used, and the program must be given on the command line"),
        );
        return Some((SmpExperiment::default(), None));
    };
    match read_source(files, file) {
        Ok(source) => {
            let (experiment, remarks) = smp::read(&source, &case.name);
            found.append(remarks);
            Some((experiment?, Some(source)))
        }
        Err(error) => {
            found.push(*error);
            None
        }
    }
}

/// Reads a `lading.yaml`.
pub(crate) fn read_load(
    files: &dyn Files,
    path: &Path,
    has_subject: bool,
    found: &mut Diagnostics,
) -> Option<LadingRig> {
    match read_source(files, path) {
        Ok(source) => {
            let (rig, remarks) =
                lading::read(&source, has_subject, named_files(files, path, &source));
            found.append(remarks);
            rig
        }
        Err(error) => {
            found.push(*error);
            None
        }
    }
}

/// The rig of a `lading.yaml` around `subject`.
pub(crate) fn rig_of(load: LadingRig, subject: SubjectPlan) -> RigPlan {
    let is_in_cluster =
        |plan: &GeneratorPlan| matches!(plan.transport, TransportPlan::Kubernetes(_));
    let mut isolation = IsolationPlan::default();
    if load.generators.iter().any(is_in_cluster) {
        // Where the cluster is; what was read says so.
        isolation.network = Wanted::No;
    }
    RigPlan {
        seed: load.seed,
        generators: load.generators,
        sinks: load.sinks,
        subject,
        disks: Vec::new(),
        observer: load.observer,
        phases: PhasesPlan::default(),
        timeline: Vec::new(),
        isolation,
        placement: PlacementPlan::default(),
        checks: Vec::new(),
    }
}

/// Rates that stand there are kept; a load without any is as fast as can be.
fn operating_point_of(rig: &LadingRig) -> OperatingPoint {
    let mut rates = rig.generators.iter().map(|generator| generator.rate);
    if !rig.generators.is_empty() && rates.all(|rate| rate.is_max()) {
        OperatingPoint::Max
    } else {
        OperatingPoint::Stated
    }
}

fn goals_of(
    experiment: &SmpExperiment,
    rig: &LadingRig,
    source: Option<&Arc<Source>>,
    found: &mut Diagnostics,
) -> Vec<GoalPlan> {
    let has_generators = !rig.generators.is_empty();
    let SmpGoal::Metric(metric) = &experiment.goal else {
        return default_goals(has_generators);
    };
    let missing = match metric {
        GoalMetric::IngressThroughput if !has_generators => Some("generator"),
        GoalMetric::EgressThroughput if rig.sinks.is_empty() => Some("blackhole"),
        _ => None,
    };
    // A load with mistakes may have lost its parts to them.
    if let (Some(missing), false) = (missing, found.has_errors()) {
        let message = format!("`{}` can never be measured here", metric.name());
        let mut error = Diagnostic::error(code::GOAL_WITHOUT_LOAD, message)
            .label(format!("the load has no {missing}"));
        if let (Some(source), Some(span)) = (source, experiment.goal_span) {
            error = error.at(Place::new(source, span));
        }
        found.push(error);
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
    load: &LadingRig,
) -> SubjectPlan {
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
    SubjectPlan {
        kind: SubjectKind::Child(ChildPlan {
            program,
            arguments: words.collect(),
            environment: EnvironmentPlan {
                inherit: false,
                variables: target.environment,
            },
            directory: None,
            mounts,
        }),
        ready: ready_probe_of(&load.generators),
        cpus: target.cpus.map_or(CpuChoice::Auto, CpuChoice::Count),
        memory: target.memory,
        name,
        stop: STOP_DEFAULT,
    }
}
