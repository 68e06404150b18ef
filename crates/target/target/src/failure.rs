//! Errors as text.

/// Returns an error and its source, in one line.
pub(crate) fn with_source(error: impl std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
