//! The one clock of a process, and the CPU clocks of its threads.

use rustix::time::{ClockId, Timespec, clock_gettime};
use stillwell_units::{Moment, Nanos};

/// Now, on the host's monotonic clock.
#[must_use]
pub fn now() -> Moment {
    Moment::new(nanos(clock_gettime(ClockId::Monotonic)))
}

/// Now on the wall clock, in nanoseconds since 1970.
#[must_use]
pub fn wall() -> Nanos {
    Nanos::new(nanos(clock_gettime(ClockId::Realtime)))
}

/// The offset between the wall clock and the monotonic clock at one moment. Later changes of the
/// wall clock do not affect it.
#[derive(Clone, Copy, Debug)]
pub struct FixedWall {
    ahead: u64,
}

impl FixedWall {
    /// Reads the offset now.
    #[must_use]
    pub fn now() -> Self {
        let ahead = wall().as_u64().wrapping_sub(now().as_u64());
        Self { ahead }
    }

    /// Converts `moment` of the monotonic clock to nanoseconds since 1970.
    #[must_use]
    pub const fn at(&self, moment: Moment) -> Moment {
        Moment::new(moment.as_u64().wrapping_add(self.ahead))
    }
}

/// CPU time of the calling thread.
#[must_use]
pub fn thread_cpu() -> Nanos {
    Nanos::new(nanos(clock_gettime(ClockId::ThreadCPUTime)))
}

/// CPU time of this process, ended threads included.
#[must_use]
pub fn process_cpu() -> Nanos {
    Nanos::new(nanos(clock_gettime(ClockId::ProcessCPUTime)))
}

fn nanos(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let rest = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_run_forward() {
        let (before, cpu) = (now(), thread_cpu());
        let spun: u64 = (0..100_000_u64).map(std::hint::black_box).sum();
        assert!(spun > 0);
        assert!(now() > before);
        assert!(thread_cpu() > cpu);
        assert!(process_cpu() >= thread_cpu());
        assert!(wall() > Nanos::from_secs(1_600_000_000));
        let earlier = FixedWall::now().at(before).as_u64();
        assert!((1_600_000_000_000_000_000..=wall().as_u64()).contains(&earlier));
    }
}
