//! Charts of trends: a metric over results, with its levels.

use stillwell_plan::GoalMetric;
use stillwell_plan::goal::Scale;
use stillwell_units::float_from_u64;
use stillwell_verdict::history::{Basis, Trend};

use crate::document::{AxisScale, Block, Chart, Curve, Mark, Sign};
use crate::words;

/// Returns the chart of a trend; `None` with a single result.
pub(super) fn trend(trend: &Trend) -> Option<Block> {
    if trend.points.len() < 2 {
        return None;
    }
    let values = trend.points.iter().enumerate();
    let values: Vec<(f64, f64)> = values
        .map(|(index, point)| (place(index), shown(trend, point.value)))
        .collect();
    let mut series = vec![("result".to_owned(), values)];
    let levels = levels(trend);
    if !levels.is_empty() {
        series.push(("level".to_owned(), levels));
    }
    let marks = trend.leads.iter().map(|lead| Mark {
        x: place(lead.index),
        y: shown(trend, lead.after),
        sign: match (lead.worse, lead.matters) {
            (true, true) => Sign::Worse,
            (false, true) => Sign::Better,
            (_, false) => Sign::Different,
        },
        text: format!(
            "level changed by {}",
            words::change_size(trend.scale, lead.change)
        ),
    });
    let title = words::goal_title(&trend.metric, trend.work);
    let (name, unit) = match trend.basis {
        Basis::Anchor => (format!("{title} against the fixed baseline"), "share"),
        Basis::Level => (title.into_owned(), unit(&trend.metric)),
    };
    Some(Block::Chart(Chart::Curve(Curve {
        scales: (AxisScale::Numbers, AxisScale::Linear),
        x: ("results in order of time".to_owned(), ""),
        y: (name, unit),
        series,
        marks: marks.collect(),
        ..Curve::default()
    })))
}

fn place(index: usize) -> f64 {
    float_from_u64(index as u64) + 1.0
}

/// Returns a value of the trend as a reader knows it: a number of the metric, or a change.
fn shown(trend: &Trend, value: f64) -> f64 {
    match (trend.scale, trend.basis) {
        (Scale::Difference, _) => value,
        (Scale::Ratio, Basis::Anchor) => value.exp_m1(),
        (Scale::Ratio, Basis::Level) => value.exp(),
    }
}

/// Returns a line with a step at each change of the level; empty without one.
fn levels(trend: &Trend) -> Vec<(f64, f64)> {
    let mut line = Vec::new();
    let mut start = 0;
    for lead in &trend.leads {
        let before = shown(trend, lead.before);
        line.extend([(place(start), before), (place(lead.index) - 0.5, before)]);
        start = lead.index;
    }
    if let Some(last) = trend.leads.last() {
        let after = shown(trend, last.after);
        let end = place(trend.points.len().saturating_sub(1));
        line.extend([(place(start) - 0.5, after), (end, after)]);
    }
    line
}

/// Returns the unit of a chart's axis.
const fn unit(metric: &GoalMetric) -> &'static str {
    match metric {
        GoalMetric::CpuPerEvent
        | GoalMetric::EventLatency(_)
        | GoalMetric::FirstByte(_)
        | GoalMetric::Latency(_)
        | GoalMetric::ServiceTime(_) => "ns",
        GoalMetric::EgressThroughput
        | GoalMetric::IngressThroughput
        | GoalMetric::Memory
        | GoalMetric::MemoryPeak => "B",
        GoalMetric::Duplicated
        | GoalMetric::ErrorShare
        | GoalMetric::Loss
        | GoalMetric::Status(_) => "ratio",
        GoalMetric::MemorySlope => "share",
        GoalMetric::Route(goal) => unit(goal.metric()),
        GoalMetric::Cpu
        | GoalMetric::InstructionsPerEvent
        | GoalMetric::RequestThroughput
        | GoalMetric::Series(_) => "",
    }
}
