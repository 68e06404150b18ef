//! The peer: the same bytes by plain system calls in a loop, blocking, with
//! nothing counted but bytes.

use std::io::{self, IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use stillwell_payload::BlockSet;
use stillwell_scope::{PartError, Scope, Token};
use stillwell_units::Nanos;

use crate::ours::pause;
use crate::{Figure, RECEIVER_CPU, SENDER_CPU, cpu_of, on};

const READ_BYTES: usize = 256 * 1024;
/// Size of the head before each body.
const HEAD_BYTES: usize = 22 + 28 + 2;
/// A receiver ends after this time without a datagram.
const QUIET_MAX: Duration = Duration::from_millis(500);

/// Writes slices of `write_bytes` of what `set` holds, over and over, to a loop
/// that reads them.
///
/// # Errors
/// When either cannot run.
pub fn tcp_turn(
    set: &Arc<BlockSet>,
    write_bytes: usize,
    length: Duration,
) -> anyhow::Result<Figure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let received = Arc::new(AtomicU64::new(0));
    let mut scope = Scope::new(&Token::new());
    let total = Arc::clone(&received);
    scope.thread(on(RECEIVER_CPU), "sink", move |_| {
        let (mut stream, _) = listener.accept()?;
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let read = stream.read(&mut buffer)?;
            if read == 0 {
                return Ok(());
            }
            total.fetch_add(u64::try_from(read)?, Ordering::Relaxed);
        }
    })?;
    let set = Arc::clone(set);
    scope.thread(on(SENDER_CPU), "gen", move |token| {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        while !token.is_cancelled() {
            for slice in set.bytes().chunks(write_bytes) {
                stream.write_all(slice)?;
            }
        }
        Ok(())
    })?;
    measured(scope, &received, length)
}

/// Sends the blocks of `set`, one a datagram, over and over, to a loop that
/// receives them.
///
/// # Errors
/// When either cannot run.
pub fn udp_turn(set: &Arc<BlockSet>, length: Duration) -> anyhow::Result<Figure> {
    let receiver = UdpSocket::bind("127.0.0.1:0")?;
    let sender = UdpSocket::bind("127.0.0.1:0")?;
    sender.connect(receiver.local_addr()?)?;
    receiver.set_read_timeout(Some(QUIET_MAX))?;
    let receive = move |buffer: &mut [u8]| receiver.recv(buffer);
    datagram_turn(set, length, move |datagram| sender.send(datagram), receive)
}

/// The same to a Unix socket at `path`. A pair of sockets would not do: the kernel lets
/// as many datagrams wait there as there is memory for, and here as many as one address
/// may have.
///
/// # Errors
/// When either cannot run.
pub fn unix_datagram_turn(
    set: &Arc<BlockSet>,
    path: &Path,
    length: Duration,
) -> anyhow::Result<Figure> {
    if path.exists() {
        std::fs::remove_file(path)?;
    }
    let receiver = UnixDatagram::bind(path)?;
    let sender = UnixDatagram::unbound()?;
    sender.connect(path)?;
    receiver.set_read_timeout(Some(QUIET_MAX))?;
    let receive = move |buffer: &mut [u8]| receiver.recv(buffer);
    datagram_turn(set, length, move |datagram| sender.send(datagram), receive)
}

fn datagram_turn(
    set: &Arc<BlockSet>,
    length: Duration,
    send: impl Fn(&[u8]) -> io::Result<usize> + Send + 'static,
    receive: impl Fn(&mut [u8]) -> io::Result<usize> + Send + 'static,
) -> anyhow::Result<Figure> {
    let received = Arc::new(AtomicU64::new(0));
    let mut scope = Scope::new(&Token::new());
    let total = Arc::clone(&received);
    // Reads until nothing comes any more, not until its token is cancelled: the sender would
    // find no receiver.
    scope.thread(on(RECEIVER_CPU), "sink", move |_| {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match receive(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => total.fetch_add(count as u64, Ordering::Relaxed),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            };
        }
    })?;
    let set = Arc::clone(set);
    scope.thread(on(SENDER_CPU), "gen", move |token| {
        while !token.is_cancelled() {
            for block in 0..set.len() {
                send(set.run(block, block + 1).bytes)?;
            }
        }
        Ok(())
    })?;
    measured(scope, &received, length)
}

/// Posts the blocks of `set` on `connections` in turn to a loop that reads each
/// head and body and answers; neither parses anything but the length.
///
/// # Errors
/// When either cannot run.
pub fn post_turn(
    set: &Arc<BlockSet>,
    connections: usize,
    length: Duration,
) -> anyhow::Result<Figure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let received = Arc::new(AtomicU64::new(0));
    let mut scope = Scope::new(&Token::new());
    let total = Arc::clone(&received);
    scope.thread(on(RECEIVER_CPU), "sink", move |_| {
        let accepted = (0..connections).map(|_| Ok(listener.accept()?.0));
        let mut streams: Vec<TcpStream> = accepted.collect::<io::Result<_>>()?;
        let (mut head, mut buffer) = ([0; HEAD_BYTES], vec![0; READ_BYTES]);
        loop {
            for stream in &mut streams {
                if stream.read_exact(&mut head).is_err() {
                    return Ok(());
                }
                let digits = head.iter().filter(|byte| byte.is_ascii_digit());
                let mut left = digits
                    .skip(2)
                    .fold(0, |sum, byte| sum * 10 + usize::from(byte - b'0'));
                total.fetch_add(left as u64, Ordering::Relaxed);
                while left > 0 {
                    let most = left.min(READ_BYTES);
                    let read = stream.read(&mut buffer[..most])?;
                    if read == 0 {
                        return Ok(());
                    }
                    left -= read;
                }
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")?;
            }
        }
    })?;
    let set = Arc::clone(set);
    scope.thread(on(SENDER_CPU), "gen", move |token| {
        let opened = (0..connections).map(|_| TcpStream::connect(address));
        let mut streams: Vec<TcpStream> = opened.collect::<io::Result<_>>()?;
        let mut answer = [0; 38];
        let mut next = 0;
        while !token.is_cancelled() {
            for stream in &mut streams {
                let body = set.run(next, next + 1).bytes;
                next = (next + 1) % set.len();
                // Always as long, so the receiver need not look for its end.
                let head = format!(
                    "POST /bench HTTP/1.1\r\ncontent-length: {:010}\r\n\r\n",
                    body.len()
                );
                let mut parts = [IoSlice::new(head.as_bytes()), IoSlice::new(body)];
                let mut parts = &mut parts[..];
                while !parts.is_empty() {
                    let written = stream.write_vectored(parts)?;
                    IoSlice::advance_slices(&mut parts, written);
                }
            }
            for stream in &mut streams {
                stream.read_exact(&mut answer)?;
            }
        }
        Ok(())
    })?;
    measured(scope, &received, length)
}

/// Sends `request` to `address` and reads an answer of `answer_bytes`, on
/// `connections` in turn, over and over, until stopped.
///
/// # Errors
/// When it cannot run.
pub fn http_turn(
    request: &Arc<Vec<u8>>,
    answer_bytes: usize,
    connections: usize,
    address: std::net::SocketAddr,
    length: Duration,
) -> anyhow::Result<Figure> {
    let mut scope = Scope::new(&Token::new());
    let done = Arc::new(AtomicU64::new(0));
    let request_bytes = u64::try_from(request.len())?;
    let (counter, request) = (Arc::clone(&done), Arc::clone(request));
    scope.thread(on(SENDER_CPU), "gen", move |token| {
        let mut streams = Vec::new();
        for _ in 0..connections {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            streams.push(stream);
        }
        let mut answer = vec![0; answer_bytes];
        while !token.is_cancelled() {
            // One request in flight on each connection, as on our side.
            for stream in &mut streams {
                stream.write_all(&request)?;
            }
            for stream in &mut streams {
                stream.read_exact(&mut answer)?;
            }
            counter.fetch_add(u64::try_from(connections)?, Ordering::Relaxed);
        }
        Ok::<(), PartError>(())
    })?;
    pause(length);
    let ends = scope.close(Nanos::from_secs(10));
    let operations = done.load(Ordering::Relaxed);
    Ok(Figure {
        bytes: operations.saturating_mul(request_bytes),
        operations,
        send_cpu: cpu_of(&ends, "gen")?,
        receive_cpu: Nanos::ZERO,
    })
}

/// Lets the sender and the receiver of `scope` go on for `length` and ends them: what was
/// `received` by then, and what that cost.
fn measured(scope: Scope, received: &AtomicU64, length: Duration) -> anyhow::Result<Figure> {
    pause(length);
    let ends = scope.close(Nanos::from_secs(10));
    Ok(Figure {
        bytes: received.load(Ordering::Relaxed),
        operations: 0,
        send_cpu: cpu_of(&ends, "gen")?,
        receive_cpu: cpu_of(&ends, "sink")?,
    })
}
