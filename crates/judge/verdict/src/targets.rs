//! Several programs under one load, side by side.
//!
//! A number is reliable by the usual rules: a run that something other than its target
//! may have made is left out of the rows that this spoils, and a target that does
//! not keep what it claims to keep is out altogether. Who is better is decided by
//! blocks, in pairs of targets, with Holm's correction over all pairs of a row;
//! only targets that claim to keep the same are compared, and totals only where
//! all did the same work (docs/adr/0022).

mod delivery;
mod figures;
mod metric;
mod rank;

use stillwell_plan::TargetsPlan;
use stillwell_plan::targets::{ComparedTargetPlan, Delivery, Durability};
use stillwell_stats::{Level, one_sample};
use stillwell_units::count;

pub use self::delivery::DeliveryFound;
pub use self::figures::{TargetFigure, target_figures};
use self::metric::{Latencies, taken_bytes};
pub use self::metric::{Ranking, TargetsMetric};
use self::rank::Ranked;
pub use self::rank::{PairFound, Place};
use crate::limits;
use crate::run_note::RunNote;
use crate::summary::RunSummary;

/// Several programs under one load, side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetsVerdict {
    /// The experiment.
    pub name: String,
    /// Its title, in one line.
    pub summary: Option<String>,
    /// Blocks that were planned.
    pub blocks: u32,
    /// The programs, in the plan's order.
    pub columns: Vec<ColumnFound>,
    /// One for each metric of which anything is known.
    pub rows: Vec<TargetsRow>,
    /// Notes for readers of the whole table.
    pub remarks: Vec<String>,
}

/// One program.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnFound {
    /// Its name.
    pub name: String,
    /// The claimed durability.
    pub durability: Option<Durability>,
    /// The claimed delivery of events.
    pub expected: Option<Delivery>,
    /// The observed delivery.
    pub delivery: DeliveryFound,
    /// Its runs.
    pub runs: u32,
    /// Those that went to their end.
    pub completed: u32,
    /// Reason why none of its numbers may be compared, if so.
    pub invalid: Option<String>,
    /// Reason why its durability claim was not checked, if so.
    /// so.
    pub unchecked: Option<String>,
}

/// One row of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetsRow {
    /// The metric.
    pub metric: TargetsMetric,
    /// One for each column.
    pub cells: Vec<TargetsCell>,
    /// Comparisons of targets two by two.
    pub pairs: Vec<PairFound>,
    /// Reasons why some are not marked although a better and a worse exist, for each lot that
    /// claims to keep the same.
    pub unranked: Vec<String>,
}

/// The number of one target.
#[derive(Clone, Debug, PartialEq)]
pub enum TargetsCell {
    /// It was measured.
    Value {
        /// Mean over runs.
        mean: f64,
        /// Its 95 % interval, from two runs on.
        interval: Option<(f64, f64)>,
        /// Runs that it is based on.
        runs: u32,
        /// Rank of the target.
        place: Place,
    },
    /// It is unreliable.
    Invalid {
        /// Reason why not.
        reason: String,
        /// The mean that was measured all the same, if any was.
        mean: Option<f64>,
    },
    /// There is none.
    Missing {
        /// Reason why not.
        reason: String,
    },
}

/// Verdict on the `runs` of `plan`.
#[must_use]
pub fn judge_targets(plan: &TargetsPlan, runs: &[RunSummary]) -> TargetsVerdict {
    let of = |target: &ComparedTargetPlan| -> Vec<&RunSummary> {
        let runs_of_target = runs.iter().filter(|run| {
            let identity = run.identity.as_ref();
            identity.is_some_and(|identity| identity.variant == target.name)
        });
        runs_of_target.collect()
    };
    let runs: Vec<Vec<&RunSummary>> = plan.targets.iter().map(of).collect();
    let columns = plan.targets.iter().zip(&runs);
    let columns: Vec<ColumnFound> = columns.map(|(target, runs)| column(target, runs)).collect();
    let unequal = unequal_work(&columns, &runs);
    let latencies = Latencies::of(runs.iter().flatten().copied());
    let rows = TargetsMetric::ALL
        .into_iter()
        .filter_map(|metric| row((metric, latencies), &columns, &runs, &unequal))
        .collect();
    let mut remarks = left_out(&columns, &runs, latencies);
    if plan.runs < limits::PAIRS_MIN {
        remarks.push(format!(
            "at least {} blocks are needed to call a target better; this experiment has {}",
            limits::PAIRS_MIN,
            plan.runs
        ));
    }
    remarks.extend(not_isolated(&columns, &runs));
    let mut claims: Vec<Option<Durability>> = columns.iter().map(|left| left.durability).collect();
    claims.sort_unstable();
    claims.dedup();
    if claims.len() > 1 {
        remarks.push(
            "only targets with the same claim of durability are compared with each other"
                .to_owned(),
        );
    }
    TargetsVerdict {
        name: plan.name.clone(),
        summary: plan.summary.clone(),
        blocks: plan.runs,
        columns,
        rows,
        remarks,
    }
}

/// The exit code of these tables: 1 where events did not arrive as often as they
/// are to; 4 where a target has a number that is unreliable, where fewer of
/// its runs went to their end than planned, and where it is not known
/// whether events arrived as often as they are to; else 0.
#[must_use]
pub fn targets_exit_code(verdicts: &[TargetsVerdict]) -> u8 {
    let mut columns = verdicts.iter().flat_map(|verdict| &verdict.columns);
    if columns.any(|left| left.delivery.keeps(left.expected) == Some(false)) {
        return 1;
    }
    let has_invalid = verdicts.iter().any(|verdict| {
        let is_open = |left: &ColumnFound| {
            let is_unknown =
                left.expected.is_some() && left.delivery.keeps(left.expected).is_none();
            left.invalid.is_some() || is_unknown || left.completed < verdict.blocks
        };
        verdict.columns.iter().any(is_open)
            || verdict.rows.iter().any(|row| {
                let mut cells = row.cells.iter();
                cells.any(|cell| matches!(cell, TargetsCell::Invalid { .. }))
            })
    });
    if has_invalid { 4 } else { 0 }
}

fn column(plan: &ComparedTargetPlan, runs: &[&RunSummary]) -> ColumnFound {
    let completed = runs.iter().filter(|run| run.outcome.is_completed());
    let completed = count(completed.count());
    let failed = runs.iter().find(|run| !run.outcome.is_completed());
    let invalid = match (runs.is_empty(), completed, failed) {
        (true, ..) => Some("it was not run".to_owned()),
        (_, 0, Some(run)) => Some(run.warnings.first().map_or_else(
            || "none of its runs completed".to_owned(),
            ToString::to_string,
        )),
        _ => None,
    };
    let claim = plan.durability.filter(|_| invalid.is_none());
    let (unkept, unchecked) = match claim.map(|claim| claim_of(claim, runs)) {
        None | Some(Claim::Kept) => (None, None),
        Some(Claim::Unkept(reason)) => (Some(reason), None),
        Some(Claim::Unchecked(reason)) => (None, Some(reason)),
    };
    ColumnFound {
        name: plan.name.clone(),
        durability: plan.durability,
        expected: plan.delivery,
        delivery: DeliveryFound::of(runs),
        runs: count(runs.len()),
        completed,
        invalid: invalid.or(unkept),
        unchecked,
    }
}

/// Result of a durability claim.
enum Claim {
    Kept,
    /// It is unreliable, with the reason.
    Unkept(String),
    /// Nothing can be said of it, and why.
    Unchecked(String),
}

/// Result of the claim to keep things on disk, over all completed runs together.
fn claim_of(claim: Durability, runs: &[&RunSummary]) -> Claim {
    if claim == Durability::Memory {
        return Claim::Kept;
    }
    // Written and taken are of the same runs.
    let sum = |value: &dyn Fn(&RunSummary) -> Result<f64, String>| -> Option<f64> {
        let completed = runs.iter().filter(|run| run.outcome.is_completed());
        completed.map(|run| value(run).ok()).sum()
    };
    let of = |metric: TargetsMetric| sum(&|run: &RunSummary| metric.value(run, Latencies::Events));
    let unchecked = |what: &str| {
        let claim = claim.name();
        Claim::Unchecked(format!(
            "its claim of durability (`{claim}`) was not checked: {what} in every run"
        ))
    };
    let Some(taken) = sum(&taken_bytes).filter(|taken| *taken > 0.0) else {
        return unchecked("nothing was sent to it in the measured phase");
    };
    let Some(written) = of(TargetsMetric::DiskWritten) else {
        return unchecked("its writes were not recorded");
    };
    let share = written / taken;
    if share < limits::PERSISTED_SHARE_MIN {
        return Claim::Unkept(format!(
            "it claims `{}` but sent {share:.2} bytes to storage for each byte that it received",
            claim.name()
        ));
    }
    if claim != Durability::Synced {
        return Claim::Kept;
    }
    match of(TargetsMetric::FlushesPerMib) {
        Some(flushes) if flushes > 0.0 => Claim::Kept,
        Some(_) => Claim::Unkept(
            "it claims `synced`, and no disk of the host was flushed while it was measured"
                .to_owned(),
        ),
        None => unchecked("flushes of the host's disks were not recorded"),
    }
}

/// Of each column, why totals are not compared with those of others that claim to keep
/// the same: who took less used less.
fn unequal_work(columns: &[ColumnFound], runs: &[Vec<&RunSummary>]) -> Vec<Option<String>> {
    let groups = groups(columns);
    let of = |group: &usize| {
        let all = columns.iter().zip(runs).zip(&groups);
        let identity_of_run = all.filter(|(_, right)| *right == group);
        unequal_among(identity_of_run.map(|((column, runs), _)| (column, runs.as_slice())))
    };
    groups.iter().map(of).collect()
}

fn unequal_among<'c>(
    columns: impl Iterator<Item = (&'c ColumnFound, &'c [&'c RunSummary])>,
) -> Option<String> {
    let means: Vec<(f64, &str)> = columns
        .filter(|(column, _)| column.invalid.is_none())
        .filter_map(|(column, runs)| {
            let completed = runs.iter().filter(|run| run.outcome.is_completed());
            let bytes: Vec<f64> = completed.filter_map(|run| taken_bytes(run).ok()).collect();
            Some((mean(&bytes)?, column.name.as_str()))
        })
        .collect();
    let most = means
        .iter()
        .copied()
        .reduce(|left, right| if right.0 > left.0 { right } else { left })?;
    let least = means
        .iter()
        .copied()
        .reduce(|left, right| if right.0 < left.0 { right } else { left })?;
    (least.0 < most.0 * (1.0 - limits::EQUAL_WORK_SHARE)).then(|| {
        format!(
            "`{}` received {:.0} % of the bytes that `{}` received",
            least.1,
            100.0 * least.0 / most.0,
            most.1
        )
    })
}

/// One row; `None` where no target has such a number.
fn row(
    (metric, latencies): (TargetsMetric, Latencies),
    columns: &[ColumnFound],
    runs: &[Vec<&RunSummary>],
    unequal: &[Option<String>],
) -> Option<TargetsRow> {
    let mut ranked = Vec::new();
    let mut cells: Vec<TargetsCell> = Vec::new();
    let groups = groups(columns);
    let ranking = metric.ranking();
    let mut unranked: Vec<&str> = Vec::new();
    for (at, (column, runs)) in columns.iter().zip(runs).enumerate() {
        let (cell, by_block) = cell((metric, latencies), column, runs);
        let reason = unequal[at].as_deref();
        let reason = reason.filter(|_| ranking == Ranking::LowerForEqualWork);
        unranked.extend(reason.filter(|reason| !unranked.contains(reason)));
        if matches!(cell, TargetsCell::Value { .. }) && reason.is_none() {
            ranked.push(Ranked {
                column: at,
                group: groups[at],
                by_block,
            });
        }
        cells.push(cell);
    }
    let is_missing = |cell: &TargetsCell| matches!(cell, TargetsCell::Missing { .. });
    if cells.iter().all(is_missing) {
        return None;
    }
    let mut pairs = Vec::new();
    if ranking != Ranking::Neither {
        pairs = rank::pairs(metric, &ranked);
        for group in 0..columns.len() {
            let identity_of_run: Vec<&Ranked> =
                ranked.iter().filter(|left| left.group == group).collect();
            for (at, result) in rank::places(&identity_of_run, &pairs, ranking == Ranking::Higher) {
                if let Some(TargetsCell::Value { place, .. }) = cells.get_mut(at) {
                    *place = result;
                }
            }
        }
    }
    Some(TargetsRow {
        metric,
        cells,
        pairs,
        unranked: unranked.into_iter().map(str::to_owned).collect(),
    })
}

/// Of whom some runs, but not all, are left out of rows, and why: their numbers come from
/// the rest.
fn left_out(
    columns: &[ColumnFound],
    runs: &[Vec<&RunSummary>],
    latencies: Latencies,
) -> Vec<String> {
    let of = |(column, runs): (&ColumnFound, &Vec<&RunSummary>)| {
        let warnings = runs.iter().filter_map(|run| {
            let mut metrics = TargetsMetric::ALL.into_iter();
            let warning = metrics.find_map(|metric| run.warning_about(&metric.goal(latencies)))?;
            Some(warning.to_string())
        });
        let warnings: Vec<String> = warnings.collect();
        let is_some = (1..runs.len()).contains(&warnings.len());
        let first = warnings
            .first()
            .filter(|_| is_some && column.invalid.is_none())?;
        Some(format!(
            "`{}`: {} of {} runs left out of the comparison: {first}",
            column.name,
            warnings.len(),
            runs.len()
        ))
    };
    columns.iter().zip(runs).filter_map(of).collect()
}

/// Isolation features that runs did not have, each once: CPUs that the host lacks change what
/// a table shows. Names the targets, if only some are affected.
fn not_isolated(columns: &[ColumnFound], runs: &[Vec<&RunSummary>]) -> Vec<String> {
    let mut features: Vec<(String, Vec<&str>)> = Vec::new();
    for (column, runs) in columns.iter().zip(runs) {
        for note in runs.iter().flat_map(|run| &run.notes) {
            if !matches!(note, RunNote::NotIsolated { .. }) {
                continue;
            }
            let text = note.to_string();
            match features.iter_mut().find(|(known, _)| *known == text) {
                Some((_, names)) if names.last() == Some(&column.name.as_str()) => {}
                Some((_, names)) => names.push(&column.name),
                None => features.push((text, vec![&column.name])),
            }
        }
    }
    let with_runs = runs.iter().filter(|runs| !runs.is_empty()).count();
    let sentence = |(text, names): (String, Vec<&str>)| match names.len() == with_runs {
        true => text,
        false => format!("{}: {text}", names.join(", ")),
    };
    features.into_iter().map(sentence).collect()
}

/// For each column the first one that claims to keep the same.
fn groups(columns: &[ColumnFound]) -> Vec<usize> {
    let first = |left: &ColumnFound| {
        let mut all = columns.iter();
        all.position(|right| right.durability == left.durability)
    };
    columns.iter().filter_map(first).collect()
}

/// `None` of nothing.
fn mean(values: &[f64]) -> Option<f64> {
    let count = u32::try_from(values.len())
        .ok()
        .filter(|count| *count > 0)?;
    Some(values.iter().sum::<f64>() / f64::from(count))
}

/// The cell of one target, and its numbers by blocks.
fn cell(
    (metric, latencies): (TargetsMetric, Latencies),
    column: &ColumnFound,
    runs: &[&RunSummary],
) -> (TargetsCell, Vec<(u32, f64)>) {
    let goal = metric.goal(latencies);
    let (mut by_block, mut warning, mut missing) = (Vec::new(), None, None);
    let (mut unreliable, mut absent) = (Vec::new(), None);
    for run in runs {
        let result = column.invalid.clone();
        if let Some(result) = result.or_else(|| Some(run.warning_about(&goal)?.to_string())) {
            warning.get_or_insert(result);
            match metric.value(run, latencies) {
                Ok(value) => unreliable.extend(value.is_finite().then_some(value)),
                Err(reason) if column.invalid.is_none() && run.outcome.is_completed() => {
                    absent = absent.or(Some(reason));
                }
                Err(_) => {}
            }
            continue;
        }
        let block = run
            .identity
            .as_ref()
            .map_or(0, |identity_of_run| identity_of_run.pair);
        match metric.value(run, latencies) {
            Ok(value) if value.is_finite() => by_block.push((block, value)),
            Ok(_) => {}
            Err(reason) => drop(missing.get_or_insert(reason)),
        }
    }
    let values: Vec<f64> = by_block.iter().map(|(_, value)| *value).collect();
    if values.is_empty() {
        let cell = match (warning, missing) {
            (_, Some(reason)) => TargetsCell::Missing { reason },
            // There was nothing that could be unreliable.
            (Some(_), None) if unreliable.is_empty() && absent.is_some() => TargetsCell::Missing {
                reason: absent.unwrap_or_default(),
            },
            (Some(reason), None) => TargetsCell::Invalid {
                reason,
                mean: mean(&unreliable),
            },
            (None, None) => TargetsCell::Missing {
                reason: column
                    .invalid
                    .clone()
                    .unwrap_or_else(|| "it was not recorded".to_owned()),
            },
        };
        return (cell, Vec::new());
    }
    let sample = one_sample(&values, 0.0, Level::NINETY_FIVE).ok();
    let count = count(values.len());
    let cell = TargetsCell::Value {
        mean: mean(&values).unwrap_or(f64::NAN),
        interval: sample.map(|sample| (sample.mean.lower, sample.mean.upper)),
        runs: count,
        place: Place::None,
    };
    (cell, by_block)
}

#[cfg(test)]
mod tests;
