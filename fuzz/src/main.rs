//! All fuzz targets in one program, which takes a fraction of the time to build that one for each of them takes.
//!
//! `FUZZ_TARGET` names the target that runs. Without it, the program prints the names, one per line.

#![no_main]

use std::io::Write as _;
use std::process::exit;
use std::sync::OnceLock;

/// Takes in the bytes of one input.
type Target = fn(&[u8]);

/// Names each function of the library that is a target once.
macro_rules! targets {
    ($($name:ident)*) => {
        [$((stringify!($name), stillwell_fuzz::$name as Target)),*]
    };
}

const TARGETS: &[(&str, Target)] = &targets! {
    http_request http_response hpack h2_frames h2_client h2_server grpc_messages capsules qpack h3_client h3_server grpc_descriptors
    load_answer response_options expression nighthawk_wire nighthawk_text
    broker_amqp broker_kafka broker_nats
    scrape config capture lading_capture lading_template template
    intake_hec intake_datadog intake_otlp intake_loki intake_logs intake_sqs
    intake_stateful_logs content_codings profile
    har kubeconfig tables dstat scenario document
};

static TARGET: OnceLock<Target> = OnceLock::new();

libfuzzer_sys::fuzz_target!(init: select_target(), |bytes: &[u8]| {
    if let Some(target) = TARGET.get() {
        target(bytes);
    }
});

/// Before the first input.
fn select_target() {
    let Some(wanted) = std::env::var_os("FUZZ_TARGET") else {
        let names: String = TARGETS.iter().flat_map(|(name, _)| [*name, "\n"]).collect();
        let written = std::io::stdout().write_all(names.as_bytes());
        exit(i32::from(written.is_err()));
    };
    let target = TARGETS.iter().find(|(name, _)| wanted == *name);
    let (_, target) = target.unwrap_or_else(|| panic!("no target is {}", wanted.display()));
    TARGET.get_or_init(|| *target);
}
