//! Which commit of several made a program worse.
//!
//! [`Search`] decides which commit is looked at next; it knows nothing of
//! programs. [`run_bisect`] carries it out: each question is a lab of its own,
//! GOOD against one commit, in which the data are looked at and stopped as in
//! any other.
//!
//! ```text
//! bisect.json          the commits, what was asked, and the answers
//! ends/                results of GOOD against BAD
//! test-COMMIT/         results of GOOD against COMMIT
//! confirm-COMMIT/      results of the last good commit against the first bad
//! ```

mod conduct;
mod git;
mod record;
mod search;

pub use self::conduct::{BisectError, BisectProgress, Bisected, run_bisect};
pub use self::git::{Commit, commits_between};
pub use self::record::{BISECT_SCHEMA, BisectRecord, OutcomeKind, OutcomeRecord, StepRecord};
pub use self::search::{Answer, Found, Outcome, Search, Step};
