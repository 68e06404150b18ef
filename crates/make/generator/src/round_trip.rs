//! Requests of fixed length over TCP, and answers of fixed length: one in flight
//! on each connection.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use stillwell_metric::Outcome;
use stillwell_plan::generator::MessageLength;
use stillwell_scope::{Tasks, clock};
use stillwell_units::as_usize;
use stillwell_wire::dial;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;

use stillwell_wire::stream_outcome;
use stillwell_worker::{Backoff, Opener, Wait, Worker, watched};

/// Maximum time for an answer.
const TIMEOUT: Duration = Duration::from_secs(30);

const BUFFER_BYTES: usize = 64 << 10;

/// The common part of all connections of a generator.
#[derive(Clone, Debug)]
pub(crate) struct RoundTrip {
    /// `host:port` to dial.
    address: String,
    request_bytes: MessageLength,
    response_bytes: MessageLength,
}

impl RoundTrip {
    pub(crate) fn new(
        address: &str,
        request_bytes: MessageLength,
        response_bytes: MessageLength,
    ) -> Self {
        Self {
            address: address.to_owned(),
            request_bytes,
            response_bytes,
        }
    }
}

impl Opener for RoundTrip {
    fn open(&self, worker: &Rc<Worker>, connections: u16, tasks: &mut Tasks) {
        for _ in 0..connections {
            tasks.spawn(send(Rc::clone(worker), self.clone()));
        }
    }
}

/// One connection, opened again whenever it is lost, until the worker ends.
async fn send(worker: Rc<Worker>, plan: RoundTrip) {
    let mut backoff = Backoff::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    let dial = || dial::tcp(&plan.address);
    while let Some(mut stream) = worker.connect(&mut backoff, dial).await {
        loop {
            let Some(slice) = worker.next_slice(&worker.next, 0).await else {
                return;
            };
            worker.begin_paced();
            let sent = clock::now();
            let exchange = exchange(&worker, &mut stream, &plan, &mut buffer);
            let answered = timeout(TIMEOUT, exchange).await;
            let outcome = match answered {
                Ok(Ok(())) => Outcome::Ok,
                Ok(Err(error)) => stream_outcome(&error),
                Err(_) => Outcome::TimedOut,
            };
            worker.shard.count(outcome);
            if outcome != Outcome::Ok {
                break;
            }
            let now = clock::now();
            let mut state = worker.state.borrow_mut();
            state.record_answer(slice.intended, sent, now);
            backoff.reset();
        }
        if worker.pause(&mut backoff).await.is_none() {
            return;
        }
    }
}

async fn exchange(
    worker: &Worker,
    stream: &mut TcpStream,
    plan: &RoundTrip,
    buffer: &mut [u8],
) -> io::Result<()> {
    let length = |bytes: MessageLength| as_usize(bytes.bytes());
    let mut left = length(plan.request_bytes);
    while left > 0 {
        let bytes = &buffer[..left.min(BUFFER_BYTES)];
        let write = |context: &mut Context<'_>| Pin::new(&mut *stream).poll_write(context, bytes);
        let written = watched(worker, Wait::Room, write).await?;
        if written == 0 {
            return Err(ErrorKind::WriteZero.into());
        }
        worker.shard.bytes.add(written as u64);
        left -= written;
    }
    worker.end_paced();
    left = length(plan.response_bytes);
    while left > 0 {
        let room = left.min(BUFFER_BYTES);
        let (stream, buffer) = (&mut *stream, &mut buffer[..room]);
        let read = |context: &mut Context<'_>| poll_read(stream, buffer, context);
        match watched(worker, Wait::Other, read).await? {
            0 => return Err(ErrorKind::ConnectionAborted.into()),
            bytes => left -= bytes,
        }
    }
    Ok(())
}

fn poll_read(
    stream: &mut TcpStream,
    buffer: &mut [u8],
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    let mut buffer = ReadBuf::new(buffer);
    let polled = Pin::new(stream).poll_read(context, &mut buffer);
    polled.map_ok(|()| buffer.filled().len())
}
