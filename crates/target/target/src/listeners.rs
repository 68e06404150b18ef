//! Sockets on which a target accepts traffic.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::target_process::TargetProcess;
use crate::tree;

/// Maximum size of a table of sockets that is read.
const TABLE_MAX: u64 = 16 << 20;
/// State of a TCP socket that accepts connections.
const TCP_LISTEN: &str = "0A";
/// State of a UDP socket without a peer.
const UDP_UNCONNECTED: &str = "07";

/// Protocol of a [`Listener`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum ListenerProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// A socket on which a target accepts connections or datagrams.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Listener {
    /// Its protocol.
    pub protocol: ListenerProtocol,
    /// Its address, which may be that of all interfaces.
    pub address: SocketAddr,
}

impl Listener {
    /// Returns the address by which the same host reaches it: loopback in place of all interfaces.
    #[must_use]
    pub fn reachable(&self) -> SocketAddr {
        let ip = match self.address.ip().to_canonical() {
            // A socket of all interfaces for IPv6 accepts IPv4 too, unless the host forbids that.
            ip if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            ip => ip,
        };
        SocketAddr::new(ip, self.address.port())
    }
}

/// One line of a table of sockets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct SocketEntry {
    pub(crate) address: SocketAddr,
    pub(crate) inode: u64,
}

impl TargetProcess {
    /// Returns the sockets on which the processes of a target that Stillwell started accept traffic, in the order of
    /// protocols and addresses. A UDP socket without a peer counts, also if the target sends from it.
    #[must_use]
    pub fn listeners(&self) -> Vec<Listener> {
        let Some(process) = &self.inner.process else {
            return Vec::new();
        };
        let Some(owned) = &process.owned else {
            return Vec::new();
        };
        let is_reaped = process.exited().is_some();
        let members = tree::members(process.number(), is_reaped, &owned.mark, std::process::id());
        let mut listeners = BTreeSet::new();
        for pid in members.alive {
            listeners.extend(of_process(pid));
        }
        listeners.into_iter().collect()
    }
}

/// Returns the listeners among the open files of one process. A process that has ended has none.
fn of_process(pid: u32) -> Vec<Listener> {
    let inodes = sockets_of(pid);
    if inodes.is_empty() {
        return Vec::new();
    }
    let entries = open_sockets(pid).into_iter();
    let entries = entries.filter(|(_, entry)| inodes.contains(&entry.inode));
    let listeners = entries.map(|(protocol, entry)| Listener {
        protocol,
        address: entry.address,
    });
    listeners.collect()
}

/// Returns the sockets that accept traffic in the network namespace of a process.
pub(crate) fn open_sockets(pid: u32) -> Vec<(ListenerProtocol, SocketEntry)> {
    let tables = [
        ("tcp", ListenerProtocol::Tcp, TCP_LISTEN),
        ("tcp6", ListenerProtocol::Tcp, TCP_LISTEN),
        ("udp", ListenerProtocol::Udp, UDP_UNCONNECTED),
        ("udp6", ListenerProtocol::Udp, UDP_UNCONNECTED),
    ];
    let mut sockets = Vec::new();
    for (name, protocol, state) in tables {
        let table = read_table(&format!("/proc/{pid}/net/{name}"));
        let entries = table.lines().filter_map(|line| parse_entry(line, state));
        sockets.extend(entries.map(|entry| (protocol, entry)));
    }
    sockets
}

/// Returns the inodes of the sockets among the open files of a process; none if it has ended or is another user's.
pub(crate) fn sockets_of(pid: u32) -> BTreeSet<u64> {
    let files = fs::read_dir(format!("/proc/{pid}/fd"));
    let files = files.into_iter().flatten().flatten();
    let links = files.filter_map(|file| fs::read_link(file.path()).ok());
    links
        .filter_map(|link| socket_inode(link.to_str()?))
        .collect()
}

fn read_table(path: &str) -> String {
    let mut bytes = Vec::new();
    // A kernel without IPv6 has no such file.
    if let Ok(file) = File::open(path) {
        file.take(TABLE_MAX).read_to_end(&mut bytes).ok();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the number in `socket:[123]`.
fn socket_inode(link: &str) -> Option<u64> {
    let number = link.strip_prefix("socket:[")?.strip_suffix(']')?;
    number.parse().ok()
}

/// Returns the socket of a line of `/proc/net/tcp` and its siblings, if it is in `state`.
fn parse_entry(line: &str, state: &str) -> Option<SocketEntry> {
    let mut fields = line.split_ascii_whitespace();
    let address = parse_address(fields.nth(1)?)?;
    let (_remote, socket_state) = (fields.next()?, fields.next()?);
    let inode = fields.nth(5)?.parse().ok()?;
    (socket_state == state && address.port() != 0).then_some(SocketEntry { address, inode })
}

/// Returns the address of `0100007F:1F90`: words in the byte order of the host, then the port.
fn parse_address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::with_capacity(16);
    for at in (0..ip.len()).step_by(8) {
        let word = u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?;
        bytes.extend_from_slice(&word.to_ne_bytes());
    }
    let ip = match bytes.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
        16 => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[cfg(target_endian = "little")]
    #[test]
    fn a_line_of_the_kernels_table_is_read() {
        let line = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 8612 1 0 100 0 0 10 0";
        let entry = parse_entry(line, TCP_LISTEN).unwrap();
        assert_eq!(entry.address, "127.0.0.1:8080".parse().unwrap());
        assert_eq!(entry.inode, 8612);
        assert_eq!(parse_entry(line, UDP_UNCONNECTED), None);
        let line = "  12: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A \
                    00000000:00000000 00:00000000 00000000 0 0 77 1 0 100 0 0 10 0";
        let entry = parse_entry(line, TCP_LISTEN).unwrap();
        assert_eq!(entry.address, "[::1]:80".parse().unwrap());
    }

    #[test]
    fn all_interfaces_are_reached_by_loopback() {
        for (address, expected) in [
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "127.0.0.1:80"),
            ("[::1]:80", "[::1]:80"),
            ("[::ffff:127.0.0.1]:80", "127.0.0.1:80"),
            ("10.0.0.1:80", "10.0.0.1:80"),
        ] {
            let listener = Listener {
                protocol: ListenerProtocol::Tcp,
                address: address.parse().unwrap(),
            };
            assert_eq!(listener.reachable(), expected.parse().unwrap());
        }
    }

    proptest! {
        #[test]
        fn for_all_texts_nothing_panics(line in ".{0,200}", link in ".{0,30}") {
            parse_entry(&line, TCP_LISTEN);
            socket_inode(&link);
        }
    }
}
