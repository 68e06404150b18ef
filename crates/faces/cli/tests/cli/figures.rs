//! Figures of `stillwell load` that were wrong: each is true, and the same in every
//! format.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use stillwell_testkit::{Finished, Process, free_port, wait_until};
use tempfile::TempDir;

use crate::load::{LONG, STILLWELL, serve};

/// A result in our own form.
struct Found {
    text: String,
    json: Value,
    ended: Finished,
}

fn start(arguments: &[&str]) -> Process {
    let mut command = Command::new(STILLWELL);
    command.args([
        "load",
        "--output-format=stillwell",
        "--quiet",
        "--keep-going",
    ]);
    Process::start(command.args(arguments))
}

fn load(url: &str, words: &str) -> Found {
    let arguments: Vec<&str> = words.split_whitespace().chain([url]).collect();
    Found::of(start(&arguments).finish(LONG))
}

impl Found {
    fn of(ended: Finished) -> Self {
        let text = ended.stdout.clone();
        let json = serde_json::from_str(&text);
        assert!(json.is_ok(), "{text}\n{}", ended.stderr);
        Self {
            text,
            json: json.unwrap(),
            ended,
        }
    }

    fn global(&self) -> &Value {
        &self.json["global"]
    }

    fn counter(&self, name: &str) -> u64 {
        self.global()["counters"][name].as_u64().unwrap_or(0)
    }

    fn outcome(&self, name: &str) -> u64 {
        count_of(&self.global()["outcomes"], name)
    }

    fn ended(&self) -> u64 {
        all_of(&self.global()["outcomes"])
    }

    fn intervals(&self) -> &[Value] {
        self.json["intervals"].as_array().unwrap()
    }

    /// The sum of a number over the whole series.
    fn in_series(&self, name: &str) -> u64 {
        let numbers = self
            .intervals()
            .iter()
            .map(|interval| interval[name].as_u64());
        numbers.map(Option::unwrap_or_default).sum()
    }

    fn statistic(&self, id: &str) -> Option<&Value> {
        let all = self.global()["statistics"].as_array().unwrap();
        all.iter().find(|entry| entry["id"] == id)
    }

    fn samples(&self, id: &str) -> u64 {
        let entry = self.statistic(id);
        entry.map_or(0, |entry| entry["moments"]["count"].as_u64().unwrap())
    }

    /// The largest of some times, in nanoseconds.
    fn largest(&self, id: &str) -> u64 {
        let entry = self.statistic(id);
        entry.map_or(0, |entry| entry["moments"]["max"].as_u64().unwrap())
    }

    fn length(&self) -> Duration {
        Duration::from_nanos(self.global()["execution_duration_ns"].as_u64().unwrap())
    }

    fn codes(&self) -> Vec<&str> {
        let warnings = self.json["health"]["warnings"].as_array().unwrap();
        let codes = warnings
            .iter()
            .map(|warning| warning["code"].as_str().unwrap());
        codes.collect()
    }

    /// A count of the result, each second.
    fn rate(&self, count: u64) -> f64 {
        let count: f64 = count.to_string().parse().unwrap();
        count / self.length().as_secs_f64()
    }

    /// Values that are in it twice are equal.
    #[track_caller]
    fn assert_agrees_with_itself(&self) {
        let text = &self.text;
        let all = self.ended();
        let in_series: u64 = self
            .intervals()
            .iter()
            .map(|interval| all_of(&interval["outcomes"]))
            .sum();
        assert_eq!(in_series, all, "{text}");
        let sent = self.counter("upstream_rq_total");
        assert_eq!(self.in_series("sent"), sent, "{text}");
        for (name, counter) in [
            ("bytes_received", "upstream_cx_rx_bytes_total"),
            ("bytes_sent", "upstream_cx_tx_bytes_total"),
        ] {
            assert_eq!(
                self.in_series(name),
                self.counter(counter),
                "{name}: {text}"
            );
        }
        let length = Duration::from_nanos(self.in_series("length_ns"));
        assert_eq!(length, self.length(), "{text}");
        let per_second = self.json["health"]["sent_per_second"].as_f64().unwrap();
        assert!((per_second - self.rate(sent)).abs() < 1e-6, "{text}");
        assert_eq!(self.outcome("ok"), self.counter("benchmark.http_2xx"));
        let latencies = |id: &str| {
            let packed = self
                .intervals()
                .iter()
                .map(|interval| interval[id]["count"].as_u64());
            packed.map(Option::unwrap_or_default).sum::<u64>()
        };
        for (id, of_series) in [
            ("stillwell.response_time", "response_time_ns"),
            ("stillwell.service_time", "service_time_ns"),
        ] {
            assert_eq!(self.samples(id), self.outcome("ok"), "{id}: {text}");
            assert_eq!(latencies(of_series), self.outcome("ok"), "{id}: {text}");
            let of_class = self.samples(&format!("{id}.ok"));
            assert_eq!(of_class, self.outcome("ok"), "{id}: {text}");
        }
        for id in ["response_header_size", "response_body_size"] {
            let id = format!("benchmark_http_client.{id}");
            assert_eq!(self.samples(&id), self.outcome("ok"), "{id}: {text}");
        }
        let connections = self.counter("upstream_cx_total");
        assert_eq!(self.samples("stillwell.connect"), connections, "{text}");
    }

    /// The same in another format.
    fn as_format(&self, format: &str) -> String {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("result.json");
        std::fs::write(&path, &self.text).unwrap();
        let mut command = Command::new(STILLWELL);
        command.args(["transform", path.to_str().unwrap()]);
        let printed = Process::start(command.args(["--output-format", format])).finish(LONG);
        assert_eq!(printed.code, 0, "{format}: {}", printed.stderr);
        printed.stdout
    }
}

fn count_of(outcomes: &Value, name: &str) -> u64 {
    let all = outcomes.as_array().unwrap().iter();
    let mut named = all.filter(|entry| entry["outcome"] == name);
    named
        .next()
        .map_or(0, |entry| entry["count"].as_u64().unwrap())
}

fn all_of(outcomes: &Value) -> u64 {
    let all = outcomes.as_array().unwrap().iter();
    all.map(|entry| entry["count"].as_u64().unwrap()).sum()
}

#[test]
fn a_warm_up_made_rates_too_high() {
    let (_server, url) = serve(&["--tls=self-signed"]);
    // Half of it is the warm-up: rates were twice what they are.
    let words = "-k --rate 400/s --duration 2s --warmup 1s --connections 4 --threads 2 \
                 --max-requests-per-connection 30";
    let result = load(&url, words);
    result.assert_agrees_with_itself();
    // What is due at the end of the warm-up is the last of it. A machine that
    // stalls may keep some of the last requests from being begun.
    let sent = result.counter("upstream_rq_total");
    // Answers of 75 bytes beside what TLS says; twice as many with the warm-up, and more after a
    // stall at its end, in which what is due waits: 130 after 0.7 s. Requests of the warm-up have
    // no response times: the slowest of the rest may be far shorter than the stall.
    let bytes = result.counter("upstream_cx_rx_bytes_total");
    let each = bytes / sent.max(1);
    let slowest = result.largest("stillwell.response_time");
    let is_moved = matches!(each, ..50 | 110..=130) && slowest > 10_000_000;
    if (sent < 300 && !result.codes().is_empty()) || is_moved {
        println!("DISTURBED: a_warm_up_made_rates_too_high: others use this host");
        return;
    }
    assert!((300..=400).contains(&sent), "{}", result.text);
    assert_eq!(result.length(), Duration::from_secs(1));
    let handshakes = result.counter("ssl.handshake");
    assert_eq!(handshakes, result.counter("upstream_cx_total"));
    assert!((50..110).contains(&each), "{bytes} of {sent}");

    let json: Value = serde_json::from_str(&result.as_format("fortio")).unwrap();
    assert_eq!(json["ActualQPS"].as_f64(), Some(result.rate(sent)));
    assert_eq!(json["BytesReceived"], bytes.to_string());
    for format in ["nighthawk-human", "nighthawk-csv"] {
        let output = result.as_format(format);
        let mut lines = output.lines();
        let line = lines.find(|line| line.starts_with("upstream_rq_total"));
        let words = line.unwrap().split([' ', ',']);
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let (count, rate) = (sent.to_string(), format!("{sent}.00"));
        assert_eq!(words[1..], [count, rate], "{format}");
    }
    for (format, expected) in [
        ("human", format!("{sent} requests/s for 1.00 s")),
        ("human", format!("{sent}/s sent of 400/s requested")),
        (
            "nighthawk-dotted",
            format!("global.upstream_rq_total:{sent}\n"),
        ),
        (
            "nighthawk-prometheus",
            format!("nighthawk_upstream_rq_total{{scope=\"global\"}} {sent}\n"),
        ),
        (
            "nighthawk-json",
            "\"execution_duration\": \"1s\"".to_owned(),
        ),
        ("json", format!("\"requests\": {sent},")),
        ("csv", format!("\nrequests,{sent}\n")),
        ("nighthawk-yaml", "execution_duration: \"1s\"".to_owned()),
        ("hgrm", format!("Total count    = {sent:>12}")),
    ] {
        let output = result.as_format(format);
        assert!(output.contains(&expected), "{format}: {output}");
    }
    let log = result.as_format("hlog");
    assert!(end_of_log(&log) < 1.001, "{log}");
}

/// The end of the last interval of a log of HdrHistogram, in seconds.
fn end_of_log(log: &str) -> f64 {
    let entries = log.lines().filter(|line| !line.starts_with('#'));
    let ends = entries.map(|line| {
        let numbers = line.split(',').filter(|word| !word.starts_with("Tag="));
        let numbers: Vec<f64> = numbers.take(2).map(|word| word.parse().unwrap()).collect();
        numbers[0] + numbers[1]
    });
    ends.fold(0.0, f64::max)
}

#[test]
fn a_predicate_held_without_a_reported_value() {
    let (_server, url) = serve(&[]);
    let words = "--rate 200/s --duration 10s --warmup 500ms --termination-predicate requests:20 \
                 --connections 10";
    let result = load(&url, words);
    result.assert_agrees_with_itself();
    // One more than twenty, and perhaps one on each of the connections.
    assert!((21..40).contains(&result.ended()), "{}", result.text);
    let predicate = &result.json["ending"]["termination_predicate"];
    assert_eq!(predicate, "requests:20", "{}", result.text);
}

#[test]
fn requests_without_a_connection_were_reported_as_sent() {
    let url = format!("http://127.0.0.1:{}/", free_port());
    let result = load(&url, "--rate 10/s --duration 3s");
    let refused = result.outcome("connect_refused");
    assert!((1..=30).contains(&refused), "{}", result.text);
    assert_eq!(result.json["health"]["sent_per_second"].as_f64(), Some(0.0));
    assert_eq!(
        (result.in_series("sent"), result.in_series("requested")),
        (0, 30)
    );
    assert_eq!(result.counter("upstream_rq_total"), 0);
    assert_eq!(
        result.samples("stillwell.failed_time.connect_refused"),
        refused
    );
    // A machine that stalls at the end adds that the rate was not reached.
    assert_eq!(result.codes().first(), Some(&"no_answer"));
    assert_eq!(result.ended.code, 3);
    assert!(result.as_format("human").contains("connect_refused after"));
}

#[test]
fn a_closed_loop_with_a_rate_counted_some_latencies_from_the_intended_time() {
    // Two connections, twenty milliseconds each: a hundred a second at most.
    let (_server, url) = serve(&["--delay=20ms"]);
    let words = "--rate 400/s --closed-loop --duration 1s --connections 2 --threshold p99<20s --threshold errors<1%";
    let result = load(&url, words);
    // Thresholds are of the same times, and what a closed loop does not send is no error.
    assert!(matches!(result.ended.code, 0 | 4), "{}", result.text);
    result.assert_agrees_with_itself();
    assert!(result.ended() <= 102, "{}", result.text);
    for class in ["", ".ok"] {
        let moments = |id: &str| {
            let entry = result.statistic(&format!("stillwell.{id}{class}"));
            entry.map(|entry| entry["moments"].clone())
        };
        assert_eq!(moments("response_time"), moments("service_time"));
    }
    for interval in result.intervals() {
        assert_eq!(interval["response_time_ns"], interval["service_time_ns"]);
    }
    // Nothing queues up: an open loop would be late by hundreds of milliseconds, as is a
    // generator without a CPU.
    if !result.codes().contains(&"cpu_starvation") {
        let lateness = result.statistic("stillwell.lateness").unwrap();
        let latest = lateness["moments"]["mean"].as_f64().unwrap();
        assert!(latest < 100e6, "{latest}");
    }
    let output = result.as_format("human");
    assert!(output.contains("closed loop, at most 400/s"), "{output}");
    assert!(
        output.contains("It is measured without --closed-loop."),
        "{output}"
    );
    assert!(!output.contains("from intended time"), "{output}");
}

#[test]
fn a_closed_loop_sends_no_more_than_its_rate() {
    let (_server, url) = serve(&[]);
    let result = load(
        &url,
        "--rate 50/s --closed-loop --duration 1s --connections 4",
    );
    result.assert_agrees_with_itself();
    // A busy machine answers fewer.
    assert!(result.ended() <= 50, "{}", result.text);
}

#[test]
fn loads_of_less_than_a_second_lasted_until_the_next_beat() {
    let (_server, url) = serve(&[]);
    let result = load(&url, "--rate 1000/s --duration 50ms");
    result.assert_agrees_with_itself();
    assert_eq!(result.length(), Duration::from_millis(50));
    assert_eq!(result.in_series("requested"), 50);
    assert_eq!(
        result.json["health"]["requested_per_second"].as_f64(),
        Some(1000.0)
    );
    // A machine that stalls for those 50 ms keeps all of them from being begun.
    assert!(result.ended() <= 50, "{}", result.text);
}

#[test]
fn a_worker_whose_requests_were_done_ended_the_load_early() {
    let (_server, url) = serve(&[]);
    // The last request of each worker is due long before the end.
    let words = "--rate 5/s --duration 1500ms --threads 3 --connections 6";
    let result = load(&url, words);
    result.assert_agrees_with_itself();
    assert_eq!(result.length(), Duration::from_millis(1500));
    assert_eq!(result.in_series("requested"), 7, "{}", result.text);
    // The last is due a tenth of a second before the end, which a machine may lack a CPU for.
    assert!(result.ended() <= 7, "{}", result.text);
}

#[test]
fn several_targets_and_workers_get_whole_requests() {
    let (_one, first) = serve(&[]);
    let (_other, second) = serve(&[]);
    let weighted = format!("3*{first}");
    let words = "--rate 100/s --requests 50 --threads 3 --connections 9";
    let result = load(&second, &format!("{weighted} {words}"));
    result.assert_agrees_with_itself();
    assert_eq!(
        (result.ended(), result.in_series("requested")),
        (50, 50),
        "{}",
        result.text
    );
}

#[test]
fn a_number_of_requests_took_longer_than_its_time() {
    let (_server, url) = serve(&["--delay=200ms"]);
    let result = load(&url, "--rate 1000/s --requests 30 --connections 40");
    result.assert_agrees_with_itself();
    // The answers take long, and the schedule reported further requests meanwhile.
    assert_eq!(
        (result.ended(), result.in_series("requested")),
        (30, 30),
        "{}",
        result.text
    );
    assert!(
        !result.codes().contains(&"rate_not_reached"),
        "{}",
        result.text
    );
}

#[test]
fn a_number_of_requests_and_a_warm_up_go_together() {
    let (_server, url) = serve(&[]);
    let result = load(&url, "--rate 200/s --requests 100 --warmup 250ms");
    result.assert_agrees_with_itself();
    assert_eq!(
        (result.ended(), result.in_series("requested")),
        (50, 50),
        "{}",
        result.text
    );
    let nothing = load(&url, "--rate 200/s --requests 10 --warmup 5s");
    assert_eq!((nothing.ended(), nothing.length()), (0, Duration::ZERO));
    assert_eq!(
        (nothing.codes(), nothing.ended.code),
        (vec!["all_warmup"], 4)
    );
}

#[test]
fn a_load_of_no_request_was_reported_as_unanswered() {
    let (_server, url) = serve(&[]);
    let result = load(&url, "--rate 1/s --duration 100ms");
    assert_eq!(
        (result.ended(), result.length()),
        (0, Duration::from_millis(100))
    );
    assert_eq!((result.codes(), result.ended.code), (vec!["no_request"], 4));
    assert_eq!(
        result.json["health"]["requested_per_second"].as_f64(),
        Some(0.0)
    );
}

#[test]
fn an_interrupted_load_got_more_requests_while_it_drained() {
    let (_server, url) = serve(&["--delay=700ms"]);
    let mut command = Command::new(STILLWELL);
    let words = "load --output-format=stillwell --rate=100/s --duration=60s --connections=200";
    command.args(words.split_whitespace()).arg(&url);
    let process = Process::start(&mut command);
    // It reports every second.
    assert!(wait_until(LONG, || process.stderr().contains("/s ")));
    process.signal("INT");
    let result = Found::of(process.finish(LONG));
    result.assert_agrees_with_itself();
    assert_eq!(result.ended.code, 130);
    let (requested, ended) = (result.in_series("requested"), result.ended());
    assert!(requested >= ended, "{}", result.text);
    // Seventy more would be due until the last answer has come. As many may wait for a
    // generator without a CPU.
    let is_starved = result.codes().contains(&"cpu_starvation");
    assert!(is_starved || requested < ended + 30, "{}", result.text);
}

#[test]
fn requests_that_failed_left_no_time() {
    let (_server, url) = serve(&["--error", "rand() < 0.5 ? 'silence' : 'reset'"]);
    let result = load(&url, "--requests 20 --connections 10 --timeout 300ms");
    let (timed_out, reset) = (result.outcome("timed_out"), result.outcome("peer_closed"));
    assert_eq!(
        (timed_out + reset, result.ended()),
        (20, 20),
        "{}",
        result.text
    );
    assert_eq!(result.samples("stillwell.failed_time.timed_out"), timed_out);
    assert_eq!(result.samples("stillwell.failed_time.peer_closed"), reset);
    assert_eq!(result.samples("stillwell.response_time"), 0);
    let shortest = |end: &str| {
        let entry = result.statistic(&format!("stillwell.failed_time.{end}"));
        entry.map_or(u64::MAX, |entry| entry["moments"]["min"].as_u64().unwrap())
    };
    // To three digits.
    assert!(shortest("timed_out") > 299_000_000, "{}", result.text);
}

#[test]
fn a_spinning_generator_always_looked_busy() {
    let (_server, url) = serve(&[]);
    // Each gap is as long as is spun: it never sleeps.
    let words = "--idle-strategy spin --rate 2000/s --poisson --duration 1s";
    let result = load(&url, words);
    result.assert_agrees_with_itself();
    let worker = &result.json["health"]["workers"][0];
    let time = |name: &str| worker[name].as_u64().unwrap();
    assert!(time("running_ns") < time("cpu_ns"), "{worker}");
    let states = ["ahead_ns", "blocked_ns", "running_ns", "late_ns"].map(time);
    let whole = Duration::from_nanos(states.iter().sum());
    assert!(whole >= result.length(), "{worker}");
}
