//! Every test of this crate that needs only its public face: real sockets, real
//! workers, exact counts.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "sink/bind.rs"]
mod bind;
#[path = "sink/datagram.rs"]
mod datagram;
#[path = "sink/http.rs"]
mod http;
#[path = "sink/intake.rs"]
mod intake;
#[path = "sink/ledger.rs"]
mod ledger;
#[path = "sink/steering.rs"]
mod steering;
#[path = "sink/stream.rs"]
mod stream;
#[path = "sink/support.rs"]
mod support;
