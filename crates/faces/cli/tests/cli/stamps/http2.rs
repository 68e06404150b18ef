//! Stamped events in requests over HTTP/2, through a real proxy that sends its
//! clients away again and again.

use serde_json::Value;
use stillwell_testkit::{Process, program_or_skip};

use crate::suite::{LONG, Suite};

/// Requests after which nginx closes a connection, with others under way.
const REQUESTS_MAX: u64 = 7;

pub(super) fn configuration(suite: &Suite) -> String {
    let (listen, sink, folder) = (
        &suite.listen,
        &suite.sink,
        suite.path("").display().to_string(),
    );
    let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let paths = paths.map(|name| format!("{name}_temp_path {folder}/{name};\n"));
    format!(
        "daemon off; master_process off; pid {folder}/pid; error_log stderr;\n\
         events {{ worker_connections 256; }}\n\
         http {{ access_log off; {}client_max_body_size 0; keepalive_requests {REQUESTS_MAX};\n\
         server {{ listen {listen} http2; location / {{ proxy_pass http://{sink}; }} }} }}\n",
        paths.concat()
    )
}

/// Events of requests that a server had not looked at when it went away had numbers,
/// went out again under new ones, and seemed lost.
#[test]
fn a_proxy_that_sends_its_clients_away_loses_nothing() {
    let Some(nginx) = program_or_skip("stamps::http2", "nginx") else {
        return;
    };
    let suite = Suite::new();
    let conf = suite.file("nginx.conf", &configuration(&suite));
    let (listen, sink) = (&suite.listen, &suite.sink);
    let text = format!(
        "target:\n  name: nginx\n  command: [\"{}\", -e, stderr, -c, \"{}\"]\n  \
         ready: {{tcp: \"{listen}\"}}\n\
         phases: {{ready: 10s, warmup: 200ms, measure: 4s, drain: 10s, quiet: 500ms}}\n\
         workload:\n  generators:\n    - http: {{url: \"http://{listen}/\", protocol: http2, streams: 4}}\n      \
         payload: syslog5424\n      cache: 1 MiB\n      block: 4 KiB\n      connections: 2\n      \
         rate: 2000/s\n      stamps: all\n  sinks:\n    - http: \"{sink}\"\n",
        nginx.display(),
        conf.display(),
    );
    suite.file("run.yaml", &text);
    let words = ["observe", "run.yaml", "--results", "results"];
    let ended = Process::start(&mut suite.stillwell(&words)).finish(LONG);
    let summary = std::fs::read_to_string(suite.results().join("summary.json"));
    assert!(summary.is_ok(), "{}{}", ended.stdout, ended.stderr);
    let summary: Value = serde_json::from_str(&summary.unwrap()).unwrap();
    let account = &summary["figures"]["ledger"]["generators"][0];
    assert_eq!(account["streams"], 8, "{account}");
    assert!(account["sent"].as_u64().unwrap() > 500, "{account}");
    for name in ["lost", "duplicated", "unsent"] {
        let none = serde_json::json!({"least": 0, "most": 0});
        assert_eq!(account[name], none, "{name}: {}", ended.stdout);
    }
    for name in ["reordered", "damaged", "unverifiable"] {
        assert_eq!(account[name], 0, "{name}: {}", ended.stdout);
    }
}
