//! Errors of typed loads: a message and its causes.

use std::error::Error;
use std::fmt;

use stillwell_plan::load::LoadPlanError;
use stillwell_units::{ParseError, TargetError};

use super::reflection::ReflectionFailure;
use crate::Diagnostics;

type Cause = Box<dyn Error + Send + Sync>;

/// Error of a typed load. Its sources are the causes.
pub struct LoadSpecError(Inner);

enum Inner {
    /// A sentence.
    Text(String),
    /// Another error as it is.
    Cause(Cause),
    /// Name of the input, and the reason of the failure.
    While { what: String, cause: Cause },
}

impl LoadSpecError {
    pub(crate) fn text(message: impl Into<String>) -> Self {
        Self(Inner::Text(message.into()))
    }

    pub(super) fn cause(cause: impl Into<Cause>) -> Self {
        Self(Inner::Cause(cause.into()))
    }

    pub(super) fn because(what: impl Into<String>, cause: impl Into<Cause>) -> Self {
        let (what, cause) = (what.into(), cause.into());
        Self(Inner::While { what, cause })
    }

    /// Returns true if the server that was to describe a method could not be reached.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        let first: &(dyn Error + 'static) = match &self.0 {
            Inner::Text(_) => return false,
            Inner::Cause(cause) | Inner::While { cause, .. } => cause.as_ref(),
        };
        let chain = std::iter::successors(Some(first), |error| (**error).source());
        let mut failures = chain.filter_map(|error| {
            let failure = error.downcast_ref::<ReflectionFailure>();
            let nested = || error.downcast_ref::<Self>().map(Self::is_unreachable);
            failure
                .map(ReflectionFailure::is_unreachable)
                .or_else(nested)
        });
        failures.any(|is_unreachable| is_unreachable)
    }
}

impl fmt::Debug for LoadSpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoadSpecError({self}")?;
        let mut source = self.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        f.write_str(")")
    }
}

impl fmt::Display for LoadSpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Inner::Text(text) | Inner::While { what: text, .. } => f.write_str(text),
            Inner::Cause(cause) => cause.fmt(f),
        }
    }
}

impl Error for LoadSpecError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0 {
            Inner::Text(_) => None,
            Inner::Cause(cause) => cause.source(),
            Inner::While { cause, .. } => Some(cause.as_ref()),
        }
    }
}

macro_rules! causes {
    ($($error:ty),*) => {$(
        impl From<$error> for LoadSpecError {
            fn from(error: $error) -> Self {
                Self::cause(error)
            }
        }
    )*};
}

causes!(Diagnostics, LoadPlanError, ParseError, TargetError);

/// Adds to an error what was being read.
pub(super) trait While<T> {
    /// The same, with `what` before the cause.
    fn reading<W: Into<String>>(self, what: impl FnOnce() -> W) -> Result<T, LoadSpecError>;
}

impl<T, E: Into<Cause>> While<T> for Result<T, E> {
    fn reading<W: Into<String>>(self, what: impl FnOnce() -> W) -> Result<T, LoadSpecError> {
        self.map_err(|cause| LoadSpecError::because(what(), cause))
    }
}
