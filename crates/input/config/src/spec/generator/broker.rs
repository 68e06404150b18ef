//! Producers for message brokers.

use stillwell_plan::TransportPlan;
use stillwell_plan::generator::{
    AmqpPlan, KafkaAcks, KafkaCompression, KafkaPlan, Login, MessageOf, NatsAcks, NatsLogin,
    NatsPlan, ProducerPlan,
};
use stillwell_plan::placement::{IsolationPlan, Wanted};
use stillwell_text::{MapReader, Node, Reader, check_address, code};
use stillwell_units::{Nanos, ShortText};

use super::{GeneratorSpec, ReadContext, tls};
use crate::element::{DURATION, Element, Field, Shape, optional, required};

const TIMEOUT_DEFAULT: Nanos = Nanos::from_secs(30);
const IN_FLIGHT_MAX: u32 = 100_000;
/// As Kafka's own producer has it.
const KAFKA_IN_FLIGHT: u32 = 5;
/// Blocks are mostly single messages there.
const MESSAGES_IN_FLIGHT: u32 = 1000;
/// Names of topics are names of folders.
const TOPIC_BYTES_MAX: usize = 249;

const MESSAGES: [(&str, MessageOf); 2] = [("event", MessageOf::Event), ("block", MessageOf::Block)];
const KAFKA_ACKS: [(&str, KafkaAcks); 3] = [
    ("none", KafkaAcks::None),
    ("leader", KafkaAcks::Leader),
    ("all", KafkaAcks::All),
];
const COMPRESSIONS: [(&str, KafkaCompression); 5] = [
    ("none", KafkaCompression::None),
    ("gzip", KafkaCompression::Gzip),
    ("snappy", KafkaCompression::Snappy),
    ("lz4", KafkaCompression::Lz4),
    ("zstd", KafkaCompression::Zstd),
];
const NATS_ACKS: [(&str, NatsAcks); 3] = [
    ("none", NatsAcks::None),
    ("server", NatsAcks::Server),
    ("jetstream", NatsAcks::Jetstream),
];
const AMQP_ACKS: [(&str, bool); 2] = [("none", false), ("confirms", true)];

const fn address(example: &'static str) -> Field {
    required("address", Shape::Like(example), "The broker's `host:port`.")
}
const TLS: Field = optional("tls", Shape::Element(&tls::TLS), "TLS over the stream.");
const MESSAGE: Field = optional(
    "message",
    Shape::Words(&["event", "block"]),
    "Content of one message: an event without its line feed, or a whole block.",
);
const IN_FLIGHT: Field = optional(
    "in_flight",
    Shape::Whole,
    "Maximum number of blocks in flight on each connection.",
);
const TIMEOUT: Field = optional(
    "timeout",
    DURATION,
    "Timeout of a connection attempt or a response; 30s by default.",
);
const USER: Field = optional("user", Shape::Text, "User name of the producer.");
const PASSWORD: Field = optional("password", Shape::Text, "Password of the producer.");

pub(super) const KAFKA: Element = Element::new(
    "kafka generator",
    "Records for a topic of Kafka, one batch per block.",
    &[
        address("127.0.0.1:9092"),
        required("topic", Shape::Like("logs"), "The topic."),
        optional(
            "acks",
            Shape::Words(&["none", "leader", "all"]),
            "Replicas that must have a batch before it is acknowledged; all in sync by default.",
        ),
        optional(
            "compression",
            Shape::Words(&["none", "gzip", "snappy", "lz4", "zstd"]),
            "Compression of a batch; none by default.",
        ),
        optional(
            "create_topic",
            Shape::Boolean,
            "`true`: brokers create a topic that does not exist.",
        ),
        USER,
        PASSWORD,
        TLS,
        MESSAGE,
        IN_FLIGHT,
        TIMEOUT,
    ],
);

pub(super) const NATS: Element = Element::new(
    "nats generator",
    "Messages for NATS.",
    &[
        address("127.0.0.1:4222"),
        required(
            "subject",
            Shape::Like("logs"),
            "Name that messages are published to, such as `logs.app`.",
        ),
        optional(
            "acks",
            Shape::Words(&["none", "server", "jetstream"]),
            "Acknowledgement of messages: `server` when it received them, `jetstream` when they are stored; \
             `none` by default.",
        ),
        USER,
        PASSWORD,
        optional("token", Shape::Text, "Credentials of the producer."),
        TLS,
        MESSAGE,
        IN_FLIGHT,
        TIMEOUT,
    ],
);

pub(super) const AMQP: Element = Element::new(
    "amqp generator",
    "Messages for an exchange of AMQP 0-9-1, the protocol of RabbitMQ.",
    &[
        address("127.0.0.1:5672"),
        required(
            "routing_key",
            Shape::Like("logs"),
            "The routing key: a queue's name for the default exchange.",
        ),
        optional(
            "exchange",
            Shape::Text,
            "The exchange; the unnamed one by default.",
        ),
        optional("vhost", Shape::Text, "The virtual host; `/` by default."),
        optional(
            "acks",
            Shape::Words(&["none", "confirms"]),
            "`confirms`, the default: the broker confirms messages.",
        ),
        optional(
            "mandatory",
            Shape::Boolean,
            "`true`: messages without a queue are refused; `true` by default where messages are confirmed.",
        ),
        optional(
            "persistent",
            Shape::Boolean,
            "`true`: messages survive a restart of the broker; `false` by default.",
        ),
        optional(
            "user",
            Shape::Text,
            "User name of the producer; `guest` by default.",
        ),
        optional(
            "password",
            Shape::Text,
            "Password of the producer; `guest` by default.",
        ),
        TLS,
        MESSAGE,
        IN_FLIGHT,
        TIMEOUT,
    ],
);

/// The transport of `kind` that `node` describes.
pub(super) fn read_kafka(context: &ReadContext<'_>, node: &Node) -> Option<TransportPlan> {
    let reader = context.reader;
    let map = reader.map(node, &KAFKA.keys())?;
    let topic = map
        .required("topic")
        .and_then(|node| read_topic(context, node));
    let acks = word(context, &map, "acks", &KAFKA_ACKS, KafkaAcks::All);
    let none = KafkaCompression::None;
    let compression = word(context, &map, "compression", &COMPRESSIONS, none);
    let create_topic = boolean(context, &map, "create_topic", false);
    let login = read_login(context, &map);
    let is_answered = acks != Some(KafkaAcks::None);
    let producer = read_producer(context, &map, KAFKA_IN_FLIGHT, is_answered);
    let producer = producer.filter(|producer| is_timeout_of_kafka(reader, &map, producer.timeout));
    Some(TransportPlan::Kafka(Box::new(KafkaPlan {
        producer: producer?,
        topic: topic?,
        acks: acks?,
        compression: compression?,
        create_topic: create_topic?,
        login: login?,
    })))
}

pub(super) fn read_nats(context: &ReadContext<'_>, node: &Node) -> Option<TransportPlan> {
    let reader = context.reader;
    let map = reader.map(node, &NATS.keys())?;
    let subject = map.required("subject");
    let subject = subject.and_then(|node| read_subject(context, node));
    let acks = word(context, &map, "acks", &NATS_ACKS, NatsAcks::None);
    let token = map.take("token");
    let login = match (read_login(context, &map), token) {
        (Some(None), Some(node)) => context
            .filled(node)
            .map(|token| NatsLogin::Token(token.to_owned())),
        (Some(Some(_)), Some(node)) => {
            let message = "`token` and `user` both identify the producer";
            let error = reader.error(code::BAD_VALUE, node.span, message);
            reader.report(error.label("leave out one of them"));
            None
        }
        (login, None) => login.map(|login| login.map_or(NatsLogin::None, NatsLogin::User)),
        (None, Some(_)) => None,
    };
    let is_answered = acks != Some(NatsAcks::None);
    let producer = read_producer(context, &map, MESSAGES_IN_FLIGHT, is_answered);
    Some(TransportPlan::Nats(Box::new(NatsPlan {
        producer: producer?,
        subject: subject?,
        acks: acks?,
        login: login?,
    })))
}

pub(super) fn read_amqp(context: &ReadContext<'_>, node: &Node) -> Option<TransportPlan> {
    let map = context.reader.map(node, &AMQP.keys())?;
    let short = |key, default: &str| match map.take(key) {
        Some(node) => read_short(context, node),
        None => default.try_into().ok(),
    };
    let routing_key = map.required("routing_key");
    let routing_key = routing_key.and_then(|node| read_short(context, node));
    let (exchange, virtual_host) = (short("exchange", ""), short("vhost", "/"));
    let confirms = word(context, &map, "acks", &AMQP_ACKS, true);
    let mandatory = boolean(context, &map, "mandatory", confirms == Some(true));
    let persistent = boolean(context, &map, "persistent", false);
    let login = read_login(context, &map);
    let is_answered = confirms != Some(false);
    let producer = read_producer(context, &map, MESSAGES_IN_FLIGHT, is_answered);
    let guest = || Login {
        user: "guest".to_owned(),
        password: "guest".to_owned(),
    };
    Some(TransportPlan::Amqp(Box::new(AmqpPlan {
        producer: producer?,
        virtual_host: virtual_host?,
        exchange: exchange?,
        routing_key: routing_key?,
        confirms: confirms?,
        mandatory: mandatory?,
        persistent: persistent?,
        login: login?.unwrap_or_else(guest),
    })))
}

/// Keys of all producers.
fn read_producer(
    context: &ReadContext<'_>,
    map: &MapReader<'_, '_>,
    in_flight_default: u32,
    is_answered: bool,
) -> Option<ProducerPlan> {
    let reader = context.reader;
    let address = map
        .required("address")
        .and_then(|node| context.address(node));
    let tls = match map.take("tls") {
        Some(node) => tls::read(context, node).map(Some),
        // `tls:` with nothing behind it would be a stream in the clear.
        None if map.key_span("tls").is_some() => map.required("tls").and(None),
        None => Some(None),
    };
    let message = word(context, map, "message", &MESSAGES, MessageOf::Event);
    let in_flight = map.read_or("in_flight", in_flight_default, |node| {
        if !is_answered {
            let message = "`in_flight` has no effect without acknowledgements";
            let error = reader.error(code::BAD_VALUE, node.span, message);
            reader.report(error.label("leave it out, or set other `acks`"));
        }
        reader.whole(node, 1, IN_FLIGHT_MAX)
    });
    let timeout = map.read_or("timeout", TIMEOUT_DEFAULT, |node| {
        super::http::read_length(context, node)
    });
    Some(ProducerPlan {
        address: address?,
        tls: tls?,
        message: message?,
        in_flight: in_flight?,
        timeout: timeout?,
    })
}

/// Returns true if requests can state `timeout`, the value of a key of `map`; reports it if they cannot.
fn is_timeout_of_kafka(reader: &Reader, map: &MapReader<'_, '_>, timeout: Nanos) -> bool {
    let is_possible = timeout <= KafkaPlan::TIMEOUT_MAX;
    if !is_possible && let Some(node) = map.take("timeout") {
        let message = "the `timeout` of a kafka generator is out of range";
        let error = reader.error(code::OUT_OF_RANGE, node.span, message);
        let limit = KafkaPlan::TIMEOUT_MAX.to_exact_text();
        reader.report(error.label(format!("at most {limit} (24.8 days)")));
    }
    is_possible
}

/// `user` and `password`, if they are there.
fn read_login(context: &ReadContext<'_>, map: &MapReader<'_, '_>) -> Option<Option<Login>> {
    let reader = context.reader;
    let (user, password) = (map.take("user"), map.take("password"));
    let text = |node: &Node| {
        let text = reader.text(node)?;
        if text.contains('\0') {
            let message = "a text with a zero byte";
            reader.report(reader.error(code::BAD_VALUE, node.span, message));
            return None;
        }
        Some(text.to_owned())
    };
    match (user, password) {
        (None, None) => Some(None),
        (Some(user), password) => {
            let filled = context.filled(user).and_then(|_| text(user));
            let password = password.map_or_else(|| Some(String::new()), text);
            Some(Some(Login {
                user: filled?,
                password: password?,
            }))
        }
        (None, Some(node)) => {
            let message = "a password without a user";
            let error = reader.error(code::BAD_VALUE, node.span, message);
            reader.report(error.label("write `user` beside it"));
            None
        }
    }
}

fn word<T: Copy>(
    context: &ReadContext<'_>,
    map: &MapReader<'_, '_>,
    key: &'static str,
    words: &[(&'static str, T)],
    default: T,
) -> Option<T> {
    map.read_or(key, default, |node| context.reader.word(node, key, words))
}

fn boolean(
    context: &ReadContext<'_>,
    map: &MapReader<'_, '_>,
    key: &'static str,
    default: bool,
) -> Option<bool> {
    map.read_or(key, default, |node| context.reader.boolean(node))
}

/// A name that Kafka takes for a topic.
fn read_topic(context: &ReadContext<'_>, node: &Node) -> Option<ShortText> {
    let topic = context.filled(node)?;
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let is_name = topic.bytes().all(is_legal) && !matches!(topic, "." | "..");
    if let Ok(name) = ShortText::try_from(topic)
        && is_name
        && topic.len() <= TOPIC_BYTES_MAX
    {
        return Some(name);
    }
    let message = format!("`{topic}` cannot be a topic's name");
    let error = context.reader.error(code::BAD_VALUE, node.span, message);
    let limit = format!("letters, digits, `.`, `_` and `-`, at most {TOPIC_BYTES_MAX}");
    context.reader.report(error.label(limit));
    None
}

/// A subject of NATS that can be sent to: words with points between them.
fn read_subject(context: &ReadContext<'_>, node: &Node) -> Option<String> {
    let subject = context.filled(node)?;
    let refuse = |label: &str| {
        let message = format!("`{subject}` is not a subject to send to");
        let error = context.reader.error(code::BAD_VALUE, node.span, message);
        context.reader.report(error.label(label.to_owned()));
        None
    };
    if subject.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return refuse("words with dots between them, and no blanks");
    }
    if subject.split('.').any(str::is_empty) {
        return refuse("an empty word before, after or between dots");
    }
    if subject.split('.').any(|word| matches!(word, "*" | ">")) {
        return refuse("`*` and `>` are for subscribers");
    }
    Some(subject.to_owned())
}

fn read_short(context: &ReadContext<'_>, node: &Node) -> Option<ShortText> {
    let text = context.reader.text(node)?;
    if let Ok(text) = ShortText::try_from(text) {
        return Some(text);
    }
    let message = format!("a text of {} bytes is too long for AMQP", text.len());
    let error = context.reader.error(code::OUT_OF_RANGE, node.span, message);
    let limit = format!("at most {} bytes", ShortText::BYTES_MAX);
    context.reader.report(error.label(limit));
    None
}

/// Warns of brokers that a run cannot reach, unless its target starts them. With links, they have the
/// address of the target.
pub(super) fn check_brokers(
    reader: &Reader,
    generators: &[GeneratorSpec],
    isolation: &IsolationPlan,
) {
    if isolation.network == Wanted::No || isolation.links.is_some() {
        return;
    }
    for generator in generators {
        let plan = &generator.plan.value;
        let Some(producer) = plan.transport.producer() else {
            continue;
        };
        let message = format!(
            "generator `{}` can only reach a broker that the target starts: the run has a \
             separate network",
            plan.id
        );
        let note = reader.note(code::MEANING, generator.plan.span, message);
        let note = match check_address(&producer.address) {
            Ok((host, _)) => note.label(format!("in that network, {host} is not this host")),
            Err(_) => note,
        };
        reader.report(note.help("write `isolation: {network: no}` if the broker runs outside"));
    }
}
