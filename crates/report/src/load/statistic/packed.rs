//! Histograms that take little room.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer as HistogramReader, Serializer as _};
use hdrhistogram::serialization::{V2DeflateSerializer, V2Serializer};
use serde::{Deserialize, Serialize};

/// A histogram as HdrHistogram's V2 encoding: some hundred bytes where the live
/// one takes some hundred thousand. The default is one without samples.
///
/// In JSON it is what histogram logs hold, the compressed V2 encoding as base64,
/// beside the number of samples and quantiles, which are not read back.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(try_from = "Form", into = "Form")]
pub struct PackedHistogram {
    bytes: Vec<u8>,
}

impl PackedHistogram {
    /// Packs `histogram`; one without samples packs to nothing.
    #[must_use]
    pub fn new(histogram: &Histogram<u64>) -> Self {
        let mut bytes = Vec::new();
        if !histogram.is_empty() {
            V2Serializer::new()
                .serialize(histogram, &mut bytes)
                .unwrap_or_else(|_| unreachable!("a vector takes every byte"));
        }
        Self { bytes }
    }

    /// Whether there are no samples.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The histogram.
    #[must_use]
    pub fn unpack(&self) -> Histogram<u64> {
        if self.bytes.is_empty() {
            return stillwell_metric::empty_histogram();
        }
        HistogramReader::new()
            .deserialize(&mut &*self.bytes)
            .unwrap_or_else(|_| unreachable!("these bytes were made of a histogram"))
    }

    /// As histogram logs hold it; empty without samples.
    #[must_use]
    pub fn to_base64(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        Self::encode(&self.unpack())
    }

    /// Any histogram as histogram logs hold it, also one without samples.
    pub(in crate::load) fn encode(histogram: &Histogram<u64>) -> String {
        let mut compressed = Vec::new();
        V2DeflateSerializer::new()
            .serialize(histogram, &mut compressed)
            .unwrap_or_else(|_| unreachable!("a vector takes every byte"));
        BASE64.encode(compressed)
    }

    /// From what histogram logs hold, compressed or not; empty text is one without
    /// samples.
    ///
    /// # Errors
    /// Where `text` is no histogram in V2 encoding.
    pub fn from_base64(text: &str) -> Result<Self, HistogramError> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let bytes = BASE64.decode(text).map_err(|_| HistogramError)?;
        let histogram = HistogramReader::new().deserialize(&mut &*bytes);
        Ok(Self::new(&histogram.map_err(|_| HistogramError)?))
    }
}

/// A text that is no histogram in HdrHistogram's V2 encoding as base64.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("no HdrHistogram in V2 encoding as base64")]
pub struct HistogramError;

/// As it stands in JSON.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Form {
    count: u64,
    p50: u64,
    p90: u64,
    p99: u64,
    p999: u64,
    max: u64,
    v2: String,
}

impl From<PackedHistogram> for Form {
    fn from(packed: PackedHistogram) -> Self {
        let histogram = packed.unpack();
        Self {
            count: histogram.len(),
            p50: histogram.value_at_quantile(0.5),
            p90: histogram.value_at_quantile(0.9),
            p99: histogram.value_at_quantile(0.99),
            p999: histogram.value_at_quantile(0.999),
            max: histogram.max(),
            v2: packed.to_base64(),
        }
    }
}

impl TryFrom<Form> for PackedHistogram {
    type Error = HistogramError;

    fn try_from(form: Form) -> Result<Self, HistogramError> {
        Self::from_base64(&form.v2)
    }
}
