//! Messages as they go over gRPC: protocol buffers in binary.
//!
//! * [`Schema`]: every message by its full name, read from the `.proto` files in
//!   the folder `proto`, which any other tool can read as well; bytes to the JSON form
//!   of a message and back, and what reflection tells;
//!   The same as text: [`Schema::read_text`], [`Schema::write_text`];
//! * [`ExecutionRequest`], [`ExecutionResponse`], [`Status`]: what
//!   `nighthawk.client.NighthawkService` speaks.
//!
//! Between bytes and data stands the JSON form that is read and written anyway, so
//! that what a field means is said in one place. Nothing here is on a path that
//! has to be fast.

mod bytes;
#[cfg(test)]
mod compiled;
mod decode;
mod describe;
mod encode;
mod known;
mod messages;
mod parse;
mod schema;
#[cfg(test)]
mod tests;
mod text;

pub use bytes::WireError;
pub use decode::UnknownFields;
pub use messages::{
    ExecutionRequest, ExecutionResponse, RequestError, Status, decode_request, decode_response,
    encode_request, encode_response, request_of_json, response_json, response_of_json,
};
pub use schema::Schema;
pub use text::TextError;
