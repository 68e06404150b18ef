//! Options of `opentelemetry_traces`: services, and who calls whom.

use std::collections::HashMap;

use stillwell_plan::payload::{
    Between, OtlpTracesPlan, TraceAttribute, TraceCall, TraceOperation, TraceService, TraceValue,
    TraceWork,
};

use super::options::{set, share};
use stillwell_text::{Keys, MapReader, Node, Reader, Value, code};

/// Keys of `opentelemetry_traces`.
pub(super) const OPENTELEMETRY_TRACES_KEYS: &[&str] = &["services", "error_rate"];

/// Operations by service and identity.
type Places<'n> = HashMap<(&'n str, &'n str), (usize, usize)>;

/// Repeated calls at most.
const REPEAT_MAX: u32 = 10_000;

/// Dictionaries that attributes can draw from.
const DICTIONARIES: [(&str, &[&str]); 5] = [
    (
        "http_methods",
        &["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"],
    ),
    (
        "http_status_codes",
        &[
            "200", "201", "204", "301", "302", "400", "401", "403", "404", "405", "409", "422",
            "429", "500", "502", "503", "504",
        ],
    ),
    (
        "grpc_status_codes",
        &[
            "OK",
            "CANCELLED",
            "UNKNOWN",
            "INVALID_ARGUMENT",
            "DEADLINE_EXCEEDED",
            "NOT_FOUND",
            "ALREADY_EXISTS",
            "PERMISSION_DENIED",
            "RESOURCE_EXHAUSTED",
            "FAILED_PRECONDITION",
            "ABORTED",
            "OUT_OF_RANGE",
            "UNIMPLEMENTED",
            "INTERNAL",
            "UNAVAILABLE",
            "DATA_LOSS",
            "UNAUTHENTICATED",
        ],
    ),
    (
        "cloud_regions",
        &[
            "us-east-1",
            "us-west-2",
            "eu-west-1",
            "eu-central-1",
            "ap-southeast-1",
            "ap-northeast-1",
        ],
    ),
    (
        "environments",
        &["production", "staging", "development", "canary"],
    ),
];

/// Reads a topology; without services, a small one of our own.
pub(super) fn read(reader: &Reader, node: &Node) -> Option<OtlpTracesPlan> {
    let keys = Keys::new("opentelemetry_traces payload", OPENTELEMETRY_TRACES_KEYS);
    let map = reader.map(node, &keys)?;
    let mut error_rate = 0.01;
    let is_fine = set(&map, "error_rate", &mut error_rate, |node| {
        share(reader, node)
    });
    let Some(node) = map.take("services") else {
        let topology = OtlpTracesPlan::try_new(default_services(), error_rate);
        return topology.ok().filter(|_| is_fine);
    };
    let items = reader.list(node)?;
    let places = find_operations(items);
    let read = items.iter().map(|item| read_service(reader, item, &places));
    let services: Vec<Option<TraceService>> = read.collect();
    let services: Option<Vec<TraceService>> = services.into_iter().collect();
    match OtlpTracesPlan::try_new(services?, error_rate) {
        Ok(plan) => is_fine.then_some(plan),
        Err(problem) => {
            let error = reader.error(code::BAD_VALUE, node.span, problem.to_string());
            reader.report(error);
            None
        }
    }
}

/// Index of each operation, made before any is read: calls point forward too.
fn find_operations(items: &[Node]) -> Places<'_> {
    let mut places = Places::new();
    for (service, item) in items.iter().enumerate() {
        let operations = item.entry("operations").map(|entry| &entry.value);
        let Some(Value::List(operations)) = operations else {
            continue;
        };
        for (index, operation) in operations.iter().enumerate() {
            if let (Some(name), Some(id)) = (scalar(item, "name"), scalar(operation, "id")) {
                places.insert((name, id), (service, index));
            }
        }
    }
    places
}

fn scalar<'n>(node: &'n Node, key: &str) -> Option<&'n str> {
    match &node.entry(key)?.value {
        Value::Scalar { text, .. } => Some(text),
        Value::Null | Value::List(_) | Value::Map(_) => None,
    }
}

fn read_service(reader: &Reader, node: &Node, places: &Places<'_>) -> Option<TraceService> {
    let keys = [
        "name",
        "service_type",
        "grpc",
        "database",
        "operations",
        "resource_attributes",
        "scope_name",
        "scope_version",
    ];
    let map = reader.map(node, &Keys::new("service", &keys))?;
    let name = map.required("name").and_then(|node| filled(reader, node));
    let kind = read_kind(reader, &map);
    let attributes = read_attributes(reader, map.take("resource_attributes"));
    let scope_name = map.take("scope_name").and_then(|node| reader.text(node));
    let scope_version = map.read_or("scope_version", "1.0.0", |node| reader.text(node));
    let operations = map
        .required("operations")
        .and_then(|node| reader.list(node));
    let kind = kind?;
    let read = |operation| read_operation(reader, operation, &kind, places);
    let operations: Vec<Option<TraceOperation>> = operations?.iter().map(read).collect();
    Some(TraceService {
        name: name?,
        resource_attributes: attributes?,
        scope_name: scope_name.map(str::to_owned),
        scope_version: scope_version?.to_owned(),
        operations: operations.into_iter().collect::<Option<Vec<_>>>()?,
    })
}

/// Kind of a service's operations.
enum OperationsKind {
    Plain,
    Http,
    Grpc {
        service: String,
    },
    Database {
        system: String,
        name: Option<String>,
    },
}

fn read_kind(reader: &Reader, map: &MapReader<'_, '_>) -> Option<OperationsKind> {
    let words = [("http", 0), ("grpc", 1), ("database", 2)];
    let kind = map.read("service_type", |node| {
        reader.word(node, "service type", &words)
    })?;
    match kind {
        None => Some(OperationsKind::Plain),
        Some(0) => Some(OperationsKind::Http),
        Some(1) => {
            let inner = reader.map(map.required("grpc")?, &Keys::new("grpc", &["service"]))?;
            let service = inner
                .required("service")
                .and_then(|node| filled(reader, node))?;
            Some(OperationsKind::Grpc { service })
        }
        Some(_) => {
            let keys = Keys::new("database", &["system", "name"]);
            let inner = reader.map(map.required("database")?, &keys)?;
            let system = inner
                .required("system")
                .and_then(|node| filled(reader, node));
            let name = inner.read("name", |node| filled(reader, node))?;
            Some(OperationsKind::Database {
                system: system?,
                name,
            })
        }
    }
}

fn read_operation(
    reader: &Reader,
    node: &Node,
    kind: &OperationsKind,
    places: &Places<'_>,
) -> Option<TraceOperation> {
    let keys_of_kind: &[&'static str] = match kind {
        OperationsKind::Plain => &["span_name"],
        OperationsKind::Http => &["method", "route"],
        OperationsKind::Grpc { .. } => &["method"],
        OperationsKind::Database { .. } => &["table", "query"],
    };
    let mut keys = Keys::new("operation", &["id", "suboperations", "attributes", "root"]);
    keys.accepted.extend(keys_of_kind);
    let map = reader.map(node, &keys)?;
    let id = map.required("id").and_then(|node| filled(reader, node));
    let work = read_work(reader, &map, kind);
    let attributes = read_attributes(reader, map.take("attributes"));
    let root = map.read("root", |node| reader.boolean(node))?;
    let calls = map.read_or("suboperations", Vec::new(), |node| {
        let items = reader.list(node)?.iter();
        let read = items.map(|item| read_call(reader, item, places));
        let read: Vec<Option<TraceCall>> = read.collect();
        read.into_iter().collect()
    });
    Some(TraceOperation {
        id: id?,
        work: work?,
        root,
        calls: calls?,
        attributes: attributes?,
    })
}

fn read_work(reader: &Reader, map: &MapReader<'_, '_>, kind: &OperationsKind) -> Option<TraceWork> {
    let needed = |key| map.required(key).and_then(|node| filled(reader, node));
    Some(match kind {
        OperationsKind::Plain => TraceWork::Plain {
            span_name: needed("span_name")?,
        },
        OperationsKind::Http => {
            let (method, route) = (needed("method"), needed("route"));
            TraceWork::Http {
                method: method?,
                route: route?,
            }
        }
        OperationsKind::Grpc { service } => TraceWork::Grpc {
            service: service.clone(),
            method: needed("method")?,
        },
        OperationsKind::Database { system, name } => TraceWork::Database {
            system: system.clone(),
            name: name.clone(),
            table: map.read("table", |node| filled(reader, node))?,
            query: needed("query")?,
        },
    })
}

fn read_call(reader: &Reader, node: &Node, places: &Places<'_>) -> Option<TraceCall> {
    let keys = Keys::new("suboperation", &["to", "rate", "max_repeat", "attributes"]);
    let map = reader.map(node, &keys)?;
    let place = map.required("to").and_then(|to| {
        let text = reader.text(to)?;
        let place = text.split_once('/').and_then(|place| places.get(&place));
        if place.is_none() {
            let known = places.keys().map(|(service, id)| format!("{service}/{id}"));
            let mut known: Vec<String> = known.collect();
            known.sort_unstable();
            let words = known.iter().map(String::as_str);
            reader.unknown_word(to.span, "operation", text, words);
        }
        place.copied()
    });
    let (mut rate, mut repeat_max) = (1.0, 1);
    let has_rate = set(&map, "rate", &mut rate, |node| share(reader, node));
    let has_repeat = set(&map, "max_repeat", &mut repeat_max, |node| {
        reader.whole(node, 1, REPEAT_MAX)
    });
    let attributes = read_attributes(reader, map.take("attributes"));
    let (service, operation) = place?;
    (has_rate && has_repeat).then_some(())?;
    Some(TraceCall {
        service,
        operation,
        rate,
        repeat_max,
        attributes: attributes?,
    })
}

fn read_attributes(reader: &Reader, node: Option<&Node>) -> Option<Vec<TraceAttribute>> {
    let Some(node) = node else {
        return Some(Vec::new());
    };
    let read = reader.list(node)?.iter().map(|item| {
        let map = reader.map(item, &Keys::new("attribute", &["key", "value"]))?;
        let key = map.required("key").and_then(|node| filled(reader, node));
        let value = map
            .required("value")
            .and_then(|node| read_value(reader, node));
        Some(TraceAttribute {
            key: key?,
            value: value?,
        })
    });
    let read: Vec<Option<TraceAttribute>> = read.collect();
    read.into_iter().collect()
}

fn read_value(reader: &Reader, node: &Node) -> Option<TraceValue> {
    const KINDS: [&str; 6] = [
        "static",
        "static_int",
        "random_string",
        "random_int",
        "dictionary",
        "one_of",
    ];
    if let Value::Scalar { text, quoted } = &node.value {
        return Some(match text.parse() {
            Ok(number) if !quoted => TraceValue::Integer(number),
            _ => TraceValue::Text(text.clone()),
        });
    }
    let map = reader.map(node, &Keys::new("value", &KINDS))?;
    let (kind, value) = map.one_of(&KINDS)?;
    match kind {
        "static" => Some(TraceValue::Text(reader.text(value)?.to_owned())),
        "static_int" => {
            let number = reader.whole(value, i64::MIN, i64::MAX)?;
            Some(TraceValue::Integer(number))
        }
        "random_string" => {
            let map = reader.map(value, &Keys::new("random_string", &["length"]))?;
            let length = reader.whole(map.required("length")?, 1, u16::MAX)?;
            Some(TraceValue::RandomText { length })
        }
        "random_int" => {
            let range = super::options::range(reader, value, i64::MIN, i64::MAX)?;
            Some(TraceValue::RandomInteger(range))
        }
        "dictionary" => {
            let words = reader.word(value, "dictionary", &DICTIONARIES)?;
            Some(TraceValue::OneOf(
                words.iter().map(|&word| word.to_owned()).collect(),
            ))
        }
        _ => {
            let texts = reader.texts(value);
            if texts.is_empty() {
                let error = reader.error(code::BAD_VALUE, value.span, "the list is empty");
                reader.report(error);
                return None;
            }
            Some(TraceValue::OneOf(texts))
        }
    }
}

fn filled(reader: &Reader, node: &Node) -> Option<String> {
    let text = reader.text(node)?;
    if text.is_empty() {
        let error = reader.error(code::BAD_VALUE, node.span, "an empty text");
        reader.report(error.label("a value is required here"));
        return None;
    }
    Some(text.to_owned())
}

/// A shop: a gateway before a catalogue, a cart and a payment service, with a
/// database and a cache.
fn default_services() -> Vec<TraceService> {
    let gateway = vec![
        operation("browse", http("GET", "/items/{id}"), &[(1, 0, 1.0, 1)]),
        operation(
            "add",
            http("POST", "/cart"),
            &[(1, 0, 0.5, 1), (2, 0, 1.0, 1)],
        ),
        operation(
            "pay",
            http("POST", "/checkout"),
            &[(2, 1, 1.0, 1), (3, 0, 0.9, 1)],
        ),
    ];
    let item = grpc("shop.Catalogue", "Item");
    let (put, sum) = (grpc("shop.Cart", "Put"), grpc("shop.Cart", "Sum"));
    let cart = vec![
        operation("put", put, &[(5, 0, 1.0, 1)]),
        operation("sum", sum, &[(5, 0, 1.0, 8)]),
    ];
    let charge = grpc("shop.Payment", "Charge");
    let select = sql("items", "SELECT name, price FROM items WHERE id = $1");
    let insert = sql("orders", "INSERT INTO orders VALUES ($1, $2, $3)");
    let database = vec![
        operation("select", select, &[]),
        operation("insert", insert, &[]),
    ];
    let get = TraceWork::Database {
        system: "redis".to_owned(),
        name: None,
        table: None,
        query: "GET".to_owned(),
    };
    vec![
        service("gateway", gateway),
        service(
            "catalogue",
            vec![operation("item", item, &[(5, 0, 1.0, 1), (4, 0, 0.3, 4)])],
        ),
        service("cart", cart),
        service(
            "payment",
            vec![operation("charge", charge, &[(4, 1, 1.0, 1)])],
        ),
        service("database", database),
        service("cache", vec![operation("get", get, &[])]),
    ]
}

fn service(name: &str, operations: Vec<TraceOperation>) -> TraceService {
    TraceService {
        name: name.to_owned(),
        resource_attributes: vec![TraceAttribute {
            key: "deployment.environment.name".to_owned(),
            value: TraceValue::Text("production".to_owned()),
        }],
        scope_name: Some(format!("{name}.tracing")),
        scope_version: "1.0.0".to_owned(),
        operations,
    }
}

fn operation(id: &str, work: TraceWork, calls: &[(usize, usize, f64, u32)]) -> TraceOperation {
    let calls = calls
        .iter()
        .map(|&(service, operation, rate, repeat_max)| TraceCall {
            service,
            operation,
            rate,
            repeat_max,
            attributes: Vec::new(),
        });
    TraceOperation {
        id: id.to_owned(),
        work,
        root: None,
        calls: calls.collect(),
        attributes: vec![TraceAttribute {
            key: "thread.id".to_owned(),
            value: TraceValue::RandomInteger(Between::new(1, 64)),
        }],
    }
}

fn http(method: &str, route: &str) -> TraceWork {
    TraceWork::Http {
        method: method.to_owned(),
        route: route.to_owned(),
    }
}

fn grpc(service: &str, method: &str) -> TraceWork {
    TraceWork::Grpc {
        service: service.to_owned(),
        method: method.to_owned(),
    }
}

fn sql(table: &str, query: &str) -> TraceWork {
    TraceWork::Database {
        system: "postgresql".to_owned(),
        name: Some("shop".to_owned()),
        table: Some(table.to_owned()),
        query: query.to_owned(),
    }
}
