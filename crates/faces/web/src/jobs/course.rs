//! Figures of a running command over time, from the lines that it prints for this.

use std::ops::Deref;

use serde::Deserialize;

/// Begin of a line with figures, on standard error of commands with [`VARIABLE`].
pub(crate) const LINE: &[u8] = b"progress: ";
/// The variable that requests those lines, and its value.
pub(crate) const VARIABLE: (&str, &str) = ("STILLWELL_PROGRESS", "json");

/// Maximum number of points; more are thinned out.
const POINTS_MAX: usize = 600;
/// Maximum number of lines of a chart.
const SERIES_MAX: usize = 4;

/// Figures of one second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CoursePoint {
    /// Since the start of the command.
    pub(crate) seconds: f64,
    /// Requests or events each second.
    pub(crate) rate: f64,
    /// 99th percentile of the latency in nanoseconds.
    pub(crate) p99: Option<f64>,
}

/// A result so far, such as the change of an experiment or the capacity of a target.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CourseInterval {
    /// Name of the number.
    pub(crate) name: String,
    /// Its unit; `share` for a change.
    pub(crate) unit: String,
    /// The latest interval in words.
    pub(crate) text: String,
    /// The intervals over time.
    pub(crate) points: Points<IntervalPoint>,
}

/// An interval at one time. A value or an end may be unknown yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct IntervalPoint {
    /// Since the start of the command.
    pub(crate) seconds: f64,
    pub(crate) value: Option<f64>,
    pub(crate) lower: Option<f64>,
    pub(crate) upper: Option<f64>,
}

/// Every `stride`-th of all points so far, and the latest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Points<T> {
    kept: Vec<T>,
    count: usize,
    stride: usize,
}

/// Figures over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Course {
    /// Those of each second, by variant.
    pub(crate) seconds: Vec<(String, Points<CoursePoint>)>,
    /// Results so far, the latest last.
    pub(crate) intervals: Vec<CourseInterval>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Second {
        seconds: f64,
        series: String,
        rate: f64,
        p99_ns: Option<f64>,
    },
    Interval {
        seconds: f64,
        interval: String,
        unit: String,
        text: String,
        value: Option<f64>,
        lower: Option<f64>,
        upper: Option<f64>,
    },
}

impl Course {
    /// Adds a line of a command. Other text is ignored.
    pub(crate) fn add(&mut self, line: &[u8]) {
        let json = line.strip_prefix(LINE).unwrap_or(line);
        match serde_json::from_slice::<Line>(json) {
            Ok(Line::Second {
                seconds,
                series,
                rate,
                p99_ns,
            }) => {
                let point = CoursePoint {
                    seconds,
                    rate,
                    p99: p99_ns,
                };
                self.add_second(series, point);
            }
            Ok(Line::Interval {
                seconds,
                interval,
                unit,
                text,
                value,
                lower,
                upper,
            }) => {
                let point = IntervalPoint {
                    seconds,
                    value,
                    lower,
                    upper,
                };
                self.add_interval(interval, unit, text, point);
            }
            Err(_) => {}
        }
    }

    fn add_second(&mut self, series: String, point: CoursePoint) {
        let all = &mut self.seconds;
        match all.iter().position(|(name, _)| *name == series) {
            Some(place) => all[place].1.push(point),
            None if all.len() < SERIES_MAX => {
                let stride = all.first().map_or(1, |(_, points)| points.stride);
                all.push((series, Points::new(point, stride)));
            }
            None => {}
        }
        let count: usize = all.iter().map(|(_, points)| points.len()).sum();
        if count > POINTS_MAX {
            all.iter_mut().for_each(|(_, points)| points.thin_out());
        }
    }

    /// Adds an interval. The oldest number makes room for a new one: a suite has one for each experiment.
    fn add_interval(&mut self, name: String, unit: String, text: String, point: IntervalPoint) {
        let all = &mut self.intervals;
        match all.iter_mut().find(|interval| interval.name == name) {
            Some(interval) => {
                interval.text = text;
                interval.points.push(point);
                if interval.points.len() > POINTS_MAX / SERIES_MAX {
                    interval.points.thin_out();
                }
            }
            None => {
                if all.len() == SERIES_MAX {
                    all.remove(0);
                }
                all.push(CourseInterval {
                    name,
                    unit,
                    text,
                    points: Points::new(point, 1),
                });
            }
        }
    }
}

impl<T> Points<T> {
    fn new(point: T, stride: usize) -> Self {
        Self {
            kept: vec![point],
            count: 1,
            stride,
        }
    }

    fn push(&mut self, point: T) {
        if !(self.count - 1).is_multiple_of(self.stride) {
            // It was only kept as the latest.
            self.kept.pop();
        }
        self.kept.push(point);
        self.count += 1;
    }

    /// Doubles the stride.
    fn thin_out(&mut self) {
        self.stride *= 2;
        let latest = self.kept.len();
        let mut number = 0_usize;
        self.kept.retain(|_| {
            number += 1;
            number % 2 == 1 || number == latest
        });
    }
}

impl<T> Deref for Points<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_series_and_other_text_is_ignored() {
        let mut course = Course::default();
        for line in [
            r#"progress: {"seconds": 1.0, "series": "a", "rate": 500.0, "p99_ns": 2e6}"#,
            r#"progress: {"seconds": 2.0, "series": "b", "rate": 0.0, "p99_ns": null, "more": 1}"#,
            "progress: {",
            "progress: 1",
        ] {
            course.add(line.as_bytes());
        }
        let [(a, first), (b, second)] = course.seconds.as_slice() else {
            panic!("{course:?}");
        };
        assert_eq!((a.as_str(), b.as_str()), ("a", "b"));
        assert_eq!((first[0].p99, second[0].p99), (Some(2e6), None));
    }

    #[test]
    fn intervals_are_kept_by_name_and_the_oldest_makes_room() {
        let mut course = Course::default();
        for second in 0..1_000 {
            let number = second / 200;
            let line = format!(
                r#"progress: {{"seconds": {second}, "interval": "{number}", "unit": "share", "text": "{second}",
                    "value": 0.01, "lower": null, "upper": 0.1}}"#
            );
            course.add(line.as_bytes());
        }
        let names = course
            .intervals
            .iter()
            .map(|interval| interval.name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["1", "2", "3", "4"]);
        let last = &course.intervals[3];
        assert_eq!(last.text, "999");
        assert_eq!(
            (last.points[0].lower, last.points[0].upper),
            (None, Some(0.1))
        );
        assert!(last.points.len() <= POINTS_MAX / SERIES_MAX);
        assert!(course.seconds.is_empty());
    }

    #[test]
    fn a_long_course_keeps_its_whole_time_and_few_points() {
        let mut course = Course::default();
        for second in 0..10_000 {
            for series in ["a", "b", "c", "d", "e"] {
                let line = format!(r#"{{"seconds": {second}, "series": "{series}", "rate": 1}}"#);
                course.add(line.as_bytes());
            }
        }
        assert_eq!(course.seconds.len(), SERIES_MAX);
        for (_, points) in &course.seconds {
            assert!(points.len() <= POINTS_MAX, "{}", points.len());
            assert!(points[0].seconds < 1.0);
            assert!(points[points.len() - 1].seconds > 9_998.0);
            let pairs = points.windows(2);
            let gaps = pairs.map(|pair| pair[1].seconds - pair[0].seconds);
            let gaps: Vec<f64> = gaps.collect();
            // The latest point is kept between two strides.
            let full = &gaps[..gaps.len() - 1];
            let is_even = full.iter().all(|gap| (gap - full[0]).abs() < 0.5);
            assert!(is_even, "{gaps:?}");
        }
    }
}
