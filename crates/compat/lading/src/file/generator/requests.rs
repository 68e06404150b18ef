//! lading's generators that send requests.

use stillwell_plan::generator::HecAcknowledgements;
use stillwell_plan::{GeneratorPlan, PayloadFormat, PayloadPlan, TransportPlan};
use stillwell_units::{ByteSize, Nanos};

use super::super::payload::{self, read_encoding, read_trace_agent};
use super::{keys_with, read_common, read_url};
use stillwell_text::{Keys, MapReader, Node, Reader, Value, code};

/// The generator of `kind` that `node` describes.
pub(super) fn read(reader: &Reader, kind: &str, node: &Node) -> Option<GeneratorPlan> {
    match kind {
        "http" => read_http(reader, node),
        "splunk_hec" => read_splunk_hec(reader, node),
        "grpc" => read_grpc(reader, node),
        _ => read_trace(reader, node),
    }
}

fn read_http(reader: &Reader, node: &Node) -> Option<GeneratorPlan> {
    let keys = keys_with("http generator", &["target_uri", "headers", "method"], &[]);
    let map = reader.map(node, &keys)?;
    let url = target(reader, &map);
    let headers = map
        .take("headers")
        .map(|node| reader.request_headers(node))
        .unwrap_or_default();
    let maximum = payload::read_maximum(reader, &map, ByteSize::mib(1), None);
    let payload = map
        .required("method")
        .and_then(|node| read_method(reader, node, maximum));
    let transport = url.map(|url| TransportPlan::Http {
        url,
        headers,
        exchange: Box::default(),
    });
    read_common(reader, &map, transport, payload)
}

fn read_method(reader: &Reader, node: &Node, maximum: Option<ByteSize>) -> Option<PayloadPlan> {
    let map = reader.map(node, &Keys::new("method", &["post"]))?;
    let (_, post) = map.one_of(&["post"])?;
    let content = reader.map(post, &Keys::new("post", payload::KEYS))?;
    payload::read(reader, &content, maximum)
}

fn read_splunk_hec(reader: &Reader, node: &Node) -> Option<GeneratorPlan> {
    let generator_keys = ["target_uri", "format", "token", "acknowledgements"];
    let keys = keys_with("splunk_hec generator", &generator_keys, payload::CACHE_KEYS);
    let map = reader.map(node, &keys)?;
    let url = target(reader, &map);
    remark_other_path(reader, &map, url.as_deref(), "the path of its `format`");
    let encoding = map
        .required("format")
        .and_then(|node| read_encoding(reader, node));
    let token = map
        .required("token")
        .and_then(|node| read_token(reader, node));
    let acknowledgements = map.read("acknowledgements", |node| {
        read_acknowledgements(reader, node)
    })?;
    let maximum = payload::read_maximum(reader, &map, ByteSize::mib(1), None);
    let format = encoding.map(|encoding| PayloadFormat::SplunkHec { encoding });
    let payload = payload::read_as(reader, &map, format, maximum);
    let transport = url.zip(token).map(|(url, token)| TransportPlan::SplunkHec {
        url,
        token,
        acknowledgements,
    });
    read_common(reader, &map, transport, payload)
}

/// Reads a value that is valid in a header.
fn read_token(reader: &Reader, node: &Node) -> Option<String> {
    let text = reader.text(node)?;
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        let message = "a token is printable ASCII without blanks";
        reader.report(reader.error(code::BAD_VALUE, node.span, message));
        return None;
    }
    Some(text.to_owned())
}

fn read_acknowledgements(reader: &Reader, node: &Node) -> Option<HecAcknowledgements> {
    let accepted = ["ack_query_interval_seconds", "ack_timeout_seconds"];
    let map = reader.map(node, &Keys::new("acknowledgements", &accepted))?;
    let seconds = |key| {
        let node = map.required(key)?;
        reader.whole(node, 1, 86_400_u64).map(Nanos::from_secs)
    };
    let (every, timeout) = (
        seconds("ack_query_interval_seconds"),
        seconds("ack_timeout_seconds"),
    );
    Some(HecAcknowledgements {
        every: every?,
        timeout: timeout?,
    })
}

fn read_grpc(reader: &Reader, node: &Node) -> Option<GeneratorPlan> {
    let keys = keys_with("grpc generator", &["target_uri"], payload::KEYS);
    let map = reader.map(node, &keys)?;
    let url = target(reader, &map);
    if let Some(url) = &url
        && path_of(url).trim_matches('/').split('/').count() != 2
        && let Some(span) = map.key_span("target_uri")
    {
        let message =
            "the path of `target_uri` is not `/package.Service/Method`, so calls reach no method";
        let warning = reader.warning(code::MEANING, span, message);
        reader.report(warning.label("it names no method"));
    }
    let maximum = payload::read_maximum(reader, &map, ByteSize::mib(1), None);
    let payload = payload::read(reader, &map, maximum);
    let transport = url.map(|url| TransportPlan::Grpc { url });
    let plan = read_common(reader, &map, transport, payload)?;
    let connections = plan.concurrency.connections();
    if connections > 1
        && let Some(span) = map.key_span("parallel_connections")
    {
        let message = format!("{connections} calls are in flight at once");
        let note = reader.note(code::MEANING, span, message);
        reader.report(
            note.help("lading has one call in flight, with any value of `parallel_connections`"),
        );
    }
    Some(plan)
}

fn read_trace(reader: &Reader, node: &Node) -> Option<GeneratorPlan> {
    let generator_keys = ["target_uri", "backoff_behavior"];
    let keys = keys_with("trace_agent generator", &generator_keys, payload::KEYS);
    let map = reader.map(node, &keys)?;
    let url = target(reader, &map);
    remark_other_path(reader, &map, url.as_deref(), "`/v0.4/traces`");
    let retries = map.read_or("backoff_behavior", 3, |node| read_backoff(reader, node));
    let format = map
        .required("variant")
        .and_then(|node| read_trace_agent(reader, node))
        .map(PayloadFormat::TraceAgent);
    let maximum = payload::read_maximum(reader, &map, ByteSize::mib(1), None);
    let payload = payload::read_as(reader, &map, format, maximum);
    let transport = url
        .zip(retries)
        .map(|(url, retries)| TransportPlan::TraceAgent { url, retries });
    read_common(reader, &map, transport, payload)
}

fn read_backoff(reader: &Reader, node: &Node) -> Option<u32> {
    let words = ["obey", "ignore"];
    if let Value::Scalar { text, .. } = &node.value {
        return match text.as_str() {
            "ignore" => Some(0),
            "obey" => Some(3),
            text => {
                reader.unknown_word(node.span, "backoff behavior", text, words.into_iter());
                None
            }
        };
    }
    let map = reader.map(node, &Keys::new("backoff behavior", &words))?;
    let (word, options) = map.one_of(&words)?;
    if word == "ignore" {
        return Some(0);
    }
    let map = reader.map(options, &Keys::new("obey", &["max_retries"]))?;
    let retries = map.required("max_retries")?;
    reader.whole(retries, 0, u32::from(u16::MAX))
}

fn target(reader: &Reader, map: &MapReader<'_, '_>) -> Option<String> {
    read_url(reader, map.required("target_uri")?)
}

/// lading replaces the path of the URL.
fn remark_other_path(
    reader: &Reader,
    map: &MapReader<'_, '_>,
    url: Option<&str>,
    path: &'static str,
) {
    if !matches!(url.map(path_of), None | Some("" | "/"))
        && let Some(span) = map.key_span("target_uri")
    {
        let message = format!("the path of `target_uri` has no effect: requests go to {path}");
        reader.report(reader.note(code::NO_EFFECT, span, message));
    }
}

/// Returns the part behind host and port of a valid URL.
fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').map_or("", |start| &rest[start..])
}
