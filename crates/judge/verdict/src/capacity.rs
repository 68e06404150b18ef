//! Judgement of probes of capacity: whether each kept its bounds, broke them, or says
//! nothing, and what all of them come to.
//!
//! [`judge_run_probe`] judges a probe that was a run, [`judge_load_probe`]
//! one that was a load; both end in [`judge_probe`]. [`knee_of`] finds the load that gets
//! the most throughput for its latency.

mod growth;
mod judge;
mod knee;
mod load;
mod run;

use stillwell_plan::capacity::{CapacityBound, CapacityFigure};
use stillwell_stats::capacity::usl::{Usl, UslPoint};
use stillwell_stats::capacity::{CapacityFound, Observed, Purpose};

pub use growth::{LatencyGrowth, latency_growth};
pub use judge::{ProbeEvidence, figure_text, judge_probe};
pub use knee::knee_of;
pub use load::{LoadProbeCounts, judge_load_probe};
pub use run::{ProbeLoad, judge_run_probe, quantile_of};

/// Result of a search.
#[derive(Clone, Debug, PartialEq)]
pub enum CapacityAnswer {
    /// The highest rate at which bounds hold.
    Bounds(CapacityFound),
    /// The load that gets the most for its waiting; or why none was found.
    Knee(Result<KneeFound, String>),
}

/// The universal scalability law of what was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct KneeFound {
    /// The law.
    pub law: Usl,
    /// Load at which throughput by latency is largest; `None` for a straight line.
    pub knee: Option<UslPoint>,
    /// Load at which throughput is largest; `None` where it grows for ever.
    pub peak: Option<UslPoint>,
    /// The highest load that was tried.
    pub connections_max: u32,
    /// Probes that are no part of the law: they broke a bound, or say nothing of the
    /// target.
    pub left_out: usize,
}

/// One probe.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityProbe {
    /// Purpose; `None` in a search for the knee.
    pub purpose: Option<Purpose>,
    /// Requested units per second; `None` for as fast as responses arrive.
    pub rate: Option<f64>,
    /// Connections over which they went, where that is varied.
    pub connections: Option<u32>,
    /// Units begun each second.
    pub reached: f64,
    /// Result of it.
    pub observed: Observed,
    /// Reason, where it is not plain: the bound that failed, or the value that was
    /// the limit.
    pub why: Option<String>,
    /// The measured metric, in the order of [`CapacityProbe::COLUMNS`]: nanoseconds
    /// and shares; infinite where it never came, `None` where it was not measured.
    pub figures: Vec<(CapacityFigure, Option<f64>)>,
}

impl CapacityProbe {
    /// Figures that are reported for each probe, besides the bounded ones.
    pub const COLUMNS: [CapacityFigure; 5] = [
        CapacityFigure::Latency(0.5),
        CapacityFigure::Latency(0.99),
        CapacityFigure::Errors,
        CapacityFigure::Loss,
        CapacityFigure::Throughput,
    ];

    /// Value of `figure`.
    #[must_use]
    pub fn figure(&self, figure: CapacityFigure) -> Option<f64> {
        let item = self.figures.iter().find(|item| item.0 == figure);
        item.and_then(|item| item.1)
    }
}

/// The figures of a probe with these bounds, each once or more: the usual ones first.
fn figures(
    bounds: &[CapacityBound],
    value: impl Fn(CapacityFigure) -> Option<f64>,
) -> Vec<(CapacityFigure, Option<f64>)> {
    let mut figures: Vec<CapacityFigure> = CapacityProbe::COLUMNS.to_vec();
    figures.extend(bounds.iter().map(|bound| bound.figure));
    figures
        .into_iter()
        .map(|figure| (figure, value(figure)))
        .collect()
}
