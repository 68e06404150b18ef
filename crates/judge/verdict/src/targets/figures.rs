//! The numbers behind the table of targets, run by run.

use stillwell_plan::TargetsPlan;

use super::TargetsMetric;
use super::metric::Latencies;
use crate::summary::RunSummary;

/// One number of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetFigure<'r> {
    /// The run.
    pub run: &'r RunSummary,
    /// The metric.
    pub metric: TargetsMetric,
    /// Value, in [`TargetsMetric::unit`].
    pub value: f64,
    /// Reason why it is unreliable, if it is.
    pub warning: Option<String>,
}

/// Every number that there is of the `runs` of `plan`, by runs and then in the order of
/// the table.
#[must_use]
pub fn target_figures<'r>(plan: &TargetsPlan, runs: &'r [RunSummary]) -> Vec<TargetFigure<'r>> {
    let latencies = Latencies::of(runs.iter());
    let is_known = |run: &&RunSummary| {
        run.identity.as_ref().is_some_and(|identity| {
            plan.targets
                .iter()
                .any(|target| target.name == identity.variant)
        })
    };
    let figures = runs.iter().filter(is_known).flat_map(|run| {
        TargetsMetric::ALL.into_iter().filter_map(move |metric| {
            let value = metric.value(run, latencies).ok();
            let warning = run.warning_about(&metric.goal(latencies));
            Some(TargetFigure {
                run,
                metric,
                value: value.filter(|value| value.is_finite())?,
                warning: warning.map(|warning| warning.to_string()),
            })
        })
    });
    figures.collect()
}

impl TargetsMetric {
    /// Its name for programs, as in reports: `cpu_per_gib`.
    #[must_use]
    pub fn name(self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(name)) => name,
            _ => unreachable!("a variant without fields is a word"),
        }
    }

    /// The unit of its numbers.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Accepted | Self::Delivered => "B/s",
            Self::CpuSystem | Self::CpuUser => "cores",
            Self::MemoryPeak
            | Self::DiskRead
            | Self::DiskWritten
            | Self::NetReceived
            | Self::NetSent => "B",
            Self::LatencyP50 | Self::LatencyP99 | Self::Drain | Self::Recovery => "s",
            Self::CpuPerGib => "s/GiB",
            Self::FlushesPerMib => "1/MiB",
            Self::Load
            | Self::TcpEstablished
            | Self::TcpOpened
            | Self::TcpTimeWait
            | Self::WrittenPerByte
            | Self::Loss
            | Self::Duplicated => "1",
        }
    }
}
