//! No flag of `stillwell load` without effect: each changes what is sent, measured or
//! printed, or is refused with what to do instead.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use stillwell_plan::tls::Alpn;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{LONG, Process, STILLWELL, load};
use crate::faulty_peer::server::{PeerSession, Server};
use crate::faulty_peer::tls;

/// Requests as a server saw them, each with the number of its connection.
type Kept = Arc<Mutex<(Vec<(usize, String)>, usize)>>;

/// The effects of one load.
struct Seen {
    requests: Vec<(usize, String)>,
    connections: usize,
    report: Value,
    stdout: String,
    stderr: String,
}

impl Seen {
    /// Number of requests with `text`.
    fn with(&self, text: &str) -> usize {
        let requests = self.requests.iter();
        requests
            .filter(|(_, request)| request.contains(text))
            .count()
    }

    /// Number of connections that carried one.
    fn used(&self) -> usize {
        let numbers = self.requests.iter().map(|(number, _)| number);
        numbers.collect::<BTreeSet<_>>().len()
    }

    fn counter(&self, name: &str) -> u64 {
        self.report["global"]["counters"][name]
            .as_u64()
            .unwrap_or(0)
    }

    fn option(&self, name: &str) -> String {
        self.report["options"][name].to_string()
    }

    fn statistic(&self, name: &str) -> Option<u64> {
        let all = self.report["global"]["statistics"].as_array()?;
        all.iter().find(|entry| entry["id"] == name)?["moments"]["count"].as_u64()
    }
}

async fn answer(kept: Kept, mut session: PeerSession) -> std::io::Result<()> {
    let number = {
        let mut kept = kept.lock().unwrap();
        kept.1 += 1;
        kept.1
    };
    let mut buffer = vec![0; 64 << 10];
    loop {
        let length = session.stream.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
        kept.lock().unwrap().0.push((number, text));
        let response = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
        session.stream.write_all(response).await?;
    }
}

/// Runs a load against a server that answers everything and keeps what it sees:
/// over TLS where `words` say https.
fn run(words: &str) -> Seen {
    let kept = Kept::default();
    let keeper = Arc::clone(&kept);
    let tls = words
        .contains("https://")
        .then(|| tls::server(&[Alpn::Http1]));
    let server = Server::start_over(tls, move |session| answer(Arc::clone(&keeper), session));
    let port = server.address.port().to_string();
    let words = words.replace("PORT", &port);
    let mut command = Command::new(STILLWELL);
    command.arg("load").args(words.split_whitespace());
    if !words.contains("--output-format") {
        command.arg("--output-format=stillwell");
    }
    let ended = Process::start(&mut command).finish(LONG);
    server.stop();
    assert!(
        matches!(ended.code, 0 | 1 | 3 | 4),
        "{words}: {}",
        ended.stderr
    );
    let (requests, connections) = std::mem::take(&mut *kept.lock().unwrap());
    Seen {
        requests,
        connections,
        report: serde_json::from_str(&ended.stdout).unwrap_or_default(),
        stdout: ended.stdout,
        stderr: ended.stderr,
    }
}

/// A load with a flag and the same without, and what only the former shows.
struct Effect {
    flag: &'static str,
    load: &'static str,
    words: &'static str,
    shows: fn(&Seen) -> bool,
}

const FEW: &str = "-n6 -c2 http://127.0.0.1:PORT/";
const PACED: &str = "-n6 -c2 --rate=200/s http://127.0.0.1:PORT/";
const SECURE: &str = "-n6 -c2 --insecure https://127.0.0.1:PORT/";

const fn effect(
    flag: &'static str,
    load: &'static str,
    words: &'static str,
    shows: fn(&Seen) -> bool,
) -> Effect {
    Effect {
        flag,
        load,
        words,
        shows,
    }
}

/// Flags about requests and connections.
fn sent() -> Vec<Effect> {
    // Only a stall of more than two seconds makes eight due at once.
    let slow = "-n10 -c10 --rate=3/s http://127.0.0.1:PORT/";
    let item = "-n1 -c1 --timeout=20s http://127.0.0.1:PORT/";
    let named = "-n6 -c2 http://localhost:PORT/";
    let list = "--request-source={options:[{request_method:PUT}]}";
    vec![
        effect("--method", FEW, "-X PUT", |seen| seen.with("PUT / ") == 6),
        effect("--header", FEW, "-H x-a:b", |seen| {
            seen.with("\r\nx-a: b\r\n") == 6
        }),
        effect("--body", FEW, "-b hello", |seen| {
            seen.with("POST / ") == 6 && seen.with("\r\n\r\nhello") == 6
        }),
        effect("--request-source", FEW, list, |seen| {
            seen.with("PUT / ") == 6
        }),
        effect("--trace-headers", FEW, "--trace-headers=w3c", |seen| {
            seen.with("traceparent: ") == 6
        }),
        effect(
            "--trace-sample",
            FEW,
            "--trace-headers=w3c --trace-sample=0",
            |seen| seen.with("-00\r\n") == 6,
        ),
        effect("--protocol", item, "--protocol=http2", |seen| {
            seen.with("PRI * HTTP/2") > 0
        }),
        effect(
            "--connections",
            "-n6 http://127.0.0.1:PORT/",
            "-c4",
            |seen| seen.connections == 4,
        ),
        effect(
            "--connect-late",
            "-n1 -c4 http://127.0.0.1:PORT/",
            "--connect-late",
            |seen| seen.connections < 4,
        ),
        // The load is over when the second one has its turn.
        effect(
            "--connect-over",
            "-n5 -c3 --rate=20/s http://127.0.0.1:PORT/",
            "--connect-over=60s",
            |seen| seen.connections == 1 && seen.requests.len() == 5,
        ),
        effect(
            "--max-requests-per-connection",
            FEW,
            "--max-requests-per-connection=1",
            |seen| seen.used() == 6,
        ),
        effect(
            "--connection-reuse",
            slow,
            "--connection-reuse=lru",
            |seen| seen.used() >= 8,
        ),
        effect("--address-family", named, "--address-family=v6", |seen| {
            seen.requests.is_empty()
        }),
    ]
}

/// Flags about TLS.
fn secured() -> Vec<Effect> {
    let renewing = "-n6 -c1 --max-requests-per-connection=1 -k https://127.0.0.1:PORT/";
    let suite = "--cipher-suite=TLS_CHACHA20_POLY1305_SHA256";
    vec![
        effect(
            "--insecure",
            "-n6 -c2 https://127.0.0.1:PORT/",
            "-k",
            |seen| seen.with("GET / ") == 6,
        ),
        effect(
            "--no-session-resumption",
            renewing,
            "--no-session-resumption",
            |seen| seen.counter("ssl.handshake") >= 6 && seen.counter("ssl.session_reused") == 0,
        ),
        effect("--cipher-suite", SECURE, suite, |seen| {
            seen.counter("ssl.ciphers.TLS_CHACHA20_POLY1305_SHA256") == 2
        }),
    ]
}

/// Flags about time, rate and workers, and about the output.
fn paced() -> Vec<Effect> {
    let hundred = "-n100 -c2 --rate=100/s http://127.0.0.1:PORT/";
    // The line about its page comes at the end, also where a stall leaves nothing of the progress.
    let long = "-c2 --rate=20/s -d1500ms --stats-listen=0 http://127.0.0.1:PORT/";
    vec![
        effect(
            "--requests",
            "-c2 -d60s --termination-predicate=ok:20 http://127.0.0.1:PORT/",
            "-n5",
            |seen| seen.requests.len() == 5,
        ),
        effect(
            "--duration",
            "-n60 -c2 --rate=100/s http://127.0.0.1:PORT/",
            "-d200ms",
            |seen| seen.requests.len() < 30,
        ),
        effect("--rate", FEW, "--rate=200/s", |seen| {
            seen.statistic("stillwell.lateness") == Some(6)
        }),
        effect("--warmup", hundred, "--warmup=500ms", |seen| {
            let timed = seen.statistic("stillwell.service_time").unwrap();
            timed < seen.requests.len() as u64 - 10
        }),
        effect("--threads", FEW, "--threads=2", |seen| {
            seen.report["workers"].as_array().unwrap().len() == 2
        }),
        effect("--closed-loop", PACED, "--closed-loop", |seen| {
            seen.option("open_loop") == "false"
        }),
        effect("--poisson", PACED, "--poisson", |seen| {
            seen.option("arrival").contains("poisson")
        }),
        effect("--zipf", PACED, "--zipf=2", |seen| {
            seen.option("arrival").contains("zipf")
        }),
        effect(
            "--failure-predicate",
            FEW,
            "--failure-predicate=ok:2",
            |seen| seen.requests.len() < 6,
        ),
        effect(
            "--termination-predicate",
            FEW,
            "--termination-predicate=ok:2",
            |seen| seen.requests.len() < 6,
        ),
        effect("--output-format", FEW, "--output-format=csv", |seen| {
            seen.report.is_null() && !seen.stdout.is_empty()
        }),
        effect("--label", FEW, "--label=a-word", |seen| {
            seen.option("labels").contains("a-word")
        }),
        effect("--seed", FEW, "--seed=3", |seen| {
            seen.report["seed"] == SEED_3
        }),
        effect("--quiet", long, "--quiet", |seen| seen.stderr.is_empty()),
    ]
}

fn all() -> Vec<Effect> {
    [sent(), secured(), paced()].into_iter().flatten().collect()
}

/// The seed 3 in full.
const SEED_3: &str = "ed8f01dbe4140b1d89a9817b8a6f46b301dd50d0a6e8eb9ccfc9ab66fb64a712";

/// Flags whose effect is shown where its surroundings are.
const ELSEWHERE: &[(&str, &str)] = &[
    (
        "--on",
        "cluster: three_generators_send_a_rate_that_three_does_not_divide_to_the_request",
    ),
    (
        "--generators",
        "cluster: three_generators_send_a_rate_that_three_does_not_divide_to_the_request",
    ),
    (
        "--store",
        "cluster: three_generators_send_a_rate_that_three_does_not_divide_to_the_request",
    ),
    (
        "--job",
        "cluster: a_controller_that_is_killed_goes_on_when_it_is_started_again",
    ),
    ("--engine-option", ".ci/slurm: partition"),
    (
        "--burst-size",
        "nighthawk/shape: bursts_come_together_at_the_same_mean_rate",
    ),
    (
        "--capture",
        "load/capture: the_report_is_made_from_the_capture_alone",
    ),
    (
        "--keep-secrets",
        "secrets: no_format_of_a_load_and_no_file_has_a_secret_unless_requested",
    ),
    (
        "--validity",
        "load/capture: the_strictness_of_limits_is_in_the_result_and_judged_again",
    ),
    (
        "--jitter-uniform",
        "nighthawk/shape: jitter_moves_requests_and_loses_none",
    ),
    (
        "--grpc-method",
        "load/grpc: unary_calls_and_streams_are_described_by_reflection_or_a_file",
    ),
    (
        "--grpc-json",
        "load/grpc: unary_calls_and_streams_are_described_by_reflection_or_a_file",
    ),
    (
        "--grpc-descriptors",
        "load/grpc: unary_calls_and_streams_are_described_by_reflection_or_a_file",
    ),
    ("--grpc-streaming", ".ci/grpc: check_kinds"),
    ("--grpc-text", ".ci/grpc: check_messages"),
    ("--grpc-deadline", ".ci/grpc: check_deadlines"),
    ("--grpc-messages", ".ci/grpc: check_kinds"),
    ("--grpc-message-rate", ".ci/grpc: check_pace"),
    (
        "--streams",
        "load/idle: as_many_requests_are_under_way_on_a_connection_as_may_be",
    ),
    (
        "--cpus",
        "load/idle: threads_stay_on_the_cpus_that_are_named",
    ),
    (
        "--idle-strategy",
        "load/idle: spinning_costs_cpu_and_sleeping_does_not",
    ),
    (
        "--requests-file",
        "load/requests: keys_that_a_line_omits_are_as_typed",
    ),
    (
        "--scenario",
        "load/scenario: users_log_in_and_read_with_values_of_responses",
    ),
    (
        "--har",
        "load/requests: a_typed_header_stands_in_for_a_recorded_one",
    ),
    (
        "--timeout",
        "faulty_peer: every_fault_of_http1_is_counted_once_in_a_closed_loop",
    ),
    (
        "--connect-timeout",
        "faulty_peer/tls: every_fault_of_a_handshake_is_counted_once",
    ),
    (
        "--prefetch-connections",
        "says what is done; nighthawk/connections: \
         connections_are_opened_before_they_are_needed_where_that_is_asked",
    ),
    (
        "--ca",
        "faulty_peer/tls: a_certificate_or_protocol_that_is_wrong_is_counted_and_reported",
    ),
    ("--sni", "the same"),
    (
        "--tunnel-uri",
        "tunnel: requests_through_a_tunnel_arrive_as_without",
    ),
    ("--tunnel-protocol", "the same"),
    (
        "--tunnel-header",
        "tunnel: proxies_forward_only_known_users",
    ),
    (
        "--tunnel-insecure",
        "tunnel: a_certificate_of_a_proxy_is_checked_unless_that_is_not_wanted",
    ),
    ("--tunnel-ca", "the same"),
    (
        "--certificate",
        "load/certificates: both_sides_may_show_a_certificate",
    ),
    ("--key", "the same"),
    ("--stats-sink", "telemetry"),
    ("--stats-flush-interval", "telemetry"),
    ("--stats-listen", "telemetry"),
    ("--stats-linger", "telemetry"),
    ("--stats-label", "telemetry"),
    ("--trace", "telemetry"),
    (
        "--threshold",
        "load: a_threshold_decides_the_exit_code_and_is_named",
    ),
    (
        "--strict",
        "command/load/outcome: warnings_decide_the_exit_code_only_where_asked",
    ),
    (
        "--keep-going",
        "load: a_load_that_keeps_going_ends_at_its_own_end",
    ),
    ("--output", "load: results_go_to_files_by_their_extensions"),
    ("--color", "of all commands"),
    ("--help", "of all commands"),
    ("--help-all", "help: all_options_are_printed_on_request"),
];

#[test]
fn every_flag_changes_what_is_sent_or_found_or_reported() {
    for effect in all() {
        let (flag, load) = (effect.flag, effect.load);
        let (without, with) = (run(load), run(&format!("{} {load}", effect.words)));
        let output = |seen: &Seen| format!("{:?}\n{}{}", seen.requests, seen.stdout, seen.stderr);
        assert!(
            !(effect.shows)(&without),
            "{flag}, without it: {}",
            output(&without)
        );
        assert!((effect.shows)(&with), "{flag}, with it: {}", output(&with));
    }
}

/// The long names of all flags in the help of `command`.
pub(crate) fn flags_of(command: &str) -> BTreeSet<String> {
    let ended = Process::start(Command::new(STILLWELL).args([command, "--help-all"])).finish(LONG);
    let flags = ended.stdout.lines().filter_map(|line| {
        let line = line.trim_start();
        // Two columns: flags with a short name are one further to the left.
        let long = match line.strip_prefix('-')?.split_once(", --") {
            Some((_, long)) => long,
            None => line.strip_prefix("--")?,
        };
        let end = long.find([' ', '[', ']']).unwrap_or(long.len());
        Some(format!("--{}", &long[..end]))
    });
    flags.collect()
}

#[test]
fn no_flag_is_without_a_test_of_its_effect() {
    let tested = all().into_iter().map(|effect| effect.flag);
    let tested = tested.chain(ELSEWHERE.iter().map(|(flag, _)| *flag));
    let tested: BTreeSet<String> = tested.map(str::to_owned).collect();
    assert_eq!(flags_of("load"), tested);
}

/// Words that make no load, and what is said of them.
const REFUSED: &[(&str, &str)] = &[
    ("http://a/ --burst-size=2", "without --rate N/s"),
    ("http://a/ --jitter-uniform=1ms", "without --rate N/s"),
    ("http://a/ --poisson", "without --rate N/s"),
    ("http://a/ --zipf=2", "without --rate N/s"),
    (
        "http://a/ --poisson --zipf=2 --rate=1/s",
        "cannot be used with",
    ),
    (
        "http://a/ --burst-size=2 --jitter-uniform=1ms --rate=1/s",
        "cannot be used with",
    ),
    ("http://a/ --closed-loop", "the loop is closed already"),
    (
        "http://a/ --idle-strategy=sleep",
        "--idle-strategy has no effect without --rate",
    ),
    (
        "http://a/ --connection-reuse=lru",
        "leave it out, or give a rate",
    ),
    (
        "http://a/ --connect-late --prefetch-connections",
        "cannot be used with",
    ),
    (
        "http://a/ --streams=2",
        "HTTP/1.1 carries one request at a time",
    ),
    (
        "http://a/ --cpus=0,1",
        "--cpus names 2 CPUs for 1 thread: give --threads 2",
    ),
    ("http://a/ --threads=51", "too few"),
    ("http://a/ --duration=0s", "a time above zero"),
    ("http://a/ --duration=5", "write `5s`"),
    ("http://a/ --timeout=0s", "a time above zero"),
    ("http://a/ --connect-timeout=0s", "a time above zero"),
    ("http://a/ --requests=0", "a whole number from 1"),
    ("http://a/ --connections=0", "a whole number from 1"),
    (
        "http://a/ --warmup=10s",
        "the warm-up is as long as the whole load",
    ),
    ("http://a/ --rate=1/s..9/s:30s -d10s", "changes for 30s"),
    (
        "http://a/ --rate=1/s:10s,2/s -d10s",
        "the last step of --rate begins after 10s",
    ),
    ("http://a/ --rate=1/s:0s,2/s", "above zero"),
    (
        "http://a/ --insecure",
        "--insecure has no effect where no target is https",
    ),
    ("http://a/ --ca=x", "--ca has no effect"),
    (
        "http://a/ --certificate=x --key=y",
        "--certificate has no effect",
    ),
    ("http://a/ --sni=x", "--sni has no effect"),
    (
        "https://a/ --grpc-method=a.B/C --protocol=http3",
        "--grpc-method does not support HTTP/3: use --protocol http2",
    ),
    ("http://a/ --tunnel-protocol=http2", "--tunnel-uri <URL>"),
    (
        "http://a/ --tunnel-uri=http://b --tunnel-insecure",
        "--tunnel-insecure has no effect where the proxy is not https",
    ),
    (
        "http://a/ --tunnel-uri=http://b --tunnel-ca=x",
        "--tunnel-ca has no effect",
    ),
    (
        "http://a/ --tunnel-uri=http://b --tunnel-protocol=http3",
        "the proxy b:80 needs a URL with https://",
    ),
    ("http://a/ --tunnel-uri=http://b/c", "a host and a port"),
    ("http://a/ --tunnel-uri=socks5://b", "read --tunnel-uri"),
    (
        "http://a/ --tunnel-uri=http://one:secret@b",
        "give credentials as a header",
    ),
    (
        "http://a/ --tunnel-uri=https://b --tunnel-ca=x --tunnel-insecure",
        "cannot be used with",
    ),
    (
        "http://a/ --connect-over=1s --connect-late",
        "cannot be used with",
    ),
    ("http://a/ --connect-over=0s", "a time above zero"),
    ("http://a/ --connect-over=10s", "make the load longer"),
    (
        "http://a/ --no-session-resumption",
        "--no-session-resumption has no effect",
    ),
    ("http://a/ --cipher-suite=x", "--cipher-suite has no effect"),
    ("https://a/ --insecure --ca=x", "cannot be used with"),
    ("https://a/ --certificate=x", "--key <FILE>"),
    ("https://a/ --key=x", "--certificate <FILE>"),
    (
        "http://a/ --stats-flush-interval=1s",
        "no effect without --stats-sink",
    ),
    (
        "http://a/ --stats-listen=0 --stats-flush-interval=1s",
        "no effect without --stats-sink",
    ),
    (
        "http://a/ --stats-sink=statsd://a --stats-flush-interval=0s",
        "a time above zero",
    ),
    (
        "http://a/ --stats-label=a=b",
        "no effect without --stats-sink or --stats-listen",
    ),
    ("http://a/ --stats-linger=1s", "--stats-listen"),
    (
        "http://a/ --trace-sample=1%",
        "no effect without --trace or --trace-headers",
    ),
    ("http://a/ --requests-file=x", "cannot be used with"),
    ("http://a/ --har=x", "cannot be used with"),
    ("http://a/ --scenario=x --rate=5/s", "cannot be used with"),
    (
        "http://a/ --on=local --store=x --keep-going",
        "cannot be used with",
    ),
    ("--har=x --requests-file=y", "cannot be used with"),
    ("--har=x --method=GET", "cannot be used with"),
    ("--har=x --body=b", "cannot be used with"),
    ("--har=x --request-source=y", "cannot be used with"),
    (
        "--requests-file=x --request-source=y",
        "cannot be used with",
    ),
    ("--request-source={options:[{}]}", "<URL>"),
    (
        "http://a/ --request-source={options:[]}",
        "there are no requests",
    ),
    (
        "http://a/ --request-source={option:[]}",
        "unknown list of requests key `option`",
    ),
    ("http://a/ --request-source=@/nowhere", "read /nowhere"),
    ("http:/a/", "lacks `//` after its scheme: write http://a/"),
    ("https:a/", "write http://a/, or https://a/"),
    ("ftp://a/", "does not start with `http://`"),
    ("http://a:99999/", "is not a number from 1 to 65535"),
    ("0*http://a/", "leave the target out"),
];

#[test]
fn what_would_have_no_effect_is_refused_with_what_to_do() {
    for (words, expected) in REFUSED {
        let ended = load(&words.split_whitespace().collect::<Vec<_>>());
        assert_eq!(ended.code, 2, "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{words}: {}", ended.stderr);
    }
}
