//! lading's generators that write to files.

use std::num::NonZeroU32;
use std::path::PathBuf;

use stillwell_plan::generator::{
    Concurrency, FileLayout, FileTreePlan, MessageLength, RenameShare,
};
use stillwell_plan::rate::Ramp;
use stillwell_plan::{GeneratorPlan, PayloadPlan, RatePlan, RateShape, RateUnit, TransportPlan};
use stillwell_units::{ByteSize, float_from_u64};

use super::super::size::{read_size, read_size_of_old};
use super::super::{payload, throttle};
use super::read_seed;
use stillwell_text::{Keys, MapReader, Node, Reader, Value, code};

/// End of a ramp without an end, in bytes or blocks per second: no disk is faster.
const RAMP_MAX: f64 = 1e12;

/// The generator of `kind` that `node` describes.
pub(super) fn read(reader: &Reader, kind: &str, node: &Node) -> Option<GeneratorPlan> {
    match kind {
        "file_gen" => read_file_gen(reader, node),
        "passthru_file" => read_passthru(reader, node),
        _ => read_tree(reader, node),
    }
}

fn read_file_gen(reader: &Reader, node: &Node) -> Option<GeneratorPlan> {
    const KINDS: [&str; 3] = ["traditional", "logrotate", "logrotate_fs"];
    // Before there were several kinds its keys were here.
    if node.entry("path_template").is_some() {
        return read_traditional(reader, node);
    }
    let map = reader.map(node, &Keys::new("file_gen generator", &KINDS))?;
    match map.one_of(&KINDS)? {
        ("traditional", node) => read_traditional(reader, node),
        ("logrotate", node) => read_logrotate(reader, node),
        (_, node) => read_logrotate_fs(reader, node),
    }
}

fn keys(what: &'static str, generator_keys: &[&'static str]) -> Keys {
    let mut keys = Keys::new(what, &["seed"]);
    for more in [generator_keys, payload::KEYS, payload::BLOCK_KEYS] {
        keys.accepted.extend(more);
    }
    keys
}

fn read_traditional(reader: &Reader, node: &Node) -> Option<GeneratorPlan> {
    let mut keys = keys(
        "traditional file_gen",
        &[
            "path_template",
            "duplicates",
            "maximum_bytes_per_file",
            "rotate",
            "flush_every",
        ],
    );
    keys.accepted.extend(throttle::KEYS);
    let map = reader.map(node, &keys)?;
    let files = map
        .required("duplicates")
        .and_then(|node| reader.whole(node, 1, u16::MAX));
    let template = map.required("path_template").and_then(|node| {
        let text = reader.text(node)?;
        if !text.contains("%NNN%") && files != Some(1) {
            let message = "files without a number in their path would overwrite each other";
            let error = reader.error(code::BAD_VALUE, node.span, message);
            reader.report(error.label("`%NNN%` is the placeholder of the number"));
            return None;
        }
        Some(text.to_owned())
    });
    let delete = map.read_or("rotate", true, |node| reader.boolean(node));
    let bytes_max = required_size(reader, &map, "maximum_bytes_per_file");
    remark_flush(reader, &map);
    let rate = throttle::read(reader, &map);
    let layout = template.zip(delete);
    let layout = layout.map(|(template, delete)| FileLayout::Numbered { template, delete });
    finish(reader, &map, layout, bytes_max, files, rate)
}

fn read_logrotate(reader: &Reader, node: &Node) -> Option<GeneratorPlan> {
    let generator_keys = [
        "root",
        "concurrent_logs",
        "maximum_bytes_per_log",
        "total_rotations",
        "max_depth",
        "flush_every",
    ];
    let mut keys = keys("logrotate file_gen", &generator_keys);
    keys.accepted.extend(throttle::KEYS);
    let map = reader.map(node, &keys)?;
    remark_flush(reader, &map);
    let mut layout = read_rotated(reader, &map, "root");
    if let Some(FileLayout::Rotated { depth_max, .. }) = &mut layout {
        // Here lading's bound is exclusive, that of `logrotate_fs` is not.
        *depth_max = depth_max.saturating_sub(1);
    }
    let bytes_max = required_size(reader, &map, "maximum_bytes_per_log");
    let files = concurrent_logs(reader, &map);
    let rate = throttle::read(reader, &map);
    finish(reader, &map, layout, bytes_max, files, rate)
}

/// Logs in a FUSE file system, as in lading.
fn read_logrotate_fs(reader: &Reader, node: &Node) -> Option<GeneratorPlan> {
    let generator_keys = [
        "mount_point",
        "concurrent_logs",
        "maximum_bytes_per_log",
        "total_rotations",
        "max_depth",
        "load_profile",
        "bytes_per_second",
    ];
    let map = reader.map(node, &keys("logrotate_fs file_gen", &generator_keys))?;
    let layout = read_rotated(reader, &map, "mount_point").map(|layout| match layout {
        FileLayout::Rotated {
            root,
            depth_max,
            rotations,
        } => FileLayout::Mounted {
            at: root,
            depth_max,
            rotations,
        },
        error => error,
    });
    let bytes_max = required_size(reader, &map, "maximum_bytes_per_log");
    let files = concurrent_logs(reader, &map);
    // Before there were profiles it was a constant rate.
    let rate = match map.take("bytes_per_second") {
        Some(node) => read_size_of_old(reader, node)
            .map(|size| RatePlan::constant(RateUnit::Bytes, float_from_u64(size.bytes()))),
        None => map
            .required("load_profile")
            .and_then(|node| read_profile(reader, node)),
    };
    finish(reader, &map, layout, bytes_max, files, rate)
}

fn read_rotated(
    reader: &Reader,
    map: &MapReader<'_, '_>,
    root_key: &'static str,
) -> Option<FileLayout> {
    let root = path(reader, map, root_key);
    let number = |key| {
        let node = map.required(key)?;
        reader.whole(node, 0, u8::MAX)
    };
    let (rotations, depth_max) = (number("total_rotations"), number("max_depth"));
    Some(FileLayout::Rotated {
        root: root?,
        depth_max: depth_max?,
        rotations: rotations?,
    })
}

fn concurrent_logs(reader: &Reader, map: &MapReader<'_, '_>) -> Option<u16> {
    let node = map.required("concurrent_logs")?;
    reader.whole(node, 1, u16::MAX)
}

fn required_size(reader: &Reader, map: &MapReader<'_, '_>, key: &'static str) -> Option<ByteSize> {
    read_size(reader, map.required(key)?)
}

fn path(reader: &Reader, map: &MapReader<'_, '_>, key: &'static str) -> Option<PathBuf> {
    let node = map.required(key)?;
    Some(reader.text(node)?.into())
}

fn remark_flush(reader: &Reader, map: &MapReader<'_, '_>) {
    if let Some(node) = map.take("flush_every") {
        let message = "`flush_every` has no effect: each block is written at once";
        reader.report(reader.note(code::NO_EFFECT, node.span, message));
    }
}

/// `constant` or `linear`, for each file.
fn read_profile(reader: &Reader, node: &Node) -> Option<RatePlan> {
    let words = ["constant", "linear"];
    let map = reader.map(node, &Keys::new("load_profile", &words))?;
    let (word, node) = map.one_of(&words)?;
    if word == "constant" {
        let (unit, per_second) = throttle::level(reader, node)?;
        return Some(RatePlan::constant(unit, per_second));
    }
    let accepted = ["initial", "initial_bytes_per_second", "rate"];
    let map = reader.map(node, &Keys::new("linear load_profile", &accepted))?;
    let initial = map.one_of(&["initial", "initial_bytes_per_second"]);
    let change = map.required("rate");
    let (unit, initial) = throttle::level(reader, initial?.1)?;
    let (change_unit, change) = throttle::level(reader, change?)?;
    if unit != change_unit {
        let message = "a ramp counts either bytes or blocks";
        let error = reader.error(code::MIXED_UNITS, map.span(), message);
        reader.report(error);
        return None;
    }
    let shape = RateShape::Ramp(Ramp::growing(initial, RAMP_MAX, change));
    Some(RatePlan { unit, shape })
}

fn finish(
    reader: &Reader,
    map: &MapReader<'_, '_>,
    layout: Option<FileLayout>,
    bytes_max: Option<ByteSize>,
    files: Option<u16>,
    rate: Option<RatePlan>,
) -> Option<GeneratorPlan> {
    let seed = map
        .required("seed")
        .and_then(|node| read_seed(reader, node));
    let maximum = payload::read_maximum(reader, map, ByteSize::mib(1), None);
    let payload = payload::read(reader, map, maximum);
    let (files, rate) = (files?, rate?);
    if let Some(payload) = &payload {
        payload::check_block(reader, map, payload);
    }
    if files > 1 && !rate.is_max() {
        let message = format!("the rate applies to each of the {files} files, as in lading");
        reader.report(reader.note(code::MEANING, map.span(), message));
    }
    Some(GeneratorPlan {
        id: String::new(),
        transport: TransportPlan::Files {
            layout: layout?,
            bytes_max: bytes_max?,
        },
        payload: payload?,
        rate: throttle::times(rate, files),
        concurrency: Concurrency::ONE.with_connections(files),
        seed: seed?,
        stamps: None,
    })
}

fn read_passthru(reader: &Reader, node: &Node) -> Option<GeneratorPlan> {
    let mut keys = keys("passthru_file generator", &["path"]);
    keys.accepted.extend(throttle::KEYS);
    let map = reader.map(node, &keys)?;
    let path = path(reader, &map, "path");
    let transport = path.map(|path| TransportPlan::PassthruFile { path });
    let rate = throttle::read(reader, &map);
    let seed = map
        .required("seed")
        .and_then(|node| read_seed(reader, node));
    let maximum = payload::read_maximum(reader, &map, ByteSize::mib(1), None);
    let payload = payload::read(reader, &map, maximum)?;
    payload::check_block(reader, &map, &payload);
    Some(GeneratorPlan {
        id: String::new(),
        transport: transport?,
        payload,
        rate: rate?,
        concurrency: Concurrency::ONE,
        seed: seed?,
        stamps: None,
    })
}

fn read_tree(reader: &Reader, node: &Node) -> Option<GeneratorPlan> {
    let accepted = [
        "seed",
        "root",
        "max_depth",
        "max_sub_folders",
        "max_files",
        "max_nodes",
        "name_len",
        "open_per_second",
        "rename_per_second",
    ];
    let map = reader.map(node, &Keys::new("file_tree generator", &accepted))?;
    let number = |key, default: u32, maximum| {
        let number = map.read_or(key, default, |node| reader.whole(node, 1, maximum));
        number.and_then(NonZeroU32::new)
    };
    let root = path(reader, &map, "root");
    let depth_max = number("max_depth", 10, 1000);
    let folders_max = number("max_sub_folders", 5, 1_000_000);
    let files_max = number("max_files", 5, 1_000_000);
    let nodes_max = number("max_nodes", 100, 10_000_000);
    let name_length = number("name_len", 8, 200);
    let opens = number("open_per_second", 8, 1_000_000);
    let renames = number("rename_per_second", 1, 1_000_000);
    let seed = map
        .required("seed")
        .and_then(|node| read_seed(reader, node));
    let (opens, renames) = (opens?, renames?);
    // Both are at most a million.
    let operations = opens.saturating_add(renames.get());
    let tree = FileTreePlan {
        root: root?,
        depth_max: depth_max?,
        folders_max: folders_max?,
        files_max: files_max?,
        nodes_max: nodes_max?,
        name_length: name_length?,
        renames: RenameShare::try_new(renames.get(), operations).ok()?,
    };
    Some(GeneratorPlan {
        id: String::new(),
        transport: TransportPlan::FileTree(tree),
        payload: PayloadPlan::PACE,
        rate: RatePlan::constant(RateUnit::Blocks, f64::from(operations.get())),
        concurrency: Concurrency::ONE,
        seed: seed?,
        stamps: None,
    })
}

/// `tcp_rr`: an address with a port, or with the port beside it.
pub(super) fn read_round_trip(reader: &Reader, node: &Node) -> Option<GeneratorPlan> {
    let accepted = [
        "addr",
        "data_port",
        "control_port",
        "threads",
        "flows",
        "request_size",
        "response_size",
        "no_delay",
    ];
    let map = reader.map(node, &Keys::new("tcp_rr generator", &accepted))?;
    for key in ["control_port", "no_delay"] {
        if let Some(node) = map.take(key) {
            let message = format!("`{key}` has no effect");
            reader.report(reader.note(code::NO_EFFECT, node.span, message));
        }
    }
    let length = |key| match map.take(key) {
        Some(node) => {
            let bytes: u32 = reader.whole(node, 1, MessageLength::MAX_BYTES)?;
            MessageLength::try_from(bytes).ok()
        }
        None => Some(MessageLength::MIN),
    };
    let (request_bytes, response_bytes) = (length("request_size"), length("response_size"));
    let count = |key| map.read_or(key, 1, |node| reader.whole(node, 1, u16::MAX));
    let (connections, threads) = (count("flows"), count("threads"));
    let address = read_round_trip_address(reader, &map)?;
    let connections: u16 = connections?;
    Some(GeneratorPlan {
        id: String::new(),
        transport: TransportPlan::TcpRr {
            address,
            request_bytes: request_bytes?,
            response_bytes: response_bytes?,
        },
        payload: PayloadPlan::PACE,
        rate: RatePlan::MAX,
        concurrency: Concurrency::try_new(connections, threads?.min(connections)).ok()?,
        seed: stillwell_units::Seed::from_number(0),
        stamps: None,
    })
}

fn read_round_trip_address(reader: &Reader, map: &MapReader<'_, '_>) -> Option<String> {
    let port = map.read("data_port", |node| reader.whole(node, 1, u16::MAX))?;
    let node = map.required("addr")?;
    let text = reader.text(node)?;
    let is_bare = text.parse::<std::net::IpAddr>().is_ok() || !text.contains(':');
    if !is_bare && port.is_some() {
        let message = "the port appears twice";
        let error = reader.error(code::BAD_VALUE, node.span, message);
        reader.report(error.label("here and under `data_port`"));
        return None;
    }
    let address = match (is_bare, text.contains(':')) {
        (false, _) => text.to_owned(),
        (true, is_v6) => {
            let port = port.unwrap_or(12_867);
            if is_v6 {
                format!("[{text}]:{port}")
            } else {
                format!("{text}:{port}")
            }
        }
    };
    let node = Node {
        span: node.span,
        value: Value::Scalar {
            text: address,
            quoted: false,
        },
    };
    let address = super::read_address(reader, &node)?;
    Some(super::reachable(&address))
}
