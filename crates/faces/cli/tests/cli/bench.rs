//! Benches from end to end: through a relay and through a real rsyslog, with counts that
//! are exact under any load of the machine.

#[path = "bench/rsyslog.rs"]
mod rsyslog;
#[path = "bench/tree.rs"]
mod tree;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use stillwell_capture::Capture;
use stillwell_metric::catalogue;
use stillwell_testkit::{Finished, Process, signal_process, wait_until};

use crate::suite::{LONG, STILLWELL, Suite, assert_code, assert_holds};

/// Lines of the recording.
const LINES: u64 = 200;

/// Events in one read of a sink: 64 KiB of lines with their stamps.
const EVENTS_READ_MAX: u64 = 600;

/// A folder with a recording, and the addresses of a relay in it.
struct Bench {
    suite: Suite,
    /// Between it and the relay, and between the relay and it.
    schemes: [&'static str; 2],
}

/// The printed text, and the kept results.
struct Ended {
    finished: Finished,
    report: Value,
}

impl Bench {
    fn new(into: &'static str, out: &'static str) -> Self {
        let suite = Suite::new();
        suite.file("in.json", &recording());
        let schemes = [into, out];
        Self { suite, schemes }
    }

    fn endpoints(&self) -> [String; 2] {
        let [into, out] = self.schemes;
        let at = |scheme: &str, address: &str| match scheme {
            "http" => format!("http://{address}/"),
            "file" => format!("file://{}", self.suite.path("out.log").display()),
            _ => format!("{scheme}://{address}"),
        };
        [at(into, &self.suite.listen), at(out, &self.suite.sink)]
    }

    /// `stillwell bench` of the recording with these words, through a relay with
    /// those.
    fn run(&self, words: &[&str], relay: &[&str]) -> Ended {
        let [into, out] = self.endpoints();
        let mut command = self
            .suite
            .stillwell(&["bench", "--quiet", "--source", "in.json"]);
        command.args(["--in", &into, "--out", &out, "--results", "results"]);
        command.args(["--output", "report.json"]).args(words);
        command.args(["--", STILLWELL, "relay", "--in", &into, "--out", &out]);
        self.end(Process::start(command.args(relay)).finish(LONG))
    }

    /// `stillwell bench` of a file.
    fn run_file(&self, text: &str) -> Ended {
        self.end(self.start_file(text).finish(LONG))
    }

    fn start_file(&self, text: &str) -> Process {
        self.suite.file("bench.yaml", text);
        let words = ["bench", "bench.yaml", "--quiet", "--results", "results"];
        let mut command = self.suite.stillwell(&words);
        Process::start(command.args(["--output", "report.json"]))
    }

    /// Returns true if more than `events` have come, as far as its capture has them.
    fn has_received(&self, events: f64) -> bool {
        Capture::open(&self.suite.results()).is_ok_and(|capture| {
            let mut received = capture.series.of(catalogue::EVENTS_RECEIVED);
            received.any(|(_, series)| {
                let mut counts = series.points.iter().map(|point| point.value.number());
                counts.any(|count| count > Some(events))
            })
        })
    }

    fn end(&self, finished: Finished) -> Ended {
        let report = fs::read_to_string(self.suite.path("report.json")).unwrap_or_default();
        self.suite.assert_nothing_left();
        Ended {
            report: serde_json::from_str(&report).unwrap_or_default(),
            finished,
        }
    }

    /// Refused requests in the output of the relay.
    fn refused(&self) -> u64 {
        let stderr = fs::read_to_string(self.suite.results().join("target.stderr.log")).unwrap();
        let line = stderr
            .lines()
            .find(|line| line.contains("refused requests"))
            .unwrap();
        let mut numbers = line.split(' ').filter_map(|word| word.parse().ok());
        numbers.next().unwrap()
    }
}

impl Ended {
    /// A number of the report, by its path; of bounds the exact count.
    fn count(&self, pointer: &str) -> u64 {
        let value = self.report.pointer(pointer);
        assert!(value.is_some(), "no {pointer} in {}", self.report);
        let value = value.unwrap();
        let bounds = [&value["least"], &value["most"]];
        match value.as_u64() {
            Some(count) => count,
            None => {
                assert_eq!(bounds[0], bounds[1], "{pointer}: {value}");
                bounds[0].as_u64().unwrap()
            }
        }
    }

    fn ledger(&self, name: &str) -> u64 {
        self.count(&format!("/ledger/generators/0/{name}"))
    }

    /// Every event came once, and all counts are that.
    fn assert_exact(&self, events: u64) {
        assert_code(&self.finished, 0);
        for pointer in ["/count", "/received/events", "/sent/events"] {
            assert_eq!(self.count(pointer), events, "{pointer}");
        }
        for name in ["sent", "received", "arrivals"] {
            assert_eq!(self.ledger(name), events, "{name}");
        }
        for name in ["lost", "duplicated", "damaged"] {
            assert_eq!(self.ledger(name), 0, "{name}");
        }
    }

    /// Behind a warm-up. The beat between the two takes the counter and the times one after
    /// the other: a read of the sink that comes between is in one of them alone.
    fn assert_all_measured_are_timed(&self) {
        let [timed, received] = ["/count", "/received/events"].map(|pointer| self.count(pointer));
        assert!(
            timed.abs_diff(received) <= EVENTS_READ_MAX,
            "{timed}, {received}"
        );
    }
}

fn recording() -> String {
    let mut text = String::new();
    for number in 0..LINES {
        writeln!(
            text,
            "{{\"number\":{number},\"text\":\"a \\\"quoted\\\" word\"}}"
        )
        .unwrap();
    }
    text
}

/// Rows that HdrHistogram's plotter accepts: four words; the first and the last
/// are numbers.
fn plotted(text: &str) -> usize {
    let rows = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#'));
    let rows = rows.filter(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |word: &str| word.parse::<f64>().is_ok_and(f64::is_finite);
        matches!(words.as_slice(), [value, _, _, last] if number(value) && number(last))
    });
    rows.count()
}

#[test]
fn every_event_of_so_many_rounds_is_counted_and_timed() {
    let bench = Bench::new("tcp", "tcp");
    let ended = bench.run(&["--iters", "7"], &[]);
    ended.assert_exact(7 * LINES);
    assert_holds(
        &ended.finished.stdout,
        &[
            "     Value Percentile TotalCount 1/(1-Percentile)\n\n",
            "#[Mean       = ",
            "#[Buckets    =           30, SubBuckets     =         3968]",
            "\nThroughput   (data): ",
            "\nThroughput (events): ",
        ],
    );
    let ticks = ended.report["quantiles"].as_array().unwrap().len();
    // The last row has no end, and plotters leave it out.
    assert_eq!(plotted(&ended.finished.stdout), ticks - 1);
    assert!(
        ended.report["mean"].is_f64() && ended.report["throughput"]["bytes_per_second"].is_f64()
    );
}

#[test]
fn stamps_are_found_however_events_come_through() {
    for (into, out) in [("udp", "udp"), ("http", "http"), ("tcp", "file")] {
        let bench = Bench::new(into, out);
        // A pace at which no datagram is dropped.
        let ended = bench.run(&["--iters", "2", "--rate", "500/s"], &[]);
        ended.assert_exact(2 * LINES);
    }
}

#[test]
fn stamps_are_found_in_objects_that_were_rewritten() {
    let bench = Bench::new("tcp", "tcp");
    let rewrite = ["--events", "json", "--rewrite", "host=here"];
    let ended = bench.run(&["--iters", "2"], &rewrite);
    ended.assert_exact(2 * LINES);
}

// compat: Tremor | source | works
// compat: Tremor | interval | works
// compat: Tremor | iters | works
// compat: Tremor | structured | works
#[test]
fn tremors_keys_are_a_bench_and_structured_is_json() {
    let bench = Bench::new("tcp", "tcp");
    let packed = {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(recording().as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    // What a file is called says nothing.
    fs::write(bench.suite.path("packed.json"), packed).unwrap();
    let [into, out] = bench.endpoints();
    let ended = bench.run_file(&format!(
        "target:\n  command: [\"{{self}}\", relay, --in, \"{into}\", --out, \"{out}\"]\n\
         in: {into}\nout: {out}\ncodec: json\nconfig:\n  source: packed.json\n  interval: 1000000\n  \
         stop_after_secs: 1\n  warmup_secs: 1\n  structured: true\n  significant_figures: 3\n"
    ));
    assert_code(&ended.finished, 0);
    let printed: Value = serde_json::from_str(&ended.finished.stdout).unwrap();
    assert_eq!(printed, ended.report);
    // Those of the warm-up are sent and do not count.
    assert!(ended.count("/count") < ended.count("/sent/events"));
    ended.assert_all_measured_are_timed();
    assert_eq!(ended.ledger("arrivals"), ended.ledger("sent"));
    assert_eq!(ended.ledger("lost"), 0);
}

#[test]
fn a_relay_that_drops_fails_the_bench_and_a_lossy_one_does_not() {
    let bench = Bench::new("tcp", "tcp");
    let ended = bench.run(&["--iters", "1", "--drain", "1s"], &["--drop", "1/50"]);
    assert_code(&ended.finished, 1);
    assert_eq!(ended.ledger("lost"), LINES / 50);
    assert_eq!(
        ended.report["failures"],
        serde_json::json!(["4 events were lost"])
    );
    assert_holds(
        &ended.finished.stdout,
        &["! failed: 4 events were lost", "events 49, 99"],
    );
    drop(bench);
    let bench = Bench::new("tcp", "tcp");
    let words = ["--iters", "1", "--drain", "1s", "--lossy"];
    let ended = bench.run(&words, &["--drop", "1/50"]);
    assert_code(&ended.finished, 0);
    assert_eq!(ended.ledger("lost"), LINES / 50);
}

#[test]
fn a_bench_ends_with_a_target_that_swallows_its_events() {
    let bench = Bench::new("tcp", "tcp");
    // What was said last counts: the relay sends nothing on.
    let ended = bench.run(&["--iters", "1", "--drain", "200ms"], &["--drop", "1/1"]);
    assert_code(&ended.finished, 1);
    assert_eq!(ended.ledger("lost"), LINES);
    assert_eq!(ended.count("/count"), 0);
    assert!(ended.report["mean"].is_null());
}

#[test]
fn a_bench_that_cannot_run_reports_it_and_prints_no_table() {
    let bench = Bench::new("tcp", "tcp");
    let [into, out] = bench.endpoints();
    let words = [
        "bench", "--quiet", "--source", "in.json", "--in", &into, "--out", &out,
    ];
    let mut command = bench.suite.stillwell(&words);
    let ended = Process::start(command.args(["--iters", "1", "--", "false"])).finish(LONG);
    assert_code(&ended, 3);
    assert_holds(&ended.stderr, &["target never ready"]);
    assert_eq!(ended.stdout, "");
    bench
        .suite
        .file("old.troy", "define flow main\nflow\ncreate source;\nend;\n");
    let ended = bench.suite.call(&["bench", "old.troy"]);
    assert_code(&ended, 2);
    assert_holds(
        &ended.stderr,
        &["old.troy:3:14", "expected a name, found `;`"],
    );
    let ended = bench.suite.call(&["bench"]);
    assert_code(&ended, 2);
    assert_holds(
        &ended.stderr,
        &["a bench needs a recording", "a bench needs a target"],
    );
}

// compat: Tremor | chunk_size | differs | 0 is refused
#[test]
fn chunks_are_only_counted_and_that_is_reported() {
    let bench = Bench::new("tcp", "tcp");
    let ended = bench.run(&["--iters", "3", "--chunk-size", "64"], &[]);
    assert_code(&ended.finished, 0);
    let bytes = 3 * recording().len() as u64;
    assert_eq!(ended.count("/sent/bytes"), bytes);
    assert_eq!(ended.count("/received/bytes"), bytes);
    assert_eq!(ended.count("/sent/events"), 3 * (bytes / 3).div_ceil(64));
    assert_holds(
        &ended.finished.stderr,
        &["events have no stamps, because chunks are sent as they are"],
    );
    assert_holds(&ended.finished.stdout, &["no stamps", "only counted"]);
}

#[test]
fn requests_that_are_refused_once_in_a_hundred_are_counted_exactly() {
    for into in ["http", "hec"] {
        let bench = Bench::new(into, "tcp");
        let words = ["--iters", "2", "--batch", "1", "--drain", "1s"];
        let ended = bench.run(&words, &["--refuse", "1/100"]);
        let refused = bench.refused();
        assert_eq!(refused, 2 * LINES / 100, "{into}");
        assert_code(&ended.finished, 1);
        assert_eq!(ended.count("/answers/refused"), refused);
        assert_eq!(ended.count("/answers/acknowledged"), 2 * LINES - refused);
        assert_eq!(ended.count("/answers/unacknowledged"), 0);
        assert_eq!(ended.ledger("lost"), refused);
        assert_eq!(ended.count("/count"), 2 * LINES - refused);
        let why = format!("{refused} events were refused permanently");
        assert_eq!(ended.report["failures"], serde_json::json!([why]));
    }
}

// compat: Tremor | is_transactional | differs | over HTTP and Splunk's collector, where events are sent again
#[test]
fn transactional_events_come_through_all_the_same() {
    for into in ["http", "hec"] {
        let bench = Bench::new(into, "tcp");
        let words = ["--iters", "2", "--batch", "1", "--transactional"];
        let ended = bench.run(&words, &["--refuse", "1/100"]);
        let refused = bench.refused();
        assert!(refused >= 2 * LINES / 100, "{into}");
        ended.assert_exact(2 * LINES);
        assert_eq!(ended.count("/answers/acknowledged"), 2 * LINES);
        assert_eq!(ended.count("/answers/refused"), 0);
        assert_eq!(ended.count("/answers/requests_again"), refused);
    }
}

#[test]
fn a_bench_that_is_ended_by_time_waits_for_acknowledgements_that_come_seconds_later() {
    for into in ["http", "hec"] {
        let bench = Bench::new(into, "tcp");
        let words = ["--stop-after", "3s", "--batch", "200"];
        // The first request takes more than four seconds. On a busy machine it begins late.
        let ended = bench.run(&words, &["--limit", "5 KiB/s"]);
        assert_code(&ended.finished, 0);
        assert_eq!(ended.count("/answers/unacknowledged"), 0, "{into}");
        assert_eq!(ended.count("/answers/acknowledged"), 200, "{into}");
        assert_eq!(ended.ledger("lost"), 0, "{into}");
    }
}

#[test]
fn a_bench_whose_events_are_never_acknowledged_ends_with_its_drain_and_reports_it() {
    let bench = Bench::new("http", "tcp");
    let [into, out] = bench.endpoints();
    // The first request takes half a minute, and a killed process answers nothing.
    let ended = bench.run_file(&format!(
        "target:\n  command: [\"{{self}}\", relay, --in, \"{into}\", --out, \"{out}\", --limit, \
         1 KiB/s]\n  stop: {{signal: KILL}}\nin: {into}\nout: {out}\nsource: in.json\nbatch: 200\n\
         stop_after_secs: 4\ndrain: 2s\n"
    ));
    assert_code(&ended.finished, 1);
    assert_eq!(ended.count("/answers/unacknowledged"), 200);
}

#[test]
fn a_target_that_dies_ends_the_bench_with_what_came() {
    let bench = Bench::new("tcp", "tcp");
    let [into, out] = bench.endpoints();
    let file = bench.suite.path("pid");
    let process = bench.start_file(&format!(
        "target:\n  command: [sh, -c, 'echo $$ > {}; exec \"$@\"', sh, \"{STILLWELL}\", relay, --in, \
         \"{into}\", --out, \"{out}\"]\nin: {into}\nout: {out}\nsource: in.json\nrate: 500/s\n\
         stop_after_secs: 300\n",
        file.display()
    ));
    let has_come = || bench.has_received(500.0);
    assert!(wait_until(LONG, has_come), "{}", process.stderr());
    let pid = fs::read_to_string(&file).unwrap();
    signal_process(pid.trim().parse().unwrap(), "KILL");
    let ended = bench.end(process.finish(LONG));
    assert_code(&ended.finished, 4);
    let outcome = ended.report["outcome"].as_str().unwrap();
    assert!(
        outcome.contains("died") || outcome.contains("ended"),
        "{outcome}"
    );
    assert!(ended.count("/count") > 0);
}

#[test]
fn sigterm_in_the_middle_ends_in_order_with_what_came() {
    let bench = Bench::new("tcp", "tcp");
    let [into, out] = bench.endpoints();
    let words = [
        "bench", "--quiet", "--source", "in.json", "--in", &into, "--out", &out,
    ];
    let mut command = bench.suite.stillwell(&words);
    command.args([
        "--rate",
        "1k/s",
        "--stop-after",
        "60s",
        "--results",
        "results",
    ]);
    command.args(["--output", "report.json"]);
    command.args(["--", STILLWELL, "relay", "--in", &into, "--out", &out]);
    let process = Process::start(&mut command);
    bench.suite.wait_measuring(&bench.suite.results());
    process.signal("TERM");
    let ended = bench.end(process.finish(LONG));
    assert_code(&ended.finished, 143);
    assert_holds(ended.report["outcome"].as_str().unwrap(), &["signal 15"]);
}
