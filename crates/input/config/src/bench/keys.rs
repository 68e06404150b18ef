//! Keys of a bench file. Those of the load may also be under `config`.

use crate::element::{DURATION, Element, Field, Shape, TEXTS, optional};
use crate::spec::TARGET;

/// An address of one word.
const ENDPOINT: Shape = Shape::Like("tcp://127.0.0.1:9100");

/// An item of a list of pre- or postprocessors: a name, or a map with one.
const INTERCEPTORS: Shape = Shape::Any(&[
    TEXTS,
    Shape::List(&Shape::Element(&Element::new(
        "interceptor",
        "Adds framing to events, or removes it.",
        &[optional("name", Shape::Text, "Name of the interceptor.")],
    ))),
]);

/// The keys of the load behind these.
macro_rules! with_connector {
    ($($key:expr,)*) => {
        &[
            $($key,)*
            optional("source", Shape::Text, "The recording; plain, or compressed with gzip, zstd or xz."),
            optional("path", Shape::Text, "The same as `source`."),
            optional(
                "interval",
                Shape::Any(&[Shape::Whole, DURATION]),
                "Time between two events, in nanoseconds or with a unit.",
            ),
            optional("chunk_size", Shape::Whole, "Size in bytes of the chunks that the recording is split into; lines by default."),
            optional("iters", Shape::Whole, "Number of times to replay the recording."),
            optional("base64", Shape::Boolean, "`true`: each chunk or line is decoded from base64."),
            optional(
                "is_transactional",
                Shape::Boolean,
                "`true`: events are sent again until they are acknowledged.",
            ),
            optional("structured", Shape::Boolean, "`true`: the report is JSON."),
            optional("stop_after_secs", Shape::Whole, "Seconds of load after the warm-up."),
            optional("significant_figures", Shape::Whole, "Significant digits of latencies, from 1 to 5."),
            optional("warmup_secs", Shape::Whole, "Length of the warm-up in seconds, which is not measured."),
        ]
    };
}

/// The keys of the load by themselves.
pub(super) const CONFIG: Element = Element::new("config", "Keys of the load.", with_connector!());

/// A whole file.
pub(crate) const BENCH: Element = Element::new(
    "bench",
    "Replays a recording through a pipeline, and counts what arrives.",
    FIELDS,
);

const FIELDS: &[Field] = with_connector![
    optional(
        "name",
        Shape::Text,
        "Name in reports; the folder's name by default."
    ),
    optional(
        "target",
        Shape::Any(&[Shape::Element(&TARGET), Shape::Words(&["none"])]),
        "The tested program, or `none` for a program that already runs.",
    ),
    optional(
        "in",
        ENDPOINT,
        "Address at which the target receives events."
    ),
    optional(
        "out",
        ENDPOINT,
        "Address to which the target sends events; the bench listens there."
    ),
    optional("config", Shape::Element(&CONFIG), "Keys of the load."),
    optional(
        "codec",
        Shape::Like("json"),
        "The framing of events, by the name of a codec."
    ),
    optional(
        "rate",
        Shape::Like("5k/s"),
        "Events or bytes per second, or `max`."
    ),
    optional("stop_after", DURATION, "Length of load after the warm-up."),
    optional(
        "warmup",
        DURATION,
        "Length of the warm-up, which is not measured."
    ),
    optional(
        "limit",
        DURATION,
        "Maximum length of the load with `iters` alone."
    ),
    optional(
        "drain",
        DURATION,
        "Time to wait for events that the target still has."
    ),
    optional(
        "batch",
        Shape::Whole,
        "Events in a write, datagram or request."
    ),
    optional("connections", Shape::Whole, "Connections to the target."),
    optional("stamps", Shape::Boolean, "`true`: events are stamped."),
    optional(
        "retries",
        Shape::Whole,
        "Maximum number of retries of a refused request."
    ),
    optional("token", Shape::Text, "The token for Splunk's collector."),
    optional("lossy", Shape::Boolean, "`true`: events may be lost."),
    optional(
        "shared_network",
        Shape::Boolean,
        "`true`: the target runs in the host's network."
    ),
    optional(
        "seed",
        Shape::Free,
        "No effect: a bench has no random choices."
    ),
    optional(
        "postprocessors",
        INTERCEPTORS,
        "Framing of events as they are sent."
    ),
    optional(
        "preprocessors",
        INTERCEPTORS,
        "Framing of events as they are received."
    ),
];
