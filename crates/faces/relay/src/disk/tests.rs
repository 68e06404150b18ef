//! Buffers that are left and taken up again.

use std::fs::OpenOptions;
use std::num::NonZeroU64;
use std::path::Path;

use tokio::task::yield_now;
use tokio::time::timeout;

use super::*;

fn options(folder: &Path, sync: SyncWhen) -> DiskOptions {
    DiskOptions {
        folder: folder.to_path_buf(),
        bytes_max: ByteSize::kib(8),
        sync,
    }
}

fn open(folder: &Path) -> Disk {
    Disk::open(&options(folder, SyncWhen::Never)).unwrap()
}

fn fill(disk: &Disk, numbers: std::ops::Range<u32>) {
    for number in numbers {
        assert!(disk.try_reserve(Disk::room_of(1, 100)));
        disk.release(Disk::room_of(1, 100));
        disk.append(format!("{number:0100}").as_bytes());
        disk.write_out().unwrap();
    }
}

/// Takes up to `count` events out, without handing them over.
fn take(disk: &Disk, count: usize) -> Vec<u32> {
    let mut numbers = Vec::new();
    while numbers.len() < count
        && let Some(event) = disk.state.borrow_mut().read().unwrap()
    {
        numbers.push(std::str::from_utf8(&event).unwrap().parse().unwrap());
    }
    numbers
}

#[test]
fn what_was_not_handed_over_is_there_again() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path());
    fill(&disk, 0..40);
    assert_eq!(take(&disk, 30), (0..30).collect::<Vec<_>>());
    disk.handed_over(25).unwrap();
    assert_eq!(disk.counts().kept(), 15);
    // As if it had been killed: nothing is closed in good order.
    drop(disk);
    let disk = open(folder.path());
    assert_eq!((disk.counts().recovered, disk.counts().torn_bytes), (15, 0));
    fill(&disk, 40..45);
    assert_eq!(take(&disk, 100), (25..45).collect::<Vec<_>>());
    disk.handed_over(20).unwrap();
    assert_eq!(disk.counts().kept(), 0);
    drop(disk);
    let disk = open(folder.path());
    assert_eq!((disk.counts().recovered, take(&disk, 1).len()), (0, 0));
    // Everything that was delivered is deleted, except the segment that is being written.
    assert_eq!(segment::numbers(folder.path()).unwrap().len(), 1);
}

#[test]
fn a_torn_end_is_dropped_and_what_is_before_it_is_not() {
    for cut in [1, 50, 107] {
        let folder = tempfile::tempdir().unwrap();
        let disk = open(folder.path());
        fill(&disk, 0..5);
        let (number, end) = (
            disk.state.borrow().writer.number,
            disk.state.borrow().writer.end,
        );
        drop(disk);
        let path = segment::path(folder.path(), number);
        let file = OpenOptions::new().write(true).open(path).unwrap();
        file.set_len(end - cut).unwrap();
        let disk = open(folder.path());
        assert_eq!(
            (disk.counts().recovered, disk.counts().torn_bytes),
            (4, 108 - cut)
        );
        fill(&disk, 5..6);
        assert_eq!(take(&disk, 9), [0, 1, 2, 3, 5]);
    }
}

#[test]
fn a_full_buffer_has_no_room_until_a_segment_goes() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path());
    let mut count = 0;
    while disk.try_reserve(Disk::room_of(1, 100)) {
        disk.release(Disk::room_of(1, 100));
        fill(&disk, count..count + 1);
        count += 1;
    }
    // Eight KiB, of which each segment takes its first eight bytes.
    assert_eq!(count, 75);
    assert!(disk.bytes() <= ByteSize::kib(8));
    assert_eq!(take(&disk, 8).len(), 8);
    disk.handed_over(8).unwrap();
    assert!(
        !disk.try_reserve(Disk::room_of(1, 100)),
        "its segment holds another one"
    );
    assert_eq!(take(&disk, 1), [8]);
    disk.handed_over(1).unwrap();
    assert!(disk.try_reserve(Disk::room_of(9, 900)));
}

#[test]
fn two_relays_do_not_share_a_buffer() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path());
    let refused = Disk::open(&options(folder.path(), SyncWhen::Never)).unwrap_err();
    assert!(
        refused.to_string().contains("used by another relay"),
        "{refused}"
    );
    drop(disk);
    open(folder.path());
}

#[tokio::test(start_paused = true)]
async fn events_are_synced_by_number_and_by_time() {
    let each = |events| SyncWhen::Events(NonZeroU64::new(events).unwrap());
    for (sync, batches, syncs) in [
        (SyncWhen::Never, 10, 0),
        (each(1), 10, 10),
        (each(5), 10, 2),
        (SyncWhen::Every(Nanos::from_millis(15)), 10, 1),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::open(&options(folder.path(), sync)).unwrap();
        let write = async {
            for number in 0..batches {
                fill(&disk, number..number + 1);
                // Lets the task that syncs run.
                sleep(Duration::from_millis(1)).await;
            }
            disk.kept().await;
            disk.close();
        };
        tokio::join!(disk.keep_synced(), write);
        assert_eq!(disk.counts().syncs, syncs, "{sync:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_sync_is_tried_again_after_its_events_were_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let sync = SyncWhen::Events(NonZeroU64::MIN);
    let disk = Disk::open(&options(folder.path(), sync)).unwrap();
    fill(&disk, 0..3);
    // The kernel refuses to sync this device.
    let null = OpenOptions::new().write(true).open("/dev/null").unwrap();
    disk.state.borrow_mut().writer.file = null;
    let copy = folder.path().join("copy");
    let repair = async {
        while disk.counts().refused == 0 {
            yield_now().await;
        }
        disk.state.borrow_mut().writer.file = File::create(&copy).unwrap();
        disk.kept().await;
        disk.close();
    };
    let both = async { tokio::join!(disk.keep_synced(), repair) };
    timeout(Duration::from_secs(60), both).await.unwrap();
    assert_eq!((disk.counts().refused, disk.counts().syncs), (1, 1));
    let written = fs::read(segment::path(folder.path(), 1)).unwrap();
    let copied = fs::read(&copy).unwrap();
    let first = as_usize(segment::FIRST);
    assert_eq!(copied[first..], written[first..]);
}

#[test]
fn a_content_type_is_kept_for_as_long_as_events_are_left() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path());
    for content_type in [b"text/plain".as_slice(), b"application/json"] {
        disk.keep_content_type(content_type).unwrap();
    }
    fill(&disk, 0..1);
    drop(disk);
    let disk = open(folder.path());
    assert_eq!(disk.content_type(), b"application/json");
    assert_eq!(take(&disk, 1), [0]);
    disk.handed_over(1).unwrap();
    drop(disk);
    // For its own events the next relay has none, and keeps none.
    let disk = open(folder.path());
    assert_eq!(disk.content_type(), b"");
    fill(&disk, 1..2);
    drop(disk);
    assert_eq!(open(folder.path()).content_type(), b"");
}
