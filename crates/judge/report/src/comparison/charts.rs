//! Charts of a comparison: the runs of both sides in their order, and lines over time.

use stillwell_metric::Unit;
use stillwell_plan::goal::Scale;
use stillwell_units::float_from_u64;

use super::{ComparisonGroup, ComparisonRow, Finding};
use crate::document::{AxisScale, Block, Chart, Curve, Medium, PairSeries};
use crate::suite::charts::stage;

/// Returns the charts of one group under a heading of `level`; `None` if there are none.
pub(super) fn of_group(group: &ComparisonGroup, level: u8) -> Option<Block> {
    let row = group.rows.first();
    let runs = row.and_then(|row| pairs(row).or_else(|| runs(row)));
    let curves = group.curves.iter().cloned().map(Chart::Curve);
    let charts: Vec<Block> = runs.into_iter().chain(curves).map(Block::Chart).collect();
    let title = match group.curves.is_empty() {
        true => "Run by run",
        false => "Over time and by percentile",
    };
    let section = Block::section(level, title, charts.clone());
    (!charts.is_empty()).then(|| Block::On(Medium::Browser, vec![section]))
}

/// Returns the change of each pair in the order of the runs.
fn pairs(row: &ComparisonRow) -> Option<Chart> {
    let Finding::Paired { pairs, .. } = row.finding else {
        return None;
    };
    let (baseline, comparison) = (&row.baseline.values, &row.comparison.values);
    let number = usize::try_from(pairs).ok()?;
    // Values of runs that have no partner are in no order of pairs.
    if baseline.len() != number || comparison.len() != number {
        return None;
    }
    let changes = baseline.iter().zip(comparison);
    let changes = changes.map(|(before, after)| match row.scale {
        Scale::Ratio => after / before - 1.0,
        Scale::Difference => after - before,
    });
    let changes: Vec<f64> = changes.collect();
    changes.iter().all(|change| change.is_finite()).then(|| {
        Chart::Pairs(PairSeries {
            name: row.metric.clone(),
            stages: vec![stage("pairs", number, row.scale, &changes)],
            tolerance: row.tolerance.share(),
            scale: row.scale,
        })
    })
}

/// Returns the number of each run of both sides, in the order of the runs.
fn runs(row: &ComparisonRow) -> Option<Chart> {
    let line = |values: &[f64]| {
        let places = (1_u64..).map(float_from_u64);
        places.zip(values.iter().copied()).collect::<Vec<_>>()
    };
    let sides = [
        ("baseline", &row.baseline.values),
        ("comparison", &row.comparison.values),
    ];
    if sides.iter().any(|(_, values)| values.len() < 2) {
        return None;
    }
    let unit = match row.unit {
        Unit::Bytes => "B",
        Unit::Nanoseconds => "ns",
        Unit::Ratio => "ratio",
        Unit::Count | Unit::Unknown => "",
    };
    let per = if row.per_second { " per second" } else { "" };
    Some(Chart::Curve(Curve {
        scales: (AxisScale::Numbers, AxisScale::Linear),
        x: ("run".to_owned(), ""),
        y: (format!("{}{per}", row.metric), unit),
        series: sides
            .map(|(name, values)| (name.to_owned(), line(values)))
            .into(),
        ..Curve::default()
    }))
}
