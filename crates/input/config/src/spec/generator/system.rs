//! Generators that work on the system itself.

use std::num::NonZeroU32;

use stillwell_plan::generator::{
    ContainerPlan, ExecutablePlan, ProcFsPlan, ProcessTreePlan, WordsPlan,
};
use stillwell_text::{MapReader, Node, Value, code};
use stillwell_units::Nanos;

use super::ReadContext;
use crate::element::{DURATION, Element, Shape, TEXT_MAP, TEXTS, optional, required};

/// Maximum depth of a tree that fits in the arguments of a process.
pub const TREE_DEPTH_MAX: u32 = 50;

/// The socket of Docker.
pub const ENGINE_SOCKET: &str = "/var/run/docker.sock";

const WORDS: Shape = Shape::Any(&[TEXTS, Shape::Element(&DRAWN)]);

const DRAWN: Element = Element::new(
    "random words",
    "Random words.",
    &[
        required("length", Shape::Whole, "Characters of each."),
        required("count", Shape::Whole, "Number of words."),
    ],
);

const EXECUTABLE: Element = Element::new(
    "executable",
    "A program with its arguments and environment.",
    &[
        required("program", Shape::Text, "A path, or a name as for a shell."),
        optional("arguments", WORDS, "Its arguments; none by default."),
        optional(
            "environment",
            WORDS,
            "The whole environment, each as `NAME=VALUE`; empty by default.",
        ),
    ],
);

pub(super) const PROCESS_TREE: Element = Element::new(
    "process_tree generator",
    "Trees of processes that start, run programs and end; has no payload.",
    &[
        required(
            "executables",
            Shape::List(&Shape::Element(&EXECUTABLE)),
            "Programs for the processes without children; each runs one at random.",
        ),
        optional(
            "depth",
            Shape::Whole,
            "Processes from root to leaf; 10 by default.",
        ),
        optional(
            "children",
            Shape::Whole,
            "Children of each process; 10 by default.",
        ),
        optional(
            "processes",
            Shape::Whole,
            "Processes of one tree; 100 by default.",
        ),
        optional(
            "sleep",
            DURATION,
            "Lifetime of processes with children; 100ms by default.",
        ),
    ],
);

pub(super) const PROC_FS: Element = Element::new(
    "proc_fs generator",
    "A folder with the layout of `/proc`, written before the target starts.",
    &[
        required("root", Shape::Text, "The folder."),
        required("processes", Shape::Whole, "Processes that it shows."),
        optional(
            "copies",
            TEXTS,
            "Files of this machine that are copied into it.",
        ),
    ],
);

pub(super) const CONTAINER: Element = Element::new(
    "container generator",
    "Containers that start and end; has no payload.",
    &[
        required("repository", Shape::Text, "The image's name."),
        optional("tag", Shape::Text, "The image's tag; `latest` by default."),
        optional(
            "socket",
            Shape::Text,
            "Socket of the container engine; Docker's by default.",
        ),
        optional("arguments", TEXTS, "Arguments of the image's entry point."),
        optional("environment", TEXTS, "Each as `NAME=VALUE`."),
        optional("labels", TEXT_MAP, "Labels of each container."),
        optional(
            "offline",
            Shape::Boolean,
            "`true`: containers have no network.",
        ),
        optional(
            "ports",
            TEXTS,
            "Ports that are exposed, such as `8080/tcp`.",
        ),
        optional(
            "lifetime",
            DURATION,
            "Time after which a container is replaced.",
        ),
        optional("count", Shape::Whole, "Containers at a time; 1 by default."),
    ],
);

/// The transport of `kind` that `node` describes.
fn whole(
    context: &ReadContext<'_>,
    map: &MapReader<'_, '_>,
    key: &'static str,
    (default, maximum): (u32, u32),
) -> Option<u32> {
    map.read_or(key, default, |node| context.reader.whole(node, 1, maximum))
}

fn count(
    context: &ReadContext<'_>,
    map: &MapReader<'_, '_>,
    key: &'static str,
    bounds: (u32, u32),
) -> Option<NonZeroU32> {
    whole(context, map, key, bounds).and_then(NonZeroU32::new)
}

pub(super) fn read_tree(context: &ReadContext<'_>, node: &Node) -> Option<ProcessTreePlan> {
    let map = context.reader.map(node, &PROCESS_TREE.keys())?;
    let executables = map.required("executables").and_then(|node| {
        let items = context.reader.list(node)?;
        if items.is_empty() {
            let error = context
                .reader
                .error(code::BAD_VALUE, node.span, "there is nothing to run");
            context.reader.report(error);
            return None;
        }
        let all = items.iter().map(|item| read_executable(context, item));
        all.collect::<Option<Vec<_>>>()
    });
    let sleep = map.read_or("sleep", Nanos::from_millis(100), |node| {
        context.reader.parsed::<Nanos>(node)
    });
    let depth_max = count(context, &map, "depth", (10, TREE_DEPTH_MAX));
    let children_max = count(context, &map, "children", (10, 10_000));
    let processes_max = count(context, &map, "processes", (100, 10_000));
    Some(ProcessTreePlan {
        depth_max: depth_max?,
        children_max: children_max?,
        processes_max: processes_max?,
        sleep: sleep?,
        executables: executables?,
    })
}

fn read_executable(context: &ReadContext<'_>, node: &Node) -> Option<ExecutablePlan> {
    let map = context.reader.map(node, &EXECUTABLE.keys())?;
    let program = map
        .required("program")
        .and_then(|node| context.filled(node));
    let words = |key| match map.take(key) {
        Some(node) => read_words(context, node),
        None => Some(WordsPlan::Fixed(Vec::new())),
    };
    let (arguments, environment) = (words("arguments"), words("environment"));
    Some(ExecutablePlan {
        program: program?.into(),
        arguments: arguments?,
        environment: environment?,
    })
}

fn read_words(context: &ReadContext<'_>, node: &Node) -> Option<WordsPlan> {
    if !matches!(node.value, Value::Map(_)) {
        return Some(WordsPlan::Fixed(context.reader.texts(node)));
    }
    let map = context.reader.map(node, &DRAWN.keys())?;
    let number = |key, maximum| {
        let node = map.required(key)?;
        context.reader.whole(node, 1, maximum)
    };
    let (length, count) = (number("length", 4096), number("count", 1000));
    Some(WordsPlan::Drawn {
        length: length?,
        count: count?,
    })
}

pub(super) fn read_proc_fs(context: &ReadContext<'_>, node: &Node) -> Option<ProcFsPlan> {
    let map = context.reader.map(node, &PROC_FS.keys())?;
    let root = map.required("root").and_then(|node| context.placed(node));
    let processes = map
        .required("processes")
        .and_then(|node| context.reader.whole(node, 1, 1_000_000));
    let copies = map.take("copies").map(|node| context.reader.texts(node));
    Some(ProcFsPlan {
        root: root?,
        processes: processes?,
        copies: copies
            .unwrap_or_default()
            .into_iter()
            .map(Into::into)
            .collect(),
    })
}

pub(super) fn read_container(context: &ReadContext<'_>, node: &Node) -> Option<ContainerPlan> {
    let reader = context.reader;
    let map = reader.map(node, &CONTAINER.keys())?;
    let part = |node: &Node| {
        let text = context.filled(node)?;
        if is_image_part(text) {
            return Some(text.to_owned());
        }
        let message = format!("`{text}` cannot be part of the name of an image");
        reader.report(reader.error(code::BAD_VALUE, node.span, message));
        None
    };
    let repository = map.required("repository").and_then(part);
    let tag = map.read_or("tag", "latest".to_owned(), part);
    let socket = map.read_or("socket", ENGINE_SOCKET.into(), |node| context.path(node));
    let texts = |key| map.take(key).map(|node| reader.texts(node));
    let labels = map.take("labels").map(|node| reader.text_map(node));
    let is_offline = map.read_or("offline", false, |node| reader.boolean(node));
    let lifetime = map.read("lifetime", |node| reader.parsed::<Nanos>(node))?;
    let count = whole(context, &map, "count", (1, 10_000));
    Some(ContainerPlan {
        socket: socket?,
        repository: repository?,
        tag: tag?,
        arguments: texts("arguments"),
        environment: texts("environment").unwrap_or_default(),
        labels: labels.unwrap_or_default(),
        is_offline: is_offline?,
        ports: texts("ports").unwrap_or_default(),
        lifetime,
        count: count?,
    })
}

/// Returns true if `text` can be part of the name of an image, which becomes part of a path.
#[must_use]
pub fn is_image_part(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte);
    !text.is_empty() && text.bytes().all(is_plain) && !text.split('/').any(|part| part == "..")
}
