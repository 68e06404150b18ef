//! Runs of real processes. The target is this test program, started again.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, and says what it skips"
)]

#[path = "run/blocks.rs"]
mod blocks;
#[path = "run/fixture.rs"]
mod fixture;
#[path = "run/grpc.rs"]
mod grpc;
#[path = "run/load.rs"]
mod load;
#[path = "run/together.rs"]
mod together;
