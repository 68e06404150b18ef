//! Benches: files, flags, or both.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stillwell_plan::stamp::PrefixFraming;
use stillwell_plan::{BenchPlan, TargetPlan};
use stillwell_text::{Diagnostic, Diagnostics, MapReader, Node, Reader, Value, code};
use stillwell_units::Nanos;

use crate::discover::Lookup;
use crate::files::{EntryKind, read_source};
use crate::foreign::ForeignFile;
use crate::spec::{ReadContext, read_target};

pub(crate) mod connector;
mod endpoint;
mod interceptors;
mod keys;
mod plan;
mod tree;

use connector::{BenchKeys, CODECS, Framing, read_bench_keys};
pub use endpoint::BenchEndpoint;
use interceptors::Side;
pub(crate) use keys::BENCH;
use keys::CONFIG;
pub(crate) use tree::load_bench_tree;
pub use tree::{
    Await, BenchAsserts, BenchFolder, BenchStep, BenchTree, FigureAssert, TextAssert, is_wanted,
};

/// Settings from a file, from flags or from both; a missing setting is `None`.
#[derive(Clone, Debug, Default)]
pub struct BenchOptions {
    /// Name in reports.
    pub name: Option<String>,
    /// The program.
    pub target: Option<BenchTarget>,
    /// Address at which it accepts events.
    pub input: Option<BenchEndpoint>,
    /// Address to which it forwards them.
    pub output: Option<BenchEndpoint>,
    /// The recording.
    pub source: Option<PathBuf>,
    /// The framing of its events, by the name of a codec.
    pub codec: Option<String>,
    /// Time between two events; zero for none.
    pub interval: Option<Nanos>,
    /// `5k/s`, `10 MiB/s` or `max`.
    pub rate: Option<String>,
    /// Bytes of a piece; else pieces are lines.
    pub chunk_size: Option<u32>,
    /// Rounds through the recording.
    pub iters: Option<u64>,
    /// `true`: each piece is base64.
    pub base64: Option<bool>,
    /// `true`: events are sent until they are acknowledged.
    pub is_transactional: Option<bool>,
    /// `true`: the report is JSON.
    pub structured: Option<bool>,
    /// Length of load after the warm-up.
    pub stop_after: Option<Nanos>,
    /// Length of load that does not count.
    pub warmup: Option<Nanos>,
    /// The longest that a bench goes on that ends by its rounds.
    pub limit: Option<Nanos>,
    /// Time limit for events that the target still holds.
    pub drain: Option<Nanos>,
    /// Digits of latencies.
    pub significant_figures: Option<u8>,
    /// `true`: events are stamped.
    pub stamps: Option<bool>,
    /// Framing of events with a time prefix instead of stamps:
    /// as they are sent, and as they are received.
    pub sent_prefix: Option<PrefixFraming>,
    /// The second of these.
    pub received_prefix: Option<PrefixFraming>,
    /// Events in a write, datagram or request.
    pub batch: Option<u32>,
    /// Connections to the target.
    pub connections: Option<u16>,
    /// Retries of a refused request.
    pub retries: Option<u32>,
    /// The token for Splunk's collector.
    pub token: Option<String>,
    /// `true`: events may be lost.
    pub lossy: Option<bool>,
    /// `true`: it shares the host's network.
    pub shared_network: Option<bool>,
}

/// The program under a bench.
#[derive(Clone, Debug)]
pub enum BenchTarget {
    /// No program is started: a program that already listens.
    Absent,
    /// A command line.
    Command(Vec<String>),
    /// Described in a file, with or without a probe.
    Described {
        /// The program.
        plan: Box<TargetPlan>,
        /// `true`: there is a probe.
        has_probe: bool,
    },
}

/// A bench that may be run, and what was remarkable about it.
#[derive(Clone, Debug)]
pub struct LoadedBench {
    /// The plan.
    pub plan: BenchPlan,
    /// Warnings and notes.
    pub warnings: Diagnostics,
}

/// Returns true if events of `codec` are bytes without line ends.
#[must_use]
pub fn is_byte_codec(codec: &str) -> bool {
    framing(codec) == Framing::Bytes
}

/// [`Loader::bench`](crate::Loader::bench).
pub(crate) fn load_bench(
    lookup: Lookup<'_>,
    path: Option<&Path>,
    flags: BenchOptions,
) -> Result<LoadedBench, Diagnostics> {
    let mut diagnostics = Diagnostics::new();
    let options = match path {
        None => flags,
        Some(path) => {
            let path = crate::files::absolute(path);
            let mut file_options = read_file(lookup, &path, &mut diagnostics).unwrap_or_default();
            if file_options.name.is_none() {
                file_options.name = Some(name_of(&path));
            }
            // Both keys set the rate, so either flag overrides both.
            if flags.rate.is_some() || flags.interval.is_some() {
                (file_options.rate, file_options.interval) = (None, None);
            }
            flags.or(file_options)
        }
    };
    if diagnostics.has_errors() {
        return Err(diagnostics.sorted());
    }
    let source = options.source.as_ref();
    if let Some(source) = source.filter(|path| lookup.files.kind(path) != Some(EntryKind::File)) {
        let message = format!("there is no file {}", source.display());
        diagnostics.push(Diagnostic::error(code::UNREADABLE, message));
    }
    let codec = options.codec.as_deref();
    let codecs = codecs(lookup);
    if let Some(codec) = codec.filter(|codec| !codecs.iter().any(|(name, ())| name == codec)) {
        let names: Vec<&str> = codecs.iter().map(|(name, ())| *name).collect();
        let message = format!("unknown codec `{codec}`");
        let error = Diagnostic::error(code::UNKNOWN_WORD, message);
        diagnostics.push(error.help(format!("accepted here: {}", names.join(", "))));
    }
    let plan = plan::plan_of(&options, &mut diagnostics);
    match plan {
        Some(plan) if !diagnostics.has_errors() => Ok(LoadedBench {
            plan,
            warnings: diagnostics,
        }),
        _ => Err(diagnostics),
    }
}

/// The name of a bench is that of its folder, unless its file has one of its own.
fn name_of(path: &Path) -> String {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy());
    let folder = path.parent().and_then(Path::file_name);
    match (stem, folder) {
        (Some(stem), Some(folder)) if stem == "bench" => folder.to_string_lossy().into_owned(),
        (Some(stem), _) => stem.into_owned(),
        (None, _) => "bench".to_owned(),
    }
}

fn read_file(
    lookup: Lookup<'_>,
    path: &Path,
    diagnostics: &mut Diagnostics,
) -> Option<BenchOptions> {
    let files = lookup.files;
    let source = match read_source(files, path) {
        Ok(source) => source,
        Err(error) => {
            diagnostics.push(*error);
            return None;
        }
    };
    let reader = Reader::new(Arc::clone(&source));
    let folder = path.parent().unwrap_or(path);
    let root = match lookup.format_of_bench(path, Some(source.text())) {
        Some(format) => {
            let source = &source;
            let file = ForeignFile {
                files,
                path,
                source,
            };
            format.read_bench(&file, diagnostics)
        }
        None => reader.parse(),
    };
    let options = root.and_then(|root| {
        let context = ReadContext {
            reader: &reader,
            files,
            folder,
            target_url: None,
        };
        read_bench(&context, &root, &codecs(lookup))
    });
    diagnostics.append(reader.finish());
    options
}

fn read_bench(
    context: &ReadContext<'_>,
    root: &Node,
    codecs: &[(&str, ())],
) -> Option<BenchOptions> {
    let reader = context.reader;
    let map = reader.map(root, &BENCH.keys())?;
    let nested = map.take("config").and_then(|node| {
        let map = reader.map(node, &CONFIG.keys())?;
        Some(of_connector(context, &read_bench_keys(reader, &map)))
    });
    let connector = of_connector(context, &read_bench_keys(reader, &map));
    let native = read_native(context, &map, codecs);
    Some(native.or(connector).or(nested.unwrap_or_default()))
}

fn of_connector(context: &ReadContext<'_>, keys: &BenchKeys<'_>) -> BenchOptions {
    let source = keys.source;
    BenchOptions {
        source: source.and_then(|node| context.existing(node, EntryKind::File)),
        interval: keys.interval,
        chunk_size: keys.chunk_size,
        iters: keys.iters,
        base64: keys.base64,
        is_transactional: keys.is_transactional,
        structured: keys.structured,
        stop_after: keys.stop_after,
        significant_figures: keys.significant_figures,
        warmup: keys.warmup,
        ..BenchOptions::default()
    }
}

fn read_native(
    context: &ReadContext<'_>,
    map: &MapReader<'_, '_>,
    codecs: &[(&str, ())],
) -> BenchOptions {
    let reader = context.reader;
    let text = |key| map.take(key).and_then(|node| reader.text(node));
    let boolean = |key| map.take(key).and_then(|node| reader.boolean(node));
    let length = |key| map.take(key).and_then(|node| reader.parsed(node));
    let endpoint = |key| map.take(key).and_then(|node| reader.parsed(node));
    let codec = map
        .take("codec")
        .filter(|node| reader.word(node, "codec", codecs).is_some());
    // Nothing of a bench is random; other files of ours have one.
    map.ignore("seed");
    BenchOptions {
        name: text("name").map(str::to_owned),
        target: map.take("target").and_then(|node| target(context, node)),
        input: endpoint("in"),
        output: endpoint("out"),
        codec: codec.and_then(|node| reader.text(node)).map(str::to_owned),
        rate: text("rate").map(str::to_owned),
        stop_after: length("stop_after"),
        warmup: length("warmup"),
        limit: length("limit"),
        drain: length("drain"),
        batch: map
            .take("batch")
            .and_then(|node| reader.whole(node, 1, 1 << 20)),
        connections: map
            .take("connections")
            .and_then(|node| reader.whole(node, 1, 1024)),
        stamps: boolean("stamps"),
        sent_prefix: map
            .take("postprocessors")
            .and_then(|node| interceptors::read(context, node, Side::Post)),
        received_prefix: map
            .take("preprocessors")
            .and_then(|node| interceptors::read(context, node, Side::Pre)),
        retries: map
            .take("retries")
            .and_then(|node| reader.whole(node, 0, 1_000_000)),
        token: text("token").map(str::to_owned),
        lossy: boolean("lossy"),
        shared_network: boolean("shared_network"),
        ..BenchOptions::default()
    }
}

fn target(context: &ReadContext<'_>, node: &Node) -> Option<BenchTarget> {
    if let Value::Scalar { text, .. } = &node.value
        && text == "none"
    {
        return Some(BenchTarget::Absent);
    }
    let spec = read_target(context, node)?;
    Some(BenchTarget::Described {
        plan: Box::new(spec.plan),
        has_probe: spec.has_probe,
    })
}

/// Names of all codecs: those of this crate, and those of other formats.
fn codecs(lookup: Lookup<'_>) -> Vec<(&'static str, ())> {
    let foreign = lookup
        .formats
        .iter()
        .flat_map(|format| format.line_codecs());
    let known = CODECS.iter().map(|(name, _)| *name);
    known
        .chain(foreign.copied())
        .map(|name| (name, ()))
        .collect()
}

/// The framing of events of a codec. Codecs of other formats are lines of a grammar.
fn framing(codec: &str) -> Framing {
    let known = CODECS.iter().find(|(name, _)| *name == codec);
    known.map_or(Framing::StrictLines, |(_, framing)| *framing)
}

macro_rules! first_of {
    ($first:expr, $second:expr; $($field:ident),+ $(,)?) => {
        BenchOptions { $($field: $first.$field.or($second.$field)),+ }
    };
}

impl BenchOptions {
    /// Returns these settings; a missing one comes from `second`.
    fn or(self, second: Self) -> Self {
        first_of!(self, second;
            name, target, input, output, source, codec, interval, rate, chunk_size, iters, base64,
            is_transactional, structured, stop_after, warmup, limit, drain, significant_figures,
            stamps, sent_prefix, received_prefix, batch, connections, retries, token, lossy, shared_network,
        )
    }
}
