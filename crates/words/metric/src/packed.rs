//! Histograms that take little room.

use std::io::Read as _;

use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};

use crate::recorder::{
    LONGEST, SIGNIFICANT_DIGITS, add_histogram, decode_histogram, empty_histogram,
};

/// First four bytes of the V2 encoding.
const COOKIE: u32 = 0x1c84_9313;
/// The same of the compressed one, which is the length and the deflated encoding after it.
const COMPRESSED_COOKIE: u32 = 0x1c84_9314;
/// Length of the head: cookie, length, offset, digits, bounds and ratio.
const HEAD: usize = 40;
/// Maximum length of an encoding: a histogram has about 34,000 buckets of at most nine bytes.
const ENCODING_MAX: u64 = 1 << 20;
/// Bits of the index within a bucket of the second and later ones, with three significant digits.
const HALF_BITS: u32 = 10;

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

    /// Returns the histogram that `bytes` encode in V2, or `None` if they do not. It takes a fraction
    /// of the time of unpacking it.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if buckets(bytes).is_some_and(|buckets| !buckets.is_empty()) {
            return Some(Self {
                bytes: bytes.into(),
            });
        }
        decode_histogram(bytes).map(|histogram| Self::new(&histogram))
    }

    /// Adds its samples to `all`, which is as [`empty_histogram`] makes it.
    pub fn add_to(&self, all: &mut Histogram<u64>) {
        match buckets(&self.bytes) {
            Some(buckets) => {
                for (value, count) in buckets {
                    // Its bounds are those of `all`.
                    all.record_n(value, count).unwrap_or_default();
                }
            }
            None if self.is_empty() => {}
            None => add_histogram(all, &self.unpack()),
        }
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

/// Returns the lowest value and the count of each bucket that has samples. `None` for anything but a
/// compressed histogram with the usual bounds.
fn buckets(bytes: &[u8]) -> Option<Vec<(u64, u64)>> {
    let (cookie, rest) = split_number(bytes)?;
    let (length, rest) = split_number(rest)?;
    if cookie != COMPRESSED_COOKIE {
        return None;
    }
    let deflated = rest.get(..usize::try_from(length).ok()?)?;
    let mut content = Vec::new();
    let mut inflated = ZlibDecoder::new(deflated).take(ENCODING_MAX);
    inflated.read_to_end(&mut content).ok()?;
    let (head, mut counts) = content.split_at_checked(HEAD)?;
    if head != usual_head(counts.len())? {
        return None;
    }
    let mut buckets = Vec::new();
    let mut index = 0_u64;
    while !counts.is_empty() {
        let number = read_varint(&mut counts)?;
        let (half, is_negative) = (number >> 1, number & 1 == 1);
        if is_negative {
            // That many buckets without samples.
            index = index.checked_add(half)?.checked_add(1)?;
            continue;
        }
        let value = lowest_value(index)?;
        if half > 0 {
            buckets.push((value, half));
        }
        index += 1;
    }
    Some(buckets)
}

/// Returns the head of an encoding with the usual bounds and this length of counts.
fn usual_head(counts: usize) -> Option<[u8; HEAD]> {
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(&COOKIE.to_be_bytes());
    head[4..8].copy_from_slice(&u32::try_from(counts).ok()?.to_be_bytes());
    head[12..16].copy_from_slice(&u32::from(SIGNIFICANT_DIGITS).to_be_bytes());
    head[16..24].copy_from_slice(&1_u64.to_be_bytes());
    head[24..32].copy_from_slice(&LONGEST.as_u64().to_be_bytes());
    head[32..].copy_from_slice(&1_f64.to_be_bytes());
    Some(head)
}

/// Returns the lowest value of the bucket with this index; `None` above the longest time.
fn lowest_value(index: u64) -> Option<u64> {
    let half = 1_u64 << HALF_BITS;
    let bucket = (index >> HALF_BITS).saturating_sub(1);
    let below = index - (bucket << HALF_BITS);
    debug_assert!(below < 2 * half);
    let value = below.checked_shl(u32::try_from(bucket).ok().filter(|bits| *bits < 48)?)?;
    (value <= LONGEST.as_u64()).then_some(value)
}

fn split_number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_be_bytes(*number), rest))
}

/// Takes a number of seven bits in each byte, lowest first; a ninth byte has eight.
fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for place in 0..9_u32 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let byte = u64::from(*byte);
        if place == 8 {
            return Some(number | byte << 56);
        }
        number |= (byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            break;
        }
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn adding_is_as_unpacking_and_adding_for_all_samples(
            samples in prop::collection::vec((0..=LONGEST.as_u64(), 1_u64..1 << 40), 0..40),
            short in prop::collection::vec(0_u64..5_000, 0..40),
        ) {
            let mut histogram = empty_histogram();
            for (value, count) in samples {
                histogram.record_n(value, count).unwrap();
            }
            for value in short {
                histogram.record(value).unwrap();
            }
            let packed = PackedHistogram::from_bytes(&PackedHistogram::encode(&histogram)).unwrap();
            prop_assert_eq!(&packed, &PackedHistogram::new(&histogram));
            prop_assert!(packed.is_empty() || buckets(packed.bytes()).is_some());
            let mut sum = histogram.clone();
            packed.add_to(&mut sum);
            add_histogram(&mut histogram, &packed.unpack());
            prop_assert_eq!(sum, histogram);
        }

        #[test]
        fn no_bytes_are_a_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200), is_compressed: bool) {
            if is_compressed {
                let mut histogram = empty_histogram();
                histogram.record(7).unwrap();
                let packed = PackedHistogram::encode(&histogram);
                let kept = packed.len().saturating_sub(bytes.len() / 20);
                bytes.splice(..0, packed[..kept].iter().copied());
            }
            if let Some(packed) = PackedHistogram::from_bytes(&bytes) {
                packed.add_to(&mut empty_histogram());
            }
        }
    }

    #[test]
    fn a_histogram_with_other_bounds_is_none_of_the_usual_ones() {
        let mut small = Histogram::<u64>::new_with_bounds(1, 1_000, 2).unwrap();
        small.record(7).unwrap();
        assert_eq!(buckets(&PackedHistogram::encode(&small)), None);
    }

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
