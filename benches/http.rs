//! HTTP POST at full speed: the generator beside a client of plain system calls,
//! both against our sink, as requests for each second of the client's CPU time.

#![expect(
    clippy::print_stdout,
    reason = "what a benchmark has to say, it prints"
)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use stillwell_benches::{Figure, RECEIVER_CPU, Side, compare, on, ours, plain};
use stillwell_payload::BlockSet;
use stillwell_plan::{PayloadFormat, TransportPlan};
use stillwell_scope::{Scope, Token};
use stillwell_units::{ByteSize, Nanos, Seed};

const ROUNDS: usize = 5;
const LENGTH: Duration = Duration::from_secs(2);
const CONNECTIONS: u16 = 16;

fn main() -> anyhow::Result<()> {
    for maximum in [ByteSize::kib(1), ByteSize::kib(16)] {
        bodies_up_to(maximum)?;
    }
    Ok(())
}

fn bodies_up_to(maximum: ByteSize) -> anyhow::Result<()> {
    let plan = |address: &str| {
        let transport = TransportPlan::Http {
            url: format!("http://{address}/bench"),
            headers: vec![("Content-Type".to_owned(), "text/plain".to_owned())],
            exchange: Box::default(),
        };
        ours::generator(transport, PayloadFormat::Syslog5424, maximum, CONNECTIONS)
    };
    let payload = plan("").payload;
    let set = BlockSet::build(&payload, payload.cache, Seed::from_number(1), None)?;
    let body_bytes = set.bytes().len() / set.len();
    println!(
        "HTTP POST at full speed, {CONNECTIONS} connections, bodies of {body_bytes} bytes in the mean"
    );
    let mut sides = [
        Side {
            name: "stillwell",
            turn: Box::new(|| ours::turn(&ours::http_sink(), plan, LENGTH)),
        },
        Side {
            name: "plain system calls",
            turn: Box::new(|| plain_turn(&set.bytes()[..body_bytes])),
        },
    ];
    compare(
        ROUNDS,
        "requests per client CPU second",
        Figure::operations_per_send_second,
        &mut sides,
    )
}

/// The plain client against our sink, with a body of the mean length.
fn plain_turn(body: &[u8]) -> anyhow::Result<Figure> {
    let mut scope = Scope::new(&Token::new());
    let sink = stillwell_sink::bind(&ours::http_sink())?;
    let address = sink.address().context("the sink has an address")?;
    sink.start(&mut scope, &on(RECEIVER_CPU))?;
    let mut request = format!(
        "POST /bench HTTP/1.1\r\nHost: {address}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(body);
    let answer_bytes = answer_length(address, &request)?;
    let request = Arc::new(request);
    let figure = plain::http_turn(
        &request,
        answer_bytes,
        usize::from(CONNECTIONS),
        address,
        LENGTH,
    )?;
    scope.close(Nanos::from_secs(10));
    Ok(figure)
}

/// Length of the sink's answer, which is always the same.
fn answer_length(address: SocketAddr, request: &[u8]) -> anyhow::Result<usize> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(request)?;
    let mut answer = vec![0; 4096];
    let mut length = 0;
    while !answer[..length].ends_with(b"\r\n\r\n") {
        let read = stream.read(&mut answer[length..])?;
        anyhow::ensure!(read > 0, "the sink closed instead of answering");
        length += read;
    }
    Ok(length)
}
