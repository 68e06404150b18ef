//! A second record of a run, in another format.

use std::fmt::Debug;

use stillwell_metric::{Beat, Sample};
use stillwell_plan::Phase;
use stillwell_units::RunId;

use crate::write::CaptureError;

/// A format in which the samples of a run are written beside its capture.
pub trait SampleFormat: Debug + Send + Sync {
    /// Begins the record of `run`, in place of an earlier one.
    ///
    /// # Errors
    /// [`CaptureError`] with the file and the kernel's answer.
    fn begin(&self, run: RunId) -> Result<Box<dyn SampleWriter>, CaptureError>;
}

/// Writes the samples of one run.
pub trait SampleWriter: Debug + Send {
    /// Writes the samples of a beat that was taken in `phase`.
    ///
    /// # Errors
    /// [`CaptureError`]; what was written before stays readable.
    fn beat(&mut self, beat: &Beat, phase: Phase, samples: &[Sample]) -> Result<(), CaptureError>;

    /// Writes what is left, and makes the record whole.
    ///
    /// # Errors
    /// [`CaptureError`]; what was written before stays readable.
    fn close(self: Box<Self>) -> Result<(), CaptureError>;
}
