//! Warnings of a run on several machines.

use stillwell_capture::{Manifest, RunMachines};
use stillwell_units::Nanos;

use crate::limits;
use crate::run_warning::RunWarning;

/// Names the machine in warnings that were found on one, and warns of clocks that were compared too
/// coarsely.
pub(super) fn add(manifest: &Manifest, warnings: &mut Vec<RunWarning>) {
    let Some(machines) = &manifest.machines else {
        return;
    };
    let named = of_tasks(machines);
    // The merged capture shows the same, without the name of the machine.
    warnings.retain(|warning| {
        !warning.is_of_limit() || !named.iter().any(|named| named.code() == warning.code())
    });
    warnings.extend(named);
    let error = clock_error(manifest);
    let limit = limits::CLOCK_ERROR;
    if error > limit {
        warnings.push(RunWarning::ClocksUncertain { error, limit });
    }
}

/// Returns the bound on the error of latencies of stamped events.
pub(super) fn clock_error(manifest: &Manifest) -> Nanos {
    let ledger = manifest.ledger.as_ref();
    let error = ledger.and_then(|ledger| ledger.clock_error);
    error.unwrap_or(Nanos::ZERO)
}

fn of_tasks(machines: &RunMachines) -> Vec<RunWarning> {
    let mut named = Vec::new();
    for task in &machines.tasks {
        // One of a later version is not known.
        let known = task
            .warnings
            .iter()
            .filter_map(|warning| serde_json::from_value(warning.clone()).ok());
        named.extend(known.map(|warning| RunWarning::OnMachine {
            task: task.name(),
            warning: Box::new(warning),
        }));
    }
    named
}

#[cfg(test)]
mod tests {
    use stillwell_capture::{LedgerRecord, RunTask, RunTaskResult};
    use stillwell_plan::goal::LatencyQuantile;
    use stillwell_plan::{GoalMetric, SinkShare, TaskRole};

    use super::*;
    use crate::fixture::TestRun;

    #[test]
    fn a_warning_of_one_machine_names_it_and_replaces_that_of_the_whole() {
        let late = |id: &str| RunWarning::GeneratorLate {
            id: id.to_owned(),
            share: 0.5,
            limit: 0.1,
        };
        let mut manifest = TestRun::healthy().manifest;
        let mut warnings = vec![late("whole")];
        add(&manifest, &mut warnings);
        assert_eq!(warnings, [late("whole")], "one machine");
        manifest.machines = Some(RunMachines {
            engine: "local".to_owned(),
            clock_error: None,
            tasks: vec![RunTask {
                role: TaskRole::Sinks(SinkShare::new(0, 1).unwrap()),
                result: Ok(RunTaskResult {
                    attempt: "a".to_owned(),
                    node: "n3".to_owned(),
                    boot: "b".to_owned(),
                    address: [10, 0, 0, 3].into(),
                    began: Nanos::ZERO,
                    ended: Nanos::ZERO,
                }),
                clock: None,
                warnings: vec![serde_json::to_value(late("part")).unwrap()],
            }],
        });
        manifest.ledger = Some(LedgerRecord {
            clock_error: Some(Nanos::from_secs(1)),
            ..LedgerRecord::default()
        });
        add(&manifest, &mut warnings);
        let [named, clocks] = &warnings[..] else {
            panic!("{warnings:?}");
        };
        assert_eq!(
            (named.code(), clocks.code()),
            ("generator_late", "clocks_uncertain")
        );
        let text = named.to_string();
        assert!(text.starts_with("sinks on n3: generator late"), "{text}");
        let latency = GoalMetric::EventLatency(LatencyQuantile::P99);
        assert!(clocks.spoils(&latency) && !clocks.spoils(&GoalMetric::Cpu));
        assert!(named.spoils(&latency) && !named.spoils(&GoalMetric::Cpu));
    }
}
