//! Facts that both runs of a pair must share.

use std::collections::BTreeMap;

use serde_json::Value;
use stillwell_capture::Manifest;

/// Facts about the host that stay the same until they are reconfigured. What varies
/// by itself, such as frequencies, load and free memory, is not among them.
const FACTS: [&str; 19] = [
    "address_randomisation",
    "allowed_cpus",
    "architecture",
    "boost",
    "cgroup_limits",
    "clock_source",
    "congestion_control",
    "cpu_model",
    "kernel",
    "kernel_command_line",
    "machine",
    "memory_bytes",
    "microcode",
    "open_files_max",
    "perf_event_paranoid",
    "priority",
    "smt",
    "swappiness",
    "transparent_huge_pages",
];

pub(crate) const TARGET_CPUS: &str = "the target's CPUs";

pub(super) fn environment(manifest: &Manifest) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    for name in FACTS {
        if let Some(fact) = manifest.host.get(name).filter(|fact| !fact.is_null()) {
            facts.insert(name.to_owned(), text(fact));
        }
    }
    if let Some(cpus) = manifest.host.get("cpus").and_then(Value::as_array) {
        let of_each = |key: &str| {
            let values = cpus.iter().filter_map(|cpu| cpu.get(key));
            values.map(text).collect::<Vec<_>>().join(" ")
        };
        facts.insert("cpus".to_owned(), of_each("number"));
        facts.insert("governors".to_owned(), of_each("governor"));
    }
    let placed = [
        (TARGET_CPUS, &manifest.target_cpus),
        ("CPUs of load generators and sinks", &manifest.load_cpus),
    ];
    for (name, cpus) in placed {
        let cpus = cpus.as_ref().map(|cpus| {
            let numbers: Vec<String> = cpus.iter().map(u16::to_string).collect();
            numbers.join(" ")
        });
        facts.insert(name.to_owned(), cpus.unwrap_or_else(|| "any".to_owned()));
    }
    facts.insert("version of Stillwell".to_owned(), manifest.version.clone());
    // Each by itself, so what differs can be named.
    for note in &manifest.notes {
        facts.insert(note.what.clone(), "not isolated".to_owned());
    }
    facts
}

fn text(fact: &Value) -> String {
    match fact {
        Value::String(text) => text.clone(),
        right => right.to_string(),
    }
}
