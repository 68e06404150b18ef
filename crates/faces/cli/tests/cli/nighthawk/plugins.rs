//! Nighthawk's plugins that look at answers.

use super::*;

const FAKE: &str = "nighthawk.fake_user_defined_output";

fn fake(config: &str) -> String {
    let of = "type.googleapis.com/nighthawk.FakeUserDefinedOutputConfig";
    format!(
        "--user-defined-plugin-config '{{name:\"{FAKE}\",typed_config:{{\"@type\":\"{of}\"{config}}}}}'"
    )
}

const LOG: &str = "--user-defined-plugin-config \
                   '{name:\"nighthawk.log_response_headers_plugin\",typed_config:{\"@type\":\
                   \"type.googleapis.com/nighthawk.LogResponseHeadersConfig\",\
                   logging_mode:\"LM_SKIP_200_LEVEL_RESPONSES\"}}'";

/// The outputs of plugins in one result.
fn outputs<'r>(result: &'r Found, name: &str) -> &'r [Value] {
    let outputs = result.result(name)["user_defined_outputs"].as_array();
    outputs.unwrap()
}

const FEW: &str = "--rps 100 --duration 100";

// compat: nighthawk_client | --user-defined-plugin-config | differs | the two plugins of Nighthawk; others are refused
#[test]
fn every_result_has_the_output_of_every_plugin() {
    let origin = Origin::start();
    let until = "--concurrency 2 --termination-predicate benchmark.http_2xx:24";
    let result = measure(&format!(
        "{FEW} {until} {} {LOG} {}",
        fake(""),
        origin.url()
    ));
    let mut of_workers = 0;
    for name in ["worker_0", "worker_1", "global"] {
        let [counted, logged] = outputs(&result, name) else {
            panic!("{:?}", outputs(&result, name));
        };
        assert_eq!(
            logged["plugin_name"],
            "nighthawk.log_response_headers_plugin"
        );
        assert_eq!(counted["plugin_name"], FAKE);
        let output = &counted["typed_output"];
        assert_eq!(output["worker_name"], name);
        let called = output["headers_called"].as_u64().unwrap();
        assert_eq!(output["data_called"].as_u64(), Some(called));
        if name == "global" {
            assert_eq!(called, of_workers);
            assert_eq!(called, result.counter("benchmark.http_2xx"));
        } else {
            assert!(called >= 25, "{name}: {called}");
            of_workers += called;
        }
    }
}

// compat: counters of nighthawk_client | benchmark.user_defined_plugin_handle_headers_failure | works
// compat: counters of nighthawk_client | benchmark.user_defined_plugin_handle_data_failure | works
#[test]
fn failures_of_a_plugin_are_counted_and_end_a_load() {
    let origin = Origin::start();
    for (config, part) in [
        (",fail_headers:true,header_failure_countdown:9", "headers"),
        (",fail_data:true,data_failure_countdown:9", "data"),
    ] {
        let counter = format!("benchmark.user_defined_plugin_handle_{part}_failure");
        let until = format!("--termination-predicate {counter}:10");
        let result = measure(&format!("{FEW} {until} {} {}", fake(config), origin.url()));
        let output = &outputs(&result, "global")[0]["typed_output"];
        let called = output[format!("{part}_called")].as_u64().unwrap();
        assert!(called >= 20, "{called}");
        assert_eq!(result.counter(&counter), called - 9);
    }
}

#[test]
fn an_output_that_fails_has_a_message_in_its_place() {
    let origin = Origin::start();
    let until = "--concurrency 2 --termination-predicate benchmark.http_2xx:4";
    let config = fake(",fail_per_worker_output:true");
    let result = measure(&format!("{FEW} {until} {config} {}", origin.url()));
    for (name, expected) in [
        ("worker_0", "on getting PerWorkerOutput"),
        ("worker_1", "on getting PerWorkerOutput"),
        (
            "global",
            "Cannot aggregate if any per_worker_outputs failed",
        ),
    ] {
        let message = outputs(&result, name)[0]["error_message"].as_str().unwrap();
        assert!(message.contains(expected), "{name}: {message}");
    }
}
