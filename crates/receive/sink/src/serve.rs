//! The test server: answers requests as it is told, and misbehaves on demand.
//!
//! What an answer is, is decided without I/O: [`conversation`] reads requests of
//! HTTP/1.1, [`service`] decides, [`outbox`] keeps answers in order until they
//! are due; [`http2`] does the first and the last for HTTP/2; [`connection`]
//! moves the bytes of either. [`http3`] does the same for HTTP/3, whose connections
//! [`quic`] serves.

mod admin;
mod answers;
mod bind;
mod connection;
mod conversation;
mod counts;
mod date;
mod http2;
mod http3;
mod outbox;
mod quic;
mod request;
mod sending;
mod service;
mod talk;

pub use bind::{BoundServer, ServeError, bind_server};
pub use counts::{ServeCounter, ServeCounts};
