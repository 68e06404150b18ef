//! Times before events, as Tremor's `ingest-ns` has them: how long each took, and no
//! account of them.

use serde_json::Value;
use stillwell_testkit::Process;

use super::{Load, Pace, Run, SLOW, TEXTS};
use crate::suite::{LONG, Suite};

const LINES: Load<'static> = Load {
    generator: "stamps: {form: prefix}",
    sink: "prefix: lines",
    checks: "",
    ..TEXTS
};

const LENGTHS: Load<'static> = Load {
    generator: "stamps: {form: prefix, framing: length_prefixed}",
    sink: "prefix: length_prefixed",
    ..LINES
};

/// Times that were read, what was none, and events as the sink counted them.
fn read(run: &Run) -> [u64; 3] {
    [
        run.count_of("prefixes", "read"),
        run.count_of("prefixes", "implausible"),
        run.count_of("whole", "events_received"),
    ]
}

/// A relay of lines passes every byte on: times may hold line ends.
#[test]
fn every_event_over_a_stream_has_its_time() {
    let run = Run::with("tcp", "tcp", LINES, SLOW, &["--stall", "200ms@500ms"]);
    let sent = run.count_of("whole", "events_sent");
    assert!(sent > 200, "{}", run.shown);
    assert_eq!(read(&run), [sent, 0, sent], "{}", run.shown);
    assert!(run.ledger().is_null(), "there is no ledger: {}", run.shown);
    // A stall delays everything sent meanwhile, on any machine.
    let latency = &run.summary["figures"]["event_latency"];
    assert!(
        latency["p90_ns"].as_u64().unwrap() > 50_000_000,
        "{latency}"
    );
    assert!(run.shown.contains("time prefixes"), "{}", run.shown);
}

#[test]
fn every_event_over_a_socket_of_its_own_host_has_its_time() {
    for (input, load) in [("tcp", LENGTHS), ("udp", LINES), ("udp", LENGTHS)] {
        let run = alone(input, load);
        let sent = run.count_of("whole", "events_sent");
        assert!(sent > 100, "{}", run.shown);
        assert_eq!(read(&run), [sent, 0, sent], "{input}: {}", run.shown);
    }
}

/// Without anything between generator and sink.
fn alone(input: &str, load: Load<'_>) -> Run {
    let pace = Pace {
        rate: 500,
        measure: "3s",
    };
    let target = |sink: &str| format!("{input}: \"{sink}\"");
    Run::direct(target, input, load, pace)
}

/// A target that puts nothing before its events, or removes the time.
#[test]
fn text_that_is_no_time_is_reported() {
    let load = Load {
        generator: "block: {events: 1, maximum: 4 KiB}",
        ..LINES
    };
    let run = alone("tcp", load);
    let [times, none, events] = read(&run);
    assert!(events > 100, "{}", run.shown);
    assert_eq!((times, none), (0, events), "{}", run.shown);
    assert!(
        run.summary["figures"]["event_latency"].is_null(),
        "{}",
        run.shown
    );
    assert!(run.shown.contains("implausible"), "{}", run.shown);
    // One that is no length ends the reading of its connection.
    let run = alone(
        "tcp",
        Load {
            sink: LENGTHS.sink,
            ..load
        },
    );
    assert_eq!(read(&run), [0, 1, 0], "{}", run.shown);
}

/// By the names that Tremor has for what puts a time before events and takes it off.
#[test]
fn a_bench_with_tremors_interceptors_has_latencies_and_no_account() {
    let suite = Suite::new();
    let (listen, sink) = (&suite.listen, &suite.sink);
    suite.file("in.json", &"{\"a\":\"some text\"}\n".repeat(10));
    let text = format!(
        "target: {{command: [\"{{self}}\", relay, --in, \"tcp://{listen}\", --out, \"tcp://{sink}\"]}}\n\
         in: tcp://{listen}\nout: tcp://{sink}\nsource: in.json\niters: 40\nrate: 500/s\n\
         postprocessors: [ingest-ns, separate]\npreprocessors: [separate, ingest-ns]\n"
    );
    let file = suite.file("bench.yaml", &text);
    let words = [
        "bench",
        "bench.yaml",
        "--format",
        "json",
        "--results",
        "results",
    ];
    let ended = Process::start(&mut suite.stillwell(&words)).finish(LONG);
    assert!(
        ended.stderr.contains("each has a time prefix"),
        "{}",
        file.display()
    );
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(report["received"]["events"], 400, "{report}");
    assert!(report["ledger"].is_null(), "{report}");
    assert!(report["max"].as_f64().unwrap() > 0.0, "{report}");
}
