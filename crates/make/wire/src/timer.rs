//! The pacing clock.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::{Errno, read};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Waits for moments of [`clock`]: a timer file descriptor of the kernel's
/// monotonic clock, watched by the calling worker's runtime.
#[derive(Debug)]
pub struct Timer {
    descriptor: AsyncFd<OwnedFd>,
}

impl Timer {
    /// A timer of the calling worker.
    ///
    /// # Errors
    /// The kernel's answer where there are no descriptors left.
    ///
    /// # Panics
    /// Outside of a worker: there is no runtime.
    #[expect(
        unsafe_code,
        reason = "the runtime has no safe way to watch a descriptor of the program"
    )]
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let descriptor = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // SAFETY: an `OwnedFd` is open, and stays the same one until it is dropped;
        // nothing takes it out of the `AsyncFd` before that.
        let descriptor =
            unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }?;
        Ok(Self { descriptor })
    }

    /// Waits until `at`; returns at once if that has passed. Never early.
    /// Cancel-safe: a wait that was given up leaves nothing behind.
    pub async fn until(&mut self, at: Moment) {
        if at <= clock::now() {
            return;
        }
        self.arm(at);
        loop {
            let mut ready = self
                .descriptor
                .readable()
                .await
                .expect("a worker's futures end before its runtime");
            let mut expirations = [0; 8];
            match read(&self.descriptor, &mut expirations) {
                // Readiness that an earlier wait left behind.
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                // Expired; a read that fails otherwise must not spin.
                Ok(_) | Err(_) => {
                    ready.clear_ready();
                    return;
                }
            }
        }
    }

    fn arm(&self, at: Moment) {
        let (tv_sec, nanos) = Nanos::new(at.as_u64()).split_seconds();
        let value = Timespec {
            tv_sec,
            tv_nsec: nanos.into(),
        };
        let once = Itimerspec {
            it_interval: Timespec::default(),
            it_value: value,
        };
        timerfd_settime(&self.descriptor, TimerfdTimerFlags::ABSTIME, &once)
            .expect("the descriptor is a timer's and the time is in range");
    }
}
