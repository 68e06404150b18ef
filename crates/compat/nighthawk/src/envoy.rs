//! Messages of Envoy.
//!
//! * [`EnvoyMessage`]: a message on a command line, read as what it configures;
//! * [`load_test_server`]: the configuration of Nighthawk's test server.

mod common;
mod filters;
mod message;
mod requests;
mod stats_sink;
mod test_server;
mod tls;
mod upstream;
mod user_defined;

pub(crate) use common::snake_json;
pub use message::EnvoyMessage;
pub(crate) use requests::{BODY_BYTES_MAX, CONTENT_LENGTH, stated_length};
pub use stillwell_config::requests::{RequestSource, SourceBody, SourceRequest};
pub use test_server::{TestServer, admin, headers, load_test_server};
pub use tls::replaced_suites;
pub use upstream::upstream_tls;
pub use user_defined::{FakePlugin, OutputPlugin};
