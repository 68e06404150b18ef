//! Messages of Envoy on a command line.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::Value as Json;
use stillwell_config::Diagnostics;
use stillwell_config::files::{Disk, Files};
use stillwell_config::requests::RequestSource;
use stillwell_plan::load::StatsSinkPlan;
use stillwell_plan::tls::ClientTlsPlan;
use stillwell_text::{Keys, Node, Reader, Severity, Source, code, parse};
use stillwell_units::Nanos;

use super::common::{
    check_type, named, only_one, read_duration, read_socket_address, required, snake_keys,
};
use super::user_defined::OutputPlugin;
use super::{filters, requests, stats_sink, upstream, user_defined};

/// Options that have no effect here, and are refused by name.
const HTTP3_UNUSED: [&str; 4] = [
    "override_stream_error_on_invalid_http_message",
    "allow_extended_connect",
    "allow_metadata",
    "disable_qpack",
];
const QUIC_UNUSED: [&str; 8] = [
    "initial_stream_window_size",
    "initial_connection_window_size",
    "num_timeouts_to_trigger_port_migration",
    "connection_keepalive",
    "connection_options",
    "client_connection_options",
    "idle_network_timeout",
    "max_packet_length",
];

/// A message of Envoy on a command line: JSON, whose keys need no quotes, or YAML in one line.
/// Fields may be named in camel case, and messages by their types of version 2 or 3.
#[derive(Debug)]
pub struct EnvoyMessage {
    source: Arc<Source>,
    root: Node,
}

impl EnvoyMessage {
    /// Reads `text`, which was given for `flag`.
    ///
    /// # Errors
    /// Why it is neither JSON nor YAML, with the place in `text`.
    pub fn parse(flag: &str, text: &str) -> Result<Self, Diagnostics> {
        let source = Source::new(flag, spaced(text));
        let (mut root, diagnostics) = parse(&source).map_err(|error| only_one(*error))?;
        let diagnostics: Diagnostics = diagnostics.into_iter().collect();
        if diagnostics
            .iter()
            .any(|diagnostic| diagnostic.severity == Severity::Error)
        {
            return Err(diagnostics);
        }
        snake_keys(&mut root);
        Ok(Self { source, root })
    }

    /// The message as JSON.
    #[must_use]
    pub fn json(&self) -> Json {
        filters::json(&self.root)
    }

    /// Reads the TLS configuration of an `UpstreamTlsContext`;
    /// [`upstream_tls`](super::upstream_tls) has its defaults.
    ///
    /// # Errors
    /// Every mistake in it, with its place.
    pub fn tls_context(&self) -> Result<ClientTlsPlan, Diagnostics> {
        self.read(upstream::read_context)
    }

    /// The same of a `TransportSocket`.
    ///
    /// # Errors
    /// Every mistake in it, with its place.
    pub fn transport_socket(&self) -> Result<ClientTlsPlan, Diagnostics> {
        self.read(upstream::read_transport_socket)
    }

    /// The local address that a `BindConfig` names.
    ///
    /// # Errors
    /// Every mistake in it, with its place.
    pub fn bind_address(&self) -> Result<SocketAddr, Diagnostics> {
        self.read(|reader, node| {
            let map = reader.map(node, &Keys::new("bind configuration", &["source_address"]))?;
            read_socket_address(reader, map.required("source_address")?, "TCP")
        })
    }

    /// Reads the maximum number of requests in flight on one connection of `Http3ProtocolOptions`.
    ///
    /// # Errors
    /// Every mistake in it, and every option that has no effect here, with its place.
    pub fn http3_streams_max(&self) -> Result<Option<u32>, Diagnostics> {
        self.read(|reader, node| {
            let keys = Keys::new("HTTP/3 options", &["@type", "quic_protocol_options"]);
            let map = reader.map(node, &keys.known(&HTTP3_UNUSED))?;
            let Some(quic) = map.take("quic_protocol_options") else {
                return Some(None);
            };
            let keys = Keys::new("QUIC options", &["max_concurrent_streams"]);
            let map = reader.map(quic, &keys.known(&QUIC_UNUSED))?;
            map.read("max_concurrent_streams", |node| {
                reader.whole(node, 1, u32::MAX)
            })
        })
    }

    /// Reads the length of the linear ramp of Nighthawk's rate limiter.
    ///
    /// # Errors
    /// Every mistake in it, with its place.
    pub fn ramp_time(&self) -> Result<Nanos, Diagnostics> {
        self.read(|reader, node| {
            let names = ["nighthawk.linear-ramping-rate-limiter-plugin"];
            let (_, config) = named(reader, node, "rate limiter plugin", (&names, &[]))?;
            let config = required(reader, node, config)?;
            let map = reader.map(config, &Keys::new("rate limiter", &["@type", "ramp_time"]))?;
            check_type(reader, &map, &["LinearRampingRateLimiterConfig"]);
            let node = map.required("ramp_time")?;
            let length = read_duration(reader, node)?;
            if length == Nanos::ZERO {
                let error = reader.error(code::BAD_VALUE, node.span, "the ramp has no length");
                reader.report(error.label("write a time such as 5.5s"));
                return None;
            }
            Some(length)
        })
    }

    /// The requests of Nighthawk's file-based or in-line request source. A file is read from `files`.
    ///
    /// # Errors
    /// Every mistake in it, or in the file that it names, with its place.
    pub fn request_source(&self, files: &dyn Files) -> Result<RequestSource, Diagnostics> {
        let mut of_file = None;
        let read = self.read(|reader, node| requests::read(reader, node, files, &mut of_file));
        of_file.map_or(read, Err)
    }

    /// Reads the requests of such a source, or of a list without a plugin.
    ///
    /// # Errors
    /// Every mistake in it, or in the file that it names, with its place.
    pub fn request_list(&self) -> Result<RequestSource, Diagnostics> {
        if self.root.entry("name").is_some() {
            return self.request_source(&Disk);
        }
        self.read(requests::read_alone)
    }

    /// Reads a `StatsSink` of statsd. A sink with a `tcp_cluster_name` is at `tcp_address`; `None`
    /// without that.
    ///
    /// # Errors
    /// Every mistake in it, with its place.
    pub fn stats_sink(
        &self,
        tcp_address: Option<&str>,
    ) -> Result<Option<StatsSinkPlan>, Diagnostics> {
        self.read(|reader, node| stats_sink::read(reader, node, tcp_address))
    }

    /// Reads one of Nighthawk's user-defined output plugins.
    ///
    /// # Errors
    /// Every mistake in it, with its place.
    pub fn output_plugin(&self) -> Result<OutputPlugin, Diagnostics> {
        self.read(user_defined::read)
    }

    fn read<T>(&self, read: impl FnOnce(&Reader, &Node) -> Option<T>) -> Result<T, Diagnostics> {
        let reader = Reader::new(Arc::clone(&self.source));
        let value = read(&reader, &self.root);
        let diagnostics = reader.finish();
        match value {
            Some(value) if !diagnostics.has_errors() => Ok(value),
            _ => Err(diagnostics),
        }
    }
}

/// `text` with a space behind the colon of every key in braces: JSON whose keys
/// have no quotes is YAML then.
fn spaced(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut open = Vec::new();
    let (mut quote, mut is_escaped) = (None, false);
    // Whether what comes is a key in braces, up to its colon.
    let mut is_key = false;
    let mut before = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        out.push(c);
        if let Some(mark) = quote {
            match c {
                _ if is_escaped => is_escaped = false,
                '\\' if mark == '"' => is_escaped = true,
                _ if c == mark => quote = None,
                _ => {}
            }
            continue;
        }
        let begins = matches!(before, None | Some('{' | '[' | ',' | ':'));
        match c {
            '"' | '\'' if begins => quote = Some(c),
            '{' | '[' => {
                open.push(c);
                is_key = c == '{';
            }
            '}' | ']' => {
                open.pop();
                is_key = false;
            }
            ',' => is_key = open.last() == Some(&'{'),
            ':' if is_key => {
                is_key = false;
                if chars.peek().is_some_and(|next| !next.is_whitespace()) {
                    out.push(' ');
                }
            }
            _ => {}
        }
        if !c.is_whitespace() {
            before = Some(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_without_quotes_and_spaces_are_understood() {
        for (text, out) in [
            (
                r#"{name:"a",typed_config:{"@type":"b.c/d",e:["-ALL:X",{f:1}]}}"#,
                r#"{name: "a",typed_config: {"@type": "b.c/d",e: ["-ALL:X",{f: 1}]}}"#,
            ),
            ("{a: b:c, d: [e:f]}", "{a: b:c, d: [e:f]}"),
            (r#"{"a\"}:":"b{c:d"}"#, r#"{"a\"}:": "b{c:d"}"#),
            ("{a:it's, b:1}", "{a: it's, b: 1}"),
            ("a: {b:c}", "a: {b: c}"),
        ] {
            assert_eq!(spaced(text), out);
        }
        let message = EnvoyMessage::parse("--x", r#"{camelCase:{"x-y":[1,2.5,true]}}"#).unwrap();
        let expected = serde_json::json!({ "camel_case": { "x-y": [1, 2.5, true] } });
        assert_eq!(message.json(), expected);
        let error = EnvoyMessage::parse("--x", "{a: [}").unwrap_err();
        assert!(error.to_string().contains("--x"), "{error}");
    }

    fn read(text: &str) -> EnvoyMessage {
        EnvoyMessage::parse("--flag", text).unwrap()
    }

    // compat: nighthawk_client | nighthawk.linear-ramping-rate-limiter-plugin: ramp_time | works
    #[test]
    fn local_addresses_and_ramps_are_read() {
        let bind = read(r#"{source_address:{address:"127.0.0.2",port_value:0}}"#);
        assert_eq!(bind.bind_address().unwrap().to_string(), "127.0.0.2:0");
        let name = "nighthawk.linear-ramping-rate-limiter-plugin";
        let of = "type.googleapis.com/nighthawk.rate_limiter.LinearRampingRateLimiterConfig";
        let limiter = |time: &str| {
            let config = format!(r#"{{"@type":"{of}",ramp_time:"{time}"}}"#);
            read(&format!(r#"{{name:"{name}",typed_config:{config}}}"#)).ramp_time()
        };
        assert_eq!(limiter("5.5s").unwrap(), Nanos::from_millis(5500));
        for time in ["0s", "soon", "5"] {
            assert!(limiter(time).is_err(), "{time}");
        }
        let object = |time: &str| {
            let config = format!(r#"{{"@type":"{of}",ramp_time:{time}}}"#);
            read(&format!(r#"{{name:"{name}",typed_config:{config}}}"#)).ramp_time()
        };
        for (time, nanos) in [
            ("{seconds:5,nanos:500000000}", 5_500_000_000),
            (r#"{seconds:"5"}"#, 5_000_000_000),
            ("{nanos:1}", 1),
        ] {
            assert_eq!(object(time).unwrap(), Nanos::new(nanos), "{time}");
        }
        for time in ["{}", "{seconds:-1}", "{nanos:1000000000}", "{second:1}"] {
            assert!(object(time).is_err(), "{time}");
        }
    }
}
