//! Permission to create namespaces, for the commands whose runs need it.

use stillwell_plan::{ExperimentPlan, SuitePlan, TargetKind};
use stillwell_target::{Privileges, end_leftovers, prepare_privileges};
use stillwell_units::Target;

use crate::paint::Paint;

/// Acquires the permission to create namespaces if the runs of a plan use any. The process must have one thread.
///
/// If not, this process stays in its user namespace: from another one, it could not read the sockets and counters of a
/// service that already runs.
pub(crate) fn prepare(uses_namespaces: bool) -> Option<Privileges> {
    if uses_namespaces {
        return Some(prepare_privileges());
    }
    end_leftovers();
    None
}

/// The same for a suite. Prints a warning for each experiment that is measured only in part then.
pub(crate) fn prepare_suite(plan: &SuitePlan) -> Option<Privileges> {
    let mut experiments = plan.experiments.iter();
    let privileges = prepare(experiments.any(ExperimentPlan::uses_namespaces));
    if privileges == Some(Privileges::UserNamespace) {
        for line in unmeasured(plan) {
            Paint::print_message(&format!("warning: {line}"));
        }
    }
    privileges
}

/// Returns a sentence for each experiment whose services run on this host, outside of a user namespace of this process.
fn unmeasured(plan: &SuitePlan) -> Vec<String> {
    let experiments = plan.experiments.iter();
    let experiments = experiments.filter(|experiment| has_local_service(experiment));
    let lines = experiments.map(|experiment| {
        format!(
            "{}: the process at its URL is not measured, because another experiment needs a user \
             namespace: run it alone, or as root",
            experiment.name
        )
    });
    lines.collect()
}

/// Returns true if a variant is a URL on loopback.
fn has_local_service(plan: &ExperimentPlan) -> bool {
    let mut variants = plan.variants.iter();
    variants.any(|variant| match plan.target_of(variant, None).kind {
        TargetKind::Url(url) => Target::from_url(&url).is_ok_and(|to| to.loopback().is_some()),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use stillwell_plan::placement::Wanted;
    use stillwell_plan::target::{ChildPlan, EnvironmentPlan, LOG_LIMIT_DEFAULT, MountPlan};
    use stillwell_units::Seed;
    use stillwell_verdict::synthetic;

    use super::*;

    fn mount() -> MountPlan {
        MountPlan::read_only("/source".into(), "/at".into())
    }

    fn program(mounts: Vec<MountPlan>) -> TargetKind {
        TargetKind::Child(ChildPlan {
            program: "program".into(),
            arguments: Vec::new(),
            environment: EnvironmentPlan::default(),
            directory: None,
            mounts,
            log_limit: LOG_LIMIT_DEFAULT,
        })
    }

    fn experiment(kind: TargetKind, network: Wanted) -> ExperimentPlan {
        let mut plan = synthetic::plan("e", Vec::new());
        plan.run_plan.target.kind = kind;
        plan.run_plan.isolation.network = network;
        plan
    }

    #[test]
    fn only_a_separate_network_and_mounts_use_namespaces() {
        use Wanted::{IfPossible, No, Required};
        let url = TargetKind::Url("http://127.0.0.1:80/".to_owned());
        for (kind, network, expected) in [
            (program(Vec::new()), IfPossible, true),
            (program(Vec::new()), Required, true),
            (program(Vec::new()), No, false),
            (program(vec![mount()]), No, true),
            (TargetKind::Pid(1), No, false),
            (url, No, false),
        ] {
            let plan = experiment(kind, network);
            let case = format!("{:?} {network:?}", plan.run_plan.target.kind);
            assert_eq!(plan.uses_namespaces(), expected, "{case}");
        }
        let mut plan = experiment(program(Vec::new()), No);
        plan.variants[1].mounts.push(mount());
        assert!(plan.uses_namespaces());
    }

    #[test]
    fn a_service_on_this_host_is_not_measured_from_a_user_namespace() {
        let url = |url: &str| experiment(TargetKind::Url(url.to_owned()), Wanted::No);
        let mut of_variant = url("http://192.0.2.1/");
        of_variant.variants[1].url = Some("http://localhost:81/".to_owned());
        for (experiment, expected) in [
            (url("http://127.0.0.1:80/"), 1),
            (url("http://192.0.2.1/"), 0),
            (of_variant, 1),
            (experiment(program(Vec::new()), Wanted::IfPossible), 0),
        ] {
            let case = format!("{:?}", experiment.run_plan.target.kind);
            let plan = SuitePlan {
                experiments: vec![experiment],
                seed: Seed::from_number(1),
            };
            assert_eq!(unmeasured(&plan).len(), expected, "{case}");
        }
    }
}
