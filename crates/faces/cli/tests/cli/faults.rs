//! Faults on the timeline, on real sockets and processes: what steps do is seen in
//! the account of every event.

#[path = "faults/disks.rs"]
mod disks;
#[path = "faults/links.rs"]
mod links;

use serde_json::Value;
use stillwell_capture::{Manifest, RunOutcome};
use stillwell_testkit::{Process, free_port};

use crate::suite::{LONG, Suite, assert_holds, open};

/// A run of a relay whose sink, target or file goes through steps.
struct Run {
    manifest: Manifest,
    summary: Value,
    shown: String,
    /// Events of the run, line by line.
    events_text: String,
}

/// Input and output addresses, as a run and a relay write them.
struct Way {
    input: (String, String),
    output: (String, String),
    ready: String,
    /// More words for the relay.
    words: String,
}

impl Way {
    fn tcp(suite: &Suite) -> Self {
        Self {
            input: (
                format!("tcp: \"{}\"", suite.listen),
                format!("tcp://{}", suite.listen),
            ),
            output: (
                format!("tcp: \"{}\"", suite.sink),
                format!("tcp://{}", suite.sink),
            ),
            ready: format!("{{tcp: \"{}\"}}", suite.listen),
            words: String::new(),
        }
    }

    fn into_http(suite: &Suite) -> Self {
        Self {
            output: (
                format!("http: \"{}\"", suite.sink),
                format!("http://{}/", suite.sink),
            ),
            ..Self::tcp(suite)
        }
    }
}

fn run(suite: &Suite, way: &Way, timeline: &str, settings: &str) -> Run {
    run_for("measure: 2s, quiet: 4s", suite, way, timeline, settings)
}

/// `lengths` are those of `measure` and `quiet`; a long `quiet` takes time only where events
/// are lost.
fn run_for(lengths: &str, suite: &Suite, way: &Way, timeline: &str, settings: &str) -> Run {
    let Way {
        input,
        output,
        ready,
        words,
    } = way;
    let text = format!(
        "target:\n  name: relay\n  command: [\"{{self}}\", relay, --in, \"{}\", --out, \"{}\"{words}]\n  \
         ready: {ready}\n\
         phases: {{ready: 60s, warmup: 200ms, {lengths}, drain: 20s}}\n\
         workload:\n  generators:\n    - {{{}, id: load, payload: syslog5424, cache: 1 MiB, \
         rate: 2k/s, stamps: all}}\n  sinks:\n    - {{{}, id: out}}\n\
         timeline: {timeline}\n{settings}",
        input.1, output.1, input.0, output.0
    );
    suite.file("run.yaml", &text);
    let words = ["observe", "run.yaml", "--results", "results"];
    let ended = Process::start(&mut suite.stillwell(&words)).finish(LONG);
    let summary = std::fs::read_to_string(suite.results().join("summary.json"));
    assert!(summary.is_ok(), "{}", ended.stderr);
    suite.assert_nothing_left();
    let manifest = open(suite, &suite.results());
    let printed = events(suite);
    assert_eq!(
        manifest.outcome,
        RunOutcome::Completed,
        "{printed}\n{}",
        ended.stderr
    );
    Run {
        manifest,
        summary: serde_json::from_str(&summary.unwrap()).unwrap(),
        shown: ended.stdout,
        events_text: printed,
    }
}

fn events(suite: &Suite) -> String {
    let capture = stillwell_capture::Capture::open(&suite.results()).unwrap();
    let output: Vec<String> = capture.events.into_iter().map(|event| event.what).collect();
    output.join("\n")
}

impl Run {
    /// A figure of the stamped events; of bounds the exact count.
    fn count(&self, name: &str) -> u64 {
        let figure = &self.summary["figures"]["ledger"]["generators"][0][name];
        if let Some(count) = figure.as_u64() {
            return count;
        }
        assert_eq!(figure["least"], figure["most"], "{name}: {figure}");
        figure["least"].as_u64().unwrap()
    }

    /// Events of this run are all accounted for.
    fn assert_accounted(&self) {
        let [sent, received, lost] = ["sent", "received", "lost"].map(|name| self.count(name));
        assert_eq!(sent, received + lost, "{}", self.shown);
        // More are scheduled: fewer are sent if others use the CPUs.
        assert!(sent > 500, "{}", self.shown);
    }

    fn series(&self, name: &str) -> f64 {
        let all = self.summary["series"].as_object().unwrap();
        let result = all.iter().find(|(key, _)| key.starts_with(name));
        result.map_or(0.0, |(_, value)| value.as_f64().unwrap())
    }

    fn latency_max(&self) -> u64 {
        let latency = &self.summary["figures"]["event_latency"];
        latency["max_ns"].as_u64().unwrap()
    }

    /// Fails unless an event waited for at least half of the time between two steps. A busy
    /// machine does them late.
    fn assert_held_up(&self, from: &str, to: &str) {
        let at = |end: &str| {
            let mut steps = self.summary["figures"]["steps"].as_array().unwrap().iter();
            let step = steps.find(|step| step["what"].as_str().unwrap().ends_with(end));
            step.unwrap()["at_ns"].as_u64().unwrap()
        };
        let held = at(to) - at(from);
        assert!(self.latency_max() > held / 2, "{held}: {}", self.shown);
    }
}

#[test]
fn a_sink_that_is_down_for_a_second_loses_nothing_of_a_relay_that_sends_again() {
    let suite = Suite::new();
    let steps = "[{at: 300ms, sink: {id: out, do: down}}, {at: 1300ms, sink: {id: out, do: up}}]";
    let run = run(&suite, &Way::into_http(&suite), steps, "");
    run.assert_accounted();
    assert_eq!(run.count("lost"), 0, "{}", run.shown);
    // Events sent without a listener waited for one.
    run.assert_held_up("down", "up");
    assert_holds(&run.shown, &["sink out: down", "sink out: up"]);
}

#[test]
fn bytes_that_a_sink_has_not_read_when_it_goes_down_are_reported_lost() {
    let suite = Suite::new();
    let steps = "[{at: 200ms, sink: {id: out, do: pause}}, \
                 {at: 3500ms, sink: {id: out, do: down}}, \
                 {at: 3800ms, sink: {id: out, do: restore}}, \
                 {at: 3900ms, sink: {id: out, do: up}}]";
    let lengths = "measure: 5s, quiet: 1s";
    let run = run_for(lengths, &suite, &Way::tcp(&suite), steps, "");
    run.assert_accounted();
    // The relay had written them.
    assert!(run.count("lost") > 0, "{}", run.shown);
    assert_eq!(run.count("duplicated"), 0);
    let ranges = run.count("loss_ranges");
    assert!(ranges <= 3, "{}", run.shown);
}

#[test]
fn requests_that_a_sink_refuses_are_sent_again_and_none_is_lost_or_duplicated() {
    for refusal in ["status: 503", "close: true"] {
        let suite = Suite::new();
        let steps = format!(
            "[{{at: 100ms, sink: {{id: out, do: {{respond: {{{refusal}, share: 20%}}}}}}}}]"
        );
        let run = run(&suite, &Way::into_http(&suite), &steps, "");
        run.assert_accounted();
        assert_eq!(
            (run.count("lost"), run.count("duplicated")),
            (0, 0),
            "{}",
            run.shown
        );
        assert!(run.series("requests_refused") > 0.0, "{}", run.shown);
    }
}

#[test]
fn what_a_relay_gives_up_after_a_refusal_is_what_is_lost() {
    let suite = Suite::new();
    // A busy machine has few requests, each with many events.
    let steps = "[{at: 100ms, sink: {id: out, do: {respond: {status: 400, share: 50%}}}}, \
                 {at: 3600ms, sink: {id: out, do: restore}}]";
    let lengths = "measure: 5s, quiet: 1s";
    let run = run_for(lengths, &suite, &Way::into_http(&suite), steps, "");
    run.assert_accounted();
    let stderr = std::fs::read_to_string(suite.results().join("target.stderr.log")).unwrap();
    let lost = run.count("lost");
    assert!(lost > 0, "{}", run.shown);
    assert!(stderr.contains(&lost.to_string()), "{lost} lost; {stderr}");
}

#[test]
fn answers_that_are_queued_or_late_hold_events_up_and_lose_none() {
    let suite = Suite::new();
    let steps = "[{at: 100ms, sink: {id: out, do: queue}}, {at: 700ms, sink: {id: out, do: restore}}, \
                 {at: 800ms, sink: {id: out, do: {delay: \"5 + 5 * active_requests\"}}}]";
    let run = run(&suite, &Way::into_http(&suite), steps, "");
    run.assert_accounted();
    assert_eq!(
        (run.count("lost"), run.count("duplicated")),
        (0, 0),
        "{}",
        run.shown
    );
    run.assert_held_up("queued", "as in its plan");
}

#[test]
fn a_paused_target_holds_events_up_and_its_children_pause_too() {
    let suite = Suite::new();
    let steps = "[{at: 300ms, target: pause}, {at: 900ms, target: resume}]";
    let run = run(&suite, &Way::tcp(&suite), steps, "");
    run.assert_accounted();
    assert_eq!(run.count("lost"), 0, "{}", run.shown);
    run.assert_held_up("paused", "resumed");
}

/// The time of the pause counted as quiet, so the drain ended with the step that ended the pause.
#[test]
fn sinks_must_be_quiet_after_the_last_step_of_a_drain() {
    let suite = Suite::new();
    // The relay needs a moment for its first event after the pause.
    let way = Way {
        words: ", --work-per-event, 100us".to_owned(),
        ..Way::tcp(&suite)
    };
    // In the drain the pause is longer than the quiet that ends it.
    let steps = "[{at: 1800ms, target: pause}, {at: 7500ms, target: resume}]";
    let run = run(&suite, &way, steps, "");
    run.assert_accounted();
    let ledger = run.manifest.ledger.as_ref().unwrap();
    assert_eq!(
        (run.count("lost"), ledger.quiet, ledger.under_way),
        (0, true, Some(0)),
        "{}",
        run.shown
    );
}

/// Fails unless the run is valid and has the recovery of its target, which `steps` end by `signal`
/// and start again.
fn assert_recovers(steps: &str, signal: &str) {
    let suite = Suite::new();
    // On a busy machine the end and the start take seconds, and load must come after them.
    let lengths = "measure: 10s, quiet: 1s";
    let run = run_for(lengths, &suite, &Way::tcp(&suite), steps, "");
    run.assert_accounted();
    let restarts = &run.manifest.restarts;
    assert_eq!(restarts.len(), 1, "{restarts:?}");
    let restart = &restarts[0];
    assert!(restart.ready_after.unwrap() >= restart.started_after.unwrap());
    assert!(restart.delivered_after.unwrap() >= restart.ready_after.unwrap());
    assert!(run.series("target_redelivery") >= run.series("target_recovery"));
    assert!(
        run.series("target_recovery") > 0.0,
        "{:?}",
        run.summary["series"]
    );
    let how = format!("the target is ended by {signal}");
    assert_holds(
        &run.shown,
        &[
            &how,
            "the target is started again",
            "ready again",
            "delivering again",
        ],
    );
    // A delay by other programs is not an effect of the restart.
    let warnings = run.summary["warnings"].to_string();
    let of_target = warnings.replace("target_delayed", "");
    assert!(!of_target.contains("target"), "{warnings}");
    assert_holds(&run.events_text, &["the target was ready again after"]);
}

#[test]
fn a_target_that_is_killed_and_started_again_leaves_a_valid_run_with_its_recovery() {
    let steps = "[{at: 500ms, target: {restart: {signal: KILL, after: 300ms}}}]";
    assert_recovers(steps, "Kill");
}

#[test]
fn a_target_that_is_restarted_leaves_a_valid_run_with_its_recovery() {
    assert_recovers("[{at: 500ms, target: restart}]", "Term");
}

#[test]
fn a_target_that_two_steps_kill_and_start_leaves_a_valid_run_with_its_recovery() {
    let steps = "[{at: 500ms, target: kill}, {at: 900ms, target: start}]";
    assert_recovers(steps, "Kill");
}

#[test]
fn a_target_that_does_not_come_back_fails_the_run() {
    let suite = Suite::new();
    let text = format!(
        "target:\n  command: [sh, -c, 'test -e gone && exit 3; touch gone; exec \"$0\" \"$@\"', \
         \"{{self}}\", relay, --in, \"tcp://{}\", --out, \"tcp://{}\"]\n\
         phases: {{ready: 5s, warmup: 0s, measure: 2s, drain: 1s}}\n\
         workload:\n  generators:\n    - {{tcp: \"{}\", payload: ascii, rate: 100/s}}\n  \
         sinks:\n    - tcp: \"{}\"\n\
         timeline: [{{at: 300ms, target: restart}}]\n",
        suite.listen, suite.sink, suite.listen, suite.sink
    );
    suite.file("run.yaml", &text);
    let words = ["observe", "run.yaml", "--results", "results"];
    let ended = Process::start(&mut suite.stillwell(&words)).finish(LONG);
    let manifest = open(&suite, &suite.results());
    assert!(
        !manifest.outcome.is_completed(),
        "{:?} {}",
        manifest.outcome,
        ended.stderr
    );
    suite.assert_nothing_left();
}

#[test]
fn a_log_that_is_moved_by_a_step_is_read_to_its_end() {
    for how in ["rename", "copy_truncate"] {
        let suite = Suite::new();
        let folder = suite.path("in");
        std::fs::create_dir(&folder).unwrap();
        let folder = folder.display();
        let metrics = format!("127.0.0.1:{}", free_port());
        let way = Way {
            input: (
                format!("file_gen: {{log: \"{folder}/a.log\", file_max: 1 GiB}}"),
                format!("tail://{folder}"),
            ),
            ready: format!("{{http: \"http://{metrics}/metrics\"}}"),
            words: format!(", --metrics, \"{metrics}\""),
            ..Way::tcp(&suite)
        };
        let steps = format!("[{{at: 1s, file: {{id: load, rotate: {how}}}}}]");
        let run = run(&suite, &way, &steps, "");
        run.assert_accounted();
        if how == "rename" {
            assert_eq!(run.count("lost"), 0, "{}", run.shown);
        }
        assert!(suite.path("in/a.log.0").exists(), "{how}");
    }
}
