//! `observe`.

use stillwell_legacy::{Node, code};
use stillwell_plan::{ObserverPlan, ScrapePlan};
use stillwell_units::Nanos;

use super::Door;
use crate::schema::{DURATION, Element, Shape, TEXT_MAP, TEXTS, optional, required};

const SCRAPE: Element = Element {
    name: "prometheus page",
    about: "A page of the subject's own metrics.",
    fields: &[
        required(
            "url",
            Shape::Like("http://127.0.0.1:9090/metrics"),
            "Where it is.",
        ),
        optional("names", TEXTS, "Only these metrics; all if left out."),
        optional("labels", TEXT_MAP, "Labels added to every series."),
    ],
    one_of: &[],
};

pub(super) const OBSERVE: Element = Element {
    name: "observer",
    about: "What is watched, and how often.",
    fields: &[
        optional("period", DURATION, "Time between samples."),
        optional(
            "detail_period",
            DURATION,
            "Time between samples of what is dear to read.",
        ),
        optional(
            "prometheus",
            Shape::List(&Shape::Element(&SCRAPE)),
            "Pages of the subject's own metrics.",
        ),
    ],
    one_of: &[],
};

/// Below this, watching would be the load.
const PERIOD_MIN: Nanos = Nanos::from_millis(10);

pub(super) fn read_observe(door: &Door<'_>, node: &Node) -> Option<ObserverPlan> {
    let reader = door.reader;
    let map = reader.map(node, &OBSERVE.keys())?;
    let mut observer = ObserverPlan::default();
    for (key, period) in [
        ("period", &mut observer.period),
        ("detail_period", &mut observer.detail_period),
    ] {
        if let Some(node) = map.take(key)
            && let Some(value) = reader.parsed::<Nanos>(node)
        {
            *period = value;
            if value < PERIOD_MIN {
                let message = format!("`{key}` is out of range");
                let error = reader.error(code::OUT_OF_RANGE, node.span, message);
                reader.report(error.label(format!("at least {PERIOD_MIN}")));
            }
        }
    }
    if let Some(node) = map.take("prometheus") {
        let items = reader.list(node).unwrap_or_default();
        let scrapes = items.iter().filter_map(|item| read_scrape(door, item));
        observer.scrapes = scrapes.collect();
    }
    Some(observer)
}

fn read_scrape(door: &Door<'_>, node: &Node) -> Option<ScrapePlan> {
    let reader = door.reader;
    let map = reader.map(node, &SCRAPE.keys())?;
    let names = map.take("names").map(|node| reader.texts(node));
    let labels = map.take("labels").map(|node| reader.text_map(node));
    let url = map.required("url").and_then(|node| door.url(node));
    Some(ScrapePlan {
        url: url?,
        names,
        labels: labels.unwrap_or_default(),
    })
}
