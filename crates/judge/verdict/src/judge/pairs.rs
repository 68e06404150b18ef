//! The pairs of one goal in one stage.

use stillwell_capture::RunStage;
use stillwell_plan::GoalMetric;
use stillwell_units::count;

use super::table::{Row, RunTable};
use crate::limits;
use crate::summary::{Measured, RunSummary};

/// The pairs of one goal of one comparison in one stage, in the order of their
/// numbers.
#[derive(Debug, Default)]
pub(super) struct Pairs<'a> {
    /// The numbers of each valid pair: (baseline, comparison).
    pub(super) values: Vec<(f64, f64)>,
    /// Their runs.
    pub(super) runs: Vec<(&'a RunSummary, &'a RunSummary)>,
    /// The numbers of each pair that has both, reliable or not.
    pub(super) measured: Vec<(f64, f64)>,
    /// Pairs of which a run says nothing about the goal.
    pub(super) discarded: u32,
    /// True if runs that went well never had a number of the goal.
    pub(super) never_measured: bool,
    baseline_rejected: Vec<String>,
    comparison_rejected: Vec<String>,
}

impl<'a> Pairs<'a> {
    pub(super) fn of(
        metric: &GoalMetric,
        [baseline, comparison]: [&str; 2],
        stage: RunStage,
        table: &RunTable<'a>,
    ) -> Self {
        let mut pairs = Self::default();
        let mut without = 0;
        for pair in table.pairs_of(stage) {
            let rows = [baseline, comparison].map(|variant| table.row(stage, pair, variant));
            let values = rows.map(|row| row.map(|row| usable(row, metric, table)));
            if let ([Some(first), Some(second)], [Some(Ok(left)), Some(Ok(right))]) =
                (rows, &values)
            {
                pairs.values.push((*left, *right));
                pairs.runs.push((first.run, second.run));
            }
            let numbers = rows.map(|row| row.and_then(|row| row.run.value(metric)));
            if let [Some(left), Some(right)] = numbers {
                pairs.measured.push((left, right));
            }
            let is_silent =
                |row: &Row<'_>| row.run.outcome.is_completed() && row.run.value(metric).is_none();
            if rows.iter().all(|row| row.is_some_and(is_silent)) {
                without += 1;
            }
            let [first, second] = values.map(|value| value.and_then(Result::err));
            if first.is_some() || second.is_some() {
                pairs.discarded += 1;
            }
            pairs.baseline_rejected.extend(first);
            pairs.comparison_rejected.extend(second);
        }
        pairs.never_measured = pairs.values.is_empty() && without >= limits::PAIRS_NEVER_MEASURED;
        pairs
    }

    /// Number of valid pairs.
    pub(super) fn valid(&self) -> u32 {
        count(self.values.len())
    }

    /// Number of runs by variant that were left out, and the reason for the first.
    pub(super) fn rejected(&self, variants: [&str; 2]) -> Option<String> {
        let [baseline, comparison] = variants;
        let first = self
            .comparison_rejected
            .first()
            .or_else(|| self.baseline_rejected.first())?;
        let sides = [
            (baseline, self.baseline_rejected.len()),
            (comparison, self.comparison_rejected.len()),
        ];
        let sides: Vec<String> = sides
            .into_iter()
            .filter(|(_, runs)| *runs > 0)
            .map(|(name, runs)| match runs {
                1 => format!("1 run of {name}"),
                _ => format!("{runs} runs of {name}"),
            })
            .collect();
        Some(format!("{} discarded ({first})", sides.join(" and ")))
    }
}

/// The run's number of `metric`, or the reason why it has none that is reliable.
pub(super) fn usable(
    row: &Row<'_>,
    metric: &GoalMetric,
    table: &RunTable<'_>,
) -> Result<f64, String> {
    let value = alone(row.run, metric, table)?;
    match row.pair_warnings.first() {
        Some(warning) => Err(warning.to_string()),
        None => Ok(value),
    }
}

/// The same, for any partner of the pair.
pub(super) fn alone(
    run: &RunSummary,
    metric: &GoalMetric,
    table: &RunTable<'_>,
) -> Result<f64, String> {
    if let Some(warning) = run.warning_about(metric) {
        return Err(warning.to_string());
    }
    if let Some(warmup) = table.warmup().filter(|warmup| *warmup != run.warmup) {
        return Err(format!(
            "its summary excludes the first {} of load instead of {warmup}",
            run.warmup
        ));
    }
    match run.measured(metric) {
        Measured::Value(value) => Ok(value),
        Measured::Missing { reason } => Err(format!("{metric} is missing: {reason}")),
    }
}

/// True if the comparison gave nothing at all in every pair, and the baseline
/// something in every pair: a change of −100 % that has no logarithm.
pub(crate) fn is_lost(values: &[(f64, f64)]) -> bool {
    let lost = |(baseline, comparison): &(f64, f64)| *baseline > 0.0 && *comparison <= 0.0;
    !values.is_empty() && values.iter().all(lost)
}
