//! Figures of a running command over time, from the lines that it prints for this.

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

/// Figures over time, by variant.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Course(pub(crate) Vec<(String, Vec<CoursePoint>)>);

#[derive(Deserialize)]
struct Line {
    seconds: f64,
    series: String,
    rate: f64,
    p99_ns: Option<f64>,
}

impl Course {
    /// Adds a line of a command. Other text is ignored.
    pub(crate) fn add(&mut self, line: &[u8]) {
        let json = line.strip_prefix(LINE).unwrap_or(line);
        let Ok(line) = serde_json::from_slice::<Line>(json) else {
            return;
        };
        let point = CoursePoint {
            seconds: line.seconds,
            rate: line.rate,
            p99: line.p99_ns,
        };
        match self.0.iter().position(|(name, _)| *name == line.series) {
            Some(place) => self.0[place].1.push(point),
            None if self.0.len() < SERIES_MAX => self.0.push((line.series, vec![point])),
            None => {}
        }
        let count: usize = self.0.iter().map(|(_, points)| points.len()).sum();
        if count > POINTS_MAX {
            for (_, points) in &mut self.0 {
                let mut number = 0_usize;
                points.retain(|_| {
                    number += 1;
                    number % 2 == 1
                });
            }
        }
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
        let [(a, first), (b, second)] = course.0.as_slice() else {
            panic!("{course:?}");
        };
        assert_eq!((a.as_str(), b.as_str()), ("a", "b"));
        assert_eq!((first[0].p99, second[0].p99), (Some(2e6), None));
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
        assert_eq!(course.0.len(), SERIES_MAX);
        for (_, points) in &course.0 {
            assert!(points.len() <= POINTS_MAX, "{}", points.len());
            assert!(points[0].seconds < 1.0);
            assert!(points[points.len() - 1].seconds > 9_000.0);
        }
    }
}
