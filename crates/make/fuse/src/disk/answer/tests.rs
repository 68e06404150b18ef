//! Answers over a folder that is not mounted.

use stillwell_plan::disk::FolderDiskPlan;
use tempfile::TempDir;

use super::*;
use crate::protocol::ROOT;

/// A disk over a folder with the files `kept`, of 5 bytes, and `a`, of 10.
fn disk() -> (TempDir, Files, Arc<DiskShard>) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("kept"), "12345").unwrap();
    fs::write(folder.path().join("a"), "0123456789").unwrap();
    let controls = Arc::new(DiskControls::new(&FolderDiskPlan::default()));
    let shard = Arc::new(DiskShard::new("disk"));
    let root = File::open(folder.path()).unwrap();
    let files = Files::new(root, controls, Arc::clone(&shard)).unwrap();
    (folder, files, shard)
}

/// Has an operation on `node` done, which must not fail.
fn perform(files: &mut Files, node: u64, operation: Operation<'_>) {
    let request = Request {
        unique: 1,
        node,
        uid: 0,
        gid: 0,
        thread: 0,
        operation,
    };
    let answer = files.answer(&request, Moment::new(0), &mut Vec::new());
    assert_eq!(answer, Answer::Done);
}

fn open_name(files: &mut Files, name: &str) -> u64 {
    let node = files.nodes.look_up(ROOT, OsStr::new(name));
    files.open(node, 0).unwrap()
}

/// The room was given back when the last name was removed, and a second time at the end of the handle.
#[test]
fn an_open_file_with_several_names_gives_its_room_back_once_at_its_last_close() {
    let [a, b, kept] = ["a", "b", "kept"].map(OsStr::new);
    for names in [&["a"][..], &["a", "b"]] {
        for is_replaced in [false, true] {
            let (_folder, mut files, shard) = disk();
            let from = files.nodes.look_up(ROOT, a);
            perform(&mut files, ROOT, Operation::Link { from, name: b });
            let handles = names.iter().map(|name| open_name(&mut files, name));
            let handles: Vec<u64> = handles.collect();
            perform(&mut files, ROOT, Operation::Unlink { name: a });
            let last = if is_replaced {
                Operation::Rename {
                    folder: ROOT,
                    flags: 0,
                    from: kept,
                    to: b,
                }
            } else {
                Operation::Unlink { name: b }
            };
            perform(&mut files, ROOT, last);
            for handle in handles {
                assert_eq!(shard.used.total(), 15, "{names:?}, {is_replaced}");
                perform(&mut files, ROOT, Operation::Release { handle });
            }
            assert_eq!(shard.used.total(), 5, "{names:?}, {is_replaced}");
        }
    }
}

#[test]
fn a_file_with_several_names_counts_once_when_a_disk_is_made() {
    let (folder, ..) = disk();
    let below = folder.path().join("below");
    fs::create_dir(&below).unwrap();
    fs::hard_link(folder.path().join("a"), below.join("b")).unwrap();
    assert_eq!(bytes_below(folder.path()).unwrap(), 15);
}
