//! A client and a server, with nothing but bytes between them.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::h2::{H2ErrorCode, H2ResponseBlock, H2StreamFailure, TrailerBlock};

/// One request and its answer.
#[derive(Clone, Debug)]
struct Exchange {
    request_bytes: usize,
    response_bytes: usize,
    trailers: bool,
    /// Given up by the client after so many rounds.
    given_up: Option<usize>,
}

/// A body that is being sent.
#[derive(Clone, Copy, Debug)]
struct Sending {
    exchange: usize,
    sent: usize,
    total: usize,
}

/// The byte of a body at an offset.
fn byte(exchange: usize, offset: usize) -> u8 {
    u8::try_from((31 * exchange + offset) % 251).unwrap()
}

/// The next part of a body, and whether it is the last.
fn next_part(sending: Sending) -> (Vec<u8>, bool) {
    let end = sending.total.min(sending.sent + 4_000);
    let offsets = sending.sent..end;
    let part = offsets.map(|offset| byte(sending.exchange, offset));
    (part.collect(), end == sending.total)
}

#[derive(Debug, Default, PartialEq)]
struct Received {
    exchange: usize,
    bytes: usize,
    ended: bool,
    trailers: bool,
}

struct Driver {
    client: Client,
    server: Server,
    exchanges: Vec<Exchange>,
    /// Exchanges that are still to be started, or were refused.
    waiting: Vec<usize>,
    client_sending: HashMap<Stream, Sending>,
    client_received: HashMap<Stream, Received>,
    server_sending: HashMap<Stream, Sending>,
    server_received: HashMap<Stream, Received>,
    done: Vec<Option<Received>>,
    round: usize,
}

impl Driver {
    fn new(exchanges: Vec<Exchange>, client: Limits, server: Limits) -> Self {
        Self {
            client: Client::new(client),
            server: Server::new(server),
            done: exchanges.iter().map(|_| None).collect(),
            waiting: (0..exchanges.len()).collect(),
            exchanges,
            client_sending: HashMap::new(),
            client_received: HashMap::new(),
            server_sending: HashMap::new(),
            server_received: HashMap::new(),
            round: 0,
        }
    }

    fn start(&mut self) {
        while self.client.requests_available() > 0 {
            let Some(index) = self.waiting.pop() else {
                return;
            };
            let exchange = &self.exchanges[index];
            let (method, body) = match exchange.request_bytes {
                0 => ("GET", BodyLength::None),
                bytes if bytes % 2 == 0 => ("POST", BodyLength::Bytes(bytes as u64)),
                _ => ("POST", BodyLength::Unknown),
            };
            let request = H2RequestBlock::new(method, Scheme::Http, "h", "/", &[]).unwrap();
            let number = index.to_string();
            let extra = [("x-exchange", number.as_bytes())];
            let slot = self.client.next_slot();
            let stream = self.client.request_with(&request, &extra, body).unwrap();
            assert_eq!(stream.slot(), slot);
            let received = Received {
                exchange: index,
                ..Received::default()
            };
            self.client_received.insert(stream, received);
            if exchange.request_bytes > 0 {
                let sending = Sending {
                    exchange: index,
                    sent: 0,
                    total: exchange.request_bytes,
                };
                self.client_sending.insert(stream, sending);
                self.client_send(stream);
            }
        }
    }

    fn client_send(&mut self, stream: Stream) {
        let Some(sending) = self.client_sending.get_mut(&stream) else {
            return;
        };
        loop {
            let (part, is_last) = next_part(*sending);
            let taken = self.client.send_body(stream, &part, is_last).unwrap();
            sending.sent += taken;
            if is_last || taken < part.len() {
                return;
            }
        }
    }

    fn server_send(&mut self, stream: Stream) {
        let Some(sending) = self.server_sending.get_mut(&stream) else {
            return;
        };
        let trailers = self.exchanges[sending.exchange].trailers;
        loop {
            let (part, is_last) = next_part(*sending);
            let ends = is_last && !trailers;
            let taken = self.server.send_body(stream, &part, ends).unwrap();
            sending.sent += taken;
            if is_last || taken < part.len() {
                break;
            }
        }
        if trailers && sending.sent == sending.total {
            let trailers = TrailerBlock::new(&[("grpc-status", "0")]).unwrap();
            self.server.send_trailers(stream, &trailers).unwrap();
        }
    }

    fn respond(&mut self, stream: Stream, index: usize) {
        let exchange = self.exchanges[index].clone();
        let response = H2ResponseBlock::new(200, &[]).unwrap();
        let body = match (exchange.response_bytes, exchange.trailers) {
            (0, false) => BodyLength::None,
            (bytes, _) if bytes % 2 == 0 && bytes > 0 => BodyLength::Bytes(bytes as u64),
            _ => BodyLength::Unknown,
        };
        self.server.respond(stream, &response, body).unwrap();
        if body != BodyLength::None {
            let sending = Sending {
                exchange: index,
                sent: 0,
                total: exchange.response_bytes,
            };
            self.server_sending.insert(stream, sending);
            self.server_send(stream);
        }
    }

    /// Gives `bytes` of the client's output to the server.
    fn give_server(&mut self, bytes: usize) {
        let bytes = bytes.min(self.client.output().len());
        let input = self.client.output()[..bytes].to_vec();
        self.client.sent(bytes);
        let mut read = 0;
        loop {
            let (mut answer, mut room) = (None, None);
            let (taken, event) = self.server.advance(&input[read..]).unwrap();
            read += taken;
            match event {
                None => return,
                Some(ServerEvent::Head { stream, head }) => {
                    let number = head.fields.value("x-exchange").unwrap();
                    let exchange = str::from_utf8(number).unwrap().parse().unwrap();
                    let received = Received {
                        exchange,
                        ..Received::default()
                    };
                    self.server_received.insert(stream, received);
                }
                Some(ServerEvent::Body { stream, bytes }) => {
                    take(self.server_received.get_mut(&stream).unwrap(), bytes);
                }
                Some(ServerEvent::End { stream, .. }) => {
                    let received = &self.server_received[&stream];
                    assert_eq!(
                        received.bytes,
                        self.exchanges[received.exchange].request_bytes
                    );
                    answer = Some((stream, received.exchange));
                }
                Some(ServerEvent::Failed { stream, .. }) => {
                    let exchange = self.server_received[&stream].exchange;
                    assert!(
                        self.exchanges[exchange].given_up.is_some(),
                        "nobody gave it up"
                    );
                    self.server_sending.remove(&stream);
                }
                Some(ServerEvent::Room { stream }) => room = Some(stream),
            }
            if let Some((stream, exchange)) = answer {
                self.respond(stream, exchange);
            }
            if let Some(stream) = room {
                self.server_send(stream);
            }
        }
    }

    /// Gives `bytes` of the server's output to the client.
    fn give_client(&mut self, bytes: usize) {
        let bytes = bytes.min(self.server.output().len());
        let input = self.server.output()[..bytes].to_vec();
        self.server.sent(bytes);
        let mut read = 0;
        loop {
            let mut room = None;
            let (taken, event) = self.client.advance(&input[read..]).unwrap();
            read += taken;
            match event {
                None => return,
                Some(ClientEvent::Head { head, .. }) => assert_eq!(head.status, 200),
                Some(ClientEvent::Body { stream, bytes }) => {
                    take(self.client_received.get_mut(&stream).unwrap(), bytes);
                }
                Some(ClientEvent::End { stream, trailers }) => {
                    let mut received = self.client_received.remove(&stream).unwrap();
                    received.ended = true;
                    received.trailers = trailers.is_some();
                    let exchange = received.exchange;
                    assert_eq!(
                        self.done[exchange].replace(received),
                        None,
                        "it ended twice"
                    );
                }
                // Sent before the server had said how many it takes.
                Some(ClientEvent::Failed { stream, cause }) => {
                    assert_eq!(cause, H2StreamFailure::Refused);
                    let received = self.client_received.remove(&stream).unwrap();
                    self.client_sending.remove(&stream);
                    self.waiting.push(received.exchange);
                }
                Some(ClientEvent::Room { stream }) => room = Some(stream),
            }
            if let Some(stream) = room {
                self.client_send(stream);
            }
        }
    }

    fn give_up(&mut self) {
        let due: Vec<Stream> = self
            .client_received
            .iter()
            .filter(|(_, received)| {
                let given_up = self.exchanges[received.exchange].given_up;
                given_up.is_some_and(|round| round <= self.round)
            })
            .map(|(stream, _)| *stream)
            .collect();
        for stream in due {
            self.client.reset(stream, H2ErrorCode::CANCEL);
            let received = self.client_received.remove(&stream).unwrap();
            let exchange = received.exchange;
            self.done[exchange] = Some(received);
        }
    }

    fn run(&mut self, pieces: &[(usize, usize)]) {
        for (to_server, to_client) in pieces.iter().cycle().take(200_000) {
            self.start();
            self.give_server(*to_server);
            self.give_client(*to_client);
            self.give_up();
            self.round += 1;
            if self.done.iter().all(Option::is_some) {
                return;
            }
        }
        panic!("stuck: {:?}", self.done);
    }
}

fn take(received: &mut Received, bytes: &[u8]) {
    for (offset, received_byte) in bytes.iter().enumerate() {
        assert_eq!(
            *received_byte,
            byte(received.exchange, received.bytes + offset),
            "other bytes"
        );
    }
    received.bytes += bytes.len();
}

fn any_exchange() -> impl Strategy<Value = Exchange> {
    let bytes = || prop_oneof![2 => Just(0_usize), 2 => 1_usize..50, 1 => 50_usize..30_000];
    let given_up = prop_oneof![5 => Just(None), 1 => (0_usize..6).prop_map(Some)];
    (bytes(), bytes(), any::<bool>(), given_up).prop_map(
        |(request_bytes, response_bytes, trailers, given_up)| Exchange {
            request_bytes,
            response_bytes,
            trailers,
            given_up,
        },
    )
}

fn any_limits() -> impl Strategy<Value = Limits> {
    let window = || prop_oneof![300_u32..3_000, 3_000_u32..200_000];
    let table = prop_oneof![Just(0_u32), Just(4096), Just(10_000)];
    (1_u32..20, window(), window(), table, 500_usize..40_000).prop_map(
        |(streams, stream_window, connection_window, table, output)| Limits {
            concurrent_streams_max: streams,
            stream_window_bytes: stream_window,
            connection_window_bytes: connection_window,
            header_table_bytes: table,
            output_bytes_max: output,
            ..Limits::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn for_all_exchanges_windows_and_cuts_all_of_it_arrives(
        exchanges in prop::collection::vec(any_exchange(), 1..25),
        client in any_limits(),
        server in any_limits(),
        // Cuts at every byte are for the tests of either side.
        pieces in prop::collection::vec((40_usize..20_000, 1_usize..20_000), 1..8),
    ) {
        let mut driver = Driver::new(exchanges, client, server);
        driver.run(&pieces);
        for (received, exchange) in driver.done.iter().flatten().zip(&driver.exchanges) {
            if received.ended {
                prop_assert_eq!(received.bytes, exchange.response_bytes);
                prop_assert_eq!(received.trailers, exchange.trailers);
            } else {
                prop_assert!(exchange.given_up.is_some());
            }
        }
        prop_assert_eq!(driver.client.open_streams(), 0);
        // The server learns of abandoned requests with the output that is left.
        driver.give_server(usize::MAX);
        driver.give_client(usize::MAX);
        driver.give_server(usize::MAX);
        prop_assert_eq!(driver.server.open_streams(), 0);
    }
}
