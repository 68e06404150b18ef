//! `scenario`: users that follow steps.

use stillwell_plan::generator::ExchangePlan;
use stillwell_plan::load::LoadProtocol;
use stillwell_plan::scenario::UsersPlan;
use stillwell_plan::{RatePlan, RateShape, RateUnit, TransportPlan};
use stillwell_text::{MapReader, Node, Reader, Span, check_any_url, code};

use super::fit::ARRIVALS_AND_RATE;
use super::{ReadContext, http, is_short};
use crate::element::{DURATION, Element, Field, Shape, concat, optional};
use crate::files::EntryKind;
use crate::scenario::{ConnectionSettings, SCENARIO_FIELDS, read_inline, read_scenario_file};

const PROTOCOLS: [(&str, LoadProtocol); 2] = [
    ("http1", LoadProtocol::Http1),
    ("http2", LoadProtocol::Http2),
];

const SPECIFIC_FIELDS: [Field; 6] = [
    optional(
        "file",
        Shape::Text,
        "Scenario file, as `stillwell load --scenario` reads it.",
    ),
    optional(
        "protocol",
        Shape::Words(&["http1", "http2"]),
        "Protocol of the connections; HTTP/1.1 by default.",
    ),
    optional(
        "timeout",
        DURATION,
        "Timeout of a response; 30s by default.",
    ),
    optional(
        "connect_timeout",
        DURATION,
        "Timeout of a connection attempt with TLS; 10s by default.",
    ),
    optional(
        "insecure",
        Shape::Boolean,
        "`true`: certificates of https URLs are not checked.",
    ),
    optional(
        "ca",
        Shape::Text,
        "PEM file of an additional authority, or `system`: the certificates of the host.",
    ),
];

const FIELDS: [Field; SPECIFIC_FIELDS.len() + SCENARIO_FIELDS.len()] =
    concat(&SPECIFIC_FIELDS, &SCENARIO_FIELDS);

/// Message about a protocol that scenarios do not support.
const NO_HTTP3: &str = "scenarios do not support HTTP/3";

/// Keys that a scenario file has, so they are not beside `file`.
const IN_FILE: [&str; 6] = [
    "users",
    "arrivals",
    "users_max",
    "variables",
    "data",
    "headers",
];

pub(super) const SCENARIO: Element = Element::new(
    "scenario generator",
    "Users that follow steps, each on its own connection. Beside it, `connections` is the maximum \
     number of users at a time, and `rate` the users that arrive.",
    &FIELDS,
)
.one_of(&["file", "steps", "flows"]);

/// Reads the steps, and the users of the scenario.
pub(super) fn read(context: &ReadContext<'_>, node: &Node) -> Option<(TransportPlan, UsersPlan)> {
    let reader = context.reader;
    let target = context.target_url;
    // A mistake in it is reported where the target is read.
    if target.is_some_and(|url| check_any_url(url).is_err()) {
        return None;
    }
    if is_short(node) {
        let connection = settings(target, None, ExchangePlan::default());
        return read_file(context, node, connection);
    }
    let map = reader.map(node, &SCENARIO.keys())?;
    let url = map.read("url", |node| context.any_url(node));
    let mut exchange = ExchangePlan::default();
    let protocol = map.take("protocol").map(|node| read_protocol(reader, node));
    let limits = http::read_limits(context, &map, &mut exchange);
    limits?;
    if let Some(protocol) = protocol {
        exchange.protocol = protocol?;
    }
    let connection = settings(target, url?, exchange);
    let (kind, at) = map.one_of(SCENARIO.one_of)?;
    if kind != "file" {
        let place = (context.files, context.folder);
        let (plan, users) = read_inline(reader, place, &map, connection)?;
        return Some((TransportPlan::Scenario(Box::new(plan)), users));
    }
    check_beside_file(reader, &map);
    read_file(context, at, connection)
}

fn read_protocol(reader: &Reader, node: &Node) -> Option<LoadProtocol> {
    if reader.text(node)? == LoadProtocol::Http3.name() {
        let error = reader.error(code::BAD_VALUE, node.span, NO_HTTP3);
        reader.report(error.label("write `http1` or `http2`"));
        return None;
    }
    reader.word(node, "protocol", &PROTOCOLS)
}

fn check_beside_file(reader: &Reader, map: &MapReader<'_, '_>) {
    for key in IN_FILE {
        if map.take(key).is_some()
            && let Some(span) = map.key_span(key)
        {
            let message = format!("`file` and `{key}` exclude each other");
            let error = reader.error(code::ONE_OF_KEYS, span, message);
            reader.report(error.label("write it in the file of the scenario"));
        }
    }
}

/// The URL of the generator is used; else that of the target, else that of the scenario.
fn settings(
    target: Option<&str>,
    url: Option<String>,
    exchange: ExchangePlan,
) -> ConnectionSettings {
    ConnectionSettings {
        is_to_target: url.is_none() && target.is_some(),
        url: url.or_else(|| target.map(str::to_owned)),
        protocol: exchange.protocol,
        timeout: exchange.timeout,
        connect_timeout: exchange.connect_timeout,
        tls: exchange.tls,
    }
}

fn read_file(
    context: &ReadContext<'_>,
    node: &Node,
    connection: ConnectionSettings,
) -> Option<(TransportPlan, UsersPlan)> {
    let path = context.existing(node, EntryKind::File)?;
    let (read, diagnostics) = read_scenario_file(context.files, &path, connection);
    diagnostics
        .into_iter()
        .for_each(|diagnostic| context.reader.report(diagnostic));
    let (plan, users) = read?;
    Some((TransportPlan::Scenario(Box::new(plan)), users))
}

/// Returns the rate of a scenario in which users arrive; `None` for a closed loop.
pub(super) fn rate_of(reader: &Reader, rate: Option<&Node>, users: UsersPlan) -> Option<RatePlan> {
    let UsersPlan::Arriving { per_second, .. } = users else {
        return None;
    };
    if let Some(node) = rate {
        ARRIVALS_AND_RATE.report(reader, node.span);
    }
    Some(RatePlan {
        unit: RateUnit::Events,
        shape: RateShape::Constant { per_second },
    })
}

/// Returns the maximum number of users at a time. Reports at `span` more than a generator can have.
pub(super) fn users_max(reader: &Reader, span: Span, users: UsersPlan) -> Option<u16> {
    let (key, users) = match users {
        UsersPlan::Closed(users) => ("users", users),
        UsersPlan::Arriving { at_a_time_max, .. } => ("users_max", at_a_time_max),
    };
    let users_max = u16::try_from(users).ok();
    if users_max.is_none() {
        let message = format!("`{key}` of the scenario ({users}) is out of range");
        let label = format!("a generator has at most {} users at a time", u16::MAX);
        let error = reader.error(code::OUT_OF_RANGE, span, message);
        reader.report(error.label(label));
    }
    users_max
}
