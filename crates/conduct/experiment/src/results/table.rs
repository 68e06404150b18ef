//! The numbers of all runs as a table of rows.

use std::sync::Arc;

use stillwell_capture::{ResultRow, ResultRun, RunOutcome, write_private, write_results};
use stillwell_metric::Unit;
use stillwell_plan::targets::{Delivery, Durability};
use stillwell_plan::{ExperimentPlan, GoalMetric, TargetsPlan};
use stillwell_verdict::across::unit_of;
use stillwell_verdict::{RunSummary, target_figures};

use super::Results;
use crate::{SuiteError, SuiteRecord, TargetsRecord};

/// The file within a results folder.
const TABLE: &str = "results.parquet";

impl Results {
    /// Writes the table of all runs of several targets to `results.parquet`, and returns
    /// its bytes. `name` is the name of the suite in it.
    ///
    /// # Errors
    /// A record cannot be read, or the file cannot be written.
    pub fn write_table(&self, name: &str) -> Result<Vec<u8>, SuiteError> {
        let record = self.targets_record()?;
        let mut rows = Vec::new();
        for plan in &record.plans {
            let runs = self.targets_summaries(plan)?;
            add(plan, &runs, &record, name, &mut rows);
        }
        self.keep_table(&rows)
    }

    /// The same of all runs of variants, by the numbers of goals; the name of a variant is
    /// that of a target.
    ///
    /// # Errors
    /// A record cannot be read, or the file cannot be written.
    pub fn write_variants_table(&self, name: &str) -> Result<Vec<u8>, SuiteError> {
        let record = self.record()?;
        let mut rows = Vec::new();
        for plan in &record.plan.experiments {
            for run in self.summaries(plan)? {
                add_variant_run(plan, &run, &record, name, &mut rows);
            }
        }
        self.keep_table(&rows)
    }

    fn keep_table(&self, rows: &[ResultRow]) -> Result<Vec<u8>, SuiteError> {
        let path = self.root().join(TABLE);
        let mut bytes = Vec::new();
        write_results(rows, &mut bytes)
            .and_then(|()| write_private(&path, &bytes))
            .map_err(|source| SuiteError::Write { path, source })?;
        Ok(bytes)
    }
}

fn add(
    plan: &TargetsPlan,
    runs: &[RunSummary],
    record: &TargetsRecord,
    name: &str,
    rows: &mut Vec<ResultRow>,
) {
    let mut known: Option<(&RunSummary, Arc<ResultRun>)> = None;
    for figure in target_figures(plan, runs) {
        let run = match &known {
            Some((of, run)) if std::ptr::eq(*of, figure.run) => Arc::clone(run),
            _ => {
                let run = Arc::new(run_of(plan, figure.run, record, name));
                known = Some((figure.run, Arc::clone(&run)));
                run
            }
        };
        rows.push(ResultRow {
            run,
            metric: figure.metric.name(),
            unit: figure.metric.unit().to_owned(),
            value: figure.value,
            warning: figure.warning,
        });
    }
}

fn add_variant_run(
    plan: &ExperimentPlan,
    run: &RunSummary,
    record: &SuiteRecord,
    name: &str,
    rows: &mut Vec<ResultRow>,
) {
    let identity = run.identity.as_ref();
    let variant = identity.map_or_else(String::new, |identity| identity.variant.clone());
    let mut binaries = record.binaries.iter();
    let binary = binaries.find(|item| item.experiment == plan.name && item.variant == variant);
    let row = Arc::new(ResultRun {
        suite: name.to_owned(),
        started_wall_millis: record.started_wall_millis,
        experiment: plan.name.clone(),
        version: binary.and_then(|binary| binary.revision.clone()),
        run: run.run.to_string(),
        block: identity.map_or(0, |identity| identity.pair),
        position: identity.map_or(0, |identity| identity.position),
        outcome: word(&run.outcome).to_owned(),
        durability: None,
        delivery: None,
        target: variant,
    });
    let goals = plan.goals.iter().map(|goal| &goal.metric);
    let goals = goals.filter(|metric| !run.values.contains_key(*metric));
    for metric in run.values.keys().chain(goals) {
        let Some(value) = run.value(metric) else {
            continue;
        };
        let (unit, factor) = base_unit(metric);
        rows.push(ResultRow {
            run: Arc::clone(&row),
            metric: metric.name().into_owned(),
            unit: unit.to_owned(),
            value: value * factor,
            warning: run.warning_about(metric).map(ToString::to_string),
        });
    }
}

/// Returns the unit of a goal's numbers in the table, and the factor to it.
const fn base_unit(metric: &GoalMetric) -> (&'static str, f64) {
    match (metric, unit_of(metric)) {
        (GoalMetric::Cpu, _) => ("cores", 1.0),
        (_, (Unit::Bytes, true)) => ("B/s", 1.0),
        (_, (Unit::Bytes, false)) => ("B", 1.0),
        (_, (Unit::Nanoseconds, _)) => ("s", 1e-9),
        (_, (Unit::Count, true)) => ("1/s", 1.0),
        (_, (Unit::Count | Unit::Ratio, _)) => ("1", 1.0),
        (_, (Unit::Unknown, _)) => ("", 1.0),
    }
}

fn run_of(plan: &TargetsPlan, run: &RunSummary, record: &TargetsRecord, name: &str) -> ResultRun {
    let identity = run.identity.as_ref();
    let target = identity.map_or_else(String::new, |identity| identity.variant.clone());
    let planned = plan.targets.iter().find(|plan| plan.name == target);
    let version = record.identities.get(&target);
    ResultRun {
        suite: name.to_owned(),
        started_wall_millis: record.started_wall_millis,
        experiment: plan.name.clone(),
        version: version.and_then(|identity| identity.version.clone()),
        run: run.run.to_string(),
        block: identity.map_or(0, |identity| identity.pair),
        position: identity.map_or(0, |identity| identity.position),
        outcome: word(&run.outcome).to_owned(),
        durability: planned
            .and_then(|plan| plan.durability.map(Durability::name))
            .map(str::to_owned),
        delivery: planned
            .and_then(|plan| plan.delivery.map(Delivery::name))
            .map(str::to_owned),
        target,
    }
}

const fn word(outcome: &RunOutcome) -> &'static str {
    match outcome {
        RunOutcome::Completed => "completed",
        RunOutcome::Unfinished => "unfinished",
        RunOutcome::CouldNotStart { .. } => "could_not_start",
        RunOutcome::NeverReady { .. } => "never_ready",
        RunOutcome::TargetDied { .. } => "target_died",
        RunOutcome::Interrupted { .. } => "interrupted",
        _ => "failed",
    }
}
