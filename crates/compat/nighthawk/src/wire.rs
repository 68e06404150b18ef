//! Messages as they go over gRPC: protocol buffers in binary.
//!
//! * [`Schema`]: every message by its full name, from the descriptors of the `.proto`
//!   files in the folder `proto`, which any other tool can read as well; bytes to the
//!   JSON form of a message and back, and the descriptors for reflection;
//!   The same as text: [`Schema::read_text`], [`Schema::write_text`];
//! * [`ExecutionRequest`], [`ExecutionResponse`], [`Status`]: what
//!   `nighthawk.client.NighthawkService` receives and sends.
//!
//! `prost-reflect` reads and writes the bytes. The JSON form is between its messages and data,
//! because it is read and written anyway: the meaning of a field is in one place. This module
//! is not on a fast path.

#[cfg(test)]
mod compiled;
mod decode;
mod encode;
mod error;
mod known;
mod messages;
mod schema;
#[cfg(test)]
mod tests;
mod text;

pub use decode::UnknownFields;
pub use error::WireError;
pub use messages::{
    ExecutionMessageError, ExecutionRequest, ExecutionResponse, Status, decode_request,
    decode_response, encode_request, encode_response, request_of_json, response_json,
    response_of_json,
};
pub use schema::Schema;
pub use text::TextError;
