//! Services as they are needed to write their spans.

use stillwell_plan::payload::{
    TraceAttribute, TraceOperation, TraceService, TraceValue, TraceWork,
};

use stillwell_units::Seed;

use crate::mix::{Chance, Draw, index, key, share};
use crate::names::DIGITS;
use crate::protobuf::{push_bytes, push_number_attribute, push_text_attribute};

/// Bytes that the heads of an attribute take at most.
const ATTRIBUTE_HEADS_MAX: usize = 24;

/// HTTP status codes of requests that went well, and of others.
const HTTP_FINE: [i64; 6] = [200, 200, 201, 204, 301, 404];
const HTTP_FAILED: [i64; 4] = [500, 502, 503, 504];

/// gRPC status codes of calls that went well, and of others.
const GRPC_FINE: [&str; 1] = ["OK"];
const GRPC_FAILED: [&str; 5] = [
    "DEADLINE_EXCEEDED",
    "INTERNAL",
    "RESOURCE_EXHAUSTED",
    "UNAVAILABLE",
    "UNKNOWN",
];

/// All services.
#[derive(Debug)]
pub(super) struct System {
    pub(super) services: Vec<Service>,
    pub(super) operations: Vec<Operation>,
    /// Operations with which traces begin.
    pub(super) roots: Vec<usize>,
    /// Characters of the longest random text.
    pub(super) text_max: usize,
}

/// A service, and the beginning of its spans.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) resource: Vec<u8>,
    pub(super) scope: Vec<u8>,
}

/// An operation and its calls.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) service: usize,
    pub(super) name: Vec<u8>,
    pub(super) attributes: Vec<Choice>,
    pub(super) calls: Vec<Call>,
    /// Bytes of name and attributes at most, with those of any call to it.
    pub(super) size_max: usize,
}

/// One operation calling another.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) operation: usize,
    pub(super) rate: Chance,
    pub(super) repeat_max: u32,
    pub(super) attributes: Vec<Choice>,
}

/// An attribute.
#[derive(Debug)]
pub(super) enum Choice {
    /// One of these, ready to be written.
    Ready {
        /// Attributes of successful calls.
        fine: Vec<Vec<u8>>,
        /// Attributes of failed calls.
        failed: Vec<Vec<u8>>,
    },
    /// A random text.
    Text { key: Vec<u8>, length: usize },
    /// A random number from `low` to `low` + `width`.
    Integer { key: Vec<u8>, low: i64, width: u64 },
}

impl System {
    pub(super) fn new(services: &[TraceService], roots: &[(usize, usize)]) -> Self {
        let mut first = 0;
        let firsts: Vec<usize> = services
            .iter()
            .map(|service| {
                let before = first;
                first += service.operations.len();
                before
            })
            .collect();
        let mut operations = Vec::new();
        for (number, service) in services.iter().enumerate() {
            for operation in &service.operations {
                operations.push(compile(number, operation, &firsts));
            }
        }
        let mut system = Self {
            services: services.iter().map(head).collect(),
            text_max: operations
                .iter()
                .map(Operation::text_max)
                .max()
                .unwrap_or(0),
            roots: roots
                .iter()
                .map(|(service, operation)| firsts[*service] + operation)
                .collect(),
            operations,
        };
        system.add_calls();
        system
    }

    /// Adds the attributes of calls, which are in the spans of their callees.
    fn add_calls(&mut self) {
        let mut most = vec![0; self.operations.len()];
        for call in self
            .operations
            .iter()
            .flat_map(|operation| &operation.calls)
        {
            let size = call.attributes.iter().map(Choice::size_max).sum();
            most[call.operation] = most[call.operation].max(size);
        }
        for (operation, most) in self.operations.iter_mut().zip(most) {
            operation.size_max += most;
        }
    }
}

fn head(service: &TraceService) -> Service {
    let mut attributes = Vec::new();
    push_text_attribute(&mut attributes, 1, b"service.name", service.name.as_bytes());
    for attribute in &service.resource_attributes {
        // A resource stays what it is: what may be chosen is chosen once.
        let seed = Seed::from_number(0).derive(&service.name, 0);
        let mut draw = Draw::new(key(&seed.derive(&attribute.key, 0)), 0);
        match choice(attribute, 1) {
            Choice::Ready { fine, .. } => {
                let chosen = index(draw.below(fine.len() as u64));
                attributes.extend_from_slice(&fine[chosen]);
            }
            Choice::Text { key, length } => {
                let letter = |_| DIGITS[index(draw.below(36))];
                let text: Vec<u8> = (0..length).map(letter).collect();
                push_text_attribute(&mut attributes, 1, &key, &text);
            }
            Choice::Integer { key, low, width } => {
                let offset = share(draw.word(), width.saturating_add(1));
                let value = low.wrapping_add(offset.cast_signed());
                push_number_attribute(&mut attributes, 1, &key, value);
            }
        }
    }
    let mut resource = Vec::new();
    push_bytes(&mut resource, 1, &attributes);
    let mut names = Vec::new();
    if let Some(name) = &service.scope_name {
        push_bytes(&mut names, 1, name.as_bytes());
    }
    push_bytes(&mut names, 2, service.scope_version.as_bytes());
    let mut scope = Vec::new();
    push_bytes(&mut scope, 1, &names);
    Service { resource, scope }
}

fn compile(service: usize, operation: &TraceOperation, firsts: &[usize]) -> Operation {
    let (name, mut attributes) = work(&operation.work);
    attributes.extend(
        operation
            .attributes
            .iter()
            .map(|attribute| choice(attribute, 9)),
    );
    let calls = operation.calls.iter().map(|call| Call {
        operation: firsts[call.service] + call.operation,
        rate: Chance::new(call.rate),
        repeat_max: call.repeat_max,
        attributes: call
            .attributes
            .iter()
            .map(|attribute| choice(attribute, 9))
            .collect(),
    });
    Operation {
        service,
        size_max: name.len() + attributes.iter().map(Choice::size_max).sum::<usize>(),
        name: name.into_bytes(),
        attributes,
        calls: calls.collect(),
    }
}

/// The name and attributes that follow from what an operation does.
fn work(work: &TraceWork) -> (String, Vec<Choice>) {
    match work {
        TraceWork::Plain { span_name } => (span_name.clone(), Vec::new()),
        TraceWork::Http { method, route } => {
            let attributes = vec![
                fixed("http.request.method", method),
                fixed("http.route", route),
                Choice::Ready {
                    fine: HTTP_FINE
                        .map(|code| number("http.response.status_code", code))
                        .into(),
                    failed: HTTP_FAILED
                        .map(|code| number("http.response.status_code", code))
                        .into(),
                },
            ];
            (format!("{method} {route}"), attributes)
        }
        TraceWork::Grpc { service, method } => {
            let name = format!("{service}/{method}");
            let code = |code: &str| text("rpc.response.status_code", code, 9);
            let attributes = vec![
                fixed("rpc.system.name", "grpc"),
                fixed("rpc.method", &name),
                Choice::Ready {
                    fine: GRPC_FINE.map(code).into(),
                    failed: GRPC_FAILED.map(code).into(),
                },
            ];
            (name, attributes)
        }
        TraceWork::Database {
            system,
            name,
            table,
            query,
        } => {
            let verb = query.split_whitespace().next().unwrap_or_default();
            let span_name = match table {
                Some(table) => format!("{verb} {table}"),
                None if system == "redis" => query.clone(),
                None => verb.to_owned(),
            };
            let mut attributes = vec![
                fixed("db.system.name", system),
                fixed("db.operation.name", verb),
            ];
            attributes.extend(name.iter().map(|name| fixed("db.namespace", name)));
            attributes.extend(table.iter().map(|table| fixed("db.collection.name", table)));
            attributes.push(fixed("db.query.text", query));
            (span_name, attributes)
        }
    }
}

/// Always the same text.
fn fixed(key: &str, value: &str) -> Choice {
    let only = vec![text(key, value, 9)];
    Choice::Ready {
        failed: only.clone(),
        fine: only,
    }
}

fn text(key: &str, value: &str, field: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    push_text_attribute(&mut bytes, field, key.as_bytes(), value.as_bytes());
    bytes
}

fn number(key: &str, value: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    push_number_attribute(&mut bytes, 9, key.as_bytes(), value);
    bytes
}

fn choice(attribute: &TraceAttribute, field: u32) -> Choice {
    let key = attribute.key.as_str();
    let all = |all: Vec<Vec<u8>>| Choice::Ready {
        fine: all.clone(),
        failed: all,
    };
    match &attribute.value {
        TraceValue::Text(value) => all(vec![text(key, value, field)]),
        TraceValue::Integer(value) => {
            let mut bytes = Vec::new();
            push_number_attribute(&mut bytes, field, key.as_bytes(), *value);
            all(vec![bytes])
        }
        TraceValue::OneOf(values) => {
            all(values.iter().map(|value| text(key, value, field)).collect())
        }
        TraceValue::RandomText { length } => Choice::Text {
            key: key.as_bytes().to_vec(),
            length: usize::from(*length),
        },
        TraceValue::RandomInteger(range) => Choice::Integer {
            key: key.as_bytes().to_vec(),
            low: range.low,
            width: range.high.wrapping_sub(range.low).cast_unsigned(),
        },
    }
}

impl Operation {
    fn text_max(&self) -> usize {
        let called = self.calls.iter().flat_map(|call| &call.attributes);
        let texts = self
            .attributes
            .iter()
            .chain(called)
            .map(|attribute| match attribute {
                Choice::Text { length, .. } => *length,
                Choice::Ready { .. } | Choice::Integer { .. } => 0,
            });
        texts.max().unwrap_or(0)
    }
}

impl Choice {
    fn size_max(&self) -> usize {
        match self {
            Self::Ready { fine, failed } => {
                fine.iter().chain(failed).map(Vec::len).max().unwrap_or(0)
            }
            Self::Text { key, length } => key.len() + length + ATTRIBUTE_HEADS_MAX,
            Self::Integer { key, .. } => key.len() + ATTRIBUTE_HEADS_MAX + 10,
        }
    }
}
