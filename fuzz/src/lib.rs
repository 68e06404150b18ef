//! Processing of bytes of any origin: one function a target.
//!
//! Each one panics where something that must hold does not. None may take long or much
//! memory for any bytes; the runner of the targets sees to that.

// Its tests are where only its crate finds them.
#[rustfmt::skip]
#[path = "../../crates/receive/sink/src/events.rs"]
mod events;
#[path = "../../crates/receive/sink/src/json_array.rs"]
mod json_array;
#[path = "../../crates/receive/sink/src/json_classes.rs"]
mod json_classes;
mod broker;
mod descriptors;
mod document;
mod files;
mod h2;
mod h3;
mod http;
mod inputs;
#[expect(dead_code, reason = "sinks alone choose a coding")]
mod intake;
#[expect(dead_code, reason = "only generators use what is read")]
#[path = "../../crates/make/environment/src/kubeconfig.rs"]
mod kubeconfig;
#[path = "../../crates/receive/sink/src/lines.rs"]
#[expect(dead_code, reason = "sinks of streams use more")]
mod lines;
#[expect(dead_code, reason = "the server alone logs requests")]
mod load;
mod profile;
mod template;
mod wire;

/// The login by a program, which no text starts, for the kubeconfig's reader.
mod kubernetes {
    #[derive(Debug)]
    pub(crate) struct ClusterLogin;
}

/// The place of the request log, which reads nothing from peers, for the headers' reader.
mod request_log {
    #[derive(Debug)]
    pub(crate) struct LoggedRequest;
}

pub use broker::{broker_amqp, broker_kafka, broker_nats};
pub use descriptors::grpc_descriptors;
pub use document::document;
pub use files::{capture, config, lading_capture};
pub use h2::{capsules, grpc_messages, h2_client, h2_frames, h2_server, hpack};
pub use h3::{h3_client, h3_server, qpack};
pub use http::{http_request, http_response};
pub use inputs::{dstat, har, kubeconfig, scenario, tables};
pub use intake::{
    content_codings, intake_datadog, intake_hec, intake_logs, intake_loki, intake_otlp, intake_sqs,
    intake_stateful_logs,
};
pub use load::{expression, load_answer, response_options};
pub use profile::profile;
pub use template::{lading_template, template};
pub use wire::{nighthawk_text, nighthawk_wire};

/// A page of metrics has no more series than requested, every line of it is accounted for
/// at most once, and names are never empty.
pub fn scrape(bytes: &[u8]) {
    const SERIES_MAX: usize = 16;
    let page = stillwell_observer::parse_page(bytes, None, SERIES_MAX);
    assert!(page.series.len() <= SERIES_MAX);
    assert!(page.series.iter().all(|series| !series.name.is_empty()));
    let lines = bytes.split(|byte| *byte == b'\n').count() as u64;
    assert!(page.series.len() as u64 + page.malformed + page.surplus <= lines);
}
