//! The program being measured: started, known ready, limited, stopped.
//!
//! A [`Subject`] is a program that we start ([`start`]), a process that runs
//! already, or nothing at all. What it is kept in, each where it can be had and
//! with a [`Note`] where it cannot:
//!
//! * a network namespace: [`prepare_privileges`] first thing in a process,
//!   [`new_network`] once a run;
//! * [`Links`]: networks of their own for it and for sinks, on which faults happen;
//! * a [`Cgroup`], in whichever hierarchies the host has;
//! * its CPUs: [`divide`] says whose are whose;
//! * folders shown at fixed places: `mounts` in its plan.
//!
//! A [`Container`] is found, or made and removed, by its engine; it is a process that
//! runs already then.
//!
//! [`wait_ready`] says when it may be loaded, [`Subject::stop`] ends it with all
//! that it has started, and [`Exit`] says how it ended.
//!
//! This crate never reads metrics of a subject; that is `stillwell-observer`'s.
//! All calls that the compiler cannot check are in the module `kernel`.
//!
//! ```
//! use stillwell_plan::CpuChoice;
//! let division = stillwell_target::divide(&[0, 1], &CpuChoice::Auto, &CpuChoice::Auto);
//! assert_eq!(division.subject, Some(vec![1]));
//! assert_eq!(division.ours, Some(vec![0]));
//! ```

mod cgroup;
mod child;
mod container;
mod cpus;
mod exit;
mod failure;
mod inspector;
mod kernel;
mod leftover;
mod links;
mod logs;
mod mounts;
mod namespace;
mod note;
mod owner;
mod pause;
mod program;
mod ready;
mod stop;
mod subject;
mod tree;

pub use cgroup::{Cgroup, CgroupFolders, Limits};
pub use child::{StartError, StartOptions, start};
pub use container::{Container, ContainerError};
pub use cpus::{Division, divide, online};
pub use exit::Exit;
pub use inspector::{INSPECTOR_STOP, start_inspector};
pub use links::{LinkError, Links};
pub use mounts::MountError;
pub use namespace::{NetworkError, Privileges, new_network, prepare_privileges};
pub use note::Note;
pub use program::{ProgramError, find as find_program};
pub use ready::{NotReady, wait_ready, wait_ready_blocking};
pub use stop::Stopped;
pub use subject::{SignalError, Subject};
