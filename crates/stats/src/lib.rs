//! Numbers only: what a handful of runs can tell about a change.
//!
//! The unit of every test here is one run, never one second of a run, and runs
//! are compared in pairs: a [`PairedEffect`] is the mean log ratio of
//! (baseline, comparison) pairs with its interval. [`balanced_order`] says which
//! half of each pair goes first, [`pairs_needed`] how many pairs a change of a
//! given size asks for, and [`Sample`] describes one column of numbers.
//! [`StudentT`] and [`normal`] are the distributions beneath.
//!
//! This crate never decides: tolerances, verdicts and the direction that is
//! worse belong to its callers. It never drops a value for being far from the
//! others, since that doubles the false alarms. It reads no clock, file or
//! socket, and whatever is random follows from a seed.
//!
//! Every figure is held against SciPy to 1e-9 by golden files, and the rates of
//! false alarms, misses and covered truths by seeded simulations.
//!
//! ```
//! use stillwell_stats::{Level, PairedEffect};
//!
//! // Microseconds of CPU per event: (baseline, comparison) of each pair.
//! let pairs = [(4.10, 4.31), (4.02, 4.25), (4.15, 4.33), (4.08, 4.29)];
//! let effect = PairedEffect::from_pairs(&pairs, Level::NINETY_FIVE)?;
//! let change = effect.relative();
//! assert!((change.value - 0.0507).abs() < 1e-3);
//! assert!(change.excludes_zero());
//! assert!(effect.smallest_visible() < 0.02);
//! # Ok::<(), stillwell_stats::PairedError>(())
//! ```

mod estimate;
mod level;
pub mod normal;
mod number;
mod order;
mod paired;
mod power;
mod sample;
mod student;

pub use estimate::Estimate;
pub use level::{Level, LevelError};
pub use order::{Orders, PairOrder, balanced_order};
pub use paired::{Half, LogRatios, PairedEffect, PairedError};
pub use power::{PowerError, paired_power, pairs_needed};
pub use sample::{Sample, SampleError, Sorted};
pub use student::{DegreesError, StudentT};
