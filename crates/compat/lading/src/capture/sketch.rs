//! Histograms in lading's form: a sketch of the Datadog Agent, in protobuf.
//!
//! Its bins have logarithmic bounds: a value v ≥ 1 is in bin 1338 + ln v / ln 1.015625, rounded. So a bin is
//! accurate to 1/128. Fields: 2 count, 3 minimum, 4 maximum, 5 mean, 6 sum, 7 numbers of bins, and 8 the count
//! of each bin.

use prost::encoding;
use stillwell_metric::decode_histogram;
use stillwell_units::{float_from_u64, floor_to_u64};

/// The ratio of a bin's bounds.
const GAMMA: f64 = 1.015_625;
/// The bin of 1.
const BIN_OF_ONE: u64 = 1338;
/// A bin holds no more; another of its number follows.
const BIN_MAX: u64 = 65_535;

/// Returns the sketch of a histogram in the HdrHistogram V2 encoding; `None` if it is malformed or empty.
pub(super) fn sketch(histogram: &[u8]) -> Option<Vec<u8>> {
    let histogram = decode_histogram(histogram).filter(|histogram| !histogram.is_empty())?;
    let (mut numbers, mut held, mut sum) = (Vec::new(), Vec::new(), 0.0);
    for step in histogram.iter_recorded() {
        let (value, mut count) = (step.value_iterated_to(), step.count_at_value());
        sum += float_from_u64(value) * float_from_u64(count);
        let bin = bin_of(value);
        while count > 0 {
            let bin_count = count.min(BIN_MAX);
            numbers.push(bin.cast_signed());
            held.push(bin_count);
            count -= bin_count;
        }
    }
    let count = histogram.len();
    let mut bytes = Vec::new();
    encoding::uint64::encode(2, &count, &mut bytes);
    let facts = [
        (3, float_from_u64(histogram.min())),
        (4, float_from_u64(histogram.max())),
        (5, sum / float_from_u64(count)),
        (6, sum),
    ];
    for (field, fact) in facts {
        encoding::double::encode(field, &fact, &mut bytes);
    }
    encoding::sint64::encode_packed(7, &numbers, &mut bytes);
    encoding::uint64::encode_packed(8, &held, &mut bytes);
    Some(bytes)
}

fn bin_of(value: u64) -> u64 {
    if value == 0 {
        return 0;
    }
    let steps = float_from_u64(value).ln() / GAMMA.ln();
    BIN_OF_ONE + floor_to_u64(steps.round_ties_even())
}

#[cfg(test)]
mod tests {
    use stillwell_metric::{empty_histogram, encode_histogram};

    use super::*;

    fn read_varint(bytes: &mut &[u8]) -> u64 {
        encoding::decode_varint(bytes).unwrap()
    }

    #[test]
    fn a_sketch_holds_all_values_within_its_accuracy() {
        let mut histogram = empty_histogram();
        let values = [1_u64, 2, 1000, 50_000, 3_000_000, 12_000_000_000];
        for value in values {
            histogram.record(value).unwrap();
        }
        histogram.record_n(777, 100_000).unwrap();
        let bytes = sketch(&encode_histogram(&histogram)).unwrap();
        let mut rest = bytes.as_slice();
        assert_eq!(read_varint(&mut rest), 2 << 3);
        assert_eq!(read_varint(&mut rest), 100_006);
        for field in 3..=6 {
            assert_eq!(read_varint(&mut rest), field << 3 | 1);
            rest = &rest[8..];
        }
        let mut lists = Vec::new();
        for field in 7..=8 {
            assert_eq!(read_varint(&mut rest), field << 3 | 2);
            let length = usize::try_from(read_varint(&mut rest)).unwrap();
            let (mut inner, behind) = rest.split_at(length);
            rest = behind;
            let mut list = Vec::new();
            while !inner.is_empty() {
                list.push(read_varint(&mut inner));
            }
            lists.push(list);
        }
        assert!(rest.is_empty());
        let [numbers, held] = lists.try_into().unwrap();
        assert_eq!(numbers.len(), held.len());
        assert_eq!(held.iter().sum::<u64>(), 100_006);
        assert!(held.iter().all(|held| *held <= BIN_MAX));
        for value in values {
            let near = numbers.iter().any(|number| {
                let steps = float_from_u64(number / 2) - float_from_u64(BIN_OF_ONE);
                let middle = (GAMMA.ln() * steps).exp();
                (middle / float_from_u64(value) - 1.0).abs() < 0.01
            });
            assert!(near, "{value}");
        }
    }

    #[test]
    fn what_is_no_histogram_or_empty_has_none() {
        assert_eq!(sketch(b"no"), None);
        assert_eq!(sketch(&encode_histogram(&empty_histogram())), None);
    }
}
