//! Facts about the host of an experiment, from the manifests of its runs.

use std::fs;

use stillwell_capture::Manifest;
use stillwell_plan::SuitePlan;

use crate::Results;

/// Facts that reports show.
const FACTS: [&str; 7] = [
    "cpu_model",
    "cpus_online",
    "kernel",
    "distribution",
    "governor",
    "priority",
    "virtualisation",
];

impl Results {
    /// Returns the facts about the host, by name, from the first run's manifest; empty
    /// without one.
    #[must_use]
    pub fn host_facts(&self, plan: &SuitePlan) -> Vec<(String, String)> {
        let manifest = plan.experiments.iter().find_map(|experiment| {
            let variant = experiment.variants.first()?;
            let folder = self.run(&experiment.name, 1, &variant.name);
            let bytes = fs::read(folder.join("manifest.json")).ok()?;
            serde_json::from_slice::<Manifest>(&bytes).ok()
        });
        manifest.map_or_else(Vec::new, |manifest| host_facts(&manifest))
    }
}

/// Returns the facts about the host in `manifest`, by name.
#[must_use]
pub fn host_facts(manifest: &Manifest) -> Vec<(String, String)> {
    FACTS
        .iter()
        .filter_map(|name| {
            let value = match manifest.host.get(*name)? {
                serde_json::Value::Null => return None,
                serde_json::Value::String(text) => text.clone(),
                serde_json::Value::Array(items) => {
                    let items = items.iter().filter_map(|item| item.as_str());
                    items.collect::<Vec<_>>().join(", ")
                }
                other => other.to_string(),
            };
            Some(((*name).replace('_', " "), value))
        })
        .collect()
}
