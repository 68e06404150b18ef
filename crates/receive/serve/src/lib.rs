//! A configurable HTTP test server: it answers as it is configured, delays and misbehaves
//! on request, and counts every request in exactly one place.
//!
//! [`bind_server`] turns a [`ServePlan`](stillwell_plan::ServePlan) into a [`BoundServer`],
//! whose sockets take connections from then on; [`BoundServer::start`] starts its workers in
//! a scope. It speaks HTTP/1.1, HTTP/2, HTTP/3 and TLS.
//!
//! The response to a request is decided without I/O: `conversation` reads requests of
//! HTTP/1.1, `service` decides, `outbox` keeps responses in order until they
//! are due; `http2` does the first and the last for HTTP/2; `connection`
//! moves the bytes of either. `http3` does the same for HTTP/3, whose connections
//! `quic` serves.

mod admin;
mod answers;
mod bind;
mod connection;
mod conversation;
mod counts;
mod date;
mod detect;
mod http2;
mod http3;
mod outbox;
mod quic;
mod request;
mod request_log;
mod sending;
mod service;

pub use bind::{BoundServer, ServeError, bind_server};
pub use counts::{ServeCounter, ServeCounts};
pub use request_log::{LoggedResult, RequestLog, RequestLogEntry};
