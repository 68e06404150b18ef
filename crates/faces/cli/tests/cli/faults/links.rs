//! Links with loss, rate, delay and cuts, in networks of the run's own.

use std::fs;

use stillwell_testkit::{Process, program_or_skip, wait_until};

use super::{Run, Way, run, run_for};
use crate::suite::{LONG, Suite, assert_holds};

/// A relay between the two links, by one protocol.
fn way(scheme: &str) -> Way {
    Way {
        input: (
            format!("{scheme}: \"10.64.1.2:9100\""),
            format!("{scheme}://10.64.1.2:9100"),
        ),
        output: (
            format!("{scheme}: \"10.64.2.2:9200\""),
            format!("{scheme}://10.64.2.2:9200"),
        ),
        // Its input over UDP says nothing.
        ready: "{http: \"http://10.64.1.2:9101/metrics\"}".to_owned(),
        words: ", --metrics, \"10.64.1.2:9101\"".to_owned(),
    }
}

/// Returns true where links can be made.
fn can_link(test: &str) -> bool {
    let needed = ["ip", "tc", "nft"];
    needed
        .iter()
        .all(|name| program_or_skip(test, name).is_some())
}

/// Traces of a run's networks outside of it.
fn devices() -> String {
    let mut names: Vec<String> = fs::read_dir("/sys/class/net")
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort_unstable();
    names.join(" ")
}

/// The packets that a link is said to have lost with the load.
fn lost_on(run: &Run, link: &str) -> u64 {
    let begin = format!("link {link} lost ");
    let line = run
        .events_text
        .lines()
        .find_map(|line| line.strip_prefix(&begin));
    let count = line.and_then(|line| line.split(' ').next());
    count.unwrap().parse().unwrap()
}

#[test]
fn datagrams_that_links_lose_are_the_events_that_are_lost() {
    if !can_link("datagrams_that_links_lose_are_the_events_that_are_lost") {
        return;
    }
    let before = devices();
    let suite = Suite::alone();
    let steps = "[{at: 200ms, network: {output: {loss: 5%}}}, \
                 {at: 3200ms, network: {input: {loss: 2%}, output: {loss: 0%}}}]";
    let lengths = "measure: 6s, quiet: 1s";
    let run = run_for(lengths, &suite, &way("udp"), steps, "network: {}\n");
    run.assert_accounted();
    let (input, output) = (lost_on(&run, "input"), lost_on(&run, "output"));
    assert!(input > 0 && output > 0, "{}", run.events_text);
    // Each datagram holds one event.
    assert_eq!(run.count("lost"), input + output, "{}", run.events_text);
    assert_holds(&run.shown, &["link output: 5% of packets lost"]);
    assert_eq!(devices(), before);
}

#[test]
fn tcp_hides_loss_and_a_cut_and_pays_with_time() {
    if !can_link("tcp_hides_loss_and_a_cut_and_pays_with_time") {
        return;
    }
    let suite = Suite::alone();
    let steps = "[{at: 200ms, network: {output: {loss: 1%}}}, \
                 {at: 500ms, network: {output: {cut: true, loss: 100%}}}, \
                 {at: 1100ms, network: {output: {cut: false, loss: 0%}}}]";
    let run = run(&suite, &way("tcp"), steps, "network: {}\n");
    run.assert_accounted();
    assert_eq!(
        (run.count("lost"), run.count("duplicated")),
        (0, 0),
        "{}",
        run.shown
    );
    run.assert_held_up("cut", "whole");
}

#[test]
fn a_delay_is_in_the_latency_of_every_event_over_tcp_and_udp() {
    for scheme in ["tcp", "udp"] {
        if !can_link("a_delay_is_in_the_latency_of_every_event_over_tcp_and_udp") {
            return;
        }
        let suite = Suite::alone();
        let links = "network: {input: {delay: 30ms}, output: {delay: 20ms}}\n";
        let run = run(&suite, &way(scheme), "[{at: 1s, note: half}]", links);
        run.assert_accounted();
        assert_eq!(run.count("lost"), 0, "{}", run.shown);
        let latency = &run.summary["figures"]["event_latency"];
        let median = latency["p50_ns"].as_u64().unwrap();
        assert!(median >= 49_000_000, "{scheme}: {latency}");
    }
}

#[test]
fn a_rate_holds_back_what_is_more() {
    if !can_link("a_rate_holds_back_what_is_more") {
        return;
    }
    let suite = Suite::alone();
    // 2,000 events a second are some hundred kilobytes.
    let steps = "[{at: 300ms, network: {output: {rate: 400 kbit/s}}}, \
                 {at: 3800ms, network: {output: {rate: none}}}]";
    let lengths = "measure: 5s, quiet: 4s";
    let run = run_for(lengths, &suite, &way("tcp"), steps, "network: {}\n");
    run.assert_accounted();
    assert_eq!(run.count("lost"), 0, "{}", run.shown);
    assert!(run.latency_max() > 200_000_000, "{}", run.shown);
}

#[test]
fn nothing_of_the_links_is_left_after_sigterm() {
    if !can_link("nothing_of_the_links_is_left_after_sigterm") {
        return;
    }
    let before = devices();
    let suite = Suite::alone();
    let text = "target:\n  command: [\"{self}\", relay, --in, \"tcp://10.64.1.2:9100\", --out, \
                \"tcp://10.64.2.2:9200\"]\n\
                phases: {ready: 10s, warmup: 100ms, measure: 60s, drain: 1s}\n\
                network: {output: {delay: 5ms}}\n\
                workload:\n  generators:\n    - {tcp: \"10.64.1.2:9100\", payload: ascii, \
                rate: 100/s}\n  sinks:\n    - tcp: \"10.64.2.2:9200\"\n\
                timeline: [{at: 100ms, network: {output: {loss: 1%}, input: {cut: true}}}]\n";
    suite.file("run.yaml", text);
    let words = ["observe", "run.yaml", "--results", "results"];
    let process = Process::start(&mut suite.stillwell(&words));
    let journal = suite.results().join("events.jsonl");
    let is_cut =
        || fs::read_to_string(&journal).is_ok_and(|printed| printed.contains("input: cut"));
    assert!(wait_until(LONG, is_cut), "{}", process.stderr());
    process.signal("TERM");
    let ended = process.finish(LONG);
    assert_eq!(ended.code, 143, "{}", ended.stderr);
    assert_eq!(devices(), before);
    suite.assert_nothing_left();
}
