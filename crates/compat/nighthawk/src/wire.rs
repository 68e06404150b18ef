//! Messages as they go over gRPC: protocol buffers in binary.
//!
//! * [`Schema`]: every message by its full name, from the descriptors of the `.proto`
//!   files in the folder `proto`, which any other tool can read as well; bytes to the
//!   JSON form of a message and back, and what reflection tells;
//!   The same as text: [`Schema::read_text`], [`Schema::write_text`];
//! * [`ExecutionRequest`], [`ExecutionResponse`], [`Status`]: what
//!   `nighthawk.client.NighthawkService` speaks.
//!
//! `prost-reflect` reads and writes the bytes. Between its messages and data stands the
//! JSON form that is read and written anyway, so that the meaning of a field is in one
//! place. Nothing here is on a path that has to be fast.

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
    ExecutionRequest, ExecutionResponse, RequestError, Status, decode_request, decode_response,
    encode_request, encode_response, request_of_json, response_json, response_of_json,
};
pub use schema::Schema;
pub use text::TextError;
