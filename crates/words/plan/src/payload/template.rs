//! Events as a template says: texts with values between them.

use serde::{Deserialize, Serialize};

use super::time_pattern::{TimeField, TimePattern};

mod measure;

pub use measure::TemplateError;

/// Bytes that one event of a template may have at most.
pub const TEMPLATE_EVENT_MAX: u64 = 4 << 20;

/// Maximum depth of nested parts.
pub const TEMPLATE_DEPTH_MAX: usize = 64;

/// Template of events. Indices of definitions and variables lie within their
/// lists, and no definition uses itself: [`TemplatePlan::lengths`] checks it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct TemplatePlan {
    /// One event, with what ends it.
    pub root: TemplatePart,
    /// The parts that [`TemplatePart::Use`] refers to, by index.
    pub definitions: Vec<TemplatePart>,
    /// Number of variables that [`TemplatePart::With`] binds.
    pub variables: usize,
}

/// A part of an event.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TemplatePart {
    /// This text, as it is.
    Text(String),
    /// One after the other.
    Sequence(Vec<Self>),
    /// One of them, as often as its weight says; not all weights are 0.
    Choice(Vec<(u32, Self)>),
    /// A whole number, all from `low` to `high` alike.
    Integer {
        /// The least.
        low: i64,
        /// The most, not below `low`.
        high: i64,
        /// Digits at least, filled up with zeros.
        digits: u8,
    },
    /// A number with decimals: a whole one from `low` to `high`, divided by ten
    /// to the power of `decimals`.
    Decimal {
        /// The least.
        low: i64,
        /// The most, not below `low`.
        high: i64,
        /// Digits behind the point, from 1 to 9.
        decimals: u8,
    },
    /// 0, 1, 2 and on; each worker counts by itself.
    Counter {
        /// The first number.
        first: u64,
    },
    /// The time of the event, which moves on by up to 31 ms from one to the next.
    Time(TimeText),
    /// A clock of its own: each time is up to a second after the one before, in
    /// whole seconds by RFC 3339. The first lies between 2001 and 2033.
    Clock,
    /// Random digits.
    Random {
        /// The alphabet of random characters.
        alphabet: Alphabet,
        /// Their number, at least 1.
        count: u16,
    },
    /// Something as it occurs in logs.
    Value(TemplateValue),
    /// A definition, by its index.
    Use(usize),
    /// As often as drawn from `low` to `high`, with `separator` between.
    Repeat {
        /// The least.
        low: u32,
        /// The most, not below `low`.
        high: u32,
        /// Text between two parts.
        separator: String,
        /// The repeated part.
        part: Box<Self>,
    },
    /// Draws variables, then makes `part`, in which they keep their values. No
    /// variable is used in the making of another one of the same list.
    With {
        /// Variables, by index, and what they are drawn from.
        variables: Vec<(usize, Self)>,
        /// The part in which they are defined.
        part: Box<Self>,
    },
    /// A variable, by its index.
    Variable(usize),
    /// A JSON value as the inside of a JSON text: of a text the part between
    /// its quotes, of anything else its escaped form.
    Inside(Box<Self>),
    /// JSON values joined to one: texts, lists and objects with what is of their
    /// own kind; a value of another kind takes the place of all before it.
    Join(Vec<Self>),
    /// Room for a stamp if stamps are enabled.
    Stamp,
}

/// Format of a time.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeText {
    /// `2021-02-03T04:05:06.789Z`
    Rfc3339,
    /// `03/Feb/2021:04:05:06 +0000`
    CommonLog,
    /// `Feb  3 04:05:06`
    Rfc3164,
    /// Since 1970, in units of ten to the power of minus `digits` seconds: 0, 3,
    /// 6 or 9.
    Epoch {
        /// Number of digits after the seconds.
        digits: u8,
    },
    /// As a pattern in the manner of `strftime` says.
    Pattern(TimePattern),
}

/// Alphabet of random digits.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Alphabet {
    /// `0` to `9`.
    Digits,
    /// `0` to `9` and `a` to `f`.
    Hexadecimal,
    /// `a` to `z`.
    Letters,
    /// `A` to `Z`, `a` to `z`, `0` to `9`, `+` and `/`.
    Base64,
}

/// Something as it occurs in logs. None of them needs escaping in JSON.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TemplateValue {
    /// The name of a program.
    Application,
    /// The name of a machine.
    Host,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// A log message.
    Message,
    /// A path of two to four segments.
    Path,
    /// The name of a user.
    User,
    /// A UUID of version 4.
    Uuid,
    /// A common word.
    Word,
}
