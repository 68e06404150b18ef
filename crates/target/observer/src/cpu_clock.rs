//! The CPU clocks of other processes.
#![expect(unsafe_code, reason = "system calls that have no safe wrapper")]

use std::mem::MaybeUninit;

/// Returns the CPU time of all threads of process `pid`, ended ones included, in nanoseconds; `None` if there
/// is no such process.
pub(crate) fn process_nanos(pid: u32) -> Option<u64> {
    let pid = libc::pid_t::try_from(pid).ok()?;
    let mut clock: libc::clockid_t = 0;
    // SAFETY: the pointer is to a live value of the type that the call fills.
    let status = unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) };
    if status != 0 {
        return None;
    }
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: as above; a clock of a process that has ended is refused by the call.
    let status = unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) };
    if status != 0 {
        return None;
    }
    // SAFETY: the call succeeded, so it has filled the structure.
    let time = unsafe { time.assume_init() };
    let seconds = u64::try_from(time.tv_sec).ok()?;
    seconds
        .checked_mul(1_000_000_000)?
        .checked_add(u64::try_from(time.tv_nsec).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_reads_the_same_clock_as_its_observers() {
        let before = stillwell_scope::clock::process_cpu().as_u64();
        let measured = process_nanos(std::process::id()).unwrap();
        let after = stillwell_scope::clock::process_cpu().as_u64();
        assert!(
            (before..=after).contains(&measured),
            "{before} {measured} {after}"
        );
        assert_eq!(process_nanos(u32::MAX), None);
        assert_eq!(process_nanos(4_194_305), None);
    }
}
