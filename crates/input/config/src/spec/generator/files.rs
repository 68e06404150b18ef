//! Generators that write to files, and `tcp_rr`.

use std::num::NonZeroU32;

use stillwell_plan::generator::{FileLayout, FileTreePlan, MessageLength, RenameShare, WhenFull};
use stillwell_plan::{RatePlan, TransportPlan};
use stillwell_text::{MapReader, Node, Reader, Value, code};
use stillwell_units::{ByteSize, Nanos};

use super::fit::mounted_problem;
use super::{FILE_GEN, FILE_TREE, ROUND_TRIP, ReadContext};
use crate::spec::sink::read_length;

/// The transport of `kind` that `node` describes.
pub(super) fn read_passthru_file(context: &ReadContext<'_>, node: &Node) -> Option<TransportPlan> {
    let path = context.placed(node)?;
    Some(TransportPlan::PassthruFile { path })
}

pub(super) fn read_file_gen(context: &ReadContext<'_>, node: &Node) -> Option<TransportPlan> {
    let reader = context.reader;
    let map = reader.map(node, &FILE_GEN.keys())?;
    let file_max = map.required("file_max");
    let bytes_max: Option<ByteSize> = file_max.and_then(|node| reader.parsed(node));
    let (key, place) = map.one_of(FILE_GEN.one_of)?;
    let layout = if key == "log" {
        read_log(context, &map, place)?
    } else if key == "path" {
        let delete = map.read_or("delete", false, |node| reader.boolean(node))?;
        let path = context.placed(place)?.to_string_lossy().into_owned();
        if !path.contains("%NNN%") {
            let message = "files without a number in their path would overwrite each other";
            let error = reader.error(code::BAD_VALUE, place.span, message);
            let error = error.label("`%NNN%` is the place of the number");
            reader.report(error.help("one file that keeps its name is a `log`"));
        }
        FileLayout::Numbered {
            template: path,
            delete,
        }
    } else {
        let number =
            |key, default| map.read_or(key, default, |node| reader.whole(node, 0, u8::MAX));
        let (depth_max, rotations) = (number("depth", 0), number("rotations", 5));
        let (place, depth_max, rotations) = (context.placed(place)?, depth_max?, rotations?);
        if key == "mount" {
            FileLayout::Mounted {
                at: place,
                depth_max,
                rotations,
            }
        } else {
            FileLayout::Rotated {
                root: place,
                depth_max,
                rotations,
            }
        }
    };
    Some(TransportPlan::Files {
        layout,
        bytes_max: bytes_max?,
    })
}

fn read_log(
    context: &ReadContext<'_>,
    map: &MapReader<'_, '_>,
    place: &Node,
) -> Option<FileLayout> {
    let reader = context.reader;
    let full = map.read_or("full", WhenFull::Rename, |node| {
        let words = WhenFull::ALL.map(|word| (word.name(), word));
        reader.word(node, "rotation", &words)
    });
    let rotations = map.read_or("rotations", 5, |node| reader.whole(node, 0, u8::MAX));
    let pause = map.read_or("settle", Nanos::ZERO, |node| reader.parsed(node));
    Some(FileLayout::Log {
        path: context.placed(place)?,
        full: full?,
        rotations: rotations?,
        pause: pause?,
    })
}

/// Reports logs in a mounted file system without a rate.
pub(super) fn check_mounted(
    reader: &Reader,
    (generator, rate_node): (&Node, Option<&Node>),
    transport: &TransportPlan,
    rate: Option<&RatePlan>,
) {
    if let Some(problem) = rate.and_then(|rate| mounted_problem(transport, rate)) {
        let span = rate_node.unwrap_or(generator).span;
        problem.report(reader, span);
    }
}

/// A share of renames is counted in 1000 operations.
const OPERATIONS: NonZeroU32 = NonZeroU32::MIN.saturating_add(999);

pub(super) fn read_tree(context: &ReadContext<'_>, node: &Node) -> Option<TransportPlan> {
    let reader = context.reader;
    let map = reader.map(node, &FILE_TREE.keys())?;
    let number = |key, default: u32, maximum| {
        let number = map.read_or(key, default, |node| reader.whole(node, 1, maximum));
        number.and_then(NonZeroU32::new)
    };
    let root = map.required("root").and_then(|node| context.placed(node));
    let depth_max = number("depth", 10, 1000);
    let folders_max = number("folders", 5, 1_000_000);
    let files_max = number("files", 5, 1_000_000);
    let nodes_max = number("nodes", 100, 10_000_000);
    let name_length = number("name_length", 8, 200);
    let renames = map.read_or("renames", OPERATIONS.get() / 10, |node| {
        read_renames(context, node)
    });
    Some(TransportPlan::FileTree(FileTreePlan {
        root: root?,
        depth_max: depth_max?,
        folders_max: folders_max?,
        files_max: files_max?,
        nodes_max: nodes_max?,
        name_length: name_length?,
        renames: RenameShare::try_new(renames?, OPERATIONS).ok()?,
    }))
}

fn read_renames(context: &ReadContext<'_>, node: &Node) -> Option<u32> {
    let text = context.reader.text(node)?;
    let share = text
        .strip_suffix('%')
        .and_then(|text| text.trim().parse::<u32>().ok());
    match share {
        Some(percent) if percent <= 100 => Some(percent * OPERATIONS.get() / 100),
        _ => {
            let message = format!("`{text}` is not a share");
            let error = context.reader.error(code::BAD_VALUE, node.span, message);
            context
                .reader
                .report(error.label("write a share from `0%` to `100%`"));
            None
        }
    }
}

pub(super) fn read_round_trip(context: &ReadContext<'_>, node: &Node) -> Option<TransportPlan> {
    let round_trip = |address, request_bytes, response_bytes| TransportPlan::TcpRr {
        address,
        request_bytes,
        response_bytes,
    };
    if matches!(node.value, Value::Scalar { .. }) {
        let least = MessageLength::MIN;
        return Some(round_trip(context.address(node)?, least, least));
    }
    let map = context.reader.map(node, &ROUND_TRIP.keys())?;
    let address = map
        .required("address")
        .and_then(|node| context.address(node));
    let length = |key| map.read_or(key, MessageLength::MIN, |node| read_length(context, node));
    let (request_bytes, response_bytes) = (length("request"), length("response"));
    Some(round_trip(address?, request_bytes?, response_bytes?))
}
