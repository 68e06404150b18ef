//! Checks whose series a run never records.

use std::ops::RangeInclusive;

use stillwell_metric::{Metric, catalogue};

use crate::observer::KernelSeries;
use crate::sink::IntakeService;
use crate::{CheckPlan, GoalMetric, RunPlan, SinkProtocol, TargetKind};

impl RunPlan {
    /// Returns the checks that no run of this plan can measure, each with the reason.
    #[must_use]
    pub fn unmeasurable_checks(&self) -> Vec<(&CheckPlan, String)> {
        let checks = self.checks.iter();
        checks
            .filter_map(|check| Some((check, self.missing_for(check)?)))
            .collect()
    }

    /// Returns the reason why `check` cannot be measured.
    fn missing_for(&self, check: &CheckPlan) -> Option<String> {
        let (name, id) = (check.series.metric.as_str(), check.series.id.as_deref());
        let is_goal = GoalMetric::ALL.iter().any(|goal| goal.name() == name);
        if is_goal && id.is_none() {
            return None;
        }
        let Some(place) = place_of(name) else {
            return self.missing_for_unlisted(name);
        };
        let is_of_generator = places(catalogue::BYTES_WRITTEN, catalogue::ACK_QUESTIONS_FAILED);
        let is_of_generator = is_of_generator.contains(&place);
        let is_of_sink = places(catalogue::BYTES_RECEIVED, catalogue::POINTS_SKIPPED);
        let is_of_sink = is_of_sink.contains(&place);
        let generators = || self.generators.iter().map(|part| part.id.as_str());
        let sinks = || self.sinks.iter().map(|part| part.id.as_str());
        let is_part =
            |wanted: &str| generators().any(|id| id == wanted) || sinks().any(|id| id == wanted);
        match id {
            _ if is_of_generator && self.generators.is_empty() => {
                Some("there is no generator".to_owned())
            }
            _ if is_of_sink && self.sinks.is_empty() => Some("there is no sink".to_owned()),
            Some(id) if (is_of_generator || is_of_sink) && !is_part(id) => {
                Some(format!("no generator and no sink is called `{id}`"))
            }
            _ => None,
        }
    }

    /// The same for a name outside of the catalogue: the kernel's, or the target's own.
    fn missing_for_unlisted(&self, name: &str) -> Option<String> {
        let mut kernel = KernelSeries::default();
        kernel.request(name);
        if !kernel.is_none() {
            let has_target = !matches!(self.target.kind, TargetKind::None);
            return (!has_target && !kernel.vmstat).then(|| "there is no target".to_owned());
        }
        let receives_series = self.sinks.iter().any(|sink| {
            let SinkProtocol::Intake { service, .. } = &sink.protocol else {
                return false;
            };
            matches!(service, IntakeService::Datadog { .. })
        });
        let is_recorded = receives_series || !self.observer.scrapes.is_empty();
        (!is_recorded).then(|| {
            "Stillwell does not record it, and no page of the target's metrics is scraped"
                .to_owned()
        })
    }
}

fn place_of(name: &str) -> Option<usize> {
    catalogue::ALL.iter().position(|metric| metric.name == name)
}

/// Returns the places in the catalogue from `first` to `last`; the catalogue lists the metrics
/// of each part together.
fn places(first: Metric, last: Metric) -> RangeInclusive<usize> {
    let place = |metric: Metric| place_of(metric.name).unwrap_or_default();
    place(first)..=place(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Aggregation, SeriesSelector};
    use crate::estimate::tests::experiment;
    use crate::{GoalPlan, StoppingPlan};

    fn reason(run_plan: &mut RunPlan, metric: &str, id: Option<&str>) -> Option<String> {
        run_plan.checks = vec![CheckPlan {
            name: "check".to_owned(),
            description: None,
            series: SeriesSelector {
                metric: metric.to_owned(),
                id: id.map(str::to_owned),
                aggregation: Aggregation::Each,
            },
            upper: Some(1.0),
            lower: None,
        }];
        let reasons = run_plan.unmeasurable_checks();
        reasons.into_iter().next().map(|(_, reason)| reason)
    }

    #[test]
    fn a_series_without_its_part_is_never_measured() {
        let mut run_plan = experiment(StoppingPlan::DEFAULT).run_plan;
        for (metric, id, words) in [
            ("bytes_written", None, "no generator"),
            ("connections_open", None, "no sink"),
            ("target_requests", None, "no page"),
        ] {
            let reason = reason(&mut run_plan, metric, id).expect(metric);
            assert!(reason.contains(words), "{metric}: {reason}");
        }
        for metric in ["total_rss_bytes", "loss", "vmstat.pgfault"] {
            assert_eq!(reason(&mut run_plan, metric, None), None, "{metric}");
        }
    }

    #[test]
    fn instructions_are_counted_where_a_check_or_a_goal_needs_them() {
        let mut run_plan = experiment(StoppingPlan::DEFAULT).run_plan;
        let is_counted = |run_plan: &RunPlan, goals: &[GoalPlan]| {
            run_plan.clone().recording(goals).observer.instructions
        };
        assert!(!is_counted(&run_plan, &[]));
        for (goal, expected) in [
            ("instructions_per_event", true),
            ("series:target_instructions:rate", true),
            ("cpu_per_event", false),
            ("series:target_cpu:rate", false),
        ] {
            let goal = GoalPlan::new(goal.parse().unwrap());
            assert_eq!(is_counted(&run_plan, std::slice::from_ref(&goal)), expected);
        }
        for (check, expected) in [
            ("instructions_per_event", true),
            ("target_instructions", true),
            ("total_rss_bytes", false),
        ] {
            assert_eq!(reason(&mut run_plan, check, None), None, "{check}");
            assert_eq!(is_counted(&run_plan, &[]), expected, "{check}");
        }
    }

    #[test]
    fn checks_request_the_series_of_the_kernel_that_they_bound() {
        let mut run_plan = experiment(StoppingPlan::DEFAULT).run_plan;
        let cgroup = "cgroup.v2.cpu.stat.usage_usec";
        assert!(reason(&mut run_plan, cgroup, None).is_some());
        let kernel = run_plan.clone().recording(&[]).observer.kernel;
        assert!(kernel.cgroup && !kernel.processes);
        assert!(reason(&mut run_plan, "total_cpu_usage_millicores", None).is_some());
        assert!(run_plan.recording(&[]).observer.kernel.processes);
    }
}
