//! Which events carry a stamp, and what is expected of them.

use serde::{Deserialize, Serialize};
use stillwell_units::Nanos;

/// Which of a generator's events carry a stamp, and what is expected of them.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct StampPlan {
    /// One event in so many is stamped, the first one of each connection included;
    /// 1 for every one. At least 1.
    pub every: u32,
    /// How often a pipeline that does what it should delivers each stamped event,
    /// from 1 to 8: 2 where it keeps the original beside what it parsed.
    pub copies: u8,
    /// An event that arrives later than this after its intended time is late.
    pub late_after: Option<Nanos>,
}

impl StampPlan {
    /// Every event, expected once, never late.
    pub const ALL: Self = Self {
        every: 1,
        copies: 1,
        late_after: None,
    };

    /// The most copies that can be expected.
    pub const COPIES_MAX: u8 = 8;
}
