//! Lines of statsd.

mod named;

use std::ops::Range;

use stillwell_metric::{Metric, Unit};
use stillwell_plan::load::StatsdNamesPlan;
use stillwell_units::{Nanos, float_from_u64};

use crate::format::page::{MetricPoint, MetricsPage, PointValue, RECENT_QUANTILES};
use named::NamedLines;

/// Encodes what has changed since the last send, for a statsd server.
///
/// Counters are sent as what they have grown by, quantiles of times as gauges in
/// milliseconds, and how many times there were as a counter beside them. Without
/// tags a label becomes a part of the name, and labels of the whole load are left
/// out. A point is sent again until [`Statsd::mark_sent`] confirms it, so
/// what a server has seen adds up to the total.
#[derive(Debug)]
pub(crate) struct Statsd {
    prefix: String,
    /// `|#…` behind every line, where there are tags.
    tags: Option<String>,
    datagram_bytes_max: usize,
    /// Total sent of each point so far.
    sent: Vec<u64>,
    /// Names in place of ours, if there are any.
    names: Option<NamedLines>,
}

/// Lines that travel together.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Datagram {
    /// The lines, each with its end.
    pub(crate) bytes: Vec<u8>,
    /// The points of the page that they are about.
    pub(crate) points: Range<usize>,
}

impl Statsd {
    /// The payload of an Ethernet frame after the headers of IPv6 and UDP.
    pub(crate) const DATAGRAM_BYTES_MAX: usize = 1432;

    /// An encoder that has sent nothing. `prefix` is before all names, with a dot behind it
    /// unless it is empty. `tags` are the labels of the whole load; `None` for
    /// servers that know no tags.
    pub(crate) fn new(
        prefix: &str,
        tags: Option<&[(String, String)]>,
        datagram_bytes_max: usize,
    ) -> Self {
        let dot = if prefix.is_empty() { "" } else { "." };
        let tags = tags.map(|tags| {
            let tags = tags.iter().map(|(key, value)| tag(key, value));
            tags.collect::<Vec<_>>().join(",")
        });
        Self {
            prefix: format!("{prefix}{dot}"),
            tags,
            datagram_bytes_max,
            sent: Vec::new(),
            names: None,
        }
    }

    /// Sends the named points of a page instead, if there are `names`.
    pub(crate) fn named(mut self, names: Option<&StatsdNamesPlan>) -> Self {
        self.names = names.map(|names| NamedLines::new(&self.prefix, self.tags.is_some(), names));
        self
    }

    /// All that is new in `page`, cut between points where a datagram is full. A
    /// single point longer than that has a datagram of its own.
    pub(crate) fn datagrams(&mut self, page: &MetricsPage) -> Vec<Datagram> {
        if let Some(names) = &mut self.names {
            return names.datagrams(page, self.datagram_bytes_max);
        }
        self.sent.resize(page.points.len(), 0);
        let mut datagrams: Vec<Datagram> = Vec::new();
        for (index, point) in page.points.iter().enumerate() {
            let lines = self.lines(point, self.sent[index]);
            if lines.is_empty() {
                continue;
            }
            match datagrams.last_mut() {
                Some(last) if last.bytes.len() + lines.len() <= self.datagram_bytes_max => {
                    last.bytes.extend_from_slice(lines.as_bytes());
                    last.points.end = index + 1;
                }
                _ => datagrams.push(Datagram {
                    bytes: lines.into_bytes(),
                    points: index..index + 1,
                }),
            }
        }
        datagrams
    }

    /// `datagram` of `page` got through.
    pub(crate) fn mark_sent(&mut self, page: &MetricsPage, datagram: &Datagram) {
        if let Some(names) = &mut self.names {
            return names.mark_sent(page, datagram);
        }
        for index in datagram.points.clone() {
            let (Some(point), Some(sent)) = (page.points.get(index), self.sent.get_mut(index))
            else {
                return;
            };
            *sent = total(point);
        }
    }

    fn lines(&self, point: &MetricPoint, sent: u64) -> String {
        let grown = total(point).saturating_sub(sent);
        if grown == 0 {
            return String::new();
        }
        match &point.value {
            PointValue::Counter(_) => {
                let unit = match point.metric.unit {
                    Unit::Nanoseconds => "_ns",
                    _ => "",
                };
                self.line(
                    &point.metric,
                    unit,
                    point.labels().next(),
                    &format!("{grown}|c"),
                )
            }
            PointValue::Gauge(_) => String::new(),
            PointValue::Times(times) => {
                let label = point.labels().next();
                let mut lines = self.line(&point.metric, ".count", label, &format!("{grown}|c"));
                for ((name, _), time) in RECENT_QUANTILES
                    .iter()
                    .zip(times.recent.into_iter().flatten())
                {
                    let name = format!(".{name}_ms");
                    let value = format!("{}|g", milliseconds(time));
                    lines.push_str(&self.line(&point.metric, &name, label, &value));
                }
                lines
            }
        }
    }

    /// `suffix` belongs to the name, `value` has its kind behind it.
    fn line(
        &self,
        metric: &Metric,
        suffix: &str,
        label: Option<(&str, &str)>,
        value: &str,
    ) -> String {
        let (prefix, name) = (&self.prefix, metric.name);
        match (&self.tags, label) {
            (None, None) => format!("{prefix}{name}{suffix}:{value}\n"),
            (None, Some((_, label))) => format!("{prefix}{name}.{label}{suffix}:{value}\n"),
            (Some(tags), label) => {
                let label = label.map_or_else(String::new, |(key, value)| tag(key, value));
                let comma = if label.is_empty() || tags.is_empty() {
                    ""
                } else {
                    ","
                };
                let mark = if label.is_empty() && tags.is_empty() {
                    ""
                } else {
                    "|#"
                };
                format!("{prefix}{name}{suffix}:{value}{mark}{label}{comma}{tags}\n")
            }
        }
    }
}

const fn total(point: &MetricPoint) -> u64 {
    match &point.value {
        PointValue::Counter(total) => *total,
        // Only runs have gauges, and they are not exported to statsd.
        PointValue::Gauge(_) => 0,
        PointValue::Times(times) => times.count,
    }
}

fn milliseconds(time: Nanos) -> f64 {
    float_from_u64(time.as_u64()) / 1e6
}

/// `key:value` without what would end a tag.
fn tag(key: &str, value: &str) -> String {
    let plain = |text: &str| text.replace([',', '|', '\n', '#'], "_");
    format!("{}:{}", plain(key).replace(':', "_"), plain(value))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::format::fixture;

    /// State of a server: totals, and the last value of each gauge.
    #[derive(Default)]
    struct Known {
        totals: BTreeMap<String, u64>,
        gauges: BTreeMap<String, f64>,
    }

    impl Known {
        /// Reads the published grammar: `name:value|kind[|#tags]`.
        fn read(&mut self, datagram: &[u8]) {
            for line in std::str::from_utf8(datagram).unwrap().lines() {
                let (name, rest) = line.split_once(':').unwrap();
                let parts: Vec<&str> = rest.split('|').collect();
                let tags = parts.get(2).copied().unwrap_or("");
                assert!(tags.is_empty() || tags.starts_with('#'), "{line}");
                let name = format!("{name}{tags}");
                match parts[1] {
                    "c" => {
                        *self.totals.entry(name).or_default() += parts[0].parse::<u64>().unwrap()
                    }
                    "g" => drop(self.gauges.insert(name, parts[0].parse().unwrap())),
                    other => panic!("kind {other}"),
                }
            }
        }

        fn total(&self, name: &str) -> u64 {
            self.totals.get(name).copied().unwrap_or(0)
        }
    }

    #[test]
    fn labels_are_parts_of_names_or_tags() {
        let page = fixture::page(3);
        let mut plain = Statsd::new("stillwell", None, 1432);
        let mut seen = Known::default();
        for datagram in plain.datagrams(&page) {
            seen.read(&datagram.bytes);
        }
        assert_eq!(seen.total("stillwell.requests_sent"), 6);
        assert_eq!(seen.total("stillwell.outcomes.ok"), 3);
        assert_eq!(seen.total("stillwell.worker_running_ns"), 3_000_000_000);
        assert_eq!(seen.total("stillwell.response_time.ok.count"), 3);
        assert!((seen.gauges["stillwell.response_time.ok.p50_ms"] - 1.0).abs() < 0.01);
        let labels = [("team".to_owned(), "a,b".to_owned())];
        let mut tagged = Statsd::new("", Some(&labels), 1432);
        let mut seen = Known::default();
        for datagram in tagged.datagrams(&page) {
            seen.read(&datagram.bytes);
        }
        assert_eq!(seen.total("outcomes#outcome:ok,team:a_b"), 3);
        assert_eq!(seen.total("requests_sent#team:a_b"), 6);
    }

    proptest! {
        #[test]
        fn for_all_losses_that_are_noticed_the_totals_add_up(
            room in 20_usize..400,
            flushes in prop::collection::vec((0_u64..50, any::<u16>()), 1..8),
        ) {
            let mut statsd = Statsd::new("stillwell", None, room);
            let (mut total, mut seen) = (0, Known::default());
            for (more, lost) in flushes {
                total += more;
                let page = fixture::page(total);
                for (index, datagram) in statsd.datagrams(&page).iter().enumerate() {
                    if lost >> (index % 16) & 1 == 0 {
                        seen.read(&datagram.bytes);
                        statsd.mark_sent(&page, datagram);
                    }
                }
            }
            let page = fixture::page(total);
            for datagram in statsd.datagrams(&page) {
                let is_one = datagram.points.len() == 1;
                prop_assert!(datagram.bytes.len() <= room || is_one);
                seen.read(&datagram.bytes);
                statsd.mark_sent(&page, &datagram);
            }
            prop_assert!(statsd.datagrams(&page).is_empty());
            prop_assert_eq!(seen.total("stillwell.requests_sent"), 2 * total);
            prop_assert_eq!(seen.total("stillwell.outcomes.ok"), total);
            prop_assert_eq!(seen.total("stillwell.response_time.ok.count"), total);
        }
    }
}
