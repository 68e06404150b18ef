mod keys;

use stillwell_plan::serve::ResponseDelay;
use stillwell_plan::tls::{Alpn, PemSource, ServerIdentity, TlsVersion};
use stillwell_units::Nanos;

use super::*;
use stillwell_config::files::InMemory;

fn load(text: &str) -> Result<TestServer, String> {
    let files = InMemory::with([("server.yaml", text)]);
    load_test_server_from(&files, Path::new("server.yaml"), 2.try_into().unwrap())
        .map_err(|diagnostics| diagnostics.to_string())
}

/// A file with these HTTP filters and this beside the filters of its chain.
fn file(filters: &str, beside: &str) -> String {
    format!(
        "admin:
  access_log_path: /dev/null
  address:
    socket_address: {{ address: 127.0.0.1, port_value: 0 }}
static_resources:
  listeners:
  - address:
      socket_address: {{ address: 127.0.0.1, port_value: 8080 }}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          \"@type\": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          generate_request_id: false
          codec_type: AUTO
          stat_prefix: ingress_http
          route_config: {{ name: local_route, virtual_hosts: [ {{ name: service, domains: [\"*\"] }} ] }}
          http_filters:
{filters}
{beside}"
    )
}

const ROUTER: &str = "          - name: envoy.filters.http.router";

#[test]
fn the_filters_of_a_listener_are_read() {
    let loaded = load(&file(
        "          - name: time-tracking
            typed_config: { emit_previous_request_delta_in_response_header: x-delta }
          - name: dynamic-delay
            config: { concurrency_based_linear_delay: { minimal_delay: 0.05s, concurrency_delay_factor: 0.010s } }
          - name: test-server
            typed_config:
              \"@type\": type.googleapis.com/nighthawk.server.ResponseOptions
              response_body_size: 10
              v3_response_headers:
              - { header: { key: x-nh, value: \"1\" } }
          - name: envoy.filters.http.router
            typed_config: { dynamic_stats: false }",
        "",
    ))
    .unwrap();
    assert_eq!(loaded.plan.workers.get(), 2);
    let listener = &loaded.plan.listeners[0];
    assert_eq!(listener.address.to_string(), "127.0.0.1:8080");
    assert_eq!(listener.answer.filters, FilterSet::ALL);
    assert!(listener.answer.headers.server.is_some() && listener.tls.is_none());
    let options = &listener.answer.options;
    assert_eq!(options.body_bytes, Some(10));
    assert_eq!(options.headers[0].name, "x-nh");
    assert_eq!(options.delta_header.as_deref(), Some("x-delta"));
    let expected = ResponseDelay::Linear {
        minimal: Nanos::from_millis(50),
        factor: Nanos::from_millis(10),
    };
    assert_eq!(options.delay, Some(expected));
    let admin = loaded.plan.admin.unwrap();
    assert_eq!(admin.address.to_string(), "127.0.0.1:0");
    assert_eq!(admin.stat_prefix, "ingress_http");
    assert!(loaded.warnings.iter().next().is_none());
}

#[test]
fn tls_is_read_in_both_shapes() {
    for (beside, alpn, min) in [
        (
            "      tls_context:
        common_tls_context:
          tls_certificates:
          - certificate_chain: { filename: a.pem }
            private_key: { inline_string: KEY }",
            vec![],
            None,
        ),
        (
            "      transport_socket:
        name: envoy.transport_sockets.tls
        typed_config:
          \"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
          common_tls_context:
            alpn_protocols: [ h2, http/1.1 ]
            tls_params:
              tls_minimum_protocol_version: TLSv1_3
              cipher_suites: [ '[ECDHE-RSA-AES128-GCM-SHA256|ECDHE-RSA-CHACHA20-POLY1305]' ]
            tls_certificates:
            - certificate_chain: { filename: a.pem }
              private_key: { inline_string: KEY }",
            vec![Alpn::Http2, Alpn::Http1],
            Some(TlsVersion::V1_3),
        ),
    ] {
        let loaded = load(&file(ROUTER, beside)).unwrap();
        let tls = loaded.plan.listeners[0].tls.clone().unwrap();
        assert_eq!((tls.alpn, tls.suites.version_min), (alpn, min));
        let names = if min.is_some() { 2 + 3 } else { 0 };
        assert_eq!(tls.suites.names.len(), names);
        let ServerIdentity::Given(identity) = tls.identity else {
            panic!("{:?}", tls.identity);
        };
        assert_eq!(identity.certificates, PemSource::File("a.pem".into()));
        assert_eq!(identity.key, PemSource::Text("KEY".to_owned()));
    }
}

/// Text of a correct file, its replacement, and the message and line of the error.
const MISTAKES: &[(&str, &str, &str, u32)] = &[
    ("admin:", "admin:\n  bad: 1", "unknown admin key `bad`", 2),
    (
        "  listeners:",
        "  listener: []\n  listeners:",
        "unknown static resources key `listener`",
        6,
    ),
    (
        "          stat_prefix",
        "          retracing: {}\n          stat_prefix",
        "unknown connection manager key `retracing`",
        16,
    ),
    (
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "envoy.extensions.filters.http.router.v3.Router",
        "Router` is not accepted here",
        13,
    ),
    ("8080", "80800", "`80800` is out of range", 8),
    (
        "127.0.0.1, port_value: 8080",
        "localhost, port_value: 1",
        "`localhost` is not an address",
        8,
    ),
    ("AUTO", "HTTP4", "unknown codec type `HTTP4`", 15),
    ("AUTO", "HTTP3", "HTTP/3 needs `udp_listener_config`", 11),
    (
        "envoy.filters.http.router",
        "lua",
        "unknown HTTP filter `lua`",
        19,
    ),
    (
        "          - name: envoy.filters.http.router",
        "          - name: test-server\n            config: { body: 1 }",
        "unknown filter key `body`",
        20,
    ),
    (
        "          - name: envoy.filters.http.router",
        "          - name: test-server\n            config: { response_body_size: 9999999 }",
        "at most 4194304",
        20,
    ),
    (
        "envoy.filters.http.router",
        "test-server",
        "there is no router",
        18,
    ),
];

#[test]
fn other_keys_and_values_are_errors_with_their_place() {
    let good = file(ROUTER, "");
    assert!(load(&good).is_ok());
    for (there, instead, expected, line) in MISTAKES {
        let error = load(&good.replacen(there, instead, 1)).unwrap_err();
        assert!(error.contains(expected), "{expected}:\n{error}");
        let place = format!("server.yaml:{line}:");
        assert!(error.contains(&place), "{place}\n{error}");
    }
}

#[test]
fn filters_behind_the_test_server_have_no_effect() {
    let loaded = load(&file(
        &format!("          - name: test-server\n          - name: dynamic-delay\n{ROUTER}"),
        "",
    ))
    .unwrap();
    let filters = loaded.plan.listeners[0].answer.filters;
    assert!(filters.test_server && !filters.dynamic_delay);
    let warned = loaded
        .warnings
        .iter()
        .any(|warning| warning.message.contains("`dynamic-delay` comes after"));
    assert!(warned);
}

// compat: nighthawk_test_server | filters by the type of their options; experimental_response_options; envoy.fault | works
#[test]
fn filters_of_older_files_and_of_other_names_are_read() {
    let loaded = load(&file(
        &format!(
            "          - name: envoy.fault
            typed_config:
              \"@type\": type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault
              delay: {{ header_delay: {{}}, percentage: {{ numerator: 100 }} }}
          - name: dynamic-delay
            typed_config: {{ experimental_response_options: {{ static_delay: 1.33s }} }}
          - name: nighthawk-server
            typed_config:
              \"@type\": type.googleapis.com/nighthawk.server.ResponseOptions
              response_body_size: 10
              v3_response_headers:
              - {{ header: {{ key: x-nh, value: a }}, append_action: APPEND_IF_EXISTS_OR_ADD }}
{ROUTER}"
        ),
        "",
    ))
    .unwrap();
    let answer = &loaded.plan.listeners[0].answer;
    assert!(answer.filters.test_server && answer.filters.dynamic_delay);
    assert_eq!(answer.options.body_bytes, Some(10));
    let delay = ResponseDelay::Static(Nanos::from_millis(1330));
    assert_eq!(answer.options.delay, Some(delay));
    let typed = "          - name: test-server\n            typed_config: { \"@type\": nighthawk.server.DynamicDelayConfiguration }";
    let typed = load(&file(&format!("{typed}\n{ROUTER}"), "")).unwrap();
    let filters = typed.plan.listeners[0].answer.filters;
    assert!(filters.dynamic_delay && !filters.test_server);
    for refused in [
        "          - name: envoy.fault\n            typed_config: { abort: { http_status: 503 } }",
        "          - name: envoy.fault\n            typed_config: { delay: { header_delay: {} } }",
        "          - name: other\n            typed_config: { \"@type\": a.b.Other }",
    ] {
        assert!(load(&file(&format!("{refused}\n{ROUTER}"), "")).is_err());
    }
}

// compat: nighthawk_test_server | routes in a chain without test-server | refused | each request would get 404
#[test]
fn routes_that_no_filter_answers_are_an_error() {
    let routed = |filters: &str| {
        let text = file(&format!("{filters}{ROUTER}"), "");
        let route = "routes: [{ match: { prefix: / }, direct_response: { status: 200 } }]";
        load(&text.replace("domains: [\"*\"]", &format!("domains: [\"*\"], {route}")))
    };
    let error = routed("").unwrap_err();
    assert!(
        error.contains("without the filter `test-server`"),
        "{error}"
    );
    assert!(routed("          - name: test-server\n").is_ok());
}

// compat: nighthawk_test_server | a key twice in one map | works
#[test]
fn the_last_of_repeated_keys_counts_as_in_a_proxy() {
    let text = file("          - name: test-server", "");
    let text = format!("{text}          http_filters:\n{ROUTER}\n");
    let loaded = load(&text).unwrap();
    assert!(!loaded.plan.listeners[0].answer.filters.test_server);
    let mut warnings = loaded.warnings.iter();
    assert!(warnings.any(|warning| warning.message.contains("`http_filters` occurs twice")));
}

#[test]
fn a_chain_serves_the_clients_that_its_match_names() {
    let text = file(
        ROUTER,
        "      filter_chain_match: { server_names: [Sni.com, \"*.sni.com\"] }
      transport_socket:
        name: tls
        typed_config:
          common_tls_context:
            tls_certificates:
            - certificate_chain: { filename: a.pem }
              private_key: { filename: b.pem }
    - filter_chain_match: { transport_protocol: raw_buffer }
      filters:
      - name: envoy.http_connection_manager
        config:
          http_filters:
          - name: envoy.router",
    );
    let loaded = load(&text).unwrap();
    let chains = &loaded.plan.listeners[0].chains;
    assert_eq!(chains.len(), 2);
    assert_eq!(chains[0].clients.server_names, ["sni.com", "*.sni.com"]);
    assert!(chains[0].tls.is_some());
    assert_eq!(chains[1].clients.with_tls, Some(false));
    let single = load(&file(ROUTER, "")).unwrap();
    assert!(single.plan.listeners[0].chains.is_empty());
}

#[test]
fn a_quic_listener_serves_http3() {
    let good = file(
        ROUTER,
        "      transport_socket:
        name: any.name
        typed_config:
          \"@type\": type.googleapis.com/envoy.extensions.transport_sockets.quic.v3.QuicDownstreamTransport
          downstream_tls_context:
            common_tls_context:
              tls_certificates:
              - certificate_chain: { filename: a.pem }
                private_key: { filename: b.pem }
layered_runtime: { layers: [] }",
    );
    let quic = good
        .replacen("AUTO", "HTTP3", 1)
        .replacen(
            "{ address: 127.0.0.1, port_value: 8080 }",
            "{ protocol: UDP, address: 127.0.0.1, port_value: 8080 }",
            1,
        )
        .replacen(
            "    filter_chains:",
            "    udp_listener_config: { quic_options: {} }\n    filter_chains:",
            1,
        );
    let loaded = load(&quic).unwrap();
    let listener = &loaded.plan.listeners[0];
    assert_eq!(listener.protocols, ServeProtocols::Http3);
    assert!(listener.tls.is_some());
    assert_eq!(loaded.warnings.iter().count(), 1, "layered_runtime");
}

#[test]
fn keys_of_envoy_without_effect_are_one_warning_each() {
    let good = file(ROUTER, "");
    let unused =
        "          internal_address_config: { unix_sockets: true }\n          tracing: {}\n";
    let with_unused = format!("{unused}          stat_prefix");
    let text = good
        .replacen("          stat_prefix", &with_unused, 1)
        .replacen("  listeners:", "  clusters: []\n  listeners:", 1)
        .replacen(
            "    filter_chains:",
            "    listener_filters: []\n    reuse_port: true\n    filter_chains:",
            1,
        );
    let loaded = load(&text).unwrap();
    let messages: Vec<_> = loaded
        .warnings
        .iter()
        .map(|warning| warning.message.clone())
        .collect();
    assert_eq!(messages.len(), 4, "{messages:?}");
    assert!(
        messages
            .iter()
            .all(|message| message.ends_with("has no effect on the test server"))
    );
}

/// Options of Envoy's proxy, 47 of 63 that were tried, were errors.
#[test]
fn options_of_a_proxy_are_warnings_and_what_would_change_responses_is_an_error() {
    let good = file(ROUTER, "");
    for key in [
        "common_http_protocol_options: { idle_timeout: 5s }",
        "http_protocol_options: { accept_http_10: true }",
        "http2_protocol_options: { max_concurrent_streams: 100 }",
        "request_timeout: 5s",
        "normalize_path: true",
        "xff_num_trusted_hops: 1",
    ] {
        let text = good.replacen(
            "          stat_prefix",
            &format!("          {key}\n          stat_prefix"),
            1,
        );
        let loaded = load(&text).unwrap();
        assert_eq!(loaded.warnings.iter().count(), 1, "{key}");
    }
    for key in [
        "via: somewhere",
        "local_reply_config: {}",
        "common_http_protocol_options: { max_requests_per_connection: 1 }",
    ] {
        let text = good.replacen(
            "          stat_prefix",
            &format!("          {key}\n          stat_prefix"),
            1,
        );
        assert!(load(&text).is_err(), "{key}");
    }
}

#[test]
fn the_type_of_a_transport_socket_decides_and_its_name_does_not() {
    let beside = "      transport_socket:
        name: transport_socket
        typed_config:
          \"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
          common_tls_context:
            validation_context: { trust_chain_verification: ACCEPT_UNTRUSTED }
            tls_certificates:
            - certificate_chain: { filename: a.pem }
              private_key: { filename: b.pem }";
    let loaded = load(&file(ROUTER, beside)).unwrap();
    assert!(loaded.plan.listeners[0].tls.is_some());
    let wrong = beside.replace("DownstreamTlsContext", "RawBuffer");
    assert!(
        load(&file(ROUTER, &wrong))
            .unwrap_err()
            .contains("is not accepted here")
    );
}

/// Parts that mistakes are made of.
const PARTS: [&str; 16] = [
    "",
    "\0",
    "\t",
    ":",
    ": ",
    "- ",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "'",
    "&a",
    "*a",
    "!x",
    "99999999999999999999",
];

proptest::proptest! {
    /// Mistakes of any kind are errors that name their place.
    #[test]
    fn for_all_mistakes_in_a_file_there_is_no_panic_and_each_error_has_a_place(
        changes in proptest::collection::vec(
            (proptest::prelude::any::<proptest::sample::Index>(), 0_usize..40, 0_usize..PARTS.len()),
            1..4,
        ),
    ) {
        let mut text = file(
            &format!("          - name: test-server\n            typed_config: {{ response_body_size: 10 }}\n{ROUTER}"),
            "      transport_socket: { name: tls, typed_config: { common_tls_context: {} } }",
        );
        for (at, length, part) in changes {
            let from = at.index(text.len() + 1);
            let to = (from + length).min(text.len());
            // Texts of the file are ASCII.
            text.replace_range(from..to, PARTS[part]);
        }
        if let Err(errors) = load(&text) {
            proptest::prop_assert!(errors.contains("--> server.yaml"), "{text}\n{errors}");
        }
    }
}
