//! Datagrams that the kernel dropped because earlier ones were not taken yet: the count
//! in its table of UDP sockets. `SO_RXQ_OVFL` has the same count with each datagram, but
//! none once no datagram comes.

use std::fs;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;

/// Tables of UDP sockets, over IPv4 and IPv6, of the thread's own network.
const TABLES: [&str; 2] = ["/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"];

/// The count of one socket.
#[derive(Debug)]
pub(super) struct Drops {
    inode: u64,
    /// The table that lists it.
    table: &'static str,
    /// Drops of the sockets that the sink had before.
    before: u64,
}

impl Drops {
    /// Of `socket`, on top of those `before`; `None` where no table of the kernel's
    /// lists it.
    pub(super) fn of(socket: &impl AsFd, before: u64) -> Option<Self> {
        let descriptor = socket.as_fd().as_raw_fd();
        let inode = fs::metadata(format!("/proc/self/fd/{descriptor}"))
            .ok()?
            .ino();
        let table = TABLES
            .into_iter()
            .find(|table| read(table, inode).is_some())?;
        Some(Self {
            inode,
            table,
            before,
        })
    }

    /// Returns the number so far.
    pub(super) fn count(&self) -> Option<u64> {
        Some(self.before + read(self.table, self.inode)?)
    }
}

fn read(table: &str, inode: u64) -> Option<u64> {
    drops_in(&fs::read_to_string(table).ok()?, inode)
}

/// The drops of the socket with `inode` in the text of a table: of each line after
/// the first, word 10 is the inode and word 13 the drops.
fn drops_in(table: &str, inode: u64) -> Option<u64> {
    table.lines().skip(1).find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(9);
        let socket_inode: u64 = words.next()?.parse().ok()?;
        let drops = words.nth(2)?.parse().ok()?;
        (socket_inode == inode).then_some(drops)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
 1071: 0100007F:0143 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 3621 2 ffff8c2a 17
11530: 00000000:2A0C 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4711 2 ffff8c2b 0
";

    #[test]
    fn drops_are_those_of_the_socket() {
        assert_eq!(drops_in(TABLE, 3621), Some(17));
        assert_eq!(drops_in(TABLE, 4711), Some(0));
        assert_eq!(drops_in(TABLE, 17), None);
        assert_eq!(drops_in("", 3621), None);
        assert_eq!(drops_in("a\nb c\n", 3621), None);
    }
}
