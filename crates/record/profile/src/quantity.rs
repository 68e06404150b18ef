//! Quantities that profiles count.

/// A quantity that a profile counts, by call stack.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum ProfileQuantity {
    /// CPU time, in nanoseconds.
    CpuTime,
    /// Number of allocations since the start of the program.
    Allocations,
    /// Allocated bytes since the start of the program.
    AllocatedBytes,
    /// Bytes of live objects on the heap.
    LiveHeap,
    /// Time that other threads waited for a lock which this stack held, in nanoseconds.
    MutexTime,
    /// Time that this stack was blocked, in nanoseconds.
    BlockTime,
}

impl ProfileQuantity {
    /// All quantities.
    pub const ALL: [Self; 6] = [
        Self::CpuTime,
        Self::Allocations,
        Self::AllocatedBytes,
        Self::LiveHeap,
        Self::MutexTime,
        Self::BlockTime,
    ];

    /// Returns the quantity of a sample type with this name and unit in the profile of `page`, and the factor to
    /// its unit here. `page` is the name of the page, such as `mutex`: mutexes and blocking share a sample type.
    #[must_use]
    pub fn of(page: &str, name: &str, unit: &str) -> Option<(Self, f64)> {
        let quantity = match (name, page) {
            ("cpu", _) => Self::CpuTime,
            ("alloc_objects", _) => Self::Allocations,
            ("alloc_space", _) => Self::AllocatedBytes,
            ("inuse_space", _) => Self::LiveHeap,
            ("delay", "mutex") => Self::MutexTime,
            ("delay", "block") => Self::BlockTime,
            _ => return None,
        };
        let factor = match (quantity, unit) {
            (Self::Allocations, "count")
            | (Self::AllocatedBytes | Self::LiveHeap, "bytes" | "byte" | "b")
            | (_, "nanoseconds" | "ns") => 1.0,
            (_, "microseconds" | "us") => 1e3,
            (_, "milliseconds" | "ms") => 1e6,
            (_, "seconds" | "s") => 1e9,
            _ => return None,
        };
        Some((quantity, factor))
    }

    /// True if an amount grows with time and work. Others are levels.
    #[must_use]
    pub const fn is_flow(self) -> bool {
        !matches!(self, Self::LiveHeap)
    }

    /// True if a profile without a duration counts from the start of the program.
    pub(crate) const fn is_cumulative(self) -> bool {
        !matches!(self, Self::LiveHeap | Self::CpuTime)
    }

    /// Name for readers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CpuTime => "CPU time",
            Self::Allocations => "allocations",
            Self::AllocatedBytes => "allocated bytes",
            Self::LiveHeap => "live heap",
            Self::MutexTime => "mutex time",
            Self::BlockTime => "blocked time",
        }
    }
}
