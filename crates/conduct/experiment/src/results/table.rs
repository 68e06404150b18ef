//! The numbers of several subjects as a table of rows, in a file and in a store.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use stillwell_capture::{ResultRow, ResultRun, RunOutcome, write_results};
use stillwell_experiment::{Results, SubjectsRecord};
use stillwell_plan::{Delivery, Durability, SubjectsPlan};
use stillwell_verdict::{RunSummary, subject_figures};

/// The file within a results folder.
pub(crate) const TABLE: &str = "results.parquet";

/// Writes the table of what lies in `results` beside it, and gives its bytes.
///
/// # Errors
/// A record that cannot be read; a file that cannot be written.
pub(crate) fn keep(results: &Results, name: &str) -> anyhow::Result<Vec<u8>> {
    let record = results.subjects_record()?;
    let mut rows = Vec::new();
    for plan in &record.plans {
        let runs = results.subjects_summaries(plan)?;
        add(plan, &runs, &record, name, &mut rows);
    }
    let mut bytes = Vec::new();
    write_results(&rows, &mut bytes)?;
    let path: PathBuf = results.root().join(TABLE);
    std::fs::write(&path, &bytes).with_context(|| format!("write {}", path.display()))?;
    Ok(bytes)
}

fn add(
    plan: &SubjectsPlan,
    runs: &[RunSummary],
    record: &SubjectsRecord,
    name: &str,
    rows: &mut Vec<ResultRow>,
) {
    let mut known: Option<(&RunSummary, Arc<ResultRun>)> = None;
    for figure in subject_figures(plan, runs) {
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

fn run_of(plan: &SubjectsPlan, run: &RunSummary, record: &SubjectsRecord, name: &str) -> ResultRun {
    let identity = run.identity.as_ref();
    let subject = identity.map_or_else(String::new, |own| own.variant.clone());
    let contender = plan.contenders.iter().find(|one| one.name == subject);
    let version = record.identities.get(&subject);
    ResultRun {
        lab: name.to_owned(),
        started_wall_millis: record.started_wall_millis,
        experiment: plan.name.clone(),
        version: version.and_then(|own| own.version.clone()),
        run: run.run.to_string(),
        block: identity.map_or(0, |own| own.pair),
        position: identity.map_or(0, |own| own.position),
        outcome: word(&run.outcome).to_owned(),
        durability: contender
            .and_then(|one| one.durability.map(Durability::name))
            .map(str::to_owned),
        delivery: contender
            .and_then(|one| one.delivery.map(Delivery::name))
            .map(str::to_owned),
        subject,
    }
}

const fn word(outcome: &RunOutcome) -> &'static str {
    match outcome {
        RunOutcome::Completed => "completed",
        RunOutcome::Unfinished => "unfinished",
        RunOutcome::CouldNotStart { .. } => "could_not_start",
        RunOutcome::NeverReady { .. } => "never_ready",
        RunOutcome::SubjectDied { .. } => "target_died",
        RunOutcome::Interrupted { .. } => "interrupted",
        _ => "failed",
    }
}
