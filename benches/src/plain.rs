//! The peer: the same bytes by plain system calls in a loop, blocking, with
//! nothing counted but bytes.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use stillwell_payload::BlockSet;
use stillwell_scope::{PartError, Scope, Token};
use stillwell_units::Nanos;

use crate::ours::pause;
use crate::{Figure, RECEIVER_CPU, SENDER_CPU, cpu_of, on};

const READ_BYTES: usize = 256 * 1024;

/// Writes slices of `write_bytes` of what `set` holds, over and over, to a loop
/// that reads them.
///
/// # Errors
/// Whatever keeps either from running.
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
    pause(length);
    let ends = scope.close(Nanos::from_secs(10));
    Ok(Figure {
        bytes: received.load(Ordering::Relaxed),
        operations: 0,
        send_cpu: cpu_of(&ends, "gen")?,
        receive_cpu: cpu_of(&ends, "sink")?,
    })
}

/// Sends `request` to `address` and reads an answer of `answer_bytes`, on
/// `connections` in turn, over and over, until stopped.
///
/// # Errors
/// Whatever keeps it from running.
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
    let (own, request) = (Arc::clone(&done), Arc::clone(request));
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
            own.fetch_add(u64::try_from(connections)?, Ordering::Relaxed);
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
