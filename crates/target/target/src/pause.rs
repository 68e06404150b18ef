//! Short waits of blocking code.

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos};

/// Waits until `descriptor` can be read or `until` has come; tells which.
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

/// Does nothing for `length`: for things that the kernel tells nobody of.
pub(crate) fn pause(length: Nanos) {
    // An interrupted pause is a shorter one; callers look again anyway.
    poll(&mut [], Some(&timespec(length))).ok();
}

fn timespec(length: Nanos) -> Timespec {
    const SECOND: u64 = 1_000_000_000;
    let whole = i64::try_from(length.as_u64() / SECOND).unwrap_or(i64::MAX);
    let rest = i64::try_from(length.as_u64() % SECOND).unwrap_or(0);
    Timespec {
        tv_sec: whole,
        tv_nsec: rest,
    }
}
