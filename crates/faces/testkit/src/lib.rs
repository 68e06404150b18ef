//! What several crates' tests share: programs that may be missing, ports that
//! are free, waiting for a thing itself, processes that end with the test, and the
//! API of a cluster.

#![expect(
    clippy::panic,
    clippy::print_stdout,
    reason = "a test ends by a panic and says what it skips"
)]

mod cluster;
mod process;
mod program;
mod wait;

pub use cluster::{Asked, Cluster};
pub use process::{Finished, Process, signal_process};
pub use program::{find_program, program_or_skip};
pub use wait::{free_port, wait_until};
