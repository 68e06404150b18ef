//! The newest values of a run.

use std::collections::BTreeMap;

use stillwell_metric::{Labels, Sample, SeriesName, Value};
use stillwell_plan::ObserverPlan;
use stillwell_units::{Moment, Nanos};

/// Maximum number of series that are kept beside those of the last beat.
const SERIES_MAX: usize = 50_000;

/// The shortest time after which a series without a new value has ended.
const KEPT_MIN: Nanos = Nanos::from_secs(60);

/// The newest number of each series of a run. A beat does not have all series: expensive ones come every ten seconds,
/// scraped ones when their page has answered. The last value of a series that has ended stays for some time: a target
/// that starts many processes has many of them.
#[derive(Debug)]
pub(crate) struct NewestSamples {
    series_max: usize,
    /// Time after which a series without a new value has ended.
    kept: Nanos,
    /// Each sample with the moment of its beat.
    samples: BTreeMap<(SeriesName, Labels), (Moment, Sample)>,
}

impl NewestSamples {
    /// Without samples. A series stays for a minute after its last value, or for two periods of `observer` if that
    /// is longer.
    pub(crate) fn new(observer: &ObserverPlan) -> Self {
        let period = observer.period.max(observer.detail_period);
        Self {
            series_max: SERIES_MAX,
            kept: KEPT_MIN.max(period + period),
            samples: BTreeMap::new(),
        }
    }

    /// Adds the samples of a beat at `now`. Histograms are left out. Beyond the maximum number of series only those of
    /// this beat are kept.
    pub(crate) fn add<'s>(&mut self, now: Moment, samples: impl IntoIterator<Item = &'s Sample>) {
        for sample in samples {
            if matches!(sample.value, Value::Histogram(_)) {
                continue;
            }
            let series = (sample.name.clone(), sample.labels.clone());
            self.samples.insert(series, (now, sample.clone()));
        }
        self.samples
            .retain(|_, (beat, _)| now.since(*beat) < self.kept);
        if self.samples.len() > self.series_max {
            self.samples.retain(|_, (beat, _)| *beat == now);
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

    fn at(seconds: u64) -> Moment {
        Moment::default() + Nanos::from_secs(seconds)
    }

    fn observer(period: Nanos, detail_period: Nanos) -> ObserverPlan {
        ObserverPlan {
            period,
            detail_period,
            ..ObserverPlan::default()
        }
    }

    #[test]
    fn a_series_keeps_its_value_until_a_beat_has_another() {
        let mut newest = NewestSamples::new(&ObserverPlan::default());
        newest.add(at(1), &[rss(1), pss("a")]);
        newest.add(at(2), &[rss(2)]);
        let samples: Vec<&Sample> = newest.iter().collect();
        assert_eq!(samples, [&pss("a"), &rss(2)]);
    }

    #[test]
    fn a_series_without_new_values_ends_after_a_minute_or_two_periods() {
        let short = Nanos::from_millis(10);
        let [second, minute] = [1, 60].map(Nanos::from_secs);
        let table = [
            (short, Nanos::from_secs(10), 60),
            (second, Nanos::from_secs(30), 60),
            (second, minute, 120),
            (minute, second, 120),
        ];
        for (period, detail_period, kept) in table {
            let mut newest = NewestSamples::new(&observer(period, detail_period));
            newest.add(at(0), &[pss("a")]);
            let mut now = at(0);
            while now + period < at(kept) {
                now = now + period;
                newest.add(now, &[rss(1)]);
            }
            assert_eq!(newest.iter().count(), 2, "{period}, {detail_period}");
            newest.add(at(kept), &[rss(1)]);
            let samples: Vec<&Sample> = newest.iter().collect();
            assert_eq!(samples, [&rss(1)], "{period}, {detail_period}");
        }
    }

    #[test]
    fn beyond_the_limit_only_series_of_the_last_beat_stay() {
        let mut newest = NewestSamples {
            series_max: 2,
            ..NewestSamples::new(&ObserverPlan::default())
        };
        newest.add(at(1), &[pss("a"), pss("b")]);
        newest.add(at(2), &[pss("c")]);
        let samples: Vec<&Sample> = newest.iter().collect();
        assert_eq!(samples, [&pss("c")]);
        newest.add(at(3), &[pss("d"), pss("e"), pss("f")]);
        assert_eq!(newest.iter().count(), 3);
    }
}
