//! Names to addresses, once before the load; and the host's CPU time.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};

use stillwell_plan::LoadPlan;
use stillwell_plan::load::{LoadProtocol, TunnelProtocol};
use stillwell_scope::{Token, clock};
use stillwell_units::Nanos;

use super::HostCpu;

/// Longest time in which the addresses of names are tried, for all names together.
const TRIALS_MAX: Nanos = Nanos::from_secs(2);
/// Longest time of each trial.
const TRIAL_MAX: Nanos = Nanos::from_millis(250);

/// Choice among the addresses of a name.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum AddressFamily {
    /// The first one that accepts a TCP connection, or else the first one.
    #[default]
    Any,
    /// The first one of IPv4.
    V4,
    /// The first one of IPv6.
    V6,
}

/// A name without an address of the wanted kind.
#[derive(Debug, thiserror::Error)]
#[error("unknown host in {address}")]
pub struct ResolveError {
    /// `host:port`.
    pub address: String,
    /// The reason why there is none.
    pub source: std::io::Error,
}

/// Replaces the names of all endpoints by addresses; where a proxy leads to them,
/// its name alone: it looks up theirs. Once `stop` is cancelled, no more addresses are tried.
pub(super) fn endpoints(
    plan: &mut LoadPlan,
    family: AddressFamily,
    stop: &Token,
) -> Result<(), ResolveError> {
    let is_over_udp = match &plan.client.tunnel {
        Some(tunnel) => tunnel.protocol == TunnelProtocol::Http3,
        None => plan.client.connecting.protocol == LoadProtocol::Http3,
    };
    let until = clock::now() + TRIALS_MAX;
    let accepts = |address: &SocketAddr| {
        let limit = until.since(clock::now()).min(TRIAL_MAX);
        let may_try = !is_over_udp && limit > Nanos::ZERO && !stop.is_cancelled();
        may_try && TcpStream::connect_timeout(address, limit.as_duration()).is_ok()
    };
    for address in plan.dialled_addresses_mut() {
        let addresses = resolve(address, family, accepts).map_err(|source| ResolveError {
            address: address.clone(),
            source,
        })?;
        *address = addresses.to_string();
    }
    Ok(())
}

fn resolve(
    address: &str,
    family: AddressFamily,
    accepts: impl Fn(&SocketAddr) -> bool,
) -> std::io::Result<SocketAddr> {
    let mut all = address.to_socket_addrs()?;
    let (address, missing) = match family {
        AddressFamily::Any => (first_accepting(all, accepts), "it has no address"),
        AddressFamily::V4 => (all.find(SocketAddr::is_ipv4), "it has no IPv4 address"),
        AddressFamily::V6 => (all.find(SocketAddr::is_ipv6), "it has no IPv6 address"),
    };
    address.ok_or_else(|| std::io::Error::new(std::io::ErrorKind::NotFound, missing))
}

/// Returns the first of several addresses that accepts a connection, or else the first of all. An
/// address that is alone is not tried.
fn first_accepting(
    all: impl Iterator<Item = SocketAddr>,
    accepts: impl Fn(&SocketAddr) -> bool,
) -> Option<SocketAddr> {
    let mut all = all.peekable();
    let first = all.next()?;
    if all.peek().is_none() || accepts(&first) {
        return Some(first);
    }
    all.find(accepts).or(Some(first))
}

/// The host's CPU time so far, from `/proc/stat`.
pub(super) fn host_cpu() -> Option<HostCpu> {
    parse_stat(&std::fs::read_to_string("/proc/stat").ok()?)
}

/// CPU time since `before`.
pub(super) fn host_cpu_since(before: Option<HostCpu>) -> Option<HostCpu> {
    let (before, now) = (before?, host_cpu()?);
    Some(HostCpu {
        busy: now.busy.saturating_sub(before.busy),
        steal: now.steal.saturating_sub(before.steal),
        cpus: now.cpus,
    })
}

/// Linux counts in hundredths of a second wherever programs see it.
const TICK: u64 = 10_000_000;

fn parse_stat(text: &str) -> Option<HostCpu> {
    let mut lines = text.lines();
    let fields: Vec<u64> = lines
        .next()?
        .strip_prefix("cpu ")?
        .split_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    let [user, nice, system, _idle, _iowait, interrupt, soft, steal] = *fields.first_chunk()?;
    let busy = user + nice + system + interrupt + soft;
    let cpus = lines.take_while(|line| line.starts_with("cpu")).count();
    Some(HostCpu {
        busy: Nanos::new(busy.saturating_mul(TICK)),
        steal: Nanos::new(steal.saturating_mul(TICK)),
        cpus: u32::try_from(cpus).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_of_the_wanted_family() {
        let first = |family| resolve("[::1]:80", family, |_| false);
        let written = |family| first(family).map(|address| address.to_string());
        assert_eq!(written(AddressFamily::V6).unwrap(), "[::1]:80");
        assert!(first(AddressFamily::V4).is_err());
    }

    /// With `::1` as the first address of `localhost`, a server on 127.0.0.1 got no request.
    #[test]
    fn of_several_addresses_the_first_that_accepts_is_used() {
        let all = ["[::1]:80", "127.0.0.1:80", "127.0.0.2:80"];
        let all = all.map(|address| address.parse::<SocketAddr>().unwrap());
        for (accepting, chosen) in [
            (&all[..], all[0]),
            (&all[1..], all[1]),
            (&all[2..], all[2]),
            (&all[..0], all[0]),
        ] {
            let accepts = |address: &SocketAddr| accepting.contains(address);
            let first = first_accepting(all.into_iter(), accepts);
            assert_eq!(first, Some(chosen), "{accepting:?}");
        }
        let alone = first_accepting(all.into_iter().take(1), |_| panic!("it was tried"));
        assert_eq!(alone, Some(all[0]));
        let none = first_accepting(std::iter::empty(), |_| panic!("there is none"));
        assert_eq!(none, None);
    }

    #[test]
    fn host_time_is_read() {
        let text = "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1\ncpu1 1\nintr 5\n";
        let host = parse_stat(text).unwrap();
        assert_eq!(
            (host.busy, host.steal),
            (Nanos::new(19 * TICK), Nanos::new(8 * TICK))
        );
        assert_eq!(host.cpus, 2);
        assert_eq!(parse_stat("nothing"), None);
    }
}
