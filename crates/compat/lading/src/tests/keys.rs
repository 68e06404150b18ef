//! Every key of lading's and SMP's files against the tables of the page.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use stillwell_text::{Diagnostics, NamedFiles, Source, code};

const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../docs/compatibility.md"
);

/// A key that is like no other, so the error lists the accepted keys.
const UNKNOWN: &str = "zzzzzzzzzzzz: 1";

/// Maps of a generator, below its kind; `?` is the unknown key.
const GENERATORS: &[&str] = &[
    "?",
    "tcp: {?}",
    "udp: {?}",
    "unix_stream: {?}",
    "unix_datagram: {?}",
    "http: {?}",
    "http: {method: {?}}",
    "http: {method: {post: {?}}}",
    "splunk_hec: {?}",
    "splunk_hec: {acknowledgements: {?}}",
    "grpc: {?}",
    "trace_agent: {?}",
    "trace_agent: {backoff_behavior: {?}}",
    "trace_agent: {backoff_behavior: {obey: {?}}}",
    "file_gen: {?}",
    "file_gen: {traditional: {?}}",
    "file_gen: {logrotate: {?}}",
    "file_gen: {logrotate_fs: {?}}",
    "file_gen: {logrotate_fs: {load_profile: {?}}}",
    "file_gen: {logrotate_fs: {load_profile: {linear: {?}}}}",
    "passthru_file: {?}",
    "file_tree: {?}",
    "tcp_rr: {?}",
    "process_tree: {?}",
    "process_tree: {throttle: {?}}",
    "process_tree: {throttle: {stable: {?}}}",
    "process_tree: {throttle: {linear: {?}}}",
    "process_tree: {executables: [{?}]}",
    "process_tree: {executables: [{executable: /a, args: {?}, envs: {?}}]}",
    "proc_fs: {?}",
    "container: {?}",
    "kubernetes: {?}",
    "kubernetes: {manifest: {?}}",
    "tcp: {throttle: {?}}",
    "tcp: {throttle: {stable: {?}}}",
    "tcp: {throttle: {linear: {?}}}",
    "tcp: {variant: {?}}",
    "tcp: {variant: {dogstatsd: {?}}}",
    "tcp: {variant: {dogstatsd: {value: {?}}}}",
    "tcp: {variant: {dogstatsd: {kind_weights: {?}}}}",
    "tcp: {variant: {dogstatsd: {metric_weights: {?}}}}",
    "tcp: {variant: {opentelemetry_logs: {?}}}",
    "tcp: {variant: {opentelemetry_logs: {contexts: {?}}}}",
    "tcp: {variant: {opentelemetry_metrics: {?}}}",
    "tcp: {variant: {opentelemetry_metrics: {contexts: {?}}}}",
    "tcp: {variant: {opentelemetry_metrics: {metric_weights: {summary: 1, ?}}}}",
    "tcp: {variant: {opentelemetry_traces: {?}}}",
    "tcp: {variant: {opentelemetry_traces: {services: [{?}]}}}",
    "tcp: {variant: {trace_agent: {?}}}",
    "tcp: {variant: {trace_agent: {v0.4: {?}}}}",
    "tcp: {variant: {splunk_hec: {?}}}",
    "tcp: {variant: {templated_json: {?}}}",
    "tcp: {variant: {static: {?}}}",
    "tcp: {variant: {static_chunks: {?}}}",
    "tcp: {variant: {static_timestamped: {?}}}",
];

/// Maps of a blackhole.
const BLACKHOLES: &[&str] = &[
    "?",
    "tcp: {?}",
    "unix_stream: {?}",
    "http: {?}",
    "http: {body_variant: {?}}",
    "http: {body_variant: {openmetrics: {?}}}",
    "http: {body_variant: {openmetrics: {histograms: {?}}}}",
    "http: {body_variant: {openmetrics: {labels: {?}}}}",
    "splunk_hec: {?}",
    "sqs: {?}",
    "datadog: {?}",
    "datadog: {v2: {?}}",
    "datadog_stateful_logs: {?}",
    "otlp: {?}",
    "tcp_rr: {?}",
];

/// Other maps of a `lading.yaml`.
const FILES: &[&str] = &[
    "?",
    "observer: {?}",
    "inspector: {?}",
    "inspector: {command: /a, output: {?}}",
    "target: {?}",
    "target_metrics: [{?}]",
    "target_metrics: [{prometheus: {?}}]",
    "target_metrics: [{expvar: {?}}]",
];

/// Maps of `telemetry`.
const TELEMETRY: &[&str] = &[
    "telemetry: {?}",
    "telemetry: {path: a, expiration: {?}}",
    "telemetry: {path: a, format: {?}}",
    "telemetry: {path: a, format: {parquet: {?}}}",
];

/// Maps of an `experiment.yaml`.
const EXPERIMENTS: &[&str] = &[
    "?",
    "target: {?}",
    "checks: [{?}]",
    "checks: [{name: a, bounds: {?}}]",
    "report_links: [{?}]",
    "config_only: {?}",
];

/// Returns the accepted keys of each kind of map that the errors about the unknown key list.
fn accepted() -> BTreeMap<String, BTreeSet<String>> {
    let source = |text: String| Source::new("a.yaml", text);
    let of_load = |text: String| crate::file::read(&source(text), false, NamedFiles::default()).1;
    let texts = |maps: &[&str], around: [&str; 2]| -> Vec<String> {
        let [before, after] = around;
        let whole = |map: &&str| format!("{before}{}{after}", map.replace('?', UNKNOWN));
        maps.iter().map(whole).collect()
    };
    let mut all = Vec::new();
    all.extend(
        texts(GENERATORS, ["generator: [{", "}]"])
            .into_iter()
            .map(of_load),
    );
    all.extend(
        texts(BLACKHOLES, ["blackhole: [{", "}]"])
            .into_iter()
            .map(of_load),
    );
    all.extend(texts(FILES, ["", ""]).into_iter().map(of_load));
    let telemetry = texts(TELEMETRY, ["", ""]).into_iter();
    all.extend(telemetry.map(|text| crate::file::read_telemetry(&source(text)).1));
    let experiments = texts(EXPERIMENTS, ["", ""]).into_iter();
    all.extend(experiments.map(|text| crate::experiment::read(&source(text)).1));
    let mut accepted: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for diagnostics in &all {
        let (map, keys) = listed(diagnostics);
        accepted.entry(map).or_default().extend(keys);
    }
    accepted
}

fn listed(diagnostics: &Diagnostics) -> (String, Vec<String>) {
    let is_listing = |text: &&String| text.starts_with("keys accepted here: ");
    let mut errors = diagnostics.iter();
    let error =
        errors.find(|error| error.code == code::UNKNOWN_KEY && error.message.contains("zzz"));
    let error = error.unwrap_or_else(|| panic!("no unknown key: {diagnostics}"));
    let map = error.message.strip_prefix("unknown ").unwrap();
    let map = map.split(" key `").next().unwrap().to_owned();
    let help = error.help.iter().find(is_listing).unwrap();
    let keys = help.strip_prefix("keys accepted here: ").unwrap();
    (map, keys.split(", ").map(str::to_owned).collect())
}

/// Keys in the rows of the table, by the map that they are in.
fn rows(page: &str) -> BTreeMap<String, BTreeSet<String>> {
    let (_, rest) = page.split_once("\n### lading, keys\n").unwrap_or_default();
    let rows = rest.split("\n###").next().unwrap_or_default().lines();
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in rows.filter_map(|row| row.strip_prefix("| `")?.split('`').next()) {
        let (map, keys) = row.split_once(": ").unwrap_or_default();
        let keys = keys.split(", ").map(str::to_owned);
        all.entry(map.to_owned()).or_default().extend(keys);
    }
    all
}

// compat: lading, keys | acknowledgements: ack_query_interval_seconds, ack_timeout_seconds | works
// compat: lading, keys | backoff behavior: ignore, obey | works
// compat: lading, keys | blackhole: datadog, datadog_stateful_logs, http, id, otlp, splunk_hec, sqs, tcp, tcp_rr, udp | works
// compat: lading, keys | blackhole: unix_datagram, unix_stream | works
// compat: lading, keys | body: aws_kinesis, nothing, openmetrics, raw_bytes, static | works
// compat: lading, keys | bounds: lower_bound, series, upper_bound | works
// compat: lading, keys | capture format: jsonl, multi, parquet | works
// compat: lading, keys | capture format's options: compression_level, flush_seconds | works
// compat: lading, keys | check: bounds, description, name | works
// compat: lading, keys | config_only: baseline, comparison | works
// compat: lading, keys | container generator: args, env, exposed_ports, labels, max_lifetime_seconds, network_disabled | works
// compat: lading, keys | container generator: number_of_containers, repository, tag | works
// compat: lading, keys | contexts: attributes_per_log, attributes_per_metric, attributes_per_resource, attributes_per_scope | works
// compat: lading, keys | contexts: logs_per_scope, metrics_per_scope, scopes_per_resource, total_contexts | works
// compat: lading, keys | datadog blackhole: record, v2 | works
// compat: lading, keys | datadog_stateful_logs blackhole: grpc_addr, response_delay_millis | works
// compat: lading, keys | dogstatsd payload: cardinality, container_ids, contexts, contexts_maximum, contexts_minimum | works
// compat: lading, keys | dogstatsd payload: contexts_range, external_data, kind_weights, length_prefix_framed, metric_names | works
// compat: lading, keys | dogstatsd payload: metric_weights, multivalue_count, multivalue_count_maximum, multivalue_count_minimum | works
// compat: lading, keys | dogstatsd payload: multivalue_count_range, multivalue_pack_probability, name_length, name_length_maximum | works
// compat: lading, keys | dogstatsd payload: name_length_minimum, name_length_range, sampling_probability, sampling_range | works
// compat: lading, keys | dogstatsd payload: service_check_names, tag_key_length, tag_key_length_maximum, tag_key_length_minimum | works
// compat: lading, keys | dogstatsd payload: tag_key_length_range, tag_length, tag_names, tag_value_length | works
// compat: lading, keys | dogstatsd payload: tag_value_length_maximum, tag_value_length_minimum, tag_value_length_range | works
// compat: lading, keys | dogstatsd payload: tag_values, tags_per_msg, tags_per_msg_maximum, tags_per_msg_minimum | works
// compat: lading, keys | dogstatsd payload: tags_per_msg_range, timestamp, unique_tag_ratio, value | works
// compat: lading, keys | dogstatsd payload: prefix_metric_names | differs | no effect: names are random
// compat: lading, keys | executable: args, envs, executable | works
// compat: lading, keys | experiment: checks, config_only, description, environment, erratic, optimization_goal, report_links | works
// compat: lading, keys | experiment: target | works
// compat: lading, keys | experiment: labels, profiling_environment, runner, teams | differs | no effect on this host
// compat: lading, keys | expiration: nanos, secs | works
// compat: lading, keys | expvar scrape: tags, uri, vars | works
// compat: lading, keys | families: buckets, count | works
// compat: lading, keys | file_gen generator: logrotate, logrotate_fs, traditional | works
// compat: lading, keys | file_tree generator: max_depth, max_files, max_nodes, max_sub_folders, name_len, open_per_second | works
// compat: lading, keys | file_tree generator: rename_per_second, root, seed | works
// compat: lading, keys | generator: container, file_gen, file_tree, grpc, http, id, kubernetes, passthru_file, proc_fs | works
// compat: lading, keys | generator: process_tree, splunk_hec, tcp, tcp_rr, trace_agent, udp, unix_datagram, unix_stream | works
// compat: lading, keys | grpc generator: block_cache_method, bytes_per_second, maximum_block_size | works
// compat: lading, keys | grpc generator: maximum_prebuild_cache_size_bytes, parallel_connections, seed, target_uri, throttle | works
// compat: lading, keys | grpc generator: variant | works
// compat: lading, keys | grpc generator: block_sizes | differs | the largest is `maximum_block_size`
// compat: lading, keys | http blackhole: binding_addr, body_variant, concurrent_requests_max, content_type, headers, raw_bytes | works
// compat: lading, keys | http blackhole: response_delay_millis, status | works
// compat: lading, keys | http generator: block_sizes | differs | the largest is `maximum_block_size`
// compat: lading, keys | http generator: bytes_per_second, headers, maximum_block_size, method, parallel_connections, seed | works
// compat: lading, keys | http generator: target_uri, throttle | works
// compat: lading, keys | inspector: arguments, command, environment_variables, output | works
// compat: lading, keys | kind_weights: event, metric, service_check | works
// compat: lading, keys | kubernetes generator: concurrent_instances, manifest, max_instance_lifetime_seconds | works
// compat: lading, keys | labels: consumers, methods, regions, route_count, services, status_classes | works
// compat: lading, keys | lading file: blackhole, generator, inspector, observer, sample_period_milliseconds, target_metrics | works
// compat: lading, keys | lading file: telemetry | works
// compat: lading, keys | lading file: experiment_duration | differs | no effect: the command line sets the length
// compat: lading, keys | lading file: target | differs | no effect: the command line names the program
// compat: lading, keys | lading file: worker_threads | differs | no effect
// compat: lading, keys | linear load_profile: initial, initial_bytes_per_second, rate | works
// compat: lading, keys | linear throttle: initial, initial_bytes_per_second, initial_capacity, maximum, maximum_bytes_per_second | works
// compat: lading, keys | linear throttle: maximum_capacity, rate_of_change | works
// compat: lading, keys | load_profile: constant, linear | works
// compat: lading, keys | logrotate file_gen: block_cache_method, bytes_per_second, concurrent_logs, max_depth, maximum_block_size | works
// compat: lading, keys | logrotate file_gen: maximum_bytes_per_log, maximum_prebuild_cache_size_bytes, root, seed, throttle | works
// compat: lading, keys | logrotate file_gen: total_rotations, variant | works
// compat: lading, keys | logrotate file_gen: block_sizes | differs | the largest is `maximum_block_size`
// compat: lading, keys | logrotate file_gen: flush_every | differs | no effect: each block is written at once
// compat: lading, keys | logrotate_fs file_gen: block_cache_method, bytes_per_second, concurrent_logs, load_profile, max_depth | works
// compat: lading, keys | logrotate_fs file_gen: maximum_block_size, maximum_bytes_per_log, maximum_prebuild_cache_size_bytes | works
// compat: lading, keys | logrotate_fs file_gen: mount_point, seed, total_rotations, variant | works
// compat: lading, keys | logrotate_fs file_gen: block_sizes | differs | the largest is `maximum_block_size`
// compat: lading, keys | manifest: deployment, namespace, node, pod, service | works
// compat: lading, keys | method: post | works
// compat: lading, keys | metric_weights: count, distribution, exp_histogram_cumulative, exp_histogram_delta, gauge, histogram | works
// compat: lading, keys | metric_weights: histogram_cumulative, histogram_delta, set, sum_cumulative, sum_delta, summary, timer | works
// compat: lading, keys | obey: max_retries | works
// compat: lading, keys | observer: enable_smaps | works
// compat: lading, keys | observer: enable_smaps_rollup | differs | no effect: PSS is always read
// compat: lading, keys | openmetrics body: counters, gauges, histograms, include_help, include_type, labels, metric_name_prefix | works
// compat: lading, keys | openmetrics body: summaries | works
// compat: lading, keys | opentelemetry_logs payload: body_size, contexts, severity_weights, trace_cardinality | works
// compat: lading, keys | opentelemetry_metrics payload: contexts, histogram_count_limits, metric_weights | works
// compat: lading, keys | opentelemetry_traces payload: error_rate, services | works
// compat: lading, keys | otlp blackhole: concurrent_requests_max, grpc_addr, http_addr, response_delay_millis | works
// compat: lading, keys | output: stderr, stdout | works
// compat: lading, keys | passthru_file generator: block_cache_method, bytes_per_second, maximum_block_size | works
// compat: lading, keys | passthru_file generator: maximum_prebuild_cache_size_bytes, path, seed, throttle, variant | works
// compat: lading, keys | passthru_file generator: block_sizes | differs | the largest is `maximum_block_size`
// compat: lading, keys | payload: apache_common, ascii, datadog_log, dogstatsd, fluent, json, opentelemetry_logs | works
// compat: lading, keys | payload: opentelemetry_metrics, opentelemetry_traces, splunk_hec, static, static_chunks | works
// compat: lading, keys | payload: static_timestamped, syslog5424, templated_json, trace_agent | works
// compat: lading, keys | post: block_cache_method, maximum_prebuild_cache_size_bytes, variant | works
// compat: lading, keys | proc_fs generator: copy_from_host, root, seed, total_processes | works
// compat: lading, keys | process_tree generator: executables, max_children, max_depth, max_tree_per_second, process_sleep_ns | works
// compat: lading, keys | process_tree generator: seed, throttle | works
// compat: lading, keys | prometheus scrape: metrics, tags, uri | works
// compat: lading, keys | report link: link, text | works
// compat: lading, keys | service: database, grpc, name, operations, resource_attributes, scope_name, scope_version, service_type | works
// compat: lading, keys | socket blackhole: binding_addr | works
// compat: lading, keys | splunk_hec blackhole: binding_addr, concurrent_requests_max | works
// compat: lading, keys | splunk_hec generator: acknowledgements, block_cache_method, bytes_per_second, format, maximum_block_size | works
// compat: lading, keys | splunk_hec generator: maximum_prebuild_cache_size_bytes, parallel_connections, seed, target_uri | works
// compat: lading, keys | splunk_hec generator: throttle, token | works
// compat: lading, keys | splunk_hec generator: block_sizes | differs | the largest is `maximum_block_size`
// compat: lading, keys | splunk_hec payload: encoding | works
// compat: lading, keys | sqs blackhole: binding_addr, concurrent_requests_max | works
// compat: lading, keys | stable throttle: blocks_per_second, bytes_per_second, maximum_capacity | works
// compat: lading, keys | stable throttle: timeout_micros, timeout_millis | differs | no effect: sends are spread evenly
// compat: lading, keys | static payload: static_path | works
// compat: lading, keys | static_chunks payload: static_path | works
// compat: lading, keys | static_timestamped payload: emit_placeholder, start_line_index, static_path, timestamp_format | works
// compat: lading, keys | target: arguments, environment_variables | differs | of files until 2022: no effect, with a warning
// compat: lading, keys | target: inherit_environment, output | differs | of files until 2022: no effect, with a warning
// compat: lading, keys | target: command, cpu_allotment, environment, memory_allotment, name | works
// compat: lading, keys | target: ddprof_replicas, internal_profiling_replicas, profiling_environment | differs | no effect on this host
// compat: lading, keys | target_metrics entry: expvar, prometheus | works
// compat: lading, keys | tcp generator: addr, block_cache_method, bytes_per_second, maximum_block_size | works
// compat: lading, keys | tcp generator: maximum_prebuild_cache_size_bytes, parallel_connections, seed, throttle, variant | works
// compat: lading, keys | tcp generator: block_sizes | differs | the largest is `maximum_block_size`
// compat: lading, keys | tcp_rr blackhole: addr, data_port, request_size, response_size | works
// compat: lading, keys | tcp_rr blackhole: backlog, control_port, no_delay, threads | differs | no effect
// compat: lading, keys | tcp_rr generator: addr, data_port, flows, request_size, response_size, threads | works
// compat: lading, keys | tcp_rr generator: control_port, no_delay | differs | no effect
// compat: lading, keys | telemetry: addr, expiration, format, global_labels, path, prometheus_addr | works
// compat: lading, keys | templated_json payload: template_path | works
// compat: lading, keys | throttle: all_out, linear, stable | works
// compat: lading, keys | trace_agent generator: backoff_behavior, block_cache_method, bytes_per_second, maximum_block_size | works
// compat: lading, keys | trace_agent generator: maximum_prebuild_cache_size_bytes, parallel_connections, seed, target_uri | works
// compat: lading, keys | trace_agent generator: throttle, variant | works
// compat: lading, keys | trace_agent generator: block_sizes | differs | the largest is `maximum_block_size`
// compat: lading, keys | trace_agent payload: contexts, encoding, error_rate, metric_key_length, metrics_per_span | works
// compat: lading, keys | trace_agent payload: operation_name_length, resource_name_length, service_name_length, span_type_length | works
// compat: lading, keys | trace_agent payload: spans_per_trace, tag_key_length, tag_value_length, tags_per_span, v0.4 | works
// compat: lading, keys | traditional file_gen: block_cache_method, bytes_per_second, duplicates, maximum_block_size | works
// compat: lading, keys | traditional file_gen: maximum_bytes_per_file, maximum_prebuild_cache_size_bytes, path_template, rotate | works
// compat: lading, keys | traditional file_gen: seed, throttle, variant | works
// compat: lading, keys | traditional file_gen: block_sizes | differs | the largest is `maximum_block_size`
// compat: lading, keys | traditional file_gen: flush_every | differs | no effect: each block is written at once
// compat: lading, keys | udp generator: addr, bind_addr, block_cache_method, bytes_per_second, maximum_block_size | works
// compat: lading, keys | udp generator: maximum_prebuild_cache_size_bytes, parallel_connections, seed, throttle, variant | works
// compat: lading, keys | udp generator: block_sizes | differs | the largest is `maximum_block_size`
// compat: lading, keys | unix blackhole: path | works
// compat: lading, keys | unix_datagram generator: block_cache_method, bytes_per_second, maximum_block_size | works
// compat: lading, keys | unix_datagram generator: maximum_prebuild_cache_size_bytes, parallel_connections, path, seed, throttle | works
// compat: lading, keys | unix_datagram generator: variant | works
// compat: lading, keys | unix_datagram generator: block_sizes | differs | the largest is `maximum_block_size`
// compat: lading, keys | unix_stream generator: block_cache_method, bytes_per_second, maximum_block_size | works
// compat: lading, keys | unix_stream generator: maximum_prebuild_cache_size_bytes, parallel_connections, path, seed, throttle | works
// compat: lading, keys | unix_stream generator: variant | works
// compat: lading, keys | unix_stream generator: block_sizes | differs | the largest is `maximum_block_size`
// compat: lading, keys | v2: binding_addr | works
// compat: lading, keys | value: float_probability, range | works
// compat: lading, keys | words: count, length, mode, values | works
#[test]
fn every_key_of_a_file_is_accepted_and_in_the_tables() {
    let page = std::fs::read_to_string(Path::new(PAGE)).unwrap();
    let (accepted, rows) = (accepted(), rows(&page));
    for (map, keys) in &accepted {
        let missing: Vec<&String> = keys.difference(&rows[map]).collect();
        assert!(missing.is_empty(), "{map}: {missing:?} are in no table");
    }
    assert_eq!(accepted, rows);
}
