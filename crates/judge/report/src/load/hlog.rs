//! HdrHistogram's log of intervals, version 1.3: written, and read.

use stillwell_units::{Nanos, float_from_u64};

use super::{
    GLOBAL, LoadReport, LoadResult, LoadStatistic, Moments, PackedHistogram, StatisticUnit, id,
    merge_histograms,
};
use crate::document::escape::is_steering;

/// Divisor of the largest value of a line: nanoseconds are written in milliseconds.
const MAX_DIVISOR: f64 = 1e6;

/// A log of histograms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistogramLog {
    /// To what the entries' starts are added, since the Unix epoch.
    pub base: Nanos,
    /// In the order of the file.
    pub entries: Vec<HistogramLogEntry>,
}

/// One line of a log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistogramLogEntry {
    /// Name that separates the line from other lines of the same interval.
    pub tag: Option<String>,
    /// Since the log's base, to the millisecond in a file.
    pub start: Nanos,
    /// Length of the interval, likewise.
    pub length: Nanos,
    /// Samples of the interval.
    pub histogram: PackedHistogram,
}

impl HistogramLog {
    /// The histograms of a load: latency from the intended time as the log's main
    /// series without a tag, interval by interval; beside it, with their tags,
    /// latency from the sent time and lateness; and every other statistic of the
    /// whole load as one interval.
    #[must_use]
    pub fn of(report: &LoadReport) -> Self {
        let global = &report.global;
        let mut entries = Vec::new();
        let series = [id::RESPONSE_TIME, id::SERVICE_TIME, id::LATENESS];
        let whole = |statistic: &LoadStatistic| {
            let packed = statistic
                .histogram
                .as_ref()
                .filter(|packed| !packed.is_empty())?;
            Some(HistogramLogEntry {
                tag: tag_of(&statistic.id),
                start: Nanos::ZERO,
                length: global.execution_duration,
                histogram: packed.clone(),
            })
        };
        let by_interval = !report.intervals.is_empty();
        let statistics = global.statistics.iter();
        let remaining =
            statistics.filter(|statistic| !by_interval || !series.contains(&&*statistic.id));
        entries.extend(remaining.filter_map(whole));
        for class in &global.classes {
            entries.extend(
                [&class.response_time, &class.service_time]
                    .map(whole)
                    .into_iter()
                    .flatten(),
            );
        }
        for interval in &report.intervals {
            let histograms = [
                &interval.response_time,
                &interval.service_time,
                &interval.lateness,
            ];
            for (name, histogram) in series.into_iter().zip(histograms) {
                // The main series has a line even where nothing ended.
                if name == id::RESPONSE_TIME || !histogram.is_empty() {
                    entries.push(HistogramLogEntry {
                        tag: tag_of(name),
                        start: interval.start,
                        length: interval.length,
                        histogram: histogram.clone(),
                    });
                }
            }
        }
        Self {
            base: global.execution_start,
            entries,
        }
    }

    /// Writes the log as text. HdrHistogram's tools show the lines without a tag, unless a tag
    /// is given.
    #[must_use]
    pub fn write(&self, version: &str) -> String {
        let base = float_from_u64(self.base.as_u64() / 1_000_000) / 1e3;
        let mut text = format!(
            "#[Logged with stillwell {version}]\n\
             #[Histogram log format version 1.3]\n\
             #[StartTime: {base:.3} (seconds since epoch)]\n\
             #[BaseTime: {base:.3} (seconds since epoch)]\n"
        );
        for entry in &self.entries {
            let histogram = entry.histogram.unpack();
            let tag = entry.tag.as_ref();
            let tag = tag.map_or_else(String::new, |tag| format!("Tag={},", clean(tag)));
            let max = float_from_u64(histogram.max()) / MAX_DIVISOR;
            let encoded = if histogram.is_empty() {
                PackedHistogram::encode(&histogram)
            } else {
                entry.histogram.to_base64()
            };
            text.push_str(&format!(
                "{tag}{:.3},{:.3},{max:.3},{encoded}\n",
                entry.start.as_secs_f64(),
                entry.length.as_secs_f64(),
            ));
        }
        text
    }

    /// The log that `text` holds.
    ///
    /// # Errors
    /// [`HistogramLogError`] with the first line that is not one of a log.
    pub fn read(text: &str) -> Result<Self, HistogramLogError> {
        let mut log = Self::default();
        let mut start_time = None;
        let mut base_time = None;
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if let Some(comment) = line.strip_prefix('#') {
                start_time = start_time.or_else(|| header(comment, "[StartTime:"));
                base_time = base_time.or_else(|| header(comment, "[BaseTime:"));
            } else if !line.is_empty() && !line.starts_with('"') {
                let entry = read_entry(line).ok_or(HistogramLogError::Line { line: index + 1 })?;
                log.entries.push(entry);
            }
        }
        let Some(first) = log.entries.first().map(|entry| entry.start) else {
            return Err(HistogramLogError::Empty);
        };
        // Without a base, starts that are as large as a date are dates.
        let absolute = base_time.is_none() && first >= Nanos::from_secs(365 * 86_400);
        if absolute {
            let base = start_time.unwrap_or(first).min(first);
            for entry in &mut log.entries {
                entry.start = entry.start.saturating_sub(base);
            }
            log.base = base;
        } else {
            log.base = base_time.or(start_time).unwrap_or_default();
        }
        Ok(log)
    }

    /// All intervals of each tag together, as the result of a load of which only
    /// the statistics are known. What has no tag is latency.
    #[must_use]
    pub fn to_result(&self) -> LoadResult {
        let mut result = LoadResult::named(GLOBAL);
        result.execution_start = self.base;
        let ends = self.entries.iter().map(|line| line.start + line.length);
        result.execution_duration = ends.max().unwrap_or_default();
        for entry in &self.entries {
            let name = entry.tag.as_deref().unwrap_or(id::RESPONSE_TIME);
            if result.statistic(name).is_some() {
                continue;
            }
            let same = self.entries.iter().filter(|line| line.tag == entry.tag);
            let all = merge_histograms(same.map(|line| line.histogram.unpack()));
            result.add_statistic(LoadStatistic {
                id: name.to_owned(),
                unit: StatisticUnit::Nanoseconds,
                moments: Moments::of(&all),
                histogram: Some(PackedHistogram::new(&all)),
            });
        }
        result
    }
}

/// A text that is no log of histograms.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum HistogramLogError {
    /// A line that is neither a comment nor an interval with a histogram in V2
    /// encoding.
    #[error("line {line} is not an interval with a histogram in V2 encoding")]
    Line {
        /// Counted from 1.
        line: usize,
    },
    /// No interval at all.
    #[error("it contains no interval with a histogram")]
    Empty,
}

/// Latency from the intended time is the main series, and has no tag.
fn tag_of(id: &str) -> Option<String> {
    (id != id::RESPONSE_TIME).then(|| id.to_owned())
}

/// Readers split lines at these.
fn clean(tag: &str) -> String {
    let clean = |c: char| {
        if c == ',' || c.is_whitespace() || is_steering(c) {
            '_'
        } else {
            c
        }
    };
    tag.chars().map(clean).collect()
}

/// The seconds behind `name` in a comment.
fn header(comment: &str, name: &str) -> Option<Nanos> {
    let rest = comment.trim_start().strip_prefix(name)?;
    seconds(rest.split_whitespace().next()?)
}

fn read_entry(line: &str) -> Option<HistogramLogEntry> {
    let mut parts = line
        .split([',', ' '])
        .filter(|part| !part.is_empty())
        .peekable();
    let tag = parts.next_if(|part| part.starts_with("Tag="));
    let start = seconds(parts.next()?)?;
    let length = seconds(parts.next()?)?;
    // The largest value is for readers.
    parts.next()?;
    let histogram = PackedHistogram::from_base64(parts.next()?).ok()?;
    let tag = tag.and_then(|tag| tag.strip_prefix("Tag="));
    parts.next().is_none().then(|| HistogramLogEntry {
        tag: tag.map(str::to_owned),
        start,
        length,
        histogram,
    })
}

fn seconds(text: &str) -> Option<Nanos> {
    let seconds: f64 = text.parse().ok()?;
    let fits = (0.0..1e10).contains(&seconds);
    // To the microsecond, beyond which a float of today's date is noise.
    fits.then(|| {
        Nanos::new(Nanos::from_secs_f64(seconds).as_u64().saturating_add(500) / 1000 * 1000)
    })
}
