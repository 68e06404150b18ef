//! Text whose length fits one byte.

use serde::{Deserialize, Serialize};

/// Text of at most [`ShortText::BYTES_MAX`] bytes: the short strings of AMQP, and names of Kafka.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct ShortText(Box<str>);

/// Text with more than [`ShortText::BYTES_MAX`] bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "a text of {bytes} bytes is too long: at most {} bytes fit",
    ShortText::BYTES_MAX
)]
pub struct TextTooLong {
    /// Length of the text.
    pub bytes: usize,
}

impl ShortText {
    /// Maximum length in bytes.
    pub const BYTES_MAX: u8 = u8::MAX;

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Length in bytes.
    #[must_use]
    pub fn length(&self) -> u8 {
        u8::try_from(self.0.len()).expect("its constructor checked the length")
    }
}

impl TryFrom<String> for ShortText {
    type Error = TextTooLong;

    fn try_from(text: String) -> Result<Self, TextTooLong> {
        if text.len() > usize::from(Self::BYTES_MAX) {
            return Err(TextTooLong { bytes: text.len() });
        }
        Ok(Self(text.into()))
    }
}

impl TryFrom<&str> for ShortText {
    type Error = TextTooLong;

    fn try_from(text: &str) -> Result<Self, TextTooLong> {
        text.to_owned().try_into()
    }
}

impl From<ShortText> for String {
    fn from(text: ShortText) -> Self {
        text.0.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_256_bytes_is_refused_and_none_is_cut() {
        let longest = "x".repeat(255);
        let text = ShortText::try_from(longest.as_str()).unwrap();
        assert_eq!((text.as_str(), text.length()), (longest.as_str(), 255));
        let error = ShortText::try_from("x".repeat(256)).unwrap_err();
        assert_eq!(error, TextTooLong { bytes: 256 });
        assert_eq!(ShortText::default().length(), 0);
    }

    #[test]
    fn a_stored_plan_cannot_have_a_longer_text() {
        let stored = format!("\"{}\"", "x".repeat(256));
        let error = serde_json::from_str::<ShortText>(&stored).unwrap_err();
        assert!(error.to_string().contains("at most 255 bytes"), "{error}");
    }
}
