//! Targets that are real processes.
#![expect(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by panicking and says on stdout what it skipped"
)]

mod container;
mod leftover;
mod life;
mod place;
mod ready;
mod support;
