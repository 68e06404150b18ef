//! A page of metrics in OpenMetrics' text, for targets that scrape: the same series each
//! time, and counters that grow from one scrape to the next.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use stillwell_plan::sink::OpenmetricsPlan;

use super::service::{Answer, Request, Service};

const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers every request with the page.
#[derive(Debug)]
pub(super) struct Openmetrics {
    plan: OpenmetricsPlan,
    scrapes: AtomicU64,
}

impl Openmetrics {
    pub(super) const fn new(plan: OpenmetricsPlan) -> Self {
        Self {
            plan,
            scrapes: AtomicU64::new(0),
        }
    }
}

impl Service for Openmetrics {
    fn answer(&self, request: &Request<'_>) -> Answer {
        if !matches!(request.method, "GET" | "HEAD") {
            return Answer::status(405);
        }
        let headers = self.plan.headers.iter().cloned();
        let headers = headers.map(|(name, value)| (name.into(), value.into()));
        // HTTP has no body with these.
        if matches!(self.plan.status, 204 | 304) {
            let mut answer = Answer::status(self.plan.status);
            answer.headers.extend(headers);
            return answer.serving(0);
        }
        let scrape = 1 + self.scrapes.fetch_add(1, Ordering::Relaxed);
        let page = Page::write(&self.plan, scrape);
        let mut answer = Answer::with_body(self.plan.status, TYPE, page.text.into_bytes());
        answer.headers.extend(headers);
        answer.serving(page.samples)
    }
}

/// The written part of a page.
#[derive(Debug)]
struct Page<'p> {
    plan: &'p OpenmetricsPlan,
    text: String,
    samples: u64,
}

impl<'p> Page<'p> {
    fn write(plan: &'p OpenmetricsPlan, scrape: u64) -> Self {
        let mut page = Self {
            plan,
            text: String::new(),
            samples: 0,
        };
        for index in 0..plan.counters {
            let name = page.family("counter", "requests", index);
            let labels = page.labels(index);
            let value = scrape * (u64::from(index) % 97 + 1);
            page.sample(format_args!("{name}_total{{{labels}}} {value}"));
        }
        for index in 0..plan.gauges {
            let name = page.family("gauge", "queue_depth", index);
            let labels = page.labels(index);
            let value = (scrape * 31 + u64::from(index) * 17) % 1000;
            page.sample(format_args!("{name}{{{labels}}} {value}"));
        }
        for index in 0..plan.histograms {
            page.histogram(index, scrape);
        }
        for index in 0..plan.summaries {
            page.summary(index, scrape);
        }
        page.text.push_str("# EOF\n");
        page
    }

    /// Ten observations a scrape fall into each bucket.
    fn histogram(&mut self, index: u32, scrape: u64) {
        let name = self.family("histogram", "latency_seconds", index);
        let labels = self.labels(index);
        let mut count = 0;
        for bound in &self.plan.buckets {
            count += 10 * scrape;
            self.sample(format_args!(
                "{name}_bucket{{{labels},le=\"{bound}\"}} {count}"
            ));
        }
        count += 10 * scrape;
        self.sample(format_args!(
            "{name}_bucket{{{labels},le=\"+Inf\"}} {count}"
        ));
        self.sample(format_args!("{name}_count{{{labels}}} {count}"));
        self.sample(format_args!("{name}_sum{{{labels}}} {count}"));
    }

    fn summary(&mut self, index: u32, scrape: u64) {
        let name = self.family("summary", "payload_bytes", index);
        let labels = self.labels(index);
        for quantile in &self.plan.quantiles {
            let value = (u64::from(index) + scrape) % 100;
            self.sample(format_args!(
                "{name}{{{labels},quantile=\"{quantile}\"}} {value}"
            ));
        }
        let count = 10 * scrape;
        self.sample(format_args!("{name}_count{{{labels}}} {count}"));
        self.sample(format_args!("{name}_sum{{{labels}}} {count}"));
    }

    /// Begins a family and gives its name.
    fn family(&mut self, kind: &str, what: &str, index: u32) -> String {
        let name = format!("{}_{what}_{index}", self.plan.prefix);
        if self.plan.has_type {
            self.text.push_str(&format!("# TYPE {name} {kind}\n"));
        }
        if self.plan.has_help {
            self.text
                .push_str(&format!("# HELP {name} A {kind} of a made-up service.\n"));
        }
        name
    }

    /// The labels of series `index`: each label's values in turn, each at a pace of
    /// its own.
    fn labels(&self, index: u32) -> String {
        let mut text = String::new();
        let (mut index, routes) = (usize::try_from(index).unwrap_or(0), self.plan.routes);
        for (name, values) in &self.plan.labels {
            if let Some(value) = values.get(index % values.len().max(1)) {
                // Writing to a text cannot fail.
                write!(text, "{name}=\"{value}\",").unwrap_or_default();
            }
            index += 1;
        }
        let route = index % usize::try_from(routes.max(1)).unwrap_or(1);
        write!(text, "route=\"/route/{route}\"").unwrap_or_default();
        text
    }

    fn sample(&mut self, line: std::fmt::Arguments<'_>) {
        self.samples += 1;
        writeln!(self.text, "{line}").unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRAPE: Request<'_> = Request {
        method: "GET",
        path: "/metrics",
        content_type: "",
        operation: "",
        body: b"",
    };

    fn scrape(page: &Openmetrics) -> String {
        let answer = page.answer(&SCRAPE);
        assert_eq!(answer.status, 200);
        String::from_utf8(answer.body.into_owned()).unwrap()
    }

    #[test]
    fn a_page_has_its_own_type_beside_the_planned_status_and_headers() {
        let plan = OpenmetricsPlan {
            status: 503,
            headers: vec![("x-a".to_owned(), "1".to_owned())],
            ..OpenmetricsPlan::default()
        };
        let answer = Openmetrics::new(plan).answer(&SCRAPE);
        let headers = answer.headers.iter();
        let headers: Vec<_> = headers.map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(answer.status, 503);
        assert_eq!(headers, [("content-type", TYPE), ("x-a", "1")]);
    }

    /// HTTP refused the body, and the answer was an internal error.
    #[test]
    fn a_status_without_a_body_has_no_page() {
        for status in [204, 304] {
            let plan = OpenmetricsPlan {
                status,
                ..OpenmetricsPlan::default()
            };
            let answer = Openmetrics::new(plan).answer(&SCRAPE);
            assert_eq!((answer.status, answer.body.len()), (status, 0));
        }
    }

    #[test]
    fn every_family_occurs_once_and_counters_grow() {
        let plan = OpenmetricsPlan::default();
        let page = Openmetrics::new(plan.clone());
        let (first, second) = (scrape(&page), scrape(&page));
        let families = plan.counters + plan.gauges + plan.histograms + plan.summaries;
        assert_eq!(first.matches("# TYPE ").count(), families as usize);
        assert_eq!(first.matches("# HELP ").count(), families as usize);
        assert!(first.ends_with("\n# EOF\n"));
        let counters = |text: &str| -> Vec<u64> {
            let lines = text.lines().filter(|line| line.contains("_total{"));
            lines
                .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
                .collect()
        };
        let (first, second) = (counters(&first), counters(&second));
        assert_eq!(first.len(), plan.counters as usize);
        assert!(
            first
                .iter()
                .zip(&second)
                .all(|(before, after)| before < after)
        );
    }

    #[test]
    fn buckets_never_fall() {
        let plan = OpenmetricsPlan {
            counters: 0,
            gauges: 0,
            histograms: 1,
            summaries: 0,
            ..OpenmetricsPlan::default()
        };
        let text = scrape(&Openmetrics::new(plan.clone()));
        let lines = text.lines().filter(|line| line.contains("_bucket{"));
        let counts: Vec<u64> = lines
            .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(counts.len(), plan.buckets.len() + 1);
        assert!(counts.is_sorted());
    }
}
