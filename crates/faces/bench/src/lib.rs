//! Benches a pipeline within one process, as `stillwell bench` does a program:
//! each event has an intended time and a number, so latency counts what had
//! to wait, and what was lost, duplicated or put out of order is known by number.
//!
//! A [`Bench`] has two ends. The [`Source`] says when the next event is due and gives it a
//! [`Ticket`], which goes through the pipeline with the event: as a field, or as 24 bytes. At
//! the output of the pipeline a [`Sink`] takes the ticket; each thread may have a sink. Where
//! the pipeline says that an event was delivered for good, or never will be, the ticket is
//! [acknowledged] or [failed]. The [`Report`] has the layouts of `stillwell bench`.
//!
//! ```
//! use std::sync::mpsc::sync_channel;
//! use std::time::Duration;
//!
//! use stillwell_bench::{Bench, Plan, Rate};
//!
//! let plan = Plan {
//!     rate: Rate::PerSecond(100_000.0),
//!     events: 2_000,
//!     ..Plan::new("a channel")
//! };
//! let (bench, mut source, mut sink) = Bench::start(plan)?;
//! let (into, out_of) = sync_channel(64);
//! std::thread::scope(|threads| {
//!     threads.spawn(move || {
//!         while let Ok((ticket, text)) = out_of.recv() {
//!             let text: &str = text;
//!             sink.arrived(&ticket, text.len());
//!         }
//!     });
//!     while let Some(ticket) = source.next() {
//!         // A pipeline of one's own drops one in a hundred.
//!         if ticket.sequence % 100 != 42 {
//!             into.send((ticket, "an event")).expect("somebody receives");
//!         }
//!     }
//!     drop((source, into));
//! });
//! let report = bench.finish()?;
//! assert_eq!((report.sent.events, report.lost()), (2_000, 20));
//! assert_eq!(report.losses[0], 42..=42);
//! println!("{}", report.text());
//! # Ok::<(), stillwell_bench::BenchError>(())
//! ```
//!
//! With [`Rate::PerSecond`] the load is open: an event that the pipeline kept
//! waiting was due all the same, and its latency counts from then. With
//! [`Rate::Max`] the next event follows as soon as the pipeline has taken the one
//! before, and latency counts from that.
//!
//! Nothing allocates for each event once it is warm, except one bit of memory for
//! every event at every sink. What the two ends cost for each event is measured by
//! `cargo bench -p stillwell-bench`.
//!
//! [acknowledged]: Sink::acknowledged
//! [failed]: Sink::failed

mod account;
mod bench;
mod plan;
mod report;
mod shared;
mod sink;
mod source;
mod ticket;

pub use bench::{Bench, BenchError};
pub use plan::{EVENTS_LIMIT, Plan, PlanError, Rate};
pub use report::{Answers, Report};
pub use sink::Sink;
pub use source::{Due, Source};
pub use stillwell_metric::Volume;
pub use ticket::Ticket;
