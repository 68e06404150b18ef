//! Lines of statsd under given names.

use stillwell_plan::load::StatsdNamesPlan;

use super::{Datagram, milliseconds};
use crate::format::page::{MetricsPage, NamedPoint, NamedValue};

/// Maximum number of lines for the times of one series in one flush. Beyond it, a line is for
/// all times of one value.
const LINES_MAX: u64 = 10_000;

/// Encodes the named points of pages: what counters have grown by, and a line for each time.
///
/// A counter is sent again until it is confirmed. Times of a page that is lost are not.
#[derive(Debug)]
pub(super) struct NamedLines {
    /// Everything before the number of the worker.
    before_worker: String,
    /// The key of the tag that holds that number; without it the number is part of the name.
    worker_tag: Option<String>,
    /// Total sent of each point so far.
    sent: Vec<u64>,
}

impl NamedLines {
    pub(super) fn new(prefix: &str, has_tags: bool, names: &StatsdNamesPlan) -> Self {
        Self {
            before_worker: format!("{prefix}{}", names.before_worker),
            worker_tag: has_tags.then(|| names.worker_tag.clone()),
            sent: Vec::new(),
        }
    }

    /// All that is new in `page`, cut between lines where a datagram is full.
    pub(super) fn datagrams(&mut self, page: &MetricsPage, bytes_max: usize) -> Vec<Datagram> {
        self.sent.resize(page.named.len(), 0);
        let mut datagrams: Vec<Datagram> = Vec::new();
        for (index, point) in page.named.iter().enumerate() {
            for line in self.lines(point, self.sent[index]) {
                match datagrams.last_mut() {
                    Some(last) if last.bytes.len() + line.len() <= bytes_max => {
                        last.bytes.extend_from_slice(line.as_bytes());
                        last.points.end = index + 1;
                    }
                    _ => datagrams.push(Datagram {
                        bytes: line.into_bytes(),
                        points: index..index + 1,
                    }),
                }
            }
        }
        datagrams
    }

    /// `datagram` of `page` got through.
    pub(super) fn mark_sent(&mut self, page: &MetricsPage, datagram: &Datagram) {
        for index in datagram.points.clone() {
            if let (Some(point), Some(sent)) = (page.named.get(index), self.sent.get_mut(index)) {
                *sent = point.total();
            }
        }
    }

    fn lines(&self, point: &NamedPoint, sent: u64) -> Vec<String> {
        let grown = point.total().saturating_sub(sent);
        if grown == 0 {
            return Vec::new();
        }
        match &point.value {
            NamedValue::Counter(_) => vec![self.line(point, &format!("{grown}|c"))],
            NamedValue::Times { recent, .. } => {
                let is_whole = recent.iter().map(|(_, count)| count).sum::<u64>() <= LINES_MAX;
                let mut lines = Vec::new();
                for (time, count) in recent {
                    let value = format!("{}|ms", milliseconds(*time));
                    if is_whole {
                        let line = self.line(point, &value);
                        lines.extend((0..*count).map(|_| line.clone()));
                    } else {
                        let share = 1.0 / stillwell_units::float_from_u64(*count);
                        lines.push(self.line(point, &format!("{value}|@{share}")));
                    }
                }
                lines
            }
        }
    }

    /// `value` has its kind behind it.
    fn line(&self, point: &NamedPoint, value: &str) -> String {
        let Self { before_worker, .. } = self;
        let NamedPoint { worker, name, .. } = point;
        match &self.worker_tag {
            None => format!("{before_worker}.{worker}.{name}:{value}\n"),
            Some(tag) => format!("{before_worker}.{name}:{value}|#{tag}:{worker}\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use stillwell_units::Nanos;

    use super::*;
    use crate::format::fixture;
    use crate::format::statsd::Statsd;

    fn names() -> StatsdNamesPlan {
        StatsdNamesPlan {
            before_worker: "cluster".to_owned(),
            worker_tag: "worker".to_owned(),
            counters: Vec::new(),
            times: Vec::new(),
        }
    }

    fn page(total: u64, recent: Vec<(Nanos, u64)>) -> MetricsPage {
        let point = |worker, name: &str, value| NamedPoint {
            worker,
            name: name.to_owned(),
            value,
        };
        let count = recent.iter().map(|(_, count)| count).sum();
        MetricsPage {
            named: vec![
                point(1, "a.b", NamedValue::Counter(total)),
                point(0, "c", NamedValue::Times { count, recent }),
            ],
            ..fixture::page(0)
        }
    }

    fn text(datagrams: &[Datagram]) -> String {
        let bytes = datagrams.iter().flat_map(|datagram| &datagram.bytes);
        String::from_utf8(bytes.copied().collect()).unwrap()
    }

    #[test]
    fn each_time_has_a_line_and_the_worker_is_part_of_the_name_or_a_tag() {
        let page = page(
            3,
            vec![(Nanos::from_millis(2), 2), (Nanos::new(500_000), 1)],
        );
        let mut plain = Statsd::new("nh", None, 1432).named(Some(&names()));
        let times = "nh.cluster.0.c:2|ms\nnh.cluster.0.c:2|ms\nnh.cluster.0.c:0.5|ms\n";
        let expected = format!("nh.cluster.1.a.b:3|c\n{times}");
        assert_eq!(text(&plain.datagrams(&page)), expected);
        let mut tagged = Statsd::new("nh", Some(&[]), 1432).named(Some(&names()));
        let sent = text(&tagged.datagrams(&page));
        assert!(sent.starts_with("nh.cluster.a.b:3|c|#worker:1\n"), "{sent}");
        assert!(sent.ends_with("nh.cluster.c:0.5|ms|#worker:0\n"), "{sent}");
    }

    #[test]
    fn very_many_times_have_a_line_for_each_value_with_its_share() {
        let page = page(0, vec![(Nanos::from_millis(1), 16_384)]);
        let mut plain = Statsd::new("", None, 1432).named(Some(&names()));
        let sent = text(&plain.datagrams(&page));
        assert_eq!(sent, "cluster.0.c:1|ms|@0.00006103515625\n");
    }

    #[test]
    fn what_is_confirmed_is_not_sent_again_and_no_datagram_is_too_long() {
        let mut plain = Statsd::new("", None, 100).named(Some(&names()));
        let first = page(5, vec![(Nanos::from_millis(1), 50)]);
        for datagram in plain.datagrams(&first) {
            assert!(datagram.bytes.len() <= 100, "{datagram:?}");
            plain.mark_sent(&first, &datagram);
        }
        assert!(plain.datagrams(&first).is_empty());
        let next = page(7, Vec::new());
        assert_eq!(text(&plain.datagrams(&next)), "cluster.1.a.b:2|c\n");
    }
}
