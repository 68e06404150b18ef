//! Messages as people write them: the text form of protocol buffers.
//!
//! ```text
//! measuring_period { seconds: 2 }
//! metric_thresholds {
//!   metric_spec { metric_name: "success-rate" }
//!   threshold_spec {
//!     scoring_function {
//!       name: "nighthawk.binary_scoring"
//!       typed_config {
//!         [type.googleapis.com/nighthawk.adaptive_load.BinaryScoringFunctionConfig] {
//!           lower_threshold { value: 0.9 }
//!         }
//!       }
//!     }
//!   }
//! }
//! ```
//!
//! The JSON form is between text and data, as between bytes and data: durations are texts,
//! wrappers are their values, and `Any` has its type under `@type`.

mod read;
mod tokens;
mod write;

/// A text that is no message.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("line {line} of the text proto: {problem}")]
pub struct TextError {
    /// The line, from 1 on.
    pub line: usize,
    /// The problem.
    pub problem: String,
}
