//! lading's generators that work on the system itself.

use std::num::NonZeroU32;

use stillwell_config::shared::{ENGINE_SOCKET, TREE_DEPTH_MAX, is_image_part};
use stillwell_plan::generator::{
    Concurrency, ContainerPlan, ExecutablePlan, ProcFsPlan, ProcessTreePlan, WordsPlan,
};
use stillwell_plan::rate::Ramp;
use stillwell_plan::{GeneratorPlan, PayloadPlan, RatePlan, RateShape, RateUnit, TransportPlan};
use stillwell_units::{Nanos, Seed, float_from_u64};

use super::read_seed;
use stillwell_text::{Keys, MapReader, Node, Reader, Value, code};

/// Processes of a tree, which lading does not bound.
const PROCESSES_MAX: NonZeroU32 = NonZeroU32::MIN.saturating_add(99);

/// The generator of `kind` that `node` describes.
pub(super) fn read(reader: &Reader, kind: &str, node: &Node) -> Option<GeneratorPlan> {
    match kind {
        "process_tree" => read_process_tree(reader, node),
        "proc_fs" => read_proc_fs(reader, node),
        _ => read_container(reader, node),
    }
}

fn plan(transport: TransportPlan, rate: RatePlan, seed: Seed) -> GeneratorPlan {
    GeneratorPlan {
        id: String::new(),
        transport,
        payload: PayloadPlan::PACE,
        rate,
        concurrency: Concurrency::ONE,
        seed,
        stamps: None,
    }
}

fn read_process_tree(reader: &Reader, node: &Node) -> Option<GeneratorPlan> {
    let accepted = [
        "seed",
        "max_tree_per_second",
        "max_depth",
        "max_children",
        "process_sleep_ns",
        "executables",
        "throttle",
    ];
    let map = reader.map(node, &Keys::new("process_tree generator", &accepted))?;
    let number = |key, default: u32, maximum| {
        map.read_or(key, default, |node| reader.whole(node, 1, maximum))
    };
    let depth_max = number("max_depth", 10, TREE_DEPTH_MAX);
    let children_max = number("max_children", 10, 10_000);
    let sleep = map.read_or("process_sleep_ns", Nanos::from_millis(100), |node| {
        reader.whole(node, 0, 3_600_000_000_000_u64).map(Nanos::new)
    });
    let executables = map
        .required("executables")
        .and_then(|node| read_executables(reader, node));
    let rate = read_tree_rate(reader, &map);
    let seed = map
        .required("seed")
        .and_then(|node| read_seed(reader, node));
    let message = format!(
        "a tree has at most {PROCESSES_MAX} processes, and the next tree starts when it has ended"
    );
    let span = map.key_span("max_children").unwrap_or_else(|| map.span());
    reader.report(reader.note(code::MEANING, span, message));
    let tree = ProcessTreePlan {
        depth_max: NonZeroU32::new(depth_max?)?,
        children_max: NonZeroU32::new(children_max?)?,
        processes_max: PROCESSES_MAX,
        sleep: sleep?,
        executables: executables?,
    };
    Some(plan(TransportPlan::ProcessTree(tree), rate?, seed?))
}

/// Trees each second: lading's throttle in its raw form, or the number of old.
fn read_tree_rate(reader: &Reader, map: &MapReader<'_, '_>) -> Option<RatePlan> {
    let old = map.take("max_tree_per_second");
    let throttle = map.take("throttle");
    if let (Some(_), Some(throttle)) = (old, throttle) {
        let message = "`max_tree_per_second` and `throttle` both state a rate";
        let error = reader.error(code::OPERATING_POINT, throttle.span, message);
        reader.report(error.label("remove one of them"));
        return None;
    }
    let capacity = |node| reader.whole(node, 1, u64::from(u32::MAX));
    let constant = |trees| RatePlan::constant(RateUnit::Blocks, float_from_u64(trees));
    let Some(node) = throttle else {
        return match old {
            Some(node) => capacity(node).map(constant),
            None => Some(RatePlan::MAX),
        };
    };
    const WORDS: [&str; 3] = ["all_out", "stable", "linear"];
    if let Value::Scalar { text, .. } = &node.value {
        if text == "all_out" {
            return Some(RatePlan::MAX);
        }
        reader.unknown_word(node.span, "throttle", text, WORDS.into_iter());
        return None;
    }
    let (kind, node) = reader
        .map(node, &Keys::new("throttle", &WORDS))?
        .one_of(&WORDS)?;
    match kind {
        "stable" => {
            let keys = Keys::new("stable throttle", &["maximum_capacity", "timeout_micros"]);
            let map = reader.map(node, &keys)?;
            map.ignore("timeout_micros");
            capacity(map.required("maximum_capacity")?).map(constant)
        }
        "linear" => {
            let accepted = ["initial_capacity", "maximum_capacity", "rate_of_change"];
            let map = reader.map(node, &Keys::new("linear throttle", &accepted))?;
            let [initial, maximum, change] =
                accepted.map(|key| map.required(key).and_then(capacity));
            let [initial, maximum, change] = [initial?, maximum?, change?].map(float_from_u64);
            if maximum < initial {
                let message = "the ramp's `maximum_capacity` lies below its `initial_capacity`";
                reader.report(reader.error(code::OUT_OF_RANGE, node.span, message));
                return None;
            }
            Some(RatePlan {
                unit: RateUnit::Blocks,
                shape: RateShape::Ramp(Ramp::growing(initial, maximum, change)),
            })
        }
        _ => Some(RatePlan::MAX),
    }
}

fn read_executables(reader: &Reader, node: &Node) -> Option<Vec<ExecutablePlan>> {
    let items = reader.list(node)?;
    if items.is_empty() {
        let error = reader.error(code::BAD_VALUE, node.span, "there is no executable");
        reader.report(error.label("name at least one executable"));
        return None;
    }
    items
        .iter()
        .map(|item| {
            let map = reader.map(
                item,
                &Keys::new("executable", &["executable", "args", "envs"]),
            )?;
            let program = map
                .required("executable")
                .and_then(|node| reader.text(node));
            let words = |key, length, count| match map.take(key) {
                Some(node) => read_words(reader, node, length, count),
                None => Some(WordsPlan::Fixed(Vec::new())),
            };
            let (arguments, environment) = (words("args", 10, 16), words("envs", 16, 10));
            Some(ExecutablePlan {
                program: program?.into(),
                arguments: arguments?,
                environment: environment?,
            })
        })
        .collect()
}

fn read_words(reader: &Reader, node: &Node, length: u32, count: u32) -> Option<WordsPlan> {
    let map = reader.map(
        node,
        &Keys::new("words", &["mode", "values", "length", "count"]),
    )?;
    let mode = map.required("mode")?;
    let mode = reader.word(mode, "mode", &[("static", true), ("generate", false)])?;
    if mode {
        return Some(WordsPlan::Fixed(reader.texts(map.required("values")?)));
    }
    let number = |key, default: u32, maximum| {
        map.read_or(key, default, |node| reader.whole(node, 1, maximum))
    };
    let (length, count) = (number("length", length, 4096), number("count", count, 1000));
    Some(WordsPlan::Drawn {
        length: length?,
        count: count?,
    })
}

fn read_proc_fs(reader: &Reader, node: &Node) -> Option<GeneratorPlan> {
    let accepted = ["seed", "root", "total_processes", "copy_from_host"];
    let map = reader.map(node, &Keys::new("proc_fs generator", &accepted))?;
    let root = map.required("root").and_then(|node| reader.text(node));
    let processes = map
        .required("total_processes")
        .and_then(|node| reader.whole(node, 1, 1_000_000_u32));
    let copies = match map.take("copy_from_host") {
        Some(node) => reader.texts(node),
        None => ["/proc/uptime", "/proc/stat"].map(str::to_owned).into(),
    };
    let seed = map
        .required("seed")
        .and_then(|node| read_seed(reader, node));
    let folder = ProcFsPlan {
        root: root?.into(),
        processes: processes?,
        copies: copies.into_iter().map(Into::into).collect(),
    };
    Some(plan(TransportPlan::ProcFs(folder), RatePlan::MAX, seed?))
}

fn read_container(reader: &Reader, node: &Node) -> Option<GeneratorPlan> {
    let accepted = [
        "repository",
        "tag",
        "args",
        "env",
        "labels",
        "network_disabled",
        "exposed_ports",
        "max_lifetime_seconds",
        "number_of_containers",
    ];
    let map = reader.map(node, &Keys::new("container generator", &accepted))?;
    let text = |key| {
        let node = map.required(key)?;
        let text = reader.text(node)?;
        if is_image_part(text) {
            return Some(text.to_owned());
        }
        let message = format!("`{text}` cannot be the {key} of an image");
        reader.report(reader.error(code::BAD_VALUE, node.span, message));
        None
    };
    let (repository, tag) = (text("repository"), text("tag"));
    let texts = |key| map.take(key).map(|node| reader.texts(node));
    let labels = map.take("labels").map(|node| reader.text_map(node));
    let is_offline = map.read_or("network_disabled", false, |node| reader.boolean(node));
    let lifetime = map.read("max_lifetime_seconds", |node| {
        reader.whole(node, 1, u64::from(u32::MAX))
    })?;
    let count = map.read_or("number_of_containers", 1, |node| {
        reader.whole(node, 1, 10_000_u32)
    });
    let containers = ContainerPlan {
        socket: ENGINE_SOCKET.into(),
        repository: repository?,
        tag: tag?,
        arguments: texts("args"),
        environment: texts("env").unwrap_or_default(),
        labels: labels.unwrap_or_default(),
        is_offline: is_offline?,
        ports: texts("exposed_ports").unwrap_or_default(),
        lifetime: lifetime.map(Nanos::from_secs),
        count: count?,
    };
    let transport = TransportPlan::Container(Box::new(containers));
    Some(plan(transport, RatePlan::MAX, Seed::from_number(0)))
}
