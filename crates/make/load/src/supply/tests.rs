use proptest::prelude::*;
use stillwell_metric::LoadShard;
use stillwell_plan::generator::ExchangePlan;
use stillwell_plan::load::{BodyPlan, EndpointPlan, LoadPlanParts, Reuse};
use stillwell_units::{Nanos, Seed};

use super::*;
use crate::fixture::block_on;

fn request(body_bytes: usize) -> RequestPlan {
    RequestPlan {
        method: "PUT".to_owned(),
        path: format!("/{body_bytes}"),
        authority: "a".to_owned(),
        is_authority_stated: false,
        headers: Vec::new(),
        body: BodyPlan::Bytes(vec![b'a'; body_bytes]),
    }
}

fn plan() -> Arc<LoadPlan> {
    let endpoint = EndpointPlan {
        address: "127.0.0.1:1".to_owned(),
        tls_host: None,
        weight: 1,
        requests: vec![request(0)],
    };
    let exchange = ExchangePlan {
        timeout: Nanos::SECOND,
        connect_timeout: Nanos::SECOND,
        reuse: Reuse::Mru,
        ..ExchangePlan::default()
    };
    let mut client = exchange.client();
    client.connecting.prefetch = false;
    let parts = LoadPlanParts::closed(vec![endpoint], client, Seed::from_number(1));
    Arc::new(LoadPlan::try_new(parts).unwrap())
}

/// A feed and its other end.
fn pair(waiting_max: usize) -> (Feed, Supply) {
    let (shard, _) = LoadShard::pair();
    let (feed, queue) = Feed::new(&plan(), &Arc::new(shard), waiting_max);
    (feed, Supply::new(queue))
}

/// Returns true where `future` waits, as far as it gets by itself.
fn waits<T>(future: impl Future<Output = T>) -> bool {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(Waker::noop());
    future.as_mut().poll(&mut context).is_pending()
}

proptest! {
    /// For any order of taking and ending: a number identifies the last request under it.
    #[test]
    fn for_all_orders_a_number_is_of_one_request_until_that_ends(
        steps in prop::collection::vec((any::<bool>(), 0_usize..8), 1..80),
    ) {
        let (feed, supply) = pair(100);
        let mut in_flight: Vec<(usize, usize)> = Vec::new();
        let mut handed = 0;
        for (takes, which) in steps {
            if takes || in_flight.is_empty() {
                handed += 1;
                block_on(feed.hand_over(&request(handed))).unwrap();
                let number = supply.take().unwrap();
                prop_assert!(in_flight.iter().all(|(in_use, _)| *in_use != number));
                in_flight.push((number, handed));
            } else {
                let (number, _) = in_flight.swap_remove(which % in_flight.len());
                supply.ended(number);
            }
            for (number, body_bytes) in &in_flight {
                let end = "a".repeat(*body_bytes);
                let request = supply.request(*number);
                let text = String::from_utf8_lossy(request.bytes()).into_owned();
                let (head, body) = text.split_once("\r\n\r\n").unwrap();
                let path = format!("PUT /{body_bytes} ");
                prop_assert!(head.starts_with(&path) && body == end, "{text}");
            }
        }
    }
}

#[test]
fn a_source_that_is_faster_than_the_load_waits() {
    let (feed, supply) = pair(2);
    for _ in 0..2 {
        assert!(!waits(feed.hand_over(&request(0))));
    }
    assert!(waits(feed.hand_over(&request(0))));
    assert_eq!(feed.counts().requests.total(), 2);
    assert_eq!(supply.take(), Some(0));
    assert!(!waits(feed.hand_over(&request(0))));
    // By bytes as well: of a queue with room for 63 MiB.
    let (feed, supply) = pair(100);
    for _ in 0..15 {
        assert!(!waits(feed.hand_over(&request(4 << 20))));
    }
    assert!(waits(feed.hand_over(&request(4 << 20))));
    supply.take();
    assert!(!waits(feed.hand_over(&request(4 << 20))));
}

#[test]
fn all_that_came_is_sent_before_the_end() {
    let (feed, supply) = pair(2);
    assert_eq!((supply.look(), supply.take()), (SupplyState::None, None));
    block_on(feed.hand_over(&request(1))).unwrap();
    drop(feed);
    assert_eq!(supply.look(), SupplyState::Some);
    assert_eq!(supply.take(), Some(0));
    assert_eq!((supply.look(), supply.take()), (SupplyState::Over, None));
    block_on(supply.ready());
}

#[test]
fn a_worker_that_has_ended_delays_no_other_worker() {
    let (feed, supply) = pair(1);
    block_on(feed.hand_over(&request(1))).unwrap();
    drop(supply);
    let refused = block_on(feed.hand_over(&request(1)));
    assert!(matches!(refused, Err(FeedError::Over)), "{refused:?}");
    block_on(feed.closed());
}

#[test]
fn what_cannot_be_sent_is_not_handed_over() {
    let (feed, supply) = pair(1);
    let broken = RequestPlan {
        path: "/a b\r\n".to_owned(),
        ..request(0)
    };
    let refused = block_on(feed.hand_over(&broken)).unwrap_err();
    assert!(matches!(refused, FeedError::Request(_)), "{refused}");
    assert_eq!(supply.look(), SupplyState::None);
}

/// Pacers of several endpoints wait for the same requests.
#[test]
fn one_request_wakes_all_waiters() {
    let (feed, supply) = pair(2);
    block_on(async {
        let (first, second, hand) = tokio::join!(supply.ready(), supply.ready(), async {
            feed.hand_over(&request(1)).await
        });
        assert_eq!((first, second), ((), ()));
        hand.unwrap();
    });
}
