//! Bytes of the host's disks, from `/proc/diskstats`.

use crate::text;

/// A sector there is 512 bytes, whatever the disk's are.
const SECTOR_BYTES: u64 = 512;

/// Bytes read and written over all whole disks; the third is not used. Partitions
/// are left out because their disk counts them, and so are devices made of
/// others: loops, RAM disks, mappers and RAIDs.
pub(crate) fn parse(text: &[u8]) -> Option<[u64; 3]> {
    let (mut read, mut written) = (0_u64, 0_u64);
    let mut whole: Vec<&[u8]> = Vec::new();
    for line in text::lines(text) {
        let mut words = text::words(line);
        let (Some(name), Some(sectors_read)) = (words.nth(2), words.nth(2)) else {
            continue;
        };
        let sectors_written = words.nth(3).and_then(text::number);
        if is_made_of_others(name) || whole.iter().any(|disk| is_partition(disk, name)) {
            continue;
        }
        // The kernel lists a disk before its partitions.
        whole.push(name);
        let sectors_read = text::number(sectors_read).unwrap_or(0);
        read = read.saturating_add(text::scaled(sectors_read, SECTOR_BYTES));
        let sectors_written = sectors_written.unwrap_or(0);
        written = written.saturating_add(text::scaled(sectors_written, SECTOR_BYTES));
    }
    (!whole.is_empty()).then_some([read, written, 0])
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
