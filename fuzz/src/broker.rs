//! Messages of brokers to producers.

use stillwell_broker::{Malformed, amqp, kafka, nats};

/// Reads word after word, as connections do. Each is at least a byte and no more than
/// there is, and the same when it is all that has come.
fn read_all<'a, T: PartialEq + std::fmt::Debug>(
    bytes: &'a [u8],
    read: impl Fn(&'a [u8]) -> Result<Option<(T, usize)>, Malformed>,
    mut look: impl FnMut(&T),
) {
    let mut at = 0;
    while let Ok(Some((word, used))) = read(&bytes[at..]) {
        assert!((1..=bytes.len() - at).contains(&used), "{word:?}");
        let alone = read(&bytes[at..at + used]);
        assert_eq!(
            alone.as_ref().ok().and_then(Option::as_ref),
            Some(&(word, used))
        );
        if let Ok(Some((word, _))) = alone {
            look(&word);
        }
        at += used;
    }
}

/// Protocol lines of a server, its greeting, and answers of JetStream. A number in an
/// answer's subject was given.
pub fn broker_nats(bytes: &[u8]) {
    let publisher = nats::SubjectPublisher::new("logs", Some("_INBOX.a"));
    read_all(bytes, nats::read, |word| match word {
        nats::ServerMessage::Info(json) => drop(nats::Greeting::read(json)),
        nats::ServerMessage::Message {
            subject,
            headers,
            payload,
        } => {
            if let Some(number) = publisher.number_of(subject) {
                let digits = subject
                    .trim_start_matches("_INBOX.a.")
                    .trim_start_matches('+');
                let digits = digits.trim_start_matches('0');
                assert!(digits == number.to_string() || number == 0);
            }
            std::hint::black_box(nats::JetStreamAck::read(headers, payload).is_ok());
        }
        _ => {}
    });
}

/// Frames of a broker with any content.
pub fn broker_amqp(bytes: &[u8]) {
    read_all(bytes, amqp::read, |frame| {
        if let amqp::ServerFrame::ChannelClosed { text, .. }
        | amqp::ServerFrame::ConnectionClosed { text, .. } = frame
        {
            assert!(text.len() <= 255);
        }
    });
}

/// Answers, each as all of what it could be. No partition has a leader below zero, and
/// no answer names more than it has bytes for.
pub fn broker_kafka(bytes: &[u8]) {
    let look = |body: &[u8]| {
        if let Ok(metadata) = kafka::Metadata::read(body) {
            assert!(metadata.partitions.is_sorted());
            assert!(metadata.partitions.iter().all(|(_, leader)| *leader >= 0));
            assert!(metadata.brokers.len() + metadata.partitions.len() <= body.len());
        }
        for refusal in [kafka::read_produced(body), kafka::read_sasl(body)] {
            assert!(!refusal.is_ok_and(|refusal| refusal == Some(kafka::Refusal(0))));
        }
    };
    read_all(bytes, kafka::read, |answer| look(answer.body));
    look(bytes);
}
