//! Typical mistakes, and what is said about them.

use stillwell_text::Diagnostics;

use super::golden::{EVERYTHING, LEAST};
use super::{experiment, run_plan};

/// Diagnostics of `text`, which must be invalid.
pub(super) fn rendered_diagnostics(text: &str) -> String {
    match experiment(text) {
        Err(diagnostics) => diagnostics.to_string(),
        Ok(_) => panic!("this is right: {text}"),
    }
}

/// The codes and lines of what is said about `text`.
pub(super) fn codes(text: &str) -> Vec<(&'static str, usize)> {
    let diagnostics: Diagnostics = match experiment(text) {
        Err(diagnostics) => diagnostics,
        Ok(loaded) => loaded.warnings,
    };
    let line = |diagnostic: &stillwell_text::Diagnostic| {
        diagnostic
            .place
            .as_ref()
            .map_or(0, |place| place.start().line)
    };
    diagnostics
        .iter()
        .map(|diagnostic| (diagnostic.code, line(diagnostic)))
        .collect()
}

#[test]
fn keys_that_are_misspelt_missing_or_double() {
    snapshot!(
        "target:
  comand: [./x]
variants: {baseline: {}, comparison: {argments: [a]}}
workload:
  generators:
    - tcp: {adress: '127.0.0.1:9100'}
      payload: syslog
      rate_limit: 100/s
    - udp: '127.0.0.1:1'
      http: http://127.0.0.1:2/
      payload: ascii
    - {}
  sinks:
    - tcp: {}
warmup: 10s
pairs: 6
pairs: 7
"
    );
}

#[test]
fn values_without_units_or_out_of_range() {
    snapshot!(
        "seed: many
target: {command: ./x, memory: 512, cpus: most, stop: {grace: 5, signal: SIGTERM}}
variants: {baseline: {}, comparison: {}}
workload:
  generators:
    - {tcp: '127.0.0.1:9100', payload: ascii, rate: 500 MiB, block: 64}
    - {tcp: '127.0.0.1', payload: ascii, rate: 500 Mb/s, connections: 0}
    - {tcp: '127.0.0.1:99999', payload: ascii, rate: {from: 1/s, to: 1 MiB/s, over: 1s}}
    - {http: 'ftp://localhost/', payload: ascii, rate: fast}
    - {http: {url: 'https://a/', protocol: http3, streams: 2, timeout: 0s}, payload: ascii}
    - {http: {url: 'https://a/', insecure: true, ca: none.pem, reuse: fifo}, payload: ascii}
phases: {warmup: 0s, measure: 0s, ready: soon}
goals: [{metric: cpu, tolerance: 0.03}, {metric: memory, tolerance: 150%}, latency]
pairs: 0
erratic: maybe
"
    );
}

#[test]
fn things_that_do_not_fit_together() {
    snapshot!(
        "target: {command: ./x, mounts: [{source: conf, at: etc/thing}, {source: gone, at: /etc/x}]}
variants: {baseline: {binary: ./y, git: {revision: a, build: b, output: c}}}
workload:
  generators:
    - {id: a, tcp: '127.0.0.1:9200', payload: ascii, connections: 2, workers: 3}
    - {id: a, udp: '127.0.0.1:1', payload: {lines: gone.log}, block: 1 MiB, rate: 1/s}
    - {unix_stream: s, payload: json, cache: 1 KiB, rate: {from: 0/s, to: 0/s, over: 1s}}
  sinks:
    - tcp: 127.0.0.1:9200
    - http: {address: '127.0.0.1:9200'}
    - udp: nowhere
operating_point: stated
timeline: [{at: 1h, signal: HUP}, {at: 1s}, {at: 1s, signal: HUP, note: x}]
checks:
  - {name: a, series: total_rss_bytes}
  - {name: b, series: 'max(x)', upper_bound: 1}
  - {name: c, series: x, upper_bound: 1, lower_bound: 2}
"
    );
}

#[test]
fn a_probe_without_a_rate_to_find() {
    snapshot!(
        "target: {command: ./x}
variants: {baseline: {}, comparison: {arguments: [a]}}
workload: {generators: [{tcp: '127.0.0.1:9200', payload: ascii, rate: 1/s}]}
goals: [memory]
operating_point: probe
"
    );
}

#[test]
fn goals_that_can_never_be_measured() {
    snapshot!(
        "target: {command: ./x}
variants: {baseline: {}, comparison: {arguments: [a]}}
goals: [cpu_per_event, memory, memory, egress_throughput]
"
    );
}

#[test]
fn shapes_that_are_something_else() {
    snapshot!(
        "target: ./x
variants: [baseline, comparison]
workload: {generators: {tcp: a}, sinks: none}
goals: memory
checks: {}
"
    );
}

#[test]
fn text_that_is_not_yaml() {
    snapshot!("target: {command: ./x\nvariants: {}\n");
}

#[test]
fn a_file_without_anything() {
    snapshot!("");
    snapshot!("pairs: 6\n");
}

const LONG_SOCKET: &str = concat!(
    "path: /tmp/0123456789012345678901234567890123456789012345678",
    "901234567890123456789012345678901234567890123456789.sock"
);

#[test]
fn each_mistake_is_reported_at_its_place() {
    use stillwell_text::code as c;
    let with = |from: &str, to: &str| {
        assert!(EVERYTHING.contains(from), "{from}");
        codes(&EVERYTHING.replacen(from, to, 1))
    };
    for (from, to, code) in [
        ("seed: 42", "seed: -1", c::BAD_VALUE),
        ("name: relay", "nmae: relay", c::UNKNOWN_KEY),
        ("K: V", "'K=': V", c::BAD_VALUE),
        ("directory: conf", "directory: x.log", c::UNREADABLE),
        (
            "http: \"http://127.0.0.1:9100/ready\"",
            "log: x",
            c::UNKNOWN_KEY,
        ),
        ("cpus: [2, 0]", "cpus: []", c::OUT_OF_RANGE),
        ("512 MiB", "5 KiB", c::OUT_OF_RANGE),
        ("/etc/thing", "/", c::RELATIVE_PATH),
        ("revision: main", "revision: --all", c::BAD_VALUE),
        (
            "payload: syslog5424",
            "payload: syslog5423",
            c::UNKNOWN_WORD,
        ),
        ("workers: 2", "workers: 5", c::OUT_OF_RANGE),
        ("cache: 64 MiB", "cache: 1 KiB", c::OUT_OF_RANGE),
        (
            "address: \"127.0.0.1:9100\"",
            "address: \"127.0.0.1:0\"",
            c::OUT_OF_RANGE,
        ),
        ("x-key:", "x key:", c::BAD_VALUE),
        ("x-key:", "Host:", c::BAD_VALUE),
        ("path: /tmp/one.sock", LONG_SOCKET, c::OUT_OF_RANGE),
        ("status: 202", "status: 99", c::OUT_OF_RANGE),
        ("share: 70%", "share: 100%", c::OUT_OF_RANGE),
        ("period: 500ms", "period: 1ms", c::OUT_OF_RANGE),
        ("network: no", "network: nein", c::UNKNOWN_WORD),
        ("tolerance: 1%", "tolerance: 1", c::UNIT_MISSING),
        ("upper_bound: 475 MiB", "upper_bound: large", c::BAD_VALUE),
        ("{max: 12}", "{max: 3}", c::OUT_OF_RANGE),
        ("{max: 12}", "{max: 12, open: 9}", c::ONE_OF_KEYS),
        ("{max: 12}", "{maximum: 12}", c::UNKNOWN_KEY),
        ("turn_min: 50ms", "turn_min: 1ms", c::OUT_OF_RANGE),
        ("turn_min: 50ms", "turn_min: 300ms", c::OUT_OF_RANGE),
        ("turn_max: 250ms", "turn_max: 900ms", c::COURSE),
        ("{sliced:", "{slices:", c::UNKNOWN_KEY),
        ("{at_least: 2s}", "automatic", c::BAD_VALUE),
        ("{at_least: 2s}", "{at_most: 2s}", c::UNKNOWN_KEY),
        ("confirm: false", "confirm: never", c::BAD_VALUE),
        ("include_startup: false", "include_startup: true", c::COURSE),
        ("reduce: rate", "reduce: sum", c::UNKNOWN_WORD),
        ("reduce: rate", "reduce: mean", c::BAD_VALUE),
        ("better: higher", "better: more", c::UNKNOWN_WORD),
        ("['out']", "[out]", c::BAD_VALUE),
        (
            "{series: \"bytes_received",
            "{series: \"byte_received",
            c::UNKNOWN_WORD,
        ),
        ("[64 KiB]", "[]", c::MATRIX),
        ("[64 KiB]", "[64 KB, 64 KB]", c::SAME_NAME),
        ("{matrix.size}", "{matrix.sise}", c::MATRIX_PARAMETER),
    ] {
        let at = EVERYTHING.find(from).unwrap();
        let line = EVERYTHING[..at].matches('\n').count() + 1;
        let codes = with(from, to);
        assert!(codes.contains(&(code, line)), "{from}: {codes:?}");
    }
}

#[test]
fn load_that_bypasses_the_target_is_a_warning() {
    let text = format!("{LEAST}  sinks: [{{tcp: 'localhost:9100'}}]\n");
    assert_eq!(codes(&text), [(stillwell_text::code::PAST_TARGET, 4)]);
    let text = text.replace("target: {command: ./relay --in 127.0.0.1:9100}\n", "");
    let text = text.replace(
        "variants: {baseline: {}, comparison: {arguments: [--slow]}}\n",
        "",
    );
    assert!(run_plan(&text).unwrap().warnings.is_empty());
}

#[test]
fn colours_are_off_by_default() {
    let diagnostics = experiment("subjct: 1\n").unwrap_err();
    assert!(!diagnostics.render(false).contains('\u{1b}'));
    assert!(diagnostics.render(true).contains('\u{1b}'));
}

#[test]
fn keys_without_effect_or_meaning_are_reported() {
    let generator = |text: &str| {
        format!(
            "target: {{command: ./x}}\nvariants: {{baseline: {{}}, comparison: {{}}}}\nworkload:\n  generators:\n    \
             - {{{text}}}\n  sinks: [{{tcp: '127.0.0.1:9200'}}]\n"
        )
    };
    for (text, expected) in [
        (
            "udp: '127.0.0.1:1', payload: {netflow: {}}, rate: 1 MiB/s, block: {events: 3}",
            Some("W111"),
        ),
        (
            "http: 'http://127.0.0.1:1/', payload: {remote_write: {}}, rate: 1 MiB/s, block: {events: 3}",
            Some("W111"),
        ),
        (
            "udp: '127.0.0.1:1', payload: {netflow: {}}, rate: 1 MiB/s, block: 1 KiB",
            None,
        ),
        (
            "tcp: '127.0.0.1:1', payload: {gelf: {end: nothing}}, rate: 10/s",
            Some("W404"),
        ),
        (
            "udp: '127.0.0.1:1', payload: {gelf: {end: nothing}}, rate: 1 MiB/s",
            Some("W404"),
        ),
        (
            "udp: '127.0.0.1:1', payload: {gelf: {end: nothing}}, rate: 10/s",
            None,
        ),
        ("tcp: '127.0.0.1:1', payload: gelf, rate: 10/s", None),
        (
            "tcp: '127.0.0.1:1', payload: {dogstatsd: {contexts: 500}}, rate: 100/s",
            Some("W404"),
        ),
        (
            "tcp: '127.0.0.1:1', payload: {dogstatsd: {contexts: 500}}, rate: 600/s",
            None,
        ),
    ] {
        let diagnostics = codes(&generator(text));
        let here = diagnostics
            .iter()
            .find(|(_, line)| *line == 5)
            .map(|(code, _)| *code);
        assert_eq!(here, expected, "{text}: {diagnostics:?}");
    }
}

#[test]
fn generators_of_the_system_and_tls_are_read() {
    let text = "target: {command: ./x}
variants: {baseline: {}, comparison: {}}
workload:
  generators:
    - process_tree: {depth: 3, executables: [{program: sleep, arguments: ['0'], environment: {length: 3, count: 2}}]}
      rate: 5/s
    - proc_fs: {root: /tmp/proc, processes: 7, copies: [/proc/stat]}
    - container: {repository: busybox, lifetime: 5s, count: 2}
    - tcp: {address: 'example.test:6514', tls: {insecure: true}}
      payload: syslog5424
    - unix_stream: {path: /tmp/s, tls: {name: a.test}}
      payload: ascii
  sinks: [{tcp: '127.0.0.1:9200'}]
";
    let loaded = experiment(text).unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    let generators = &loaded.plan.experiments[0].run_plan.generators;
    let transports: Vec<_> = generators
        .iter()
        .map(|generator| &generator.transport)
        .collect();
    insta::assert_debug_snapshot!(transports);
}

/// The word is no path: a file of that name is `./system`.
#[test]
fn every_generator_with_tls_takes_the_certificates_of_the_host() {
    for generator in [
        "{http: {url: 'https://a/', ca: CA}, payload: ascii, rate: 1/s}",
        "{tcp: {address: 'a:1', tls: {ca: CA}}, payload: ascii, rate: 1/s}",
        "{requests: {url: 'https://a/', ca: CA}, rate: 1/s}",
        "{scenario: {url: 'https://a/', ca: CA, steps: [{name: a, path: /}]}}",
    ] {
        for (ca, expected) in [
            ("system", Ok("extra: [System]")),
            ("./x.log", Ok("extra: [File(\"/suite/x.log\")]")),
            ("./system", Err("there is no file /suite/system")),
        ] {
            let generator = generator.replace("CA", ca);
            let read = run_plan(&format!("workload:\n  generators:\n    - {generator}\n"));
            match (read, expected) {
                (Ok(loaded), Ok(expected)) => {
                    let plan = format!("{:?}", loaded.plan.generators[0].transport);
                    assert!(plan.contains(expected), "{generator}: {plan}");
                }
                (Err(diagnostics), Err(expected)) => {
                    let message = diagnostics.to_string();
                    assert!(message.contains(expected), "{generator}: {message}");
                }
                (read, _) => panic!("{generator}: {:?}", read.err()),
            }
        }
    }
}

#[test]
fn a_generator_without_connections_has_one_worker() {
    for generator in [
        "file_tree: {root: /tmp/tree}",
        "container: {repository: busybox, count: 2}",
        "process_tree: {executables: [{program: sleep}]}",
        "proc_fs: {root: /tmp/proc, processes: 2}",
    ] {
        let text = |more: &str| {
            format!("workload:\n  generators:\n    - {generator}\n      rate: 5/s\n{more}")
        };
        if let Err(diagnostics) = run_plan(&text("")) {
            panic!("{generator}: {diagnostics}");
        }
        for more in ["connections: 2", "connections: 2\n      workers: 2"] {
            let refused = run_plan(&text(&format!("      {more}\n"))).unwrap_err();
            let message = refused.to_string();
            assert!(
                message.contains("`connections` has no effect here"),
                "{generator}: {message}"
            );
        }
    }
}

#[test]
fn an_unknown_placeholder_of_a_folder_is_refused() {
    for generator in [
        "file_tree: {root: 'PLACE/a'}",
        "proc_fs: {root: 'PLACE/a', processes: 2}",
    ] {
        let read = |place: &str| {
            let generator = generator.replace("PLACE", place);
            let text = format!("workload: {{generators: [{{{generator}, rate: 5/s}}]}}\n");
            run_plan(&text)
        };
        for known in ["{state}", "{experiment}", "/tmp"] {
            if let Err(diagnostics) = read(known) {
                panic!("{generator}: {diagnostics}");
            }
        }
        let message = read("{stat}").unwrap_err().to_string();
        let expected = "`{stat}/a` begins with an unknown placeholder";
        assert!(message.contains(expected), "{generator}: {message}");
    }
}

#[test]
fn mistakes_in_generators_of_the_system_and_in_tls() {
    snapshot!(
        "target: {command: ./x}
variants: {baseline: {}, comparison: {}}
workload:
  generators:
    - process_tree: {executables: []}
    - process_tree: {depth: 51, executables: [{programme: x}]}
    - proc_fs: {root: /tmp/proc}
    - container: {repository: 'a b'}
      payload: ascii
    - tcp: {address: '127.0.0.1:1', tls: }
      payload: ascii
    - tcp: {address: '127.0.0.1:1', tls: {insecure: true, ca: x.pem}}
      payload: ascii
"
    );
}

#[test]
fn a_file_sink_has_one_worker() {
    for (sink, workers, is_refused) in [
        ("file: ./out.log", 1, false),
        ("file: ./out.log", 2, true),
        ("tcp: '127.0.0.1:9200'", 2, false),
    ] {
        let text = format!("{LEAST}  sinks: [{{{sink}, workers: {workers}}}]\n");
        match experiment(&text) {
            Ok(_) => assert!(!is_refused, "{text}"),
            Err(diagnostics) => {
                let message = diagnostics.to_string();
                let expected = "a `file` sink has one worker";
                assert!(is_refused && message.contains(expected), "{message}");
            }
        }
    }
}
