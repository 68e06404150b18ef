//! The search for the commit that made a program worse.
//!
//! [`Search`] chooses the next commit; it knows nothing of programs. [`run_bisect`] carries it out:
//! each comparison is a suite, GOOD against one commit, with looks and a stop as in any other.
//!
//! ```text
//! bisect.json          the commits, the comparisons and their answers
//! ends/                results of GOOD against BAD
//! test-COMMIT/         results of GOOD against COMMIT
//! confirm-COMMIT/      results of the last good commit against the first bad
//! ```

mod conduct;
mod ends;
mod git;
mod record;
mod search;

pub use self::conduct::{BisectError, BisectProgress, Bisected, run_bisect};
pub use self::ends::{EndsError, set_ends};
pub use self::git::{Commit, commits_between};
pub use self::record::{BISECT_SCHEMA, BisectRecord, OutcomeKind, OutcomeRecord, StepRecord};
pub use self::search::{Answer, Found, Outcome, Search, Step};
