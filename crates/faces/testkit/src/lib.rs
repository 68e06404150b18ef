//! Helpers that tests of several crates share: optional programs, free ports, polling, processes that end with
//! the test, a Kubernetes API, and the comments of a host of repositories.

#![expect(
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by a panic and prints what it skips"
)]

mod api;
mod cluster;
mod forge;
mod process;
mod program;
mod wait;

pub use api::ApiRequest;
pub use cluster::Cluster;
pub use forge::Forge;
pub use process::{Finished, Process, signal_process};
pub use program::{find_program, git, program_or_skip};
pub use wait::{LONG, free_port, wait_until};
