//! Recordings that are sent a number of times and then end, and requests that are
//! sent until they are acknowledged.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use stillwell_generator::{GRACE, Prepared, prepare};
use stillwell_plan::generator::{AcknowledgedBy, AcknowledgedPlan, HecAcknowledgements};
use stillwell_plan::payload::{BlockShape, ReplayCut, ReplayEnd, ReplayPlan};
use stillwell_plan::{GeneratorPlan, PayloadFormat, StampPlan, TransportPlan};
use stillwell_scope::{Token, clock};
use stillwell_units::{ByteSize, Nanos};

use crate::hec::{response, serve_one};
use crate::{Fixture, LONG, plan, wait_until};

const SOURCE: &[u8] = b"one\ntwo\nthree\n";

/// The lines of [`SOURCE`], `rounds` times, one in each block.
fn replay(transport: TransportPlan, rounds: u64) -> GeneratorPlan {
    let mut plan = plan(transport);
    plan.payload.format = PayloadFormat::Replay(ReplayPlan {
        path: "/in".into(),
        cut: ReplayCut::Lines,
        base64: false,
        end: ReplayEnd::LineFeed,
        rounds: Some(rounds),
    });
    plan.payload.blocks = BlockShape::Events {
        count: 1,
        maximum: ByteSize::kib(1),
    };
    // Two rounds and a half.
    plan.payload.cache = ByteSize::new(35);
    plan
}

fn prepared(plan: &GeneratorPlan) -> Prepared {
    prepare(plan, Some(SOURCE)).unwrap()
}

fn start(plan: &GeneratorPlan) -> (Fixture, Vec<Token>) {
    let prepared = prepared(plan);
    let ends = prepared.ends().to_vec();
    assert_eq!(ends.len(), usize::from(plan.concurrency.workers()));
    (Fixture::start_prepared(prepared, false), ends)
}

fn all_sent(ends: &[Token]) -> bool {
    ends.iter().all(Token::is_cancelled)
}

#[test]
fn so_many_rounds_are_sent_and_no_more() {
    for rounds in [1, 2, 7] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let plan = replay(TransportPlan::Tcp { address }, rounds);
        let (mut fixture, ends) = start(&plan);
        let received = fixture.beside("peer", move |_| {
            let mut all = Vec::new();
            listener.accept()?.0.read_to_end(&mut all)?;
            Ok(all)
        });
        wait_until(|| all_sent(&ends));
        let shards = fixture.finish();
        let all = received.recv_timeout(LONG).unwrap();
        let times = usize::try_from(rounds).unwrap();
        assert_eq!(all, SOURCE.repeat(times));
        assert_eq!(shards[0].events.total(), 3 * rounds);
    }
}

#[test]
fn what_has_no_end_has_none() {
    let mut plan = replay(
        TransportPlan::Tcp {
            address: "127.0.0.1:1".to_owned(),
        },
        1,
    );
    if let PayloadFormat::Replay(replay) = &mut plan.payload.format {
        replay.rounds = None;
    }
    assert!(prepared(&plan).ends().is_empty());
}

fn acknowledged(url: String, by: AcknowledgedBy, retries: u32) -> TransportPlan {
    TransportPlan::Acknowledged(Box::new(AcknowledgedPlan {
        url,
        by,
        retries,
        end_timeout: Nanos::ZERO,
    }))
}

/// Events without an end to a server that answers its first request, when the load has
/// ended, with what `late` does before; gives how many were acknowledged.
fn answered_late(end_timeout: Nanos, late: impl FnOnce(&[Token]) + Send + 'static) -> u64 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let plan = AcknowledgedPlan {
        url: format!("http://{}/in", listener.local_addr().unwrap()),
        by: AcknowledgedBy::Status {
            headers: Vec::new(),
        },
        retries: 0,
        end_timeout,
    };
    let plan = replay(TransportPlan::Acknowledged(Box::new(plan)), 10);
    let prepared = prepared(&plan);
    let over = prepared.over().to_vec();
    let mut fixture = Fixture::start_prepared(prepared, false);
    let stop = fixture.stop.clone();
    let mut late = Some(late);
    let served = fixture.beside("peer", move |_| {
        serve_one(&listener, &[], |_| {
            stop.cancel();
            if let Some(late) = late.take() {
                late(&over);
            }
            response(204, "")
        })
    });
    served.recv_timeout(LONG).unwrap();
    let shards = fixture.finish();
    shards[0].events_acknowledged.total()
}

#[test]
fn an_answer_that_comes_seconds_after_the_end_of_the_load_is_waited_for() {
    // Longer than a generator waits without instructions.
    let late = |_: &[Token]| {
        let answer_at = clock::now() + GRACE + GRACE;
        wait_until(|| clock::now() >= answer_at);
    };
    assert_eq!(answered_late(Nanos::from(LONG), late), 1);
}

#[test]
fn a_late_answer_does_not_hold_up_the_others() {
    let late = |over: &[Token]| wait_until(|| over.iter().all(Token::is_cancelled));
    assert_eq!(answered_late(Nanos::ZERO, late), 0);
}

/// Bodies, and how often each came.
type Bodies = Arc<Mutex<BTreeMap<Vec<u8>, u32>>>;

/// 30 stamped events to a server that answers as `status` says of the number of a
/// request, from 0, and of how often its body came before. Gives what the shard
/// counted of events and requests sent again, and the bodies.
fn posted(retries: u32, status: impl Fn(u32, u32) -> u16 + Send + 'static) -> ([u64; 4], Bodies) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/in", listener.local_addr().unwrap());
    let headers = vec![("x-kind".to_owned(), "bench".to_owned())];
    let mut plan = replay(
        acknowledged(url, AcknowledgedBy::Status { headers }, retries),
        10,
    );
    plan.stamps = Some(StampPlan::ALL);
    let bodies = Bodies::default();
    let seen = Arc::clone(&bodies);
    let (mut fixture, ends) = start(&plan);
    let served = fixture.beside("peer", move |_| {
        let mut number = 0;
        serve_one(&listener, &["x-kind"], |request| {
            assert_eq!(
                (request.line.as_str(), &request.headers[0][..]),
                ("POST /in", "bench")
            );
            let mut seen = seen.lock().unwrap();
            let before = seen.entry(request.body).or_default();
            let status = status(number, *before);
            *before += 1;
            number += 1;
            response(status, "")
        })
    });
    wait_until(|| all_sent(&ends));
    let counted = [
        fixture.total(|shard| &shard.events),
        fixture.total(|shard| &shard.events_acknowledged),
        fixture.total(|shard| &shard.events_refused),
        fixture.total(|shard| &shard.requests_again),
    ];
    fixture.finish();
    served.recv_timeout(LONG).unwrap();
    (counted, bodies)
}

#[test]
fn refused_requests_are_sent_again_as_they_were() {
    // One request in ten is refused, at its first time.
    let (counted, bodies) = posted(3, |number, _| if number % 10 == 9 { 503 } else { 204 });
    let bodies = bodies.lock().unwrap();
    assert_eq!(counted[..3], [30, 30, 0]);
    // Of 30 and those that are sent again.
    assert_eq!(counted[3], 3);
    assert_eq!(bodies.len(), 30, "each event has a stamp of its own");
    assert_eq!(bodies.values().filter(|times| **times == 2).count(), 3);
}

/// The server closes the first connection with or without an answer, and with most of the
/// body unread: 32 MiB are more than the buffers of a connection hold.
#[test]
fn a_request_that_breaks_off_and_is_sent_again_counts_once_as_sent() {
    let line = [vec![b'x'; 1 << 20], b"\n".to_vec()].concat();
    let source = line.repeat(32);
    for answer in [response(503, ""), String::new()] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/in", listener.local_addr().unwrap());
        let headers = Vec::new();
        let mut plan = replay(acknowledged(url, AcknowledgedBy::Status { headers }, 3), 1);
        plan.payload.blocks = BlockShape::Events {
            count: 32,
            maximum: ByteSize::mib(64),
        };
        let prepared = prepare(&plan, Some(source.as_slice())).unwrap();
        let ends = prepared.ends().to_vec();
        let mut fixture = Fixture::start_prepared(prepared, false);
        let served = fixture.beside("peer", move |_| {
            let (mut peer, _) = listener.accept()?;
            peer.read_exact(&mut [0])?;
            peer.write_all(answer.as_bytes())?;
            drop(peer);
            serve_one(&listener, &[], |_| response(204, ""))
        });
        wait_until(|| all_sent(&ends));
        let counted = [
            fixture.total(|shard| &shard.events),
            fixture.total(|shard| &shard.events_acknowledged),
            fixture.total(|shard| &shard.blocks),
            fixture.total(|shard| &shard.requests_again),
        ];
        fixture.finish();
        served.recv_timeout(LONG).unwrap();
        assert_eq!(counted, [32, 32, 1, 1]);
    }
}

#[test]
fn what_is_refused_for_good_or_too_often_is_counted() {
    let (counted, _) = posted(0, |number, _| if number % 10 == 9 { 503 } else { 200 });
    assert_eq!(counted, [30, 27, 3, 0]);
    let (counted, _) = posted(5, |number, _| if number % 10 == 9 { 400 } else { 200 });
    assert_eq!(counted, [30, 27, 3, 0]);
    let (counted, _) = posted(2, |_, _| 500);
    assert_eq!(counted, [30, 0, 30, 60]);
}

#[test]
fn what_waited_to_be_sent_again_when_the_load_ended_was_dropped() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/in", listener.local_addr().unwrap());
    let headers = Vec::new();
    let plan = replay(acknowledged(url, AcknowledgedBy::Status { headers }, 3), 10);
    let (mut fixture, _) = start(&plan);
    let stop = fixture.stop.clone();
    let served = fixture.beside("peer", move |_| {
        let mut number = 0;
        serve_one(&listener, &[], |_| {
            number += 1;
            stop.cancel();
            response(if number == 1 { 503 } else { 204 }, "")
        })
    });
    wait_until(|| fixture.total(|shard| &shard.events_acknowledged) > 0);
    assert_eq!(fixture.total(|shard| &shard.requests_again), 1);
    fixture.finish();
    served.recv_timeout(LONG).unwrap();
}

#[test]
fn splunk_acknowledges_later_what_it_has() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let by = AcknowledgedBy::SplunkHec {
        token: "t".to_owned(),
        questions: HecAcknowledgements {
            every: Nanos::from_millis(5),
            timeout: Nanos::from_secs(30),
        },
    };
    let mut plan = replay(acknowledged(url, by, 3), 10);
    plan.stamps = Some(StampPlan::ALL);
    let (mut fixture, ends) = start(&plan);
    let stop = fixture.stop.clone();
    let served = fixture.beside("peer", move |_| {
        // Events come over the one connection, questions over the other.
        let number = Arc::new(Mutex::new(0));
        std::thread::scope(|scope| {
            let serve = || {
                serve_one(&listener, &[], |request| {
                    let mut number = number.lock().unwrap();
                    if request.line.contains("/ack") {
                        let known = (0..*number).map(|id| format!("\"{id}\":true"));
                        let acks: Vec<String> = known.collect();
                        return response(200, &format!("{{\"acks\":{{{}}}}}", acks.join(",")));
                    }
                    *number += 1;
                    if *number % 10 == 0 {
                        return response(503, r#"{"text":"Server is busy","code":9}"#);
                    }
                    response(200, &format!(r#"{{"code":0,"ackId":{}}}"#, *number - 1))
                })
            };
            let first = scope.spawn(serve);
            let two = scope.spawn(serve);
            let ended = [first, two].map(|thread| thread.join().unwrap());
            ended.into_iter().collect::<Result<Vec<()>, _>>()
        })?;
        drop(stop);
        Ok(())
    });
    wait_until(|| all_sent(&ends));
    assert_eq!(fixture.total(|shard| &shard.events_acknowledged), 30);
    assert_eq!(fixture.total(|shard| &shard.events_refused), 0);
    assert_eq!(fixture.total(|shard| &shard.requests_again), 3);
    fixture.finish();
    served.recv_timeout(LONG).unwrap();
}
