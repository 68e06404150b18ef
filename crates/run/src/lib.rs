//! One run.
mod machine;
pub use machine::{Action,Event,Machine};
