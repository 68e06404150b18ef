//! Producers that write to a message broker.

use serde::{Deserialize, Serialize};
use stillwell_units::{Nanos, ShortText};

use crate::tls::ClientTlsPlan;

/// The common part of producers for all brokers.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ProducerPlan {
    /// `host:port` of the broker.
    pub address: String,
    /// The settings of TLS, if it is used.
    pub tls: Option<Box<ClientTlsPlan>>,
    /// Content of one message.
    pub message: MessageOf,
    /// Blocks that may wait for their answers on one connection, at least one; where
    /// nothing is answered it has no effect.
    pub in_flight: u32,
    /// An answer that takes longer is given up, and the connection with it; above zero.
    pub timeout: Nanos,
}

/// Content of one message.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageOf {
    /// An event, without the line feed that ends it.
    #[default]
    Event,
    /// A whole block, as it is.
    Block,
}

/// Records for a topic of Kafka: a block a batch, a batch a request.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct KafkaPlan {
    /// The bootstrap broker and further settings.
    pub producer: ProducerPlan,
    /// The topic.
    pub topic: ShortText,
    /// The meaning of an acknowledgement.
    pub acks: KafkaAcks,
    /// Compression of a batch's records.
    pub compression: KafkaCompression,
    /// True if brokers create a missing topic.
    pub create_topic: bool,
    /// Credentials for SASL's PLAIN.
    pub login: Option<Login>,
}

impl KafkaPlan {
    /// The longest timeout: requests state it in milliseconds, with 31 bits. It is 24.8 days.
    pub const TIMEOUT_MAX: Nanos = Nanos::from_millis((1 << 31) - 1);
}

/// The state of a batch when it is acknowledged.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KafkaAcks {
    /// It is never answered.
    None,
    /// The partition's leader has it.
    Leader,
    /// All replicas in sync have it.
    All,
}

/// Compression of records.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KafkaCompression {
    /// Not at all.
    None,
    /// By gzip.
    Gzip,
    /// By Snappy.
    Snappy,
    /// By LZ4.
    Lz4,
    /// By Zstandard.
    Zstd,
}

/// A name and a password.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Login {
    /// The name.
    pub user: String,
    /// The password, which may be empty.
    pub password: String,
}

/// Messages for a subject of NATS.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct NatsPlan {
    /// The server, and the rest.
    pub producer: ProducerPlan,
    /// The subject.
    pub subject: String,
    /// The meaning of an acknowledgement.
    pub acks: NatsAcks,
    /// Credentials of the producer.
    pub login: NatsLogin,
}

/// The meaning of an acknowledgement of NATS.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NatsAcks {
    /// Messages are not answered.
    None,
    /// The server has taken a block in: it answers a `PING` behind it.
    Server,
    /// A stream of JetStream has stored every message of the block.
    Jetstream,
}

/// Credentials of a producer for NATS.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NatsLogin {
    /// No credentials.
    #[default]
    None,
    /// A user.
    User(Login),
    /// A token.
    Token(String),
}

/// Messages for an exchange of AMQP 0-9-1.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct AmqpPlan {
    /// The broker, and the rest.
    pub producer: ProducerPlan,
    /// The virtual host.
    pub virtual_host: ShortText,
    /// The exchange; empty for the default one, where the routing key names a queue.
    pub exchange: ShortText,
    /// The routing key.
    pub routing_key: ShortText,
    /// True if the broker confirms messages.
    pub confirms: bool,
    /// True if messages that find no queue are returned, and count as refused.
    pub mandatory: bool,
    /// True if messages survive a restart of the broker.
    pub persistent: bool,
    /// Credentials for PLAIN.
    pub login: Login,
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::generator::TransportPlan;

    /// Every broker with and without answers, and its properties as a text.
    pub(crate) fn brokers() -> Vec<(TransportPlan, &'static str)> {
        vec![
            (kafka(KafkaAcks::None), "kafka events"),
            (
                kafka(KafkaAcks::Leader),
                "kafka events response_times acknowledged refused",
            ),
            (nats(NatsAcks::None), "nats events"),
            (
                nats(NatsAcks::Server),
                "nats events response_times acknowledged refused",
            ),
            (amqp(false), "amqp events"),
            (
                amqp(true),
                "amqp events response_times acknowledged refused",
            ),
        ]
    }

    fn producer() -> ProducerPlan {
        ProducerPlan {
            address: "127.0.0.1:1".to_owned(),
            tls: None,
            message: MessageOf::Event,
            in_flight: 1,
            timeout: Nanos::SECOND,
        }
    }

    fn name() -> ShortText {
        "x".try_into().unwrap()
    }

    fn kafka(acks: KafkaAcks) -> TransportPlan {
        TransportPlan::Kafka(Box::new(KafkaPlan {
            producer: producer(),
            topic: name(),
            acks,
            compression: KafkaCompression::None,
            create_topic: false,
            login: None,
        }))
    }

    fn nats(acks: NatsAcks) -> TransportPlan {
        TransportPlan::Nats(Box::new(NatsPlan {
            producer: producer(),
            subject: name().into(),
            acks,
            login: NatsLogin::None,
        }))
    }

    fn amqp(confirms: bool) -> TransportPlan {
        TransportPlan::Amqp(Box::new(AmqpPlan {
            producer: producer(),
            virtual_host: name(),
            exchange: name(),
            routing_key: name(),
            confirms,
            mandatory: false,
            persistent: false,
            login: Login {
                user: String::new(),
                password: String::new(),
            },
        }))
    }
}
