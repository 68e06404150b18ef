//! Short waits of blocking code.

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos};

/// Waits until `descriptor` is readable or `until` has passed. Returns true if it is readable.
pub(crate) fn readable_before(descriptor: BorrowedFd<'_>, until: Moment) -> bool {
    let mut watched = [PollFd::new(&descriptor, PollFlags::IN)];
    loop {
        let left = until.since(clock::now());
        match poll(&mut watched, Some(&timespec(left))) {
            Ok(ready) if ready > 0 => return true,
            Ok(_) if clock::now() >= until => return false,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Pauses for `length`, before polling a state without notifications.
pub(crate) fn pause(length: Nanos) {
    // An interrupted pause is shorter; callers poll again.
    poll(&mut [], Some(&timespec(length))).ok();
}

fn timespec(length: Nanos) -> Timespec {
    let (tv_sec, nanos) = length.split_seconds();
    Timespec {
        tv_sec,
        tv_nsec: nanos.into(),
    }
}
