//! Metrics, events and service checks in DogStatsD's text format.

use serde::{Deserialize, Serialize};

use super::between::Between;
use super::pattern::{PatternError, expand_all};

/// Maximum number of contexts.
pub const DOGSTATSD_CONTEXTS_MAX: u32 = 10_000_000;

/// Letters and digits in generated texts.
const ALPHABET: u64 = 36;

/// Letters with which generated names begin.
const LETTERS: u64 = 26;

/// The content of DogStatsD messages.
///
/// A context is a metric's type, name and tags. Exactly as many distinct ones
/// are sent as drawn from `contexts`; each is sent once before any is sent
/// again.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct DogstatsdPlan {
    /// Distinct contexts of metrics.
    pub contexts: Between<u32>,
    /// Distinct names of service checks and titles of events.
    pub service_check_names: Between<u16>,
    /// Characters of a name.
    pub name_length: Between<u16>,
    /// Characters of a tag, its key and colon included.
    pub tag_length: Between<u16>,
    /// Tags of a message.
    pub tags_per_message: Between<u8>,
    /// Probability that a metric carries several values, from 0 to 1.
    pub multivalue_probability: f64,
    /// Values of a metric that carries several.
    pub multivalue_count: Between<u16>,
    /// Sampling rates, from 0 to 1.
    pub sampling_range: Between<f64>,
    /// Probability that a metric carries a sampling rate, from 0 to 1.
    pub sampling_probability: f64,
    /// Weight of each kind of message.
    pub kind_weights: DogstatsdKinds,
    /// Weight of each type of metric.
    pub metric_weights: DogstatsdMetrics,
    /// The values of metrics.
    pub value: DogstatsdValue,
    /// True if each block begins with the length of the rest, as 32 bits in
    /// little-endian order.
    pub length_prefix_framed: bool,
    /// Distinct tags for each tag in a context, above 0 up to 1.
    pub unique_tag_ratio: f64,
    /// Patterns of metric names; drawn where there are none.
    pub metric_names: Vec<String>,
    /// Patterns of tag keys; drawn where there are none.
    pub tag_names: Vec<String>,
    /// Patterns of tag values; drawn where there are none.
    pub tag_values: Vec<String>,
    /// Container identities, one of which or none goes with a message; drawn
    /// at random if there are none, and never written if this holds one empty text.
    pub container_ids: Vec<String>,
    /// External data, one of which or none goes with a message.
    pub external_data: Vec<String>,
    /// Cardinalities, one of which or none goes with a message.
    pub cardinality: Vec<String>,
    /// Times of metrics.
    pub timestamp: DogstatsdTimestamp,
}

/// Relative weight of each kind of message.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct DogstatsdKinds {
    /// Metrics.
    pub metric: u8,
    /// Events.
    pub event: u8,
    /// Service checks.
    pub service_check: u8,
}

/// Relative weight of each type of metric.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct DogstatsdMetrics {
    /// `c`
    pub count: u8,
    /// `g`
    pub gauge: u8,
    /// `ms`
    pub timer: u8,
    /// `d`
    pub distribution: u8,
    /// `s`
    pub set: u8,
    /// `h`
    pub histogram: u8,
}

/// The values of metrics.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct DogstatsdValue {
    /// Probability that a value has decimals, from 0 to 1.
    pub float_probability: f64,
    /// Their range.
    pub range: Between<i64>,
}

/// Times of metrics.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct DogstatsdTimestamp {
    /// Seconds since 1970.
    pub range: Between<u32>,
    /// Probability that a metric has one, from 0 to 1.
    pub probability: f64,
}

impl Default for DogstatsdPlan {
    fn default() -> Self {
        Self {
            contexts: Between::new(5000, 10_000),
            service_check_names: Between::new(1, 10_000),
            name_length: Between::new(1, 200),
            tag_length: Between::new(3, 100),
            tags_per_message: Between::new(2, 50),
            multivalue_probability: 0.08,
            multivalue_count: Between::new(2, 32),
            sampling_range: Between::new(0.1, 1.0),
            sampling_probability: 0.5,
            kind_weights: DogstatsdKinds {
                metric: 80,
                event: 10,
                service_check: 10,
            },
            metric_weights: DogstatsdMetrics {
                count: 34,
                gauge: 34,
                timer: 5,
                distribution: 1,
                set: 1,
                histogram: 25,
            },
            value: DogstatsdValue {
                float_probability: 0.5,
                range: Between::new(i64::MIN, i64::MAX),
            },
            length_prefix_framed: false,
            unique_tag_ratio: 0.11,
            metric_names: Vec::new(),
            tag_names: Vec::new(),
            tag_values: Vec::new(),
            container_ids: Vec::new(),
            external_data: Vec::new(),
            cardinality: Vec::new(),
            timestamp: DogstatsdTimestamp {
                range: Between::only(1),
                probability: 0.0,
            },
        }
    }
}

/// The part in which contexts differ: their names if there are enough of them, then
/// the values of tags.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ContextRoom {
    /// Distinct names.
    pub names: u64,
    /// Distinct values of one tag.
    pub tag_values: u64,
    /// Tags that may take part, each with a key of its own.
    pub tags: u32,
}

impl ContextRoom {
    /// Distinct contexts that names and tags can make.
    #[must_use]
    pub fn contexts(self) -> u64 {
        let tags = (0..self.tags).try_fold(self.names, |all, _| {
            (self.tag_values > 1).then(|| all.saturating_mul(self.tag_values))
        });
        tags.unwrap_or(self.names)
    }
}

impl DogstatsdPlan {
    /// The part in which contexts can differ.
    ///
    /// # Errors
    /// When a pattern among the names, keys or values is none.
    pub fn context_room(&self) -> Result<ContextRoom, PatternError> {
        let names = match expand_all(&self.metric_names)?.len() as u64 {
            0 => LETTERS * capacity(self.name_length.high.saturating_sub(1).min(10)),
            listed => listed,
        };
        // A key has a character at least, and a colon follows.
        let tag_values = match expand_all(&self.tag_values)?.len() as u64 {
            0 => capacity(self.tag_length.high.saturating_sub(2)),
            listed => listed,
        };
        let keys = match expand_all(&self.tag_names)?.len() {
            0 => LETTERS,
            listed => listed as u64,
        };
        let most = u32::from(self.tags_per_message.high);
        Ok(ContextRoom {
            names,
            tag_values,
            tags: u32::try_from(keys).map_or(most, |keys| keys.min(most)),
        })
    }
}

/// Distinct texts of `length` letters and digits.
fn capacity(length: u16) -> u64 {
    ALPHABET.saturating_pow(u32::from(length))
}
