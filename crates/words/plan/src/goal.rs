//! Metrics that are compared between variants.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use stillwell_metric::catalogue;
use stillwell_units::{Nanos, ParseError, Tolerance};

/// A metric with a direction and a tolerance.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct GoalPlan {
    /// The compared metric: one number a run.
    pub metric: GoalMetric,
    /// The better direction.
    pub direction: Direction,
    /// The smallest change that matters: of the ratio of the two variants,
    /// or of their difference, as the metric's [`scale`](GoalMetric::scale) says.
    pub tolerance: Tolerance,
    /// The tolerance of a metric that is a time, if it was given as a time. When runs are judged
    /// it is the share of the baseline's mean that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance_time: Option<Nanos>,
}

/// The smallest change that matters, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TypedTolerance {
    /// A share, such as `3%`.
    Share(Tolerance),
    /// A time, such as `50us`.
    Time(Nanos),
}

impl FromStr for TypedTolerance {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text.parse::<Nanos>() {
            Ok(time) if time > Nanos::ZERO => Ok(Self::Time(time)),
            _ => text.parse().map(Self::Share),
        }
    }
}

impl GoalPlan {
    /// The goal for `metric` as it is where a file says nothing more of it.
    #[must_use]
    pub fn new(metric: GoalMetric) -> Self {
        let direction = metric.direction().unwrap_or(Direction::LowerIsBetter);
        let tolerance = metric.default_tolerance();
        Self {
            metric,
            direction,
            tolerance,
            tolerance_time: None,
        }
    }

    /// The same goal with this tolerance.
    ///
    /// # Errors
    /// A sentence: the tolerance is a time, and the metric is none.
    pub fn tolerating(mut self, tolerance: TypedTolerance) -> Result<Self, String> {
        match tolerance {
            TypedTolerance::Share(share) => (self.tolerance, self.tolerance_time) = (share, None),
            TypedTolerance::Time(time) if self.metric.is_time() => self.tolerance_time = Some(time),
            TypedTolerance::Time(_) => {
                return Err(format!(
                    "`{}` is not a time: write a tolerance such as `3%`",
                    self.metric
                ));
            }
        }
        Ok(self)
    }
}

/// The summary of a run: always counter end less counter start over the
/// measured phase, or a quantile of the run's own histogram, never an average
/// of seconds.
///
/// Its text form is its [`name`](GoalMetric::name), in files as in summaries.
#[derive(Clone, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(try_from = "String", into = "String")]
pub enum GoalMetric {
    /// CPU seconds of the target's process tree for each second of time.
    Cpu,
    /// CPU nanoseconds of the target's process tree for each event sent to it.
    CpuPerEvent,
    /// Arrivals of stamped events beyond the declared copies, for each one sent.
    Duplicated,
    /// Bytes that sinks received, for each second of time.
    EgressThroughput,
    /// Share of the requests that ended without a response or with a status from 400 on.
    ErrorShare,
    /// A quantile of the times from a stamped event's intended time to its first
    /// arrival at a sink.
    EventLatency(LatencyQuantile),
    /// A quantile of the times from the sent time to the first byte of the answer.
    FirstByte(LatencyQuantile),
    /// Bytes that generators sent, for each second of time.
    IngressThroughput,
    /// CPU instructions of the target's process tree for each event sent to it, where the machine counts them.
    InstructionsPerEvent,
    /// A quantile of the run's response times, from the intended time on.
    Latency(LatencyQuantile),
    /// Share of the events sent that no sink received: by their stamps, where they
    /// have any, else by their number.
    Loss,
    /// Mean resident memory of the target's process tree.
    Memory,
    /// Largest resident memory of the target's process tree.
    MemoryPeak,
    /// Growth of resident memory, as a share of its mean for each minute.
    MemorySlope,
    /// Requests that were answered with a status below 400, for each second of time.
    RequestThroughput,
    /// The number of another goal, of the requests of one route alone.
    Route(RouteGoal),
    /// Any recorded or scraped series.
    Series(SeriesGoal),
    /// A quantile of the run's service times, from the sent time on.
    ServiceTime(LatencyQuantile),
    /// Share of the requests that were answered with this status code.
    Status(StatusCode),
}

/// A goal of the requests of one route.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RouteGoal {
    metric: Box<GoalMetric>,
    route: String,
}

impl RouteGoal {
    /// A goal of the route with this name; `None` if `metric` has no number for each route.
    #[must_use]
    pub fn new(metric: GoalMetric, route: String) -> Option<Self> {
        let metric = Box::new(metric);
        metric.is_of_routes().then_some(Self { metric, route })
    }

    /// The goal whose number it is.
    #[must_use]
    pub const fn metric(&self) -> &GoalMetric {
        &self.metric
    }

    /// Name of the route, such as `GET /search`.
    #[must_use]
    pub fn route(&self) -> &str {
        &self.route
    }
}

/// A status code of HTTP, from 100 to 599.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StatusCode(u16);

impl StatusCode {
    /// The status code `code`, if it is one.
    #[must_use]
    pub const fn new(code: u16) -> Option<Self> {
        match code {
            100..600 => Some(Self(code)),
            _ => None,
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// A quantile of a time.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum LatencyQuantile {
    /// The median.
    P50,
    /// 90 of 100 are at most as long.
    P90,
    /// 99 of 100 are at most as long.
    P99,
    /// 999 of 1000 are at most as long.
    P999,
}

/// A series of the capture as a goal.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SeriesGoal {
    /// The metric's name.
    pub metric: String,
    /// The `id` label that it must carry, if any: `bytes_received['intake']`.
    pub id: Option<String>,
    /// The way from its samples to the run's number.
    pub reduction: Reduction,
}

/// The way from a series' samples to one number a run.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Reduction {
    /// Mean over time, for gauges.
    Mean,
    /// Largest sample, for gauges.
    Peak,
    /// Growth for each event sent to the target, for counters.
    PerEvent,
    /// Growth for each second, for counters.
    Rate,
}

impl Reduction {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Mean, Self::Peak, Self::PerEvent, Self::Rate];

    /// The word in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Peak => "peak",
            Self::PerEvent => "per_event",
            Self::Rate => "rate",
        }
    }
}

/// By what two variants are compared.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Scale {
    /// By comparison / baseline − 1.
    Ratio,
    /// By comparison − baseline: the number is itself a share, and may be zero.
    Difference,
}

impl GoalMetric {
    /// All that need no name of a series or route and no status code, in the order in which they are listed
    /// to users.
    pub const ALL: [Self; 28] = [
        Self::IngressThroughput,
        Self::EgressThroughput,
        Self::CpuPerEvent,
        Self::InstructionsPerEvent,
        Self::Cpu,
        Self::Memory,
        Self::MemoryPeak,
        Self::MemorySlope,
        Self::Latency(LatencyQuantile::P50),
        Self::Latency(LatencyQuantile::P90),
        Self::Latency(LatencyQuantile::P99),
        Self::Latency(LatencyQuantile::P999),
        Self::ServiceTime(LatencyQuantile::P50),
        Self::ServiceTime(LatencyQuantile::P90),
        Self::ServiceTime(LatencyQuantile::P99),
        Self::ServiceTime(LatencyQuantile::P999),
        Self::FirstByte(LatencyQuantile::P50),
        Self::FirstByte(LatencyQuantile::P90),
        Self::FirstByte(LatencyQuantile::P99),
        Self::FirstByte(LatencyQuantile::P999),
        Self::ErrorShare,
        Self::RequestThroughput,
        Self::Loss,
        Self::Duplicated,
        Self::EventLatency(LatencyQuantile::P50),
        Self::EventLatency(LatencyQuantile::P90),
        Self::EventLatency(LatencyQuantile::P99),
        Self::EventLatency(LatencyQuantile::P999),
    ];

    /// The name in files and reports; of a series
    /// `series:METRIC['ID']:REDUCTION`, of a route `METRIC['ROUTE']`, of a status code
    /// `status_429`.
    #[must_use]
    pub fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Cpu => "cpu",
            Self::CpuPerEvent => "cpu_per_event",
            Self::Duplicated => "duplicated",
            Self::EgressThroughput => "egress_throughput",
            Self::ErrorShare => "error_share",
            Self::EventLatency(LatencyQuantile::P50) => "event_latency_p50",
            Self::EventLatency(LatencyQuantile::P90) => "event_latency_p90",
            Self::EventLatency(LatencyQuantile::P99) => "event_latency_p99",
            Self::EventLatency(LatencyQuantile::P999) => "event_latency_p999",
            Self::FirstByte(LatencyQuantile::P50) => "first_byte_p50",
            Self::FirstByte(LatencyQuantile::P90) => "first_byte_p90",
            Self::FirstByte(LatencyQuantile::P99) => "first_byte_p99",
            Self::FirstByte(LatencyQuantile::P999) => "first_byte_p999",
            Self::IngressThroughput => "ingress_throughput",
            Self::InstructionsPerEvent => "instructions_per_event",
            Self::Latency(LatencyQuantile::P50) => "latency_p50",
            Self::Latency(LatencyQuantile::P90) => "latency_p90",
            Self::Latency(LatencyQuantile::P99) => "latency_p99",
            Self::Latency(LatencyQuantile::P999) => "latency_p999",
            Self::Loss => "loss",
            Self::Memory => "memory",
            Self::MemoryPeak => "memory_peak",
            Self::MemorySlope => "memory_slope",
            Self::RequestThroughput => "request_throughput",
            Self::ServiceTime(LatencyQuantile::P50) => "service_time_p50",
            Self::ServiceTime(LatencyQuantile::P90) => "service_time_p90",
            Self::ServiceTime(LatencyQuantile::P99) => "service_time_p99",
            Self::ServiceTime(LatencyQuantile::P999) => "service_time_p999",
            Self::Route(goal) => return Cow::Owned(format!("{}['{}']", goal.metric, goal.route)),
            Self::Series(series) => return Cow::Owned(format!("series:{series}")),
            Self::Status(code) => return Cow::Owned(format!("status_{}", code.0)),
        })
    }

    /// The better direction; of a series only the user knows it. A larger share of a status code
    /// is better below 400.
    #[must_use]
    pub const fn direction(&self) -> Option<Direction> {
        match self {
            Self::Cpu
            | Self::CpuPerEvent
            | Self::Duplicated
            | Self::ErrorShare
            | Self::EventLatency(_)
            | Self::FirstByte(_)
            | Self::InstructionsPerEvent
            | Self::Latency(_)
            | Self::Loss
            | Self::Memory
            | Self::MemoryPeak
            | Self::MemorySlope
            | Self::ServiceTime(_) => Some(Direction::LowerIsBetter),
            Self::EgressThroughput | Self::IngressThroughput | Self::RequestThroughput => {
                Some(Direction::HigherIsBetter)
            }
            Self::Status(StatusCode(..400)) => Some(Direction::HigherIsBetter),
            Self::Status(_) => Some(Direction::LowerIsBetter),
            Self::Route(goal) => goal.metric.direction(),
            Self::Series(_) => None,
        }
    }

    /// By what variants are compared.
    #[must_use]
    pub const fn scale(&self) -> Scale {
        match self {
            Self::Duplicated
            | Self::ErrorShare
            | Self::Loss
            | Self::MemorySlope
            | Self::Status(_) => Scale::Difference,
            Self::Route(goal) => goal.metric.scale(),
            _ => Scale::Ratio,
        }
    }

    /// Returns true if it is a time.
    #[must_use]
    pub const fn is_time(&self) -> bool {
        match self {
            Self::CpuPerEvent
            | Self::EventLatency(_)
            | Self::FirstByte(_)
            | Self::Latency(_)
            | Self::ServiceTime(_) => true,
            Self::Route(goal) => goal.metric.is_time(),
            _ => false,
        }
    }

    /// Returns true if other load on the host changes it; a figure that the kernel counts
    /// for the target alone does not change.
    #[must_use]
    pub const fn is_wall_based(&self) -> bool {
        matches!(
            self,
            Self::Duplicated
                | Self::EgressThroughput
                | Self::ErrorShare
                | Self::EventLatency(_)
                | Self::FirstByte(_)
                | Self::IngressThroughput
                | Self::Latency(_)
                | Self::Loss
                | Self::RequestThroughput
                | Self::Route(_)
                | Self::ServiceTime(_)
                | Self::Status(_)
        )
    }

    /// Returns true for what an event costs the target, its share of going to sleep and waking up included.
    #[must_use]
    pub const fn is_cost_per_event(&self) -> bool {
        matches!(self, Self::CpuPerEvent | Self::InstructionsPerEvent)
    }

    /// Returns true if it needs the counter of the CPU's instructions, which not every machine has.
    #[must_use]
    pub fn needs_instructions(&self) -> bool {
        match self {
            Self::InstructionsPerEvent => true,
            Self::Series(series) => series.metric == catalogue::TARGET_INSTRUCTIONS.name,
            _ => false,
        }
    }

    /// Returns true if it is derived from the responses to requests.
    #[must_use]
    pub const fn is_of_answers(&self) -> bool {
        matches!(
            self,
            Self::ErrorShare
                | Self::FirstByte(_)
                | Self::Latency(_)
                | Self::RequestThroughput
                | Self::Route(_)
                | Self::ServiceTime(_)
                | Self::Status(_)
        )
    }

    /// Returns true if there is a number for each route.
    #[must_use]
    pub const fn is_of_routes(&self) -> bool {
        self.is_of_answers() && !matches!(self, Self::Route(_))
    }

    /// Returns true if it is derived from the content that sinks receive.
    #[must_use]
    pub const fn is_of_arrivals(&self) -> bool {
        matches!(self, Self::Duplicated | Self::EventLatency(_) | Self::Loss)
    }

    /// The tolerance where none is given: what is worth a person's time, and what
    /// the noise of each metric allows to see. METHODOLOGY.md has the reasons.
    #[must_use]
    pub fn default_tolerance(&self) -> Tolerance {
        let share = match self {
            // The kernel or the CPU counts them, and they repeat best of all.
            Self::CpuPerEvent | Self::InstructionsPerEvent => 0.005,
            // Other load on the host changes them.
            Self::Cpu
            | Self::EgressThroughput
            | Self::IngressThroughput
            | Self::RequestThroughput
            | Self::EventLatency(LatencyQuantile::P50)
            | Self::FirstByte(LatencyQuantile::P50)
            | Self::Latency(LatencyQuantile::P50)
            | Self::ServiceTime(LatencyQuantile::P50) => 0.02,
            Self::EventLatency(LatencyQuantile::P90)
            | Self::FirstByte(LatencyQuantile::P90)
            | Self::Latency(LatencyQuantile::P90)
            | Self::ServiceTime(LatencyQuantile::P90) => 0.03,
            // Allocators round, and tails are made of few events.
            Self::Memory
            | Self::MemoryPeak
            | Self::EventLatency(LatencyQuantile::P99)
            | Self::FirstByte(LatencyQuantile::P99)
            | Self::Latency(LatencyQuantile::P99)
            | Self::ServiceTime(LatencyQuantile::P99)
            | Self::Series(_) => 0.05,
            Self::EventLatency(LatencyQuantile::P999)
            | Self::FirstByte(LatencyQuantile::P999)
            | Self::Latency(LatencyQuantile::P999)
            | Self::ServiceTime(LatencyQuantile::P999) => 0.10,
            // Points, not percent of a number that is nearly zero.
            Self::Duplicated | Self::ErrorShare | Self::Loss | Self::Status(_) => 0.001,
            Self::Route(goal) => return goal.metric.default_tolerance(),
            Self::MemorySlope => 0.01,
        };
        // In range by the table above, and a test goes through it.
        Tolerance::try_new(share).unwrap_or(Tolerance::DEFAULT)
    }
}

impl fmt::Display for GoalMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl From<GoalMetric> for String {
    fn from(metric: GoalMetric) -> Self {
        metric.name().into_owned()
    }
}

impl TryFrom<String> for GoalMetric {
    type Error = GoalMetricError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl FromStr for GoalMetric {
    type Err = GoalMetricError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || GoalMetricError {
            text: text.to_owned(),
        };
        if let Some(series) = text.strip_prefix("series:") {
            return series.parse().map(Self::Series).map_err(|_| unknown());
        }
        if let Some((metric, route)) = text
            .strip_suffix("']")
            .and_then(|text| text.split_once("['"))
        {
            if metric.contains("['") || route.contains("['") {
                return Err(unknown());
            }
            let metric = metric.parse().map_err(|_| unknown())?;
            let goal = RouteGoal::new(metric, route.to_owned()).ok_or_else(unknown)?;
            return Ok(Self::Route(goal));
        }
        if let Some(code) = text.strip_prefix("status_") {
            let is_number = code.chars().all(|digit| digit.is_ascii_digit());
            let code = code.parse().ok().filter(|_| is_number);
            let code = code.and_then(StatusCode::new);
            return code.map(Self::Status).ok_or_else(unknown);
        }
        let mut plain = Self::ALL.into_iter();
        plain
            .find(|metric| metric.name() == text)
            .ok_or_else(unknown)
    }
}

impl fmt::Display for SeriesGoal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.metric)?;
        if let Some(id) = &self.id {
            write!(f, "['{id}']")?;
        }
        write!(f, ":{}", self.reduction.name())
    }
}

impl FromStr for SeriesGoal {
    type Err = GoalMetricError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || GoalMetricError {
            text: text.to_owned(),
        };
        let (series, word) = text.rsplit_once(':').ok_or_else(unknown)?;
        let mut reductions = Reduction::ALL.into_iter();
        let reduction = reductions
            .find(|reduction| reduction.name() == word)
            .ok_or_else(unknown)?;
        let (metric, id) = match series.strip_suffix("']") {
            Some(rest) => {
                let (metric, id) = rest.split_once("['").ok_or_else(unknown)?;
                (metric, Some(id.to_owned()))
            }
            None => (series, None),
        };
        if metric.is_empty() {
            return Err(unknown());
        }
        Ok(Self {
            metric: metric.to_owned(),
            id,
            reduction,
        })
    }
}

/// A text names no goal.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{text}` is not a goal: write one of the goals' names, or series:METRIC:REDUCTION")]
pub struct GoalMetricError {
    /// The given text.
    pub text: String,
}

/// The better direction.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// More is better, as for throughput.
    HigherIsBetter,
    /// Less is better, as for cost.
    LowerIsBetter,
}

impl Direction {
    /// The word for the better way: `higher` or `lower`.
    #[must_use]
    pub const fn better(self) -> &'static str {
        match self {
            Self::HigherIsBetter => "higher",
            Self::LowerIsBetter => "lower",
        }
    }
}

#[cfg(test)]
mod tests;
