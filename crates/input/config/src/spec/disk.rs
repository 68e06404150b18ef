//! `disks`.

use std::path::{Component, Path, PathBuf};

use stillwell_plan::disk::{DiskKind, DiskPlan, FolderDiskPlan};
use stillwell_text::{MapReader, Node, code};
use stillwell_units::{ByteRate, ByteSize, Nanos};

use super::ReadContext;
use crate::element::{DURATION, Element, Field, SIZE, Shape, optional, required};

/// Speed and size.
pub(super) const LIMITS: [Field; 4] = [
    optional("fsync_delay", DURATION, "Additional time of each `fsync`."),
    optional(
        "fsync_delay_per_mib",
        DURATION,
        "Additional time for each MiB that `fsync` makes durable.",
    ),
    optional("write_rate", Shape::Like("20 MiB/s"), "Maximum write rate."),
    optional("limit", SIZE, "Capacity; further writes fail."),
];

pub(super) const DISK: Element = Element::new(
    "disk",
    "A simulated disk: mounted before the target starts, unmounted after it ends.",
    &[
        required(
            "path",
            Shape::Text,
            "Mount point, such as `{state}/buffer`; the folder is created if it does not exist.",
        ),
        optional(
            "tmpfs",
            SIZE,
            "Memory of this size, discarded after the run. Without it the disk shows a folder through \
             `/dev/fuse`, and counts what is written and made durable.",
        ),
        optional(
            "backing",
            Shape::Text,
            "The folder that is shown; the folder at `path` by default.",
        ),
        LIMITS[0],
        LIMITS[1],
        LIMITS[2],
        LIMITS[3],
    ],
);

/// Keys that memory has no use for.
const FOLDER_KEYS: [&str; 5] = [
    "backing",
    "fsync_delay",
    "fsync_delay_per_mib",
    "write_rate",
    "limit",
];

pub(super) fn read_disks(context: &ReadContext<'_>, node: &Node) -> Vec<DiskPlan> {
    let items = context.reader.list(node).unwrap_or_default();
    let mut disks: Vec<DiskPlan> = Vec::new();
    for item in items {
        let Some(disk) = read_disk(context, item) else {
            continue;
        };
        if disks.iter().any(|earlier| earlier.path == disk.path) {
            let message = format!("two disks at {}", disk.path.display());
            let error = context.reader.error(code::BAD_VALUE, item.span, message);
            context.reader.report(error.label("name another folder"));
        }
        disks.push(disk);
    }
    disks
}

fn read_disk(context: &ReadContext<'_>, node: &Node) -> Option<DiskPlan> {
    let reader = context.reader;
    let map = reader.map(node, &DISK.keys())?;
    let path = map
        .required("path")
        .and_then(|node| read_path(context, node));
    let kind = match map.take("tmpfs") {
        Some(size) => {
            for key in FOLDER_KEYS {
                if let Some(node) = map.take(key) {
                    let message = format!("`{key}` has no effect on memory");
                    let error = reader.error(code::BAD_VALUE, node.span, message);
                    reader.report(error.label("leave it out, or leave out `tmpfs`"));
                }
            }
            read_size(context, size).map(DiskKind::Memory)
        }
        None => read_folder(context, &map).map(DiskKind::Folder),
    };
    Some(DiskPlan {
        path: path?,
        kind: kind?,
    })
}

/// Everything below the root itself.
fn read_path(context: &ReadContext<'_>, node: &Node) -> Option<PathBuf> {
    let path = context.path(node)?;
    let is_root = path
        .components()
        .all(|part| matches!(part, Component::RootDir));
    if is_root || path == Path::new("{state}") {
        let message = format!("nothing can be mounted at {}", path.display());
        let error = context.reader.error(code::BAD_VALUE, node.span, message);
        context
            .reader
            .report(error.label("name a folder below, e.g. `{state}/buffer`"));
        return None;
    }
    Some(path)
}

fn read_folder(context: &ReadContext<'_>, map: &MapReader<'_, '_>) -> Option<FolderDiskPlan> {
    let reader = context.reader;
    let length = |key| map.read_or(key, Nanos::ZERO, |node| reader.parsed::<Nanos>(node));
    // What may be left out must not be wrong.
    let backing = map.read("backing", |node| context.path(node))?;
    let (fsync_delay, fsync_delay_per_mib) = (length("fsync_delay"), length("fsync_delay_per_mib"));
    let write_rate = map.read("write_rate", |node| reader.parsed::<ByteRate>(node))?;
    let limit = map.read("limit", |node| read_size(context, node))?;
    Some(FolderDiskPlan {
        backing,
        fsync_delay: fsync_delay?,
        fsync_delay_per_mib: fsync_delay_per_mib?,
        write_rate,
        limit,
    })
}

pub(super) fn read_size(context: &ReadContext<'_>, node: &Node) -> Option<ByteSize> {
    let size: ByteSize = context.reader.parsed(node)?;
    if size.bytes() == 0 {
        let error = context
            .reader
            .error(code::OUT_OF_RANGE, node.span, "a disk of zero bytes");
        context.reader.report(error);
        return None;
    }
    Some(size)
}
