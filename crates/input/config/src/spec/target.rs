//! `subject`.

use std::path::Path;

use stillwell_plan::{
    ChildPlan, EnvironmentPlan, MountPlan, ReadyProbe, StopPlan, TargetKind, TargetPlan,
    TargetSignal,
};
use stillwell_text::{MapReader, Node, Value, code};
use stillwell_units::{ByteSize, Nanos};

use super::{Door, placement, timeline};
use crate::element::{DURATION, Element, Shape, TEXTS, optional, required};
use crate::files::EntryKind;

/// A command, split or not.
pub(super) const COMMAND: Shape = Shape::Any(&[TEXTS, Shape::Text]);

pub(super) const READY: Element = Element {
    name: "readiness probe",
    about: "Test that the target is ready for load.",
    fields: &[
        optional(
            "tcp",
            Shape::Like("127.0.0.1:9100"),
            "It accepts a connection.",
        ),
        optional(
            "http",
            Shape::Like("http://127.0.0.1:8080/"),
            "It answers a GET with 2xx.",
        ),
        optional(
            "log_line",
            Shape::Text,
            "It has written a line with this text.",
        ),
        optional("file", Shape::Text, "A file or socket exists."),
        optional("delay", DURATION, "It has run for this time."),
    ],
    one_of: &["tcp", "http", "log_line", "file", "delay"],
};

pub(super) const STOP: Element = Element {
    name: "stop",
    about: "Stop of the target.",
    fields: &[
        optional("signal", timeline::SIGNAL, "The first signal."),
        optional("grace", DURATION, "Time to end by itself before SIGKILL."),
    ],
    one_of: &[],
};

pub(super) const MOUNT: Element = Element {
    name: "mount",
    about: "A folder shown read-only to the target at a fixed place.",
    fields: &[
        required("source", Shape::Text, "The folder."),
        required("at", Shape::Like("/etc/thing"), "Path inside the target."),
    ],
    one_of: &[],
};

/// The keys of every program, be it the only one or one of several.
pub(super) mod field {
    use super::{COMMAND as WORDS, MOUNT, READY as PROBE, STOP as STOPPING, placement};
    use crate::element::{Field, SIZE, Shape, TEXT_MAP, optional, required};

    pub(in super::super) const COMMAND: Field = required(
        "command",
        WORDS,
        "Program and arguments; `{self}` is Stillwell.",
    );
    pub(in super::super) const ENVIRONMENT: Field =
        optional("environment", TEXT_MAP, "Variables set besides PATH.");
    pub(in super::super) const INHERIT_ENVIRONMENT: Field = optional(
        "inherit_environment",
        Shape::Boolean,
        "`true`: Stillwell's environment is passed on.",
    );
    pub(in super::super) const DIRECTORY: Field =
        optional("directory", Shape::Text, "Its working directory.");
    pub(in super::super) const READY: Field = optional(
        "ready",
        Shape::Any(&[Shape::Words(&["immediately"]), Shape::Element(&PROBE)]),
        "Test that it is ready; by default a connection to the first generator's target.",
    );
    pub(in super::super) const CPUS: Field =
        optional("cpus", placement::CPUS, "The CPUs that it may use.");
    pub(in super::super) const MEMORY: Field =
        optional("memory", SIZE, "The memory that it may use.");
    pub(in super::super) const STOP: Field =
        optional("stop", Shape::Element(&STOPPING), "Stop of the target.");
    pub(in super::super) const MOUNTS: Field = optional(
        "mounts",
        Shape::List(&Shape::Element(&MOUNT)),
        "Folders shown to it.",
    );
}

pub(crate) const TARGET: Element = Element {
    name: "target",
    about: "The program being measured.",
    fields: &[
        optional(
            "name",
            Shape::Text,
            "Name in reports; the program's name by default.",
        ),
        field::COMMAND,
        field::ENVIRONMENT,
        field::INHERIT_ENVIRONMENT,
        field::DIRECTORY,
        field::READY,
        field::CPUS,
        field::MEMORY,
        field::STOP,
        field::MOUNTS,
    ],
    one_of: &[],
};

/// Default way to stop a target.
pub const STOP_DEFAULT: StopPlan = StopPlan {
    signal: TargetSignal::Term,
    grace: Nanos::from_secs(10),
};

/// A target, and its probe if given.
#[derive(Debug)]
pub(crate) struct TargetSpec {
    pub(crate) plan: TargetPlan,
    pub(crate) has_probe: bool,
}

pub(crate) fn read_target(door: &Door<'_>, node: &Node) -> Option<TargetSpec> {
    let map = door.reader.map(node, &TARGET.keys())?;
    let name = map.take("name").and_then(|node| door.filled(node));
    target_of(door, &map, name)
}

/// Returns the target that `map` describes, with `name` or the name of its program.
pub(super) fn target_of(
    door: &Door<'_>,
    map: &MapReader<'_, '_>,
    name: Option<&str>,
) -> Option<TargetSpec> {
    let reader = door.reader;
    let command = map.required("command").and_then(|node| door.program(node));
    let environment = EnvironmentPlan {
        inherit: map
            .take("inherit_environment")
            .and_then(|node| reader.boolean(node))
            .unwrap_or(false),
        variables: read_environment(door, map.take("environment")),
    };
    let directory = map
        .take("directory")
        .and_then(|node| door.existing(node, EntryKind::Folder));
    let ready = map.take("ready").map(|node| read_ready(door, node));
    let cpus = map
        .take("cpus")
        .and_then(|node| placement::read_cpus(door, node));
    let memory = map.take("memory").and_then(|node| read_memory(door, node));
    let stop = map.take("stop").and_then(|node| read_stop(door, node));
    let mounts = read_mounts(door, map);
    let mut words = command?.into_iter();
    let program = words.next()?;
    let arguments: Vec<String> = words.collect();
    let has_probe = ready.is_some();
    Some(TargetSpec {
        plan: TargetPlan {
            name: name.map_or_else(|| name_of_program(&program, &arguments), str::to_owned),
            kind: TargetKind::Child(ChildPlan {
                program: program.into(),
                arguments,
                environment,
                directory,
                mounts,
            }),
            ready: ready.unwrap_or(Some(ReadyProbe::Immediately))?,
            cpus: cpus.unwrap_or_default(),
            memory,
            stop: stop.unwrap_or(STOP_DEFAULT),
        },
        has_probe,
    })
}

/// The name of a program in reports: `{self} relay` is called relay.
pub(crate) fn name_of_program(program: &str, arguments: &[String]) -> String {
    if program == "{self}" {
        let first = arguments.first().filter(|word| !word.starts_with('-'));
        return first.cloned().unwrap_or_else(|| "stillwell".to_owned());
    }
    let name = Path::new(program).file_name();
    name.map_or_else(
        || program.to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

pub(super) fn read_environment(
    door: &Door<'_>,
    node: Option<&Node>,
) -> std::collections::BTreeMap<String, String> {
    let Some(node) = node else {
        return std::collections::BTreeMap::new();
    };
    for entry in node.entries().unwrap_or_default() {
        let key = &entry.key;
        if key.text.is_empty() || key.text.contains(['=', '\0']) {
            let message = format!("`{}` is not the name of a variable", key.text);
            door.reader
                .report(door.reader.error(code::BAD_VALUE, key.span, message));
        }
    }
    door.reader.text_map(node).into_iter().collect()
}

pub(super) fn read_mounts(door: &Door<'_>, map: &MapReader<'_, '_>) -> Vec<MountPlan> {
    let Some(node) = map.take("mounts") else {
        return Vec::new();
    };
    let items = door.reader.list(node).unwrap_or_default();
    items
        .iter()
        .filter_map(|item| read_mount(door, item))
        .collect()
}

fn read_mount(door: &Door<'_>, node: &Node) -> Option<MountPlan> {
    let map = door.reader.map(node, &MOUNT.keys())?;
    let source = map
        .required("source")
        .and_then(|node| door.existing(node, EntryKind::Folder));
    let at = map.required("at").and_then(|node| {
        let text = door.filled(node)?;
        let path = Path::new(text);
        if path.is_absolute() && path.parent().is_some() {
            return Some(path.to_path_buf());
        }
        let message = format!("`{text}` is no place for a folder");
        let error = door.reader.error(code::RELATIVE_PATH, node.span, message);
        door.reader
            .report(error.label("must be an absolute path below `/`, such as `/etc/thing`"));
        None
    });
    Some(MountPlan::read_only(source?, at?))
}

fn read_memory(door: &Door<'_>, node: &Node) -> Option<ByteSize> {
    let memory: ByteSize = door.reader.parsed(node)?;
    if memory < ByteSize::mib(1) {
        let message = format!("no program runs in {memory}");
        let error = door.reader.error(code::OUT_OF_RANGE, node.span, message);
        door.reader.report(error.label("at least 1 MiB"));
    }
    Some(memory)
}

fn read_stop(door: &Door<'_>, node: &Node) -> Option<StopPlan> {
    let map = door.reader.map(node, &STOP.keys())?;
    let signal = map
        .take("signal")
        .and_then(|node| timeline::read_signal(door, node));
    let grace = map.take("grace").and_then(|node| door.reader.parsed(node));
    Some(StopPlan {
        signal: signal.unwrap_or(STOP_DEFAULT.signal),
        grace: grace.unwrap_or(STOP_DEFAULT.grace),
    })
}

fn read_ready(door: &Door<'_>, node: &Node) -> Option<ReadyProbe> {
    let reader = door.reader;
    if let Value::Scalar { text, .. } = &node.value {
        if text == "immediately" {
            return Some(ReadyProbe::Immediately);
        }
        let words = READY.one_of.iter().copied().chain(["immediately"]);
        reader.unknown_word(node.span, "readiness probe", text, words);
        return None;
    }
    let map = reader.map(node, &READY.keys())?;
    let (kind, node) = map.one_of(READY.one_of)?;
    match kind {
        "tcp" => door
            .address(node)
            .map(|address| ReadyProbe::Tcp { address }),
        "http" => door.url(node).map(|url| ReadyProbe::Http { url }),
        "log_line" => door.filled(node).map(|text| ReadyProbe::LogLine {
            contains: text.to_owned(),
        }),
        "file" => door.path(node).map(|path| ReadyProbe::File {
            path: path.to_string_lossy().into_owned(),
        }),
        _ => reader
            .parsed(node)
            .map(|length| ReadyProbe::Delay { length }),
    }
}
