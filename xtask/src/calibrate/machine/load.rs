//! A defined load beside an experiment: processes that spin for a share of the
//! time, and end with the one that started them.

use std::io::stdin;
use std::os::fd::AsFd;
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::{Context as _, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use stillwell_scope::clock;

/// How many processes.
const PROCESSES: u32 = 2;

/// One time of spinning and resting, at least and at most: about the turns of a
/// sliced run, so that both sides meet some of it.
const PERIOD_MIN_NS: u64 = 20_000_000;
const PERIOD_MAX_NS: u64 = 60_000_000;

/// `calibrate --beside-load SHARE -- COMMAND`: runs it beside the load.
pub(super) fn beside(share: &str, command: &[&str]) -> anyhow::Result<()> {
    parse_share(share)?;
    let [program, arguments @ ..] = command else {
        bail!("--beside-load wants a command behind `--`");
    };
    let own = std::env::current_exe().context("find this program")?;
    let mut load = Vec::new();
    for number in 0..PROCESSES {
        let started = Command::new(&own)
            .args(["calibrate", "--load", share, &number.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        load.push(started.context("start the load")?);
    }
    let ended = Command::new(program).args(arguments).status();
    let stopped: Vec<anyhow::Result<ExitStatus>> = load.into_iter().map(end).collect();
    let ended = ended.with_context(|| format!("start {program}"))?;
    for stopped in stopped {
        let stopped = stopped?;
        if !stopped.success() {
            bail!("the load ended by itself: {stopped}");
        }
    }
    if !ended.success() {
        bail!("{program}: {ended}");
    }
    Ok(())
}

/// Its standard input ends, and with it the process.
fn end(mut child: Child) -> anyhow::Result<ExitStatus> {
    drop(child.stdin.take());
    child.wait().context("wait for the load")
}

/// `calibrate --load SHARE SEED`: spins for this share of the time until standard
/// input ends.
pub(super) fn carry(share: &str, seed: &str) -> anyhow::Result<()> {
    let share = parse_share(share)?;
    let seed: u64 = seed.parse().context("read the seed")?;
    // Processes with neighbouring seeds start in different places.
    let mut state = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    loop {
        let period = period_ns(&mut state);
        let busy = period / 100 * share;
        let until = clock::thread_cpu().as_u64() + busy;
        while clock::thread_cpu().as_u64() < until {
            std::hint::spin_loop();
        }
        let rest = i64::try_from(period - busy).context("rest")?;
        let rest = Timespec {
            tv_sec: 0,
            tv_nsec: rest,
        };
        let input = stdin();
        let mut watched = [PollFd::from_borrowed_fd(input.as_fd(), PollFlags::IN)];
        // Nothing is ever written to it: what can be read is its end.
        if poll(&mut watched, Some(&rest)).is_ok_and(|ready| ready > 0) {
            return Ok(());
        }
    }
}

/// A whole number of percent below a hundred.
fn parse_share(text: &str) -> anyhow::Result<u64> {
    let number = text.strip_suffix('%').and_then(|it| it.parse().ok());
    number
        .filter(|share| (1..100).contains(share))
        .with_context(|| format!("`{text}` is not a share from 1% to 99%"))
}

/// The next length of a time of spinning and resting, by xorshift.
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
    fn shares_are_whole_percents() {
        assert_eq!(parse_share("15%").unwrap(), 15);
        for text in ["", "15", "0%", "100%", "-1%", "1.5%"] {
            assert!(parse_share(text).is_err(), "{text}");
        }
    }

    #[test]
    fn periods_lie_within_their_bounds_and_differ() {
        let mut state = 1;
        let periods: Vec<u64> = (0..1000).map(|_| period_ns(&mut state)).collect();
        assert!(
            periods
                .iter()
                .all(|it| (PERIOD_MIN_NS..PERIOD_MAX_NS).contains(it))
        );
        let mean = periods.iter().sum::<u64>() / 1000;
        assert!((38_000_000..42_000_000).contains(&mean), "{mean}");
    }
}
