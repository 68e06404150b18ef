//! Methods, bodies and headers of requests.

use std::io::{Read, Write};
use std::net::TcpListener;

use super::*;

const BODY: &str = "benchmark_http_client.response_body_size";

/// A server's counts, once it has ended.
fn counts(origin: Origin) -> String {
    origin.process.signal("TERM");
    origin.process.finish(LONG).stdout
}

// compat: nighthawk_client | --request-body-size | works
#[test]
fn bodies_are_sent_whole() {
    let mebibytes = 3 << 20;
    for protocol in ["http1 --connections 1", "http2 --max-active-requests 1"] {
        let origin = Origin::start();
        let line = format!(
            "--protocol {protocol} --request-method POST --request-body-size {mebibytes} \
             --rps 100 --duration 100 --termination-predicate benchmark.http_2xx:9"
        );
        let result = measure(&format!("{line} {}", origin.url()));
        assert_eq!(result.counter("benchmark.http_2xx"), 10, "{protocol}");
        let sent = result.counter("upstream_cx_tx_bytes_total");
        assert!(sent >= 10 * mebibytes, "{protocol}: {sent}");
        assert_eq!(count(&counts(origin), "body bytes"), 10 * mebibytes);
    }
}

// compat: nighthawk_client | --request-body-file | works
#[test]
fn a_body_comes_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("body");
    std::fs::write(&file, [0, 1, 255, b'\n', 7]).unwrap();
    let origin = Origin::start();
    let line = format!(
        "--request-method PUT --request-body-file {} --rps 100 --connections 1 \
         --duration 100 --termination-predicate benchmark.http_2xx:3",
        file.display()
    );
    measure(&format!("{line} {}", origin.url()));
    assert_eq!(count(&counts(origin), "body bytes"), 4 * 5);
}

// compat: nighthawk_client | --request-header | works
#[test]
fn headers_arrive_and_define_how_requests_are_answered() {
    let origin = Origin::start();
    let few = "--rps 100 --connections 1 --duration 100 \
               --termination-predicate benchmark.http_2xx:1";
    let wish = config_header("{response_body_size: 13}");
    let result = measure(&format!("{few} {wish} {}", origin.url()));
    assert_eq!(result.statistic(BODY)["raw_max"], "13");
    // The echo of two headers is longer than that of one by the other's line.
    let echo = |headers: &str| {
        let wish = config_header("{echo_request_headers: true, response_body_size: 0}");
        let result = measure(&format!("{few} {wish} {headers} {}", origin.url()));
        whole(&result.statistic(BODY)["raw_max"])
    };
    let more = "--request-header 'x-a:  b:c ' --request-header x-d:e";
    let lines = ["'x-a', 'b:c'\n", "'x-d', 'e'\n"];
    let bytes: usize = lines.iter().map(|line| line.len()).sum();
    assert_eq!(echo(more) - echo(""), bytes as u64);
}

// compat: nighthawk_client | --request-method | differs | PATCH too; a tunnel ends the request of CONNECT
#[test]
fn every_method_is_sent() {
    let origin = Origin::start();
    let few = "--rps 100 --connections 1 --duration 100 \
               --termination-predicate benchmark.http_2xx:1";
    for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE"] {
        let wish = config_header("{echo_request_headers: true, response_body_size: 0}");
        let line = format!("{few} --request-method {method} {wish}");
        let result = measure(&format!("{line} {}", origin.url()));
        let bytes = whole(&result.statistic(BODY)["raw_max"]);
        assert_eq!(bytes == 0, method == "HEAD", "{method}: {bytes}");
    }
}

#[test]
fn an_answer_that_opens_a_tunnel_ends_its_request_and_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let line = format!(
        "--request-method CONNECT --rps 100 --connections 1 --duration 100 --output-format json \
         --termination-predicate benchmark.http_2xx:1 http://{address}/path"
    );
    let (_named, process) = start_client(&line);
    let expected = format!("CONNECT {address} HTTP/1.1\r\nhost: {address}\r\n\r\n");
    let mut tunnels = Vec::new();
    for _ in 0..2 {
        let (mut tunnel, _) = listener.accept().unwrap();
        tunnel.set_read_timeout(Some(LONG)).unwrap();
        let mut head = vec![0; expected.len()];
        tunnel.read_exact(&mut head).unwrap();
        assert_eq!(String::from_utf8(head).unwrap(), expected);
        // The other end of a tunnel may speak first.
        tunnel
            .write_all(b"HTTP/1.1 200 OK\r\n\r\n220 hello\r\n")
            .unwrap();
        tunnels.push(tunnel);
    }
    let ended = process.finish(LONG);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let output: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let result = &output["results"][0];
    assert_eq!(counter_of(result, "benchmark.http_2xx"), 2);
    assert_eq!(counter_of(result, "upstream_cx_total"), 2);
}

#[test]
fn a_refused_tunnel_is_an_answer_like_another() {
    let origin = Origin::start();
    let line = "--request-method CONNECT --rps 100 --connections 1 --no-default-failure-predicates \
                --duration 100 --termination-predicate requests:4";
    for protocol in ["http1", "http2"] {
        let result = measure(&format!("{line} --protocol {protocol} {}", origin.url()));
        let answered = result.counter("benchmark.http_4xx");
        assert!(answered >= 4, "{protocol}: {:?}", result.counters(""));
        assert_eq!(result.counter("benchmark.http_2xx"), 0, "{protocol}");
    }
}

/// Requests for bodies of 13 and 17 bytes in turn.
fn options(extra: &str) -> String {
    let item = |size: u32| {
        format!(
            "{{request_headers:[{{header:{{key:\"x-nighthawk-test-server-config\",\
             value:\"{{response_body_size:{size}}}\"}}}}{extra}]}}"
        )
    };
    format!("{{options:[{},{}]}}", item(13), item(17))
}

fn plugin(name: &str, of: &str, config: &str) -> String {
    let of = format!("type.googleapis.com/nighthawk.request_source.{of}");
    format!(
        "--request-source-plugin-config \
         '{{name:\"nighthawk.{name}\",typed_config:{{\"@type\":\"{of}\",{config}}}}}'"
    )
}

// compat: nighthawk_client | --request-source-plugin-config | differs | lists only; other plugins are refused
#[test]
fn requests_come_from_lists_in_line_and_in_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("requests.yaml");
    std::fs::write(&file, options("").replace(':', ": ")).unwrap();
    let in_line = "InLineOptionsListRequestSourceConfig";
    let in_file = "FileBasedOptionsListRequestSourceConfig";
    let host = ",{header:{key:\"host\",value:\"a.example\"}}";
    for source in [
        plugin(
            "in-line-options-list-request-source-plugin",
            in_line,
            &format!("options_list:{}", options("")),
        ),
        plugin(
            "in-line-options-list-request-source-plugin",
            in_line,
            &format!("options_list:{}", options(host)),
        ),
        plugin(
            "file-based-request-source-plugin",
            in_file,
            &format!("file_path:\"{}\"", file.display()),
        ),
    ] {
        let origin = Origin::start();
        let few = "--rps 200 --connections 1 --duration 100 \
                   --termination-predicate benchmark.http_2xx:9";
        let result = measure(&format!("{few} {source} {}", origin.url()));
        let sizes = result.statistic(BODY);
        assert_eq!(
            (&sizes["raw_min"], &sizes["raw_max"]),
            (&"13".into(), &"17".into())
        );
        assert_eq!(sizes["raw_mean"].as_f64(), Some(15.0), "they take turns");
    }
}

#[test]
fn a_list_may_have_an_end_and_bodies_of_json() {
    let origin = Origin::start();
    let list = "options_list:{options:[{request_method:\"POST\",json_body:\"{\\\"a\\\":1}\"}]},\
                num_requests:3";
    let source = plugin(
        "in-line-options-list-request-source-plugin",
        "InLineOptionsListRequestSourceConfig",
        list,
    );
    let line = "--rps 200 --concurrency 2 --duration 100";
    let result = measure(&format!("{line} {source} {}", origin.url()));
    assert_eq!(
        result.counter("benchmark.http_2xx"),
        2 * 3,
        "three of each worker"
    );
    assert_eq!(
        count(&counts(origin), "body bytes"),
        6 * "{\"a\":1}".len() as u64
    );
}

#[test]
fn a_list_that_is_not_understood_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("requests.yaml");
    std::fs::write(&file, "options:\n- request_method: GET\n- headers: []\n").unwrap();
    let config = format!("file_path:\"{}\"", file.display());
    let source = plugin(
        "file-based-request-source-plugin",
        "FileBasedOptionsListRequestSourceConfig",
        &config,
    );
    let ended = client(&format!("{source} http://127.0.0.1:1/"));
    assert_eq!(ended.code, 1);
    for part in [
        "Bad argument: ",
        "unknown request key `headers`",
        "requests.yaml:3:3",
    ] {
        assert!(ended.stderr.contains(part), "{part}\n{}", ended.stderr);
    }
}
