//! Metrics that targets are compared by: one number a run for each.

use serde::{Deserialize, Serialize};
use stillwell_metric::{Metric, catalogue};
use stillwell_plan::GoalMetric;
use stillwell_plan::goal::LatencyQuantile;
use stillwell_units::Nanos;

use crate::summary::RunSummary;

/// Bytes of a GiB.
const GIB: f64 = 1_073_741_824.0;

/// A row of the table of targets: one number a run.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetsMetric {
    /// Bytes that it took, for each second.
    Accepted,
    /// Bytes that sinks received from it, for each second.
    Delivered,
    /// CPU seconds in the kernel, for each second.
    CpuSystem,
    /// CPU seconds in user mode, for each second.
    CpuUser,
    /// Load average of the host over one minute.
    Load,
    /// Largest resident memory.
    MemoryPeak,
    /// Bytes that it had read from storage.
    DiskRead,
    /// Bytes that it sent to storage.
    DiskWritten,
    /// Bytes that the run's network received.
    NetReceived,
    /// Bytes that the run's network sent.
    NetSent,
    /// Open TCP connections, both ends counted.
    TcpEstablished,
    /// TCP connections opened, both ends counted.
    TcpOpened,
    /// TCP connections that ended and are remembered.
    TcpTimeWait,
    /// CPU seconds for each GiB that it took.
    CpuPerGib,
    /// Bytes sent to storage for each byte that it received.
    WrittenPerByte,
    /// Flushes of the host's disks for each MiB that it took.
    FlushesPerMib,
    /// Median of the times from intended sending to arrival or answer.
    LatencyP50,
    /// 99 of 100 of these are at most as long.
    LatencyP99,
    /// Share of the events sent that never arrived.
    Loss,
    /// Arrivals beyond the first, for each event sent.
    Duplicated,
    /// Time that it went on sending after the load had ended.
    Drain,
    /// Longest time from a step that ended it to the first arrival at a sink after it
    /// was ready again.
    Recovery,
}

/// Better direction of a row.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ranking {
    /// More.
    Higher,
    /// Less.
    Lower,
    /// Less, where all did the same work: else who did less wins.
    LowerForEqualWork,
    /// Neither: it says what was done, and not how well.
    Neither,
}

impl TargetsMetric {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 22] = [
        Self::Accepted,
        Self::Delivered,
        Self::CpuSystem,
        Self::CpuUser,
        Self::Load,
        Self::MemoryPeak,
        Self::DiskRead,
        Self::DiskWritten,
        Self::NetReceived,
        Self::NetSent,
        Self::TcpEstablished,
        Self::TcpOpened,
        Self::TcpTimeWait,
        Self::CpuPerGib,
        Self::WrittenPerByte,
        Self::FlushesPerMib,
        Self::LatencyP50,
        Self::LatencyP99,
        Self::Loss,
        Self::Duplicated,
        Self::Drain,
        Self::Recovery,
    ];

    /// Better direction.
    #[must_use]
    pub const fn ranking(self) -> Ranking {
        match self {
            Self::Accepted | Self::Delivered => Ranking::Higher,
            Self::MemoryPeak | Self::CpuPerGib | Self::Loss | Self::Duplicated | Self::Recovery => {
                Ranking::Lower
            }
            Self::CpuSystem | Self::CpuUser | Self::LatencyP50 | Self::LatencyP99 | Self::Drain => {
                Ranking::LowerForEqualWork
            }
            Self::Load
            | Self::DiskRead
            | Self::DiskWritten
            | Self::NetReceived
            | Self::NetSent
            | Self::TcpEstablished
            | Self::TcpOpened
            | Self::TcpTimeWait
            | Self::WrittenPerByte
            | Self::FlushesPerMib => Ranking::Neither,
        }
    }

    /// True if two of them are compared by their difference, since they may be
    /// zero.
    pub(super) const fn is_difference(self) -> bool {
        matches!(self, Self::Loss | Self::Duplicated | Self::Drain)
    }

    /// The goal whose warnings spoil it, where times are `latencies`.
    pub(super) const fn goal(self, latencies: Latencies) -> GoalMetric {
        match self {
            Self::Accepted => GoalMetric::IngressThroughput,
            Self::Delivered | Self::Drain | Self::Recovery => GoalMetric::EgressThroughput,
            Self::LatencyP50 => latencies.goal(LatencyQuantile::P50),
            Self::LatencyP99 => latencies.goal(LatencyQuantile::P99),
            Self::Loss => GoalMetric::Loss,
            Self::Duplicated => GoalMetric::Duplicated,
            Self::CpuSystem | Self::CpuUser | Self::CpuPerGib => GoalMetric::Cpu,
            _ => GoalMetric::Memory,
        }
    }

    /// The run's number, or why there is none; times are `latencies`.
    pub(super) fn value(self, run: &RunSummary, latencies: Latencies) -> Result<f64, String> {
        let seconds = run.measured.as_secs_f64();
        let taken = || taken_bytes(run);
        let rate = |metric: Metric| series(run, metric, "rate");
        let mean = |metric: Metric| series(run, metric, "mean");
        let sum = |metric: Metric| rate(metric).map(|rate| rate * seconds);
        match self {
            Self::Accepted => goal(run, &GoalMetric::IngressThroughput),
            Self::Delivered => goal(run, &GoalMetric::EgressThroughput),
            Self::CpuSystem => rate(catalogue::TARGET_CPU_SYSTEM).map(|nanos| nanos / 1e9),
            Self::CpuUser => rate(catalogue::TARGET_CPU_USER).map(|nanos| nanos / 1e9),
            Self::Load => mean(catalogue::HOST_LOAD),
            Self::MemoryPeak => goal(run, &GoalMetric::MemoryPeak),
            Self::DiskRead => sum(catalogue::TARGET_READ_BYTES),
            Self::DiskWritten => sum(catalogue::TARGET_WRITE_BYTES),
            Self::NetReceived => sum(catalogue::HOST_NET_RECEIVE_BYTES),
            Self::NetSent => sum(catalogue::HOST_NET_SEND_BYTES),
            Self::TcpEstablished => mean(catalogue::HOST_TCP_ESTABLISHED),
            Self::TcpOpened => sum(catalogue::HOST_TCP_OPENED),
            Self::TcpTimeWait => mean(catalogue::HOST_TCP_TIME_WAIT),
            Self::CpuPerGib => {
                let cpu = goal(run, &GoalMetric::Cpu)? * seconds;
                Ok(cpu / (taken()? / GIB))
            }
            Self::WrittenPerByte => Ok(sum(catalogue::TARGET_WRITE_BYTES)? / taken()?),
            Self::FlushesPerMib => {
                Ok(sum(catalogue::HOST_DISK_FLUSHES)? / (taken()? / (GIB / 1024.0)))
            }
            Self::LatencyP50 => latencies.value(run, LatencyQuantile::P50),
            Self::LatencyP99 => latencies.value(run, LatencyQuantile::P99),
            Self::Loss => goal(run, &GoalMetric::Loss),
            Self::Duplicated => goal(run, &GoalMetric::Duplicated),
            Self::Drain => match run.figures.drain {
                Some(drain) => Ok(drain.as_secs_f64()),
                None => Err("the target still forwarded events when the drain ended".to_owned()),
            },
            Self::Recovery => recovery(run),
        }
    }
}

/// Seconds from the step that ended it to its next delivery, of several the longest.
fn recovery(run: &RunSummary) -> Result<f64, String> {
    let restarts = &run.figures.restarts;
    if restarts.is_empty() {
        return Err("no timeline step ended the target".to_owned());
    }
    let back: Option<Vec<Nanos>> = restarts
        .iter()
        .map(|metric| metric.delivered_after)
        .collect();
    let longest = back.and_then(|back| back.into_iter().max());
    let longest = longest.ok_or_else(|| "nothing arrived after the restart".to_owned())?;
    Ok(longest.as_secs_f64())
}

/// Bytes that the target took while it was measured.
pub(super) fn taken_bytes(run: &RunSummary) -> Result<f64, String> {
    let bytes = run.figures.measured.bytes_sent.filter(|bytes| *bytes > 0.0);
    bytes.ok_or_else(|| "nothing was sent to the target while measuring".to_owned())
}

fn goal(run: &RunSummary, metric: &GoalMetric) -> Result<f64, String> {
    match run.measured(metric) {
        crate::Measured::Value(value) => Ok(value),
        crate::Measured::Missing { reason } => Err(reason),
    }
}

fn series(run: &RunSummary, metric: Metric, reduction: &str) -> Result<f64, String> {
    let key = format!("{}:{reduction}", metric.name);
    let value = run.series.get(&key).copied();
    value.ok_or_else(|| "it was not recorded".to_owned())
}

/// Of what the times of a table are: one thing in all runs, since the time to an
/// arrival and that to an answer are not to be compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Latencies {
    /// Of events, from their stamps.
    Events,
    /// Of answers.
    Answers,
}

impl Latencies {
    /// Of events where any run has them, else of answers.
    pub(super) fn of<'r>(mut runs: impl Iterator<Item = &'r RunSummary>) -> Self {
        let has_events = |run: &RunSummary| {
            let quantiles = [LatencyQuantile::P50, LatencyQuantile::P99];
            quantiles
                .iter()
                .any(|metric| Self::Events.value(run, *metric).is_ok())
        };
        if runs.any(has_events) {
            Self::Events
        } else {
            Self::Answers
        }
    }

    const fn goal(self, quantile: LatencyQuantile) -> GoalMetric {
        match self {
            Self::Events => GoalMetric::EventLatency(quantile),
            Self::Answers => GoalMetric::Latency(quantile),
        }
    }

    /// In seconds.
    fn value(self, run: &RunSummary, quantile: LatencyQuantile) -> Result<f64, String> {
        let nanos = goal(run, &self.goal(quantile)).map_err(|_| match self {
            Self::Events => "no stamped event of the target arrived".to_owned(),
            Self::Answers => "no event was stamped and no response arrived".to_owned(),
        })?;
        Ok(nanos / 1e9)
    }
}
