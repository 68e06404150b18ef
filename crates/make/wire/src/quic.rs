//! QUIC by quinn's state machine, over sockets of ours.
//!
//! The library reads no socket and no clock and starts nothing: here it is handed
//! datagrams and moments, and what it wants sent is sent, many datagrams in one call
//! where the kernel can do that.
//!
//! * [`QuicClient`] opens connections of one worker. A [`QuicConnection`] has its own socket,
//!   connected, so a port without a listener is an error; or [`Datagrams`] carry it.
//! * [`QuicServer`] is one socket of one worker, and all connections that come to it.
//! * Either gives a [`Line`]: a connection's streams and events.
//!
//! What the peer may send ahead is bounded by its windows, and what waits to be sent
//! by ours.

mod arrival;
mod buffers;
mod client;
mod line;
pub(crate) mod noted;
mod path;
mod refused;
mod server;
mod socket;
mod times;
mod transport;

pub use client::{QuicClient, QuicConnection};
pub use line::{Line, QuicEvent, QuicStream, StreamRead};
pub use path::Datagrams;
pub use refused::{QuicEnd, QuicRefused};
pub use server::{BindQuicError, BoundQuic, Came, QuicServer, bind_quic};
