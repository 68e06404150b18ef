//! Observation during a run.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use stillwell_metric::catalogue;
use stillwell_units::Nanos;

use crate::target::Places;
use crate::{GoalMetric, Validity};

/// Observed figures and their intervals.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ObserverPlan {
    /// Time between samples of every cheap series.
    pub period: Nanos,
    /// Time between samples of expensive figures, such as PSS.
    pub detail_period: Nanos,
    /// Pages of the target's own metrics.
    pub scrapes: Vec<ScrapePlan>,
    /// Series of the kernel's figures.
    #[serde(default, skip_serializing_if = "KernelSeries::is_none")]
    pub kernel: KernelSeries,
    /// Instructions of the target are counted, where the machine permits it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub instructions: bool,
    /// Profiles that the target serves; they are stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<ProfilePlan>,
    /// A program that inspects the target during the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inspector: Option<InspectorPlan>,
    /// A CPU profile by `perf`; in place of an inspector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub perf: Option<PerfPlan>,
    /// Strictness of the limits above which the run is unreliable.
    #[serde(default, skip_serializing_if = "Validity::is_normal")]
    pub validity: Validity,
}

impl ObserverPlan {
    /// Requests the series or goal called `name` as well, if it is recorded only on request.
    pub fn request(&mut self, name: &str) {
        let counted = [
            GoalMetric::InstructionsPerEvent.name(),
            catalogue::TARGET_INSTRUCTIONS.name.into(),
        ];
        self.instructions |= counted.iter().any(|item| item == name);
        self.kernel.request(name);
    }
}

/// A CPU profile by the program `perf`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct PerfPlan {
    /// Samples for each second of CPU time.
    pub frequency: NonZeroU32,
    /// The way to find callers.
    pub call_graph: CallGraph,
}

/// The way in which a profiler finds the callers of a function.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallGraph {
    /// By frame pointers: cheap, but the program must have them.
    FramePointers,
    /// By debug information and a copy of the stack: costly.
    Dwarf,
}

/// A program that inspects the target, such as `perf`: started when the target is
/// ready, ended before the target.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct InspectorPlan {
    /// The executable; a bare name is looked up in `PATH`.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its environment besides `PATH` and `TARGET_PID`, the number of the target's
    /// first process (`NO_TARGET=1` where there is none).
    pub environment: BTreeMap<String, String>,
    /// Destination of its output; a file in the run's folder if none.
    pub stdout: Option<PathBuf>,
    /// Destination of its errors; a file in the run's folder if none.
    pub stderr: Option<PathBuf>,
}

impl InspectorPlan {
    /// The same inspector with every place filled in.
    #[must_use]
    pub fn filled(&self, places: &Places) -> Self {
        let mut inspector = self.clone();
        inspector.program = places.fill(&self.program.to_string_lossy()).into();
        for argument in &mut inspector.arguments {
            *argument = places.fill(argument);
        }
        for value in inspector.environment.values_mut() {
            *value = places.fill(value);
        }
        for path in inspector.stdout.iter_mut().chain(&mut inspector.stderr) {
            *path = places.fill(&path.to_string_lossy()).into();
        }
        inspector
    }
}

/// The kernel's figures that are recorded besides ours. Those are many
/// series, and some are expensive to read.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct KernelSeries {
    /// Memory and CPU of each process of the target.
    pub processes: bool,
    /// Its memory by what is mapped there, at each detail.
    pub smaps: bool,
    /// Its working set: what it touched since the last detail. Where idle pages are not
    /// tracked it clears marks in its page tables, which is to be permitted.
    pub working_set: bool,
    /// Its working set, but only where the kernel tracks idle pages.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idle_pages: bool,
    /// Every number in the files of its control group, version 2.
    pub cgroup: bool,
    /// Every number in `/proc/vmstat`.
    pub vmstat: bool,
}

impl KernelSeries {
    /// Returns true if none is wanted.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Requests the series called `name` as well, if it is one of these.
    pub fn request(&mut self, name: &str) {
        let is_of_cpu = |name: &str| {
            name.ends_with("cpu_percentage")
                || name.ends_with("cpu_usage_millicores")
                || name == "cpu_limit_millicores"
        };
        match name {
            "total_wss_bytes" => self.working_set = true,
            _ if name.starts_with("cgroup.v2.") => self.cgroup = true,
            _ if name.starts_with("vmstat.") => self.vmstat = true,
            _ if name.starts_with("smaps") => self.smaps = true,
            _ if name.starts_with("status.") || name.starts_with("stat.") || is_of_cpu(name) => {
                self.processes = true;
            }
            _ => {}
        }
    }

    /// Every series but the working set.
    pub const USUAL: Self = Self {
        processes: true,
        smaps: true,
        working_set: false,
        idle_pages: true,
        cgroup: true,
        vmstat: true,
    };
}

/// A profile, as `net/http/pprof` serves it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ProfilePlan {
    /// `http://host:port/debug/pprof/NAME`.
    pub url: String,
    /// Time between the end of one and the next.
    pub every: Nanos,
}

impl Default for ObserverPlan {
    fn default() -> Self {
        Self {
            period: Nanos::SECOND,
            detail_period: Nanos::from_secs(10),
            scrapes: Vec::new(),
            kernel: KernelSeries::default(),
            instructions: false,
            profiles: Vec::new(),
            inspector: None,
            perf: None,
            validity: Validity::default(),
        }
    }
}

/// One page of the target's own metrics.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ScrapePlan {
    /// `http://host:port/path`.
    pub url: String,
    /// Only these names, or all of them.
    pub names: Option<Vec<String>>,
    /// Labels added to every series.
    pub labels: Vec<(String, String)>,
    /// Format of the page.
    #[serde(default, skip_serializing_if = "ScrapeFormat::is_usual")]
    pub format: ScrapeFormat,
}

/// Format of a page of metrics.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ScrapeFormat {
    /// Prometheus' text format.
    #[default]
    Prometheus,
    /// The same, with `__` in names of metrics replaced by `.`, as lading records them.
    DottedPrometheus,
    /// JSON as Go's package `expvar` serves it: numbers and truth values, by the
    /// pointers to them (RFC 6901); all of them where none are named.
    Expvar,
}

impl ScrapeFormat {
    /// Returns true if it is Prometheus' own.
    #[must_use]
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_an_inspector_are_filled_in() {
        let inspector_in = |place: &str| {
            let at = |name: &str| format!("{place}/{name}");
            InspectorPlan {
                program: at("perf").into(),
                arguments: vec![at("data")],
                environment: BTreeMap::from([("A".to_owned(), at("a"))]),
                stdout: Some(at("out.log").into()),
                stderr: Some(at("err.log").into()),
            }
        };
        let places = Places {
            stillwell: "/bin/stillwell".into(),
            state: "/state".into(),
            files: None,
            experiment: "/lab/one".into(),
        };
        let filled = inspector_in("{experiment}").filled(&places);
        assert_eq!(filled, inspector_in("/lab/one"));
    }
}
