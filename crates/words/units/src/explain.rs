//! Errors for readers.

use std::error::Error;

/// An error and its causes as one line; what a text says already is not said
/// again.
pub fn explain(error: &(impl Error + ?Sized)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.ends_with(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Outer(&'static str, #[source] io::Error);

    #[test]
    fn causes_follow_unless_the_message_has_them() {
        let inner = || io::Error::other("no space");
        assert_eq!(explain(&Outer("write it", inner())), "write it: no space");
        let error = Outer("write it: no space", inner());
        assert_eq!(explain(&error), "write it: no space");
    }
}
