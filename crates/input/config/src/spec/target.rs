//! `subject`.

use std::path::Path;

use stillwell_plan::load::LoadProtocol;
use stillwell_plan::placement::{CpuChoice, IsolationPlan, Wanted};
use stillwell_plan::target::{
    ChildPlan, EnvironmentPlan, LOG_LIMIT_DEFAULT, MountPlan, ReadyProbe, STOP_DEFAULT, StopPlan,
};
use stillwell_plan::targets::ComparedTargetPlan;
use stillwell_plan::{TargetKind, TargetPlan, TransportPlan, VariantPlan};
use stillwell_text::{MapReader, Node, Reader, Value, check_any_url, code};
use stillwell_units::{ByteSize, Nanos, Target};

use super::generator::GeneratorSpec;
use super::{ReadContext, placement, timeline};
use crate::element::{DURATION, Element, Field, Shape, TEXTS, optional, required};
use crate::files::EntryKind;
use crate::scenario::base::{QUERY_IN_STEPS, query_problem};

/// A command, split or not.
pub(super) const COMMAND: Shape = Shape::Any(&[TEXTS, Shape::Text]);

pub(super) const READY: Element = Element::new(
    "readiness probe",
    "Test that the target is ready for load.",
    &[
        optional(
            "tcp",
            Shape::Like("127.0.0.1:9100"),
            "It accepts a connection.",
        ),
        optional(
            "http",
            Shape::Like("http://127.0.0.1:8080/"),
            "It answers a GET with 2xx. The certificate of an `https://` URL is not checked.",
        ),
        optional(
            "log_line",
            Shape::Text,
            "It has written a line with this text.",
        ),
        optional(
            "file",
            Shape::Text,
            "A file exists, or a program listens on a Unix socket.",
        ),
        optional("delay", DURATION, "It has run for this time."),
    ],
)
.one_of(&["tcp", "http", "log_line", "file", "delay"]);

pub(super) const STOP: Element = Element::new(
    "stop",
    "How the target is stopped.",
    &[
        optional(
            "signal",
            timeline::SIGNAL,
            "The first signal; TERM by default.",
        ),
        optional(
            "grace",
            DURATION,
            "Time to end before SIGKILL is sent; 10s by default.",
        ),
    ],
);

pub(super) const MOUNT: Element = Element::new(
    "mount",
    "A folder shown read-only to the target at a fixed place.",
    &[
        required("source", Shape::Text, "The folder."),
        required("at", Shape::Like("/etc/thing"), "Path inside the target."),
    ],
);

/// The keys of every program, be it the only one or one of several.
pub(super) mod field {
    use super::{COMMAND as WORDS, MOUNT, READY as PROBE, STOP as STOPPING, placement};
    use crate::element::{Field, SIZE, Shape, TEXT_MAP, optional, required};

    pub(in super::super) const COMMAND: Field = required(
        "command",
        WORDS,
        "Program and arguments; `{self}` is the program `stillwell`.",
    );
    pub(in super::super) const ENVIRONMENT: Field =
        optional("environment", TEXT_MAP, "Variables set besides PATH.");
    pub(in super::super) const INHERIT_ENVIRONMENT: Field = optional(
        "inherit_environment",
        Shape::Boolean,
        "`true`: Stillwell's environment is passed on.",
    );
    pub(in super::super) const DIRECTORY: Field = optional(
        "directory",
        Shape::Text,
        "Its working directory; by default `{state}`, a new folder for each run.",
    );
    pub(in super::super) const READY: Field = optional(
        "ready",
        Shape::Any(&[Shape::Words(&["immediately"]), Shape::Element(&PROBE)]),
        "Test that it is ready; by default a connection to the first generator's target.",
    );
    pub(in super::super) const CPUS: Field = optional(
        "cpus",
        placement::CPUS,
        "The CPUs that it may use, as a list such as `[2, 3]`. A number without a list is a number of CPUs.",
    );
    pub(in super::super) const MEMORY: Field =
        optional("memory", SIZE, "The memory that it may use.");
    pub(in super::super) const STOP: Field = optional(
        "stop",
        Shape::Element(&STOPPING),
        "How the target is stopped.",
    );
    pub(in super::super) const LOG_LIMIT: Field = optional(
        "log_limit",
        SIZE,
        "Largest size of each of its logs; the first and the last half are kept. 64 MiB by default.",
    );
    pub(in super::super) const MOUNTS: Field = optional(
        "mounts",
        Shape::List(&Shape::Element(&MOUNT)),
        "Folders shown to it.",
    );
}

pub(crate) const TARGET: Element = Element::new(
    "target",
    "The program being measured, or the URL of a service that runs already.",
    &[
        optional(
            "name",
            Shape::Text,
            "Name in reports; by default the name of the program, or the host of the URL.",
        ),
        Field {
            required: false,
            ..field::COMMAND
        },
        optional(
            "url",
            Shape::Like("http://127.0.0.1:8080/"),
            "URL of a service that runs already, in place of a command. `requests` without a URL go there.",
        ),
        field::ENVIRONMENT,
        field::INHERIT_ENVIRONMENT,
        field::DIRECTORY,
        field::READY,
        field::CPUS,
        field::MEMORY,
        field::STOP,
        field::MOUNTS,
        field::LOG_LIMIT,
    ],
);

/// Smallest `log_limit`.
const LOG_LIMIT_MIN: ByteSize = ByteSize::kib(64);

/// A target, and its probe if given.
#[derive(Debug)]
pub(crate) struct TargetSpec {
    pub(crate) plan: TargetPlan,
    pub(crate) has_probe: bool,
}

pub(crate) fn read_target(context: &ReadContext<'_>, node: &Node) -> Option<TargetSpec> {
    let map = context.reader.map(node, &TARGET.keys())?;
    let name = map.take("name").and_then(|node| context.filled(node));
    if let Some(url) = map.take("url") {
        return target_at(context, &map, url, name);
    }
    target_of(context, &map, name)
}

/// Returns the target at the URL of `node`: a service that runs already.
fn target_at(
    context: &ReadContext<'_>,
    map: &MapReader<'_, '_>,
    node: &Node,
    name: Option<&str>,
) -> Option<TargetSpec> {
    let reader = context.reader;
    for field in TARGET.fields {
        if matches!(field.name, "name" | "url") {
            continue;
        }
        map.ignore(field.name);
        if let Some(span) = map.key_span(field.name) {
            let message = format!("`{}` belongs to a target that is started here", field.name);
            let error = reader.error(code::ONE_OF_KEYS, span, message);
            reader.report(error.label("leave it out: this target is a `url`"));
        }
    }
    let url = context.any_url(node)?;
    let address = check_any_url(&url).ok()?;
    Some(TargetSpec {
        plan: TargetPlan {
            name: name.map_or_else(|| address.clone(), str::to_owned),
            kind: TargetKind::Url(url),
            ready: ReadyProbe::Tcp { address },
            cpus: CpuChoice::Any,
            memory: None,
            stop: STOP_DEFAULT,
        },
        has_probe: true,
    })
}

/// Returns the target that `map` describes, with `name` or the name of its program.
pub(super) fn target_of(
    context: &ReadContext<'_>,
    map: &MapReader<'_, '_>,
    name: Option<&str>,
) -> Option<TargetSpec> {
    let reader = context.reader;
    let command = map
        .required("command")
        .and_then(|node| context.program(node));
    let environment = EnvironmentPlan {
        inherit: map
            .take("inherit_environment")
            .and_then(|node| reader.boolean(node))
            .unwrap_or(false),
        variables: read_environment(context, map.take("environment")),
    };
    let directory = map
        .take("directory")
        .and_then(|node| context.existing(node, EntryKind::Folder));
    let ready = map.take("ready").map(|node| read_ready(context, node));
    let cpus = map
        .take("cpus")
        .and_then(|node| placement::read_cpus(context, node));
    let memory = map
        .take("memory")
        .and_then(|node| read_memory(context, node));
    let stop = map.take("stop").and_then(|node| read_stop(context, node));
    let mounts = read_mounts(context, map);
    let log_limit = map
        .take("log_limit")
        .and_then(|node| read_log_limit(context, node));
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
                log_limit: log_limit.unwrap_or(LOG_LIMIT_DEFAULT),
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
    context: &ReadContext<'_>,
    node: Option<&Node>,
) -> std::collections::BTreeMap<String, String> {
    let Some(node) = node else {
        return std::collections::BTreeMap::new();
    };
    for entry in node.entries().unwrap_or_default() {
        let key = &entry.key;
        if key.text.is_empty() || key.text.contains(['=', '\0']) {
            let message = format!("`{}` is not the name of a variable", key.text);
            context
                .reader
                .report(context.reader.error(code::BAD_VALUE, key.span, message));
        }
    }
    context.reader.text_map(node).into_iter().collect()
}

pub(super) fn read_mounts(context: &ReadContext<'_>, map: &MapReader<'_, '_>) -> Vec<MountPlan> {
    let Some(node) = map.take("mounts") else {
        return Vec::new();
    };
    let items = context.reader.list(node).unwrap_or_default();
    items
        .iter()
        .filter_map(|item| read_mount(context, item))
        .collect()
}

fn read_mount(context: &ReadContext<'_>, node: &Node) -> Option<MountPlan> {
    let map = context.reader.map(node, &MOUNT.keys())?;
    let source = map
        .required("source")
        .and_then(|node| context.existing(node, EntryKind::Folder));
    let at = map.required("at").and_then(|node| {
        let text = context.filled(node)?;
        let path = Path::new(text);
        if path.is_absolute() && path.parent().is_some() {
            return Some(path.to_path_buf());
        }
        let message = format!("`{text}` cannot be the path of a folder");
        let error = context
            .reader
            .error(code::RELATIVE_PATH, node.span, message);
        context
            .reader
            .report(error.label("must be an absolute path below `/`, such as `/etc/thing`"));
        None
    });
    Some(MountPlan::read_only(source?, at?))
}

fn read_memory(context: &ReadContext<'_>, node: &Node) -> Option<ByteSize> {
    let memory: ByteSize = context.reader.parsed(node)?;
    if memory < ByteSize::mib(1) {
        let message = format!("{memory} is too little for a program");
        let error = context.reader.error(code::OUT_OF_RANGE, node.span, message);
        context.reader.report(error.label("at least 1 MiB"));
    }
    Some(memory)
}

fn read_log_limit(context: &ReadContext<'_>, node: &Node) -> Option<ByteSize> {
    let limit: ByteSize = context.reader.parsed(node)?;
    if limit < LOG_LIMIT_MIN {
        let message = format!("a log limit of {limit} is too small");
        let error = context.reader.error(code::OUT_OF_RANGE, node.span, message);
        context.reader.report(error.label("at least 64 KiB"));
    }
    Some(limit)
}

fn read_stop(context: &ReadContext<'_>, node: &Node) -> Option<StopPlan> {
    let map = context.reader.map(node, &STOP.keys())?;
    let signal = map
        .take("signal")
        .and_then(|node| timeline::read_signal(context, node));
    let grace = map
        .take("grace")
        .and_then(|node| context.reader.parsed(node));
    Some(StopPlan {
        signal: signal.unwrap_or(STOP_DEFAULT.signal),
        grace: grace.unwrap_or(STOP_DEFAULT.grace),
    })
}

fn read_ready(context: &ReadContext<'_>, node: &Node) -> Option<ReadyProbe> {
    let reader = context.reader;
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
        "tcp" => context
            .address(node)
            .map(|address| ReadyProbe::Tcp { address }),
        "http" => context.any_url(node).map(|url| ReadyProbe::Http { url }),
        "log_line" => context.filled(node).map(|text| ReadyProbe::LogLine {
            contains: text.to_owned(),
        }),
        "file" => context.path(node).map(|path| ReadyProbe::File {
            path: path.to_string_lossy().into_owned(),
        }),
        _ => reader
            .parsed(node)
            .map(|length| ReadyProbe::Delay { length }),
    }
}

/// Returns the readiness probe of the target, or of each of several, with the node of the target.
pub(super) fn ready_probes<'n, 'p>(
    map: &MapReader<'_, 'n>,
    target: &'p TargetPlan,
    compared: &'p [ComparedTargetPlan],
) -> impl Iterator<Item = (&'n Node, &'p ReadyProbe)> {
    let single = map.take("target").map(|node| (node, &target.ready));
    let entries = map.take("targets");
    let compared = compared.iter().filter_map(move |target| {
        let node = entries?.entry(&target.name)?;
        Some((node, &target.target.ready))
    });
    single.into_iter().chain(compared)
}

/// Reports targets that are ready only after the `deadline`: no run of them would begin.
pub(super) fn check_delays(
    reader: &Reader,
    map: &MapReader<'_, '_>,
    (target, compared): (&TargetPlan, &[ComparedTargetPlan]),
    deadline: Nanos,
) {
    for (node, ready) in ready_probes(map, target, compared) {
        let ReadyProbe::Delay { length } = ready else {
            continue;
        };
        // A deadline of zero is another mistake.
        if *length < deadline || deadline == Nanos::ZERO {
            continue;
        }
        let delay = node.entry("ready").and_then(|ready| ready.entry("delay"));
        let span = delay.unwrap_or(node).span;
        let message = format!(
            "the target is never ready: its delay of {length} is not below the deadline of {deadline}"
        );
        let error = reader.error(code::OUT_OF_RANGE, span, message);
        reader.report(error.help("shorten the delay, or raise `phases: {ready: …}`"));
    }
}

/// Checks what a target that is a URL needs of the run: the host's network, and https for HTTP/3.
pub(super) fn check_url(
    context: &ReadContext<'_>,
    map: &MapReader<'_, '_>,
    (variants, generators): (&[VariantPlan], &[GeneratorSpec]),
    isolation: &mut IsolationPlan,
) {
    if context.target_url.is_none() {
        return;
    }
    let is_http3 = |spec: &GeneratorSpec| match &spec.plan.value.transport {
        TransportPlan::Requests(plan) => {
            plan.is_to_target() && plan.client().connecting.protocol == LoadProtocol::Http3
        }
        _ => false,
    };
    let mut urls = variants.iter().filter_map(|variant| variant.url.as_ref());
    if generators.iter().any(is_http3)
        && let Some(plain) = urls.find(|url| !url.starts_with("https:"))
        && let Some(span) = map.key_span("variants")
    {
        let message = format!("HTTP/3 requires TLS: {plain} needs to begin with https://");
        context
            .reader
            .report(context.reader.error(code::BAD_VALUE, span, message));
    }
    check_base_urls(context.reader, map, variants, generators);
    if (isolation.links.is_some() || isolation.network == Wanted::Required)
        && let Some(span) = map.key_span("target")
    {
        let message = "the target is a URL, which is not reachable from the run's separate network";
        let error = context.reader.error(code::BAD_VALUE, span, message);
        let help = "leave `network` out, and write `isolation: {network: no}`";
        context.reader.report(error.help(help));
    }
    isolation.network = Wanted::No;
}

/// Reports URLs of variants that cannot be the base URL of a scenario.
fn check_base_urls(
    reader: &Reader,
    map: &MapReader<'_, '_>,
    variants: &[VariantPlan],
    generators: &[GeneratorSpec],
) {
    let is_to_target = |spec: &GeneratorSpec| match &spec.plan.value.transport {
        TransportPlan::Scenario(plan) => plan.is_to_target,
        _ => false,
    };
    let Some(node) = map.take("variants") else {
        return;
    };
    if !generators.iter().any(is_to_target) {
        return;
    }
    for variant in variants {
        let base = variant.url.as_deref().map(Target::from_url);
        if let Some(Ok(base)) = base
            && let Some(message) = query_problem(&base)
        {
            let entry = node.entry(&variant.name);
            let url = entry.and_then(|entry| entry.entry("url"));
            let error = reader.error(code::BAD_VALUE, url.unwrap_or(node).span, message);
            reader.report(error.label(QUERY_IN_STEPS));
        }
    }
}
