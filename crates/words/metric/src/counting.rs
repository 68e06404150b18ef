//! Counting of CPU instructions: its scope, and the reasons why there is none.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::catalogue::TARGET_COUNTER_STATE;
use crate::{Labels, Sample};

/// State of the counter of a target's instructions. A capture has it as
/// [`TARGET_COUNTER_STATE`], with labels.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum CountingState {
    /// Instructions in user mode and in the kernel are counted.
    All,
    /// Instructions in user mode alone are counted, because this level of `perf_event_paranoid` forbids the
    /// kernel's.
    User {
        /// The level, if it can be read.
        paranoid: Option<i64>,
    },
    /// Nothing is counted.
    None(CountingObstacle),
}

/// Reason why instructions are not counted. A closed list, as for outcomes of sends.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CountingObstacle {
    /// The CPU, or the virtual machine, offers no counter of instructions.
    NoCounter,
    /// The kernel has no performance events.
    NoKernelSupport,
    /// This level of `perf_event_paranoid` forbids it.
    NotPermitted {
        /// The level.
        paranoid: i64,
    },
    /// A container or sandbox forbids it.
    Sandboxed,
    /// The target runs as another user, or may not be traced.
    OtherUser,
    /// The target has more threads than counters may be open.
    TooManyThreads {
        /// The largest number of counters.
        limit: u64,
    },
    /// Threads of the target started while counters were opened, each time.
    ThreadsStarting,
    /// The limit on open files was reached.
    TooManyFiles,
    /// The system refused it for another reason.
    Refused {
        /// Its message.
        message: String,
    },
}

/// Explanations of the words of [`CountingObstacle`].
pub const COUNTING_OBSTACLES: &[(&str, &str)] = &[
    (
        "no_counter",
        "The CPU, or the virtual machine, offers no counter of instructions. Use bare metal, or a virtual machine \
         with a virtual PMU. `cpu_per_event` needs no counter.",
    ),
    (
        "no_kernel_support",
        "The kernel was built without performance events (CONFIG_PERF_EVENTS).",
    ),
    (
        "not_permitted",
        "The sysctl kernel.perf_event_paranoid is above 2, so only a process with CAP_PERFMON or root may count \
         instructions. Set it to 2 to count user mode, or to 1 to count the kernel's work as well.",
    ),
    (
        "sandboxed",
        "A container, a sandbox or a security module forbids the system call perf_event_open. In Docker, permit it \
         in the seccomp profile.",
    ),
    (
        "other_user",
        "The target runs as another user, or may not be traced. Run Stillwell as the same user or as root.",
    ),
    (
        "too_many_threads",
        "The target has more threads than counters may be open: 2,048, and a quarter of the limit on open files. \
         Raise `ulimit -n`.",
    ),
    (
        "threads_starting",
        "Each time that counters were opened, the target started threads, so some would be counted twice or not at \
         all. It is tried again with every sample.",
    ),
    (
        "too_many_files",
        "The limit on open files was reached when counters were opened. Raise `ulimit -n`.",
    ),
    (
        "refused",
        "The system refused the counter for another reason, which the message shows.",
    ),
];

const MODES: &str = "modes";
const REASON: &str = "reason";
const DETAIL: &str = "detail";

impl CountingState {
    /// The state as a sample: 1 if instructions are counted, else 0.
    #[must_use]
    pub fn sample(&self) -> Sample {
        let labels = match self {
            Self::All => Labels::none().with(MODES, "all"),
            Self::User { paranoid } => {
                let labels = Labels::none().with(MODES, "user");
                match paranoid {
                    Some(level) => labels.with(DETAIL, level.to_string()),
                    None => labels,
                }
            }
            Self::None(obstacle) => {
                let labels = Labels::none().with(REASON, obstacle.name());
                match obstacle.detail() {
                    Some(detail) => labels.with(DETAIL, detail),
                    None => labels,
                }
            }
        };
        let is_counted = !matches!(self, Self::None(_));
        Sample::int(TARGET_COUNTER_STATE, &labels, u64::from(is_counted))
    }

    /// The state with these labels; `None` if they are of none.
    #[must_use]
    pub fn of_labels(labels: &Labels) -> Option<Self> {
        let detail = labels.value(DETAIL);
        match (labels.value(MODES), labels.value(REASON)) {
            (Some("all"), _) => Some(Self::All),
            (Some("user"), _) => Some(Self::User {
                paranoid: detail.and_then(|level| level.parse().ok()),
            }),
            (_, Some(name)) => CountingObstacle::of_name(name, detail).map(Self::None),
            _ => None,
        }
    }
}

impl CountingObstacle {
    /// The word in captures.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NoCounter => "no_counter",
            Self::NoKernelSupport => "no_kernel_support",
            Self::NotPermitted { .. } => "not_permitted",
            Self::Sandboxed => "sandboxed",
            Self::OtherUser => "other_user",
            Self::TooManyThreads { .. } => "too_many_threads",
            Self::ThreadsStarting => "threads_starting",
            Self::TooManyFiles => "too_many_files",
            Self::Refused { .. } => "refused",
        }
    }

    /// Returns true if it is a property of this machine or its settings: no other run and no other target would
    /// have counted instructions here.
    #[must_use]
    pub const fn is_of_machine(&self) -> bool {
        matches!(
            self,
            Self::NoCounter | Self::NoKernelSupport | Self::NotPermitted { .. } | Self::Sandboxed
        )
    }

    /// A change that would remove it.
    #[must_use]
    pub const fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::NoCounter => Some("use bare metal, or a virtual machine with a virtual PMU"),
            Self::NoKernelSupport => Some("use a kernel with CONFIG_PERF_EVENTS"),
            Self::NotPermitted { .. } => Some("set it to 2 or less, or give CAP_PERFMON"),
            Self::Sandboxed => Some("permit the system call perf_event_open"),
            Self::OtherUser => Some("run Stillwell as the same user or as root"),
            Self::TooManyThreads { .. } | Self::TooManyFiles => {
                Some("raise the limit on open files (`ulimit -n`)")
            }
            Self::ThreadsStarting => Some("wait until the target is ready"),
            Self::Refused { .. } => None,
        }
    }

    fn detail(&self) -> Option<String> {
        match self {
            Self::NotPermitted { paranoid } => Some(paranoid.to_string()),
            Self::TooManyThreads { limit } => Some(limit.to_string()),
            Self::Refused { message } => Some(message.clone()),
            _ => None,
        }
    }

    fn of_name(name: &str, detail: Option<&str>) -> Option<Self> {
        Some(match name {
            "no_counter" => Self::NoCounter,
            "no_kernel_support" => Self::NoKernelSupport,
            "not_permitted" => Self::NotPermitted {
                paranoid: detail?.parse().ok()?,
            },
            "sandboxed" => Self::Sandboxed,
            "other_user" => Self::OtherUser,
            "too_many_threads" => Self::TooManyThreads {
                limit: detail?.parse().ok()?,
            },
            "threads_starting" => Self::ThreadsStarting,
            "too_many_files" => Self::TooManyFiles,
            "refused" => Self::Refused {
                message: detail?.to_owned(),
            },
            _ => return None,
        })
    }
}

impl fmt::Display for CountingObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCounter => f.write_str("the machine has no instruction counter"),
            Self::NoKernelSupport => f.write_str("the kernel has no performance events"),
            Self::NotPermitted { paranoid } => {
                write!(f, "not permitted: perf_event_paranoid is {paranoid}")
            }
            Self::Sandboxed => {
                f.write_str("not permitted: a container or sandbox forbids perf_event_open")
            }
            Self::OtherUser => f.write_str("not permitted: the target runs as another user"),
            Self::TooManyThreads { limit } => {
                write!(f, "the target has more than {limit} threads")
            }
            Self::ThreadsStarting => {
                f.write_str("threads of the target started while counters were opened")
            }
            Self::TooManyFiles => f.write_str("the limit on open files was reached"),
            Self::Refused { message } => write!(f, "the system refused the counter: {message}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    fn states() -> Vec<CountingState> {
        let obstacles = [
            CountingObstacle::NoCounter,
            CountingObstacle::NoKernelSupport,
            CountingObstacle::NotPermitted { paranoid: 4 },
            CountingObstacle::Sandboxed,
            CountingObstacle::OtherUser,
            CountingObstacle::TooManyThreads { limit: 256 },
            CountingObstacle::ThreadsStarting,
            CountingObstacle::TooManyFiles,
            CountingObstacle::Refused {
                message: "Invalid argument (os error 22)".to_owned(),
            },
        ];
        let counted = [
            CountingState::All,
            CountingState::User { paranoid: None },
            CountingState::User { paranoid: Some(2) },
        ];
        let none = obstacles.into_iter().map(CountingState::None);
        counted.into_iter().chain(none).collect()
    }

    #[test]
    fn states_read_back_from_their_labels() {
        for state in states() {
            let sample = state.sample();
            assert_eq!(
                CountingState::of_labels(&sample.labels),
                Some(state.clone())
            );
            let is_counted = !matches!(state, CountingState::None(_));
            assert_eq!(sample.value, Value::Int(u64::from(is_counted)));
        }
        for labels in [
            Labels::none(),
            Labels::none().with("reason", "unknown"),
            Labels::none().with("reason", "not_permitted"),
            Labels::none().with("modes", "kernel"),
        ] {
            assert_eq!(CountingState::of_labels(&labels), None, "{labels:?}");
        }
    }

    #[test]
    fn every_obstacle_is_explained_once() {
        let states = states().into_iter();
        let names = states.filter_map(|state| match state {
            CountingState::None(obstacle) => Some(obstacle.name()),
            _ => None,
        });
        let explained = COUNTING_OBSTACLES.iter().map(|(name, _)| *name);
        assert!(explained.eq(names));
    }

    #[test]
    fn obstacles_are_named_for_readers() {
        for (obstacle, expected) in [
            (
                CountingObstacle::NoCounter,
                "the machine has no instruction counter",
            ),
            (
                CountingObstacle::NotPermitted { paranoid: 3 },
                "not permitted: perf_event_paranoid is 3",
            ),
        ] {
            assert_eq!(obstacle.to_string(), expected);
            assert!(obstacle.is_of_machine());
        }
        assert!(!CountingObstacle::ThreadsStarting.is_of_machine());
    }
}
