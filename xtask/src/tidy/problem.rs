//! The problems that checks report.

use std::fmt;

/// One broken rule. Printed as `path:line: message`.
#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Problem {
    pub(super) path: String,
    pub(super) line: usize,
    pub(super) message: String,
}

impl Problem {
    /// `line` counts from 1.
    pub(super) fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.path, self.line, self.message)
    }
}
