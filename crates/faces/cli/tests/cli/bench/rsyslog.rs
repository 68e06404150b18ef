//! The bench of Tremor's documentation through a real rsyslog.

use std::fs;

use stillwell_testkit::program_or_skip;

use super::{Bench, LINES, plotted};
use crate::suite::assert_code;

/// Lines in over TCP and out over TCP, as they came.
fn configuration(bench: &Bench) -> String {
    let port = |address: &str| address.rsplit_once(':').unwrap().1.to_owned();
    let (listen, sink) = (port(&bench.suite.listen), port(&bench.suite.sink));
    let state = bench.suite.path("rsyslog");
    fs::create_dir(&state).unwrap();
    let state = state.display();
    let text = format!(
        "global(workDirectory=\"{state}\" maxMessageSize=\"64k\")\nmodule(load=\"imtcp\")\n\
         template(name=\"raw\" type=\"string\" string=\"%rawmsg%\\n\")\n\
         ruleset(name=\"on\") {{\n  action(type=\"omfwd\" target=\"127.0.0.1\" port=\"{sink}\" \
         protocol=\"tcp\" template=\"raw\")\n}}\n\
         input(type=\"imtcp\" address=\"127.0.0.1\" port=\"{listen}\" ruleset=\"on\")\n"
    );
    let path = bench.suite.file("rsyslog.conf", &text);
    path.display().to_string()
}

#[test]
fn every_event_through_a_real_rsyslog_is_accounted_for() {
    let test = "every_event_through_a_real_rsyslog_is_accounted_for";
    let Some(rsyslogd) = program_or_skip(test, "rsyslogd") else {
        return;
    };
    let bench = Bench::new("tcp", "tcp");
    let [into, out] = bench.endpoints();
    let (configuration, pid) = (configuration(&bench), bench.suite.path("rsyslog.pid"));
    let words = [
        rsyslogd.display().to_string(),
        "-n".to_owned(),
        "-f".to_owned(),
        configuration,
        "-i".to_owned(),
        pid.display().to_string(),
    ];
    let command = serde_json::to_string(&words).unwrap();
    let file = |end: &str| {
        format!(
            "target:\n  command: {command}\n  ready: {{tcp: \"{}\"}}\nin: {into}\nout: {out}\n\
             codec: json\nsource: in.json\n{end}",
            bench.suite.listen
        )
    };
    let ended = bench.run_file(&file("iters: 20\n"));
    ended.assert_exact(20 * LINES);
    assert!(
        plotted(&ended.finished.stdout) > 2,
        "{}",
        ended.finished.stdout
    );
    fs::remove_dir_all(bench.suite.results()).unwrap();
    // The seed's own, shorter.
    let ended = bench.run_file(&file("stop_after_secs: 1\nwarmup_secs: 1\nrate: 2k/s\n"));
    assert_code(&ended.finished, 0);
    assert_eq!(ended.ledger("arrivals"), ended.ledger("sent"));
    assert_eq!(ended.ledger("lost"), 0);
    ended.assert_all_measured_are_timed();
}
