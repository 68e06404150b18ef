//! The process behind a URL of this host.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::iter::successors;

use stillwell_units::Target;

use crate::listeners::{Listener, open_sockets, sockets_of};
use crate::tree::{self, Stat};

/// Programs that listen and pass connections on to a service elsewhere: their cost is not that of the service.
const FORWARDERS: [&str; 8] = [
    "docker-proxy",
    "kubectl",
    "pasta",
    "passt",
    "rootlessport",
    "slirp4netns",
    "socat",
    "ssh",
];

/// Programs that hold sockets of services which they start on demand.
const HOLDERS: [&str; 2] = ["init", "systemd"];

/// Returns the process that listens at `url`: of several that share the socket, the one that started the others.
/// `None` if the URL is of another host, if the process is another user's, passes connections on, or started this
/// process, or if several programs listen there.
pub(crate) fn process_at(url: &str) -> Option<u32> {
    let address = Target::from_url(url).ok()?.loopback()?;
    let this_process = std::process::id();
    let sockets = open_sockets(this_process).into_iter();
    let sockets = sockets.filter(|(protocol, entry)| {
        let listener = Listener {
            protocol: *protocol,
            address: entry.address,
        };
        listener.reachable() == address
    });
    let inodes: BTreeSet<u64> = sockets.map(|(_, entry)| entry.inode).collect();
    if inodes.is_empty() {
        return None;
    }
    let owners = tree::processes().filter(|pid| !sockets_of(*pid).is_disjoint(&inodes));
    let owners = owners.filter(|pid| !HOLDERS.contains(&&*name_of(*pid)));
    let parents = owners.filter_map(|pid| Some((pid, Stat::read(pid)?.parent)));
    let first = first_of(&parents.collect())?;
    let mut ancestors = successors(Some(this_process), |pid| Some(Stat::read(*pid)?.parent));
    let is_usable = !ancestors.any(|pid| pid == first) && !FORWARDERS.contains(&&*name_of(first));
    is_usable.then_some(first)
}

/// Returns the process whose parent is none of the others, if there is one such process.
fn first_of(parents: &BTreeMap<u32, u32>) -> Option<u32> {
    let mut firsts = parents
        .iter()
        .filter(|(_, parent)| !parents.contains_key(parent));
    let (first, _) = firsts.next()?;
    firsts.next().is_none().then_some(*first)
}

/// Returns the name of a process; empty if it has ended.
fn name_of(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm"));
    name.unwrap_or_default().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn of_processes_that_share_a_socket_the_one_that_started_the_others_counts() {
        for (parents, expected) in [
            (vec![], None),
            (vec![(20, 7)], Some(20)),
            (vec![(20, 7), (21, 20), (22, 20)], Some(20)),
            (vec![(22, 21), (21, 20), (20, 7)], Some(20)),
            // Two programs, each with a socket at the same port.
            (vec![(20, 7), (30, 7)], None),
        ] {
            let parents: BTreeMap<u32, u32> = parents.into_iter().collect();
            assert_eq!(first_of(&parents), expected, "{parents:?}");
        }
    }

    #[test]
    fn this_process_and_other_hosts_are_not_watched() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let here = format!("http://{}/", listener.local_addr().unwrap());
        for url in [&*here, "http://example.org/", "http://192.0.2.1/", "no URL"] {
            assert_eq!(process_at(url), None, "{url}");
        }
        assert!(!name_of(std::process::id()).is_empty());
    }
}
