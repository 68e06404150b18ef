//! Simulated surroundings of a target: changes around it that are not sent to it.
//!
//! * process trees ([`be_process`]) and a folder that looks like `/proc`;
//! * containers of an engine, and objects of a Kubernetes cluster;
//! * trees of files, and logs in a file system that grow by the clock.
//!
//! [`prepare`] builds a [`Prepared`](stillwell_worker::Prepared), which starts workers as crate `generator`
//! does. Blocks of its payload only pace, except those that logs hold.

mod catalogue;
mod container;
mod file_tree;
mod kubeconfig;
mod kubernetes;
mod log_fs;
mod numbers;
mod prepare;
mod proc_fs;
mod process_tree;
mod wait;

pub use container::EngineMissing;
pub use kubeconfig::KubeconfigError;
pub use kubernetes::{ClusterError, ClusterLoginError};
pub use prepare::prepare;
pub use proc_fs::LayOutError;
pub use process_tree::{PROCESS_TREE_WORD, ProcessError, ProgramMissing, be_process};
