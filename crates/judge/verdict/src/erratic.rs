//! Evidence that an experiment cannot be measured steadily.

use std::fmt;

use stillwell_units::Nanos;
use stillwell_units::human::{nanos, percent};

/// A sign, in the primary goal's numbers, that an experiment cannot be measured
/// steadily. It gates nothing: the verdict follows from its interval.
#[derive(Clone, Debug, PartialEq)]
pub enum ErraticSign {
    /// At this noise the interval will not become narrower than the tolerance on
    /// each side within the planned pairs.
    TooNoisy {
        /// Half of the interval's width that the last look will likely have.
        half_width: f64,
        /// Its expected value.
        tolerance: f64,
        /// The same as a time, for goals that are times.
        tolerance_time: Option<Nanos>,
        /// The last look.
        pairs: u32,
    },
    /// The changes of the pairs lie further to one side than chance explains.
    OneSided {
        /// Number of pairs.
        pairs: u32,
        /// Third standardized moment; above zero where the far ones are increases.
        skewness: f64,
    },
    /// The numbers of a variant's runs fall into two groups.
    TwoGroups {
        /// The variant.
        variant: String,
        /// Runs in the lower group.
        lower: u32,
        /// Runs in the upper group.
        upper: u32,
        /// By how much the groups' means differ: as a share of the lower one, or in the
        /// goal's own unit where its changes are differences.
        apart: f64,
    },
}

impl fmt::Display for ErraticSign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooNoisy {
                half_width,
                tolerance,
                tolerance_time,
                pairs,
            } => {
                let time = tolerance_time.map(|time| format!(" ({})", nanos(time)));
                write!(
                    f,
                    "noisy: after {pairs} pairs, the interval is likely ±{} wide, and the tolerance is {}{}; \
                     use longer runs, more pairs or a larger tolerance, or stop other programs; CPU time and \
                     memory vary less than throughput and latency",
                    percent(*half_width),
                    percent(*tolerance),
                    time.unwrap_or_default()
                )
            }
            Self::OneSided { pairs, skewness } => write!(
                f,
                "one-sided: some of {pairs} pairs lie far to one side of the others (skewness \
                 {skewness:+.1}); the interval misses the true mean in up to 14 % of such \
                 experiments, not 5 %; look for rare slow or fast runs, or take more pairs"
            ),
            Self::TwoGroups {
                variant,
                lower,
                upper,
                apart,
            } => write!(
                f,
                "two groups: {lower} runs of {variant} lie together and {upper} others {} higher; \
                 look for what differs between starts, such as memory layout or CPU placement",
                percent(*apart)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2 % of a latency of 127 µs are less than what runs differ by, which the share alone does not show.
    #[test]
    fn a_tolerance_of_a_latency_is_also_a_time() {
        let noisy = |tolerance_time| ErraticSign::TooNoisy {
            half_width: 0.15,
            tolerance: 0.02,
            tolerance_time,
            pairs: 10,
        };
        let text = noisy(Some(Nanos::new(2540))).to_string();
        let expected =
            "the tolerance is 2.0 % (2.54 µs); use longer runs, more pairs or a larger tolerance";
        assert!(text.contains(expected), "{text}");
        assert!(
            noisy(None)
                .to_string()
                .contains("the tolerance is 2.0 %; use")
        );
    }
}
