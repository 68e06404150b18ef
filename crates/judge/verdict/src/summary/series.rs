//! One number a run for every series: for goals on them, and to find what else
//! moved.

use std::collections::BTreeMap;

use stillwell_capture::{Point, Series};
use stillwell_metric::{Kind, Labels, catalogue};
use stillwell_plan::goal::Reduction;

use super::RunFigures;
use crate::limits;
use crate::window::{Growth, Window, time_mean};

/// By name and reduction; and how many were left out. Sums over a metric's
/// series come first, then those of each `id`, then single series, so what
/// is left out of too many is what fewest need.
pub(super) fn numbers(window: &Window<'_>, figures: &RunFigures) -> (BTreeMap<String, f64>, u32) {
    let mut metrics: BTreeMap<&str, Vec<(&Labels, &Series)>> = BTreeMap::new();
    for (name, labels, series) in window.table().iter() {
        if series.kind != Kind::Histogram {
            metrics
                .entry(name.as_str())
                .or_default()
                .push((labels, series));
        }
    }
    let mut numbers = Numbers {
        window,
        events: figures.measured.events_sent.filter(|events| *events > 0.0),
        result: BTreeMap::new(),
        left_out: 0,
    };
    for (name, series) in &metrics {
        numbers.add(name, series);
    }
    for (name, series) in &metrics {
        let mut by_id: BTreeMap<&str, Vec<(&Labels, &Series)>> = BTreeMap::new();
        for (labels, series) in series {
            if let Some(id) = labels.value("id") {
                by_id.entry(id).or_default().push((labels, series));
            }
        }
        for (id, series) in by_id {
            numbers.add(&format!("{name}['{id}']"), &series);
        }
    }
    for (name, series) in metrics.iter().filter(|(_, series)| series.len() > 1) {
        for (labels, series) in series {
            numbers.add(&format!("{name}{}", braced(labels)), &[(labels, series)]);
        }
    }
    (numbers.result, numbers.left_out)
}

fn braced(labels: &Labels) -> String {
    let pairs: Vec<String> = labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    format!("{{{}}}", pairs.join(","))
}

struct Numbers<'w> {
    window: &'w Window<'w>,
    events: Option<f64>,
    result: BTreeMap<String, f64>,
    left_out: u32,
}

impl Numbers<'_> {
    fn add(&mut self, name: &str, series: &[(&Labels, &Series)]) {
        if self.result.len() >= limits::SERIES_MAX {
            self.left_out = self.left_out.saturating_add(1);
            return;
        }
        let mut keep = |reduction: Reduction, value: Option<f64>| {
            if let Some(value) = value.filter(|value| value.is_finite()) {
                let key = format!("{name}:{}", reduction.name());
                self.result.insert(key, value);
            }
        };
        if series
            .iter()
            .all(|(_, series)| series.kind == Kind::Counter)
        {
            let grown = summed(series, |labels, series| {
                match scrapes_of(self.window, labels) {
                    Some(scrapes) => scraped_growth(self.window, scrapes, series),
                    None => growth(self.window, series),
                }
            });
            let whole = self.window.length().as_secs_f64();
            let growths = grown.map(|growths| {
                let rate = growths.iter().map(|growth| self.window.rate(*growth));
                // Events are of the whole window; the first scrape may be later than its start.
                let value = growths
                    .iter()
                    .map(|growth| growth.value * (whole / growth.length.as_secs_f64()));
                (rate.sum::<f64>(), value.sum::<f64>())
            });
            keep(Reduction::Rate, growths.map(|(rate, _)| rate));
            let per_event = growths.zip(self.events);
            let per_event = per_event.map(|((_, grown), events)| grown / events);
            keep(Reduction::PerEvent, per_event);
        } else {
            let means = summed(series, |_, series| time_mean(self.window.points(series)));
            keep(Reduction::Mean, means.map(|means| means.iter().sum()));
            keep(Reduction::Peak, peak(self.window, series));
        }
    }
}

fn summed<T>(
    series: &[(&Labels, &Series)],
    part: impl Fn(&Labels, &Series) -> Option<T>,
) -> Option<Vec<T>> {
    let parts = series.iter().map(|(labels, series)| part(labels, series));
    parts.collect()
}

/// Growth of a counter; one that is first seen while measuring was at zero
/// before, as counters are that are made when first counted.
pub(super) fn growth(window: &Window<'_>, series: &Series) -> Option<Growth> {
    if !appears(window, series) {
        return window.growth(series);
    }
    let end = series.at_or_after(window.end)?;
    Some(Growth {
        value: end.value.number()?,
        length: window.length(),
    })
}

/// Returns true if `series` is first seen while measuring.
fn appears(window: &Window<'_>, series: &Series) -> bool {
    let first = series.points.first();
    first.is_some_and(|first| window.start < first.moment && first.moment <= window.end)
}

/// Returns the successful scrapes of the page that a series with these labels is from; `None` if it
/// is from no page. Its counters are then Stillwell's, and do not begin again with the target.
fn scrapes_of<'w>(window: &Window<'w>, labels: &Labels) -> Option<&'w Series> {
    let url = labels.value("source")?;
    let mut pages = window.table().of(catalogue::SCRAPE_OK);
    let page = pages.find(|(page, _)| page.value("url") == Some(url));
    page.map(|(_, scrapes)| scrapes)
}

/// Growth of a scraped counter. One that is first seen while measuring was at zero before if the
/// page had been read without it; otherwise its total at the start is unknown.
fn scraped_growth(window: &Window<'_>, scrapes: &Series, series: &Series) -> Option<Growth> {
    let all = scrapes.points.iter();
    let mut earlier = all.take_while(|point| point.moment <= window.start);
    let is_read = |point: &Point| point.value.number().is_some_and(|count| count > 0.0);
    let is_new = appears(window, series) && earlier.any(is_read);
    window.growth_over_restarts(series, is_new)
}

/// The largest sum over the series at any beat.
fn peak(window: &Window<'_>, series: &[(&Labels, &Series)]) -> Option<f64> {
    let mut beats: BTreeMap<_, f64> = BTreeMap::new();
    for (_, series) in series {
        for Point { moment, value, .. } in window.points(series) {
            *beats.entry(*moment).or_insert(0.0) += value.number()?;
        }
    }
    beats.into_values().max_by(f64::total_cmp)
}
