//! Messages for a subject of NATS.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stillwell_broker::nats::{
    ConnectOptions, Greeting, JetStreamAck, ServerMessage, SubjectPublisher, read, write_connect,
    write_ping, write_pong,
};
use stillwell_metric::Outcome;
use stillwell_plan::generator::{NatsAcks, NatsLogin, NatsPlan, ProducerPlan};
use stillwell_scope::clock;
use stillwell_wire::Connection;
use stillwell_wire::tls::TlsError;

use super::encoded::{Cut, Pieces};
use super::link::{Link, Security};
use super::{Broker, BrokerMessage, Loss, Session};

/// The common part of all connections of a generator.
#[derive(Clone, Debug)]
pub(crate) struct Nats {
    plan: Arc<NatsPlan>,
    security: Option<Security>,
    /// Connections opened so far: each has an inbox of its own.
    opened: Arc<AtomicU64>,
}

impl Nats {
    pub(crate) fn new(plan: &NatsPlan) -> Result<Self, TlsError> {
        Ok(Self {
            security: Security::of(&plan.producer)?,
            plan: Arc::new(plan.clone()),
            opened: Arc::default(),
        })
    }

    /// Subject for answers that no other client waits for.
    fn inbox(&self) -> String {
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        let now = clock::wall().as_u64();
        format!("_INBOX.{:x}{now:x}{number:x}", process::id())
    }

    fn connect_options(&self, is_secure: bool) -> ConnectOptions<'_> {
        let anonymous = ConnectOptions {
            tls_required: is_secure,
            ..ConnectOptions::default()
        };
        match &self.plan.login {
            NatsLogin::None => anonymous,
            NatsLogin::User(login) => ConnectOptions {
                user: Some(&login.user),
                password: Some(&login.password),
                ..anonymous
            },
            NatsLogin::Token(token) => ConnectOptions {
                token: Some(token),
                ..anonymous
            },
        }
    }
}

/// The word of a server while a connection is opened.
enum NatsOpening {
    Greeting(Greeting),
    Ready,
    Refused(Outcome),
    Other,
}

fn opening(input: &[u8]) -> Result<Option<(NatsOpening, usize)>, stillwell_broker::Malformed> {
    let Some((word, used)) = read(input)? else {
        return Ok(None);
    };
    let word = match word {
        ServerMessage::Info(json) => NatsOpening::Greeting(Greeting::read(json)?),
        ServerMessage::Pong => NatsOpening::Ready,
        ServerMessage::Refusal(text) => NatsOpening::Refused(refusal(text)),
        _ => NatsOpening::Other,
    };
    Ok(Some((word, used)))
}

/// Outcome of a refusal: nearly all concern the client's messages.
fn refusal(text: &str) -> Outcome {
    // This text contains the subject, which may contain the words below.
    if is_unpublished(text) {
        return Outcome::Status4xx;
    }
    let text = text.to_ascii_lowercase();
    let server_reasons = ["shutdown", "stale", "maximum connections", "slow consumer"];
    if server_reasons.iter().any(|what| text.contains(what)) {
        Outcome::Status5xx
    } else {
        Outcome::Status4xx
    }
}

/// Returns true if NATS did not publish a message, and keeps the connection.
fn is_unpublished(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains("permissions violation for publish")
}

/// Returns true if NATS keeps the connection open after this refusal, which concerns a subject.
fn is_connection_kept(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.starts_with("permissions violation") || text.starts_with("invalid subject")
}

impl Broker for Nats {
    type Session = NatsSession;

    fn producer(&self) -> &ProducerPlan {
        &self.plan.producer
    }

    async fn open(&self, _place: usize) -> Result<(Link, NatsSession), Outcome> {
        let address = &self.plan.producer.address;
        let stream = Link::dial(address).await?;
        let mut link = Link::new(Connection::from(stream));
        // It greets in the clear, also where TLS follows.
        let greeting = match link.receive(opening).await? {
            NatsOpening::Greeting(greeting) => greeting,
            NatsOpening::Refused(outcome) => return Err(outcome),
            _ => return Err(Outcome::Malformed),
        };
        match (&self.security, link.connection) {
            (Some(security), Connection::Plain(stream)) => {
                link = Link::new(security.shake(stream, address).await?);
            }
            (_, _) if greeting.tls_required => return Err(Outcome::HandshakeFailed),
            (_, connection) => link.connection = connection,
        }
        let is_stored = self.plan.acks == NatsAcks::Jetstream;
        let inbox = is_stored.then(|| self.inbox());
        let publisher = SubjectPublisher::new(&self.plan.subject, inbox.as_deref());
        let options = self.connect_options(self.security.is_some());
        let mut out = Vec::new();
        write_connect(&options, &publisher, &mut out);
        link.send(&mut out).await?;
        loop {
            match link.receive(opening).await? {
                NatsOpening::Ready => break,
                NatsOpening::Refused(outcome) => return Err(outcome),
                NatsOpening::Greeting(_) | NatsOpening::Other => {}
            }
        }
        let session = NatsSession {
            acks: self.plan.acks,
            publisher,
            refused: None,
            number: 0,
            is_goodbye_sent: false,
        };
        Ok((link, session))
    }
}

/// One connection's words.
#[derive(Debug)]
pub(crate) struct NatsSession {
    acks: NatsAcks,
    publisher: SubjectPublisher,
    /// The last refusal of a message before the answer to its block.
    refused: Option<Outcome>,
    /// Of the last message.
    number: u64,
    is_goodbye_sent: bool,
}

impl Session for NatsSession {
    fn is_answered(&self) -> bool {
        self.acks != NatsAcks::None
    }

    fn write(
        &mut self,
        bytes: &[u8],
        cuts: &[Cut],
        out: &mut Vec<u8>,
        pieces: &mut Pieces,
    ) -> Result<u64, Outcome> {
        for (index, cut) in cuts.iter().enumerate() {
            self.number += 1;
            self.publisher
                .write(&bytes[cut.start..cut.end], self.number, out);
            if self.acks == NatsAcks::Server && index + 1 == cuts.len() {
                write_ping(out);
            }
            pieces.push(out.len(), std::slice::from_ref(cut));
        }
        Ok(match self.acks {
            NatsAcks::Jetstream => cuts.len() as u64,
            NatsAcks::None | NatsAcks::Server => 1,
        })
    }

    fn read(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<(Option<BrokerMessage>, usize)>, Loss> {
        let Some((word, used)) = read(input)? else {
            return Ok(None);
        };
        let message = match word {
            ServerMessage::Ping => {
                write_pong(out);
                None
            }
            ServerMessage::Pong if self.is_goodbye_sent => Some(BrokerMessage::Goodbye),
            ServerMessage::Pong => Some(BrokerMessage::Oldest(self.refused.take())),
            ServerMessage::Refusal(text) if is_unpublished(text) => match self.acks {
                NatsAcks::None => Some(BrokerMessage::Refused(refusal(text))),
                // NATS answers in order: it concerns the block of the next answer.
                NatsAcks::Server => {
                    self.refused = Some(refusal(text));
                    None
                }
                // No message of the subject reaches JetStream: it concerns the oldest.
                NatsAcks::Jetstream => Some(BrokerMessage::Oldest(Some(refusal(text)))),
            },
            ServerMessage::Refusal(text) if is_connection_kept(text) => {
                Some(BrokerMessage::Refused(refusal(text)))
            }
            // NATS closes the connection, and this is the reason.
            ServerMessage::Refusal(text) => return Err(Loss::failure(refusal(text))),
            ServerMessage::Message {
                subject,
                headers,
                payload,
            } => match self.publisher.number_of(subject) {
                Some(number) => {
                    let answer = JetStreamAck::read(headers, payload)?;
                    Some(BrokerMessage::Messages {
                        number,
                        and_before: false,
                        refusal: match answer {
                            JetStreamAck::Kept => None,
                            JetStreamAck::Refused(code) => Some(Outcome::of_status(code)),
                        },
                    })
                }
                None => None,
            },
            ServerMessage::Info(_) | ServerMessage::Ok => None,
        };
        Ok(Some((message, used)))
    }

    fn write_goodbye(&mut self, out: &mut Vec<u8>) -> bool {
        self.is_goodbye_sent = true;
        write_ping(out);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what a session reads in `input`.
    fn messages(acks: NatsAcks, mut input: &[u8]) -> Result<Vec<Option<BrokerMessage>>, Loss> {
        let mut session = NatsSession {
            acks,
            publisher: SubjectPublisher::new("a", None),
            refused: None,
            number: 0,
            is_goodbye_sent: false,
        };
        let (mut out, mut messages) = (Vec::new(), Vec::new());
        while let Some((message, used)) = session.read(input, &mut out)? {
            messages.push(message);
            input = &input[used..];
        }
        Ok(messages)
    }

    /// Its events counted as acknowledged.
    #[test]
    fn a_block_that_a_server_does_not_publish_is_refused() {
        let refused = Outcome::Status4xx;
        let unpublished = b"-ERR 'Permissions Violation for Publish to \"a\"'\r\nPONG\r\nPONG\r\n";
        assert_eq!(
            messages(NatsAcks::Server, unpublished),
            Ok(vec![
                None,
                Some(BrokerMessage::Oldest(Some(refused))),
                Some(BrokerMessage::Oldest(None)),
            ])
        );
        // Blocks have no answers that could show it.
        let counted = messages(NatsAcks::None, unpublished).unwrap();
        assert_eq!(counted[0], Some(BrokerMessage::Refused(refused)));
    }

    /// A block in flight counted as refused, and as lost with the connection.
    #[test]
    fn a_refusal_that_closes_the_connection_is_its_only_outcome() {
        let lost = |outcome| Err(Loss::failure(outcome));
        let counted = |outcome| Ok(vec![Some(BrokerMessage::Refused(outcome))]);
        let (client, server) = (Outcome::Status4xx, Outcome::Status5xx);
        let refusals = [
            ("Maximum Payload Violation", lost(client)),
            ("User Authentication Expired", lost(client)),
            ("Parser Error", lost(client)),
            ("Stale Connection", lost(server)),
            ("Slow Consumer", lost(server)),
            ("Invalid Subject", counted(client)),
            (
                "Permissions Violation for Subscription to \"a\"",
                counted(client),
            ),
        ];
        for (text, expected) in refusals {
            let input = format!("-ERR '{text}'\r\n");
            for acks in [NatsAcks::None, NatsAcks::Server, NatsAcks::Jetstream] {
                let read = messages(acks, input.as_bytes());
                assert_eq!(read, expected, "{text}, {acks:?}");
            }
        }
    }

    /// They waited for JetStream until their timeout.
    #[test]
    fn each_message_that_jetstream_does_not_receive_is_refused_at_once() {
        let unpublished = b"-ERR 'Permissions Violation for Publish to \"a\"'\r\n".repeat(2);
        let refused = Some(BrokerMessage::Oldest(Some(Outcome::Status4xx)));
        assert_eq!(
            messages(NatsAcks::Jetstream, &unpublished),
            Ok(vec![refused, refused])
        );
    }

    #[test]
    fn a_subject_does_not_change_the_outcome_of_a_refusal() {
        let refusals = [
            (
                "Permissions Violation for Publish to \"node.shutdown\"",
                Outcome::Status4xx,
            ),
            (
                "Permissions Violation for Publish with Reply of \"stale\"",
                Outcome::Status4xx,
            ),
            ("Authorization Violation", Outcome::Status4xx),
            ("Server Shutdown", Outcome::Status5xx),
            ("Stale Connection", Outcome::Status5xx),
            ("maximum connections exceeded", Outcome::Status5xx),
        ];
        for (text, outcome) in refusals {
            assert_eq!(refusal(text), outcome, "{text}");
        }
    }
}
