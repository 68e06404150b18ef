use stillwell_plan::{PayloadFormat, SinkProtocol};

use super::*;

fn run_plan(text: &str) -> (LadingFile, Diagnostics) {
    let (run_plan, result) = read(
        &Source::new("lading.yaml", text),
        true,
        NamedFiles::default(),
    );
    (run_plan.expect("a root that is a map"), result)
}

fn mistakes(text: &str) -> String {
    let (_, result) = read(
        &Source::new("lading.yaml", text),
        true,
        NamedFiles::default(),
    );
    assert!(result.has_errors());
    result.to_string()
}

fn seed() -> String {
    let numbers: Vec<String> = (0..32).map(|number| number.to_string()).collect();
    format!("[{}]", numbers.join(", "))
}

/// A generator of `kind` with `body` besides what it must have.
fn generator(kind: &str, body: &str) -> String {
    format!(
        "generator:
  - {kind}:
      seed: {}
      variant: ascii
      maximum_prebuild_cache_size_bytes: 8 MiB
      {body}
",
        seed()
    )
}

// compat: lading, files | lading.yaml of 2021 | works
#[test]
fn the_first_published_shape_is_read() {
    let text = format!(
        r#"
generator:
  http:
    seed: {}
    headers:
      dd-api-key: "DEADBEEF"
    target_uri: "http://localhost:8282/v1/input"
    bytes_per_second: "500 Mb"
    parallel_connections: 10
    method:
      post:
        variant: "datadog_log"
        maximum_prebuild_cache_size_bytes: "256 Mb"
blackhole:
  http:
    binding_addr: "0.0.0.0:8080"
"#,
        seed()
    );
    let (run, result) = run_plan(&text);
    insta::assert_debug_snapshot!(run);
    insta::assert_snapshot!("the_first_published_shape_is_read_remarks", result);
}

// compat: lading, files | generator and blackhole as lists and as maps | works
#[test]
fn list_and_map_shape_are_the_same() {
    let list = generator("tcp", "addr: 127.0.0.1:1");
    let map = list.replace("\n  - tcp", "\n    tcp");
    assert_ne!(list, map);
    let (list, map) = (run_plan(&list).0, run_plan(&map).0);
    assert_eq!(list.generators, map.generators);
}

// compat: lading, files | throttle, bytes_per_second | works
#[test]
fn rates_read_in_every_spelling() {
    for (body, rate) in [
        ("throttle: all_out", "Max"),
        ("throttle: {all_out: {}}", "Max"),
        ("bytes_per_second: 1 MB", "Bytes Constant 1000000"),
        ("bytes_per_second: 1000", "Bytes Constant 1000"),
        (
            "throttle: {stable: {bytes_per_second: 1 kB, timeout_millis: 0}}",
            "Bytes Constant 1000",
        ),
        (
            "throttle: {stable: {blocks_per_second: 7}}",
            "Blocks Constant 7",
        ),
        (
            "throttle: {linear: {initial: 1 kB, maximum: 9 kB, rate_of_change: 2 kB}}",
            "Bytes Ramp 1000 9000 2000",
        ),
        (
            "throttle: {linear: {initial_bytes_per_second: 1 kB, maximum_bytes_per_second: 9 kB, \
             rate_of_change: {bytes_per_second: 2 kB}}}",
            "Bytes Ramp 1000 9000 2000",
        ),
        (
            "throttle: {linear: {initial: {blocks_per_second: 1}, maximum: {blocks_per_second: 3}, \
             rate_of_change: {blocks_per_second: 1}}}",
            "Blocks Ramp 1 3 1",
        ),
    ] {
        let (run, result) = run_plan(&generator(
            "tcp",
            &format!("addr: 127.0.0.1:1\n      {body}"),
        ));
        assert!(!result.has_errors(), "{result}");
        assert_eq!(spell(&run.generators[0].rate), rate, "{body}");
    }
}

fn spell(rate: &stillwell_plan::RatePlan) -> String {
    use stillwell_plan::RateShape;
    match &rate.shape {
        RateShape::Max => "Max".to_owned(),
        RateShape::Constant { per_second } => format!("{:?} Constant {per_second}", rate.unit),
        RateShape::Ramp(ramp) => {
            let (from, to) = (ramp.from_per_second, ramp.to_per_second);
            let change = (to - from) / ramp.over.as_secs_f64();
            format!("{:?} Ramp {from} {to} {change}", rate.unit)
        }
        RateShape::Steps { .. } => unreachable!("lading has no steps"),
    }
}

#[test]
fn unix_rates_are_each_connections_own() {
    for kind in ["unix_stream", "unix_datagram"] {
        let body = "path: /tmp/s\n      bytes_per_second: 1 kB\n      parallel_connections: 3";
        let (run, result) = run_plan(&generator(kind, body));
        assert!(!result.has_errors(), "{result}");
        assert_eq!(spell(&run.generators[0].rate), "Bytes Constant 3000");
    }
    let (run, _) = run_plan(&generator(
        "tcp",
        "addr: 127.0.0.1:1\n      bytes_per_second: 1 kB\n      parallel_connections: 3",
    ));
    assert_eq!(spell(&run.generators[0].rate), "Bytes Constant 1000");
}

// compat: lading, files | generator: [] | works
#[test]
fn an_idle_file_is_read() {
    let (run, result) =
        run_plan("generator: []\nblackhole: []\ntelemetry: {addr: '0.0.0.0:9000'}\n");
    assert!(!result.has_errors(), "{result}");
    assert!(run.generators.is_empty() && run.sinks.is_empty());
}

// compat: lading, files | sample_period_milliseconds, observer, telemetry | works
#[test]
fn everything_else_at_the_top_is_read() {
    let (run, result) = run_plan("
blackhole:
  - id: intake
    http:
      binding_addr: localhost:8080
      body_variant: {static: hello}
      status: 202
      headers: {a: b}
      response_delay_millis: 75
      concurrent_requests_max: 9
  - http: {binding_addr: '127.0.0.1:8081', body_variant: raw_bytes, raw_bytes: [1, 2]}
  - udp: {binding_addr: '127.0.0.1:8080'}
  - unix_stream: {path: /tmp/a}
  - unix_datagram: {path: /tmp/b}
observer: {enable_smaps: true, enable_smaps_rollup: false}
sample_period_milliseconds: 500
target_metrics:
  - prometheus: {uri: 'http://0.0.0.0:9090/metrics', metrics: [a, b], tags: {k: v}}
telemetry: {path: /tmp/x.jsonl, global_labels: {a: b}, expiration: {secs: 1, nanos: 0}, format: {jsonl: {flush_seconds: 60}}}
");
    assert!(!result.has_errors(), "{result}");
    insta::assert_debug_snapshot!(run);
}

/// lading replaces `__` in names of Prometheus' pages only.
#[test]
fn names_of_prometheus_pages_are_dotted() {
    for (entry, format) in [
        ("prometheus: {", ScrapeFormat::DottedPrometheus),
        ("expvar: {vars: [/a__b], ", ScrapeFormat::Expvar),
    ] {
        let uri = "uri: 'http://127.0.0.1:9090/metrics'";
        let text = format!("generator: []\nblackhole: []\ntarget_metrics: [{{{entry}{uri}}}}}]\n");
        let (run, result) = run_plan(&text);
        assert!(!result.has_errors(), "{result}");
        assert_eq!(run.observer.scrapes[0].format, format);
    }
}

// compat: lading, generators | proc_fs | works
#[test]
fn generators_of_the_system_are_read_with_ladings_defaults() {
    let text = format!(
        "generator:
  - process_tree:
      seed: {0}
      max_tree_per_second: 3
      executables:
        - {{executable: /bin/true, args: {{mode: generate}}, envs: {{mode: static, values: [A=b]}}}}
  - proc_fs: {{seed: {0}, root: /tmp/proc, total_processes: 9}}
  - container:
      repository: busybox
      tag: latest
      args: [sleep, '9']
      labels: {{a: b}}
      max_lifetime_seconds: 60
      number_of_containers: 3
blackhole: []
target_metrics:
  - expvar: {{uri: 'https://127.0.0.1:5000/debug/vars', vars: [/a/b], tags: {{k: v}}}}
observer: {{enable_smaps: true}}
",
        seed()
    );
    let (run, result) = run_plan(&text);
    assert!(!result.has_errors(), "{result}");
    assert!(run.observer.kernel.smaps);
    let transports: Vec<_> = run
        .generators
        .iter()
        .map(|single| (&single.transport, &single.rate))
        .collect();
    insta::assert_debug_snapshot!((transports, &run.observer.scrapes));
}

// compat: lading, generators | process_tree | works
#[test]
fn a_process_tree_has_ladings_raw_throttle() {
    let rate = |more: &str| {
        let text = format!(
            "generator:\n  - process_tree:\n      seed: {}\n      executables: [{{executable: x}}]\n      {more}\n",
            seed()
        );
        let (run, result) = read(
            &Source::new("lading.yaml", text),
            true,
            NamedFiles::default(),
        );
        match run.filter(|_| !result.has_errors()) {
            Some(run) => spell(&run.generators[0].rate),
            None => result.to_string(),
        }
    };
    assert_eq!(rate("max_tree_per_second: 3"), "Blocks Constant 3");
    assert_eq!(
        rate("throttle: {stable: {maximum_capacity: 4, timeout_micros: 0}}"),
        "Blocks Constant 4"
    );
    assert!(rate("throttle: all_out").contains("Max"));
    assert!(rate("").contains("Max"));
    let ramp = "throttle: {linear: {initial_capacity: 1, maximum_capacity: 9, rate_of_change: 2}}";
    assert!(rate(ramp).contains("Ramp"), "{}", rate(ramp));
    for (wrong, expected) in [
        (
            "throttle: {stable: {bytes_per_second: 1 kB}}",
            "maximum_capacity",
        ),
        ("max_tree_per_second: 0", "out of range"),
    ] {
        assert!(rate(wrong).contains(expected), "{}", rate(wrong));
    }
}

// compat: lading, files | inspector | works
#[test]
fn an_inspector_is_read_and_its_mistakes_are_reported() {
    let (run, result) = run_plan(
        "inspector:
  command: /usr/bin/perf
  arguments: [record, -g]
  environment_variables: {A: 1}
  output: {stdout: /tmp/out.log, stderr: null}
",
    );
    assert!(result.is_empty(), "{result}");
    let inspector = run.observer.inspector.unwrap();
    assert_eq!(inspector.program, std::path::Path::new("/usr/bin/perf"));
    assert_eq!(inspector.arguments, ["record", "-g"]);
    assert_eq!(inspector.environment["A"], "1");
    assert_eq!(inspector.stdout, Some("/tmp/out.log".into()));
    assert_eq!(inspector.stderr, None);
    for (text, message) in [
        ("inspector: {arguments: [x]}", "needs `command`"),
        ("inspector: {command: ''}", "the command is empty"),
        (
            "inspector: {command: a, args: [x]}",
            "unknown inspector key `args`",
        ),
        ("inspector: {command: a, output: {stdot: x}}", "`stdout`"),
        ("inspector: perf", "inspector"),
    ] {
        let mistakes = mistakes(text);
        assert!(mistakes.contains(message), "{mistakes}");
    }
}

#[test]
fn what_is_known_but_not_built_is_named() {
    let text = format!(
        "generator:
  - kafka: {{topic: a}}
  - tcp:
      seed: {}
      addr: 0.0.0.0:8282
      variant: ascii
      maximum_prebuild_cache_size_bytes: 256 MB
",
        seed()
    );
    insta::with_settings!({ omit_expression => true }, {
        insta::assert_snapshot!(mistakes(&text));
    });
}

#[test]
fn objects_of_a_cluster_are_read_with_ladings_defaults() {
    let text = "generator:
  - kubernetes:
      manifest:
        deployment: |
          metadata: {name: web, namespace: lab}
          spec: {replicas: 2}
      max_instance_lifetime_seconds: 60
      concurrent_instances: 3
  - kubernetes: {manifest: {node: 'kind: Node'}}
blackhole: []
";
    let (run, result) = run_plan(text);
    assert!(!result.has_errors(), "{result}");
    let message = result.to_string();
    for note in ["lifetime", "the network of the host"] {
        assert!(message.contains(note), "{message}");
    }
    let generators: Vec<_> = run
        .generators
        .iter()
        .map(|single| (&single.id, &single.transport))
        .collect();
    insta::assert_debug_snapshot!(generators);
}

#[test]
fn mistakes_in_objects_of_a_cluster_are_reported() {
    for (body, message) in [
        ("{}", "needs `manifest`"),
        ("{manifest: {job: a}}", "unknown manifest key `job`"),
        ("{manifest: {pod: {kind: Pod}}}", "expected a single value"),
        (
            "{manifest: {pod: 'kind: Service'}}",
            "it belongs under `service`",
        ),
        (
            "{manifest: {pod: a, node: b}}",
            "a manifest can have only one of",
        ),
        (
            "{manifest: {pod: 'a: b'}, concurrent_instances: 0}",
            "a whole number from 1",
        ),
        (
            "{manifest: {pod: 'a: b'}, lifetime: 1}",
            "unknown kubernetes generator key",
        ),
    ] {
        let mistakes = mistakes(&format!("generator: [kubernetes: {body}]\n"));
        assert!(mistakes.contains(message), "{body}: {mistakes}");
    }
}

#[test]
fn mistakes_are_shown_all_at_once() {
    let text = "generators: []
generator:
  - tcp:
      seed: [1, 2, 300]
      address: 127.0.0.1:1
      variant: acsii
      bytes_per_second: fast
      maximum_prebuild_cache_size_bytes: 8 MiB
      throttle: {stable: {bytes_per_second: 1 MB, blocks_per_second: 1}}
    id: one
  - id: one
    udp:
      seed: [1, 2]
      addr: '9100'
      variant: ascii
      maximum_block_size: 1 MiB
      maximum_prebuild_cache_size_bytes: 0 B
blackhole:
  - tcp: {binding_addr: 127.0.0.1:8080}
  - http: {binding_addr: 127.0.0.1:8080, status: 1000}
";
    insta::with_settings!({ omit_expression => true }, {
        insta::assert_snapshot!(mistakes(text));
    });
}

#[test]
fn load_past_the_subject_is_a_warning() {
    let text = generator("tcp", "addr: 0.0.0.0:8080")
        + "blackhole: [{tcp: {binding_addr: 0.0.0.0:8080}}]\n";
    let past = |has_subject| {
        let source = Source::new("lading.yaml", text.as_str());
        let (_, result) = read(&source, has_subject, NamedFiles::default());
        result.iter().any(|single| single.code == code::PAST_TARGET)
    };
    assert!(past(true));
    assert!(!past(false));
}

#[test]
fn block_sizes_and_cache_methods_are_remarked_on() {
    let (run, result) = run_plan(&generator(
        "unix_datagram",
        "path: /tmp/s\n      block_sizes: [1KiB, 4Kb]\n      block_cache_method: Streaming",
    ));
    assert!(!result.has_errors(), "{result}");
    // While there was this key, a small `b` meant bytes.
    let maximum = run.generators[0].payload.blocks.maximum();
    assert_eq!(maximum.bytes(), 4000);
    let codes: Vec<&str> = result.iter().map(|single| single.code).collect();
    assert_eq!(codes, [code::MEANING, code::NO_EFFECT]);
}

#[test]
fn unix_datagrams_may_be_larger_than_their_default() {
    let of = |key: &str| generator("unix_datagram", &format!("path: /tmp/s{key}"));
    for (key, bytes) in [
        ("", 8192),
        ("\n      maximum_block_size: 16 KiB", 16_384),
        ("\n      maximum_block_size: 128 KiB", 131_072),
    ] {
        let (run, result) = run_plan(&of(key));
        assert!(!result.has_errors(), "{result}");
        assert_eq!(run.generators[0].payload.blocks.maximum().bytes(), bytes);
    }
    // The kernel refuses a datagram that is larger than its buffer.
    let result = mistakes(&of("\n      maximum_block_size: 129 KiB"));
    assert!(result.contains("does not fit in one datagram"), "{result}");
}

// compat: lading, files | block_cache_method | works
#[test]
fn blocks_repeat_with_every_cache_method() {
    for method in ["", "Fixed", "fixed", "Streaming"] {
        let key = match method {
            "" => String::new(),
            method => format!("\n      block_cache_method: {method}"),
        };
        let (run, result) = run_plan(&generator("unix_datagram", &format!("path: /tmp/s{key}")));
        assert!(run.generators[0].payload.repeats, "{method}");
        let remarks = result
            .iter()
            .filter(|single| single.code == code::NO_EFFECT);
        assert_eq!(
            remarks.count(),
            usize::from(method == "Streaming"),
            "{result}"
        );
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(300))]

    #[test]
    fn nothing_panics_and_every_place_lies_in_the_file(
        at in 0..400_usize,
        length in 0..12_usize,
        text in "[-{}\\[\\]:,'\" \n\ta-z0-9é&*!|>#%]{0,12}",
    ) {
        let whole = generator("tcp", "addr: 0.0.0.0:8080") + "blackhole: [{tcp: {binding_addr: 0.0.0.0:8080}}]\n";
        let mut characters: Vec<char> = whole.chars().collect();
        let start = at.min(characters.len());
        let end = (start + length).min(characters.len());
        characters.splice(start..end, text.chars());
        let mutated: String = characters.into_iter().collect();
        let source = Source::new("lading.yaml", mutated);
        let (_, result) = read(&source, true, NamedFiles::default());
        for single in &result {
            let place = single.place.as_ref().expect("a place");
            assert!(place.span.end <= source.text().len());
        }
        assert_eq!(result.render(true).is_empty(), result.is_empty());
    }
}

// compat: lading, files | YAML tags | works
#[test]
fn tags_are_kinds_as_in_lading() {
    let sinks = |body: &str| {
        let text =
            format!("blackhole:\n  - http:\n      binding_addr: 127.0.0.1:1\n      {body}\n");
        run_plan(&text)
    };
    let (tagged, result) = sinks("body_variant: !static ok");
    assert!(!result.has_errors(), "{result}");
    assert_eq!(tagged.sinks, sinks("body_variant: {static: ok}").0.sinks);
    assert_eq!(
        sinks("body_variant: !nothing").0.sinks,
        sinks("body_variant: nothing").0.sinks
    );
    let (_, result) = sinks("body_variant: !statc ok");
    assert!(result.to_string().contains("`static`"), "{result}");
    let (run_plan, result) = run_plan(
        &generator("tcp", "addr: 127.0.0.1:1").replace("variant: ascii", "variant: !ascii"),
    );
    assert!(!result.has_errors(), "{result}");
    assert_eq!(run_plan.generators[0].payload.format, PayloadFormat::Ascii);
}

// compat: lading, files | experiment_duration, target, payloads of 2022 | differs | read with a warning
#[test]
fn spellings_of_2022_are_read_with_a_remark() {
    let text = generator("tcp", "addr: 127.0.0.1:1").replace("ascii", "\"Ascii\"")
        + "experiment_duration: 120\ntarget:\n  command: {path: /usr/bin/vector}\n  arguments: [--config, \
           a.toml]\n  environment_variables: {A: b}\n  output: {stdout: a, stderr: b}\n";
    let (run_plan, result) = run_plan(&text);
    assert!(!result.has_errors(), "{result}");
    assert_eq!(run_plan.generators[0].payload.format, PayloadFormat::Ascii);
    let result = result.to_string();
    for words in [
        "was renamed to `ascii`",
        "--measure 120s",
        "-- /usr/bin/vector --config a.toml",
    ] {
        assert!(result.contains(words), "{words}: {result}");
    }
    assert_eq!(today_name("OpentelemetryLogs"), Some("opentelemetry_logs"));
    assert_eq!(today_name("ascii"), None);
}

// compat: lading, files | content_type of an http blackhole | works
#[test]
fn a_content_type_goes_before_the_default() {
    let text = "blackhole:\n  - http: {binding_addr: '127.0.0.1:1', content_type: text/plain}\n";
    let (run_plan, result) = run_plan(text);
    assert!(!result.has_errors(), "{result}");
    let SinkProtocol::Http { headers, .. } = &run_plan.sinks[0].protocol else {
        panic!("{:?}", run_plan.sinks[0].protocol);
    };
    assert_eq!(
        *headers,
        [("content-type".to_owned(), "text/plain".to_owned())]
    );
}

// compat: lading, files | maximum_prebuild_cache_size_bytes | differs | above 64 GiB an error
#[test]
fn caches_are_held_in_memory_and_hold_a_block() {
    for (text, words) in [
        (
            generator("tcp", "addr: 127.0.0.1:1").replace("8 MiB", "1 TiB"),
            "too large",
        ),
        (
            generator("tcp", "addr: 127.0.0.1:1\n      maximum_block_size: 9 MiB"),
            "does not fit in a cache",
        ),
        (
            generator(
                "passthru_file",
                "path: /tmp/a\n      maximum_block_size: 9 MiB",
            ),
            "does not fit in a cache",
        ),
    ] {
        let result = mistakes(&text);
        assert!(result.contains(words), "{result}");
    }
}

#[test]
fn a_call_without_a_method_is_a_warning() {
    let (_, result) = run_plan(&generator("grpc", "target_uri: http://127.0.0.1:1"));
    assert!(!result.has_errors(), "{result}");
    assert!(result.to_string().contains("no method"), "{result}");
}

/// Parts that mistakes are made of.
const PARTS: [&str; 16] = [
    "", "\0", "\t", ":", ": ", "- ", "{", "}", "[", "]", "\"", "'", "&a", "!x", "-1", "1e999",
];

proptest::proptest! {
    /// Mistakes of any kind are errors that name their place.
    #[test]
    fn for_all_mistakes_in_a_file_there_is_no_panic_and_each_error_has_a_place(
        changes in proptest::collection::vec(
            (proptest::prelude::any::<proptest::sample::Index>(), 0_usize..40, 0_usize..PARTS.len()),
            1..4,
        ),
    ) {
        let mut text = generator("tcp", "addr: 127.0.0.1:9000\n      bytes_per_second: 1 MiB");
        text.push_str("blackhole:\n  - http:\n      binding_addr: 127.0.0.1:9001\n");
        for (at, length, part) in changes {
            let from = at.index(text.len() + 1);
            let to = (from + length).min(text.len());
            // Texts of the file are ASCII.
            text.replace_range(from..to, PARTS[part]);
        }
        let (_, result) = read(&Source::new("lading.yaml", &text), true, NamedFiles::default());
        let shown = result.to_string();
        let has_place = shown.is_empty() || shown.contains("--> lading.yaml");
        proptest::prop_assert!(has_place, "{text}\n{shown}");
    }
}
