//! A producer and what speaks to it; real brokers take what they send in `.ci/brokers`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use stillwell_metric::Outcome;
use stillwell_plan::generator::{
    Concurrency, KafkaAcks, KafkaCompression, KafkaPlan, MessageOf, NatsAcks, NatsLogin, NatsPlan,
    ProducerPlan,
};
use stillwell_plan::payload::BlockShape;
use stillwell_plan::{GeneratorPlan, PayloadFormat, RatePlan, TransportPlan};
use stillwell_scope::PartError;
use stillwell_units::{ByteSize, EventRate, Nanos, ShortText};

use crate::{Fixture, LONG, blocks, plan, wait_until};

fn nats(acks: NatsAcks, in_flight: u32) -> (TcpListener, GeneratorPlan) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut plan = plan(TransportPlan::Nats(Box::new(NatsPlan {
        producer: ProducerPlan {
            address: listener.local_addr().unwrap().to_string(),
            tls: None,
            message: MessageOf::Event,
            in_flight,
            timeout: Nanos::from_secs(5),
        },
        subject: "a".to_owned(),
        acks,
        login: NatsLogin::None,
    })));
    plan.payload.format = PayloadFormat::Json;
    plan.payload.blocks = BlockShape::Events {
        count: 3,
        maximum: ByteSize::kib(4),
    };
    (listener, plan)
}

/// One connection as a server has it, behind its greeting.
struct Server {
    reader: BufReader<TcpStream>,
    messages: Vec<Vec<u8>>,
}

/// A message of a producer.
#[derive(Debug, Eq, PartialEq)]
enum ProducerMessage {
    Message,
    Ping,
    Pong,
    End,
}

impl Server {
    fn accept(listener: &TcpListener) -> Result<Self, PartError> {
        let (stream, _) = listener.accept()?;
        stream.set_read_timeout(Some(LONG))?;
        let mut server = Self {
            reader: BufReader::new(stream),
            messages: Vec::new(),
        };
        server.send("INFO {\"server_id\":\"x\"}\r\n")?;
        let mut line = String::new();
        server.reader.read_line(&mut line)?;
        assert!(line.starts_with("CONNECT {"), "{line}");
        assert_eq!(server.receive()?, ProducerMessage::Ping);
        server.send("PONG\r\n")?;
        Ok(server)
    }

    fn send(&mut self, text: &str) -> Result<(), PartError> {
        Ok(self.reader.get_mut().write_all(text.as_bytes())?)
    }

    /// Reads the first line of a message and some of its bytes. Returns the size of the message and
    /// these bytes.
    fn receive_begin(&mut self) -> Result<(usize, Vec<u8>), PartError> {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        let size = line.trim_end().strip_prefix("PUB a ");
        let size = size.ok_or("no message")?.parse::<usize>()?;
        let mut begin = vec![0; 256];
        self.reader.read_exact(&mut begin)?;
        Ok((size, begin))
    }

    fn receive(&mut self) -> Result<ProducerMessage, PartError> {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        match line.trim_end() {
            "" => Ok(ProducerMessage::End),
            "PING" => Ok(ProducerMessage::Ping),
            "PONG" => Ok(ProducerMessage::Pong),
            line => {
                let length = line
                    .strip_prefix("PUB a ")
                    .ok_or("a word that nobody asked for")?;
                let mut message = vec![0; length.parse::<usize>()? + 2];
                self.reader.read_exact(&mut message)?;
                assert_eq!(message.split_off(message.len() - 2), b"\r\n");
                self.messages.push(message);
                Ok(ProducerMessage::Message)
            }
        }
    }
}

#[test]
fn a_block_is_acknowledged_once_its_server_has_it() {
    let (listener, plan) = nats(NatsAcks::Server, 4);
    let set = blocks(&plan, 0);
    let mut fixture = Fixture::start(&plan);
    let messages = fixture.beside("server", move |stop| {
        let mut server = Server::accept(&listener)?;
        server.send("PING\r\n")?;
        let mut pongs = 0;
        loop {
            match server.receive()? {
                ProducerMessage::Ping => server.send("PONG\r\n")?,
                ProducerMessage::Message => {}
                ProducerMessage::Pong => pongs += 1,
                ProducerMessage::End => {
                    // The answer to our question, among what was to be written.
                    assert_eq!(pongs, 1);
                    return Ok(server.messages);
                }
            }
            if server.messages.len() > 100 {
                stop.cancel();
            }
        }
    });
    let messages = messages.recv_timeout(LONG).unwrap();
    let shards = fixture.finish();
    let shard = &shards[0];
    let lines: Vec<&[u8]> = set.bytes().split(|byte| *byte == b'\n').collect();
    assert!(
        messages
            .iter()
            .zip(lines)
            .all(|(message, line)| message == line)
    );
    let events = messages.len() as u64;
    assert_eq!(
        (shard.events.total(), shard.events_acknowledged.total()),
        (events, events)
    );
    assert_eq!(shard.blocks.total(), events / 3);
    assert_eq!(shard.requests.total(), events / 3);
    assert_eq!(shard.outcomes[Outcome::Ok.index()].total(), events / 3);
    let bytes = messages
        .iter()
        .map(|message| message.len() as u64)
        .sum::<u64>();
    assert_eq!(shard.bytes.total(), bytes);
    assert_eq!(shard.sent_units.total(), bytes + events);
}

#[test]
fn no_more_blocks_wait_for_answers_than_may() {
    let (listener, plan) = nats(NatsAcks::Server, 2);
    let fixture = Fixture::start(&plan);
    let mut server = Server::accept(&listener).unwrap();
    for _ in 0..2 {
        for _ in 0..3 {
            assert_eq!(server.receive().unwrap(), ProducerMessage::Message);
        }
        assert_eq!(server.receive().unwrap(), ProducerMessage::Ping);
    }
    // Nothing more comes until one is answered.
    let pause = Some(Duration::from_millis(200));
    server.reader.get_ref().set_read_timeout(pause).unwrap();
    assert!(server.reader.fill_buf().is_err());
    server
        .reader
        .get_ref()
        .set_read_timeout(Some(LONG))
        .unwrap();
    server.send("PONG\r\n").unwrap();
    assert_eq!(server.receive().unwrap(), ProducerMessage::Message);
    drop(server);
    wait_until(|| fixture.outcomes(Outcome::PeerClosed) >= 2);
    drop(listener);
    let shards = fixture.finish();
    assert_eq!(shards[0].events_acknowledged.total(), 3);
}

#[test]
fn what_was_not_written_when_a_connection_was_lost_follows_on_the_next() {
    let (listener, mut plan) = nats(NatsAcks::Server, 1);
    plan.rate = RatePlan::events(EventRate::try_new(300.0).unwrap());
    let set = blocks(&plan, 0);
    let mut fixture = Fixture::start(&plan);
    let messages = fixture.beside("server", move |stop| {
        let mut messages = Vec::new();
        for connection in 0..3 {
            let mut server = Server::accept(&listener)?;
            for _ in 0..5 {
                while server.receive()? == ProducerMessage::Message {}
                server.send("PONG\r\n")?;
            }
            if connection == 2 {
                stop.cancel();
                while server.receive()? != ProducerMessage::End {
                    server.send("PONG\r\n")?;
                }
            }
            messages.append(&mut server.messages);
        }
        Ok(messages)
    });
    let messages = messages.recv_timeout(LONG).unwrap();
    let shards = fixture.finish();
    let shard = &shards[0];
    // Nothing is sent twice: what was lost with a connection is left out, and counted.
    let lines: Vec<&[u8]> = set.bytes().split(|byte| *byte == b'\n').collect();
    let mut from = 0;
    for message in &messages {
        let position = lines[from..].iter().position(|line| line == message);
        from += position.unwrap() + 1;
    }
    assert!(shard.events.total() >= messages.len() as u64);
    assert_eq!(shard.connections.total(), 3);
    assert!(shard.outcomes[Outcome::PeerClosed.index()].total() >= 2);
}

/// It was sent again on each new connection.
#[test]
fn a_block_that_is_refused_before_it_is_whole_has_one_outcome_and_is_not_sent_again() {
    let (listener, mut plan) = nats(NatsAcks::Server, 1);
    // The buffers of both sockets do not have room for a block.
    let socket = socket2::SockRef::from(&listener);
    socket.set_recv_buffer_size(64 << 10).unwrap();
    if let TransportPlan::Nats(broker) = &mut plan.transport {
        broker.producer.message = MessageOf::Block;
    }
    plan.payload.blocks = BlockShape::Events {
        count: u32::MAX,
        maximum: ByteSize::mib(8),
    };
    plan.payload.cache = ByteSize::mib(32);
    let set = blocks(&plan, 0);
    let fixture = Fixture::start(&plan);
    let refusal = "-ERR 'Maximum Payload Violation'\r\n";
    // A block is sent again after a loss that is not its refusal.
    let losses = [
        (0, ""),
        (0, "-ERR 'Slow Consumer'\r\n"),
        (0, refusal),
        (1, refusal),
        (2, refusal),
    ];
    for (index, reason) in losses {
        let mut server = Server::accept(&listener).unwrap();
        let (size, begin) = server.receive_begin().unwrap();
        let expected = set.block(index).bytes;
        assert_eq!(size, expected.len());
        assert!(expected.starts_with(&begin), "not block {index}");
        // The server closes the connection, too, with bytes that it has not read.
        server.send(reason).unwrap();
    }
    wait_until(|| fixture.outcomes(Outcome::Status4xx) == 3);
    let shards = fixture.finish();
    let shard = &shards[0];
    let outcome = |outcome: Outcome| shard.outcomes[outcome.index()].total();
    let sent_again = [Outcome::PeerClosed, Outcome::Status5xx].map(outcome);
    assert_eq!((sent_again, outcome(Outcome::Status4xx)), ([1, 1], 3));
    assert_eq!(shard.requests.total(), 5);
    assert_eq!(shard.blocks.total(), 0);
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let (listener, plan) = nats(NatsAcks::Server, 1);
    let fixture = Fixture::start(&plan);
    let server = Server::accept(&listener).unwrap();
    wait_until(|| fixture.outcomes(Outcome::TimedOut) >= 1);
    let again = Server::accept(&listener).unwrap();
    drop((server, again, listener));
    let shards = fixture.finish();
    assert_eq!(shards[0].events_acknowledged.total(), 0);
}

#[test]
fn a_server_that_closes_together_with_its_goodbye_is_no_failure() {
    let (listener, mut plan) = nats(NatsAcks::None, 1);
    plan.rate = RatePlan::events(EventRate::try_new(300.0).unwrap());
    let mut fixture = Fixture::start(&plan);
    let served = fixture.beside("server", move |stop| {
        let mut server = Server::accept(&listener)?;
        while server.receive()? == ProducerMessage::Message {
            stop.cancel();
        }
        // The connection is closed long before all of this is read.
        server.send(&format!("{}PONG\r\n", "+OK\r\n".repeat(50_000)))
    });
    served.recv_timeout(LONG).unwrap();
    let shards = fixture.finish();
    assert_eq!(shards[0].connections.total(), 1);
    assert_eq!(shards[0].outcomes[Outcome::PeerClosed.index()].total(), 0);
}

#[test]
fn a_peer_without_nats_is_malformed() {
    let (listener, plan) = nats(NatsAcks::None, 1);
    let fixture = Fixture::start(&plan);
    let (mut stream, _) = listener.accept().unwrap();
    stream
        .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        .unwrap();
    wait_until(|| fixture.outcomes(Outcome::Malformed) == 1);
    drop((stream, listener));
    fixture.finish();
}

/// Two connections to Kafka, each with one block in flight.
fn kafka(bootstrap: &TcpListener) -> GeneratorPlan {
    let mut plan = plan(TransportPlan::Kafka(Box::new(KafkaPlan {
        producer: ProducerPlan {
            address: bootstrap.local_addr().unwrap().to_string(),
            tls: None,
            message: MessageOf::Event,
            in_flight: 1,
            timeout: Nanos::from(LONG),
        },
        topic: ShortText::try_from("a").unwrap(),
        acks: KafkaAcks::Leader,
        compression: KafkaCompression::None,
        create_topic: false,
        login: None,
    })));
    plan.payload.format = PayloadFormat::Json;
    plan.payload.blocks = BlockShape::Events {
        count: 3,
        maximum: ByteSize::kib(4),
    };
    plan.concurrency = Concurrency::try_new(2, 1).unwrap();
    plan
}

/// Reads a request of Kafka, whose length comes first.
fn read_request(stream: &mut TcpStream) {
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap();
    stream.read_exact(&mut vec![0; length]).unwrap();
}

/// The response to a request for metadata: each of `brokers` leads one partition.
fn metadata(brokers: [&TcpListener; 2]) -> Vec<u8> {
    let text = |text: &str| {
        let length = i16::try_from(text.len()).unwrap();
        [&length.to_be_bytes()[..], text.as_bytes()].concat()
    };
    // Number of the request, and no throttling.
    let mut response = vec![0_u8; 8];
    response.extend(2_i32.to_be_bytes());
    for (number, broker) in (0_i32..).zip(brokers) {
        let port = broker.local_addr().unwrap().port();
        response.extend(number.to_be_bytes());
        response.extend(text("127.0.0.1"));
        response.extend(i32::from(port).to_be_bytes());
        // No rack.
        response.extend((-1_i16).to_be_bytes());
    }
    // The cluster and its controller; one topic without an error, which is not internal.
    response.extend(text("cluster"));
    response.extend(0_i32.to_be_bytes());
    response.extend(1_i32.to_be_bytes());
    response.extend(0_i16.to_be_bytes());
    response.extend(text("a"));
    response.push(0);
    response.extend(2_i32.to_be_bytes());
    for number in 0_i32..2 {
        // No error, the partition, its leader, and empty lists of replicas.
        response.extend(0_i16.to_be_bytes());
        response.extend(number.to_be_bytes());
        response.extend(number.to_be_bytes());
        response.extend([0_u8; 8]);
    }
    let length = i32::try_from(response.len()).unwrap();
    [&length.to_be_bytes()[..], &response[..]].concat()
}

/// A broker that lost its connection must not be left without one for the rest of the run.
#[test]
fn a_connection_to_kafka_that_is_opened_again_goes_to_the_same_broker() {
    let brokers = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [first, second] = &brokers;
    let fixture = Fixture::start(&kafka(first));
    let accept = |listener: &TcpListener| {
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream
    };
    let accept_and_answer = || {
        let mut stream = accept(first);
        read_request(&mut stream);
        stream.write_all(&metadata([first, second])).unwrap();
        stream
    };
    // One of them stays.
    let bootstrap = [(); 2].map(|()| accept_and_answer());
    for _ in 0..2 {
        read_request(&mut accept(second));
        // The connection to the second broker is lost: the first broker answers, and is left.
        let length = accept_and_answer().read(&mut [0]).unwrap();
        assert_eq!(length, 0, "its batch went to the first broker");
    }
    drop((bootstrap, brokers));
    fixture.finish();
}
