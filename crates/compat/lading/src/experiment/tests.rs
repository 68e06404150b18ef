use stillwell_config::shared::parse_series;
use stillwell_plan::check::Aggregation;

use super::*;

fn experiment(text: &str) -> (SmpExperiment, Diagnostics) {
    let (experiment, result) = read(&Source::new("experiment.yaml", text));
    (experiment.unwrap(), result)
}

// compat: SMP and soaks | optimization_goal | works
// compat: SMP and soaks | erratic | works
// compat: SMP and soaks | target: name, command, cpu_allotment, memory_allotment, environment | works
// compat: SMP and soaks | checks: name, description, bounds | works
// compat: SMP and soaks | config_only | works
// compat: SMP and soaks | runner, labels, teams | differs | without effect here, with a note
// compat: SMP and soaks | profiling_environment | differs | without effect here, with a note
#[test]
fn a_whole_case_is_read() {
    let (case, result) = experiment(
        r#"
optimization_goal: egress_throughput
erratic: true
runner: container
labels: {a: b}
teams: [c]
target:
  name: vector
  command: /usr/bin/vector --config "/etc/vector/a b.yaml"
  cpu_allotment: 6
  memory_allotment: 30g
  environment: {VECTOR_THREADS: 4}
  profiling_environment: {X: true}
checks:
  - name: memory_usage
    description: "stays small"
    bounds: {series: total_pss_bytes, upper_bound: "475 MiB"}
  - name: intake
    bounds: {series: "avg(bytes_received['intake'])", lower_bound: 10, upper_bound: "6"}
report_links:
  - {text: dashboard, link: "https://example.com/{{ experiment }}"}
config_only:
  baseline: {A: 1}
  comparison: {A: 2}
"#,
    );
    assert!(!result.has_errors(), "{result}");
    assert_eq!(case.goal, SmpGoal::Metric(GoalMetric::EgressThroughput));
    let target = case.target.unwrap();
    assert_eq!(target.command.unwrap()[2], "/etc/vector/a b.yaml");
    assert_eq!(target.memory, Some(ByteSize::new(30 << 30)));
    assert_eq!(target.cpus, Some(6));
    assert_eq!(case.checks[0].upper, Some(475.0 * 1024.0 * 1024.0));
    assert_eq!(case.checks[0].series.aggregation, Aggregation::Largest);
    assert_eq!(case.checks[1].series.aggregation, Aggregation::Mean);
    assert_eq!(case.checks[1].series.id.as_deref(), Some("intake"));
    assert_eq!(
        case.report_links[0].link,
        "https://example.com/{{ experiment }}"
    );
    assert_eq!(case.config_only["comparison"]["A"], "2");
}

// compat: SMP and soaks | bounds: series | works
#[test]
fn series_read_as_written() {
    for (text, metric, id) in [
        ("total_rss_bytes", "total_rss_bytes", None),
        ("lost_bytes", "missed_bytes", None),
        (
            "cgroup.v2.cpu.stat.nr_throttled",
            "cgroup.v2.cpu.stat.nr_throttled",
            None,
        ),
        ("bytes_received[\"a\"]", "bytes_received", Some("a")),
    ] {
        let series = parse_series(text).unwrap();
        assert_eq!((series.metric.as_str(), series.id.as_deref()), (metric, id));
    }
    for text in ["", "avg()", "a[b]", "a['b'", "a b", "max(a)"] {
        assert_eq!(parse_series(text), None, "{text}");
    }
}

/// A small `b` in the memory of a container was read as bits.
#[test]
fn memory_is_read_as_by_container_runtimes() {
    for (text, bytes) in [
        ("30g", 30 << 30),
        ("512m", 512 << 20),
        ("512mb", 512 << 20),
        ("512 Mb", 512 << 20),
        ("64kb", 64 << 10),
        ("2gib", 2 << 30),
        ("8GiB", 8 << 30),
        ("500 MB", 500_000_000),
        ("1024", 1024),
        ("1024b", 1024),
        ("0x40000b", 0x0040_000b),
    ] {
        let target = format!("target: {{name: vector, memory_allotment: {text}}}\n");
        let (case, result) = experiment(&target);
        let memory = case.target.unwrap().memory;
        assert_eq!(memory, Some(ByteSize::new(bytes)), "{text}");
        assert!(result.is_empty(), "{text}: {result}");
    }
}

#[test]
fn a_bound_in_bits_has_a_warning() {
    for (text, bound, is_bits) in [
        ("400 Mb", 50e6, true),
        ("400 MB", 400e6, false),
        ("6", 6.0, false),
    ] {
        let bounds = format!("bounds: {{series: total_pss_bytes, upper_bound: {text}}}");
        let (case, result) = experiment(&format!("checks: [{{name: a, {bounds}}}]\n"));
        assert_eq!(case.checks[0].upper, Some(bound), "{text}");
        assert!(!result.has_errors(), "{result}");
        let result = result.to_string();
        assert_eq!(result.contains("is read as bits"), is_bits, "{result}");
    }
}

#[test]
fn mistakes_are_shown_all_at_once() {
    let (_, result) = experiment(
        "optimization_goal: ingres_throughput
target:
  name: vector
  comand: /usr/bin/vector
  cpu_allotment: many
checks:
  - name: nothing
    bounds: {series: total_pss_bytes}
",
    );
    insta::assert_snapshot!(result);
}
