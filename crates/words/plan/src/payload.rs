//! The sent content.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use stillwell_units::ByteSize;

mod between;
mod datagrams;
mod dogstatsd;
mod line_feeds;
mod opentelemetry;
mod pattern;
mod replay;
mod template;
mod text;
mod time_pattern;
mod topology;

pub use between::Between;
pub use datagrams::{
    EventTimes, NetflowPlan, NetflowVersion, REMOTE_WRITE_SERIES_MAX, RemoteWritePlan,
    TRACE_AGENT_CONTEXTS_MAX, TraceAgentPlan, TraceEncoding,
};
pub use dogstatsd::{
    ContextRoom, DOGSTATSD_CONTEXTS_MAX, DogstatsdKinds, DogstatsdMetrics, DogstatsdPlan,
    DogstatsdTimestamp, DogstatsdValue,
};
pub use opentelemetry::{
    OTLP_CONTEXTS_MAX, OtlpContexts, OtlpHistogramLimits, OtlpLogsPlan, OtlpMetricKinds,
    OtlpMetricsPlan, OtlpSeverities,
};
pub use pattern::{PATTERN_TEXTS_MAX, PatternError, expand_all};
pub use replay::{ReplayCut, ReplayEnd, ReplayPlan};

pub use template::{
    Alphabet, TEMPLATE_DEPTH_MAX, TEMPLATE_EVENT_MAX, TemplateError, TemplatePart, TemplatePlan,
    TemplateValue, TimeText,
};
pub use text::{
    BulkAction, CefHeader, ElasticsearchPlan, GelfEnd, HecEncoding, InfluxPlan, LokiPlan,
    SERIES_MAX, TimestampedPlan, is_index_name,
};
pub use time_pattern::{TimeField, TimePattern, TimePatternError};
pub use topology::{
    OtlpTracesPlan, TRACE_DEPTH_MAX, TopologyError, TraceAttribute, TraceCall, TraceOperation,
    TraceService, TraceValue, TraceWork,
};

/// The bytes of one generator.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct PayloadPlan {
    /// The format of one event.
    pub format: PayloadFormat,
    /// Grouping of events into blocks.
    pub blocks: BlockShape,
    /// Bytes built before the run, for all workers of the generator together.
    pub cache: ByteSize,
    /// True if these blocks are sent over and over. Otherwise new ones follow them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeats: bool,
}

impl PayloadPlan {
    /// The shape for a transport that sends no payload: one event a block.
    pub const PACE: Self = Self {
        format: PayloadFormat::Ascii,
        blocks: BlockShape::Events {
            count: 1,
            maximum: ByteSize::kib(1),
        },
        cache: ByteSize::kib(64),
        repeats: false,
    };
}

/// The format of one event.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PayloadFormat {
    /// Lines of printable ASCII.
    Ascii,
    /// One JSON object a line.
    Json,
    /// One RFC 5424 syslog message a line.
    Syslog5424,
    /// One line of an Apache common log.
    ApacheCommon,
    /// Datadog logs intake: one JSON array of log objects a block.
    DatadogLog,
    /// Metrics, events and service checks as DogStatsD reads them.
    Dogstatsd(Box<DogstatsdPlan>),
    /// OpenTelemetry logs in protobuf.
    OpentelemetryLogs(OtlpLogsPlan),
    /// OpenTelemetry metrics in protobuf.
    OpentelemetryMetrics(OtlpMetricsPlan),
    /// OpenTelemetry traces in protobuf.
    OpentelemetryTraces(Box<OtlpTracesPlan>),
    /// Traces as Datadog's agent takes them.
    TraceAgent(TraceAgentPlan),
    /// Fluentd's forward protocol.
    Fluent,
    /// Prometheus remote write.
    RemoteWrite(RemoteWritePlan),
    /// Flow records: `NetFlow` 5 and 9, and IPFIX.
    Netflow(NetflowPlan),
    /// The lines of a file, in order, over and over.
    Lines {
        /// The file, as an absolute path.
        path: PathBuf,
    },
    /// One RFC 3164 syslog message a line.
    Syslog3164,
    /// Events for Splunk's HTTP event collector.
    SplunkHec {
        /// Their encoding.
        encoding: HecEncoding,
    },
    /// Loki's push API: one JSON document a block.
    Loki(LokiPlan),
    /// Elasticsearch's bulk API: an action and a record for each event.
    Elasticsearch(ElasticsearchPlan),
    /// One point of InfluxDB's line protocol a line.
    Influx(InfluxPlan),
    /// Graylog's JSON messages.
    Gelf {
        /// The end of each.
        end: GelfEnd,
    },
    /// One record in ArcSight's common event format a line.
    Cef {
        /// The prefix of each.
        header: CefHeader,
    },
    /// Whole files, each a block, in order, over and over.
    Static {
        /// The files, as absolute paths, at least one.
        paths: Vec<PathBuf>,
    },
    /// The lines of files in blocks as large as can be, over and over.
    StaticChunks {
        /// The files, as absolute paths, at least one.
        paths: Vec<PathBuf>,
    },
    /// Content of a file, cut into events that may carry stamps, repeatedly.
    Replay(ReplayPlan),
    /// The lines of a log without their times; the lines of each second are a block.
    StaticTimestamped(TimestampedPlan),
    /// JSON as a template of lading says, one value a line.
    TemplatedJson(TemplatePlan),
    /// Texts as a template says.
    Template(TemplatePlan),
}

impl PayloadFormat {
    /// Returns true if its times begin when it is built.
    #[must_use]
    pub const fn begins_now(&self) -> bool {
        matches!(self, Self::RemoteWrite(plan) if matches!(plan.times, EventTimes::Now))
    }

    /// The name of the format in files.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ascii => "ascii",
            Self::Json => "json",
            Self::Syslog5424 => "syslog5424",
            Self::ApacheCommon => "apache_common",
            Self::DatadogLog => "datadog_log",
            Self::Dogstatsd(_) => "dogstatsd",
            Self::OpentelemetryLogs(_) => "opentelemetry_logs",
            Self::OpentelemetryMetrics(_) => "opentelemetry_metrics",
            Self::OpentelemetryTraces(_) => "opentelemetry_traces",
            Self::TraceAgent(_) => "trace_agent",
            Self::Fluent => "fluent",
            Self::RemoteWrite(_) => "remote_write",
            Self::Netflow(_) => "netflow",
            Self::Lines { .. } => "lines",
            Self::Syslog3164 => "syslog3164",
            Self::SplunkHec { .. } => "splunk_hec",
            Self::Loki(_) => "loki",
            Self::Elasticsearch(_) => "elasticsearch",
            Self::Influx(_) => "influx",
            Self::Gelf { .. } => "gelf",
            Self::Cef { .. } => "cef",
            Self::Static { .. } => "static",
            Self::StaticChunks { .. } => "static_chunks",
            Self::Replay(_) => "replay",
            Self::StaticTimestamped(_) => "static_timestamped",
            Self::TemplatedJson(_) => "templated_json",
            Self::Template(_) => "template",
        }
    }

    /// Returns true if each event ends in a line feed that keeps it from the next, and is
    /// nothing of the event itself.
    #[must_use]
    pub const fn ends_lines(&self) -> bool {
        match self {
            Self::Ascii
            | Self::Json
            | Self::Syslog5424
            | Self::ApacheCommon
            | Self::Lines { .. }
            | Self::Syslog3164
            | Self::SplunkHec { .. }
            | Self::Influx(_)
            | Self::Cef { .. }
            | Self::StaticChunks { .. }
            | Self::StaticTimestamped(_)
            | Self::TemplatedJson(_)
            | Self::Template(_)
            | Self::Elasticsearch(_)
            | Self::Gelf {
                end: GelfEnd::Newline,
            } => true,
            Self::Dogstatsd(plan) => !plan.length_prefix_framed,
            Self::Replay(plan) => plan.takes_stamps(),
            _ => false,
        }
    }

    /// The template that events are made from, if there is one.
    #[must_use]
    pub const fn template(&self) -> Option<&TemplatePlan> {
        match self {
            Self::TemplatedJson(template) | Self::Template(template) => Some(template),
            _ => None,
        }
    }

    /// The files whose contents the payload is built from, in order.
    #[must_use]
    pub fn files(&self) -> &[PathBuf] {
        match self {
            Self::Lines { path }
            | Self::Replay(ReplayPlan { path, .. })
            | Self::StaticTimestamped(TimestampedPlan { path, .. }) => std::slice::from_ref(path),
            Self::Static { paths } | Self::StaticChunks { paths } => paths,
            _ => &[],
        }
    }
}

/// Grouping of events into blocks: a block is sent as one
/// datagram, one HTTP body or one write.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockShape {
    /// Sizes drawn evenly between an eighth of `maximum` and `maximum`.
    UpTo {
        /// No block is larger, except one whose single event is.
        maximum: ByteSize,
    },
    /// A fixed number of events a block, at least one.
    Events {
        /// Events in each block.
        count: u32,
        /// No block is larger: it closes early instead.
        maximum: ByteSize,
    },
}

impl BlockShape {
    /// The largest block.
    #[must_use]
    pub const fn maximum(self) -> ByteSize {
        match self {
            Self::UpTo { maximum } | Self::Events { maximum, .. } => maximum,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_of_before_blocks_could_repeat_is_read() {
        let text = serde_json::to_string(&PayloadPlan::PACE).unwrap();
        assert!(!text.contains("repeats"), "{text}");
        let read: PayloadPlan = serde_json::from_str(&text).unwrap();
        assert_eq!(read, PayloadPlan::PACE);
        let plan = PayloadPlan {
            repeats: true,
            ..read
        };
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<PayloadPlan>(&text).unwrap(), plan);
    }
}
