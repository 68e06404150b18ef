//! Messages in the text format of protocol buffers.

use miette::Diagnostic as _;
use prost_reflect::{DynamicMessage, MessageDescriptor};

/// Messages within messages that are read.
pub(super) const DEPTH_MAX: usize = 100;

/// A text that is not a message of its type.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct TextFormatError {
    /// The line, from 1 on.
    pub line: usize,
    /// Description of the problem.
    pub problem: String,
}

/// The message that `text` holds in the text format of protocol buffers.
///
/// # Errors
/// [`TextFormatError`] names the line and the field that is wrong.
pub fn read_text_format(
    descriptor: &MessageDescriptor,
    text: &str,
) -> Result<DynamicMessage, TextFormatError> {
    let at = |place: usize, problem: String| TextFormatError {
        line: text
            .bytes()
            .take(place)
            .filter(|byte| *byte == b'\n')
            .count()
            + 1,
        problem,
    };
    if let Some(place) = too_deep(text) {
        let problem = format!("it has more than {DEPTH_MAX} nested messages");
        return Err(at(place, problem));
    }
    DynamicMessage::parse_text_format(descriptor.clone(), text).map_err(|error| {
        let label = error.labels().and_then(|mut labels| labels.next());
        // An error without a place is about the end of the text.
        let place = label.map_or_else(|| text.trim_end().len(), |label| label.offset());
        at(place, error.to_string())
    })
}

/// The place of the first message that is nested too deep: the library would follow it until its stack ends.
fn too_deep(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    text.bytes().position(|byte| {
        match byte {
            b'{' | b'<' | b'[' => depth += 1,
            b'}' | b'>' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > DEPTH_MAX
    })
}
