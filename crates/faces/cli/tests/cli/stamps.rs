//! Every event accounted for: what a relay does wrong on purpose is what the run
//! says of it.

#[path = "stamps/headers.rs"]
mod headers;
#[path = "stamps/http2.rs"]
mod http2;
#[path = "stamps/prefixes.rs"]
mod prefixes;

use serde_json::Value;
use stillwell_testkit::{Process, free_port};

use crate::suite::{LONG, Suite, assert_holds};

/// Frequency of planted faults.
#[derive(Clone, Copy)]
struct Faults {
    drop: u64,
    flip: u64,
    swap: u64,
    double: u64,
}

/// Often enough for a short run at a low rate.
const MANY: Faults = Faults {
    drop: 101,
    flip: 67,
    swap: 59,
    double: 83,
};

/// Pace of a workload.
#[derive(Clone, Copy)]
struct Pace {
    rate: u32,
    measure: &'static str,
}

const SLOW: Pace = Pace {
    rate: 2000,
    measure: "2s",
};

/// Settings of a generator, and of its sink.
#[derive(Clone, Copy)]
struct Load<'l> {
    payload: &'l str,
    /// Further keys of the generator, and of the sink.
    generator: &'l str,
    sink: &'l str,
    checks: &'l str,
}

const TEXTS: Load<'static> = Load {
    payload: "syslog5424",
    generator: "stamps: {late_after: 1ms}",
    sink: "workers: 1",
    checks: "checks:\n  - {name: lossless, series: loss, upper_bound: 0}\n  \
             - {name: once, series: duplicated, upper_bound: 0}\n",
};

/// The relay's own report of planted faults.
#[derive(Debug, Eq, PartialEq)]
struct Planted {
    dropped: u64,
    flipped: u64,
    swapped: u64,
    duplicated: u64,
}

/// A run of a relay between `input` and `output` with `arguments`, and what both
/// say of it.
struct Run {
    summary: Value,
    shown: String,
    planted: Option<Planted>,
}

impl Run {
    fn of(input: &str, output: &str, pace: Pace, arguments: &[&str]) -> Self {
        Self::with(input, output, TEXTS, pace, arguments)
    }

    fn with(input: &str, output: &str, load: Load<'_>, pace: Pace, arguments: &[&str]) -> Self {
        let suite = Suite::new();
        let metrics = format!("127.0.0.1:{}", free_port());
        let Way {
            from,
            to,
            target,
            sink,
        } = Way::of(&suite, input, output);
        let mut words = vec!["{self}", "relay", "--in", &from, "--out", &to];
        words.extend(["--metrics", &metrics]);
        words.extend(arguments);
        let words = serde_json::to_string(&words).unwrap();
        let Pace { rate, measure } = pace;
        let Load {
            payload,
            generator,
            sink: of_sink,
            checks,
        } = load;
        let text = format!(
            "target:\n  name: relay\n  command: {words}\n  \
             ready: {{http: \"http://{metrics}/metrics\"}}\n\
             phases: {{ready: 60s, warmup: 200ms, measure: {measure}, drain: 10s, quiet: 500ms}}\n\
             workload:\n  generators:\n    - {target}\n      payload: {payload}\n      \
             cache: 1 MiB\n      rate: {rate}/s\n      {generator}\n  sinks:\n    \
             - {sink}\n      {of_sink}\n\
             {checks}"
        );
        Self::of_run(&suite, &text)
    }

    /// From the generator, which `target` makes of the sink's address, right into the
    /// sink of kind `kind`.
    fn direct(target: impl Fn(&str) -> String, kind: &str, load: Load<'_>, pace: Pace) -> Self {
        let suite = Suite::new();
        let (sink, target) = (&suite.sink, target(&suite.sink));
        let Pace { rate, measure } = pace;
        let Load {
            payload,
            generator,
            sink: of_sink,
            checks,
        } = load;
        let text = format!(
            "phases: {{warmup: 200ms, measure: {measure}, drain: 10s, quiet: 500ms}}\n\
             workload:\n  generators:\n    - {target}\n      payload: {payload}\n      \
             cache: 1 MiB\n      rate: {rate}/s\n      {generator}\n  sinks:\n    \
             - {kind}: \"{sink}\"\n      {of_sink}\n\
             {checks}"
        );
        Self::of_run(&suite, &text)
    }

    fn of_run(suite: &Suite, text: &str) -> Self {
        suite.file("run.yaml", text);
        let words = ["observe", "run.yaml", "--results", "results"];
        let ended = Process::start(&mut suite.stillwell(&words)).finish(LONG);
        let summary = std::fs::read_to_string(suite.results().join("summary.json"));
        assert!(summary.is_ok(), "{}", ended.stderr);
        let stderr = std::fs::read_to_string(suite.results().join("target.stderr.log"));
        suite.assert_nothing_left();
        Self {
            summary: serde_json::from_str(&summary.unwrap()).unwrap(),
            shown: ended.stdout,
            planted: stderr.ok().and_then(|stderr| planted(&stderr)),
        }
    }

    fn ledger(&self) -> &Value {
        &self.summary["figures"]["ledger"]
    }

    /// A figure of the only generator's events; of bounds the exact count.
    fn count(&self, name: &str) -> u64 {
        let figure = &self.ledger()["generators"][0][name];
        if let Some(count) = figure.as_u64() {
            return count;
        }
        assert_eq!(figure["least"], figure["most"], "{name}: {figure}");
        figure["least"].as_u64().unwrap()
    }

    /// A count of the run itself.
    fn count_of(&self, part: &str, name: &str) -> u64 {
        let count = self.summary["figures"][part][name].as_f64().unwrap();
        format!("{count:.0}").parse().unwrap()
    }

    fn check(&self, name: &str) -> &str {
        let mut checks = self.summary["checks"].as_array().unwrap().iter();
        let check = checks.find(|check| check["name"] == name).unwrap();
        check["passed"].as_str().unwrap()
    }
}

/// The way of events from the generator to the sink.
struct Way {
    /// The relay's input and output.
    from: String,
    to: String,
    /// The generator and the sink, as a file has them.
    target: String,
    sink: String,
}

impl Way {
    fn of(suite: &Suite, input: &str, output: &str) -> Self {
        let (listen, sink) = (&suite.listen, &suite.sink);
        let endpoint = |scheme: &str, address: &str| match scheme {
            "http" => format!("http://{address}/"),
            _ => format!("{scheme}://{address}"),
        };
        let mut way = Self {
            from: endpoint(input, listen),
            to: endpoint(output, sink),
            target: format!("{input}: \"{listen}\""),
            sink: format!("{output}: \"{sink}\""),
        };
        match input {
            "http" => way.target = format!("http: \"{}\"", way.from),
            "hec" => {
                let to = format!("url: \"http://{listen}\", token: t");
                way.target = format!("splunk_hec: {{{to}}}");
            }
            "grpc" => {
                let logs = "opentelemetry.proto.collector.logs.v1.LogsService/Export";
                way.target = format!("grpc: \"http://{listen}/{logs}\"");
            }
            "file" => {
                let (folder, out) = (suite.path("in"), suite.path("out.log"));
                std::fs::create_dir(&folder).unwrap();
                let (folder, out) = (folder.display(), out.display());
                way = Self {
                    from: format!("tail://{folder}"),
                    to: format!("file://{out}"),
                    target: format!("file_gen: {{path: \"{folder}/%NNN%.log\", file_max: 4 GiB}}"),
                    sink: format!("file: \"{out}\""),
                };
            }
            _ => {}
        }
        way
    }
}

fn planted(stderr: &str) -> Option<Planted> {
    let line = stderr
        .lines()
        .find(|line| line.contains("injected faults"))?;
    let numbers = line.split(|c: char| !c.is_ascii_digit());
    let numbers: Vec<u64> = numbers.filter_map(|number| number.parse().ok()).collect();
    let [dropped, flipped, swapped, duplicated] = <[u64; 4]>::try_from(numbers).unwrap();
    Some(Planted {
        dropped,
        flipped,
        swapped,
        duplicated,
    })
}

fn faults_are_found(input: &str, output: &str, pace: Pace, faults: Faults) {
    faults_are_found_with(input, output, TEXTS, pace, faults, &[]);
}

fn faults_are_found_with(
    input: &str,
    output: &str,
    load: Load<'_>,
    pace: Pace,
    faults: Faults,
    more: &[&str],
) {
    let Faults {
        drop,
        flip,
        swap,
        double,
    } = faults;
    let words = [
        ("--drop", drop),
        ("--flip", flip),
        ("--swap", swap),
        ("--double", double),
    ];
    let words = words.map(|(flag, one_in)| [flag.to_owned(), format!("1/{one_in}")]);
    let words = words.iter().flatten().map(String::as_str);
    let words: Vec<&str> = words.chain(more.iter().copied()).collect();
    let run = Run::with(input, output, load, pace, &words);
    let result = Planted {
        dropped: run.count("lost"),
        flipped: run.count("damaged"),
        swapped: run.count("reordered"),
        duplicated: run.count("duplicated"),
    };
    assert_eq!(Some(&result), run.planted.as_ref(), "{}", run.shown);
    let sent = run.count("sent");
    let left = sent - result.dropped;
    assert!(sent > 100, "{}", run.shown);
    assert_eq!(result.dropped, sent / drop);
    assert_eq!(result.flipped, left / flip);
    assert_eq!(result.duplicated, left / double);
    assert!(left / swap - result.swapped <= 1, "{result:?} of {left}");
    assert_eq!(run.count("arrivals"), left + result.duplicated);
    assert_eq!(run.count("received"), left);
    assert_eq!(run.count("unsent") + run.count("displacement_max"), 1);
    let verified = run.count("intact") + run.count("damaged") + run.count("undeclared");
    assert_eq!(
        (verified, run.count("unverifiable")),
        (run.count("arrivals"), 0)
    );
    let ledger = run.ledger();
    assert_eq!(
        (&ledger["broken"], &ledger["foreign"]),
        (&0.into(), &0.into())
    );
    assert_eq!(run.count("loss_ranges"), result.dropped);
    // The first event has number 0.
    assert_eq!(ledger["generators"][0]["losses"][0]["first"], drop - 1);
    assert_eq!((run.check("lossless"), run.check("once")), ("fail", "fail"));
    // On a busy machine so few events may be sent that there is no second loss.
    let second = match result.dropped {
        1 => String::new(),
        _ => format!(", {}", 2 * drop - 1),
    };
    let lost = format!("; events {}{second}", drop - 1);
    assert_holds(
        &run.shown,
        &["stamped", &lost, "event latency", "from sent time"],
    );
}

#[test]
fn what_a_relay_does_wrong_over_tcp_is_reported_exactly() {
    faults_are_found("tcp", "tcp", SLOW, MANY);
}

#[test]
fn what_a_relay_does_wrong_over_http_is_reported_exactly() {
    faults_are_found("http", "http", SLOW, MANY);
}

#[test]
fn what_a_relay_does_wrong_over_udp_is_reported_exactly() {
    faults_are_found("udp", "udp", SLOW, MANY);
}

#[test]
fn what_a_relay_does_wrong_over_files_is_reported_exactly() {
    faults_are_found("file", "file", SLOW, MANY);
}

/// As few as in production.
const FEW: Faults = Faults {
    drop: 10_000,
    flip: 7_001,
    swap: 3_000,
    double: 5_000,
};

#[test]
#[ignore = "at full rate: run alone, with --release"]
fn at_200_000_events_a_second_over_tcp() {
    faults_are_found("tcp", "tcp", FAST, FEW);
}

#[test]
#[ignore = "at full rate: run alone, with --release"]
fn at_200_000_events_a_second_over_http() {
    faults_are_found("http", "http", FAST, FEW);
}

#[test]
#[ignore = "at full rate: run alone, with --release"]
fn at_200_000_events_a_second_over_files() {
    faults_are_found("file", "file", FAST, FEW);
}

#[test]
#[ignore = "at full rate: run alone, with --release"]
fn at_50_000_datagrams_a_second() {
    let pace = Pace {
        rate: 50_000,
        ..FAST
    };
    faults_are_found("udp", "udp", pace, FEW);
}

const FAST: Pace = Pace {
    rate: 200_000,
    measure: "12s",
};

#[test]
#[ignore = "at full rate: run alone, with --release"]
fn a_stall_of_100_ms_every_10_s_shows_at_200_000_events_a_second() {
    let run = Run::of("tcp", "tcp", FAST, &["--stall", "100ms@10s"]);
    for name in ["lost", "duplicated", "reordered", "damaged", "unverifiable"] {
        assert_eq!(run.count(name), 0, "{name}: {}", run.shown);
    }
    println!("{}", run.shown);
    let latency = &run.summary["figures"]["event_latency"];
    assert!(
        latency["max_ns"].as_u64().unwrap() > 90_000_000,
        "{latency}"
    );
}

#[test]
fn a_relay_that_stalls_loses_nothing_and_shows_it_from_the_intended_time() {
    let run = Run::of("tcp", "tcp", SLOW, &["--stall", "200ms@500ms"]);
    for name in ["lost", "duplicated", "reordered", "damaged", "unverifiable"] {
        assert_eq!(run.count(name), 0, "{name}: {}", run.shown);
    }
    assert_eq!((run.check("lossless"), run.check("once")), ("pass", "pass"));
    assert!(run.count("late") > 0, "{}", run.shown);
    // A stall delays everything sent meanwhile, on any machine.
    let latency = &run.summary["figures"]["event_latency"];
    assert!(
        latency["p90_ns"].as_u64().unwrap() > 50_000_000,
        "{latency}"
    );
}
