//! The part that every server of a run shares: a listener, the loop that accepts its
//! connections, and a worker with its counters, its time account and its read buffer.
//!
//! ```text
//! StreamListener ──accept──▶ Stream ──▶ one task per connection
//!                                         ServerWorker::receive
//! ```
//!
//! A connection is a [`Protocol`], which does no I/O: bytes in, bytes out. [`drive`] moves its
//! bytes and waits for its responses that are due later. [`Http`] chooses between two
//! protocols by the first bytes, and [`PageServer`] serves pages of the control plane.
//!
//! A worker that is to end takes the bytes that its sockets already hold, for a bounded time,
//! and then ends ([`ServerWorker::stopping`]).

mod accept;
mod account;
mod drive;
mod listener;
mod open;
mod pages;
mod protocol;
mod worker;

pub use accept::{AcceptEnd, accept, accept_until, finish_connections};
pub use account::{TimeAccount, accounted};
pub use drive::{
    Behaviour, DueTimer, HeadDeadline, PlainReader, Reader, drive, drive_watched, linger, send_due,
};
pub use listener::{ListenerSocket, StreamListener};
pub use open::{Activity, OpenConnections, busy, watched};
pub use pages::{Page, PageRequest, PageServer, Pages};
pub use protocol::{Http, Output, Protocol, Versions};
pub use worker::{ServerWorker, account_ticks};
