//! Calibration with known changes: experiments with the embedded relay, whose
//! results are appended to a ledger file.
//!
//! The relay works an exact number of rounds for each event. Some rounds more are a
//! change whose size is known from reference experiments and from confirmation pairs.
//! All kinds of experiments advance in step, so a ledger is balanced wherever it stops.

mod background;
mod entry;
mod error;
mod known;
mod schedule;
mod table;
mod truth;

use std::path::Path;

use stillwell_config::{Loader, SuiteOverrides};
use stillwell_scope::{clock, explain};
use stillwell_units::{Moment, Nanos};
use stillwell_verdict::{ExperimentVerdict, GoalVerdict};

use self::background::BackgroundLoad;
use self::entry::Entry;
use self::known::KnownTrial;
use self::table::line;
use super::CalibrationHost;
use crate::{Local, Results, SuiteError, SuiteOptions, run_suite};

pub use background::use_cpu;
pub use entry::Ledger;
pub use error::LedgerError;
pub use table::markdown;

/// Experiments in a row that may fail before filling a ledger ends.
const FAILURES_MAX: u32 = 3;

/// Events of filling a ledger.
#[derive(Debug)]
pub enum LedgerProgress<'a> {
    /// An experiment ended and its line was written.
    Added(String),
    /// An experiment did not run; the next one follows.
    Failed(&'a LedgerError),
    /// The ledger has all experiments.
    Full,
}

/// Runs the experiments that `ledger` lacks, until it is full, until `until`, or until
/// the host's interrupt. Captures lie below `folder` while an experiment runs.
///
/// # Errors
/// The file cannot be written, or three experiments in a row failed.
pub fn fill(
    ledger: &mut Ledger,
    folder: &Path,
    until: Option<Moment>,
    host: &mut dyn CalibrationHost,
    report: &mut dyn FnMut(LedgerProgress<'_>),
) -> Result<(), LedgerError> {
    let mut failures = 0;
    while until.is_none_or(|until| clock::now() < until) {
        let Some(wanted) = schedule::next(ledger.entries()) else {
            report(LedgerProgress::Full);
            break;
        };
        let trial = KnownTrial::new(wanted, ledger.entries())?;
        let outcome = carry_out(&trial, folder, host);
        if host.interrupt().signal().is_some() {
            break;
        }
        match outcome {
            Ok(entries) => {
                for entry in &entries {
                    report(LedgerProgress::Added(line(entry)));
                }
                ledger.add(entries)?;
                failures = 0;
            }
            Err(reason) => {
                let error = LedgerError::Experiment {
                    kind: trial.kind.name(),
                    number: trial.number,
                    reason,
                };
                failures += 1;
                if failures == FAILURES_MAX {
                    return Err(error);
                }
                report(LedgerProgress::Failed(&error));
            }
        }
    }
    Ok(())
}

/// Runs `trial` to its end; its folder is removed afterwards.
fn carry_out(
    trial: &KnownTrial,
    folder: &Path,
    host: &mut dyn CalibrationHost,
) -> Result<Vec<Entry>, String> {
    let folder = folder.join(format!("{}-{}", trial.kind.name(), trial.number));
    let entries = compare(trial, &folder, host);
    // The ledger has the result; what cannot be removed does no harm.
    std::fs::remove_dir_all(&folder).ok();
    entries
}

fn compare(
    trial: &KnownTrial,
    folder: &Path,
    host: &mut dyn CalibrationHost,
) -> Result<Vec<Entry>, String> {
    let experiment = folder.join(trial.kind.name());
    let file = experiment.join("experiment.yaml");
    let written = std::fs::create_dir_all(&experiment);
    let written = written.and_then(|()| std::fs::write(&file, trial.experiment()));
    written.map_err(|error| format!("write {}: {error}", file.display()))?;
    let loaded = Loader::new(&stillwell_config::files::Disk, &[])
        .suite(&[file], &SuiteOverrides::default())
        .map_err(|diagnostics| diagnostics.render(false))?;
    let options = SuiteOptions {
        // The load lasts as long as the experiment.
        wait_for_quiet: !trial.kind.is_loaded(),
        ..host.options(&folder.join("results"))
    };
    let results = Results::new(options.results.clone());
    let load = trial
        .kind
        .is_loaded()
        .then(|| BackgroundLoad::start(&options.stillwell))
        .transpose()
        .map_err(|error| explain(&error))?;
    let interrupt = host.interrupt().clone();
    let ran = run_suite(
        &loaded.plan,
        &options,
        &mut Local,
        &interrupt,
        &mut |progress| host.progress(progress),
    );
    host.ended();
    if let Some(load) = load {
        load.end().map_err(|error| explain(&error))?;
    }
    let outcome = ran.map_err(|error: SuiteError| explain(&error))?;
    if let Some(problem) = outcome.most_severe() {
        return Err(problem.reason.clone());
    }
    let verdict = outcome.verdicts.first().ok_or("there is no verdict")?;
    let facts = results.host_facts(&loaded.plan);
    let goals = trial.goals();
    if goals.len() != verdict.goals.len() {
        return Err(format!(
            "of {} goals {} were judged",
            goals.len(),
            verdict.goals.len()
        ));
    }
    let judged = goals.iter().zip(&verdict.goals);
    let entries = judged.map(|((_, tolerance_share), goal)| {
        entry_of(
            trial,
            (verdict, goal),
            *tolerance_share,
            (outcome.elapsed, &facts),
        )
    });
    entries.collect()
}

/// The line of one goal of an experiment.
fn entry_of(
    trial: &KnownTrial,
    (verdict, goal): (&ExperimentVerdict, &GoalVerdict),
    tolerance_share: f64,
    (elapsed, facts): (Nanos, &[(String, String)]),
) -> Result<Entry, String> {
    let finite = |share: f64| share.is_finite().then_some(share);
    let part =
        |share: fn(stillwell_verdict::Change) -> f64| goal.search().1.map(share).and_then(finite);
    let (lower, upper) = (part(|change| change.lower), part(|change| change.upper));
    let estimate = part(|change| change.estimate);
    let covered = match (trial.truth_share, lower, upper) {
        (Some(truth), Some(lower), Some(upper)) => Some(lower <= truth && truth <= upper),
        _ => None,
    };
    let mut warnings: Vec<String> = verdict
        .not_used
        .iter()
        .flat_map(|run| run.warnings.iter().map(ToString::to_string))
        .collect();
    warnings.sort_unstable();
    warnings.dedup();
    if trial.kind.is_reference() && estimate.is_none() {
        return Err(format!(
            "the reference is {}: {warnings:?}",
            goal.verdict.name()
        ));
    }
    let confirmation = goal.confirmation.as_ref();
    let fact = |name: &str| {
        let mut facts = facts.iter();
        facts
            .find(|(fact, _)| fact == name)
            .map(|(_, value)| value.clone())
    };
    Ok(Entry {
        kind: trial.kind,
        number: trial.number,
        seed: trial.seed(),
        goal: goal.metric.name().into_owned(),
        secondary: !goal.primary,
        tolerance_share,
        design: trial.design().to_owned(),
        measure_seconds: tenths(verdict.measure),
        rounds: trial.rounds(),
        rounds_more: trial.rounds_more,
        load: trial.load(),
        searched: goal.search().0.name().to_owned(),
        stopped: verdict.stopped.map(|reason| reason.name().to_owned()),
        pairs: goal.pairs,
        pairs_confirming: confirmation.map_or(0, |fresh| fresh.pairs),
        pairs_discarded: verdict.pairs_discarded,
        estimate_share: estimate,
        lower_share: lower,
        upper_share: upper,
        pair_deviation: goal.pair_deviation,
        confirming_share: confirmation
            .and_then(|fresh| fresh.change)
            .and_then(|change| finite(change.estimate)),
        truth_share: trial.truth_share,
        covered,
        verdict: goal.verdict.name().to_owned(),
        seconds: tenths(elapsed),
        warnings,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        cpus: std::thread::available_parallelism().map_or(0, usize::from),
        cpu_model: fact("cpu model"),
        kernel: fact("kernel"),
    })
}

/// Seconds, rounded down to tenths.
fn tenths(length: Nanos) -> f64 {
    let tenths = u32::try_from(length.as_u64() / 100_000_000).unwrap_or(u32::MAX);
    f64::from(tenths) / 10.0
}
