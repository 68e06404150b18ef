use stillwell_plan::generator::{Concurrency, FileLayout};
use stillwell_plan::payload::HecEncoding;
use stillwell_plan::{GeneratorPlan, PayloadFormat, TransportPlan};

use crate::file::{LadingFile, read};
use stillwell_text::{Diagnostics, NamedFiles, Source};

const SEED: &str = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, \
                    22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32]";

const CACHE: &str = "maximum_prebuild_cache_size_bytes: 8 MiB";

fn run_plan(text: &str) -> (LadingFile, Diagnostics) {
    let source = Source::new("lading.yaml", text);
    let (run_plan, result) = read(&source, true, NamedFiles::default());
    (run_plan.expect("a root that is a map"), result)
}

/// One generator of `kind` with `body`, which must be right.
fn generator(kind: &str, body: &str) -> GeneratorPlan {
    let (mut run_plan, result) = run_plan(&format!("generator: [{{{kind}: {{{body}}}}}]\n"));
    assert!(!result.has_errors(), "{kind}: {result}");
    run_plan.generators.remove(0)
}

fn mistakes(kind: &str, body: &str) -> String {
    let (_, result) = run_plan(&format!("generator: [{{{kind}: {{{body}}}}}]\n"));
    assert!(result.has_errors(), "{kind}: {body}");
    result.to_string()
}

#[test]
fn splunk_hec_sends_its_format() {
    for (format, encoding) in [("json", HecEncoding::Json), ("text", HecEncoding::Text)] {
        let plan = generator(
            "splunk_hec",
            &format!(
                "seed: {SEED}, target_uri: 'http://localhost:8282/', format: {format}, token: abcd1234, \
                 acknowledgements: {{ack_query_interval_seconds: 10, ack_timeout_seconds: 300}}, \
                 parallel_connections: 10, {CACHE}"
            ),
        );
        assert_eq!(plan.payload.format, PayloadFormat::SplunkHec { encoding });
        assert_eq!(plan.concurrency.connections(), 10);
        let TransportPlan::SplunkHec {
            acknowledgements, ..
        } = plan.transport
        else {
            panic!("{:?}", plan.transport);
        };
        assert_eq!(
            acknowledgements.map(|how| how.every.as_u64()),
            Some(10_000_000_000)
        );
    }
}

#[test]
fn requests_of_http_may_set_their_host() {
    let body = format!(
        "seed: {SEED}, target_uri: 'http://127.0.0.1:1/', headers: {{Host: a.example, X: y}}, \
         method: {{post: {{variant: ascii, {CACHE}}}}}"
    );
    let plan = generator("http", &body);
    let TransportPlan::Http { headers, .. } = plan.transport else {
        panic!("{:?}", plan.transport);
    };
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(headers, [header("Host", "a.example"), header("X", "y")]);
    let wrong = body.replace("a.example", "a/b");
    assert!(mistakes("http", &wrong).contains("not a host"), "{wrong}");
}

#[test]
fn grpc_and_trace_agent_are_read() {
    let grpc = generator(
        "grpc",
        &format!(
            "seed: {SEED}, target_uri: 'http://127.0.0.1:4317/a.Logs/Export', variant: \
             opentelemetry_logs, parallel_connections: 5, {CACHE}"
        ),
    );
    let url = "http://127.0.0.1:4317/a.Logs/Export".to_owned();
    assert_eq!(grpc.transport, TransportPlan::Grpc { url });
    for (backoff, retries) in [
        ("", 3),
        ("backoff_behavior: ignore, ", 0),
        ("backoff_behavior: {obey: {max_retries: 7}}, ", 7),
    ] {
        let traces = generator(
            "trace_agent",
            &format!(
                "seed: {SEED}, {backoff}target_uri: 'http://127.0.0.1:8126', variant: {{v0.4: {{}}}}, \
                 parallel_connections: 1, {CACHE}"
            ),
        );
        let url = "http://127.0.0.1:8126".to_owned();
        assert_eq!(traces.transport, TransportPlan::TraceAgent { url, retries });
        assert!(matches!(
            traces.payload.format,
            PayloadFormat::TraceAgent(_)
        ));
    }
}

#[test]
fn files_are_written_at_the_rate_of_each() {
    let traditional = format!(
        "seed: {SEED}, path_template: /tmp/%NNN%.log, duplicates: 4, variant: ascii, \
         maximum_bytes_per_file: 100 MiB, {CACHE}, bytes_per_second: 1 MB, flush_every: 1s"
    );
    let old = generator("file_gen", &traditional);
    let new = generator("file_gen", &format!("traditional: {{{traditional}}}"));
    assert_eq!(old, new);
    let TransportPlan::Files { layout, bytes_max } = &old.transport else {
        panic!("{:?}", old.transport);
    };
    assert_eq!(bytes_max.bytes(), 100 << 20);
    assert!(matches!(layout, FileLayout::Numbered { delete: true, .. }));
    assert_eq!(
        (
            old.concurrency.connections(),
            format!("{:?}", old.rate.shape)
        ),
        (4, "Constant { per_second: 4000000.0 }".to_owned())
    );
    let body = format!(
        "seed: {SEED}, concurrent_logs: 2, maximum_bytes_per_log: 1 MiB, total_rotations: 5, \
         max_depth: 0, variant: ascii, {CACHE}"
    );
    let rotated = generator(
        "file_gen",
        &format!("logrotate: {{{body}, root: /tmp/logs}}"),
    );
    assert!(rotated.rate.is_max());
    for (profile, shape) in [
        ("{constant: 100MiB}", "Constant { per_second: 209715200.0 }"),
        (
            "{constant: {blocks_per_second: 3}}",
            "Constant { per_second: 6.0 }",
        ),
    ] {
        let shown = generator(
            "file_gen",
            &format!("logrotate_fs: {{{body}, mount_point: /smp-shared, load_profile: {profile}}}"),
        );
        assert_eq!(format!("{:?}", shown.rate.shape), shape);
        assert!(matches!(
            shown.transport,
            TransportPlan::Files {
                layout: FileLayout::Mounted { rotations: 5, .. },
                ..
            }
        ));
    }
}

/// lading's bound is exclusive in `logrotate`, and inclusive in `logrotate_fs`.
#[test]
fn logs_lie_as_deep_as_in_lading() {
    for (depth, rotated, mounted) in [(0, 0, 0), (1, 0, 1), (3, 2, 3)] {
        let layout = |kind: &str, rest: &str| {
            let body = format!(
                "seed: {SEED}, concurrent_logs: 2, maximum_bytes_per_log: 1 MiB, \
                 total_rotations: 5, max_depth: {depth}, variant: ascii, {CACHE}, {rest}"
            );
            match generator("file_gen", &format!("{kind}: {{{body}}}")).transport {
                TransportPlan::Files { layout, .. } => layout,
                transport => panic!("{transport:?}"),
            }
        };
        assert_eq!(
            layout("logrotate", "root: /a"),
            FileLayout::Rotated {
                root: "/a".into(),
                depth_max: rotated,
                rotations: 5
            }
        );
        let mount = "mount_point: /a, load_profile: {constant: 1MiB}";
        assert_eq!(
            layout("logrotate_fs", mount),
            FileLayout::Mounted {
                at: "/a".into(),
                depth_max: mounted,
                rotations: 5
            }
        );
    }
}

#[test]
fn what_sends_no_payload_is_paced() {
    let tree = generator(
        "file_tree",
        &format!("seed: {SEED}, root: /tmp/tree, open_per_second: 3, rename_per_second: 2"),
    );
    assert_eq!(
        format!("{:?}", tree.rate.shape),
        "Constant { per_second: 5.0 }"
    );
    for (address, expected) in [
        ("addr: 127.0.0.1", "127.0.0.1:12867"),
        ("addr: 127.0.0.1, data_port: 9", "127.0.0.1:9"),
        ("addr: 'localhost:7'", "localhost:7"),
        ("addr: '::1'", "[::1]:12867"),
    ] {
        let plan = generator(
            "tcp_rr",
            &format!("{address}, flows: 4, threads: 9, request_size: 8"),
        );
        let TransportPlan::TcpRr {
            address,
            request_bytes,
            response_bytes,
        } = &plan.transport
        else {
            panic!("{:?}", plan.transport);
        };
        assert_eq!(
            (
                address.as_str(),
                request_bytes.bytes(),
                response_bytes.bytes()
            ),
            (expected, 8, 1)
        );
        assert_eq!(plan.concurrency, Concurrency::try_new(4, 4).unwrap());
    }
}

#[test]
fn passthru_files_are_read() {
    let plan = generator(
        "passthru_file",
        &format!("seed: {SEED}, path: /tmp/pipe, variant: ascii, {CACHE}"),
    );
    let path = "/tmp/pipe".into();
    assert_eq!(plan.transport, TransportPlan::PassthruFile { path });
}

#[test]
fn mistakes_are_named() {
    let hec = format!("seed: {SEED}, target_uri: 'http://a', parallel_connections: 1, {CACHE}");
    for (kind, body, expected) in [
        (
            "splunk_hec",
            format!("{hec}, format: xml, token: a"),
            "unknown encoding `xml`",
        ),
        (
            "splunk_hec",
            format!("{hec}, format: json, token: 'a b'"),
            "a token is printable",
        ),
        (
            "splunk_hec",
            format!("{hec}, format: json"),
            "needs `token`",
        ),
        (
            "splunk_hec",
            format!("{hec}, format: json, token: a, variant: json"),
            "unknown splunk_hec generator key `variant`",
        ),
        (
            "trace_agent",
            format!("{hec}, variant: {{v0.4: {{}}}}, backoff_behavior: wait"),
            "unknown backoff behavior `wait`",
        ),
        (
            "file_gen",
            "traditional: {path_template: /tmp/x}".to_owned(),
            "without a number",
        ),
        (
            "tcp_rr",
            "addr: '127.0.0.1:1', data_port: 2".to_owned(),
            "the port appears twice",
        ),
    ] {
        let result = mistakes(kind, &body);
        assert!(result.contains(expected), "{result}");
    }
}

// compat: lading, files | throttle: stable or all_out beside bytes_per_second | differs | read with a warning, as of lading 0.15 to 0.17
#[test]
fn a_throttle_of_one_word_goes_with_bytes_per_second() {
    for (word, shape) in [
        ("stable", "Constant { per_second: 1048576.0 }"),
        ("all_out", "Max"),
    ] {
        let rate = format!("bytes_per_second: 1 MiB, throttle: {word}");
        let body = format!("seed: {SEED}, addr: 'a:1', variant: ascii, {CACHE}, {rate}");
        assert_eq!(format!("{:?}", generator("tcp", &body).rate.shape), shape);
    }
}

// compat: lading, files | IPv6 addresses with a zone | refused | write the address without its zone
#[test]
fn an_address_has_no_zone() {
    for (kind, body) in [
        ("tcp", "addr: '[fe80::1%eth0]:9', variant: ascii"),
        ("udp", "addr: '[fe80::1%2]:9', variant: ascii"),
        (
            "udp",
            "addr: 'a:1', bind_addr: '[fe80::1%eth0]:0', variant: ascii",
        ),
    ] {
        let result = mistakes(kind, &format!("seed: {SEED}, {body}, {CACHE}"));
        assert!(result.contains("an address with a zone"), "{result}");
    }
}

#[test]
fn a_rate_above_4_gib_a_second_is_not_cut() {
    let tcp = |rate: &str| {
        let body = format!("seed: {SEED}, addr: 'a:1', variant: ascii, {CACHE}, {rate}");
        format!("{:?}", generator("tcp", &body).rate.shape)
    };
    let whole = "Constant { per_second: 5368709120.0 }";
    assert_eq!(tcp("bytes_per_second: 5 GiB"), whole);
    assert_eq!(tcp("throttle: {stable: {bytes_per_second: 5 GiB}}"), whole);
}

#[test]
fn a_cache_above_4_gib_is_not_cut() {
    let body = format!(
        "seed: {SEED}, addr: 'a:1', variant: ascii, maximum_prebuild_cache_size_bytes: 5 GiB"
    );
    assert_eq!(
        generator("tcp", &body).payload.cache,
        stillwell_units::ByteSize::new(5 << 30)
    );
}

#[test]
fn a_rate_of_each_connection_or_file_is_a_total_and_is_reported() {
    for (kind, body, connections) in [
        ("unix_stream", "path: /a, parallel_connections: 3", 3.0),
        ("unix_datagram", "path: /a, parallel_connections: 4", 4.0),
        ("tcp", "addr: 'a:1', parallel_connections: 5", 1.0),
        (
            "file_gen",
            "path_template: '/a%NNN%', duplicates: 2, maximum_bytes_per_file: 1 MB",
            2.0,
        ),
    ] {
        let body = format!("seed: {SEED}, {body}, variant: ascii, {CACHE}, bytes_per_second: 1000");
        let (run_plan, result) = run_plan(&format!("generator: [{{{kind}: {{{body}}}}}]\n"));
        let per_second = 1000.0 * connections;
        let expected = format!("{:?}", stillwell_plan::RateShape::Constant { per_second });
        assert_eq!(
            format!("{:?}", run_plan.generators[0].rate.shape),
            expected,
            "{kind}"
        );
        let has_remark = result.to_string().contains("as in lading");
        assert_eq!(has_remark, connections > 1.0, "{kind}: {result}");
    }
}
