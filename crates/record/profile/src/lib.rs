//! Profiles of programs: read, written, summed and compared.
//!
//! A [`Profile`] is a set of call stacks with an amount for each. It comes from a pprof file, as Go's package
//! `net/http/pprof` serves it, or from the text of `perf script`. [`ProfileCollector`] sums the profiles of the
//! runs of several variants by unit of work. [`ProfileComparison`] is the difference between two variants:
//! totals, functions by change, and a tree for a flame graph. [`ProfileSummary`] has the same of one variant alone.
//!
//! This crate reads no file and no clock.

mod compare;
mod flame;
mod perf;
mod pprof;
mod quantity;
mod run;
mod summary;

pub use compare::{FunctionChange, ProfileCollector, ProfileComparison};
pub use flame::FlameNode;
pub use perf::{PerfProfile, PerfTextError, read_perf_script};
pub use pprof::{Profile, ProfileError, SampleType, StackSample};
pub use quantity::ProfileQuantity;
pub use run::{ProfileFile, RunWork};
pub use summary::{FunctionAmount, ProfileSummary};
