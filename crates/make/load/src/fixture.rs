//! Slots of a worker without a thread, and a runtime, for tests.

use std::rc::Rc;
use std::sync::Arc;

use stillwell_metric::LoadShard;
use stillwell_plan::generator::ExchangePlan;
use stillwell_plan::load::{BodyPlan, EndpointPlan, LoadProtocol, RequestPlan};
use stillwell_scope::clock;
use stillwell_units::Nanos;

use super::build::RequestEncoder;
use super::connection::ConnectionSlot;
use super::pool::Pool;
use super::recorder::Ticket;
use super::routes::RouteTally;
use super::slots::Slots;
use super::worker::{RequestSource, Worker, WorkerSetup};

/// Returns `connections` slots of one pool, and their counts. Each connection has at most `streams`
/// streams and `requests_max` requests.
pub(super) fn slots(
    protocol: LoadProtocol,
    connections: u32,
    streams: u32,
    requests_max: Option<u64>,
) -> (Vec<ConnectionSlot>, Arc<LoadShard>) {
    let exchange = ExchangePlan {
        protocol,
        streams,
        timeout: Nanos::from_secs(20),
        connect_timeout: Nanos::from_secs(20),
        requests_max,
        ..ExchangePlan::default()
    };
    let mut client = exchange.client();
    client.connecting.connections = connections;
    client.connecting.prefetch = false;
    let plan = EndpointPlan {
        address: "127.0.0.1:1".to_owned(),
        tls_host: (protocol == LoadProtocol::Http3).then(|| "a".to_owned()),
        weight: 1,
        requests: vec![RequestPlan {
            method: "GET".to_owned(),
            path: "/".to_owned(),
            authority: "a".to_owned(),
            is_authority_stated: false,
            headers: Vec::new(),
            body: BodyPlan::None,
        }],
    };
    let endpoint = RequestEncoder::of_generator(&client).endpoint(&plan);
    let (shard, recorders) = LoadShard::pair();
    let shard = Arc::new(shard);
    let setup = WorkerSetup {
        client,
        endpoints: vec![endpoint.unwrap()].into(),
        tls: None,
        shard: Arc::clone(&shard),
        recorders,
        routes: RouteTally::default(),
    };
    let worker = Rc::new(Worker::new(setup, RequestSource::Plan));
    let count = usize::try_from(connections).unwrap();
    let slots = Slots::new(count, streams, exchange.reuse);
    let pool = Rc::new(Pool::new(0, (1, 0), slots, &RequestSource::Plan));
    let slot = |number| ConnectionSlot::new(Rc::clone(&worker), Rc::clone(&pool), number);
    ((0..count).map(slot).collect(), shard)
}

pub(super) fn ticket() -> Ticket {
    Ticket {
        endpoint: 0,
        request: 0,
        intended: clock::now(),
        sent: None,
    }
}

pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(future)
}
