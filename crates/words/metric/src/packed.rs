//! Histograms that take little room.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};

use crate::recorder::empty_histogram;

/// A histogram in HdrHistogram's compressed V2 encoding: some hundred bytes where
/// the live one takes some hundred thousand. The default is one without samples.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PackedHistogram {
    bytes: Box<[u8]>,
}

impl PackedHistogram {
    /// Packs `histogram`; one without samples packs to nothing.
    #[must_use]
    pub fn new(histogram: &Histogram<u64>) -> Self {
        if histogram.is_empty() {
            return Self::default();
        }
        Self {
            bytes: Self::encode(histogram).into(),
        }
    }

    /// Any histogram in the compressed V2 encoding, also one without samples.
    #[must_use]
    pub fn encode(histogram: &Histogram<u64>) -> Vec<u8> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(histogram, &mut bytes)
            .unwrap_or_else(|_| unreachable!("a vector takes every byte"));
        bytes
    }

    /// Returns true without samples.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The encoding; nothing without samples.
    #[must_use]
    pub const fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The histogram.
    #[must_use]
    pub fn unpack(&self) -> Histogram<u64> {
        if self.is_empty() {
            return empty_histogram();
        }
        Deserializer::new()
            .deserialize(&mut &*self.bytes)
            .unwrap_or_else(|_| unreachable!("these bytes were made of a histogram"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_out_again() {
        let mut histogram = empty_histogram();
        assert!(PackedHistogram::new(&histogram).is_empty());
        assert_eq!(PackedHistogram::default().unpack(), histogram);
        histogram.record_n(1_234_567, 3).unwrap();
        histogram.record(99).unwrap();
        let packed = PackedHistogram::new(&histogram);
        assert_eq!(packed.unpack(), histogram);
        assert!(packed.bytes().len() < 200, "{}", packed.bytes().len());
    }
}
