//! A defined load beside an experiment: processes that use a share of a CPU and end
//! with the process that started them.

use std::io::{self, stdin};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use stillwell_scope::clock;

/// Number of processes.
const PROCESSES: u32 = 2;

/// Share of a CPU that each process uses, in percent. On two CPUs that is 15 % of the
/// host: above the limit for throughput, and well below the 25 % at which CPU time is
/// unreliable.
pub(super) const LOAD_PERCENT: u32 = 15;

/// Bounds of one cycle of work and sleep: about the turns of a sliced run, so both
/// variants meet some of it.
const PERIOD_MIN_NS: u64 = 20_000_000;
const PERIOD_MAX_NS: u64 = 60_000_000;

/// Running load processes.
#[derive(Debug)]
pub(super) struct BackgroundLoad(Vec<Child>);

impl BackgroundLoad {
    /// Starts the processes; `stillwell` is this program.
    pub(super) fn start(stillwell: &Path) -> io::Result<Self> {
        let percent = LOAD_PERCENT.to_string();
        let children = (0..PROCESSES).map(|seed| {
            Command::new(stillwell)
                .args([
                    "disturb",
                    "--use-cpu",
                    &percent,
                    "--seed",
                    &seed.to_string(),
                ])
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()
        });
        Ok(Self(children.collect::<io::Result<_>>()?))
    }

    /// Closes the standard input of each process, which ends it.
    pub(super) fn end(self) -> io::Result<()> {
        for mut child in self.0 {
            drop(child.stdin.take());
            let status = child.wait()?;
            if !status.success() {
                return Err(io::Error::other(format!("the load ended early: {status}")));
            }
        }
        Ok(())
    }
}

/// Uses `percent` of a CPU until standard input ends. Processes with different seeds
/// have different cycles.
///
/// # Errors
/// Standard input cannot be watched.
pub fn use_cpu(percent: u32, seed: u64) -> io::Result<()> {
    let mut state = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    loop {
        let period = period_ns(&mut state);
        let busy = period / 100 * u64::from(percent);
        let until = clock::thread_cpu().as_u64() + busy;
        while clock::thread_cpu().as_u64() < until {
            std::hint::spin_loop();
        }
        let rest = Timespec {
            tv_sec: 0,
            tv_nsec: i64::try_from(period.saturating_sub(busy)).unwrap_or(0),
        };
        let input = stdin();
        let mut watched = [PollFd::from_borrowed_fd(input.as_fd(), PollFlags::IN)];
        // Nothing is ever written to it: readable means closed.
        match poll(&mut watched, Some(&rest)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Returns the next length of a cycle, by xorshift.
fn period_ns(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    PERIOD_MIN_NS + *state % (PERIOD_MAX_NS - PERIOD_MIN_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_lie_within_their_bounds_and_differ() {
        let mut state = 1;
        let periods: Vec<u64> = (0..1000).map(|_| period_ns(&mut state)).collect();
        assert!(
            periods
                .iter()
                .all(|period| (PERIOD_MIN_NS..PERIOD_MAX_NS).contains(period))
        );
        let mean = periods.iter().sum::<u64>() / 1000;
        assert!((38_000_000..42_000_000).contains(&mean), "{mean}");
    }
}
