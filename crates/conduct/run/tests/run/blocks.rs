//! Blocks that a generator posts to the test server, over every protocol that a
//! load speaks.

use std::sync::Arc;

use stillwell_generator::{GRACE, prepare};
use stillwell_metric::{Cell, GeneratorShard, Outcome};
use stillwell_plan::generator::{Concurrency, ExchangePlan};
use stillwell_plan::load::LoadProtocol;
use stillwell_plan::payload::BlockShape;
use stillwell_plan::tls::{ClientTlsPlan, Verification};
use stillwell_plan::{
    GeneratorPlan, PayloadFormat, PayloadPlan, RatePlan, RateShape, RateUnit, TransportPlan,
};
use stillwell_scope::{Place, Scope, Token, clock};
use stillwell_serve::{ServeCounts, bind_server};
use stillwell_testkit::wait_until;
use stillwell_units::{ByteSize, Nanos, Seed};

use crate::load::{WAYS, Way, server};

const CONNECTIONS: u16 = 4;
/// More than a stream of HTTP/2 may send before the peer permits more.
const BLOCK_MAX: ByteSize = ByteSize::kib(100);

fn plan(address: &str, way: Way, rate: RatePlan) -> GeneratorPlan {
    let scheme = if way.tls { "https" } else { "http" };
    let default = ExchangePlan::default();
    GeneratorPlan {
        id: "blocks".to_owned(),
        transport: TransportPlan::Http {
            url: format!("{scheme}://{address}/in"),
            headers: vec![("x-test".to_owned(), "1".to_owned())],
            exchange: Box::new(ExchangePlan {
                protocol: way.protocol,
                streams: way.streams,
                tls: ClientTlsPlan {
                    verification: Verification::None,
                    ..default.tls.clone()
                },
                ..default
            }),
        },
        payload: PayloadPlan {
            format: PayloadFormat::Syslog5424,
            blocks: BlockShape::UpTo { maximum: BLOCK_MAX },
            cache: ByteSize::kib(1024),
            repeats: false,
        },
        rate,
        concurrency: Concurrency::try_new(CONNECTIONS, 2).unwrap(),
        seed: Seed::from_number(7),
        stamps: None,
    }
}

/// Posts until so many were answered; gives what both ends counted, and the time that the
/// workers took to end.
fn posted(way: Way, rate: &RatePlan) -> (Vec<Arc<GeneratorShard>>, ServeCounts, Nanos) {
    let server = bind_server(&server(way.tls, None)).unwrap();
    let (address, counter) = (server.addresses()[0], server.counter());
    let mut scope = Scope::new(&Token::new());
    server.start(&mut scope, &Place::default()).unwrap();
    let prepared = prepare(&plan(&address.to_string(), way, rate.clone()), None).unwrap();
    let shards = prepared.shards();
    let mut generators = Scope::new(&Token::new());
    let stop = Token::new();
    let place = Place::default();
    prepared
        .start(&mut generators, &place, false, clock::now(), &stop)
        .unwrap();
    wait_until(std::time::Duration::from_secs(60), || {
        // One connection may answer all of them before another one is open.
        total(&shards, |shard| &shard.outcomes[Outcome::Ok.index()]) >= 300
            && total(&shards, |shard| &shard.connections) >= u64::from(CONNECTIONS)
    });
    let stopped = clock::now();
    stop.cancel();
    let ends = generators.close(Nanos::from_secs(10));
    let ending = clock::now().since(stopped);
    for end in ends {
        assert!(end.result.is_ok(), "{}: {:?}", end.name, end.result);
    }
    scope.close(Nanos::from_secs(5));
    (shards, counter.total(), ending)
}

fn total(shards: &[Arc<GeneratorShard>], cell: impl Fn(&GeneratorShard) -> &Cell) -> u64 {
    shards.iter().map(|shard| cell(shard).total()).sum()
}

#[test]
fn both_ends_count_the_same_blocks_over_every_protocol() {
    let paced = RatePlan {
        unit: RateUnit::Blocks,
        shape: RateShape::Constant { per_second: 2000.0 },
    };
    for way in WAYS {
        for rate in [paced.clone(), RatePlan::MAX] {
            let (shards, seen, ending) = posted(way, &rate);
            let sum = |cell: fn(&GeneratorShard) -> &Cell| total(&shards, cell);
            let ended = |outcome: Outcome| total(&shards, |shard| &shard.outcomes[outcome.index()]);
            let (ok, sent) = (ended(Outcome::Ok), sum(|shard| &shard.requests));
            let in_all: u64 = Outcome::ALL.into_iter().map(ended).sum();
            assert_eq!(in_all, ok, "{way:?}");
            let cut = sent - ok;
            let (blocks, bytes) = (sum(|shard| &shard.blocks), sum(|shard| &shard.bytes));
            if ending < GRACE {
                // The grace of no worker was over, so nothing was cut.
                assert_eq!((cut, seen.requests, blocks), (0, sent, sent), "{way:?}");
                assert_eq!(seen.body_bytes, bytes, "{way:?}");
            } else {
                // A busy machine may answer later. What was cut arrived in part or not at all.
                let cut_max = u64::from(CONNECTIONS) * u64::from(way.streams);
                assert!(cut <= cut_max, "{way:?}: {cut}");
                assert!((ok..=sent).contains(&seen.requests), "{way:?}: {seen:?}");
                assert!((seen.requests..=sent).contains(&blocks), "{way:?}");
                let unseen = bytes - seen.body_bytes;
                assert!(unseen <= cut * BLOCK_MAX.bytes(), "{way:?}: {unseen}");
            }
            assert_eq!(seen.connections, u64::from(CONNECTIONS), "{way:?}");
            assert_eq!(sum(|shard| &shard.connections), seen.connections);
            let is_secure = u64::from(way.tls) * seen.connections;
            assert_eq!(seen.handshakes, is_secure, "{way:?}");
            assert!(way.protocol == LoadProtocol::Http2 || way.streams == 1);
        }
    }
}
