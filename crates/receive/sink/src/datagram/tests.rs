use std::future::poll_fn;

use stillwell_metric::Labels;
use stillwell_scope::{Token, clock};

use super::*;

/// A worker, both ends of a Unix socket, and what is known of datagrams that came fast.
fn sockets_and_worker() -> (
    Worker,
    std::os::unix::net::UnixDatagram,
    WatchedSocket,
    Eager,
) {
    let (sender, receiver) = std::os::unix::net::UnixDatagram::pair().unwrap();
    receiver.set_nonblocking(true).unwrap();
    let socket = WatchedSocket::Unix(UnixDatagram::from_std(receiver).unwrap());
    let worker = Worker::new(Arc::new(SinkShard::new(Labels::none())), Token::new());
    let mut eager = Eager::new(false);
    let mut now = Moment::new(1_000_000);
    for _ in 0..400 {
        now = now + Nanos::new(2_000);
        eager.came(1, now);
    }
    (worker, sender, socket, eager)
}

fn send(sender: &std::os::unix::net::UnixDatagram, count: usize) {
    (0..count).for_each(|_| assert_eq!(sender.send(b"one\n").unwrap(), 4));
}

/// Polls for at most `most` datagrams; returns the number received.
fn polled(worker: &Worker, socket: &WatchedSocket, eager: &mut Eager, most: u64) -> usize {
    let mut taken = 0;
    let now = clock::now();
    let polled = poll_briefly(worker, socket, (eager, now, most), |bytes: &[u8]| {
        assert_eq!(bytes, b"one\n");
        taken += 1;
    });
    assert!(matches!(polled, Poll::Ready(Ok(()))), "{polled:?}");
    taken
}

#[tokio::test]
async fn polling_takes_the_waiting_datagrams_and_no_more_than_permitted() {
    let (worker, sender, socket, mut eager) = sockets_and_worker();
    send(&sender, 5);
    assert_eq!(polled(&worker, &socket, &mut eager, 3), 3);
    assert_eq!(polled(&worker, &socket, &mut eager, 32), 2);
}

/// A sink that spun would have looked full.
#[tokio::test]
async fn time_of_polling_in_vain_is_no_work() {
    let (worker, _sender, socket, mut eager) = sockets_and_worker();
    let cells = &worker.base.shard.account;
    worker.base.account.pass(TimeState::Running, cells);
    let (idle, running) = (
        cells.of(TimeState::Idle).total(),
        cells.of(TimeState::Running).total(),
    );
    assert_eq!(polled(&worker, &socket, &mut eager, 32), 0);
    assert!(cells.of(TimeState::Idle).total() > idle);
    assert_eq!(cells.of(TimeState::Running).total(), running);
}

#[tokio::test]
async fn where_datagrams_come_slowly_no_socket_is_polled() {
    let (worker, sender, socket, _) = sockets_and_worker();
    send(&sender, 1);
    assert_eq!(polled(&worker, &socket, &mut Eager::new(false), 32), 0);
}

/// A UDP socket with a sender, and what is known of datagrams that came fast.
fn udp_pair() -> (std::net::UdpSocket, WatchedSocket, Eager) {
    let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    receiver.set_nonblocking(true).unwrap();
    let socket = WatchedSocket::Udp(UdpSocket::from_std(receiver).unwrap());
    let (mut eager, mut now) = (Eager::new(true), Moment::new(1_000_000));
    for _ in 0..400 {
        now = now + Nanos::new(2_000);
        eager.came(1, now);
    }
    (sender, socket, eager)
}

/// A sender that finds no receiver waiting has none to wake.
#[tokio::test]
async fn a_pause_takes_all_that_is_queued() {
    let (worker, _, _, _) = sockets_and_worker();
    let (sender, socket, mut eager) = udp_pair();
    (0..20).for_each(|_| assert_eq!(sender.send(b"one\n").unwrap(), 4));
    let mut taken = 0;
    let collected = collect(&worker, &socket, &mut eager, |bytes: &[u8]| {
        assert_eq!(bytes, b"one\n");
        taken += 1;
    });
    assert!(matches!(collected, Poll::Ready(Ok(()))), "{collected:?}");
    assert_eq!(taken, 20);
}

/// A sink that is behind must not sleep.
#[tokio::test]
async fn there_is_no_pause_while_more_is_queued_than_one_turn_takes() {
    let (worker, _, _, _) = sockets_and_worker();
    let (sender, socket, mut eager) = udp_pair();
    let queue = socket.queue().unwrap();
    let count = AT_ONCE_MAX + 1;
    (0..count).for_each(|_| assert_eq!(sender.send(b"one\n").unwrap(), 4));
    let cells = &worker.base.shard.account;
    worker.base.account.pass(TimeState::Running, cells);
    let idle = cells.of(TimeState::Idle).total();
    let mut taken = 0;
    let turn = poll_fn(|context| {
        let socket = (&socket, Some(&queue));
        poll_waiting(context, &worker, socket, &mut eager, |_| taken += 1)
    });
    turn.await.unwrap();
    assert_eq!(taken, AT_ONCE_MAX);
    assert_eq!(cells.of(TimeState::Idle).total(), idle);
}
