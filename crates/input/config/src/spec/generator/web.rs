//! `requests`: HTTP requests of any kind.

use std::error::Error;
use std::path::Path;

use stillwell_plan::TransportPlan;
use stillwell_plan::generator::{ExchangePlan, RequestsPlan};
use stillwell_plan::load::{LoadProtocol, Spacing};
use stillwell_text::{MapReader, Node, Value, check_any_url, code};
use stillwell_units::explain;

use super::http::{self, EXCHANGE};
use super::{ReadContext, is_short};
use crate::MethodName;
use crate::element::{Element, Field, Shape, TEXT_MAP, concat, optional, required};
use crate::files::{EntryKind, resolve};
use crate::requests::{
    GrpcSpec, Header, MessageRate, MixedRequest, RequestOrigin, RequestSpec, Streaming,
    endpoint_of, endpoint_of_calls, read_requests_file, suggested_path,
};

const PROTOCOLS: [(&str, LoadProtocol); 3] = [
    ("http1", LoadProtocol::Http1),
    ("http2", LoadProtocol::Http2),
    ("http3", LoadProtocol::Http3),
];
const WEIGHT_MAX: u32 = 10_000;
const BURST_MAX: u32 = 100_000;

const METHOD: Field = optional(
    "method",
    Shape::Text,
    "Method; GET by default, POST with a body.",
);
const HEADERS: Field = optional(
    "headers",
    TEXT_MAP,
    "Headers besides Content-Length; `Host` replaces the host of the URL.",
);
const BODY: Field = optional(
    "body",
    Shape::Like("{\"name\": 1}"),
    "Body: text, `@FILE`, or `payload:FORMAT:SIZE`, such as `payload:json:1KiB`.",
);

const MIXED: Element = Element::new(
    "mix entry",
    "One request of a mix.",
    &[
        optional(
            "path",
            Shape::Like("/search?q=a"),
            "Path and query; those of `url` by default.",
        ),
        METHOD,
        HEADERS,
        BODY,
        optional(
            "weight",
            Shape::Whole,
            "Share of the requests, relative to the other weights; 1 by default.",
        ),
    ],
);

const CALL: Element = Element::new(
    "grpc call",
    "A call of one method.",
    &[
        required(
            "method",
            Shape::Like("helloworld.Greeter/SayHello"),
            "The method: PACKAGE.SERVICE/METHOD.",
        ),
        optional(
            "descriptors",
            Shape::Text,
            "Descriptor set that describes the method, from `protoc --include_imports -o FILE`; by default \
             the server describes it by reflection when a run starts.",
        ),
        optional(
            "json",
            Shape::Text,
            "The message as JSON, or `@FILE`. With several JSON values, calls use them in turn; with \
             client streaming, each call sends all of them.",
        ),
        optional(
            "streaming",
            Shape::Words(&["none", "client", "server", "both"]),
            "Sides that stream, without `descriptors`; the message is `body`, in binary.",
        ),
        optional(
            "deadline",
            Shape::Like("500ms"),
            "Time limit of a call, which the server receives as well.",
        ),
        optional(
            "messages",
            Shape::Whole,
            "Number of messages in each call with client streaming; by default, each call sends all messages once.",
        ),
        optional(
            "message_rate",
            Shape::Like("10/s"),
            "Rate of the messages in each call; as fast as the server accepts by default.",
        ),
    ],
);

const STREAMING: [(&str, Streaming); 4] = [
    ("none", Streaming::None),
    ("client", Streaming::Client),
    ("server", Streaming::Server),
    ("both", Streaming::Both),
];

const SPECIFIC_FIELDS: [Field; 11] = [
    optional(
        "url",
        Shape::Like("http://127.0.0.1:8080/"),
        "URL of the requests; that of the target by default.",
    ),
    METHOD,
    HEADERS,
    BODY,
    optional(
        "mix",
        Shape::List(&Shape::Element(&MIXED)),
        "Several requests, which are sent in turn by their weights.",
    ),
    optional(
        "file",
        Shape::Text,
        "File of requests, one per line: `[METHOD] URL [BODY]`. Only the paths of its URLs are used.",
    ),
    optional(
        "har",
        Shape::Text,
        "HTTP archive (HAR) with requests. Only the paths of its URLs are used.",
    ),
    optional(
        "protocol",
        Shape::Words(&["http1", "http2", "http3"]),
        "Protocol of the connections; HTTP/1.1 by default.",
    ),
    optional(
        "grpc",
        Shape::Element(&CALL),
        "Makes each request a call by gRPC, over HTTP/2.",
    ),
    optional(
        "poisson",
        Shape::Boolean,
        "`true`: random gaps between requests, as independent users would send them.",
    ),
    optional(
        "burst_size",
        Shape::Whole,
        "Requests that are sent at once; gaps between bursts are longer at the same rate.",
    ),
];

const FIELDS: [Field; SPECIFIC_FIELDS.len() + EXCHANGE.len()] = concat(&SPECIFIC_FIELDS, &EXCHANGE);

pub(super) const REQUESTS: Element = Element::new(
    "requests generator",
    "HTTP requests of any kind, sent in turn. A rate counts requests. At the rate `max`, each \
     connection sends the next request after a response.",
    &FIELDS,
);

pub(super) fn read(context: &ReadContext<'_>, node: &Node) -> Option<TransportPlan> {
    let reader = context.reader;
    let map = match is_short(node) {
        true => None,
        false => Some(reader.map(node, &REQUESTS.keys())?),
    };
    let spacing = map
        .as_ref()
        .map_or(Some(Spacing::Even), |map| read_spacing(context, map));
    let call = map.as_ref().and_then(|map| Some((map, map.take("grpc")?)));
    let default_protocol = match call {
        Some(_) => LoadProtocol::Http2,
        None => LoadProtocol::Http1,
    };
    let (url, common, origin, exchange) = match &map {
        None => (
            context.any_url(node),
            Some(RequestSpec::default()),
            Some(RequestOrigin::Mix(vec![MixedRequest::usual()])),
            Some(Default::default()),
        ),
        Some(map) => (
            read_url(context, map),
            read_common(context, map),
            read_origin(context, map),
            http::read_exchange(context, map, &PROTOCOLS, default_protocol),
        ),
    };
    let call = match call {
        Some((map, call)) => {
            check_beside_call(context, map, exchange.as_ref())?;
            Some(read_call(context, call)?)
        }
        None => None,
    };
    let (url, common, origin, mut exchange) = (url?, common?, origin?, exchange?);
    let endpoint = match &call {
        None => endpoint_of(&url, &common, origin, context.files),
        Some((method, grpc)) => {
            // `http1` is accepted beside calls, as on the command line.
            exchange.protocol = LoadProtocol::Http2;
            endpoint_of_calls(&url, method, grpc, &common, context.files)
        }
    };
    let plan =
        endpoint.and_then(|endpoint| Ok(RequestsPlan::try_new(url, endpoint, exchange.client())?));
    match plan {
        Ok(plan) => {
            let plan = match &map {
                Some(map) if map.key_span("url").is_none() => plan.to_target(),
                _ => plan,
            };
            Some(TransportPlan::Requests(Box::new(plan.spaced(spacing?))))
        }
        Err(error) => report(context, node, &error),
    }
}

/// Reports a key of `map` that calls exclude; `None` if there is one.
fn check_beside_call(
    context: &ReadContext<'_>,
    map: &MapReader<'_, '_>,
    exchange: Option<&ExchangePlan>,
) -> Option<()> {
    let reader = context.reader;
    for key in ["mix", "file", "har", "method"] {
        let Some(span) = map.key_span(key) else {
            continue;
        };
        let message = format!("`grpc` and `{key}` exclude each other");
        let error = reader.error(code::ONE_OF_KEYS, span, message);
        reader.report(error.label("leave out one of them"));
        return None;
    }
    if exchange.is_some_and(|exchange| exchange.protocol == LoadProtocol::Http3)
        && let Some(span) = map.key_span("protocol")
    {
        let message = "`grpc` does not support HTTP/3";
        let error = reader.error(code::BAD_VALUE, span, message);
        reader.report(error.label("write `protocol: http2`, or leave it out"));
        return None;
    }
    Some(())
}

/// A method and its call.
fn read_call(context: &ReadContext<'_>, node: &Node) -> Option<(MethodName, GrpcSpec)> {
    let reader = context.reader;
    let map = reader.map(node, &CALL.keys())?;
    let method = map.required("method").and_then(|node| {
        let method = reader.text(node)?.parse::<MethodName>();
        method.map_or_else(|error| report(context, node, &error), Some)
    });
    let streaming = map.read("streaming", |node| reader.word(node, "value", &STREAMING));
    let deadline = map.read("deadline", |node| reader.parsed(node));
    let descriptors = map.read("descriptors", |node| {
        context.existing(node, EntryKind::File)
    });
    let json = map.read("json", |node| read_body(context, node));
    let messages = map.read("messages", |node| reader.whole(node, 1, u64::MAX));
    let message_every = map.read("message_rate", |node| {
        let rate = reader.text(node)?.parse::<MessageRate>();
        match rate {
            Ok(rate) => Some(rate.0),
            Err(message) => {
                reader.report(reader.error(code::BAD_VALUE, node.span, message));
                None
            }
        }
    });
    let grpc = GrpcSpec {
        json: json?,
        descriptors: descriptors?,
        streaming: streaming?,
        deadline: deadline?,
        messages: messages?,
        message_every: message_every?,
        ..GrpcSpec::default()
    };
    Some((method?, grpc))
}

/// Spacing of single requests on the rate.
fn read_spacing(context: &ReadContext<'_>, map: &MapReader<'_, '_>) -> Option<Spacing> {
    let reader = context.reader;
    let is_poisson = map.read_or("poisson", false, |node| reader.boolean(node))?;
    let Some(node) = map.take("burst_size") else {
        return Some(match is_poisson {
            true => Spacing::Poisson,
            false => Spacing::Even,
        });
    };
    if is_poisson {
        let message = "`poisson` and `burst_size` exclude each other";
        let error = reader.error(code::ONE_OF_KEYS, node.span, message);
        reader.report(error.label("leave out one of them"));
        return None;
    }
    let size = reader.whole(node, 1, BURST_MAX)?;
    Some(Spacing::Burst { size })
}

/// The URL of the requests: that of the target, or the generator's.
fn read_url(context: &ReadContext<'_>, map: &MapReader<'_, '_>) -> Option<String> {
    match context.target_url {
        // A mistake in it is reported where the target is read.
        Some(url) if map.key_span("url").is_none() => {
            check_any_url(url).is_ok().then(|| url.to_owned())
        }
        _ => map.required("url").and_then(|node| context.any_url(node)),
    }
}

fn report<T>(context: &ReadContext<'_>, node: &Node, error: &dyn Error) -> Option<T> {
    let message = explain(error);
    let error = context.reader.error(code::BAD_VALUE, node.span, message);
    context.reader.report(error);
    None
}

fn read_common(context: &ReadContext<'_>, map: &MapReader<'_, '_>) -> Option<RequestSpec> {
    let (method, headers, body) = read_parts(context, map)?;
    Some(RequestSpec {
        method,
        headers,
        body,
        ..RequestSpec::default()
    })
}

type RequestParts = (Option<String>, Vec<Header>, Option<String>);

fn read_parts(context: &ReadContext<'_>, map: &MapReader<'_, '_>) -> Option<RequestParts> {
    let method = map.read("method", |node| context.filled(node));
    let headers = map.take("headers");
    let headers = headers.map(|node| context.reader.request_headers(node));
    let headers = headers.unwrap_or_default().into_iter();
    let body = map.read("body", |node| read_body(context, node));
    Some((
        method?.map(str::to_ascii_uppercase),
        headers.map(|(name, value)| Header(name, value)).collect(),
        body?,
    ))
}

/// A body as on a command line, with the path of a file made absolute.
fn read_body(context: &ReadContext<'_>, node: &Node) -> Option<String> {
    if matches!(node.value, Value::List(_) | Value::Map(_)) {
        let message = format!("expected text, found {}", node.shape());
        let error = context.reader.error(code::WRONG_SHAPE, node.span, message);
        let label = "write JSON in quotes, such as `'{\"name\": 1}'`, or `@FILE`";
        context.reader.report(error.label(label));
        return None;
    }
    let text = context.filled(node)?;
    let Some(path) = text.strip_prefix('@') else {
        return Some(text.to_owned());
    };
    let path = resolve(context.folder, path);
    let path = context.existing_path(node, path, EntryKind::File)?;
    Some(format!("@{}", path.display()))
}

fn read_origin(context: &ReadContext<'_>, map: &MapReader<'_, '_>) -> Option<RequestOrigin> {
    let reader = context.reader;
    let mut origins = Vec::new();
    if let Some(node) = map.take("mix") {
        let items = reader.list(node)?;
        if items.is_empty() {
            let error = reader.error(code::BAD_VALUE, node.span, "a mix without requests");
            reader.report(error.label("write at least one, such as `{path: /}`"));
        }
        let mix: Option<Vec<_>> = items.iter().map(|item| read_mixed(context, item)).collect();
        origins.push((node, RequestOrigin::Mix(mix?)));
    }
    for (key, origin) in [
        ("file", RequestOrigin::Lines as fn(String) -> RequestOrigin),
        ("har", RequestOrigin::Har),
    ] {
        let Some(node) = map.take(key) else { continue };
        let path = context.existing(node, EntryKind::File)?;
        let text = read_requests_file(context.files, Path::new(&path));
        let text = text
            .map_err(|error| report::<()>(context, node, &error))
            .ok()?;
        origins.push((node, origin(text)));
    }
    if let [_, (second, _), ..] = origins.as_slice() {
        let message = "`mix`, `file` and `har` exclude each other";
        let error = reader.error(code::ONE_OF_KEYS, second.span, message);
        reader.report(error.label("leave out one of them"));
        return None;
    }
    let origin = origins.pop().map(|(_, origin)| origin);
    Some(origin.unwrap_or_else(|| RequestOrigin::Mix(vec![MixedRequest::usual()])))
}

fn read_mixed(context: &ReadContext<'_>, node: &Node) -> Option<MixedRequest> {
    let reader = context.reader;
    let map = reader.map(node, &MIXED.keys())?;
    let path = map.read("path", |node| {
        let path = context.filled(node)?;
        if path.starts_with('/') {
            return Some(path.to_owned());
        }
        let message = format!("`{path}` is not a path");
        let error = reader.error(code::BAD_VALUE, node.span, message);
        reader.report(error.label(format!("write `{}`", suggested_path(path))));
        None
    });
    let weight = map.read_or("weight", 1, |node| reader.whole(node, 1, WEIGHT_MAX));
    let (method, headers, body) = read_parts(context, &map)?;
    Some(MixedRequest {
        weight: weight?,
        path: path?,
        method,
        headers,
        body,
    })
}
