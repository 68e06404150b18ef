//! Pure statistics of a few runs and the change between them.
//!
//! The unit of every test here is one run, never one second of a run, and runs
//! are compared in pairs: a [`PairedEffect`] is the mean log ratio, or the mean
//! difference, of (baseline, comparison) pairs with its interval. [`Looks`] says
//! after how many pairs that may be looked at, so all looks hold together,
//! [`balanced_order`] which half of each pair goes first, [`pairs_needed`] how many
//! pairs a change of a given size needs, and [`Sample`] describes one column of
//! numbers. [`StudentT`] and [`normal`] are the distributions beneath.
//!
//! Also here: tests for columns without pairs ([`welch`], [`mann_whitney`]),
//! for pairs by rank ([`wilcoxon_signed_rank`], [`hodges_lehmann`]) and for many tests
//! at once ([`holm`], [`benjamini_hochberg`]); [`simulate`] tries all of it on machines
//! whose truth is known.
//!
//! Around these: [`warmup`] says how much of a run to leave out, [`components`]
//! how long the next runs should be, [`modes`] whether run means fall into two
//! groups, and [`change`] where a history moved. [`capacity`] finds the highest rate
//! at which something holds. [`soak`](mod@soak) and [`smp`](mod@smp)
//! are the figures of two ancestors, for those who compare with their reports.
//!
//! This crate never decides: tolerances, verdicts and the direction that is
//! worse belong to its callers. It never drops a value for being far from the
//! others, since that doubles the false alarms. It reads no clock, file or
//! socket, and all random numbers follow from a seed.
//!
//! Every figure is held against SciPy or statsmodels to 1e-9 by golden files, and
//! the rates of false alarms, misses and covered truths by seeded simulations.
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

mod binomial;
pub mod capacity;
pub mod change;
pub mod components;
mod draw;
mod estimate;
mod level;
mod looks;
mod mann_whitney;
pub mod modes;
mod multiplicity;
pub mod normal;
mod number;
mod order;
mod paired;
mod power;
mod quadrature;
mod ranks;
mod sample;
pub mod simulate;
pub mod smp;
pub mod soak;
mod student;
pub mod warmup;
mod welch;
mod wilcoxon;

pub use binomial::binomial_share;
pub use estimate::Estimate;
pub use level::{Level, LevelError};
pub use looks::{Looks, LooksError};
pub use mann_whitney::{MannWhitney, mann_whitney, mann_whitney_p_min};
pub use multiplicity::{benjamini_hochberg, holm};
pub use order::{Orders, PairOrder, balanced_order};
pub use paired::{Differences, Half, LogRatios, PairedEffect, PairedError};
pub use power::{PowerError, paired_power, pairs_needed};
pub use sample::{Sample, SampleError, Sorted};
pub use student::{DegreesError, StudentT};
pub use welch::{OneSample, Welch, one_sample, welch};
pub use wilcoxon::{Wilcoxon, hodges_lehmann, wilcoxon_p_min, wilcoxon_signed_rank};
