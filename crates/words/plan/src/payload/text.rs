//! Options of the text formats.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::time_pattern::TimePattern;

/// Encoding of events for Splunk's HTTP event collector.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HecEncoding {
    /// One JSON object a line, for `/services/collector/event`.
    #[default]
    Json,
    /// One line of text, for `/services/collector/raw`.
    Text,
}

/// A log whose lines are sent second by second.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct TimestampedPlan {
    /// The file, as an absolute path.
    pub path: PathBuf,
    /// The time at the beginning of each line, which is not sent.
    pub time: TimePattern,
    /// True if a second without lines is a block of one empty line.
    pub placeholder: bool,
    /// The line, counted from 0 and around, in whose second to begin; drawn if
    /// it is not there.
    pub start_line: Option<u64>,
}

/// Log lines in the JSON of Loki's push API.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct LokiPlan {
    /// Distinct sets of labels, from 1 to 65,536.
    pub streams: u32,
}

/// Log records as bulk requests of Elasticsearch.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ElasticsearchPlan {
    /// The index or data stream; [`is_index_name`] holds.
    pub index: String,
    /// The requested action.
    pub action: BulkAction,
}

/// The action of a bulk request.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BulkAction {
    /// A new record, as data streams need it.
    #[default]
    Create,
    /// A record with an identity, new or not.
    Index,
}

/// Measurements in InfluxDB's line protocol.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct InfluxPlan {
    /// Distinct series, from 1 to 65,536.
    pub series: u32,
}

/// The end of a GELF message.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GelfEnd {
    /// A zero byte, as over TCP.
    #[default]
    Null,
    /// A line feed, as in bulk requests over HTTP.
    Newline,
    /// Nothing, as over UDP: each message is a block of its own.
    Nothing,
}

/// The prefix of a CEF record.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CefHeader {
    /// A syslog header after RFC 3164.
    #[default]
    Syslog,
    /// Nothing.
    Nothing,
}

/// Most sets of labels or series.
pub const SERIES_MAX: u32 = 1 << 16;

/// Most characters of an index's name.
const INDEX_NAME_MAX: usize = 64;

/// Returns true if Elasticsearch takes `name` for an index, within 64 characters.
#[must_use]
pub fn is_index_name(name: &str) -> bool {
    let is_allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    (1..=INDEX_NAME_MAX).contains(&name.len())
        && name.bytes().all(is_allowed)
        && !name.starts_with(['.', '_', '-'])
}

impl Default for LokiPlan {
    fn default() -> Self {
        Self { streams: 100 }
    }
}

impl Default for ElasticsearchPlan {
    fn default() -> Self {
        Self {
            index: "logs-generic-default".to_owned(),
            action: BulkAction::Create,
        }
    }
}

impl Default for InfluxPlan {
    fn default() -> Self {
        Self { series: 1000 }
    }
}
