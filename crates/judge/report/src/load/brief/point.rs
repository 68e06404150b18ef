//! A saved load as a point of a history.

use stillwell_metric::Outcome;
use stillwell_plan::goal::LatencyQuantile;
use stillwell_plan::{GoalMetric, GoalPlan, WorkUnit};
use stillwell_units::float_from_u64;
use stillwell_verdict::history::{HistoryPoint, Measurement, Origin, Role};

use super::{BriefLoad, BriefTimes};

/// Reason why a saved load is no point of a history.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum LoadPointError {
    /// The file does not say when the load began.
    #[error(
        "the result has no `started_wall_millis`: it was written before `history` read saved loads"
    )]
    NoStart,
    /// Loads without a target would all be one series.
    #[error("the result names no target; save it as JSON with `load -o FILE.json`")]
    NoTarget,
    /// No request ended with a response.
    #[error("no request ended with a response")]
    NoResponse,
    /// The generator distorted the result.
    #[error("the result is unreliable: {warnings}; `load --validity off` would keep it")]
    Unreliable {
        /// Codes of the warnings, joined.
        warnings: String,
    },
}

impl BriefLoad {
    /// Returns the load as a point of a history. Loads with the same targets belong together; those
    /// with another rate, protocol or number of connections are other workloads. `name` names the
    /// file or folder.
    ///
    /// # Errors
    ///
    /// [`LoadPointError`] if the load has no figures to compare.
    pub fn history_point(&self, name: &str) -> Result<HistoryPoint, LoadPointError> {
        let time_millis = self.started_wall_millis.ok_or(LoadPointError::NoStart)?;
        if self.targets.is_empty() {
            return Err(LoadPointError::NoTarget);
        }
        if !self.reliable {
            let codes = self.warnings.iter().filter(|warning| warning.unreliable);
            let codes: Vec<_> = codes.map(|warning| warning.code.as_str()).collect();
            let warnings = codes.join(", ");
            return Err(LoadPointError::Unreliable { warnings });
        }
        let latency = self.latency.as_ref().ok_or(LoadPointError::NoResponse)?;
        Ok(HistoryPoint {
            experiment: self.targets.join(" "),
            comparison: "comparison".to_owned(),
            work: WorkUnit::Requests,
            origin: Origin {
                time_millis,
                run: name.to_owned(),
                workload: self.workload(),
                ..Origin::default()
            },
            measurements: self.measurements(latency),
        })
    }

    /// Describes what was requested; results of another description are not compared.
    fn workload(&self) -> String {
        format!(
            "{} {} {:?} {} {}",
            self.protocol,
            self.open_loop,
            // A load that ends by its requests is measured over another time in each run.
            self.rate_per_second.or(self.requested_per_second),
            self.workers,
            self.connections
        )
    }

    fn measurements(&self, latency: &BriefTimes) -> Vec<Measurement> {
        let answered = [Outcome::Ok, Outcome::Status3xx].map(|outcome| {
            let count = self.outcomes.get(outcome.name());
            count.copied().unwrap_or_default()
        });
        let answered = float_from_u64(answered[0].saturating_add(answered[1]));
        let mut values = vec![
            (GoalMetric::Latency(LatencyQuantile::P50), latency.p50 * 1e9),
            (GoalMetric::Latency(LatencyQuantile::P99), latency.p99 * 1e9),
            (GoalMetric::ErrorShare, self.error_share),
            (GoalMetric::RequestThroughput, answered / self.duration),
            (GoalMetric::Latency(LatencyQuantile::P90), latency.p90 * 1e9),
            (
                GoalMetric::Latency(LatencyQuantile::P999),
                latency.p999 * 1e9,
            ),
        ];
        if let Some(times) = &self.service_time {
            values.extend([
                (
                    GoalMetric::ServiceTime(LatencyQuantile::P50),
                    times.p50 * 1e9,
                ),
                (
                    GoalMetric::ServiceTime(LatencyQuantile::P99),
                    times.p99 * 1e9,
                ),
            ]);
        }
        let numbered = values.into_iter().enumerate();
        numbered
            .filter_map(|(place, (metric, value))| measurement(place, metric, value))
            .collect()
    }
}

/// Returns one value as a measurement: the first is the primary goal, the next three are goals.
fn measurement(place: usize, metric: GoalMetric, value: f64) -> Option<Measurement> {
    let is_usable = value.is_finite() && (value > 0.0 || metric == GoalMetric::ErrorShare);
    let goal = GoalPlan::new(metric);
    is_usable.then_some(Measurement {
        metric: goal.metric,
        direction: goal.direction,
        tolerance: goal.tolerance,
        role: match place {
            0 => Role::Primary,
            1..4 => Role::Secondary,
            _ => Role::Recorded,
        },
        pairs: 1,
        baseline_mean: value,
        comparison_mean: value,
        delta: 0.0,
        deviation: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::fixture;

    fn saved() -> BriefLoad {
        let mut load = BriefLoad::of(&fixture::report());
        load.reliable = true;
        load
    }

    #[test]
    fn goals_of_a_saved_load_come_first_and_the_median_is_the_primary_one() {
        let point = saved().history_point("night").unwrap();
        let goals = point
            .measurements
            .iter()
            .filter(|measured| measured.role != Role::Recorded);
        let names: Vec<_> = goals.map(|goal| goal.metric.name().into_owned()).collect();
        assert_eq!(
            names,
            [
                "latency_p50",
                "latency_p99",
                "error_share",
                "request_throughput"
            ]
        );
        assert_eq!(point.measurements[0].role, Role::Primary);
        assert_eq!(point.origin.run, "night");
    }

    #[test]
    fn loads_without_a_start_or_a_target_and_unreliable_loads_are_no_points() {
        let mut load = saved();
        load.started_wall_millis = None;
        assert_eq!(load.history_point(""), Err(LoadPointError::NoStart));
        let mut load = saved();
        load.targets.clear();
        assert_eq!(load.history_point(""), Err(LoadPointError::NoTarget));
        let mut load = saved();
        load.reliable = false;
        let error = load.history_point("").unwrap_err();
        assert!(
            matches!(error, LoadPointError::Unreliable { .. }),
            "{error}"
        );
    }

    #[test]
    fn another_rate_is_another_workload() {
        let load = saved();
        let mut faster = load.clone();
        faster.rate_per_second = Some(1e6);
        let workload = |load: &BriefLoad| load.history_point("").unwrap().origin.workload;
        assert_ne!(workload(&load), workload(&faster));
        // A load of so many requests is measured over another time in each run.
        let mut longer = load.clone();
        longer.requested_per_second = longer.requested_per_second.map(|rate| 0.999 * rate);
        assert_eq!(workload(&load), workload(&longer));
        // Files of earlier versions have no other rate.
        (longer.rate_per_second, longer.requested_per_second) = (None, load.rate_per_second);
        assert_eq!(workload(&load), workload(&longer));
    }
}
