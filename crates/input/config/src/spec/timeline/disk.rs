//! Steps that change how a disk behaves.

use stillwell_plan::step::{DiskChange, DiskLimits, StepAction};
use stillwell_text::{Node, Value};

use crate::element::{Element, Shape, required};
use crate::spec::ReadContext;
use crate::spec::disk::{LIMITS, read_size};

const CHANGE: Element = Element::new(
    "disk change",
    "New speed and size of the disk; omitted keys keep their values.",
    &LIMITS,
);

const WORDS: [(&str, DiskChange); 2] =
    [("full", DiskChange::Full), ("restore", DiskChange::Restore)];

pub(super) const STEP: Element = Element::new(
    "disk step",
    "Changes how a disk of `disks` behaves.",
    &[
        required("path", Shape::Text, "The disk, by its path in `disks`."),
        required(
            "do",
            Shape::Any(&[Shape::Words(&["full", "restore"]), Shape::Element(&CHANGE)]),
            "`full`: accepts no more data. `restore`: accepts data as configured in `disks`; \
             blocked calls continue.",
        ),
    ],
);

pub(super) fn read(context: &ReadContext<'_>, node: &Node) -> Option<StepAction> {
    let map = context.reader.map(node, &STEP.keys())?;
    let path = map.required("path").and_then(|node| context.path(node));
    let change = map
        .required("do")
        .and_then(|node| read_change(context, node));
    Some(StepAction::Disk {
        path: path?,
        change: change?,
    })
}

fn read_change(context: &ReadContext<'_>, node: &Node) -> Option<DiskChange> {
    let reader = context.reader;
    if matches!(node.value, Value::Scalar { .. }) {
        return reader.word(node, "change of a disk", &WORDS);
    }
    let map = reader.map(node, &CHANGE.keys())?;
    Some(DiskChange::Limits(DiskLimits {
        fsync_delay: map.read("fsync_delay", |node| reader.parsed(node))?,
        fsync_delay_per_mib: map.read("fsync_delay_per_mib", |node| reader.parsed(node))?,
        write_rate: map.read("write_rate", |node| reader.parsed(node))?,
        limit: map.read("limit", |node| read_size(context, node))?,
    }))
}
