//! Plans that were read, with remarks.

use stillwell_text::Diagnostics;

/// Name of the native format.
pub(crate) const NATIVE: &str = "native";

/// A plan that may be run, and remarks about it.
#[derive(Clone, Debug)]
pub struct Loaded<T> {
    /// The plan.
    pub plan: T,
    /// Warnings and notes, in the order of files.
    pub warnings: Diagnostics,
    /// Name of the format that it was read from: `native`, or that of another tool; of
    /// several experiments the first's.
    pub format: &'static str,
}

impl<T> Loaded<T> {
    /// The plan, unless there is none or something was an error.
    ///
    /// # Errors
    /// All of `diagnostics`.
    pub fn checked(
        plan: Option<T>,
        format: &'static str,
        diagnostics: Diagnostics,
    ) -> Result<Self, Diagnostics> {
        let diagnostics = diagnostics.sorted();
        match plan {
            Some(plan) if !diagnostics.has_errors() => Ok(Self {
                plan,
                warnings: diagnostics,
                format,
            }),
            _ => Err(diagnostics),
        }
    }
}
