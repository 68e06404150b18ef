//! The process behind a URL of this host.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::iter::successors;
use std::net::SocketAddr;

use stillwell_units::Target;

use crate::listeners::{Listener, ListenerProtocol, SocketEntry, open_sockets, sockets_of};
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
    let inodes = inodes_at(address, &open_sockets(this_process));
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

/// Returns the inodes of the sockets of the service at `address`: of TCP if there are any, because a UDP socket with
/// the port of a TCP service is of another service.
fn inodes_at(address: SocketAddr, sockets: &[(ListenerProtocol, SocketEntry)]) -> BTreeSet<u64> {
    let inodes_of = |wanted: ListenerProtocol| -> BTreeSet<u64> {
        let sockets = sockets.iter().filter(|(protocol, entry)| {
            let listener = Listener {
                protocol: *protocol,
                address: entry.address,
            };
            *protocol == wanted && listener.reachable() == address
        });
        sockets.map(|(_, entry)| entry.inode).collect()
    };
    let tcp = inodes_of(ListenerProtocol::Tcp);
    if tcp.is_empty() {
        return inodes_of(ListenerProtocol::Udp);
    }
    tcp
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
    fn a_datagram_socket_at_the_port_of_a_service_is_another_service() {
        use ListenerProtocol::{Tcp, Udp};
        let at: SocketAddr = "127.0.0.1:80".parse().unwrap();
        let socket = |protocol, address: &str, inode| {
            let address = address.parse().unwrap();
            (protocol, SocketEntry { address, inode })
        };
        let service = socket(Tcp, "127.0.0.1:80", 1);
        let datagrams = socket(Udp, "127.0.0.1:80", 2);
        let everywhere = socket(Tcp, "0.0.0.0:80", 3);
        let elsewhere = socket(Tcp, "127.0.0.1:81", 4);
        for (sockets, expected) in [
            (vec![service, datagrams], vec![1]),
            (vec![datagrams], vec![2]),
            (vec![everywhere, elsewhere, datagrams], vec![3]),
            (vec![elsewhere], vec![]),
        ] {
            let inodes: Vec<u64> = inodes_at(at, &sockets).into_iter().collect();
            assert_eq!(inodes, expected, "{sockets:?}");
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
