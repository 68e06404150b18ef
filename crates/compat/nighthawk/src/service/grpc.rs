//! gRPC over HTTP/2: connections that are served, and calls that are made.

mod call;
mod client;
mod connection;
mod status;

pub(crate) use call::{Call, Handler, LoadMark, Methods};
pub use client::{Channel, ChannelError, ClientCall};
pub(crate) use connection::serve;
pub use status::{CallFailed, StatusCode};
