//! Requests at full speed: `stillwell load` beside wrk, h2load, oha and fortio,
//! against nginx with one worker that answers at once, as requests for each second
//! of the client's CPU time. All latencies of ours are recorded meanwhile.
//!
//! Then requests at a rate, from a worker that has its core to itself: how many
//! leave within 50 µs of the schedule, and the results of rates that are too high.
//!
//! `speed` or `rates` as an argument does one of the two, names of questions, such
//! as `HTTP/2`, leave the others out. Debian has `nginx-light`,
//! `wrk` and `nghttp2-client`; oha comes by `cargo install oha`, fortio by
//! `go install fortio.org/fortio@v1.66.3`. What is not there is left out, with a
//! word.

#![expect(
    clippy::print_stdout,
    reason = "what a benchmark has to say, it prints"
)]

use stillwell_benches::{
    Figure, Nginx, Peer, Question, SENDER_CPU, Side, compare_first, loads, on, questions,
};
use stillwell_metric::LoadTime;
use stillwell_run::LoadCapture;
use stillwell_scope::{Scope, Token, clock};
use stillwell_units::{Nanos, float_from_u64};

const ROUNDS: usize = 7;

/// A send is on time that is no later than this.
const ON_TIME_NS: u64 = 50_000;

/// Time over which the CPU time that the machine takes away is measured.
const TURNING: Nanos = Nanos::from_secs(5);

/// Requests a second from one worker.
const RATE: f64 = 20_000.0;

fn main() -> anyhow::Result<()> {
    if !Nginx::is_there() {
        println!("left out: there is no nginx");
        return Ok(());
    }
    let requested: Vec<String> = std::env::args().skip(1).collect();
    let is_requested = |mode: &str| {
        let modes = ["speed", "rates"];
        let is_any = requested.iter().any(|word| modes.contains(&word.as_str()));
        !is_any || requested.iter().any(|word| word == mode)
    };
    if is_requested("speed") {
        for question in questions(2)
            .iter()
            .filter(|question| question.is_among(&requested))
        {
            speed(question)?;
        }
    }
    if is_requested("rates") {
        rates()?;
    }
    Ok(())
}

fn speed(question: &Question) -> anyhow::Result<()> {
    let server = Nginx::start(question)?;
    let Question {
        name,
        connections,
        streams,
        ..
    } = question;
    println!("{name}: {connections} connections with {streams} requests at once");
    let port = server.port();
    let mut sides = vec![Side {
        name: "stillwell load",
        turn: Box::new(move || loads::turn(question, port)),
    }];
    for peer in Peer::ALL {
        if !peer.can(question) {
            continue;
        }
        if !peer.is_there() {
            println!("left out: there is no {}", peer.name());
            continue;
        }
        sides.push(Side {
            name: peer.name(),
            turn: Box::new(move || peer.turn(question, port)),
        });
    }
    compare_first(
        ROUNDS,
        "requests per client CPU second",
        Figure::operations_per_send_second,
        &mut sides,
    )
}

fn rates() -> anyhow::Result<()> {
    for question in questions(5).iter().filter(|question| !question.has_tls) {
        let server = Nginx::start(question)?;
        println!("{}: {RATE} requests a second, core reserved", question.name);
        taken_away()?;
        on_time(&loads::conduct(question, server.port(), Some(RATE))?);
        let most = achieved(&loads::conduct(question, server.port(), None)?);
        println!("  as fast as responses arrive: {most:.0} a second");
        for factor in [0.8, 1.2, 2.0, 4.0] {
            let capture = loads::conduct(question, server.port(), Some(factor * most))?;
            let rate = achieved(&capture);
            let share = 100.0 * rate / most;
            println!("  {factor:.1} times that requested: {rate:.0} a second, {share:.1} % of it");
        }
    }
    Ok(())
}

/// Spins on the sender's CPU and reads the clock: the time that the machine took away in
/// pieces of more than 50 µs. A send that is due in such a piece is late for any sender.
fn taken_away() -> anyhow::Result<()> {
    let (report, reported) = std::sync::mpsc::sync_channel(1);
    let mut scope = Scope::new(&Token::new());
    scope.thread(on(SENDER_CPU), "turning", move |_| {
        let begin = clock::now();
        let (mut before, mut late, mut longest) = (begin, Nanos::ZERO, Nanos::ZERO);
        while before.since(begin) < TURNING {
            let now = clock::now();
            let gap = now.since(before);
            late += gap.saturating_sub(Nanos::new(ON_TIME_NS));
            (before, longest) = (now, longest.max(gap));
        }
        report
            .send((late, before.since(begin), longest))
            .unwrap_or_default();
        Ok(())
    })?;
    let (late, length, longest) = reported.recv()?;
    scope.close(Nanos::from_secs(1));
    let share = 100.0 * late.as_secs_f64() / length.as_secs_f64();
    println!(
        "  a loop that does nothing else would be {share:.3} % of the time late by more than 50 µs, max {longest}"
    );
    Ok(())
}

/// Requests answered for each second.
fn achieved(capture: &LoadCapture) -> f64 {
    float_from_u64(loads::answered(capture)) / capture.manifest.measured.as_secs_f64()
}

fn on_time(capture: &LoadCapture) {
    for (name, time) in [
        ("later than the schedule", LoadTime::Lateness),
        ("later than a free connection", LoadTime::GeneratorLateness),
    ] {
        for worker in capture.workers() {
            let times = worker.times(time);
            let late = times.len() - times.count_between(0, ON_TIME_NS);
            let share = 100.0 * float_from_u64(late) / float_from_u64(times.len());
            println!(
                "  {name}: {} sends, {share:.3} % by more than 50 µs, p50 {}, p99.9 {}, max {}",
                times.len(),
                Nanos::new(times.value_at_quantile(0.5)),
                Nanos::new(times.value_at_quantile(0.999)),
                Nanos::new(times.max()),
            );
        }
    }
}
