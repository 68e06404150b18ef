//! Report of a tree of benches.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde_json::{Map, Value, json};
use stillwell_config::BenchFolder;
use stillwell_config::files::open_input;
use stillwell_experiment::bench_tests::TestedBench;
use stillwell_units::Nanos;

/// Of a longer output only the end goes into the report.
const EVIDENCE_BYTES_MAX: u64 = 1 << 20;

/// Results of a tree.
#[derive(Debug)]
pub(super) struct Outcome {
    includes: Vec<String>,
    excludes: Vec<String>,
    pub(super) tested: Vec<TestedBench>,
    pub(super) skipped: Vec<String>,
    pub(super) elapsed: Nanos,
}

impl Outcome {
    pub(super) fn new(includes: &[String], excludes: &[String]) -> Self {
        Self {
            includes: includes.to_vec(),
            excludes: excludes.to_vec(),
            tested: Vec::new(),
            skipped: Vec::new(),
            elapsed: Nanos::ZERO,
        }
    }

    pub(super) fn failed(&self) -> usize {
        self.tested
            .iter()
            .filter(|bench| !bench.has_passed())
            .count()
    }

    fn asserts(&self) -> usize {
        self.tested.iter().map(|bench| bench.assertions.len()).sum()
    }

    fn stats(&self) -> Value {
        let failed = self.tested.iter().filter(|bench| !bench.has_passed());
        let names: Vec<&str> = failed.map(|bench| bench.name.as_str()).collect();
        json!({
            "pass": self.tested.len() - self.failed(),
            "fail": self.failed(),
            "skip": self.skipped.len(),
            "assert": self.asserts(),
            "failed_test_names": names,
        })
    }
}

pub(super) fn beginning(bench: &BenchFolder) -> String {
    format!(
        "Benchmark: Running {}\n    Tags: {}\n",
        bench.name,
        bench.tags.join(" ")
    )
}

pub(super) fn ending(tested: &TestedBench, is_verbose: bool) -> String {
    let mut text = String::new();
    if is_verbose {
        for (what, path) in tested
            .evidence
            .iter()
            .filter(|(what, _)| what.starts_with("test"))
        {
            for line in read(path).lines() {
                text.push_str(&format!("    {what} | {line}\n"));
            }
        }
    }
    if let Some(figures) = &tested.figures {
        text.push_str(&format!("    {}\n", figures_line(figures)));
    }
    for assertion in &tested.assertions {
        match &assertion.failure {
            None => text.push_str(&format!("    ok    {}\n", assertion.what)),
            Some(failure) => text.push_str(&format!("    FAIL  {}: {failure}\n", assertion.what)),
        }
    }
    text.push_str(&format!("    Elapsed: {}\n", tested.elapsed));
    text
}

fn figures_line(figures: &Value) -> String {
    let throughput = &figures["throughput"];
    let number = |value: &Value| value.as_f64().unwrap_or_default();
    format!(
        "{} events, {:.0} events/s, {:.1} MiB/s, latency mean {:.3} ms, max {:.3} ms",
        figures["count"],
        number(&throughput["events_per_second"]),
        number(&throughput["bytes_per_second"]) / 1024.0 / 1024.0,
        number(&figures["mean"]) / 1e6,
        number(&figures["max"]) / 1e6,
    )
}

pub(super) fn summary(outcome: &Outcome, evidence: &str) -> String {
    format!(
        "All Benchmark Stats: Pass {} Fail {} Skip {} Asserts {}\nTotal Elapsed: {}\nEvidence: {evidence}\n",
        outcome.tested.len() - outcome.failed(),
        outcome.failed(),
        outcome.skipped.len(),
        outcome.asserts(),
        outcome.elapsed,
    )
}

/// In the shape of Tremor's report, with figures besides.
pub(super) fn json(outcome: &Outcome) -> Value {
    let nothing = json!({"pass": 0, "fail": 0, "skip": 0, "assert": 0, "failed_test_names": []});
    let reports: Vec<Value> = outcome.tested.iter().map(bench_json).collect();
    json!({
        "metadata": {
            "name": env!("CARGO_PKG_NAME"),
            "version": env!("CARGO_PKG_VERSION"),
            "description": "benches by stillwell",
            "authors": "",
            "homepage": "",
            "repository": env!("CARGO_PKG_REPOSITORY"),
            "allocator": "system",
        },
        "includes": outcome.includes,
        "excludes": outcome.excludes,
        "skipped": outcome.skipped,
        "reports": { "bench": reports },
        "stats": {
            "all": outcome.stats(),
            "bench": outcome.stats(),
            "command": nothing,
            "integration": nothing,
            "unit": nothing,
        },
        "duration": outcome.elapsed.as_u64(),
    })
}

fn bench_json(tested: &TestedBench) -> Value {
    let evidence = tested.evidence.iter();
    let evidence: Map<String, Value> = evidence
        .map(|(what, path)| (what.clone(), read(path).into()))
        .collect();
    let asserts = tested.assertions.iter();
    let asserts: Vec<Value> = asserts
        .map(|assertion| {
            json!({
                "description": assertion.what,
                "keyword": "Predicate",
                "result": {
                    "status": if assertion.failure.is_none() { "Passed" } else { "Failed" },
                    "duration": 0,
                },
                "info": assertion.failure,
                "hidden": false,
            })
        })
        .collect();
    let failed = usize::from(!tested.has_passed());
    let stats = json!({
        "pass": 1 - failed, "fail": failed, "skip": 0, "assert": tested.assertions.len(),
        "failed_test_names": if failed > 0 { vec![tested.name.as_str()] } else { Vec::new() },
    });
    json!({
        "description": tested.name,
        "stats": stats,
        "duration": tested.elapsed.as_u64(),
        "elements": {
            "bench": {
                "name": tested.name,
                "description": "bench",
                "tags": tested.tags,
                "elements": asserts,
                "evidence": evidence,
                "figures": tested.figures,
                "stats": stats,
                "duration": tested.elapsed.as_u64(),
            }
        },
    })
}

/// The end of an output; of one that cannot be read, nothing.
fn read(path: &Path) -> String {
    let bytes = end_of(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// No more is read: an output may be longer than there is memory.
fn end_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open_input(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(EVIDENCE_BYTES_MAX)))?;
    let mut bytes = Vec::new();
    file.take(EVIDENCE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_output_all_was_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let file = std::fs::File::create(&path).unwrap();
        // It takes no room on the disk.
        file.set_len(1 << 40).unwrap();
        assert_eq!(read(&path).len() as u64, EVIDENCE_BYTES_MAX);
        std::fs::write(&path, "short").unwrap();
        assert_eq!(read(&path), "short");
        assert_eq!(read(&folder.path().join("nobody")), "");
    }
}
