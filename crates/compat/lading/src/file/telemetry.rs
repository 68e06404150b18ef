//! Destination of lading's telemetry.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use stillwell_units::Nanos;

use stillwell_text::{Diagnostics, Keys, MapReader, Node, Reader, Source, Value, code};

/// Remark on telemetry keys that are unused.
pub(crate) const TELEMETRY_UNUSED: &str =
    "`telemetry` has no effect: every run writes its own capture";

/// The keys of `telemetry`, that of before lading 0.20 among them.
const KEYS: [&str; 6] = [
    "addr",
    "prometheus_addr",
    "path",
    "global_labels",
    "expiration",
    "format",
];
/// lading's own defaults.
const FLUSH_SECONDS: u64 = 60;
const COMPRESSION_LEVEL: i32 = 3;

/// Destination of lading's telemetry, with the labels of all its series.
#[derive(Clone, Debug, PartialEq)]
pub struct LadingTelemetry {
    /// The destination.
    pub place: TelemetryPlace,
    /// Labels of every series, in the order of the file.
    pub labels: Vec<(String, String)>,
}

/// A destination of telemetry.
#[derive(Clone, Debug, PartialEq)]
pub enum TelemetryPlace {
    /// Into a file.
    Capture {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: TelemetryFormat,
        /// Time for which a series without a new value is repeated.
        expiration: Option<Nanos>,
    },
    /// Onto a page over TCP.
    Address(SocketAddr),
    /// A page on a Unix socket; a file names it like a capture.
    Socket(PathBuf),
}

/// The format of a file of telemetry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TelemetryFormat {
    /// The format.
    pub kind: TelemetryFormatKind,
    /// Interval between flushes.
    pub flush: Nanos,
    /// zstd's level within a table, from 1 to 22.
    pub compression_level: i32,
}

/// lading's formats.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TelemetryFormatKind {
    /// Lines.
    Jsonl,
    /// A table.
    Parquet,
    /// Both.
    Multi,
}

impl TelemetryFormatKind {
    /// By their names in files and flags.
    pub const NAMES: [(&'static str, Self); 3] = [
        ("jsonl", Self::Jsonl),
        ("parquet", Self::Parquet),
        ("multi", Self::Multi),
    ];
}

impl Default for TelemetryFormat {
    fn default() -> Self {
        Self {
            kind: TelemetryFormatKind::Jsonl,
            flush: Nanos::from_secs(FLUSH_SECONDS),
            compression_level: COMPRESSION_LEVEL,
        }
    }
}

/// Returns the telemetry in `source`, if it has any. Errors in other parts are not reported.
#[must_use]
pub(crate) fn read_telemetry(source: &Arc<Source>) -> (Option<LadingTelemetry>, Diagnostics) {
    let Ok((root, _)) = stillwell_text::parse(source) else {
        return (None, Diagnostics::new());
    };
    let Some(node) = root.entry("telemetry") else {
        return (None, Diagnostics::new());
    };
    let reader = Reader::new(Arc::clone(source));
    let telemetry = read(&reader, node);
    (telemetry, reader.finish())
}

/// Reports that `node` is unused; its keys are checked nevertheless.
pub(super) fn ignore(reader: &Reader, node: &Node) {
    let Some(map) = reader.map(node, &Keys::new("telemetry", &KEYS)) else {
        return;
    };
    for key in KEYS {
        map.ignore(key);
    }
    reader.report(reader.note(code::NO_EFFECT, node.span, TELEMETRY_UNUSED));
}

fn read(reader: &Reader, node: &Node) -> Option<LadingTelemetry> {
    let map = reader.map(node, &Keys::new("telemetry", &KEYS))?;
    let labels = map
        .take("global_labels")
        .map(|node| reader.text_map(node))
        .unwrap_or_default();
    // Both are read, so neither is reported as unread.
    let expiration = map.take("expiration").map(|node| read_length(reader, node));
    let format = map.read_or("format", TelemetryFormat::default(), |node| {
        read_format(reader, node)
    });
    let (key, node) = map.one_of(&["addr", "prometheus_addr", "path"])?;
    let text = reader.text(node)?;
    let place = if key == "path" {
        TelemetryPlace::Capture {
            path: text.into(),
            format: format?,
            expiration: expiration.flatten(),
        }
    } else {
        TelemetryPlace::Address(read_address(reader, node, text)?)
    };
    Some(LadingTelemetry { place, labels })
}

fn read_address(reader: &Reader, node: &Node, text: &str) -> Option<SocketAddr> {
    let address = text.replacen("localhost:", "127.0.0.1:", 1).parse();
    if address.is_err() {
        let message = format!("`{text}` is not an address to listen on");
        let error = reader.error(code::BAD_VALUE, node.span, message);
        reader.report(error.label("write an IP address and a port, such as `127.0.0.1:9000`"));
    }
    address.ok()
}

/// `{secs: 1, nanos: 0}`, as Rust writes lengths of time.
fn read_length(reader: &Reader, node: &Node) -> Option<Nanos> {
    let map = reader.map(node, &Keys::new("expiration", &["secs", "nanos"]))?;
    let part = |key| map.read_or(key, 0, |node| reader.whole(node, 0, u64::MAX));
    let (seconds, nanos) = (part("secs"), part("nanos"));
    let seconds = seconds?.saturating_mul(1_000_000_000);
    Some(Nanos::new(seconds.saturating_add(nanos?)))
}

fn read_format(reader: &Reader, node: &Node) -> Option<TelemetryFormat> {
    let names = TelemetryFormatKind::NAMES;
    if let Value::Scalar { .. } = &node.value {
        let kind = reader.word(node, "capture format", &names)?;
        return Some(TelemetryFormat {
            kind,
            ..TelemetryFormat::default()
        });
    }
    let words = names.map(|(name, _)| name);
    let map = reader.map(node, &Keys::new("capture format", &words))?;
    let (name, options) = map.one_of(&words)?;
    let (_, kind) = names.into_iter().find(|(format, _)| *format == name)?;
    let accepted = ["flush_seconds", "compression_level"];
    let accepted = match kind {
        TelemetryFormatKind::Jsonl => &accepted[..1],
        TelemetryFormatKind::Parquet | TelemetryFormatKind::Multi => &accepted[..],
    };
    let mut format = TelemetryFormat {
        kind,
        ..TelemetryFormat::default()
    };
    if matches!(options.value, Value::Null) {
        return Some(format);
    }
    let map = reader.map(options, &Keys::new("capture format's options", accepted))?;
    read_options(reader, &map, &mut format)?;
    Some(format)
}

fn read_options(
    reader: &Reader,
    map: &MapReader<'_, '_>,
    format: &mut TelemetryFormat,
) -> Option<()> {
    if let Some(node) = map.take("flush_seconds") {
        format.flush = Nanos::from_secs(reader.whole(node, 1, 1 << 30)?);
    }
    if format.kind != TelemetryFormatKind::Jsonl
        && let Some(node) = map.take("compression_level")
    {
        format.compression_level = reader.whole(node, 1, 22)?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn telemetry(text: &str) -> LadingTelemetry {
        let (read, diagnostics) = read_telemetry(&Source::new("lading.yaml", text));
        assert!(diagnostics.is_empty(), "{diagnostics}");
        read.unwrap()
    }

    #[test]
    fn every_place_is_read() {
        let read = telemetry("telemetry: {addr: '0.0.0.0:9000', global_labels: {a: b}}\n");
        assert_eq!(
            read.place,
            TelemetryPlace::Address("0.0.0.0:9000".parse().unwrap())
        );
        assert_eq!(read.labels, [("a".to_owned(), "b".to_owned())]);
        let text = "telemetry: {path: /tmp/x, expiration: {secs: 2, nanos: 5}, format: \
                    {parquet: {flush_seconds: 7, compression_level: 9}}}\n";
        let format = TelemetryFormat {
            kind: TelemetryFormatKind::Parquet,
            flush: Nanos::from_secs(7),
            compression_level: 9,
        };
        assert_eq!(
            telemetry(text).place,
            TelemetryPlace::Capture {
                path: "/tmp/x".into(),
                format,
                expiration: Some(Nanos::new(2_000_000_005)),
            }
        );
        let TelemetryPlace::Capture { format, .. } = telemetry("telemetry: {path: x}").place else {
            panic!("no capture");
        };
        assert_eq!(format, TelemetryFormat::default());
    }

    #[test]
    fn mistakes_are_reported() {
        for text in [
            "{addr: here}",
            "{path: a, addr: '127.0.0.1:1'}",
            "{path: a, format: csv}",
            "{path: a, format: {jsonl: {compression_level: 3}}}",
            "{path: a, format: {parquet: {compression_level: 99}}}",
            "{global_labels: {a: b}}",
        ] {
            let text = format!("telemetry: {text}\n");
            let (_, diagnostics) = read_telemetry(&Source::new("lading.yaml", text.as_str()));
            assert!(diagnostics.has_errors(), "{text}");
        }
        let (none, diagnostics) = read_telemetry(&Source::new("lading.yaml", "generator: []\n"));
        assert!(none.is_none() && diagnostics.is_empty());
    }
}
