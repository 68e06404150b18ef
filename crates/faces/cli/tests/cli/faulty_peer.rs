//! Servers that do what they must not: every request ends in exactly one
//! outcome, the load ends by itself, and it says what was wrong.

#[path = "faulty_peer/http1.rs"]
mod http1;
#[path = "faulty_peer/http2.rs"]
mod http2;
#[path = "faulty_peer/server.rs"]
pub(crate) mod server;
#[path = "faulty_peer/tls.rs"]
pub(crate) mod tls;

use stillwell_plan::tls::Alpn;
use stillwell_testkit::{Process, free_port, wait_until};
use stillwell_wire::tls::ServerTls;

use crate::both_ends::ends::{LONG, Report, load, start_load};
use crate::hostile::tally;
use server::Server;

/// Requests of each load, which ends with the last of them.
const REQUESTS: u64 = 12;

const CLOSED: &str = "--requests=12";
/// As many in all: an end by time may come before anything ended, on a machine that stalls.
const OPEN: &str = "--requests=12 --rate=10/s";

/// Expected result of a fault.
struct Case<F> {
    fault: F,
    /// The ways in which requests end.
    ends: &'static [&'static str],
    /// Number of the first of them, at least one of which occurs.
    certain: usize,
    /// Expected text, if any.
    finding: &'static str,
}

const fn case<F>(fault: F, ends: &'static [&'static str], finding: &'static str) -> Case<F> {
    Case {
        fault,
        ends,
        certain: 1,
        finding,
    }
}

/// Returns a case in which either of the first two ends may come first.
const fn either<F>(fault: F, ends: &'static [&'static str], finding: &'static str) -> Case<F> {
    Case {
        fault,
        ends,
        certain: 2,
        finding,
    }
}

impl<F> Case<F> {
    /// A short timeout for cases that have to time out; the rest need not hurry.
    fn timeout(&self) -> &'static str {
        match self.ends[..self.certain].contains(&"timed_out") {
            true => "--timeout=1s",
            false => "--timeout=20s",
        }
    }
}

/// A reset may come before connecting is over.
const RESET: &[&str] = &["peer_closed", "connect_failed"];

fn begin(server: &Server, words: &str) -> Process {
    begin_at("http", server, &format!("{words} --connect-timeout=20s"))
}

fn begin_at(scheme: &str, server: &Server, words: &str) -> Process {
    let url = format!("{scheme}://{}/", server.address);
    let mut arguments = vec![url.as_str()];
    arguments.extend(words.split_whitespace());
    start_load(&arguments)
}

/// Checks the result of each case: all loads ran side by side.
fn check<F: std::fmt::Debug>(loop_words: &str, under_way: Vec<(Case<F>, Server, Process)>) {
    let tried = under_way.len();
    for (case, server, process) in under_way {
        let report = Report::of(process.finish(LONG));
        let seen = server.stop();
        let context = format!(
            "{:?}, {loop_words}: {:?}, {seen} seen\n{}",
            case.fault,
            report.outcomes(),
            report.findings()
        );
        // What was sent has ended; what found its connection closed was not sent.
        assert!(report.begun() <= report.ended(), "{context}");
        assert_eq!(report.ended(), REQUESTS, "{context}");
        let mut certain = case.ends.iter().take(case.certain);
        assert!(certain.any(|end| report.outcome(end) > 0), "{context}");
        let outcomes = report.outcomes();
        let is_named = |name: &String| case.ends.contains(&name.as_str());
        assert!(outcomes.keys().all(is_named), "{context}");
        assert!(report.findings().contains(case.finding), "{context}");
        // Without a success it is 1, or 3 where nothing valid was answered for a second.
        let codes = match report.outcome("ok") {
            0 => [1, 3],
            _ => [0, 4],
        };
        assert!(codes.contains(&report.ended.code), "{context}");
        // What was answered was seen; what was seen was sent.
        assert!(
            report.outcome("ok") <= seen && seen <= report.begun(),
            "{context}"
        );
    }
    tally("servers with faults in HTTP", tried, &[]);
}

fn http1_cases() -> Vec<Case<http1::Fault>> {
    use http1::Fault;
    let lost: &[&str] = &["peer_closed"];
    let late: &[&str] = &["timed_out", "unfinished"];
    let broken: &[&str] = &["malformed"];
    let none = "no request was answered";
    vec![
        either(Fault::ResetAtAccept, RESET, none),
        case(Fault::CloseAtAccept, lost, none),
        case(Fault::ResetUnanswered, lost, none),
        case(Fault::CloseUnanswered, lost, none),
        case(Fault::ResetMidAnswer, lost, none),
        case(Fault::HalfBody, lost, none),
        case(Fault::StallMidAnswer, late, none),
        case(Fault::Silent, late, none),
        case(Fault::CloseAfterThree, &["ok", "peer_closed"], ""),
        case(Fault::Garbage, broken, "the first of them:"),
        case(Fault::HeadOf64KiB, broken, "64 KiB"),
        case(Fault::EndlessHead, broken, "the first of them:"),
        case(Fault::BadChunk, broken, "chunk"),
        case(Fault::EndlessBody, late, none),
        case(Fault::ContinueFirst, &["ok"], ""),
        case(Fault::ContinueOnly, late, none),
        case(
            Fault::EndlessContinue,
            &["malformed", "timed_out", "unfinished"],
            none,
        ),
        case(Fault::TwoLengths, broken, "content-length"),
        case(Fault::TwoAnswers, broken, "a response without a request"),
    ]
}

fn http2_cases() -> Vec<Case<http2::Fault>> {
    use http2::Fault;
    let lost: &[&str] = &["peer_closed"];
    let late: &[&str] = &["timed_out", "unfinished"];
    let broken: &[&str] = &["malformed"];
    // Whether the bytes or the end of the connection is seen first.
    let cut: &[&str] = &["malformed", "peer_closed"];
    // A busy machine may need longer than the timeout to be flooded.
    let flooded: &[&str] = &["malformed", "peer_closed", "timed_out", "unfinished"];
    let none = "no request was answered";
    vec![
        either(Fault::ResetAtAccept, RESET, none),
        case(Fault::CloseAtAccept, lost, none),
        case(Fault::Garbage, cut, none),
        case(Fault::Http1, cut, none),
        case(Fault::ResetUnanswered, lost, none),
        case(Fault::CloseUnanswered, lost, none),
        case(Fault::ResetMidAnswer, lost, none),
        case(Fault::HalfBody, lost, none),
        case(Fault::StallMidAnswer, late, none),
        case(Fault::Silent, late, none),
        case(Fault::CloseAfterThree, &["ok", "peer_closed"], ""),
        case(Fault::StreamReset, lost, none),
        case(Fault::StreamRefused, lost, none),
        case(Fault::GoAwayAtOnce, lost, none),
        // Requests that a server did not begin are sent again on another connection.
        case(Fault::GoAwayAfterThree, &["ok"], ""),
        case(Fault::FrameTooLong, broken, "frame"),
        case(Fault::BadHpack, broken, "header block"),
        case(Fault::HeadOf64KiB, broken, "the first of them:"),
        case(Fault::EndlessHead, broken, "the first of them:"),
        case(Fault::SettingsFlood, flooded, "too many"),
        case(Fault::PingFlood, flooded, "too many"),
        either(Fault::GoAwayFlood, flooded, none),
        either(
            Fault::NoStreams,
            &["peer_closed", "timed_out", "unfinished"],
            none,
        ),
        case(Fault::NoWindow, late, none),
        case(Fault::Promise, broken, "promise"),
        case(Fault::NoStatus, broken, ":status"),
        case(Fault::DataFirst, broken, "data before the head"),
        case(
            Fault::MoreThanItsLength,
            broken,
            "more data than its content-length",
        ),
    ]
}

/// Over TCP alone, or behind TLS with a certificate that is not checked.
fn faults_of_http1(loop_words: &str, tls: Option<&ServerTls>) {
    let begun = http1_cases().into_iter().map(|case| {
        let fault = case.fault;
        let words = format!("{loop_words} -c 3 {}", case.timeout());
        let server = Server::start_over(tls.cloned(), move |session| {
            http1::serve_session(fault, session)
        });
        let process = begin_over(tls, &server, &words);
        (case, server, process)
    });
    check(loop_words, begun.collect());
}

fn faults_of_http2(loop_words: &str, tls: Option<&ServerTls>) {
    let begun = http2_cases().into_iter().map(|case| {
        let fault = case.fault;
        let timeout = case.timeout();
        let mut words = format!("{loop_words} --protocol=http2 -c 2 --streams=2 {timeout}");
        if fault == http2::Fault::NoWindow {
            words.push_str(" --body hello");
        }
        let server = Server::start_over(tls.cloned(), move |session| {
            http2::serve_session(fault, session)
        });
        let process = begin_over(tls, &server, &words);
        (case, server, process)
    });
    check(loop_words, begun.collect());
}

fn begin_over(tls: Option<&ServerTls>, server: &Server, words: &str) -> Process {
    match tls {
        None => begin(server, words),
        Some(_) => begin_at(
            "https",
            server,
            &format!("{words} --insecure --connect-timeout=20s"),
        ),
    }
}

#[test]
fn every_fault_of_http1_is_counted_once_in_a_closed_loop() {
    faults_of_http1(CLOSED, None);
}

#[test]
fn every_fault_of_http1_is_counted_once_in_an_open_loop() {
    faults_of_http1(OPEN, None);
}

#[test]
fn every_fault_of_http2_is_counted_once_in_a_closed_loop() {
    faults_of_http2(CLOSED, None);
}

#[test]
fn every_fault_of_http2_is_counted_once_in_an_open_loop() {
    faults_of_http2(OPEN, None);
}

/// Faults of a server's HTTP are faults behind TLS as well, where ends of connections
/// lack their goodbye besides.
#[test]
fn every_fault_of_http1_is_counted_once_behind_tls() {
    let tls = tls::server(&[Alpn::Http1]);
    faults_of_http1(CLOSED, Some(&tls));
    faults_of_http1(OPEN, Some(&tls));
}

#[test]
fn every_fault_of_http2_is_counted_once_behind_tls() {
    let tls = tls::server(&[Alpn::Http2]);
    faults_of_http2(CLOSED, Some(&tls));
    faults_of_http2(OPEN, Some(&tls));
}

/// A server that lets no connection live does not get connections without a pause, while
/// nothing is due.
#[test]
fn connections_that_are_closed_at_once_are_not_opened_one_after_the_other() {
    let under_way = ["http1", "http2"].map(|protocol| {
        let fault = http1::Fault::CloseAtAccept;
        let server = Server::start(move |session| http1::serve_session(fault, session));
        let words = format!("--rate=2/s -n6 -c2 --timeout=20s --protocol={protocol}");
        let process = begin(&server, &words);
        (protocol, server, process)
    });
    for (protocol, server, process) in under_way {
        let report = Report::of(process.finish(LONG));
        server.stop();
        let opened = report.value["global"]["counters"]["upstream_cx_total"].as_u64();
        // Two connections, each again after 10, 20, 40 ms and so on up to 1 s, and once more
        // for each of six requests: 24 in three seconds, and two in each second of a stall.
        assert!(opened.unwrap() <= 40, "{protocol}: {opened:?}");
        assert!(report.begun() <= report.ended());
        let expected = "closes connections before it answers a request";
        assert!(
            report.findings().contains(expected),
            "{}",
            report.findings()
        );
    }
}

#[test]
fn without_a_listener_nothing_could_be_run() {
    let url = format!("http://127.0.0.1:{}/", free_port());
    for words in ["-n 3 -c 1", "-n 100 --rate 100/s"] {
        let mut arguments = vec![url.as_str()];
        arguments.extend(words.split_whitespace());
        let report = load(&arguments);
        assert_eq!(report.ended.code, 3, "{}", report.ended.stderr);
        assert!(report.outcome("connect_refused") > 0);
        assert_eq!(report.ended(), report.begun());
        assert!(
            report.findings().contains("connect to 127.0.0.1"),
            "{}",
            report.findings()
        );
    }
}

#[test]
fn a_server_without_tls_is_distinguished_from_one_with_it() {
    let server = Server::start(|session| http2::serve_session(http2::Fault::Http1, session));
    let url = format!("https://{}/", server.address);
    let report = load(&[&url, "-n3", "-c1", "-k"]);
    assert_eq!(report.ended.code, 3, "{}", report.ended.stderr);
    assert_eq!(report.outcome("handshake_failed"), 3);
    let finding = "does not speak TLS; try http:// instead";
    assert!(report.findings().contains(finding), "{}", report.findings());
    server.stop();
}

/// A signal ends a closed loop at once, and not when its grace is over.
#[test]
fn nothing_is_begun_after_a_signal() {
    let server =
        Server::start(|session| http1::serve_session(http1::Fault::ContinueFirst, session));
    let process = begin(&server, "-c4 --duration=60s");
    assert!(wait_until(LONG, || server.seen() > 100));
    process.signal("INT");
    let report = Report::of(process.finish(LONG));
    assert_eq!(report.ended.code, 130, "{}", report.ended.stderr);
    // All requests were answered: nothing was cut off.
    assert_eq!(report.outcome("ok"), report.begun());
    assert_eq!(server.stop(), report.begun());
}
