//! Marks in events: writing them, finding them again, and a record of each.
//!
//! A [`Stamp`] is 64 characters of `[a-z0-9]` that name a run, a stream, a sequence number, the
//! intended time and the bytes that follow it. A [`Stamper`] writes it into a slot. A
//! [`StampSearch`] finds it in received bytes, in any framing and cut at any place. A [`Ledger`]
//! reports which events were lost, duplicated, reordered, late or damaged. `docs/formats/stamp.md`
//! has every byte. In [`HEADER`] it precedes a whole request. The [`prefix`] is a second kind of
//! mark: time alone, for peers that know no stamps.
//!
//! Nothing here reads a clock: when something arrived is an argument. Nothing
//! panics on bytes from anywhere, and nothing is allocated for each event.
//!
//! ```
//! use stillwell_stamp::{
//!     ArrivalKind, Expected, ExpectedStream, Ledger, RunMark, STAMP_WIDTH, Span, StampSearch,
//!     Stamper, StreamId, Times,
//! };
//! use stillwell_units::{ByteSize, Moment, Nanos, RunId};
//!
//! let run = RunMark::of(&RunId::from_bytes([7; 16]));
//! let stream = StreamId::new(0).expect("zero is a stream");
//! let mut slot = [b'x'; STAMP_WIDTH];
//! let span = Span::of(b" a message of some length");
//! let times = Times::new(Moment::new(1_000), Moment::new(1_200));
//! Stamper::new(run, stream).write(&mut slot, 0, times, span);
//! let sent = [b"<13> ", &slot[..], b" a message of some length\n"].concat();
//!
//! let mut ledger = Ledger::new(Expected {
//!     run,
//!     streams: vec![ExpectedStream { copies: 1, late_after: None }],
//!     memory: ByteSize::mib(64),
//! })?;
//! let mut search = StampSearch::new();
//! let mut arrivals = Vec::new();
//! for read in sent.chunks(10) {
//!     search.feed(read, |sighting| {
//!         arrivals.extend(ledger.take_in(&sighting, Moment::new(1_500)));
//!     });
//! }
//! assert_eq!(arrivals[0].kind, ArrivalKind::First);
//! assert_eq!(arrivals[0].latency, Nanos::new(500));
//! let figures = ledger.figures(stream, Some(2)).expect("a stream of this ledger");
//! assert_eq!(figures.lost.exactly(), Some(1));
//! assert_eq!(figures.intact, 1);
//! # Ok::<(), stillwell_stamp::LedgerError>(())
//! ```

mod code;
mod lanes;
mod ledger;
pub mod prefix;
mod search;
mod span;
mod stamp;

pub use ledger::{
    Arrival, ArrivalKind, Bounds, Expected, ExpectedStream, Ledger, LedgerError, LedgerReadError,
    Loss, Losses, StreamFigures,
};
pub use search::{BEHIND_MAX, StampMatch, StampSearch, StampVisitor, match_header};
pub use span::{GUARD_WIDTH, SPAN_LIMIT, Span, SpanCheck};
pub use stamp::{
    HEADER, RunMark, SEQUENCE_LIMIT, STAMP_WIDTH, STREAM_LIMIT, Stamp, Stamper, StreamId, Times,
};
