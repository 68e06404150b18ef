//! Whole experiments on machines whose noise and truth are known.
//!
//! A [`Machine`] gives the numbers that runs would have given: a private level for
//! each run, seconds that depend on those before them, and a drift that all runs
//! share. A [`SimulatedRule`] looks at them as an experiment would, and a [`Tally`] counts
//! how often it was right. A [`DisturbedMachine`] breaks the assumptions of the interval, and
//! a [`WholeProcedure`] confirms what it found. All follows from a seed.
//!
//! The rates that Stillwell promises are tested this way; `cargo xtask calibrate`
//! writes the long version to docs/internals/calibration.md.

mod covariate;
mod disturbed;
mod history;
mod machine;
mod procedure;
mod rule;
mod tally;

pub use covariate::{CovariateMachine, adjusted_change};
pub use disturbed::{DisturbedMachine, PairNoise, SharedNoise};
pub use history::SimulatedHistory;
pub use machine::{DRIFTS, Drift, Machine, SCENARIOS, Scenario};
pub use procedure::{WholeEnding, WholeProcedure};
pub use rule::{Ending, Followed, SimulatedRule};
pub use tally::Tally;
