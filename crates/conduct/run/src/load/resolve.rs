//! Names to addresses, once before the load; and the host's CPU time.

use std::net::{SocketAddr, ToSocketAddrs};

use stillwell_plan::LoadPlan;
use stillwell_units::Nanos;

use super::HostCpu;

/// Choice among the addresses of a name.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum AddressFamily {
    /// The first one.
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
/// its name alone: it looks the others up.
pub(super) fn endpoints(plan: &mut LoadPlan, family: AddressFamily) -> Result<(), ResolveError> {
    for address in plan.dialled_addresses_mut() {
        let addresses = resolve(address, family).map_err(|source| ResolveError {
            address: address.clone(),
            source,
        })?;
        *address = addresses.to_string();
    }
    Ok(())
}

fn resolve(address: &str, family: AddressFamily) -> std::io::Result<SocketAddr> {
    let is_wanted = |address: &SocketAddr| match family {
        AddressFamily::Any => true,
        AddressFamily::V4 => address.is_ipv4(),
        AddressFamily::V6 => address.is_ipv6(),
    };
    let missing = match family {
        AddressFamily::Any => "it has no address",
        AddressFamily::V4 => "it has no IPv4 address",
        AddressFamily::V6 => "it has no IPv6 address",
    };
    let address = address.to_socket_addrs()?.find(is_wanted);
    address.ok_or_else(|| std::io::Error::new(std::io::ErrorKind::NotFound, missing))
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
        let first = |family| resolve("[::1]:80", family).map(|address| address.to_string());
        assert_eq!(first(AddressFamily::V6).unwrap(), "[::1]:80");
        assert!(first(AddressFamily::V4).is_err());
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
