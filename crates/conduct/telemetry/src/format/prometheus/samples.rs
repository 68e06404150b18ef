//! Samples of any name as a page to scrape.

use std::collections::BTreeMap;

use stillwell_metric::{Kind, Labels, Sample, Value};

use super::fit;

/// `samples` in Prometheus' text format. Names and labels that others gave are made
/// to fit; of several series that become one by that the first is shown. Histograms
/// are left out.
pub(crate) fn prometheus_samples(samples: impl IntoIterator<Item = Sample>) -> String {
    // A metric's series are together, under its type.
    let mut metrics = BTreeMap::<String, (Kind, BTreeMap<String, String>)>::new();
    for sample in samples {
        let value = match &sample.value {
            Value::Int(value) => value.to_string(),
            Value::Float(value) => plain(*value),
            Value::Histogram(_) => continue,
        };
        let name = fit::metric_name(sample.name.as_str());
        let (_, series) = metrics
            .entry(name)
            .or_insert_with(|| (sample.kind, BTreeMap::new()));
        series.entry(braced(&sample.labels)).or_insert(value);
    }
    let mut text = String::new();
    for (name, (kind, series)) in metrics {
        text.push_str(&format!("# TYPE {name} {}\n", kind.name()));
        for (labels, value) in series {
            text.push_str(&format!("{name}{labels} {value}\n"));
        }
    }
    text
}

fn braced(labels: &Labels) -> String {
    let labels = fit::foreign_labels(labels.iter(), &[]);
    fit::braced(
        labels
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str())),
    )
}

fn plain(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    match (value.is_infinite(), value > 0.0) {
        (true, true) => "+Inf".to_owned(),
        (true, false) => "-Inf".to_owned(),
        (false, _) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use stillwell_metric::SeriesName;

    use super::*;

    fn sample(name: &str, labels: &[(&str, &str)], value: Value) -> Sample {
        Sample {
            name: SeriesName::recorded(name.to_owned()),
            kind: Kind::Gauge,
            labels: labels
                .iter()
                .fold(Labels::none(), |all, (k, v)| all.with(k, *v)),
            value,
        }
    }

    #[test]
    fn tags_of_others_cannot_break_the_page() {
        let text = prometheus_samples([
            sample("b", &[], Value::Float(f64::NEG_INFINITY)),
            sample(
                "a.x",
                &[("k 1", "v\nb 9"), ("__name__", "evil")],
                Value::Int(1),
            ),
            sample(
                "a/x",
                &[("k.1", "v\nb 9"), ("__name__", "evil")],
                Value::Int(2),
            ),
            sample("h", &[], Value::Histogram(Vec::new())),
        ]);
        assert_eq!(
            text,
            "# TYPE a_x gauge\n\
             a_x{k_1=\"v\\nb 9\",key__name__=\"evil\"} 1\n\
             # TYPE b gauge\n\
             b -Inf\n"
        );
    }
}
