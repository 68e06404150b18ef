//! Bytes of the host's disks, from `/proc/diskstats`.

use crate::text;

/// Size of a sector in this file, independent of the disk.
const SECTOR_BYTES: u64 = 512;

/// Bytes read and written over all whole disks; the third value is unused. Partitions are skipped because their
/// disk counts them, and so are devices on top of other devices: loops, RAM disks, mappers and RAIDs.
pub(crate) fn parse(text: &[u8]) -> Option<[u64; 3]> {
    const READ: usize = 2;
    const WRITTEN: usize = 6;
    let disks = whole_disks(text);
    let bytes = |at| -> u64 {
        let sectors = disks.iter().filter_map(|disk| *disk.get(at)?);
        sectors.fold(0, |sum, sectors| {
            sum.saturating_add(text::scaled(sectors, SECTOR_BYTES))
        })
    };
    (!disks.is_empty()).then(|| [bytes(READ), bytes(WRITTEN), 0])
}

/// Number of flush requests; `None` before Linux 5.5, which does not count them.
pub(crate) fn flushes(text: &[u8]) -> Option<u64> {
    const FLUSHES: usize = 15;
    let disks = whole_disks(text);
    let counts = disks.iter().filter_map(|disk| *disk.get(FLUSHES)?);
    counts.reduce(u64::saturating_add)
}

/// Counters of each whole disk, from its number of reads on.
fn whole_disks(text: &[u8]) -> Vec<Vec<Option<u64>>> {
    let mut names: Vec<&[u8]> = Vec::new();
    let mut disks = Vec::new();
    for line in text::lines(text) {
        let mut words = text::words(line);
        let Some(name) = words.nth(2) else { continue };
        let counts: Vec<Option<u64>> = words.map(text::number).collect();
        if is_made_of_others(name) || names.iter().any(|disk| is_partition(disk, name)) {
            continue;
        }
        if counts.len() < 3 {
            continue;
        }
        // The kernel lists a disk before its partitions.
        names.push(name);
        disks.push(counts);
    }
    disks
}

fn is_made_of_others(name: &[u8]) -> bool {
    [b"loop".as_slice(), b"ram", b"zram", b"dm-", b"md"]
        .iter()
        .any(|kind| name.starts_with(kind))
}

/// `sda1` of `sda`, `nvme0n1p2` of `nvme0n1`.
fn is_partition(disk: &[u8], name: &[u8]) -> bool {
    let Some(rest) = name.strip_prefix(disk) else {
        return false;
    };
    let rest = match disk.last() {
        Some(last) if last.is_ascii_digit() => rest.strip_prefix(b"p"),
        _ => Some(rest),
    };
    rest.is_some_and(|rest| !rest.is_empty() && rest.iter().all(u8::is_ascii_digit))
}
