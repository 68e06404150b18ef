//! Values with bounds: the words that every other crate speaks in.
//!
//! Each type here carries its unit, so a number can never be taken for
//! another kind of number: [`ByteSize`] and [`ByteRate`], [`EventRate`],
//! [`Nanos`] (a length of time) and [`Moment`] (a point on the host's monotonic
//! clock), [`Seed`], [`RunId`], [`Tolerance`] and [`Target`] (a URL that load is sent to). What a person types is read by
//! `FromStr` with one grammar for files and flags; what is printed reads back.
//!
//! This crate reads no clock, file or socket and never will.
//!
//! ```
//! use stillwell_units::{ByteRate, ByteSize, Nanos};
//! let size: ByteSize = "64 KiB".parse()?;
//! assert_eq!(size.bytes(), 65_536);
//! let rate: ByteRate = "1 MB/s".parse()?;
//! assert_eq!(rate.bytes_per_second(), 1_000_000);
//! let time: Nanos = "1m30s".parse()?;
//! assert_eq!(time.as_secs_f64(), 90.0);
//! # Ok::<(), stillwell_units::ParseError>(())
//! ```

mod bytes;
mod explain;
pub mod human;
mod identity;
mod number;
mod rate;
mod ratio;
mod secret;
mod short_text;
mod target;
mod time;

pub use bytes::ByteSize;
pub use explain::explain;
pub use identity::{RunId, Seed};
pub use number::{as_usize, count, float_from_u64, floor_to_u64, parse_count, whole_number};
pub use rate::{ByteRate, EventRate};
pub use ratio::Tolerance;
pub use secret::{MASK, Secrets};
pub use short_text::{ShortText, TextTooLong};
pub use target::{Scheme, Target, TargetError};
pub use time::{Moment, Nanos};

/// A typed value that is not accepted. The message says what is accepted.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ParseError {
    /// The text does not have the shape of this kind of value.
    #[error("`{input}` is not {}: write {accepted}", human::with_article(kind))]
    Shape {
        /// The typed text.
        input: String,
        /// The kind of value that was expected.
        kind: &'static str,
        /// An example of each shape that is accepted.
        accepted: &'static str,
    },
    /// A number without its unit, which would have to be guessed.
    #[error(
        "{} needs a unit, as none is assumed: write `{input}{example}`",
        human::with_article(kind)
    )]
    UnitMissing {
        /// The typed text.
        input: String,
        /// The kind of value that was expected.
        kind: &'static str,
        /// A unit that would make it right.
        example: &'static str,
    },
    /// The value has the right shape but lies outside its bounds.
    #[error("{kind} `{input}` is out of range: {bounds}")]
    Range {
        /// The typed text.
        input: String,
        /// The kind of value that was expected.
        kind: &'static str,
        /// The bounds, in words.
        bounds: &'static str,
    },
}
