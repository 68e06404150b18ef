//! `requests`: HTTP requests of any kind.

use std::error::Error;
use std::path::Path;

use stillwell_plan::{LoadProtocol, RequestsPlan, TransportPlan};
use stillwell_text::{MapReader, Node, code};

use super::http::{self, EXCHANGE};
use super::{Door, concat, is_short};
use crate::element::{Element, Field, Shape, TEXT_MAP, optional, required};
use crate::files::{EntryKind, resolve};
use crate::requests::{
    Header, MixedRequest, RequestOrigin, RequestSpec, endpoint_of, read_requests_file,
};

const PROTOCOLS: [(&str, LoadProtocol); 3] = [
    ("http1", LoadProtocol::Http1),
    ("http2", LoadProtocol::Http2),
    ("http3", LoadProtocol::Http3),
];
const WEIGHT_MAX: u32 = 10_000;

const METHOD: Field = optional(
    "method",
    Shape::Text,
    "Method; GET by default, POST with a body.",
);
const HEADERS: Field = optional("headers", TEXT_MAP, "Headers besides Content-Length.");
const BODY: Field = optional(
    "body",
    Shape::Like("{\"name\": 1}"),
    "Body: text, `@FILE`, or `payload:FORMAT:SIZE`, such as `payload:json:1KiB`.",
);

const MIXED: Element = Element {
    name: "request of a mix",
    about: "One request of a mix.",
    fields: &[
        optional(
            "path",
            Shape::Like("/search?q=a"),
            "Path and query; those of `url` if left out.",
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
    one_of: &[],
};

const OWN_FIELDS: [Field; 8] = [
    required(
        "url",
        Shape::Like("http://127.0.0.1:8080/"),
        "URL of the requests.",
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
        "File of requests, one a line: `[METHOD] URL [BODY]`. Only the paths of its URLs count.",
    ),
    optional(
        "har",
        Shape::Text,
        "HTTP archive (HAR) with requests. Only the paths of its URLs count.",
    ),
    optional(
        "protocol",
        Shape::Words(&["http1", "http2", "http3"]),
        "Protocol of the connections; HTTP/1.1 by default.",
    ),
];

const FIELDS: [Field; OWN_FIELDS.len() + EXCHANGE.len()] = concat(&OWN_FIELDS, &EXCHANGE);

pub(super) const REQUESTS: Element = Element {
    name: "requests generator",
    about: "HTTP requests of any kind, sent in turn. A rate counts requests. At the rate `max`, each \
            connection sends the next request after a response.",
    fields: &FIELDS,
    one_of: &[],
};

pub(super) fn read(door: &Door<'_>, node: &Node) -> Option<TransportPlan> {
    let reader = door.reader;
    let map = match is_short(node) {
        true => None,
        false => Some(reader.map(node, &REQUESTS.keys())?),
    };
    let (url_node, common, origin, exchange) = match &map {
        None => (
            Some(node),
            Some(RequestSpec::default()),
            Some(RequestOrigin::Mix(vec![single()])),
            Some(Default::default()),
        ),
        Some(map) => (
            map.required("url"),
            read_common(door, map),
            read_origin(door, map),
            http::read_exchange(door, map, &PROTOCOLS),
        ),
    };
    let url = url_node.and_then(|node| door.any_url(node));
    let (url, common, origin, exchange) = (url?, common?, origin?, exchange?);
    let endpoint = endpoint_of(&url, &common, origin, door.files);
    let plan = endpoint.and_then(|endpoint| Ok(exchange.load(endpoint)?));
    match plan {
        Ok(load) => Some(TransportPlan::Requests(Box::new(RequestsPlan {
            url,
            load,
        }))),
        Err(error) => report(door, node, &error),
    }
}

fn report<T>(door: &Door<'_>, node: &Node, error: &dyn Error) -> Option<T> {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        message = format!("{message}: {cause}");
        source = cause.source();
    }
    let error = door.reader.error(code::BAD_VALUE, node.span, message);
    door.reader.report(error);
    None
}

/// The only request of a generator without a mix.
const fn single() -> MixedRequest {
    MixedRequest {
        weight: 1,
        path: None,
        method: None,
        headers: Vec::new(),
        body: None,
    }
}

fn read_common(door: &Door<'_>, map: &MapReader<'_, '_>) -> Option<RequestSpec> {
    let (method, headers, body) = read_parts(door, map)?;
    Some(RequestSpec {
        method,
        headers,
        body,
        ..RequestSpec::default()
    })
}

type RequestParts = (Option<String>, Vec<Header>, Option<String>);

fn read_parts(door: &Door<'_>, map: &MapReader<'_, '_>) -> Option<RequestParts> {
    let method = map.take("method").map(|node| door.filled(node));
    let headers = map.take("headers").map(|node| door.reader.headers(node));
    let headers = headers.unwrap_or_default().into_iter();
    let body = map.take("body").map(|node| read_body(door, node));
    Some((
        match method {
            Some(method) => Some(method?.to_ascii_uppercase()),
            None => None,
        },
        headers.map(|(name, value)| Header(name, value)).collect(),
        match body {
            Some(body) => Some(body?),
            None => None,
        },
    ))
}

/// A body as on a command line, with the path of a file made absolute.
fn read_body(door: &Door<'_>, node: &Node) -> Option<String> {
    let text = door.filled(node)?;
    Some(match text.strip_prefix('@') {
        Some(path) => format!("@{}", resolve(door.folder, path).display()),
        None => text.to_owned(),
    })
}

fn read_origin(door: &Door<'_>, map: &MapReader<'_, '_>) -> Option<RequestOrigin> {
    let reader = door.reader;
    let mut origins = Vec::new();
    if let Some(node) = map.take("mix") {
        let items = reader.list(node)?;
        if items.is_empty() {
            let error = reader.error(code::BAD_VALUE, node.span, "a mix without requests");
            reader.report(error.label("write at least one, such as `{path: /}`"));
        }
        let mix: Option<Vec<_>> = items.iter().map(|item| read_mixed(door, item)).collect();
        origins.push((node, RequestOrigin::Mix(mix?)));
    }
    for (key, origin) in [
        ("file", RequestOrigin::Lines as fn(String) -> RequestOrigin),
        ("har", RequestOrigin::Har),
    ] {
        let Some(node) = map.take(key) else { continue };
        let path = door.existing(node, EntryKind::File)?;
        let text = read_requests_file(door.files, Path::new(&path));
        let text = text
            .map_err(|error| report::<()>(door, node, &error))
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
    Some(origin.unwrap_or_else(|| RequestOrigin::Mix(vec![single()])))
}

fn read_mixed(door: &Door<'_>, node: &Node) -> Option<MixedRequest> {
    let reader = door.reader;
    let map = reader.map(node, &MIXED.keys())?;
    let path = map.take("path").map(|node| {
        let path = door.filled(node)?;
        if path.starts_with('/') {
            return Some(path.to_owned());
        }
        let message = format!("`{path}` is not a path");
        let error = reader.error(code::BAD_VALUE, node.span, message);
        reader.report(error.label(format!("write `/{path}`")));
        None
    });
    let weight = match map.take("weight") {
        Some(node) => reader.whole(node, 1, WEIGHT_MAX),
        None => Some(1),
    };
    let (method, headers, body) = read_parts(door, &map)?;
    Some(MixedRequest {
        weight: weight?,
        path: match path {
            Some(path) => Some(path?),
            None => None,
        },
        method,
        headers,
        body,
    })
}
