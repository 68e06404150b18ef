//! Every key of a test server's file against the tables of the page.

use std::collections::{BTreeMap, BTreeSet};

use super::{ROUTER, file, load};

const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../docs/compatibility.md"
);

/// A key that is like no other, so the error lists the accepted keys.
const UNKNOWN: &str = "zzzzzzzzzzzz: 1";

/// Places of a whole file for the unknown key, `?`.
const PLACES: &[(&str, &str)] = &[
    ("admin:\n", "?\nadmin:\n"),
    ("admin:\n", "admin:\n  ?\n"),
    ("static_resources:\n", "static_resources:\n  ?\n"),
    ("  - address:", "  - ?\n    address:"),
    ("port_value: 8080", "port_value: 8080, ?"),
    ("    - filters:", "    - ?\n      filters:"),
    ("codec_type: AUTO", "?\n          codec_type: AUTO"),
    (
        "codec_type: AUTO",
        "common_http_protocol_options: {?}\n          codec_type: AUTO",
    ),
];

/// Maps beside the filters of a chain.
const BESIDE: &[&str] = &[
    "filter_chain_match: {?}",
    "transport_socket: {name: tls, typed_config: {?}}",
    "transport_socket: {name: tls, typed_config: {common_tls_context: {?}}}",
    "transport_socket: {name: tls, typed_config: {common_tls_context: {tls_certificates: [{?}]}}}",
    "transport_socket: {name: tls, typed_config: {common_tls_context: {tls_params: {?}}}}",
    "transport_socket: {name: tls, typed_config: {common_tls_context: {tls_certificates: [], validation_context: {?}}}}",
    "transport_socket: {name: quic, typed_config: {\"@type\": a.QuicDownstreamTransport, ?}}",
];

/// Filters in front of the router.
const FILTERS: &[&str] = &[
    "{name: test-server, typed_config: {?}}",
    "{name: envoy.fault, typed_config: {?}}",
    "{name: envoy.fault, typed_config: {delay: {?}}}",
    "{name: envoy.router, typed_config: {?}}",
];

/// Returns the accepted keys of each kind of map that the errors about the unknown key list.
fn accepted() -> BTreeMap<String, BTreeSet<String>> {
    let whole = || file(ROUTER, "");
    let mut texts: Vec<String> = Vec::new();
    texts.extend(
        PLACES
            .iter()
            .map(|(place, with)| whole().replacen(place, with, 1)),
    );
    texts.extend(
        BESIDE
            .iter()
            .map(|map| file(ROUTER, &format!("      {map}"))),
    );
    texts.extend(
        FILTERS
            .iter()
            .map(|filter| file(&format!("          - {filter}\n{ROUTER}"), "")),
    );
    let mut accepted: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for text in texts {
        let error = load(&text.replace('?', UNKNOWN)).unwrap_err();
        let (map, keys) = listed(&error);
        accepted.entry(map).or_default().extend(keys);
    }
    accepted
}

fn listed(error: &str) -> (String, Vec<String>) {
    let (_, rest) = error
        .split_once("key `zzz")
        .unwrap_or_else(|| panic!("no unknown key: {error}"));
    let (_, keys) = rest.split_once("keys accepted here: ").unwrap();
    let keys = keys.lines().next().unwrap().split(", ");
    let map = error.split(" key `zzz").next().unwrap();
    let map = map.rsplit("unknown ").next().unwrap();
    (map.to_owned(), keys.map(str::to_owned).collect())
}

/// Keys in the rows of the table, by the map that they are in.
fn rows(page: &str) -> BTreeMap<String, BTreeSet<String>> {
    let (_, rest) = page
        .split_once("\n### nighthawk_test_server, keys\n")
        .unwrap_or_default();
    let rows = rest.split("\n###").next().unwrap_or_default().lines();
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in rows.filter_map(|row| row.strip_prefix("| `")?.split('`').next()) {
        let (map, keys) = row.split_once(": ").unwrap_or_default();
        let keys = keys.split(", ").map(str::to_owned);
        all.entry(map.to_owned()).or_default().extend(keys);
    }
    all
}

// compat: nighthawk_test_server, keys | HTTP options: headers_with_underscores_action, idle_timeout | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | HTTP options: max_headers_count, max_response_headers_kb | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | TLS context: @type, alpn_protocols, common_tls_context, require_client_certificate | works
// compat: nighthawk_test_server, keys | TLS context: tls_certificates, tls_params, validation_context | works
// compat: nighthawk_test_server, keys | TLS parameters: cipher_suites, tls_maximum_protocol_version, tls_minimum_protocol_version | works
// compat: nighthawk_test_server, keys | admin: access_log, access_log_path, profile_path | differs | no effect
// compat: nighthawk_test_server, keys | admin: address | works
// compat: nighthawk_test_server, keys | certificate: certificate_chain, private_key | works
// compat: nighthawk_test_server, keys | connection manager: @type, codec_type, common_http_protocol_options, http_filters | works
// compat: nighthawk_test_server, keys | connection manager: stat_prefix | works
// compat: nighthawk_test_server, keys | connection manager: access_log, access_log_options | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | connection manager: add_user_agent, delayed_close_timeout | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | connection manager: drain_timeout | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | connection manager: early_header_mutation_extensions | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | connection manager: forward_client_cert_details | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | connection manager: http2_protocol_options | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | connection manager: http3_protocol_options | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | connection manager: http_protocol_options | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | connection manager: internal_address_config | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | connection manager: max_request_headers_kb, merge_slashes | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | connection manager: normalize_path | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | connection manager: original_ip_detection_extensions | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | connection manager: path_normalization_options | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | connection manager: path_with_escaped_slashes_action | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | connection manager: preserve_external_request_id | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | connection manager: request_headers_timeout | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | connection manager: request_timeout | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | connection manager: scheme_header_transformation | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | connection manager: server_header_transformation | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | connection manager: set_current_client_cert_details | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | connection manager: skip_xff_append | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | connection manager: stream_error_on_invalid_http_message | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | connection manager: stream_idle_timeout | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | connection manager: strip_any_host_port | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | connection manager: strip_matching_host_port | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | connection manager: strip_trailing_host_dot, tracing | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | connection manager: use_remote_address | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | connection manager: xff_num_trusted_hops | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | connection manager: generate_request_id | differs | no effect
// compat: nighthawk_test_server, keys | connection manager: route_config | differs | no effect with test-server, refused without
// compat: nighthawk_test_server, keys | delay: header_delay, percentage | works
// compat: nighthawk_test_server, keys | fault filter: @type, delay | works
// compat: nighthawk_test_server, keys | fault filter: max_active_faults | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | filter: @type, concurrencyBasedLinearDelay, concurrency_based_linear_delay | works
// compat: nighthawk_test_server, keys | filter: echoRequestHeaders, echo_request_headers | works
// compat: nighthawk_test_server, keys | filter: emitPreviousRequestDeltaInResponseHeader | works
// compat: nighthawk_test_server, keys | filter: emit_previous_request_delta_in_response_header, experimentalResponseOptions | works
// compat: nighthawk_test_server, keys | filter: experimental_response_options, responseBodySize, responseHeaders, responseOptions | works
// compat: nighthawk_test_server, keys | filter: response_body_size, response_headers, response_options, staticDelay, static_delay | works
// compat: nighthawk_test_server, keys | filter: v3ResponseHeaders, v3_response_headers | works
// compat: nighthawk_test_server, keys | filter chain: filter_chain_match, filters, name, tls_context, transport_socket | works
// compat: nighthawk_test_server, keys | filter chain match: server_names, transport_protocol | works
// compat: nighthawk_test_server, keys | listener: access_log, connection_balance_config | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | listener: continue_on_listener_filters_timeout, drain_type | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | listener: enable_mptcp, enable_reuse_port, freebind | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | listener: ignore_global_conn_limit | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | listener: listener_filters_timeout | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | listener: max_connections_to_accept_per_socket_event | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | listener: metadata, per_connection_buffer_limit_bytes | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | listener: reuse_port, socket_options, stat_prefix | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | listener: tcp_backlog_size, tcp_fast_open_queue_length | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | listener: traffic_direction, transparent | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | listener: address, filter_chains, listener_filters, name, udp_listener_config | works
// compat: nighthawk_test_server, keys | router: @type | works
// compat: nighthawk_test_server, keys | router: dynamic_stats | differs | no effect
// compat: nighthawk_test_server, keys | socket address: address, port_value, protocol | works
// compat: nighthawk_test_server, keys | static resources: clusters, secrets | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | static resources: listeners | works
// compat: nighthawk_test_server, keys | test server: admin, static_resources | works
// compat: nighthawk_test_server, keys | test server: application_log_config, bootstrap_extensions | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | test server: cluster_manager, default_regex_engine | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | test server: default_socket_interface | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | test server: dns_resolution_config, enable_dispatcher_stats | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | test server: fatal_actions, flags_path, hds_config | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | test server: inline_headers, layered_runtime | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | test server: memory_allocator_manager, node | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | test server: overload_manager, perf_tracing_file_path | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | test server: stats_config, stats_flush_interval | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | test server: stats_flush_on_admin | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | test server: stats_server_version_override, tracing | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | test server: typed_dns_resolver_config | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | test server: use_tcp_for_dns_lookups, watchdog, watchdogs | differs | no effect, with a warning
// compat: nighthawk_test_server, keys | validation context: trust_chain_verification, trusted_ca | works
#[test]
fn every_key_of_a_test_server_is_accepted_and_in_the_tables() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    assert_eq!(accepted(), rows(&page));
}
