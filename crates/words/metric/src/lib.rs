//! Everything that is recorded: its names, units and kinds, and how workers
//! record it without slowing down.
//!
//! * [`catalogue`]: every metric of our own, once; no other crate spells a name.
//! * [`Outcome`]: the closed list of ways in which one send can end.
//! * [`GeneratorShard`] and [`SinkShard`]: one per worker, written by that
//!   worker alone and read by the sampler once a beat. No lock, no hash, no
//!   shared cache line on the hot path.
//! * [`LoadShard`], [`LoadTime`]: the same for workers that send requests for their
//!   own sake.
//! * [`RouteShard`] and [`RouteRecorder`]: the same for the requests of one route.
//! * [`Recorder`] and [`Intervals`]: histograms that a worker fills and the
//!   sampler takes away, one per interval; they merge exactly.
//! * [`PackedHistogram`]: one that is kept for long.
//! * [`Sample`]: one value of one series, on its way into a capture.
//! * [`BenchWindow`], [`Volume`] and [`hdr_table`]: parts of the result of a bench.
//!
//! There is no global registry: two runs live in one process.

mod account;
mod bench;
pub mod catalogue;
mod cell;
mod counting;
mod files;
pub mod kernel;
mod load;
mod outcome;
mod packed;
mod recorder;
mod routes;
mod sample;
mod shard;

pub use account::{AccountCells, TimeState};
pub use bench::{BenchWindow, QuantileTick, Volume, hdr_table, quantile_ticks};
pub use catalogue::{Kind, Metric, Unit};
pub use cell::{Cell, PhasedCell};
pub use counting::{COUNTING_OBSTACLES, CountingObstacle, CountingState};
pub use files::{DiskShard, LogFsShard, LogRequests};
/// A histogram of times; see [`empty_histogram`].
pub use hdrhistogram::Histogram;
pub use load::{
    CallCells, CallEnd, CallMessages, ClockDrift, CounterError, CounterFacts, GeneratorEvidence,
    HandshakeCount, HandshakePart, HandshakeTally, HttpVersion, LoadCounter, LoadCounts,
    LoadEvidence, LoadShard, LoadSourceEvidence, LoadStrain, LoadTime, MeasuredCount, PhasedCount,
    Remedy, SizeCells, Sizes, SourceCells, SourceCount, SourceCounts, StatusCells, TlsWish,
    Trouble, WorkerCounts,
};
pub use outcome::{Outcome, read_outcome_counts};
pub use packed::PackedHistogram;
pub use recorder::{
    Interval, Intervals, Recorder, add_histogram, decode_histogram, empty_histogram,
    encode_histogram,
};
pub use routes::{AnswerTimes, RouteRecorder, RouteShard, RouteTime};
pub use sample::{Beat, Labels, Sample, SeriesName, Value};
pub use shard::{
    GeneratorShard, RequestsShard, Shard, SinkShard, is_sink_worker, sink_worker_name,
};
