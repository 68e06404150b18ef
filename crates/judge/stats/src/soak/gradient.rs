//! From a cumulative counter to a rate in each second.

/// One reading of a cumulative counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CounterReading {
    /// When, in seconds from the start of the capture (its fetch index).
    pub second: f64,
    /// Value of the counter.
    pub value: f64,
}

/// True if these readings have rates: two or more, finite, in order of time.
pub(crate) fn check(readings: &[CounterReading]) -> Result<(), ReadingsError> {
    if readings.len() < 2 {
        let result = readings.len();
        return Err(ReadingsError::TooFew { actual: result });
    }
    for (index, reading) in readings.iter().enumerate() {
        if !(reading.second.is_finite() && reading.value.is_finite()) {
            return Err(ReadingsError::NotFinite { index });
        }
        if index > 0 && reading.second <= readings[index - 1].second {
            return Err(ReadingsError::OutOfOrder { index });
        }
    }
    Ok(())
}

/// The rate at each reading as `numpy.gradient` has it: central differences
/// within, to second order where the steps differ, and one-sided at the ends.
/// For readings that passed [`check`].
///
/// The arithmetic is NumPy's, term by term: between uneven steps a counter that
/// is constant has a rate of some rounding errors, and whether that is above
/// zero decides whether the second counts.
pub(crate) fn gradient(readings: &[CounterReading]) -> Vec<f64> {
    let sides = rates(readings);
    let (Some(&first), Some(&last)) = (sides.first(), sides.last()) else {
        return Vec::new();
    };
    let even = readings
        .windows(3)
        .all(|window| (step(&window[..2]) - step(&window[1..])).abs() <= 0.0);
    let within = readings.windows(3).map(|window| {
        let [before, after] = [step(&window[..2]), step(&window[1..])];
        let [first, second, third] = [0, 1, 2].map(|place: usize| window[place].value);
        if even {
            return (third - first) / (2.0 * before);
        }
        let of_one = -after / (before * (before + after));
        let of_two = (after - before) / (before * after);
        let of_three = before / (after * (before + after));
        of_one * first + of_two * second + of_three * third
    });
    std::iter::once(first).chain(within).chain([last]).collect()
}

/// From the first reading to the second, in seconds.
fn step(pair: &[CounterReading]) -> f64 {
    pair[1].second - pair[0].second
}

/// The mean rate between each two readings.
pub(crate) fn rates(readings: &[CounterReading]) -> Vec<f64> {
    readings
        .windows(2)
        .map(|pair| (pair[1].value - pair[0].value) / step(pair))
        .collect()
}

/// Reason why readings have no rates.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ReadingsError {
    /// A time or value that is NaN or infinite.
    #[error("the reading at index {index} is not finite")]
    NotFinite {
        /// Index, counted from zero.
        index: usize,
    },
    /// A reading that is not later than the one before.
    #[error("the reading at index {index} is not later than the one before")]
    OutOfOrder {
        /// Index, counted from zero.
        index: usize,
    },
    /// One reading has no rate.
    #[error("too few readings: {actual}, at least 2 are needed")]
    TooFew {
        /// Number of values.
        actual: usize,
    },
}
