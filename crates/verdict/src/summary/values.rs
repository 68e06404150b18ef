//! The number of each goal.

use std::collections::BTreeMap;

use stillwell_capture::Capture;
use stillwell_metric::catalogue;
use stillwell_plan::{GoalMetric, SubjectKind};

use super::{Measured, RunFigures};
use crate::window::Window;

pub(super) fn values(
    capture: &Capture,
    window: &Result<Window<'_>, &'static str>,
    figures: &RunFigures,
) -> BTreeMap<GoalMetric, Measured> {
    let value = |metric| match window {
        Ok(window) => measured(metric, capture, window, figures),
        Err(reason) => Err(*reason),
    };
    let measured = |metric| match value(metric) {
        Ok(value) => Measured::Value(value),
        Err(reason) => Measured::Missing {
            reason: reason.to_owned(),
        },
    };
    let all = GoalMetric::ALL.into_iter();
    all.map(|metric| (metric, measured(metric))).collect()
}

fn measured(
    metric: GoalMetric,
    capture: &Capture,
    window: &Window<'_>,
    figures: &RunFigures,
) -> Result<f64, &'static str> {
    let plan = &capture.manifest.plan;
    let subject = match plan.subject.kind {
        SubjectKind::None => Err("the rig has no subject"),
        SubjectKind::Child(_) | SubjectKind::Pid(_) => Ok(()),
    };
    let cpu = || {
        subject?;
        window
            .grown(catalogue::SUBJECT_CPU, |_| true)
            .ok_or("the subject's CPU time was not recorded")
    };
    let value = match metric {
        GoalMetric::IngressThroughput if plan.generators.is_empty() => {
            return Err("the rig has no generator");
        }
        GoalMetric::EgressThroughput if plan.sinks.is_empty() => {
            return Err("the rig has no sink");
        }
        GoalMetric::IngressThroughput => window
            .per_second(catalogue::BYTES_WRITTEN, |_| true)
            .ok_or("what generators sent was not recorded")?,
        GoalMetric::EgressThroughput => window
            .per_second(catalogue::BYTES_RECEIVED, |_| true)
            .or_else(|| window.per_second(catalogue::TOTAL_BYTES_RECEIVED, |_| true))
            .ok_or("what sinks received was not recorded")?,
        GoalMetric::CpuPerEvent => {
            let cpu = cpu()?;
            let events = figures.measured.events_sent.filter(|events| *events > 0.0);
            cpu / events.ok_or("no event was sent while measuring")?
        }
        GoalMetric::Cpu => {
            cpu()?;
            figures
                .subject_cpu_share
                .ok_or("the subject's CPU time was not recorded")?
        }
        GoalMetric::Memory => {
            subject?;
            figures
                .rss_mean_bytes
                .ok_or("the subject's memory was not recorded")?
        }
    };
    Some(value)
        .filter(|value| value.is_finite())
        .ok_or("what was recorded is not a finite number")
}
