//! Messages for tests.

use stillwell_http::protobuf::Message;

/// A message of these fields.
pub(super) fn message(fields: &[(u32, &[u8])]) -> Vec<u8> {
    let mut message = Message::default();
    for (field, bytes) in fields {
        message.bytes(*field, bytes);
    }
    message.into_bytes()
}
