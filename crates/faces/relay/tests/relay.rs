//! Every test of this crate that needs only its public face: real sockets on
//! both sides of a relay that runs.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "relay/datagram.rs"]
mod datagram;
#[path = "relay/grpc.rs"]
mod grpc;
#[path = "relay/hec.rs"]
mod hec;
#[path = "relay/http.rs"]
mod http;
#[path = "relay/metrics.rs"]
mod metrics;
#[path = "relay/options.rs"]
mod options;
#[path = "relay/stream.rs"]
mod stream;
#[path = "relay/support.rs"]
mod support;
#[path = "relay/tail.rs"]
mod tail;
