//! Bytes from a seed, in blocks that know their events.
//!
//! A [`BlockSet`] is all that one worker sends, built before the run from a
//! [`PayloadPlan`](stillwell_plan::PayloadPlan) and a seed: the same plan, seed and version give
//! the same bytes on every machine. A [`Block`] is sent as one datagram, one body or one write. It
//! has the end of each of its events and, where requested, a fixed-width slot in each event's
//! message text for a stamp.
//!
//! This crate reads no clock, file or socket: times inside events follow from
//! the seed, and the bytes of a file are handed in. It never sends anything and
//! never changes a set once built.
//!
//! ```
//! use stillwell_payload::BlockSet;
//! use stillwell_plan::{PayloadFormat, PayloadPlan};
//! use stillwell_plan::payload::BlockShape;
//! use stillwell_units::{ByteSize, Seed};
//!
//! let plan = PayloadPlan {
//!     format: PayloadFormat::Syslog5424,
//!     blocks: BlockShape::UpTo { maximum: ByteSize::kib(8) },
//!     cache: ByteSize::kib(256),
//!     repeats: false,
//! };
//! let set = BlockSet::build(&plan, plan.cache, Seed::from_number(42), None)?;
//! let block = set.block(0);
//! assert_eq!(block.event_ends().last(), Some(block.bytes.len()));
//! # Ok::<(), stillwell_payload::BuildError>(())
//! ```

mod block;
mod catalogue;
mod contract;
mod error;
mod event_time;
mod fill;
mod fingerprint;
mod format;
mod memory;
mod mix;
mod msgpack;
mod names;
mod pool;
mod protobuf;
mod random;
mod seeds;
mod set;
mod text;

pub use block::{Block, Counts, SLOT_PLACEHOLDER, SLOT_WIDTH, Slot, SlotUse};
pub use error::BuildError;
pub use fingerprint::{Fingerprint, PrintedFingerprints};
pub use seeds::{ExporterPosition, Part, Seeds};
pub use set::{BlockSet, Sources};
