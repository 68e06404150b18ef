//! Helpers that tests of several crates share: optional programs, free ports, polling, processes that end with
//! the test, and a Kubernetes API.

#![expect(
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by a panic and prints what it skips"
)]

mod cluster;
mod process;
mod program;
mod wait;

pub use cluster::{ApiRequest, Cluster};
pub use process::{Finished, Process, signal_process};
pub use program::{find_program, program_or_skip};
pub use wait::{free_port, wait_until};
