use std::pin::pin;
use std::task::Poll;

use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos};
use stillwell_wire::Timer;

use crate::on_worker;

#[test]
fn a_wait_is_never_too_short() {
    on_worker(|| async {
        let mut timer = Timer::new()?;
        for length in [0, 1, 50_000, 2_000_000] {
            let at = clock::now() + Nanos::new(length);
            timer.until(at).await;
            assert!(clock::now() >= at);
        }
        timer.until(Moment::new(0)).await;
        Ok(())
    });
}

#[test]
fn a_wait_that_was_given_up_shortens_no_other() {
    on_worker(|| async {
        let mut timer = Timer::new()?;
        for _ in 0..10 {
            let soon = clock::now() + Nanos::from_millis(1);
            {
                let mut given_up = pin!(timer.until(soon));
                let first = std::future::poll_fn(|context| {
                    Poll::Ready(given_up.as_mut().poll(context).is_ready())
                });
                assert!(!first.await || clock::now() >= soon);
                // The timer expires unseen meanwhile.
                while clock::now() < soon {
                    tokio::task::yield_now().await;
                }
                tokio::task::yield_now().await;
            }
            let at = clock::now() + Nanos::from_millis(2);
            timer.until(at).await;
            assert!(clock::now() >= at);
        }
        Ok(())
    });
}
