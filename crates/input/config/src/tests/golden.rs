//! Files that use everything.

use serde_json::Value;
use stillwell_plan::StampPlan;
use stillwell_plan::stamp::{PrefixFraming, StampForm};
use stillwell_text::{Diagnostics, Node, Source, parse};

use super::{experiment, run_plan};
use crate::{SchemaOf, schema};

/// Every key of the native format is here.
pub(super) const EVERYTHING: &str = include_str!("everything.yaml");

/// The least that is an experiment.
pub(super) const LEAST: &str = "\
target: {command: ./relay --in 127.0.0.1:9100}
variants: {baseline: {}, comparison: {arguments: [--slow]}}
workload:
  generators: [{tcp: 127.0.0.1:9100, payload: ascii}]
";

/// Every readiness probe: a target has only one.
const PROBES: [(&str, &str); 7] = [
    ("immediately", "Immediately"),
    ("{tcp: '127.0.0.1:1'}", "Tcp { address: \"127.0.0.1:1\" }"),
    ("{http: 'http://a/b'}", "Http { url: \"http://a/b\" }"),
    ("{http: 'https://a/b'}", "Http { url: \"https://a/b\" }"),
    ("{log_line: up}", "LogLine { contains: \"up\" }"),
    ("{file: '{state}/up'}", "File { path: \"{state}/up\" }"),
    ("{delay: 2s}", "Delay { length: Nanos(2000000000) }"),
];

/// Stamp settings of a generator other than `all`.
const STAMPS: &str = "stamps: {every: 2, copies: 3, late_after: 1s}";

/// The same of times before events, and what a sink says of them.
const PREFIX: &str = "stamps: {form: prefix, framing: length_prefixed}";
const PREFIX_SINK: &str = "tcp: 127.0.0.1:9200, prefix: length_prefixed";

/// A sink that is none of the file with everything.
const FILE_SINK: &str = "file: ./out.log";

/// Every way to say when an experiment has seen enough: it has only one.
const STOPPINGS: [(&str, &str); 4] = [
    ("7", "Fixed { pairs: 7 }"),
    ("{fixed: 10}", "Fixed { pairs: 10 }"),
    ("{max: 30}", "Sequential { max_pairs: 30 }"),
    ("{open: 200}", "Open { max_pairs: 200 }"),
];

#[test]
fn every_way_to_stop_is_read() {
    for (text, plan) in STOPPINGS {
        let loaded = experiment(&format!("{LEAST}pairs: {text}\n"));
        let loaded = loaded.unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
        assert_eq!(format!("{:?}", loaded.plan.experiments[0].stopping), plan);
    }
}

#[test]
fn every_readiness_probe_is_read() {
    for (text, plan) in PROBES {
        let text = LEAST.replace("target: {", &format!("target: {{ready: {text}, "));
        let loaded = experiment(&text).unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
        let ready = &loaded.plan.experiments[0].run_plan.target.ready;
        assert_eq!(format!("{ready:?}"), plan);
    }
}

#[test]
fn choices_of_cpus_are_read() {
    for (text, plan) in [
        ("auto", "Auto"),
        ("any", "Any"),
        ("3", "Count(3)"),
        ("[3, 1, 3]", "List([1, 3])"),
    ] {
        let text = LEAST.replace("target: {", &format!("target: {{cpus: {text}, "));
        let loaded = experiment(&text).unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
        let cpus = &loaded.plan.experiments[0].run_plan.target.cpus;
        assert_eq!(format!("{cpus:?}"), plan);
    }
}

#[test]
fn everything_becomes_a_plan() {
    let loaded = experiment(EVERYTHING).unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    insta::assert_snapshot!(super::json(&loaded.plan));
    assert!(loaded.warnings.is_empty(), "{}", loaded.warnings);
}

#[test]
fn the_least_has_sensible_defaults() {
    let loaded = experiment(LEAST).unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    assert!(loaded.warnings.is_empty(), "{}", loaded.warnings);
    insta::assert_snapshot!(super::json(&loaded.plan));
}

#[test]
fn a_run_needs_no_target_and_no_variants() {
    let loaded =
        run_plan("workload: {generators: [{udp: '127.0.0.1:1', payload: ascii, rate: 10/s}]}");
    let plan = loaded.unwrap().plan;
    assert!(matches!(plan.target.kind, stillwell_plan::TargetKind::None));
}

/// A file that names `{files}` everywhere.
const WITH_FILES: &str = "\
target:
  name: relay
  command: ['{files}/relay', --data, '{state}', --config, '{files}/a.conf']
  environment: {CONFIG: '{files}/a.conf'}
  directory: '{files}'
  mounts: [{source: '{files}/certificates', at: /etc/certificates}]
  ready: {file: '{files}/up'}
variants: {baseline: {files: conf}, comparison: {}}
workload: {generators: [{unix_stream: '{files}/in', payload: ascii}]}
observe: {inspector: {command: ['{files}/trace', '{files}/x'], stdout: '{files}/out.log'}}
disks: [{path: '{files}/disk', fsync_delay: 1ms}]
timeline: [{at: 1s, disk: {path: '{files}/disk', do: full}}]
";

#[test]
fn an_observed_run_has_the_files_of_its_first_variant() {
    let files = super::InMemory::with([
        ("/suite/run.yaml", WITH_FILES),
        ("/suite/conf/a.conf", ""),
        ("/suite/conf/certificates/a.pem", ""),
    ]);
    let overrides = crate::RunOverrides::default();
    let loaded = super::load_run_from(&files, "/suite/run.yaml".as_ref(), &overrides);
    let plan = loaded.unwrap_or_else(|errors| panic!("{errors}")).plan;
    let stillwell_plan::TargetKind::Child(child) = &plan.target.kind else {
        panic!("{:?}", plan.target);
    };
    let expected = ["--data", "{state}", "--config", "/suite/conf/a.conf"];
    assert_eq!(child.arguments, expected);
    let text = format!("{plan:?}");
    assert!(!text.contains("{files}"), "{text}");
}

#[test]
fn perf_takes_the_place_of_an_inspector() {
    let observed = |observe: &str| {
        run_plan(&format!(
            "workload: {{generators: [{{udp: '127.0.0.1:1', payload: ascii, rate: 10/s}}]}}\nobserve: {observe}"
        ))
    };
    let perf = |observe| observed(observe).unwrap().plan.observer.perf.unwrap();
    assert_eq!(perf("{perf: {}}").frequency.get(), 99);
    let plan = perf("{perf: {frequency: 199, call_graph: dwarf}}");
    assert_eq!(plan.frequency.get(), 199);
    assert_eq!(plan.call_graph, stillwell_plan::observer::CallGraph::Dwarf);
    for (observe, expected) in [
        ("{perf: {frequency: 0}}", "from 1 to 10000"),
        ("{perf: {frequency: 10001}}", "from 1 to 10000"),
        (
            "{perf: {}, inspector: {command: [strace]}}",
            "exclude each other",
        ),
    ] {
        let error = observed(observe).unwrap_err();
        assert!(format!("{error:?}").contains(expected), "{error:?}");
    }
}

/// The tables of keys are both the reader's and the schema's; that no key of
/// them was forgotten in the file above makes the two tests one.
#[test]
fn the_file_with_everything_uses_every_key_of_the_schema() {
    let mut used = Vec::new();
    let probes: String = PROBES
        .iter()
        .chain(&STOPPINGS)
        .map(|(text, _)| *text)
        .chain(super::payloads::NATIVE)
        .chain(super::binary_payloads::NATIVE)
        .chain(super::brokers::EVERY_WORD.iter().copied())
        .map(|text| format!("- {text}\n"))
        .collect();
    for text in [
        EVERYTHING,
        probes.as_str(),
        STAMPS,
        PREFIX,
        FILE_SINK,
        &format!("{{{PREFIX_SINK}}}"),
        super::targets::FINE,
        super::web::EVERY_KEY,
        super::scenario::EVERY_KEY,
        super::faults::EVERY_STEP,
        super::faults::LINKS,
        "{perf: {frequency: 199, call_graph: dwarf}}",
        "{file_gen: {log: a, full: truncate, settle: 1s, file_max: 1 MiB}, lines: {begins: a, ends: b, holds: [c]}}",
    ] {
        let (root, _) = parse(&Source::new("a.yaml", text)).unwrap();
        collect_keys(&root, &mut used);
    }
    let schema = schema(SchemaOf::Experiment);
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        for key in definition["properties"].as_object().unwrap().keys() {
            assert!(used.contains(key), "{name}.{key} is not in everything.yaml");
        }
    }
}

#[test]
fn stamps_and_files_are_read() {
    let text = LEAST.replace("payload: ascii", &format!("payload: ascii, {STAMPS}"));
    let loaded = experiment(&format!("{text}  sinks: [{{{FILE_SINK}}}]\n")).unwrap();
    let run_plan = &loaded.plan.experiments[0].run_plan;
    let stamps = run_plan.generators[0].stamps.unwrap();
    assert_eq!((stamps.every.get(), stamps.copies), (2, 3));
    assert!(stamps.late_after.is_some());
    let path = "/suite/one/out.log".into();
    assert_eq!(
        run_plan.sinks[0].protocol,
        stillwell_plan::SinkProtocol::File { path }
    );
    for refused in [
        "payload: dogstatsd, stamps: all",
        "payload: ascii, stamps: some",
    ] {
        let text = LEAST.replace("payload: ascii", refused);
        assert!(experiment(&text).is_err(), "{refused}");
    }
}

#[test]
fn forms_of_stamps_are_read() {
    let text = LEAST.replace("payload: ascii", &format!("payload: ascii, {PREFIX}"));
    let loaded = experiment(&format!("{text}  sinks: [{{{PREFIX_SINK}}}]\n")).unwrap();
    let run_plan = &loaded.plan.experiments[0].run_plan;
    let framing = PrefixFraming::LengthPrefixed;
    let form = StampForm::Prefix(framing);
    assert_eq!(
        run_plan.generators[0].stamps,
        Some(StampPlan {
            form,
            ..StampPlan::ALL
        })
    );
    assert_eq!(run_plan.sinks[0].prefix, Some(framing));
    let to = |to: &str, stamps: &str| {
        let text = LEAST.replace("tcp: 127.0.0.1:9100", to);
        let payload = "payload: opentelemetry_traces";
        let text = text.replace("payload: ascii", &format!("{payload}, stamps: {stamps}"));
        let loaded = experiment(&text)?;
        let stamps = loaded.plan.experiments[0].run_plan.generators[0].stamps;
        Ok::<_, Diagnostics>(stamps.unwrap().form)
    };
    let calls = "grpc: 'http://127.0.0.1:9100/a.B/C'";
    for target in ["http: 'http://127.0.0.1:9100/'", calls] {
        let form = to(target, "{form: header, every: 2}").unwrap();
        assert_eq!(form, StampForm::Header, "{target}");
        assert!(to(target, "all").is_err(), "traces have no text");
    }
}

/// Texts and marks of errors, for all invalid combinations.
#[test]
fn forms_that_cannot_be_are_refused_with_what_can() {
    let refused = |to: &str, payload: &str, stamps: &str| {
        let text = LEAST.replace("tcp: 127.0.0.1:9100", to);
        let stamped = format!("payload: {payload}, stamps: {stamps}");
        let text = text.replace("payload: ascii", &stamped);
        let diagnostics = experiment(&text).unwrap_err();
        let messages: Vec<&str> = diagnostics
            .iter()
            .map(|diagnostic| diagnostic.message.as_str())
            .collect();
        messages.join("; ")
    };
    let (tcp, http) = ("tcp: 127.0.0.1:9100", "http: 'http://127.0.0.1:9100/'");
    let headed = "http: {url: 'http://127.0.0.1:9100/', headers: {Stillwell-Stamp: x}}";
    for (to, payload, stamps, message) in [
        (
            tcp,
            "ascii",
            "{form: header}",
            "`tcp` does not support stamps in a header",
        ),
        (
            http,
            "ascii",
            "{form: prefix}",
            "over `http`, events cannot have a time prefix",
        ),
        (
            headed,
            "ascii",
            "{form: header}",
            "the header `Stillwell-Stamp` carries stamps",
        ),
        (
            tcp,
            "datadog_log",
            "{form: prefix}",
            "events of `datadog_log` cannot have a time prefix",
        ),
        (
            tcp,
            "elasticsearch",
            "{form: prefix}",
            "events of `elasticsearch` cannot have a time prefix",
        ),
        (
            tcp,
            "ascii",
            "{form: prefix, every: 2}",
            "`form: prefix` measures only latency",
        ),
        (
            tcp,
            "ascii",
            "{framing: lines}",
            "`framing` has no effect here: events have no time prefix",
        ),
    ] {
        assert_eq!(refused(to, payload, stamps), message, "{stamps}");
    }
    let sinks = "  sinks: [{http: 127.0.0.1:9200, prefix: lines}]\n";
    let error = experiment(&format!("{LEAST}{sinks}")).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("cannot have a time prefix"), "{error}");
    for unknown in ["{form: footer}", "{form: prefix, framing: words}"] {
        let message = refused(tcp, "ascii", unknown);
        assert!(message.contains("unknown"), "{message}");
    }
}

#[test]
fn a_time_prefix_without_a_length_needs_a_template_of_lines() {
    let (line, end) = ("'{word}'", "{lines: '{word}', end: ';'}");
    let inside = r#""a\nb""#;
    for (template, framing, is_refused) in [
        (line, "lines", false),
        (end, "lines", true),
        (inside, "lines", true),
        (end, "length_prefixed", false),
        (inside, "length_prefixed", false),
    ] {
        let stamps = format!("{{form: prefix, framing: {framing}}}");
        let payload = format!("payload: {{template: {template}}}, stamps: {stamps}");
        let text = LEAST.replace("payload: ascii", &payload);
        let error = experiment(&text).err().map(|error| error.to_string());
        let message = "events of this template are not lines";
        let has_message = error.is_some_and(|error| error.contains(message));
        assert_eq!(has_message, is_refused, "{template}, {framing}");
    }
}

#[test]
fn stamps_go_over_both_protocols_of_http() {
    for protocol in ["http1", "http2"] {
        let http = format!("{{http: {{url: 'http://127.0.0.1:9100/', protocol: {protocol}}}");
        let text = LEAST.replace("{tcp: 127.0.0.1:9100", &http);
        let text = text.replace("payload: ascii", "payload: ascii, stamps: all");
        assert!(experiment(&text).is_ok(), "{protocol}");
    }
}

fn collect_keys(node: &Node, used: &mut Vec<String>) {
    match &node.value {
        stillwell_text::Value::List(items) => {
            items.iter().for_each(|item| collect_keys(item, used));
        }
        stillwell_text::Value::Map(entries) => {
            for entry in entries {
                used.push(entry.key.text.clone());
                collect_keys(&entry.value, used);
            }
        }
        stillwell_text::Value::Null | stillwell_text::Value::Scalar { .. } => {}
    }
}

#[test]
fn every_reference_of_the_schema_is_defined() {
    let schema = schema(SchemaOf::Experiment);
    let definitions = schema["$defs"].as_object().unwrap();
    let mut references = Vec::new();
    collect_references(&schema, &mut references);
    assert!(references.len() > 10);
    for reference in references {
        let name = reference.strip_prefix("#/$defs/").unwrap();
        assert!(definitions[name].is_object(), "{name}");
    }
}

fn collect_references(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                match value {
                    Value::String(text) if key == "$ref" => references.push(text.clone()),
                    value => collect_references(value, references),
                }
            }
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| collect_references(item, references)),
        _ => {}
    }
}

/// Words of the schema are read: what the tables offer, the reader takes.
#[test]
fn every_word_of_the_schema_is_accepted() {
    let schema = schema(SchemaOf::Experiment);
    let words = |pointer: &str| -> Vec<String> {
        let diagnostics = schema.pointer(pointer).and_then(Value::as_array);
        let diagnostics = diagnostics.unwrap_or_else(|| panic!("{pointer}"));
        diagnostics
            .iter()
            .map(|word| word.as_str().unwrap().to_owned())
            .collect()
    };
    for payload in words("/$defs/generator/properties/payload/anyOf/0/enum") {
        let text = super::golden::LEAST.replace("payload: ascii", &format!("payload: {payload}"));
        assert!(experiment(&text).is_ok(), "{payload}");
    }
    let goals = words("/$defs/goal/properties/metric/anyOf/0/enum");
    let names = stillwell_plan::GoalMetric::ALL.map(String::from);
    assert_eq!(names.len(), goals.len());
    for goal in goals {
        assert!(names.contains(&goal), "{goal}");
        let text = LEAST.replace("{tcp: 127.0.0.1:9100", "{http: 'http://127.0.0.1:9100/'");
        let text = text.replace("payload: ascii", "payload: ascii, stamps: all");
        let text = format!("{text}  sinks: [{{tcp: '127.0.0.1:2'}}]\ngoals: [{goal}]\n");
        assert!(experiment(&text).is_ok(), "{goal}");
    }
    for key in ["protocol", "reuse"] {
        for word in words(&format!(
            "/$defs/http_generator/properties/{key}/anyOf/0/enum"
        )) {
            let http = format!("{{http: {{url: 'https://127.0.0.1:9100/', {key}: {word}}}");
            let text = LEAST.replace("{tcp: 127.0.0.1:9100", &http);
            assert!(experiment(&text).is_ok(), "{word}");
        }
    }
    for reduction in words("/$defs/series_goal/properties/reduce/anyOf/0/enum") {
        for better in words("/$defs/series_goal/properties/better/anyOf/0/enum") {
            let goal = format!("{{series: target/x, reduce: {reduction}, better: {better}}}");
            let page = "observe: {prometheus: [{url: 'http://127.0.0.1:3/'}]}";
            let text = format!("{LEAST}{page}\ngoals: [{goal}]\n");
            assert!(experiment(&text).is_ok(), "{goal}");
        }
    }
    for design in words("/$defs/experiment/properties/design/anyOf/0/enum") {
        let text = format!("{LEAST}design: {design}\n");
        assert!(experiment(&text).is_ok(), "{design}");
    }
    for signal in words("/$defs/timeline_step/properties/signal/anyOf/0/enum") {
        let text = format!("{LEAST}timeline: [{{at: 1s, signal: {signal}}}]\n");
        assert!(experiment(&text).is_ok(), "{signal}");
    }
    for word in words("/$defs/isolation/properties/network/anyOf/0/enum") {
        let text = format!("{LEAST}isolation: {{network: {word}}}\n");
        assert!(experiment(&text).is_ok(), "{word}");
    }
    for validity in words("/$defs/experiment/properties/validity/anyOf/0/enum") {
        let text = format!("{LEAST}validity: {validity}\n");
        let loaded = experiment(&text).unwrap();
        let read = loaded.plan.experiments[0].run_plan.observer.validity;
        assert_eq!(read.name(), validity);
    }
    for point in words("/$defs/experiment/properties/operating_point/anyOf/0/enum") {
        let text = format!(
            "{}operating_point: {point}\n",
            LEAST.replace("ascii", "ascii, rate: max")
        );
        assert!(experiment(&text).is_ok(), "{point}");
    }
}

/// The schema says the tolerance that each goal has where none is given.
#[test]
fn default_tolerances_are_in_the_schema() {
    let schema = schema(SchemaOf::Experiment);
    let about = &schema["$defs"]["goal"]["properties"]["tolerance"]["description"];
    let about = about.as_str().unwrap();
    for metric in stillwell_plan::GoalMetric::ALL {
        let percent = metric.default_tolerance().to_string();
        let mut parts = about.split("; ").flat_map(|part| part.split(". "));
        let is_described = parts.any(|part| part.contains(&percent) && names(part, &metric.name()));
        assert!(is_described, "{metric} {percent}");
    }
}

/// Returns true if one of the words of `part` is `name`.
fn names(part: &str, name: &str) -> bool {
    part.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .any(|word| word == name)
}
