//! Producers for Kafka, NATS and AMQP.

use stillwell_plan::generator::{KafkaAcks, KafkaCompression, MessageOf, NatsAcks, NatsLogin};
use stillwell_plan::{RunPlan, TransportPlan};

use super::mistakes::{codes, rendered_diagnostics};
use super::run_plan;

/// A run with these generators, which is right.
fn plan_of(generators: &[&str]) -> RunPlan {
    let items = generators.iter().map(|text| format!("    - {text}\n"));
    let items: String = items.collect();
    let text = format!("isolation: {{network: no}}\nworkload:\n  generators:\n{items}");
    run_plan(&text)
        .unwrap_or_else(|diagnostics| panic!("{diagnostics}"))
        .plan
}

#[test]
fn what_is_left_out_is_what_producers_do() {
    let plan = plan_of(&[
        "{kafka: {address: 'a:9092', topic: logs}, payload: json, rate: 100/s}",
        "{nats: {address: 'a:4222', subject: a.b}, payload: json, rate: 100/s}",
        "{amqp: {address: 'a:5672', routing_key: q}, payload: json, rate: 100/s}",
    ]);
    let transports: Vec<_> = plan
        .generators
        .iter()
        .map(|generator| &generator.transport)
        .collect();
    let [
        TransportPlan::Kafka(kafka),
        TransportPlan::Nats(nats),
        TransportPlan::Amqp(amqp),
    ] = transports[..]
    else {
        panic!("{transports:?}");
    };
    assert_eq!(kafka.acks, KafkaAcks::All);
    assert_eq!(kafka.compression, KafkaCompression::None);
    assert_eq!((kafka.create_topic, kafka.producer.in_flight), (false, 5));
    assert_eq!((nats.acks, &nats.login), (NatsAcks::None, &NatsLogin::None));
    assert_eq!(nats.producer.message, MessageOf::Event);
    assert!(amqp.confirms && amqp.mandatory && !amqp.persistent);
    assert_eq!(
        (amqp.exchange.as_str(), amqp.virtual_host.as_str()),
        ("", "/")
    );
    assert_eq!(amqp.login.user, "guest");
    let events: Vec<_> = plan
        .generators
        .iter()
        .map(|generator| generator.payload.blocks)
        .collect();
    let text = format!("{events:?}");
    assert!(text.contains("count: 100") && text.matches("count: 1,").count() == 2);
}

/// Generators that say all that there is to be said.
pub(super) const EVERY_WORD: &[&str] = &[
    "{kafka: {address: 'a:1', topic: t, acks: leader, compression: lz4, create_topic: true, \
     user: u, password: p, message: block, in_flight: 1, timeout: 2s, tls: {}}, payload: ascii}",
    "{nats: {address: 'a:1', subject: t, acks: jetstream, token: x}, payload: ascii}",
    "{amqp: {address: 'a:1', routing_key: '', exchange: e, acks: none, mandatory: false, vhost: v, persistent: true}, \
     payload: ascii}",
];

#[test]
fn configured_values_are_kept() {
    let plan = plan_of(EVERY_WORD);
    let json = serde_json::to_value(&plan.generators).unwrap();
    let kafka = &json[0]["transport"]["kafka"];
    assert_eq!(kafka["compression"], "lz4");
    assert_eq!(kafka["login"]["password"], "p");
    assert_eq!(kafka["producer"]["message"], "block");
    assert!(kafka["producer"]["tls"].is_object());
    assert_eq!(json[1]["transport"]["nats"]["login"]["token"], "x");
    let amqp = &json[2]["transport"]["amqp"];
    assert_eq!(
        (&amqp["confirms"], &amqp["mandatory"]),
        (&false.into(), &false.into())
    );
    let again: Vec<stillwell_plan::GeneratorPlan> = serde_json::from_value(json).unwrap();
    assert_eq!(again, plan.generators);
}

#[test]
fn a_timeout_of_kafka_fits_in_its_requests() {
    let text = |timeout: &str| {
        format!(
            "isolation: {{network: no}}\nworkload:\n  generators:\n    - {{kafka: {{address: 'a:1', \
             topic: t, timeout: {timeout}}}, payload: ascii, rate: 1k/s}}\n"
        )
    };
    for longest in ["24d", "2147483647ms"] {
        assert!(run_plan(&text(longest)).is_ok(), "{longest}");
    }
    for too_long in ["2147483648ms", "25d", "200000d"] {
        let message = run_plan(&text(too_long)).unwrap_err().to_string();
        assert!(message.contains("the `timeout` of a kafka"), "{message}");
        assert!(message.contains("at most 2147483.647s"), "{message}");
    }
}

#[test]
fn a_mistake_in_a_producer_is_reported_at_its_place() {
    for (generator, expected) in [
        ("kafka: {address: 'a:1'}", "`topic`"),
        ("kafka: {address: 'a:0', topic: t}", "port 0"),
        ("kafka: {address: 'a:1', topic: 'a b'}", "a topic's name"),
        ("kafka: {address: 'a:1', topic: ..}", "a topic's name"),
        ("kafka: {address: 'a:1', topic: t, acks: some}", "`some`"),
        (
            "kafka: {address: 'a:1', topic: t, compresion: lz4}",
            "`compression`",
        ),
        (
            "kafka: {address: 'a:1', topic: t, acks: none, in_flight: 3}",
            "no effect",
        ),
        ("kafka: {address: 'a:1', topic: t, in_flight: 0}", "100000"),
        (
            "kafka: {address: 'a:1', topic: t, timeout: 0s}",
            "a length of zero",
        ),
        (
            "kafka: {address: 'a:1', topic: t, password: p}",
            "without a user",
        ),
        ("kafka: {address: 'a:1', topic: t, tls: }", "`tls`"),
        ("nats: {address: 'a:1', subject: 'a b'}", "no blanks"),
        ("nats: {address: 'a:1', subject: a..b}", "empty word"),
        ("nats: {address: 'a:1', subject: a.>}", "subscribers"),
        (
            "nats: {address: 'a:1', subject: a, user: u, token: t}",
            "both",
        ),
        ("amqp: {address: 'a:1'}", "`routing_key`"),
        ("amqp: {address: 'a:1', routing_key: q, acks: all}", "`all`"),
        ("amqp: 'a:1'", "map"),
    ] {
        let text = format!(
            "isolation: {{network: no}}\ntarget: {{command: ./x}}\nvariants: {{a: {{}}, b: {{}}}}\n\
             workload:\n  generators:\n    - {generator}\n      payload: ascii\n      rate: 1k/s\n"
        );
        let diagnostics = codes(&text);
        assert!(
            diagnostics
                .iter()
                .any(|(code, line)| code.starts_with('W') && *line == 6),
            "{generator}: {diagnostics:?}"
        );
        let rendered = rendered_diagnostics(&text);
        assert!(rendered.contains(expected), "{generator}: {rendered}");
    }
}

#[test]
fn a_broker_outside_of_the_network_of_a_run_is_noted() {
    let text = "workload:\n  generators:\n    - {nats: {address: '127.0.0.1:1', subject: a}, payload: json}\n";
    let warnings = |text: &str| run_plan(text).unwrap().warnings.to_string();
    assert!(
        warnings(text).contains("isolation: {network: no}"),
        "{}",
        warnings(text)
    );
    let apart = format!("isolation: {{network: no}}\n{text}");
    assert!(!warnings(&apart).contains("isolation"));
    let linked = text.replace("127.0.0.1", "10.64.1.2");
    let linked = format!("network: {{}}\ntarget: {{command: ./x}}\n{linked}");
    assert!(!warnings(&linked).contains("isolation"));
}
