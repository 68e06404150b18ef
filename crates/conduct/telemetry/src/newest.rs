//! The newest values of a run.

use std::collections::BTreeMap;

use stillwell_metric::{Labels, Sample, SeriesName, Value};

/// Maximum number of series that are kept beside those of the last beat.
pub(crate) const SERIES_MAX: usize = 50_000;

/// Number of beats after which a series without a new value has ended. Expensive ones come every ten beats.
const BEATS_KEPT: u64 = 60;

/// The newest number of each series of a run. A beat does not have all series: expensive ones come every ten seconds,
/// scraped ones when their page has answered. The last value of a series that has ended stays for some beats: a target
/// that starts many processes has many of them.
#[derive(Debug)]
pub(crate) struct NewestSamples {
    series_max: usize,
    beats: u64,
    /// Each sample with its beat.
    samples: BTreeMap<(SeriesName, Labels), (u64, Sample)>,
}

impl NewestSamples {
    /// Without samples. Beyond `series_max` series only those of the last beat are kept.
    pub(crate) const fn new(series_max: usize) -> Self {
        Self {
            series_max,
            beats: 0,
            samples: BTreeMap::new(),
        }
    }

    /// Adds the samples of a beat. Histograms are left out.
    pub(crate) fn add<'s>(&mut self, samples: impl IntoIterator<Item = &'s Sample>) {
        self.beats += 1;
        for sample in samples {
            if matches!(sample.value, Value::Histogram(_)) {
                continue;
            }
            let series = (sample.name.clone(), sample.labels.clone());
            self.samples.insert(series, (self.beats, sample.clone()));
        }
        let oldest = self.beats.saturating_sub(BEATS_KEPT);
        self.samples.retain(|_, (beat, _)| *beat > oldest);
        if self.samples.len() > self.series_max {
            self.samples.retain(|_, (beat, _)| *beat == self.beats);
        }
    }

    /// Returns the samples in the order of names and labels.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Sample> {
        self.samples.values().map(|(_, sample)| sample)
    }
}

#[cfg(test)]
mod tests {
    use stillwell_metric::catalogue as metric;

    use super::*;

    fn rss(value: u64) -> Sample {
        Sample::int(metric::TARGET_RSS, &Labels::none(), value)
    }

    fn pss(id: &str) -> Sample {
        Sample::int(metric::TARGET_PSS, &Labels::none().with("id", id), 7)
    }

    #[test]
    fn a_series_keeps_its_value_until_a_beat_has_another() {
        let mut newest = NewestSamples::new(10);
        newest.add(&[rss(1), pss("a")]);
        newest.add(&[rss(2)]);
        let samples: Vec<&Sample> = newest.iter().collect();
        assert_eq!(samples, [&pss("a"), &rss(2)]);
    }

    #[test]
    fn a_series_without_new_values_ends_after_some_beats() {
        let mut newest = NewestSamples::new(10);
        newest.add(&[pss("a")]);
        for _ in 1..BEATS_KEPT {
            newest.add(&[rss(1)]);
        }
        assert_eq!(newest.iter().count(), 2);
        newest.add(&[rss(1)]);
        let samples: Vec<&Sample> = newest.iter().collect();
        assert_eq!(samples, [&rss(1)]);
    }

    #[test]
    fn beyond_the_limit_only_series_of_the_last_beat_stay() {
        let mut newest = NewestSamples::new(2);
        newest.add(&[pss("a"), pss("b")]);
        newest.add(&[pss("c")]);
        let samples: Vec<&Sample> = newest.iter().collect();
        assert_eq!(samples, [&pss("c")]);
        newest.add(&[pss("d"), pss("e"), pss("f")]);
        assert_eq!(newest.iter().count(), 3);
    }
}
