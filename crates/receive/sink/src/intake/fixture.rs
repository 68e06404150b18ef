//! Messages for tests.

use stillwell_http::protobuf::MessageWriter;

/// A message of these fields.
pub(super) fn message(fields: &[(u32, &[u8])]) -> Vec<u8> {
    let mut message = MessageWriter::default();
    for (field, bytes) in fields {
        message.bytes(*field, bytes);
    }
    message.into_bytes()
}
