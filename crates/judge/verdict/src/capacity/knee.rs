//! The load that gets the most throughput for its latency.

use stillwell_stats::Level;
use stillwell_stats::capacity::Observed;
use stillwell_stats::capacity::usl::Usl;

use super::{CapacityProbe, KneeFound};

/// The knee of what was measured, without what says nothing of the target.
///
/// # Errors
/// Why no law follows from the probes.
pub fn knee_of(probes: &[CapacityProbe], connections_max: u32) -> Result<KneeFound, String> {
    let kept = probes
        .iter()
        .filter(|probe| probe.observed == Observed::Held);
    let points: Vec<(f64, f64)> = kept
        .filter_map(|probe| Some((f64::from(probe.connections?), probe.reached)))
        .collect();
    let left_out = probes.len() - points.len();
    let law = Usl::fit(&points).map_err(|error| match left_out {
        0 => error.to_string(),
        _ => format!(
            "{error} ({left_out} of {} probes were left out)",
            probes.len()
        ),
    })?;
    Ok(KneeFound {
        knee: law.knee(Level::NINETY_FIVE),
        peak: law.peak(Level::NINETY_FIVE),
        law,
        connections_max,
        left_out,
    })
}
