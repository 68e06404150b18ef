//! `nighthawk_test_server`: its admin interface.

use super::*;

fn start() -> (Origin, String) {
    let setup = Setup {
        listeners: 2,
        with_admin: true,
        ..Setup::default()
    };
    let origin = setup.start();
    let admin = origin.admin.clone().unwrap();
    (origin, admin)
}

/// The lines of a page that stay the same over time.
fn lasting(page: &str) -> Vec<&str> {
    let lines = page.lines();
    lines
        .filter(|line| !line.contains("server_uptime"))
        .collect()
}

/// The body of an answer with status 200.
fn page(admin: &str, path: &str) -> String {
    let answer = exchange(admin, "GET", path);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

// compat: nighthawk_test_server | /stats | works
// compat: nighthawk_test_server | /listeners | works
// compat: nighthawk_test_server | /server_info | works
// compat: nighthawk_test_server | /ready | works
#[test]
fn admin_reports_what_was_counted_and_where_it_listens() {
    let (origin, admin) = start();
    for url in &origin.urls {
        exchange(address(url), "GET", "/");
    }
    assert_eq!(page(&admin, "/ready"), "LIVE\n");
    let info: Value = serde_json::from_str(&page(&admin, "/server_info")).unwrap();
    assert_eq!(info["state"], "LIVE");
    assert_eq!(info["command_line_options"]["concurrency"], 1);
    let stats = page(&admin, "/stats");
    for line in [
        "http.ingress_http.downstream_rq_2xx: 2\n",
        "http.ingress_http.downstream_rq_5xx: 0\n",
        "http.ingress_http.downstream_cx_total: 2\n",
        "server.live: 1\n",
    ] {
        assert!(stats.contains(line), "{line}\n{stats}");
    }
    let stats = page(&admin, "/stats?format=json&filter=downstream_rq_total");
    let stats: Value = serde_json::from_str(&stats).unwrap();
    assert_eq!(stats["stats"].as_array().unwrap().len(), 1);
    assert_eq!(stats["stats"][0]["value"], 2);
    let stats = page(&admin, "/stats/prometheus");
    let line = "envoy_http_downstream_rq_xx{envoy_response_code_class=\"2\",\
                envoy_http_conn_manager_prefix=\"ingress_http\"} 2\n";
    assert!(stats.contains(line), "{stats}");
    let by_format = page(&admin, "/stats?format=prometheus");
    assert_eq!(lasting(&stats), lasting(&by_format));
    let listeners: Value = serde_json::from_str(&page(&admin, "/listeners?format=json")).unwrap();
    let second = &listeners["listener_statuses"][1]["local_address"]["socket_address"];
    let expected = address(&origin.urls[1]);
    let result = format!(
        "{}:{}",
        second["address"].as_str().unwrap(),
        second["port_value"]
    );
    assert_eq!(result, expected);
    assert!(page(&admin, "/listeners").contains(&format!("::{expected}\n")));
    assert!(page(&admin, "/").contains("/quitquitquit"));
    assert!(exchange(&admin, "GET", "/nothing").starts_with("HTTP/1.1 404 "));
    assert_eq!(origin.stop(), 2, "what is asked of admin is no request");
}

// compat: nighthawk_test_server | /quitquitquit | works
#[test]
fn admin_ends_the_server_where_it_is_requested_to_in_the_right_way() {
    let (origin, admin) = start();
    assert!(exchange(&admin, "GET", "/quitquitquit").starts_with("HTTP/1.1 405 "));
    assert_eq!(page(&admin, "/ready"), "LIVE\n");
    assert!(exchange(&admin, "POST", "/quitquitquit").ends_with("\r\n\r\nOK\n"));
    let ended = origin.process.finish(LONG);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(count(&ended.stdout, "requests"), 0);
}

// compat: nighthawk_test_server | --config-path | works
// compat: nighthawk_test_server | --concurrency | works
// compat: nighthawk_test_server | --admin-address-path | works
// compat: nighthawk_test_server | --base-id | works
#[test]
fn the_address_of_admin_is_written_where_that_is_requested() {
    let named = Named::new("nighthawk_test_server");
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (folder.path().join("a.yaml"), folder.path().join("admin"));
    let setup = Setup {
        with_admin: true,
        ..Setup::default()
    };
    std::fs::write(&file, setup.yaml()).unwrap();
    let mut command = named.command();
    command
        .arg("--config-path")
        .arg(&file)
        .arg("--admin-address-path")
        .arg(&out);
    let process = Process::start(command.args(["--base-id", "7", "--concurrency", "2"]));
    let is_there = || std::fs::read_to_string(&out).is_ok_and(|text| !text.is_empty());
    assert!(wait_until(LONG, is_there), "{}", process.stderr());
    let admin = std::fs::read_to_string(&out).unwrap();
    let info: Value = serde_json::from_str(&page(&admin, "/server_info")).unwrap();
    assert_eq!(info["command_line_options"]["concurrency"], 2);
}

// compat: nighthawk_test_server | x-nighthawk-test-server-config | works
/// The header works without quotes around its keys, as Nighthawk documents it.
#[test]
fn requests_define_how_they_are_answered_as_documented() {
    use std::io::{Read, Write};
    let origin = Origin::start();
    let requested = |options: &str| {
        let mut stream = TcpStream::connect(address(origin.url())).unwrap();
        let request = format!(
            "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\
             x-nighthawk-test-server-config: {options}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    let answer = requested("{response_body_size:20, static_delay: \"0s\"}");
    assert!(
        answer.ends_with(&format!("\r\n\r\n{}", "a".repeat(20))),
        "{answer}"
    );
    let answer = requested("bad_json");
    assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
    assert!(
        answer.contains("didn't understand the request: "),
        "{answer}"
    );
}
