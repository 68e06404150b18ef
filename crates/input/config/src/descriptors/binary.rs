//! Finds the field of a binary message that is wrong.

use prost_reflect::prost::encoding::decode_varint;
use prost_reflect::{DynamicMessage, Kind, MessageDescriptor};

use super::text_format::DEPTH_MAX;

/// One field of a message.
struct Part<'b> {
    number: u32,
    /// Key and value.
    whole: &'b [u8],
    /// The value, if a length precedes it.
    inner: Option<&'b [u8]>,
}

/// Returns the innermost field of `bytes` that is no field of `message` alone, with the reason;
/// `None` if all are fields.
pub(super) fn culprit(
    message: &MessageDescriptor,
    bytes: &[u8],
    depth: usize,
) -> Option<(Vec<String>, String)> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let part = match part(rest) {
            Ok(part) => part,
            Err(number) => {
                let name = number.map(|number| name_of(message, number));
                let problem = "the message ends within it".to_owned();
                return Some((name.into_iter().collect(), problem));
            }
        };
        rest = &rest[part.whole.len()..];
        let Err(error) = DynamicMessage::decode(message.clone(), part.whole) else {
            continue;
        };
        let inner = message.get_field(part.number).map(|field| field.kind());
        let deeper = match (inner, part.inner) {
            (Some(Kind::Message(inner)), Some(bytes)) if depth < DEPTH_MAX => {
                culprit(&inner, bytes, depth + 1)
            }
            _ => None,
        };
        let (mut names, problem) = deeper.unwrap_or_else(|| (Vec::new(), error.to_string()));
        names.insert(0, name_of(message, part.number));
        return Some((names, problem));
    }
    None
}

/// Its number where the message has no such field.
fn name_of(message: &MessageDescriptor, number: u32) -> String {
    let field = message.get_field(number);
    field.map_or_else(|| number.to_string(), |field| field.name().to_owned())
}

/// The first field of `bytes`, or the number of the one that is cut off, if that much
/// is there. A group, which has no length, is all that is left.
fn part(bytes: &[u8]) -> Result<Part<'_>, Option<u32>> {
    let mut rest = bytes;
    let key = decode_varint(&mut rest).map_err(|_| None)?;
    let number = u32::try_from(key >> 3).map_err(|_| None)?;
    let cut = || Some(number);
    let begin = bytes.len() - rest.len();
    let mut inner = None;
    let end = match key & 7 {
        0 => {
            decode_varint(&mut rest).map_err(|_| cut())?;
            bytes.len() - rest.len()
        }
        1 => begin + 8,
        2 => {
            let length = decode_varint(&mut rest).map_err(|_| cut())?;
            let length = usize::try_from(length).map_err(|_| cut())?;
            inner = Some(rest.get(..length).ok_or_else(cut)?);
            bytes.len() - rest.len() + length
        }
        5 => begin + 4,
        _ => bytes.len(),
    };
    Ok(Part {
        number,
        whole: bytes.get(..end).ok_or_else(cut)?,
        inner,
    })
}
