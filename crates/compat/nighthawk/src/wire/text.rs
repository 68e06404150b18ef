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

mod write;

use serde_json::Value;
use stillwell_config::{TextFormatError, read_text_format};

use super::decode::{Decoder, UnknownFields};
use super::error::WireError;
use super::schema::Schema;

/// A text that is no message.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum TextError {
    /// It does not fit the message's type.
    #[error("{0}")]
    Format(#[from] TextFormatError),
    /// The type is not known, or a value is not permitted here.
    #[error(transparent)]
    Message(#[from] WireError),
}

impl Schema {
    /// The message `name` that `text` says in the text form of protocol buffers, in
    /// its JSON form.
    ///
    /// # Errors
    /// [`TextError`] names the line, and the field that the message does not have or
    /// that holds something else.
    pub fn read_text(&self, name: &str, text: &str) -> Result<Value, TextError> {
        let message = read_text_format(&self.message(name)?, text)?;
        let decoder = Decoder {
            schema: self,
            unknown: UnknownFields::Refuse,
        };
        Ok(decoder.message(&message, 0)?)
    }
}
