//! The dashboard of docs/grafana reads only metrics that are exported.

use std::collections::BTreeSet;

use serde_json::Value;
use stillwell_metric::{Kind, catalogue};

use super::names;

const DASHBOARD: &str = include_str!("../../../../../docs/grafana/stillwell.json");

/// Returns the names of all series of all metrics.
fn exported() -> BTreeSet<String> {
    let names = catalogue::ALL.iter().flat_map(|metric| {
        let name = names::prometheus(metric);
        match metric.kind {
            Kind::Counter | Kind::Gauge => vec![name],
            Kind::Histogram => ["bucket", "sum", "count"]
                .map(|part| format!("{name}_{part}"))
                .to_vec(),
        }
    });
    names.collect()
}

/// Returns the words of a query that are metrics of Stillwell.
fn metrics_in(query: &str) -> Vec<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = query.split(|c| !is_name(c));
    let words = words.filter(|word| word.starts_with("stillwell_"));
    words.map(str::to_owned).collect()
}

#[test]
fn every_query_of_the_dashboard_names_an_exported_metric() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| {
        let targets = panel["targets"].as_array().unwrap().iter();
        targets.map(|target| target["expr"].as_str().unwrap())
    });
    let variables = variables
        .iter()
        .filter_map(|variable| variable["query"]["query"].as_str());
    let exported = exported();
    for query in targets.chain(variables) {
        let metrics = metrics_in(query);
        assert!(!metrics.is_empty(), "{query}");
        for name in metrics {
            assert!(exported.contains(&name), "{name} in {query}");
        }
        let count = |bracket: char| query.matches(bracket).count();
        assert_eq!(count('('), count(')'), "{query}");
        assert_eq!(count('{'), count('}'), "{query}");
    }
}

/// The keys without which Grafana refuses a dashboard or draws nothing.
#[test]
fn panels_have_the_keys_that_grafana_requires() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    assert!(dashboard["uid"].is_string() && dashboard["title"].is_string());
    assert!(dashboard["schemaVersion"].is_u64());
    let mut ids = BTreeSet::new();
    let mut places = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        assert_eq!(panel["type"], "timeseries");
        assert!(panel["title"].is_string() && panel["fieldConfig"]["defaults"]["unit"].is_string());
        let place = ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().unwrap());
        assert!(place[0] + place[2] <= 24, "{panel}");
        assert!(places.insert([place[0], place[1]]), "{panel}");
        let mut letters = BTreeSet::new();
        for target in panel["targets"].as_array().unwrap() {
            assert_eq!(target["datasource"]["uid"], "${datasource}");
            assert!(
                letters.insert(target["refId"].as_str().unwrap()),
                "{target}"
            );
        }
    }
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let names: Vec<&str> = variables
        .iter()
        .map(|entry| entry["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["datasource", "job", "experiment", "variant"]);
}
