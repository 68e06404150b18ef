use std::collections::VecDeque;

use super::*;
use crate::{Place, Scope};

const NO_TIME: Drain = Drain {
    length: Nanos::ZERO,
    items: 3,
    quiet: Nanos::ZERO,
};
const LONG: Drain = Drain {
    length: Nanos::from_secs(60),
    items: 0,
    quiet: Nanos::ZERO,
};
/// Waits for data that are still on their way.
const LONG_DRAIN: Drain = Drain {
    quiet: Nanos::from_secs(10),
    ..LONG
};
const SHORT_DRAIN: Drain = Drain {
    quiet: Nanos::from_millis(1),
    ..LONG
};

/// Runs `body` on a worker whose token is left alone.
fn on_worker<F: Future<Output = ()>>(body: impl FnOnce() -> F + Send + 'static) {
    let mut scope = Scope::new(&Token::new());
    let body = |_| async move {
        body().await;
        Ok(())
    };
    scope.worker(Place::default(), "test", body).unwrap();
    for end in scope.close(Nanos::from_secs(60)) {
        end.result.unwrap();
    }
}

/// A socket that holds these and reports them only at a later read.
struct Socket {
    held: VecDeque<u32>,
    is_known: bool,
}

impl Socket {
    fn holding(held: impl IntoIterator<Item = u32>) -> Self {
        Self {
            held: held.into_iter().collect(),
            is_known: false,
        }
    }

    fn poll(&mut self) -> Poll<u32> {
        if !std::mem::replace(&mut self.is_known, true) {
            return Poll::Pending;
        }
        self.held.pop_front().map_or(Poll::Pending, Poll::Ready)
    }
}

async fn take_all(drain: Drain, mut socket: Socket) -> Vec<u32> {
    let token = Token::new();
    token.cancel();
    let mut stopping = Stopping::new(&token, drain);
    let mut taken = Vec::new();
    while let Some(next) = stopping.next(|_| socket.poll()).await {
        taken.push(next);
    }
    taken
}

#[test]
fn what_a_socket_holds_when_a_loop_is_to_end_is_taken() {
    on_worker(|| async {
        assert_eq!(take_all(LONG, Socket::holding(0..100)).await.len(), 100);
        assert!(take_all(LONG, Socket::holding([])).await.is_empty());
    });
}

#[test]
fn a_socket_that_never_empties_ends_all_the_same() {
    on_worker(|| async {
        let taken = take_all(NO_TIME, Socket::holding(0..1000)).await;
        assert!((1..=4).contains(&taken.len()), "{taken:?}");
    });
}

#[test]
fn a_loop_that_waits_is_woken_by_the_end() {
    on_worker(|| async {
        let token = Token::new();
        let mut stopping = Stopping::new(&token, LONG);
        let mut polled = 0;
        let waiting = stopping.next(|_| {
            polled += 1;
            if polled == 1 {
                token.cancel();
            }
            Poll::<()>::Pending
        });
        assert_eq!(waiting.await, None);
        assert!(polled >= 2, "the socket is asked again before the end");
    });
}

#[test]
fn nothing_ends_before_it_is_to() {
    on_worker(|| async {
        let token = Token::new();
        let mut stopping = Stopping::new(&token, NO_TIME);
        for item in 0..10 {
            assert_eq!(stopping.next(|_| Poll::Ready(item)).await, Some(item));
        }
    });
}

/// Number of `items` taken that arrive only while a reader waits.
async fn take_late(drain: Drain, items: u32) -> u32 {
    let token = Token::new();
    token.cancel();
    let mut stopping = Stopping::new(&token, drain);
    let (mut taken, mut calls) = (0, 0);
    let mut poll = |context: &mut Context<'_>| {
        calls += 1;
        // It is read twice without a wait, and then awaited.
        if calls % 4 != 0 {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(())
    };
    while taken < items && stopping.next(&mut poll).await.is_some() {
        taken += 1;
    }
    taken
}

#[test]
fn what_still_lies_at_its_sender_when_a_loop_is_to_end_is_waited_for() {
    on_worker(|| async {
        assert_eq!(take_late(LONG_DRAIN, 5).await, 5);
        assert_eq!(take_late(LONG, 5).await, 0);
    });
}

#[test]
fn a_stream_that_brings_nothing_more_ends_a_loop_without_its_end() {
    on_worker(|| async {
        let token = Token::new();
        token.cancel();
        let mut stopping = Stopping::new(&token, SHORT_DRAIN);
        assert_eq!(stopping.next(|_| Poll::<()>::Pending).await, None);
    });
}

#[test]
fn a_stream_that_brings_a_little_again_and_again_ends_with_its_drain() {
    on_worker(|| async {
        // It may take so many items at once, which is not what it comes to here.
        let drain = Drain {
            length: Nanos::from_millis(1),
            items: u32::MAX,
            ..LONG_DRAIN
        };
        // Without an end it would go on for a minute.
        const ITEMS: u32 = 100_000_000;
        assert!(take_late(drain, ITEMS).await < ITEMS);
    });
}
