//! Records for a topic of Kafka: a block a batch, a batch a request.
//!
//! Each connection goes to one broker, and puts its batches to the partitions that this
//! broker leads in turns; connections are divided among the brokers that lead any.

use std::sync::Arc;
use std::time::Duration;

use stillwell_broker::Malformed;
use stillwell_broker::kafka::{
    Acks, BatchWriter, Compression, Metadata, Producer, Refusal, Response, read, read_produced,
    read_sasl, write_metadata, write_sasl_handshake, write_sasl_plain,
};
use stillwell_metric::Outcome;
use stillwell_plan::generator::{KafkaAcks, KafkaCompression, KafkaPlan, ProducerPlan};
use stillwell_scope::clock;
use stillwell_wire::tls::TlsError;
use tokio::time::sleep;

use super::encoded::{Cut, Pieces};
use super::link::{Link, Security};
use super::{Broker, BrokerMessage, Loss, Session};

/// The pause before the next request about a topic that is being made.
const METADATA_RETRY: Duration = Duration::from_millis(100);

/// Maximum number of requests about a topic that is being made: 50 pauses, which take 5 s.
const METADATA_TRIES: u32 = 51;

/// Requests while a connection is opened all have this number.
const OPENING_NUMBER: i32 = 0;

/// The common part of all connections of a generator.
#[derive(Clone, Debug)]
pub(crate) struct Kafka {
    plan: Arc<KafkaPlan>,
    security: Option<Security>,
}

impl Kafka {
    pub(crate) fn new(plan: &KafkaPlan) -> Result<Self, TlsError> {
        Ok(Self {
            security: Security::of(&plan.producer)?,
            plan: Arc::new(plan.clone()),
        })
    }

    /// A connection on which it was said who we are.
    async fn dial(&self, address: &str) -> Result<Link, Outcome> {
        let mut link = Link::open(address, self.security.as_ref()).await?;
        let Some(login) = &self.plan.login else {
            return Ok(link);
        };
        let mut out = Vec::new();
        write_sasl_handshake(OPENING_NUMBER, &mut out);
        call(&mut link, &mut out, read_sasl)
            .await?
            .map_or(Ok(()), refused)?;
        write_sasl_plain(&login.user, &login.password, OPENING_NUMBER, &mut out);
        call(&mut link, &mut out, read_sasl)
            .await?
            .map_or(Ok(()), refused)?;
        Ok(link)
    }

    /// The topic, once it has leaders. A topic that is being made has none at first.
    async fn metadata(&self, link: &mut Link) -> Result<Metadata, Outcome> {
        let plan = &self.plan;
        let mut tries_left = tries(plan.create_topic);
        let mut out = Vec::new();
        loop {
            write_metadata(&plan.topic, plan.create_topic, OPENING_NUMBER, &mut out);
            let metadata = call(link, &mut out, Metadata::read).await?;
            tries_left -= 1;
            if let Some(result) = topic_result(metadata, tries_left) {
                return result;
            }
            sleep(METADATA_RETRY).await;
        }
    }
}

/// Returns the maximum number of requests about the topic.
const fn tries(create_topic: bool) -> u32 {
    match create_topic {
        true => METADATA_TRIES,
        false => 1,
    }
}

/// Returns the result of an answer about the topic, or `None` if the next answer may have a leader.
fn topic_result(metadata: Metadata, tries_left: u32) -> Option<Result<Metadata, Outcome>> {
    let (outcome, is_final) = match metadata.refusal {
        None if !metadata.partitions.is_empty() => return Some(Ok(metadata)),
        None => (Outcome::Status5xx, false),
        Some(refusal) => (outcome_of(refusal), !matches!(refusal, Refusal(3 | 5))),
    };
    (is_final || tries_left == 0).then_some(Err(outcome))
}

fn refused(refusal: Refusal) -> Result<(), Outcome> {
    Err(outcome_of(refusal))
}

const fn outcome_of(refusal: Refusal) -> Outcome {
    match refusal.is_client_error() {
        true => Outcome::Status4xx,
        false => Outcome::Status5xx,
    }
}

/// Returns the leader to which the connection with number `place` goes. `partitions` are not
/// empty, each with its leader.
fn leader_of(place: usize, partitions: &[(i32, i32)]) -> i32 {
    let mut leaders: Vec<i32> = partitions.iter().map(|(_, leader)| *leader).collect();
    leaders.sort_unstable();
    leaders.dedup();
    leaders[place % leaders.len()]
}

/// Says what is in `out` and reads the answer.
async fn call<T>(
    link: &mut Link,
    out: &mut Vec<u8>,
    read_body: impl Fn(&[u8]) -> Result<T, Malformed>,
) -> Result<T, Outcome> {
    link.send(out).await?;
    let answer = link.receive(|input| {
        let Some((Response { body, .. }, used)) = read(input)? else {
            return Ok(None);
        };
        Ok(Some((read_body(body)?, used)))
    });
    answer.await
}

impl Broker for Kafka {
    type Session = KafkaSession;

    fn producer(&self) -> &ProducerPlan {
        &self.plan.producer
    }

    async fn open(&self, place: usize) -> Result<(Link, KafkaSession), Outcome> {
        let plan = &self.plan;
        let mut link = self.dial(&plan.producer.address).await?;
        let metadata = self.metadata(&mut link).await?;
        let leader = leader_of(place, &metadata.partitions);
        let led = metadata.partitions.iter().filter(|(_, of)| *of == leader);
        let partitions = led.map(|(partition, _)| *partition).collect();
        let mut brokers = metadata.brokers.iter();
        let address = brokers.find(|(broker, _)| *broker == leader);
        // Where it is not among the brokers, it is about to be another.
        let (_, address) = address.ok_or(Outcome::Status5xx)?;
        if *address != plan.producer.address {
            link = self.dial(address).await?;
        }
        Ok((link, KafkaSession::new(plan, partitions)))
    }
}

/// One connection's words.
#[derive(Debug)]
pub(crate) struct KafkaSession {
    acks: KafkaAcks,
    producer: Producer,
    batches: BatchWriter,
    /// At least one.
    partitions: Vec<i32>,
    /// Index of the partition whose turn it is.
    turn: usize,
    /// The numbers of the next request and of the next answer.
    number: i32,
    answer: i32,
    /// True once another broker leads one of the partitions.
    is_moved: bool,
}

impl KafkaSession {
    fn new(plan: &KafkaPlan, partitions: Vec<i32>) -> Self {
        let acks = match plan.acks {
            KafkaAcks::None => Acks::None,
            KafkaAcks::Leader => Acks::Leader,
            KafkaAcks::All => Acks::All,
        };
        let compression = match plan.compression {
            KafkaCompression::None => Compression::None,
            KafkaCompression::Gzip => Compression::Gzip,
            KafkaCompression::Snappy => Compression::Snappy,
            KafkaCompression::Lz4 => Compression::Lz4,
            KafkaCompression::Zstd => Compression::Zstd,
        };
        let timeout_ms = plan.producer.timeout.as_u64() / 1_000_000;
        // No timeout is longer than `KafkaPlan::TIMEOUT_MAX`.
        let timeout_ms = i32::try_from(timeout_ms).unwrap_or(i32::MAX);
        Self {
            acks: plan.acks,
            producer: Producer::new(&plan.topic, acks, timeout_ms),
            batches: BatchWriter::new(compression),
            partitions,
            turn: 0,
            number: 0,
            answer: 0,
            is_moved: false,
        }
    }
}

impl Session for KafkaSession {
    fn is_answered(&self) -> bool {
        self.acks != KafkaAcks::None
    }

    fn write(
        &mut self,
        bytes: &[u8],
        cuts: &[Cut],
        out: &mut Vec<u8>,
        pieces: &mut Pieces,
    ) -> Result<u64, Outcome> {
        let now_ms = (clock::wall().as_u64() / 1_000_000).cast_signed();
        let partition = self.partitions[self.turn % self.partitions.len()];
        self.turn = self.turn.wrapping_add(1);
        let messages = cuts.iter().map(|cut| &bytes[cut.start..cut.end]);
        let batches = &mut self.batches;
        let written = self.producer.write(partition, self.number, out, |out| {
            batches.write(messages, now_ms, out)
        });
        written.map_err(|_| Outcome::SendFailed)?;
        self.number = self.number.wrapping_add(1);
        pieces.push(out.len(), cuts);
        Ok(1)
    }

    fn read(
        &mut self,
        input: &[u8],
        _out: &mut Vec<u8>,
    ) -> Result<Option<(Option<BrokerMessage>, usize)>, Loss> {
        if self.is_moved && self.answer == self.number {
            return Err(Loss {
                outcome: Outcome::Status5xx,
                is_failure: false,
            });
        }
        let Some((answer, used)) = read(input)? else {
            return Ok(None);
        };
        if answer.number != self.answer {
            return Err(Loss::failure(Outcome::Malformed));
        }
        self.answer = self.answer.wrapping_add(1);
        let refusal = read_produced(answer.body)?;
        self.is_moved |= refusal.is_some_and(Refusal::needs_metadata);
        let oldest = BrokerMessage::Oldest(refusal.map(outcome_of));
        Ok(Some((Some(oldest), used)))
    }

    /// Batches in flight may be for partitions that have not moved.
    fn is_leaving(&self) -> bool {
        self.is_moved
    }

    /// A request that is never answered is taken in with those before it.
    fn write_goodbye(&mut self, _out: &mut Vec<u8>) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use stillwell_plan::generator::MessageOf;
    use stillwell_units::{Nanos, ShortText};

    use super::*;

    fn session() -> KafkaSession {
        let plan = KafkaPlan {
            producer: ProducerPlan {
                address: "127.0.0.1:9092".to_owned(),
                tls: None,
                message: MessageOf::Event,
                in_flight: 4,
                timeout: Nanos::from_secs(5),
            },
            topic: ShortText::try_from("a").unwrap(),
            acks: KafkaAcks::Leader,
            compression: KafkaCompression::None,
            create_topic: false,
            login: None,
        };
        KafkaSession::new(&plan, vec![0, 1])
    }

    fn write(session: &mut KafkaSession) {
        let cut = Cut {
            start: 0,
            end: 1,
            source_end: 1,
        };
        let (mut out, mut pieces) = (Vec::new(), Pieces::default());
        let answers = session.write(b"x", &[cut], &mut out, &mut pieces);
        assert_eq!(answers, Ok(1));
    }

    /// The response to request `number`, with an error code.
    fn response(number: i32, code: i16) -> Vec<u8> {
        let mut body = number.to_be_bytes().to_vec();
        // One topic, `a`, with one partition, 0.
        body.extend_from_slice(&[0, 0, 0, 1, 0, 1, b'a', 0, 0, 0, 1, 0, 0, 0, 0]);
        body.extend_from_slice(&code.to_be_bytes());
        let mut response = i32::try_from(body.len()).unwrap().to_be_bytes().to_vec();
        response.append(&mut body);
        response
    }

    fn read_one(session: &mut KafkaSession, input: &[u8]) -> Option<BrokerMessage> {
        let (message, used) = session.read(input, &mut Vec::new()).unwrap()?;
        assert_eq!(used, input.len());
        message
    }

    #[test]
    fn connections_are_divided_among_all_leaders_by_their_number() {
        let partitions = [(0, 7), (1, 3), (2, 7), (3, 5)];
        let leaders = [0, 1, 2, 3, 4].map(|place| leader_of(place, &partitions));
        assert_eq!(leaders, [3, 5, 7, 3, 5]);
    }

    #[test]
    fn a_topic_that_is_not_made_is_refused_by_the_last_answer() {
        assert_eq!([false, true].map(tries), [1, 51]);
        let (client, server) = (Outcome::Status4xx, Outcome::Status5xx);
        // No such topic, no leader, no leader either, and no permission.
        for (refusal, is_awaited, outcome) in [
            (Some(Refusal(3)), true, client),
            (Some(Refusal(5)), true, server),
            (None, true, server),
            (Some(Refusal(29)), false, client),
        ] {
            let metadata = Metadata {
                refusal,
                ..Metadata::default()
            };
            let early = (!is_awaited).then_some(Err(outcome));
            assert_eq!(topic_result(metadata.clone(), 1), early, "{refusal:?}");
            let last = topic_result(metadata, 0);
            assert_eq!(last, Some(Err(outcome)), "{refusal:?}");
        }
        let made = Metadata {
            partitions: vec![(0, 7)],
            ..Metadata::default()
        };
        assert_eq!(topic_result(made.clone(), 0), Some(Ok(made)));
    }

    #[test]
    fn batches_in_flight_are_answered_before_a_session_with_a_moved_partition_ends() {
        let mut session = session();
        for _ in 0..3 {
            write(&mut session);
        }
        // Not the leader of the partition any more.
        let refused = Some(BrokerMessage::Oldest(Some(Outcome::Status5xx)));
        assert!(!session.is_leaving());
        assert_eq!(read_one(&mut session, &response(0, 6)), refused);
        assert!(session.is_leaving());
        // Nothing has arrived, and two batches are in flight.
        assert_eq!(read_one(&mut session, b""), None);
        let stored = Some(BrokerMessage::Oldest(None));
        for number in [1, 2] {
            assert_eq!(read_one(&mut session, &response(number, 0)), stored);
            assert!(session.is_leaving());
        }
        let loss = Loss {
            outcome: Outcome::Status5xx,
            is_failure: false,
        };
        assert_eq!(session.read(b"", &mut Vec::new()), Err(loss));
    }
}
