//! Keys of the load, which may also be under `config`.
//!
//! What is different is in `docs/compatibility.md`: among others a file is known
//! to be packed by its first bytes and not by its name, and an interval is a
//! schedule and not a pause.

use stillwell_text::{MapReader, Node, Reader, code};
use stillwell_units::Nanos;

/// The keys of the connector's `config`. The recording is called `path` since 0.13
/// and `source` before.
#[cfg(test)]
pub(crate) const KEYS: [&str; 11] = [
    "source",
    "path",
    "interval",
    "chunk_size",
    "iters",
    "base64",
    "is_transactional",
    "structured",
    "stop_after_secs",
    "significant_figures",
    "warmup_secs",
];

/// Digits of latencies, where nothing is said.
pub(crate) const SIGNIFICANT_FIGURES_DEFAULT: u8 = 2;

/// Values of the keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct BenchKeys<'n> {
    /// The recording.
    pub(crate) source: Option<&'n Node>,
    /// Time between two events; zero for none.
    pub(crate) interval: Option<Nanos>,
    /// Bytes of a piece; else pieces are lines.
    pub(crate) chunk_size: Option<u32>,
    /// Rounds through the recording.
    pub(crate) iters: Option<u64>,
    /// `true`: each piece is base64.
    pub(crate) base64: Option<bool>,
    /// `true`: events are acknowledged.
    pub(crate) is_transactional: Option<bool>,
    /// `true`: the report is JSON.
    pub(crate) structured: Option<bool>,
    /// Length of load behind the warm-up; `None` for no end.
    pub(crate) stop_after: Option<Nanos>,
    /// Digits of latencies, from 1 to 5.
    pub(crate) significant_figures: Option<u8>,
    /// Length of load that does not count.
    pub(crate) warmup: Option<Nanos>,
}

/// Reads them from `map`, in which there may be others.
pub(crate) fn read_bench_keys<'n>(reader: &Reader, map: &MapReader<'_, 'n>) -> BenchKeys<'n> {
    let boolean = |key| map.take(key).and_then(|node| reader.boolean(node));
    let seconds = |key| {
        let node = map.take(key)?;
        let seconds: u64 = reader.whole(node, 0, 1_000_000)?;
        Some(Nanos::from_secs(seconds))
    };
    BenchKeys {
        source: source(reader, map),
        interval: map
            .take("interval")
            .and_then(|node| read_interval(reader, node)),
        chunk_size: map
            .take("chunk_size")
            .and_then(|node| reader.whole(node, 1, 1 << 30)),
        iters: map
            .take("iters")
            .and_then(|node| reader.whole(node, 1, u64::from(u32::MAX))),
        base64: boolean("base64"),
        is_transactional: boolean("is_transactional"),
        structured: boolean("structured"),
        stop_after: seconds("stop_after_secs").filter(|length| *length > Nanos::ZERO),
        significant_figures: map
            .take("significant_figures")
            .and_then(|node| reader.whole(node, 1, 5)),
        warmup: seconds("warmup_secs"),
    }
}

fn source<'n>(reader: &Reader, map: &MapReader<'_, 'n>) -> Option<&'n Node> {
    let (source, path) = (map.take("source"), map.take("path"));
    if let (Some(_), Some(path)) = (source, path) {
        let message = "`source` and `path` set the same thing";
        let error = reader.error(code::ONE_OF_KEYS, path.span, message);
        reader.report(error.label("leave one of them out"));
    }
    source.or(path)
}

/// Nanoseconds, or a time with its unit.
fn read_interval(reader: &Reader, node: &Node) -> Option<Nanos> {
    let text = reader.text(node)?;
    match text.replace('_', "").parse() {
        Ok(nanoseconds) => Some(Nanos::new(nanoseconds)),
        Err(_) => reader.parsed(node),
    }
}

/// Framing of a codec's events in a stream, and room for a stamp.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Framing {
    /// Lines of JSON or text, which may contain a stamp.
    Lines,
    /// Lines of a grammar that knows no stamps.
    StrictLines,
    /// Bytes without ends.
    Bytes,
}

/// The codecs that are known.
pub(crate) const CODECS: [(&str, Framing); 15] = [
    ("json", Framing::Lines),
    ("json-sorted", Framing::Lines),
    ("string", Framing::Lines),
    ("syslog", Framing::Lines),
    ("lines", Framing::Lines),
    ("csv", Framing::StrictLines),
    ("influx", Framing::StrictLines),
    ("statsd", Framing::StrictLines),
    ("dogstatsd", Framing::StrictLines),
    ("yaml", Framing::StrictLines),
    ("avro", Framing::Bytes),
    ("binary", Framing::Bytes),
    ("binflux", Framing::Bytes),
    ("msgpack", Framing::Bytes),
    ("null", Framing::Bytes),
];

#[cfg(test)]
mod tests {
    use stillwell_text::{Keys, Source};

    use super::*;

    /// Values of `text`, and its mistakes.
    fn read<T>(text: &str, of: impl Fn(&BenchKeys<'_>) -> T) -> (T, Vec<String>) {
        let reader = Reader::new(Source::new("bench.yaml", text));
        let root = reader.parse().unwrap();
        let keys = Keys::new("bench", &KEYS);
        let options = {
            let map = reader.map(&root, &keys).unwrap();
            of(&read_bench_keys(&reader, &map))
        };
        let wrong = reader.finish();
        (
            options,
            wrong
                .iter()
                .map(|diagnostic| diagnostic.message.clone())
                .collect(),
        )
    }

    #[test]
    fn keys_mean_what_they_mean_to_the_connector() {
        let (options, wrong) = read(
            "source: in.json\ninterval: 1_000_000\niters: 3\nstop_after_secs: 0\nwarmup_secs: 2\n",
            |keys| {
                let source = keys.source.and_then(|node| match &node.value {
                    stillwell_text::Value::Scalar { text, .. } => Some(text.clone()),
                    _ => None,
                });
                let times = (keys.interval, keys.stop_after, keys.warmup);
                (source, keys.iters, times)
            },
        );
        assert!(wrong.is_empty(), "{wrong:?}");
        let times = (Some(Nanos::from_millis(1)), None, Some(Nanos::from_secs(2)));
        assert_eq!(options, (Some("in.json".to_owned()), Some(3), times));
        let (interval, _) = read("interval: 5ms\npath: a\n", |keys| keys.interval);
        assert_eq!(interval, Some(Nanos::from_millis(5)));
    }

    #[test]
    fn values_out_of_range_are_reported() {
        for (text, message) in [
            (
                "source: a\npath: b\n",
                "`source` and `path` set the same thing",
            ),
            ("chunk_size: 0\n", "`0` is out of range"),
            ("significant_figures: 9\n", "`9` is out of range"),
            ("iters: 0\n", "`0` is out of range"),
            (
                "base64: yes please\n",
                "`yes please` is neither `true` nor `false`",
            ),
        ] {
            let (_, wrong) = read(text, |_| ());
            assert_eq!(wrong, [message], "{text}");
        }
    }
}
