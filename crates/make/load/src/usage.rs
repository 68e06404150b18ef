//! CPU time and waiting of the current thread.

use stillwell_units::Nanos;

/// Use of CPUs by a thread since its start.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct ThreadUsage {
    /// Time on a CPU.
    pub(super) cpu: Nanos,
    /// Time in which the thread was runnable without a CPU.
    pub(super) delay: Nanos,
}

impl ThreadUsage {
    /// Returns the usage of the current thread; zeros if the kernel does not report it.
    pub(super) fn now() -> Self {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let mut numbers = text.split_whitespace().map(|word| word.parse().ok());
        let mut next = || Nanos::new(numbers.next().flatten().unwrap_or(0));
        Self {
            cpu: next(),
            delay: next(),
        }
    }
}
