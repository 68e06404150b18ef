use stillwell_pacer::{Arrivals, Part, Share};
use stillwell_plan::RateShape;
use stillwell_plan::load::Spacing;
use stillwell_units::Seed;

use super::*;

const SECOND: u64 = 1_000_000_000;
const SERVICE: u64 = 100_000;

fn recorder(has_schedule: bool) -> RequestRecorder {
    let (shard, recorders) = LoadShard::pair();
    RequestRecorder {
        shard: Arc::new(shard),
        watched: Vec::new(),
        watches: Vec::new(),
        recorders,
        routes: Default::default(),
        has_schedule,
        has_response: has_schedule,
        measure_from: Moment::default(),
        count_from: Moment::default(),
        is_warming: false,
        heads: Sizes::default(),
        bodies: Sizes::default(),
        in_flight: 0,
        last_end: Moment::default(),
    }
}

/// The time at which a server that stops from 5 s to 6 s and has one connection has
/// answered a request sent at `sent`.
fn done(sent: u64) -> Moment {
    let done = sent + SERVICE;
    let stall = 5 * SECOND..6 * SECOND;
    Moment::new(if done > stall.start && sent < stall.end {
        stall.end + SERVICE
    } else {
        done
    })
}

fn exchange(recorder: &mut RequestRecorder, intended: Moment, sent: Moment) -> Moment {
    let mut ticket = Ticket {
        endpoint: 0,
        request: 0,
        intended,
        sent: None,
    };
    recorder.begin(intended);
    recorder.sent(&mut ticket, sent, 0);
    let end = done(sent.as_u64());
    let whole = ResponseSummary {
        status: 200,
        keep_alive: true,
        head_bytes: 0,
        body_bytes: 0,
    };
    let answer = Answer {
        whole,
        sent,
        first_byte: end,
        end,
    };
    recorder.answered(ticket, &answer);
    end
}

fn p99(recorder: &mut RequestRecorder, time: LoadTime) -> f64 {
    recorder.publish(true);
    let times = recorder.shard.times(time).take().unwrap();
    assert!(!times.is_empty());
    Nanos::new(times.value_at_quantile(0.99)).as_secs_f64()
}

/// Ten seconds of a thousand requests a second, one second of standing still in
/// the middle. Requests that were due in that second wait between 1 s and
/// nothing: a tenth of all, evenly, so one in a hundred waits longer than
/// 0.9 s.
#[test]
fn a_stall_counts_in_the_latency_from_the_intended_time() {
    let mut open = recorder(true);
    let curve = RateShape::Constant { per_second: 1000.0 };
    let part = Part::whole(Share::WHOLE);
    let seed = Seed::from_number(1);
    let mut arrivals = Arrivals::new(&curve, Spacing::Even, part, Moment::default(), &seed);
    let mut free = Moment::default();
    while arrivals.next_due() <= Moment::new(10 * SECOND) {
        let intended = arrivals.next_due();
        arrivals.advance();
        free = exchange(&mut open, intended, intended.max(free));
    }
    // What waited behind the stall is worked off at 10,000 a second, which adds
    // a tenth of the place in the queue: the 100th of 1,000 waits 0.9 s + 10 ms.
    let response = p99(&mut open, LoadTime::Response(Outcome::Ok));
    assert!((response - 0.91).abs() < 0.009, "{response}");
    let lateness = p99(&mut open, LoadTime::Lateness);
    assert!((lateness - 0.91).abs() < 0.009, "{lateness}");

    let mut closed = recorder(false);
    let mut free = Moment::default();
    while free < Moment::new(10 * SECOND) {
        free = exchange(&mut closed, free, free);
    }
    let service = p99(&mut closed, LoadTime::Service(Outcome::Ok));
    assert!(service < 0.001, "nobody was there to wait: {service}");
}

/// The same with as many connections as can ever be needed: nothing queues, and
/// the figure is the analytic one.
#[test]
fn with_connections_to_spare_the_analytic_figure_comes_out() {
    let mut open = recorder(true);
    let curve = RateShape::Constant { per_second: 1000.0 };
    let part = Part::whole(Share::WHOLE);
    let seed = Seed::from_number(1);
    let mut arrivals = Arrivals::new(&curve, Spacing::Even, part, Moment::default(), &seed);
    while arrivals.next_due() <= Moment::new(10 * SECOND) {
        exchange(&mut open, arrivals.next_due(), arrivals.next_due());
        arrivals.advance();
    }
    for time in [
        LoadTime::Response(Outcome::Ok),
        LoadTime::Service(Outcome::Ok),
    ] {
        let p99 = p99(&mut open, time);
        assert!((p99 - 0.9).abs() < 0.009, "{p99}");
    }
}

#[test]
fn requests_of_the_warm_up_are_counted_apart_and_not_timed() {
    let mut recorder = recorder(true);
    recorder.measure_from = Moment::new(SECOND);
    recorder.count_from = recorder.measure_from;
    exchange(&mut recorder, Moment::new(SECOND - 1), Moment::new(SECOND));
    exchange(&mut recorder, Moment::new(SECOND), Moment::new(SECOND));
    recorder.begin(Moment::new(SECOND));
    recorder.begin(Moment::new(SECOND - 1));
    recorder.cut();
    recorder.publish(true);
    let shard = &recorder.shard;
    let index = Outcome::Ok.index();
    assert_eq!(shard.outcomes[index].total(), 1);
    assert_eq!(shard.warmup_outcomes[index].total(), 1);
    assert_eq!(shard.ended(Outcome::Unfinished), 1);
    assert_eq!(shard.ended_ever(Outcome::Unfinished), 2);
    assert_eq!(shard.begun_in_all(), shard.ended_in_all());
    assert_eq!((shard.sent.total(), shard.warmup_sent.total()), (1, 1));
    assert_eq!(shard.body_sizes.read().count, 1);
    for time in [LoadTime::Service(Outcome::Ok), LoadTime::Lateness] {
        assert_eq!(shard.times(time).take().map(|times| times.len()), Some(1));
    }
}

#[test]
fn a_request_that_went_out_again_was_late_twice() {
    let mut recorder = recorder(true);
    let mut ticket = Ticket {
        endpoint: 0,
        request: 0,
        intended: Moment::new(SECOND),
        sent: None,
    };
    recorder.begin(ticket.intended);
    let first = Moment::new(SECOND + 10);
    assert_eq!(recorder.sent(&mut ticket, first, 7), first);
    let again = Moment::new(2 * SECOND);
    assert_eq!(
        recorder.sent(&mut ticket, again, 7),
        first,
        "it went out first then"
    );
    recorder.publish(true);
    let shard = &recorder.shard;
    assert_eq!((shard.sent.total(), shard.bytes_sent.total()), (1, 14));
    let lateness = shard.times(LoadTime::Lateness).take().unwrap();
    assert_eq!((lateness.len(), lateness.max()), (1, 10));
}

#[test]
fn a_request_that_failed_left_no_time_behind() {
    let mut recorder = recorder(true);
    let ticket = Ticket {
        endpoint: 0,
        request: 0,
        intended: Moment::new(SECOND),
        sent: None,
    };
    for (outcome, seconds) in [(Outcome::TimedOut, 3), (Outcome::PeerClosed, 2)] {
        recorder.begin(ticket.intended);
        recorder.failed(ticket, outcome, Moment::new(seconds * SECOND));
    }
    recorder.publish(true);
    let times = |time: LoadTime| recorder.shard.times(time).take();
    for (outcome, seconds) in [(Outcome::TimedOut, 2), (Outcome::PeerClosed, 1)] {
        let all = times(LoadTime::Failed(outcome)).unwrap();
        assert_eq!(all.len(), 1);
        assert!(all.max().abs_diff(seconds * SECOND) < SECOND / 1000);
    }
    for class in Outcome::ANSWERS {
        for time in [LoadTime::Service(class), LoadTime::Response(class)] {
            assert!(
                times(time).is_none_or(|times| times.is_empty()),
                "it is no answer"
            );
        }
    }
}
