//! Receivers of the target's output.

use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use stillwell_units::{ByteRate, Nanos};

use crate::generator::MessageLength;
use crate::stamp::PrefixFraming;

/// One receiver.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct SinkPlan {
    /// Unique among the run's sinks; labels what it records.
    pub id: String,
    /// Its protocol.
    pub protocol: SinkProtocol,
    /// Threads.
    pub workers: NonZeroU16,
    /// The most that it reads, over all connections together: a receiver that is
    /// slow on purpose. Streams only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<ByteRate>,
    /// Conditions under which a line's stamps count as arrived; all lines count if
    /// left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<LinesPlan>,
    /// Framing of events that have a time before them; `None` if they have
    /// none. Sockets that only send alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<PrefixFraming>,
}

/// Conditions under which a line's stamps count as arrived: lines that the
/// target had to change and did not count as lost.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct LinesPlan {
    /// Their beginning.
    pub begins: String,
    /// Their end, before the line end.
    pub ends: String,
    /// Texts that they must all contain.
    pub holds: Vec<String>,
}

impl LinesPlan {
    /// Returns true if `line`, without its end, looks like that.
    #[must_use]
    pub fn fits(&self, line: &[u8]) -> bool {
        let holds = |text: &String| {
            let text = text.as_bytes();
            text.is_empty() || line.windows(text.len()).any(|part| part == text)
        };
        line.starts_with(self.begins.as_bytes())
            && line.ends_with(self.ends.as_bytes())
            && self.holds.iter().all(holds)
    }
}

/// Protocol of a sink.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SinkProtocol {
    /// Reads and counts; events are lines.
    Tcp {
        /// The address of the listener.
        address: SocketAddr,
    },
    /// Reads and counts; events are lines, a datagram holds at least one.
    Udp {
        /// The address of the listener.
        address: SocketAddr,
    },
    /// Reads and counts; events are lines.
    UnixStream {
        /// Path of the socket; a stale socket is replaced.
        path: PathBuf,
    },
    /// Reads and counts; events are lines, a datagram holds at least one.
    UnixDatagram {
        /// Path of the socket; a stale socket is replaced.
        path: PathBuf,
    },
    /// Answers every request, over HTTP/1.1 and HTTP/2, and every call of gRPC.
    Http {
        /// The address of the listener.
        address: SocketAddr,
        /// Status of every response.
        status: u16,
        /// Headers of every answer, besides Content-Length.
        headers: Vec<(String, String)>,
        /// Body of every response.
        body: SinkBody,
        /// Time between the end of a request and its answer.
        delay: Nanos,
        /// Connections served at once; more wait in the backlog.
        connections_max: u32,
    },
    /// Understands requests over HTTP/1.1 and HTTP/2, and answers as the service
    /// that it replaces.
    Intake {
        /// The service.
        service: IntakeService,
        /// The address of the listener.
        address: SocketAddr,
        /// Time between the end of a request and its answer.
        delay: Nanos,
        /// Connections served at once; more wait in the backlog.
        connections_max: u32,
    },
    /// Follows a file that the target writes; events are lines.
    File {
        /// The file, which need not be there yet. What is in it before the run does
        /// not count.
        path: PathBuf,
    },
    /// Answers each request of fixed length with the configured number of bytes,
    /// connection by connection.
    TcpRr {
        /// The address of the listener.
        address: SocketAddr,
        /// Length of a request.
        request_bytes: MessageLength,
        /// Length of an answer.
        response_bytes: MessageLength,
    },
}

/// Services that a sink can replace.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IntakeService {
    /// Splunk's HTTP event collector, acknowledgements included.
    SplunkHec,
    /// Datadog's intake of metrics and logs.
    Datadog {
        /// The series that the capture records.
        record: SeriesRecord,
    },
    /// Datadog's stateful logs over gRPC.
    DatadogStatefulLogs,
    /// OpenTelemetry's protocol, over gRPC and HTTP.
    Otlp,
    /// Amazon's SQS, as a queue of messages that never ends.
    Sqs,
    /// Elasticsearch's bulk API.
    Elasticsearch,
    /// Loki's push API.
    Loki,
    /// Amazon's S3: objects that are put.
    S3,
    /// A page of metrics, for targets that scrape.
    Openmetrics(Box<OpenmetricsPlan>),
}

impl IntakeService {
    /// The name of the service in files.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::SplunkHec => "splunk_hec",
            Self::Datadog { .. } => "datadog",
            Self::DatadogStatefulLogs => "datadog_stateful_logs",
            Self::Otlp => "otlp",
            Self::Sqs => "sqs",
            Self::Elasticsearch => "elasticsearch",
            Self::Loki => "loki",
            Self::S3 => "s3",
            Self::Openmetrics(_) => "openmetrics",
        }
    }
}

/// Received series that are recorded, as `target/NAME`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SeriesRecord {
    /// None of them.
    #[default]
    None,
    /// All of them.
    All,
    /// Those of these names.
    Named(Vec<String>),
}

/// The content of a page of metrics.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct OpenmetricsPlan {
    /// Status of the responses.
    pub status: u16,
    /// Headers of the responses, without the type of the page.
    pub headers: Vec<(String, String)>,
    /// The beginning of every name.
    pub prefix: String,
    /// True if each family says what it is about.
    pub has_help: bool,
    /// True if each family says its type.
    pub has_type: bool,
    /// Counters.
    pub counters: u32,
    /// Gauges.
    pub gauges: u32,
    /// Histograms.
    pub histograms: u32,
    /// Bounds of their buckets as they are written, growing.
    pub buckets: Vec<String>,
    /// Summaries.
    pub summaries: u32,
    /// Their quantiles as they are written.
    pub quantiles: Vec<String>,
    /// Labels and their values, at least one each.
    pub labels: Vec<(String, Vec<String>)>,
    /// Values of the label `route`, at least one.
    pub routes: u32,
}

impl Default for OpenmetricsPlan {
    fn default() -> Self {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let numbered = |word: &str, count: u32| {
            let numbers = 1..=count;
            numbers.map(|number| format!("{word}-{number}")).collect()
        };
        Self {
            status: 200,
            headers: Vec::new(),
            prefix: "openmetrics".to_owned(),
            has_help: true,
            has_type: true,
            counters: 240,
            gauges: 180,
            histograms: 20,
            buckets: texts(&[
                "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5",
            ]),
            summaries: 40,
            quantiles: texts(&["0.5", "0.75", "0.9", "0.95", "0.99"]),
            labels: vec![
                ("service".to_owned(), numbered("service", 5)),
                ("region".to_owned(), numbered("region", 4)),
                (
                    "method".to_owned(),
                    texts(&["GET", "POST", "PUT", "DELETE"]),
                ),
                (
                    "status_class".to_owned(),
                    texts(&["2xx", "3xx", "4xx", "5xx"]),
                ),
                ("consumer".to_owned(), numbered("consumer", 12)),
            ],
            routes: 60,
        }
    }
}

impl SinkProtocol {
    /// The name of the protocol in files.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Tcp { .. } => "tcp",
            Self::Udp { .. } => "udp",
            Self::UnixStream { .. } => "unix_stream",
            Self::UnixDatagram { .. } => "unix_datagram",
            Self::Http { .. } => "http",
            Self::Intake { service, .. } => service.name(),
            Self::File { .. } => "file",
            Self::TcpRr { .. } => "tcp_rr",
        }
    }
}

/// The body of every answer of an HTTP sink.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SinkBody {
    /// No bytes.
    Empty,
    /// Always these bytes.
    Static(Vec<u8>),
}
