//! Change points: where the level of a history moved.
//!
//! [`detect`] is Stillwell's own: it judges the best split of all against the
//! best splits of shuffled histories, so its alarm rate is what it says.
//! [`otava`] finds what Apache Otava 0.8.0 finds, for those who compare with it;
//! it judges the best split as if it had been chosen beforehand, and alarms on
//! one stationary history in ten at its strict default, on nearly all of long
//! or drifting ones. Either way a change point is a lead, for a paired
//! comparison of the two revisions to confirm.

mod energy;
mod null;
mod otava;
mod permutation;
mod split;
mod step;

pub use otava::{OtavaOptions, otava};
pub use permutation::{ChangeOptions, Detection, detect};

use crate::number::float;
use crate::sample::{Sample, SampleError};

/// A place in a history where its level moved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// The first value of the new level, counted from zero.
    pub index: usize,
    /// The mean since the change point before, or the start.
    pub mean_before: f64,
    /// The standard deviation there (Otava: divisor n; ours: n − 1).
    pub standard_deviation_before: f64,
    /// The mean up to the next change point, or the end.
    pub mean_after: f64,
    /// The standard deviation there.
    pub standard_deviation_after: f64,
    /// Probability that chance alone would bring this forth, as the method has it.
    pub p_value: f64,
}

impl ChangePoint {
    /// "forward_change_percent": after / before − 1, in percent; 0 where before
    /// is 0, as Otava has it.
    #[must_use]
    pub fn forward_change_percent(&self) -> f64 {
        relative(self.mean_before, self.mean_after) * 100.0
    }

    /// "magnitude": the larger of both relative changes, as a share.
    #[must_use]
    pub fn magnitude(&self) -> f64 {
        let forward = relative(self.mean_before, self.mean_after);
        let backward = relative(self.mean_after, self.mean_before);
        forward.abs().max(backward.abs())
    }
}

fn relative(from: f64, to: f64) -> f64 {
    if from.abs() > 0.0 {
        to / from - 1.0
    } else {
        0.0
    }
}

/// Reason why a history has no change points, nor none.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ChangeError {
    /// A false-alarm rate that is not between 0 and 1.
    #[error("false-alarm rate {actual} does not lie between 0 and 1")]
    AlarmRate {
        /// The given value.
        actual: f64,
    },
    /// A value that is not finite, or none at all.
    #[error("the history cannot be used")]
    Values(#[from] SampleError),
    /// Windows of fewer than two values.
    #[error("a window of {actual} values is too short, at least 2 are needed")]
    Window {
        /// The given value.
        actual: usize,
    },
}

/// The mean and the standard deviation, with divisor n less `lost`, of a
/// segment; deviation 0 for a single value.
fn describe(values: &[f64], lost: usize) -> (f64, f64) {
    let Ok(sample) = Sample::try_new(values, 1) else {
        return (f64::NAN, f64::NAN);
    };
    let count = float(values.len());
    let deviation = sample.standard_deviation().map_or(0.0, |deviation| {
        deviation * ((count - 1.0) / (count - float(lost))).sqrt()
    });
    (sample.mean(), deviation)
}
