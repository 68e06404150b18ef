//! `workload.generators`.

use stillwell_plan::generator::{Concurrency, EventsDefault, FileLayout};
use stillwell_plan::payload::BlockShape;
use stillwell_plan::placement::IsolationPlan;
use stillwell_plan::scenario::UsersPlan;
use stillwell_plan::{
    GeneratorPlan, PayloadFormat, PayloadPlan, RatePlan, RateUnit, StampPlan, TransportPlan,
};
use stillwell_text::{MapReader, Node, Reader, Value, code};
use stillwell_units::{ByteSize, Seed};

use super::{ReadContext, payload, rate, stamp};
use crate::element::{DURATION, Element, Field, SIZE, Shape, optional, required};
use crate::rules::{Ids, Placed};

mod broker;
mod cache;
mod files;
mod fit;
mod http;
mod kubernetes;
mod requests;
mod scenario;
mod stream;
mod system;
mod tls;
mod web;

pub use system::{ENGINE_SOCKET, TREE_DEPTH_MAX, is_image_part};

pub use fit::check_cache_size;
pub(crate) use fit::rate_problem;
use http::HTTP;
use stream::{
    ADDRESS, TCP, UDP, UNIX, UNIX_STREAM, inner, is_short, read_tcp, read_udp, read_unix_datagram,
    read_unix_stream,
};

const ACKNOWLEDGEMENTS: Element = Element::new(
    "acknowledgements",
    "Polls for the acknowledgement of sent events.",
    &[
        optional("every", DURATION, "Time between polls; 10s by default."),
        optional(
            "timeout",
            DURATION,
            "Time after which an event without acknowledgement counts as lost; 300s by default.",
        ),
    ],
);

const SPLUNK_HEC: Element = Element::new(
    "splunk_hec generator",
    "Splunk's HTTP event collector.",
    &[
        required(
            "url",
            Shape::Like("http://127.0.0.1:8088"),
            "Target URL; the path follows from the payload.",
        ),
        required("token", Shape::Text, "Credentials."),
        optional(
            "acknowledgements",
            Shape::Element(&ACKNOWLEDGEMENTS),
            "Polls for the acknowledgement of sent events.",
        ),
    ],
);

const TRACE_AGENT: Element = Element::new(
    "trace_agent generator",
    "Traces for Datadog's agent.",
    &[
        required("url", Shape::Like("http://127.0.0.1:8126"), "Target URL."),
        optional(
            "retries",
            Shape::Whole,
            "Maximum number of retries of a request that the agent refused as busy; 3 by default.",
        ),
    ],
);

const GRPC: Element = Element::new(
    "grpc generator",
    "Unary gRPC calls, one in flight per connection.",
    &[required("url", CALL, "Target URL with service and method.")],
);

const FILE_GEN: Element = Element::new(
    "file_gen generator",
    "Files that the target reads while they grow, one for each connection.",
    &[
        optional(
            "path",
            Shape::Text,
            "Path of the files, `%NNN%` for their number; each new file has the next number.",
        ),
        optional(
            "delete",
            Shape::Boolean,
            "`true`: a numbered file is removed when the next begins.",
        ),
        optional(
            "folder",
            Shape::Text,
            "Folder of rotated logs, one for each connection; older parts are renamed.",
        ),
        optional(
            "log",
            Shape::Text,
            "The one log that a connection writes; `{state}/in.log` lies in the folder of the run.",
        ),
        optional(
            "full",
            Shape::Words(&["rename", "copy_truncate", "truncate"]),
            "How a full log is rotated.",
        ),
        optional(
            "settle",
            DURATION,
            "Pause in writing before a full log is rotated.",
        ),
        optional(
            "mount",
            Shape::Text,
            "Mount point of a file system with logs that keeps no data, and counts what was removed before it \
             was read. Needs root, `/dev/fuse` and a `rate`.",
        ),
        optional(
            "depth",
            Shape::Whole,
            "Maximum depth of the folders of logs.",
        ),
        optional("rotations", Shape::Whole, "Number of older parts to keep."),
        required("file_max", SIZE, "Size after which a new file begins."),
    ],
)
.one_of(&["path", "folder", "log", "mount"]);

const FILE_TREE: Element = Element::new(
    "file_tree generator",
    "Creates, opens and renames files and folders.",
    &[
        required("root", Shape::Text, "The folder that contains all of them."),
        optional("depth", Shape::Whole, "Maximum depth of folders."),
        optional("folders", Shape::Whole, "Folders in each folder."),
        optional("files", Shape::Whole, "Files in each folder."),
        optional("nodes", Shape::Whole, "Files and folders in all."),
        optional("name_length", Shape::Whole, "Characters of a name."),
        optional(
            "renames",
            Shape::Like("10%"),
            "Share of operations that rename a file.",
        ),
    ],
);

const ROUND_TRIP: Element = Element::new(
    "tcp_rr generator",
    "Requests and responses of fixed length, one in flight per connection.",
    &[
        required("address", ADDRESS, "The target's `host:port`."),
        optional("request", SIZE, "Length of a request."),
        optional("response", SIZE, "Length of a response."),
    ],
);

const CALL: Shape = Shape::Like("http://127.0.0.1:4317/package.Service/Method");

const BLOCK: Element = Element::new(
    "block",
    "Grouping of events into blocks.",
    &[
        optional("events", Shape::Whole, "Events in each block."),
        optional("maximum", SIZE, "Maximum size of a block."),
    ],
);

/// A kind of generator: its key, and the reader of what is there.
struct KindEntry {
    field: Field,
    read: fn(&ReadContext<'_>, &Node) -> Option<TransportPlan>,
}

/// All kinds. A further one is one entry here.
const KINDS: &[KindEntry] = &[
    kind(
        "tcp",
        Shape::Any(&[ADDRESS, Shape::Element(&TCP)]),
        "A TCP stream.",
        read_tcp,
    ),
    kind(
        "udp",
        Shape::Any(&[ADDRESS, Shape::Element(&UDP)]),
        "UDP datagrams.",
        read_udp,
    ),
    kind(
        "unix_stream",
        Shape::Any(&[Shape::Text, Shape::Element(&UNIX_STREAM)]),
        "A Unix stream.",
        read_unix_stream,
    ),
    kind(
        "unix_datagram",
        Shape::Any(&[Shape::Text, Shape::Element(&UNIX)]),
        "Unix datagrams.",
        read_unix_datagram,
    ),
    kind(
        "http",
        Shape::Any(&[Shape::Text, Shape::Element(&HTTP)]),
        "HTTP requests.",
        http::read,
    ),
    kind(
        "requests",
        Shape::Any(&[Shape::Text, Shape::Element(&web::REQUESTS)]),
        "HTTP requests of any kind; has no payload.",
        web::read,
    ),
    kind(
        "scenario",
        Shape::Any(&[Shape::Text, Shape::Element(&scenario::SCENARIO)]),
        "Users that follow steps over HTTP; has no payload.",
        |context, node| scenario::read(context, node).map(|(transport, _)| transport),
    ),
    kind(
        "splunk_hec",
        Shape::Element(&SPLUNK_HEC),
        "Splunk's HTTP event collector.",
        requests::read_splunk_hec,
    ),
    kind(
        "grpc",
        Shape::Any(&[CALL, Shape::Element(&GRPC)]),
        "Unary gRPC calls.",
        requests::read_grpc,
    ),
    kind(
        "trace_agent",
        Shape::Any(&[Shape::Text, Shape::Element(&TRACE_AGENT)]),
        "Traces for Datadog's agent.",
        requests::read_trace_agent,
    ),
    kind(
        "file_gen",
        Shape::Element(&FILE_GEN),
        "Files that grow and are followed by new ones.",
        files::read_file_gen,
    ),
    kind(
        "passthru_file",
        Shape::Text,
        "An existing pipe or device, or the end of an existing file.",
        files::read_passthru_file,
    ),
    kind(
        "file_tree",
        Shape::Element(&FILE_TREE),
        "Operations on files and folders; has no payload.",
        files::read_tree,
    ),
    kind(
        "tcp_rr",
        Shape::Any(&[ADDRESS, Shape::Element(&ROUND_TRIP)]),
        "Requests and responses of fixed length; has no payload.",
        files::read_round_trip,
    ),
    kind(
        "process_tree",
        Shape::Element(&system::PROCESS_TREE),
        "Trees of processes; has no payload.",
        |context, node| system::read_tree(context, node).map(TransportPlan::ProcessTree),
    ),
    kind(
        "proc_fs",
        Shape::Element(&system::PROC_FS),
        "A folder with the layout of `/proc`; has no payload.",
        |context, node| system::read_proc_fs(context, node).map(TransportPlan::ProcFs),
    ),
    kind(
        "container",
        Shape::Element(&system::CONTAINER),
        "Containers that start and end; has no payload.",
        |context, node| {
            let plan = system::read_container(context, node)?;
            Some(TransportPlan::Container(Box::new(plan)))
        },
    ),
    kind(
        "kubernetes",
        Shape::Element(&kubernetes::KUBERNETES),
        "Objects of a Kubernetes cluster that are created and deleted; has no payload.",
        kubernetes::read,
    ),
    kind(
        "kafka",
        Shape::Element(&broker::KAFKA),
        "Records for a topic of Kafka.",
        broker::read_kafka,
    ),
    kind(
        "nats",
        Shape::Element(&broker::NATS),
        "Messages for NATS.",
        broker::read_nats,
    ),
    kind(
        "amqp",
        Shape::Element(&broker::AMQP),
        "Messages for an exchange of AMQP 0-9-1.",
        broker::read_amqp,
    ),
];

/// The keys that any kind can have.
const COMMON: &[Field] = &[
    optional("payload", payload::SHAPE, "The format of events."),
    optional(
        "rate",
        rate::SHAPE,
        "Rate of all connections together; `run` finds one by a probe by default, `observe` sends at full speed.",
    ),
    optional(
        "connections",
        Shape::Whole,
        "Total number of connections; not for `container`, `file_tree`, `kubernetes`, `proc_fs` and \
         `process_tree`.",
    ),
    optional(
        "workers",
        Shape::Whole,
        "Threads over which connections are spread.",
    ),
    optional("id", Shape::Text, "Name; that of its transport by default."),
    optional(
        "block",
        Shape::Any(&[SIZE, Shape::Element(&BLOCK)]),
        "Content of one write.",
    ),
    optional(
        "cache",
        Shape::Any(&[SIZE, Shape::Element(&cache::CACHE)]),
        "Size of the payload that is built before the run; without `repeat`, more is built during the run.",
    ),
    optional(
        "stamps",
        stamp::SHAPE,
        "Events that carry a stamp, by which sinks identify them; none by default.",
    ),
];

const KIND_NAMES: [&str; KINDS.len()] = {
    let mut names = [""; KINDS.len()];
    let mut index = 0;
    while index < KINDS.len() {
        names[index] = KINDS[index].field.name;
        index += 1;
    }
    names
};

const FIELDS: [Field; KINDS.len() + COMMON.len()] = {
    let mut fields = [COMMON[0]; KINDS.len() + COMMON.len()];
    let mut index = 0;
    while index < fields.len() {
        fields[index] = if index < KINDS.len() {
            KINDS[index].field
        } else {
            COMMON[index - KINDS.len()]
        };
        index += 1;
    }
    fields
};

const fn kind(
    name: &'static str,
    shape: Shape,
    about: &'static str,
    read: fn(&ReadContext<'_>, &Node) -> Option<TransportPlan>,
) -> KindEntry {
    KindEntry {
        field: optional(name, shape, about),
        read,
    }
}

pub(super) const GENERATOR: Element =
    Element::new("generator", "One source of load.", &FIELDS).one_of(&KIND_NAMES);

/// A generator, and the source of its rate.
#[derive(Debug)]
pub(crate) struct GeneratorSpec {
    pub(crate) plan: Placed<GeneratorPlan>,
    pub(crate) has_rate: bool,
    /// `true`: users arrive at the rate of its scenario.
    pub(crate) has_arrivals: bool,
    /// `true`: it sends a payload in blocks that follow from its rate.
    pub(crate) has_default_blocks: bool,
}

/// Ids of generators for which a rate of the command line means more than its number.
#[derive(Clone, Debug, Default)]
pub(crate) struct RateContext {
    /// Generators whose scenarios have arrivals.
    pub(crate) arrivals: Vec<String>,
    /// Generators that send a payload in blocks that follow from the rate.
    default_blocks: Vec<String>,
}

impl RateContext {
    /// Sets the blocks of a generator without `block` to the default blocks of `rate`.
    pub(crate) fn set_default_blocks(&self, generator: &mut GeneratorPlan, rate: &RatePlan) {
        if self.default_blocks.contains(&generator.id) {
            generator.payload.blocks = default_blocks(&generator.transport, rate);
        }
    }
}

pub(super) fn rate_context(generators: &[GeneratorSpec]) -> RateContext {
    let ids = |has: fn(&GeneratorSpec) -> bool| -> Vec<String> {
        let generators = generators.iter().filter(|spec| has(spec));
        generators.map(|spec| spec.plan.value.id.clone()).collect()
    };
    RateContext {
        arrivals: ids(|spec| spec.has_arrivals),
        default_blocks: ids(|spec| spec.has_default_blocks),
    }
}

/// Returns true if programs outside the run are reachable.
pub(super) fn check_network(
    reader: &Reader,
    generators: &[GeneratorSpec],
    isolation: &mut IsolationPlan,
) {
    kubernetes::stay_with_cluster(reader, generators, isolation);
    broker::check_brokers(reader, generators, isolation);
}

pub(super) fn read_generators(
    context: &ReadContext<'_>,
    node: &Node,
    seed: &Seed,
) -> Vec<GeneratorSpec> {
    let reader = context.reader;
    let items = reader.list(node).unwrap_or_default();
    let mut ids = Ids::new(reader, "generator");
    let items: Vec<_> = items
        .iter()
        .map(|item| (read_generator(context, item), item.entry("id"), item.span))
        .collect();
    ids.reserve(items.iter().filter_map(|(_, id, _)| {
        let id = id.as_ref()?;
        Some((reader.text(id)?, id.span))
    }));
    let mut generators = Vec::new();
    for (index, (spec, id, span)) in (0..).zip(items) {
        let Some(mut spec) = spec else {
            continue;
        };
        let plan = &mut spec.plan.value;
        if id.is_none() {
            plan.id = ids.free(plan.transport.name());
        }
        plan.seed = seed.derive("payload", index);
        spec.plan.span = span;
        generators.push(spec);
    }
    generators
}

fn read_generator(context: &ReadContext<'_>, node: &Node) -> Option<GeneratorSpec> {
    let reader = context.reader;
    let map = reader.map(node, &GENERATOR.keys())?;
    let kind = map.one_of(&KIND_NAMES);
    let read = kind.and_then(|(name, node)| read_transport(context, name, node));
    let (transport, users) = read.map_or((None, None), |(of, users)| (Some(of), users));
    let id = map.take("id").and_then(|node| context.filled(node));
    // Requests with a mistake need no payload either.
    let is_web = kind.is_some_and(|(name, _)| matches!(name, "requests" | "scenario"));
    let sends_payload = !is_web && transport.as_ref().is_none_or(TransportPlan::sends_payload);
    if !sends_payload {
        check_paced(reader, &map);
    }
    let format = sends_payload.then(|| {
        let node = map.required("payload")?;
        payload::read_payload(context, node)
    });
    let rate_node = map.take("rate");
    let rate = read_rate(context, rate_node, users, is_web);
    let (connections, concurrency) = read_threads(reader, &map, users);
    check_writers(reader, node, transport.as_ref(), connections);
    check_single(reader, &map, transport.as_ref());
    if let (false, Some(node), Some(rate)) = (sends_payload, rate_node, &rate) {
        check_paced_rate(reader, node, rate);
    }
    let block = map.take("block");
    let cache_node = map.take("cache");
    let cache = cache::read(context, cache_node);
    let transport = transport?;
    let known = format.as_ref().and_then(Option::as_ref);
    let stamps = map.read("stamps", |node| {
        read_stamps(context, node, known, &transport)
    });
    // One mistake must not hide another.
    let known_rate = rate.as_ref().unwrap_or(&RatePlan::MAX);
    let blocks = read_blocks(context, block, &transport, known_rate);
    let (blocks, (cache, repeats)) = (blocks?, cache?);
    if let Some(node) = cache_node {
        fit::check_cache(reader, node, cache, blocks.maximum());
    }
    if let Some(format) = known {
        fit::check_events(reader, block, format);
        fit::check_ends(reader, node, format, &transport, &blocks);
        fit::check_contexts(reader, rate_node, format, known_rate);
    }
    files::check_mounted(reader, (node, rate_node), &transport, rate.as_ref());
    let plan = GeneratorPlan {
        id: id.unwrap_or_default().to_owned(),
        transport,
        payload: match format {
            Some(format) => PayloadPlan {
                format: format?,
                blocks,
                cache,
                repeats,
            },
            None => PayloadPlan::PACE,
        },
        rate: rate?,
        concurrency: concurrency?,
        seed: Seed::from_number(0),
        stamps: stamps?,
    };
    Some(GeneratorSpec {
        plan: Placed {
            value: plan,
            span: node.span,
        },
        has_rate: rate_node.is_some() || users.is_some(),
        has_arrivals: matches!(users, Some(UsersPlan::Arriving { .. })),
        has_default_blocks: sends_payload && block.is_none(),
    })
}

/// Reads the rate of a generator, which its scenario may have.
fn read_rate(
    context: &ReadContext<'_>,
    node: Option<&Node>,
    users: Option<UsersPlan>,
    counts_requests: bool,
) -> Option<RatePlan> {
    let arrivals = users.and_then(|users| scenario::rate_of(context.reader, node, users));
    if arrivals.is_some() {
        return arrivals;
    }
    let rate = match node {
        Some(node) => rate::read_rate(context, node)?,
        None => RatePlan::MAX,
    };
    Some(counted(rate, counts_requests))
}

/// Returns `rate` as `transport` counts it.
pub(crate) fn counted_by(transport: &TransportPlan, rate: RatePlan) -> RatePlan {
    let counts_requests = matches!(
        transport,
        TransportPlan::Requests(_) | TransportPlan::Scenario(_)
    );
    counted(rate, counts_requests)
}

/// Without a schedule, requests are counted, not bytes.
fn counted(rate: RatePlan, counts_requests: bool) -> RatePlan {
    let unit = match counts_requests && rate.is_max() {
        true => RateUnit::Events,
        false => rate.unit,
    };
    RatePlan { unit, ..rate }
}

/// A log under one name takes one connection.
fn check_writers(
    reader: &Reader,
    node: &Node,
    transport: Option<&TransportPlan>,
    connections: Option<u16>,
) {
    if let (Some(TransportPlan::Files { layout, .. }), Some(2..)) = (transport, connections)
        && matches!(layout, FileLayout::Log { .. })
    {
        let message = "a `log` has one writer";
        let error = reader.error(code::OUT_OF_RANGE, node.span, message);
        reader.report(error.help("write `connections: 1`, or `folder` instead of `log`: it has a log for each connection"));
    }
}

/// Generators without connections have one worker: each of several would do all of the work, with
/// the same names.
fn check_single(reader: &Reader, map: &MapReader<'_, '_>, transport: Option<&TransportPlan>) {
    let label = match transport {
        Some(TransportPlan::Container(_)) => "`count` of the generator is the number of containers",
        Some(TransportPlan::Kubernetes(_)) => "`count` of the generator is the number of objects",
        Some(
            TransportPlan::FileTree(_) | TransportPlan::ProcFs(_) | TransportPlan::ProcessTree(_),
        ) => "leave it out: the generator has one worker",
        _ => return,
    };
    if let Some(node) = map.take("connections") {
        let message = "`connections` has no effect here";
        let error = reader.error(code::BAD_VALUE, node.span, message);
        reader.report(error.label(label));
    }
}

fn read_stamps(
    context: &ReadContext<'_>,
    node: &Node,
    format: Option<&PayloadFormat>,
    transport: &TransportPlan,
) -> Option<StampPlan> {
    let stamps = stamp::read_stamps(context, node)?;
    if let Some(format) = format {
        stamp::check_stamps(context, node, stamps.form, (format, transport));
    }
    Some(stamps)
}

/// Reports payload keys of a generator that sends no payload.
fn check_paced(reader: &Reader, map: &MapReader<'_, '_>) {
    for key in ["payload", "block", "cache", "stamps"] {
        if let Some(node) = map.take(key) {
            let message = format!("`{key}` has no effect here: no payload is sent");
            let error = reader.error(code::BAD_VALUE, node.span, message);
            reader.report(error.label("leave it out"));
        }
    }
}

fn check_paced_rate(reader: &Reader, node: &Node, rate: &RatePlan) {
    if let Some(problem) = fit::paced_problem(rate) {
        problem.report(reader, node.span);
    }
}

/// Reads the number of connections, and that with the threads that share them.
fn read_threads(
    reader: &Reader,
    map: &MapReader<'_, '_>,
    users: Option<UsersPlan>,
) -> (Option<u16>, Option<Concurrency>) {
    let read = |node: &Node| reader.whole(node, 1, u16::MAX);
    let connections = match (map.take("connections"), users) {
        (Some(node), _) => read(node),
        (None, Some(users)) => {
            let span = map.key_span("scenario").unwrap_or_else(|| map.span());
            scenario::users_max(reader, span, users)
        }
        (None, None) => Some(1),
    };
    let workers = map.read_or("workers", 1, read);
    if let (Some(connections), Some(workers), Some(node)) =
        (connections, workers, map.take("workers"))
        && workers > connections
    {
        let message = format!("`workers` ({workers}) is more than `connections` ({connections})");
        let error = reader.error(code::OUT_OF_RANGE, node.span, message);
        reader.report(error.label("at most as many as `connections`"));
    }
    let concurrency = connections.zip(workers);
    // One mistake must not hide another.
    let concurrency = concurrency.map(|(all, workers)| {
        let least = Concurrency::ONE.with_connections(all);
        Concurrency::try_new(all, workers).unwrap_or(least)
    });
    (connections, concurrency)
}

/// Reads a transport, and the users that a scenario has.
fn read_transport(
    context: &ReadContext<'_>,
    name: &str,
    node: &Node,
) -> Option<(TransportPlan, Option<UsersPlan>)> {
    if name == "scenario" {
        let (transport, users) = scenario::read(context, node)?;
        return Some((transport, Some(users)));
    }
    let kind = KINDS.iter().find(|kind| kind.field.name == name)?;
    Some(((kind.read)(context, node)?, None))
}

/// Up to this rate each event leaves by itself on a stream, so the schedule
/// is kept event by event; above, one write each would be the load.
const SINGLE_EVENTS_MAX: f64 = 100_000.0;

fn read_blocks(
    context: &ReadContext<'_>,
    node: Option<&Node>,
    transport: &TransportPlan,
    rate: &RatePlan,
) -> Option<BlockShape> {
    let properties = transport.properties();
    let (limit, default) = (properties.block_limit, properties.block_default);
    let Some(node) = node else {
        return Some(default_blocks(transport, rate));
    };
    if matches!(node.value, Value::Scalar { .. }) {
        let maximum = read_maximum(context, node, limit)?;
        return Some(BlockShape::UpTo { maximum });
    }
    let map = context.reader.map(node, &BLOCK.keys())?;
    let maximum = map.read_or("maximum", default, |node| {
        read_maximum(context, node, limit)
    });
    let count = map.read("events", |node| context.reader.whole(node, 1, u32::MAX));
    let maximum = maximum?;
    match count? {
        Some(count) => Some(BlockShape::Events { count, maximum }),
        None => Some(BlockShape::UpTo { maximum }),
    }
}

/// Returns the blocks of a generator without `block` at `rate`.
fn default_blocks(transport: &TransportPlan, rate: &RatePlan) -> BlockShape {
    let properties = transport.properties();
    let maximum = properties.block_default;
    let count = rate::event_rate_max(rate).and_then(|rate| match properties.events_default {
        EventsDefault::Count(count) => Some(count),
        EventsDefault::OneAtLowRates => (rate <= SINGLE_EVENTS_MAX).then_some(1),
    });
    match count {
        Some(count) => BlockShape::Events { count, maximum },
        None => BlockShape::UpTo { maximum },
    }
}

fn read_maximum(
    context: &ReadContext<'_>,
    node: &Node,
    limit: Option<ByteSize>,
) -> Option<ByteSize> {
    let reader = context.reader;
    let size: ByteSize = reader.parsed(node)?;
    if size.bytes() == 0 {
        reader.report(reader.error(code::OUT_OF_RANGE, node.span, "a block of zero bytes"));
        return None;
    }
    if let Some(limit) = limit
        && size > limit
    {
        let message = format!("a block of {size} does not fit in one datagram");
        let error = reader.error(code::BLOCK_TOO_LARGE, node.span, message);
        reader.report(error.label(format!("at most {} B", limit.bytes())));
        return None;
    }
    Some(size)
}
