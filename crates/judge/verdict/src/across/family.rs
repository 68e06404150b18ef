//! One correction for all experiments of a comparison.

use stillwell_stats::holm;
use stillwell_units::count;

use super::ComparisonRow;
use crate::budget::ERROR_RATE;
use crate::rule::Verdict;

/// Takes back each regression of a primary metric that Holm's correction over all primary metrics does
/// not leave: of many experiments without a change, some look regressed by chance.
pub fn apply_holm<'r>(rows: impl Iterator<Item = &'r mut ComparisonRow>) {
    let mut primaries: Vec<&mut ComparisonRow> = rows.filter(|row| row.primary).collect();
    let p_values = primaries.iter().map(|row| row.finding.p_value());
    let p_values: Vec<f64> = p_values.map(|p| p.unwrap_or(f64::NAN)).collect();
    let tests = count(p_values.iter().filter(|p| !p.is_nan()).count());
    if tests < 2 {
        return;
    }
    for (row, p) in primaries.iter_mut().zip(holm(&p_values)) {
        if row.verdict == Some(Verdict::Regressed) && p > ERROR_RATE {
            row.verdict = Some(Verdict::Different);
            row.reason = Some(format!(
                "regressed by itself, but not by Holm's correction for {tests} experiments; compare more runs"
            ));
        }
    }
}
