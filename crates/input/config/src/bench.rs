//! Benches: files, flags, or both.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stillwell_plan::{BenchPlan, PrefixFraming, TargetPlan};
use stillwell_text::{Diagnostic, Diagnostics, MapReader, Node, Reader, Value, code};
use stillwell_units::Nanos;

use crate::discover::Lookup;
use crate::files::{EntryKind, read_source};
use crate::spec::{Door, read_subject};

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

/// What is asked for, by a file, by flags or by both; what nobody said is none.
#[derive(Clone, Debug, Default)]
pub struct BenchAsked {
    /// What reports call it.
    pub name: Option<String>,
    /// The program.
    pub subject: Option<BenchSubject>,
    /// Where it takes events in.
    pub input: Option<BenchEndpoint>,
    /// Where it sends them on.
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
    /// Whether each piece is base64.
    pub base64: Option<bool>,
    /// Whether events are sent until they are acknowledged.
    pub is_transactional: Option<bool>,
    /// Whether the report is JSON.
    pub structured: Option<bool>,
    /// Length of load behind the warm-up.
    pub stop_after: Option<Nanos>,
    /// Length of load that does not count.
    pub warmup: Option<Nanos>,
    /// The longest that a bench goes on that ends by its rounds.
    pub limit: Option<Nanos>,
    /// How long is waited for what the subject still holds.
    pub drain: Option<Nanos>,
    /// Digits of latencies.
    pub significant_figures: Option<u8>,
    /// Whether events are stamped.
    pub stamps: Option<bool>,
    /// How events are framed that a time stands before, in place of stamps, if one does:
    /// as they are sent, and as they are received.
    pub sent_prefix: Option<PrefixFraming>,
    /// The second of these.
    pub received_prefix: Option<PrefixFraming>,
    /// Events in a write, datagram or request.
    pub batch: Option<u32>,
    /// Connections to the subject.
    pub connections: Option<u16>,
    /// How often a refused request is sent again.
    pub retries: Option<u32>,
    /// The token for Splunk's collector.
    pub token: Option<String>,
    /// Whether events may be lost.
    pub lossy: Option<bool>,
    /// Whether it shares the host's network.
    pub shared_network: Option<bool>,
}

/// The program under a bench.
#[derive(Clone, Debug)]
pub enum BenchSubject {
    /// Nobody starts one: whatever listens.
    Absent,
    /// A command line.
    Command(Vec<String>),
    /// As a file tells of it, and whether it says when it is ready.
    Told {
        /// The program.
        plan: Box<TargetPlan>,
        /// Whether there is a probe.
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

/// [`Loader::bench`](crate::Loader::bench).
pub(crate) fn load_bench(
    lookup: Lookup<'_>,
    path: Option<&Path>,
    flags: BenchAsked,
) -> Result<LoadedBench, Diagnostics> {
    let mut found = Diagnostics::new();
    let asked = match path {
        None => flags,
        Some(path) => {
            let path = crate::files::absolute(path);
            let mut told = read_file(lookup, &path, &mut found).unwrap_or_default();
            if told.name.is_none() {
                told.name = Some(name_of(&path));
            }
            flags.or(told)
        }
    };
    if found.has_errors() {
        return Err(found.sorted());
    }
    let source = asked.source.as_ref();
    if let Some(source) = source.filter(|path| lookup.files.kind(path) != Some(EntryKind::File)) {
        let message = format!("there is no file {}", source.display());
        found.push(Diagnostic::error(code::UNREADABLE, message));
    }
    let codec = asked.codec.as_deref();
    let codecs = codecs(lookup);
    if let Some(codec) = codec.filter(|codec| !codecs.iter().any(|(name, ())| name == codec)) {
        let names: Vec<&str> = codecs.iter().map(|(name, ())| *name).collect();
        let message = format!("unknown codec `{codec}`");
        let error = Diagnostic::error(code::UNKNOWN_WORD, message);
        found.push(error.help(format!("accepted here: {}", names.join(", "))));
    }
    let plan = plan::plan_of(&asked, &mut found);
    match plan {
        Some(plan) if !found.has_errors() => Ok(LoadedBench {
            plan,
            warnings: found,
        }),
        _ => Err(found),
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

fn read_file(lookup: Lookup<'_>, path: &Path, found: &mut Diagnostics) -> Option<BenchAsked> {
    let files = lookup.files;
    let source = match read_source(files, path) {
        Ok(source) => source,
        Err(error) => {
            found.push(*error);
            return None;
        }
    };
    if let Some(file) = lookup.unreadable(path, Some(source.text())) {
        let message = format!("{} is {}, which is not run here", path.display(), file.what);
        found.push(Diagnostic::error(code::NOT_BUILT, message).help(file.help));
        return None;
    }
    let reader = Reader::new(Arc::clone(&source));
    let folder = path.parent().unwrap_or(path);
    let asked = reader.parse().and_then(|root| {
        let door = Door {
            reader: &reader,
            files,
            folder,
        };
        read_bench(&door, &root, &codecs(lookup))
    });
    found.append(reader.finish());
    asked
}

fn read_bench(door: &Door<'_>, root: &Node, codecs: &[(&str, ())]) -> Option<BenchAsked> {
    let reader = door.reader;
    let map = reader.map(root, &BENCH.keys())?;
    let nested = map.take("config").and_then(|node| {
        let map = reader.map(node, &CONFIG.keys())?;
        Some(of_connector(door, &read_bench_keys(reader, &map)))
    });
    let told = of_connector(door, &read_bench_keys(reader, &map));
    let own = read_own(door, &map, codecs);
    Some(own.or(told).or(nested.unwrap_or_default()))
}

fn of_connector(door: &Door<'_>, keys: &BenchKeys<'_>) -> BenchAsked {
    let source = keys.source;
    BenchAsked {
        source: source.and_then(|node| door.existing(node, EntryKind::File)),
        interval: keys.interval,
        chunk_size: keys.chunk_size,
        iters: keys.iters,
        base64: keys.base64,
        is_transactional: keys.is_transactional,
        structured: keys.structured,
        stop_after: keys.stop_after,
        significant_figures: keys.significant_figures,
        warmup: keys.warmup,
        ..BenchAsked::default()
    }
}

fn read_own(door: &Door<'_>, map: &MapReader<'_, '_>, codecs: &[(&str, ())]) -> BenchAsked {
    let reader = door.reader;
    let text = |key| map.take(key).and_then(|node| reader.text(node));
    let boolean = |key| map.take(key).and_then(|node| reader.boolean(node));
    let length = |key| map.take(key).and_then(|node| reader.parsed(node));
    let endpoint = |key| map.take(key).and_then(|node| reader.parsed(node));
    let codec = map
        .take("codec")
        .filter(|node| reader.word(node, "codec", codecs).is_some());
    // Nothing of a bench is random; other files of ours have one.
    map.ignore("seed");
    BenchAsked {
        name: text("name").map(str::to_owned),
        subject: map.take("target").and_then(|node| subject(door, node)),
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
            .and_then(|node| interceptors::read(door, node, Side::Post)),
        received_prefix: map
            .take("preprocessors")
            .and_then(|node| interceptors::read(door, node, Side::Pre)),
        retries: map
            .take("retries")
            .and_then(|node| reader.whole(node, 0, 1_000_000)),
        token: text("token").map(str::to_owned),
        lossy: boolean("lossy"),
        shared_network: boolean("shared_network"),
        ..BenchAsked::default()
    }
}

fn subject(door: &Door<'_>, node: &Node) -> Option<BenchSubject> {
    if let Value::Scalar { text, .. } = &node.value
        && text == "none"
    {
        return Some(BenchSubject::Absent);
    }
    let told = read_subject(door, node)?;
    Some(BenchSubject::Told {
        plan: Box::new(told.plan),
        has_probe: told.has_probe,
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
    ($one:expr, $other:expr; $($field:ident),+ $(,)?) => {
        BenchAsked { $($field: $one.$field.or($other.$field)),+ }
    };
}

impl BenchAsked {
    /// What is said here, and what `other` says besides.
    fn or(self, other: Self) -> Self {
        first_of!(self, other;
            name, subject, input, output, source, codec, interval, rate, chunk_size, iters, base64,
            is_transactional, structured, stop_after, warmup, limit, drain, significant_figures,
            stamps, sent_prefix, received_prefix, batch, connections, retries, token, lossy, shared_network,
        )
    }
}
