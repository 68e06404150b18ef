//! The tested program: start, readiness, limits, stop.
//!
//! A [`TargetProcess`] is a program that Stillwell starts ([`start`]), a running process, or nothing. Its isolation
//! has several parts; a [`Note`] reports each part that is not available:
//!
//! * a network namespace: [`prepare_privileges`] while the process has one thread,
//!   [`new_network`] once per run;
//! * [`Links`]: separate networks for target and sinks, for network faults;
//! * a [`Cgroup`], in each hierarchy of the host;
//! * CPUs: [`divide`] assigns them;
//! * a higher CPU priority: [`Priority`];
//! * folders at fixed mount points: `mounts` in its plan.
//!
//! A [`Container`] is found, or created and removed, by its engine; then it is a running process.
//!
//! [`wait_ready`] waits until it accepts load, [`TargetProcess::listeners`] finds its ports,
//! [`TargetProcess::stop`] ends it with all its descendants, and [`Exit`]
//! is its exit status.
//!
//! This crate never reads metrics of a target; `stillwell-observer` does. All unsafe calls are in the module
//! `kernel`.
//!
//! ```
//! use stillwell_plan::placement::CpuChoice;
//! let division = stillwell_target::divide(&[0, 1], &CpuChoice::Auto, &CpuChoice::Auto);
//! assert_eq!(division.target, Some(vec![1]));
//! assert_eq!(division.ours, Some(vec![0]));
//! ```

mod cgroup;
mod child;
mod container;
mod cpus;
mod exit;
mod inspector;
mod kernel;
mod leftover;
mod links;
mod listeners;
mod local_service;
mod logs;
mod mounts;
mod namespace;
mod note;
mod open_files;
mod owner;
mod pause;
mod perf;
mod priority;
mod program;
mod ready;
mod stop;
mod target_log;
mod target_process;
mod tree;

pub use cgroup::{Cgroup, CgroupFolders, Limits};
pub use child::{StartError, StartOptions, attach, start};
pub use container::{Container, ContainerError};
pub use cpus::{Division, divide, divide_without_target, online, separate_ends};
pub use exit::Exit;
pub use inspector::{INSPECTOR_STOP, start_inspector};
pub use leftover::{build_mark, end_leftovers};
pub use links::{LinkError, Links};
pub use listeners::{Listener, ListenerProtocol};
pub use mounts::MountError;
pub use namespace::{NetworkError, Privileges, new_network, prepare_privileges};
pub use note::Note;
pub use open_files::raise_open_files;
pub use owner::Owner;
pub use perf::{PERF_SCRIPT_LIMIT, perf_inspector, perf_script};
pub use priority::Priority;
pub use program::{ProgramError, find as find_program};
pub use ready::{NotReady, answering_already, wait_ready};
pub use stop::Stopped;
pub use target_log::TargetLog;
pub use target_process::{SignalError, TargetProcess};
