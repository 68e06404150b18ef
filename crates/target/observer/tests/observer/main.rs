//! Samples of real processes.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod sampler;
mod tree;
