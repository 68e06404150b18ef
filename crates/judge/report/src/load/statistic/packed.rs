//! Histograms that take little room.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer as HistogramReader;
use serde::{Deserialize, Serialize};
use stillwell_metric::PackedHistogram as Packed;

use super::merge_histograms;

/// A histogram as HdrHistogram's compressed V2 encoding: some hundred bytes where
/// the live one takes some hundred thousand. The default is one without samples.
///
/// In JSON it is what histogram logs hold, the compressed V2 encoding as base64,
/// beside the number of samples and quantiles, which are not read back.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(try_from = "HistogramForm", into = "HistogramForm")]
pub struct PackedHistogram(Packed);

impl PackedHistogram {
    /// Packs `histogram`; one without samples packs to nothing.
    #[must_use]
    pub fn new(histogram: &Histogram<u64>) -> Self {
        Self(Packed::new(histogram))
    }

    /// Returns true if there are no samples.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The histogram.
    #[must_use]
    pub fn unpack(&self) -> Histogram<u64> {
        self.0.unpack()
    }

    /// Returns the samples of `all` in one histogram; they are unpacked one after the other.
    pub(in crate::load) fn merged<'p>(all: impl IntoIterator<Item = &'p Self>) -> Histogram<u64> {
        let parts = all.into_iter().filter(|part| !part.is_empty());
        merge_histograms(parts.map(Self::unpack))
    }

    /// As histogram logs hold it; empty without samples.
    #[must_use]
    pub fn to_base64(&self) -> String {
        BASE64.encode(self.0.bytes())
    }

    /// Any histogram as histogram logs hold it, also one without samples.
    pub(in crate::load) fn encode(histogram: &Histogram<u64>) -> String {
        BASE64.encode(Packed::encode(histogram))
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

impl From<Packed> for PackedHistogram {
    fn from(packed: Packed) -> Self {
        Self(packed)
    }
}

/// A text that is no histogram in HdrHistogram's V2 encoding as base64.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("not an HdrHistogram in V2 encoding as base64")]
pub struct HistogramError;

/// JSON form of the histogram.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct HistogramForm {
    count: u64,
    p50: u64,
    p90: u64,
    p99: u64,
    p999: u64,
    max: u64,
    v2: String,
}

impl From<PackedHistogram> for HistogramForm {
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

impl TryFrom<HistogramForm> for PackedHistogram {
    type Error = HistogramError;

    fn try_from(form: HistogramForm) -> Result<Self, HistogramError> {
        Self::from_base64(&form.v2)
    }
}
