use stillwell_plan::link::LinkUses;
use stillwell_plan::placement::Wanted;
use stillwell_plan::step::{
    DiskChange, DiskLimits, SinkChange, StepAction, TargetChange, TargetSignal,
};
use stillwell_text::code;
use stillwell_units::Nanos;

use super::run_plan;

/// A run on which every step can happen.
const TEXT: &str = "target: {command: ./x}
phases: {measure: 10s}
disks: [{path: '{state}/buffer', write_rate: 50 MiB/s}, {path: '{state}/small', tmpfs: 1 MiB}]
workload:
  generators:
    - {id: load, tcp: '127.0.0.1:9100', payload: ascii, rate: 1/s}
    - {id: log, file_gen: {log: /tmp/in.log, file_max: 1 MiB}, payload: ascii, rate: 1/s}
    - {id: files, file_gen: {path: '/tmp/%NNN%', file_max: 1 MiB}, payload: ascii, rate: 1/s}
  sinks:
    - {id: web, http: '127.0.0.1:9200'}
    - {id: lines, tcp: '127.0.0.1:9201'}
    - {id: grams, udp: '127.0.0.1:9202'}
    - {id: tail, file: /tmp/out.log}
";

/// Every step that can happen on it, some with all of their keys.
pub(super) const EVERY_STEP: &str = "  - {at: 1s, sink: {id: lines, do: {slow: 1 MiB/s}}}
  - {at: 2s, sink: {id: grams, do: pause}}
  - {at: 3s, sink: {id: grams, do: resume}}
  - {at: 4s, sink: {id: web, do: {respond: {status: 429, share: 12.5%, retry_after: 3}}}}
  - {at: 5s, sink: {id: web, do: {respond: {close: true}}}}
  - {at: 5s, sink: {id: web, do: {delay: 5 + 2 * active_requests}}}
  - {at: 5s, sink: {id: web, do: {delay: 20ms}}}
  - {at: 5s, sink: {id: web, do: queue}}
  - {at: 6s, sink: {id: web, do: restore}}
  - {at: 7s, file: {id: log, rotate: copy_truncate}}
  - {at: 7s, disk: {path: '{state}/buffer', do: full}}
  - {at: 7s, disk: {path: '{state}/buffer', do: {fsync_delay: 50ms, fsync_delay_per_mib: 2ms}}}
  - {at: 8s, disk: {path: '{state}/buffer', do: {write_rate: 1 MiB/s, limit: 8 MiB}}}
  - {at: 8s, disk: {path: '{state}/buffer', do: restore}}
  - {at: 8s, target: pause}
  - {at: 9s, target: resume}
";

/// A run with links, and all that can happen to them.
pub(super) const LINKS: &str = "target: {command: ./x}
network: {input: {delay: 5ms, rate: 10 Mbit/s}}
workload:
  generators: [{tcp: '10.64.1.2:9100', payload: ascii, rate: 1/s}]
  sinks: [{tcp: '10.64.2.2:9200'}]
timeline:
  - {at: 1s, network: {input: {rate: 1 MiB/s}, output: {loss: 0.5%, cut: true}}}
  - {at: 2s, target: {restart: {signal: KILL, after: 1s}}}
";

fn steps(timeline: &str) -> Vec<(Nanos, StepAction)> {
    let plan = run_plan(&format!("{TEXT}timeline:\n{timeline}"))
        .unwrap()
        .plan;
    let steps = plan.timeline.into_iter();
    steps.map(|step| (step.at, step.action)).collect()
}

#[test]
fn steps_become_a_plan_in_the_order_of_time() {
    let diagnostics = steps(
        "  - {at: 6s, target: {restart: {signal: KILL, after: 2s}}}
  - {at: 1s, sink: {id: web, do: down}}
  - {at: 2s, sink: {id: web, do: up}}
  - {at: 7s, note: meanwhile}
  - {at: 9s, target: restart}
",
    );
    let seconds = Nanos::from_secs;
    let sink = |change| StepAction::Sink {
        id: "web".to_owned(),
        change,
    };
    let end = |signal| StepAction::Target(TargetChange::End(signal));
    let start = StepAction::Target(TargetChange::Start);
    let expected = [
        (seconds(1), sink(SinkChange::Down)),
        (seconds(2), sink(SinkChange::Up)),
        (seconds(6), end(TargetSignal::Kill)),
        (seconds(7), StepAction::Note("meanwhile".to_owned())),
        (seconds(8), start.clone()),
        (seconds(9), end(TargetSignal::Term)),
        (seconds(9), start),
    ];
    assert_eq!(diagnostics, expected);
}

#[test]
fn a_network_without_a_value_is_none() {
    let text = format!("{TEXT}network:\ntimeline:\n  - {{at: 1s, note: meanwhile}}\n");
    let loaded = run_plan(&text).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(loaded.plan.isolation.links, None);
    let bare = run_plan(&text.replace("network:\n", "")).unwrap();
    assert_eq!(loaded.plan, bare.plan);
}

#[test]
fn steps_name_disks_as_the_file_does_and_limits_leave_out_what_stays() {
    let diagnostics = steps(
        "  - {at: 1s, disk: {path: '{state}/buffer', do: {fsync_delay: 50ms}}}
  - {at: 2s, disk: {path: '{state}/buffer', do: restore}}
",
    );
    let limits = DiskLimits {
        fsync_delay: Some(Nanos::from_millis(50)),
        ..DiskLimits::default()
    };
    let changes = [DiskChange::Limits(limits), DiskChange::Restore];
    let disk = |change| StepAction::Disk {
        path: "{state}/buffer".into(),
        change,
    };
    let expected = [1, 2].map(Nanos::from_secs).into_iter();
    let expected: Vec<_> = expected.zip(changes.map(disk)).collect();
    assert_eq!(diagnostics, expected);
}

#[test]
fn only_steps_on_the_target_may_be_in_the_drain() {
    let diagnostics = steps("  - {at: 12s, target: {restart: {signal: KILL, after: 1s}}}\n");
    let times: Vec<Nanos> = diagnostics.into_iter().map(|(at, _)| at).collect();
    assert_eq!(times, [12, 13].map(Nanos::from_secs));
    for refused in [
        "at: 20s, target: restart",
        "at: 12s, sink: {id: web, do: down}",
    ] {
        let text = format!("{TEXT}timeline: [{{{refused}}}]\n");
        let message = run_plan(&text).unwrap_err().to_string();
        assert!(message.contains("this step is never reached"), "{message}");
    }
}

#[test]
fn every_step_that_can_happen_is_read() {
    let diagnostics = steps(EVERY_STEP);
    assert_eq!(diagnostics.len(), 16);
    let text = serde_json::to_string(&diagnostics).unwrap();
    let again: Vec<(Nanos, StepAction)> = serde_json::from_str(&text).unwrap();
    assert_eq!(diagnostics, again);
}

#[test]
fn links_are_made_for_all_that_ever_happens_to_them() {
    let isolation = run_plan(LINKS).unwrap().plan.isolation;
    assert_eq!(isolation.network, Wanted::Required);
    let links = isolation.links.unwrap();
    let uses = |loss, rate, delay| LinkUses { loss, rate, delay };
    assert_eq!(links.input.ever, uses(false, true, true));
    assert_eq!(links.output.ever, uses(true, false, false));
    assert_eq!(links.input.bits_per_second, 10_000_000);
    assert_eq!(
        (links.output.loss_per_million, links.output.is_cut),
        (0, false)
    );
}

#[test]
fn the_rate_of_a_link_is_within_its_limits() {
    for (rate, expected) in [
        ("8 kbit/s", Some(8_000)),
        ("500 Gbit/s", Some(500_000_000_000)),
        ("62.5 GB/s", Some(500_000_000_000)),
        ("7999 bit/s", None),
        ("500.1 Gbit/s", None),
        ("62.6 GB/s", None),
        ("1e30 Gbit/s", None),
        ("4000000 TiB/s", None),
    ] {
        let text = LINKS.replace("rate: 10 Mbit/s", &format!("rate: {rate}"));
        let bits = match run_plan(&text) {
            Ok(loaded) => Some(loaded.plan.isolation.links.unwrap().input.bits_per_second),
            Err(diagnostics) => {
                let message = diagnostics.to_string();
                assert!(message.contains("`500 Gbit/s`"), "{rate}: {message}");
                None
            }
        };
        assert_eq!(bits, expected, "{rate}");
    }
}

#[test]
fn steps_that_cannot_happen() {
    snapshot!(&format!(
        "{TEXT}timeline:
  - {{at: 1s, sink: {{id: wbe, do: down}}}}
  - {{at: 1s, sink: {{id: web, do: up}}}}
  - {{at: 1s, sink: {{id: tail, do: pause}}}}
  - {{at: 1s, sink: {{id: grams, do: {{slow: 1 MiB/s}}}}}}
  - {{at: 1s, sink: {{id: lines, do: {{respond: {{status: 503}}}}}}}}
  - {{at: 1s, file: {{id: files, rotate: rename}}}}
  - {{at: 1s, file: {{id: load, rotate: truncate}}}}
  - {{at: 1s, file: {{id: none, rotate: rename}}}}
  - {{at: 1s, network: {{output: {{loss: 1%}}}}}}
  - {{at: 1s, disk: {{path: '{{state}}/bufer', do: full}}}}
  - {{at: 1s, disk: {{path: '{{state}}/small', do: full}}}}
  - {{at: 1s, disk: {{path: '{{state}}/buffer', do: {{}}}}}}
  - {{at: 2s, target: start}}
  - {{at: 3s, target: kill}}
  - {{at: 4s, signal: HUP}}
  - {{at: 9s, target: pause}}
"
    ));
}

/// Checks that the lines `expected` of `text` have errors of a timeline or a link.
#[track_caller]
fn assert_refused(text: &str, expected: &[usize]) {
    let diagnostics = match run_plan(text) {
        Ok(loaded) => loaded.warnings,
        Err(diagnostics) => diagnostics,
    };
    let refused = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.code == code::TIMELINE);
    let lines = refused.map(|diagnostic| diagnostic.place.as_ref().unwrap().start().line);
    assert_eq!(lines.collect::<Vec<_>>(), expected, "{diagnostics}");
}

#[test]
fn steps_on_a_target_that_is_a_url_are_errors() {
    for (step, expected) in [
        ("target: kill", &[5][..]),
        ("target: pause", &[5]),
        ("target: start", &[5]),
        ("target: {restart: {after: 1s}}", &[5]),
        ("signal: HUP", &[5]),
        ("note: meanwhile", &[]),
    ] {
        let text = format!(
            "target: {{url: 'http://127.0.0.1:1/'}}\nphases: {{measure: 10s}}\n\
             workload: {{generators: [{{requests: {{}}, rate: 10/s}}]}}\n\
             timeline:\n  - {{at: 1s, {step}}}\n"
        );
        assert_refused(&text, expected);
    }
}

#[test]
fn steps_that_are_misspelt() {
    snapshot!(&format!(
        "{TEXT}timeline:
  - {{at: 1s, sink: {{id: web, do: dwon}}}}
  - {{at: 1s, sink: {{id: web}}}}
  - {{at: 1s, sink: {{id: web, do: {{slow: fast}}}}}}
  - {{at: 1s, sink: {{id: web, do: {{respond: {{status: 200, share: 2}}}}}}}}
  - {{at: 1s, sink: {{id: web, do: {{respond: {{close: false}}}}}}}}
  - {{at: 1s, sink: {{id: web, do: {{delay: 5 + requests}}}}}}
  - {{at: 1s, target: reboot}}
  - {{at: 9s, target: {{restart: {{after: 15s}}}}}}
  - {{at: 1s, network: {{output: {{rate: 5, loss: 101%}}}}}}
  - {{at: 1s, disk: {{path: '{{state}}/buffer', do: ful}}}}
  - {{at: 1s, disk: {{path: '{{state}}/buffer', do: {{limit: 0 B}}}}}}
  - {{at: 1s, disk: {{path: '{{state}}/buffer', do: {{fsync: 1ms}}}}}}
  - {{at: 1s, disk: {{id: '{{state}}/buffer', do: full}}}}
"
    ));
}

#[test]
fn a_run_with_links_whose_ends_are_elsewhere() {
    snapshot!(
        "target: {command: ./x}
isolation: {network: no}
network: {output: {loss: 1%}}
workload:
  generators: [{udp: '127.0.0.1:9100', payload: ascii, rate: 1/s}]
  sinks: [{http: 'localhost:9200'}]
timeline: [{at: 1s, network: {}}]
"
    );
}

#[test]
fn generators_and_probes_of_a_run_with_links_connect_over_them() {
    for (probe, expected) in [
        ("{tcp: '127.0.0.1:9100'}", &[1][..]),
        ("{http: 'http://127.0.0.1:9101/metrics'}", &[1]),
        ("{tcp: '10.64.1.2:9100'}", &[]),
        ("{http: 'http://10.64.1.2:9101/metrics'}", &[]),
        ("{http: 'http://10.64.1.2/'}", &[]),
        ("{delay: 1s}", &[]),
    ] {
        let text = LINKS.replace("./x}", &format!("./x, ready: {probe}}}"));
        assert_refused(&text, expected);
    }
    for (generator, expected) in [
        (
            "requests: {url: 'https://127.0.0.1:9100/', protocol: http3}",
            &[4][..],
        ),
        (
            "requests: {url: 'https://10.64.1.2:9100/', protocol: http3}",
            &[],
        ),
        (
            "nats: {address: '127.0.0.1:4222', subject: a}, payload: ascii",
            &[4],
        ),
        (
            "nats: {address: '10.64.1.2:4222', subject: a}, payload: ascii",
            &[],
        ),
    ] {
        let text = LINKS.replace("tcp: '10.64.1.2:9100', payload: ascii", generator);
        assert_refused(&text, expected);
    }
    let targets = "targets: {a: {command: ./x, ready: {tcp: '127.0.0.1:9100'}}}";
    assert_refused(&LINKS.replace("target: {command: ./x}", targets), &[1]);
}
