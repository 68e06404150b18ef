//! CPU time of a bench for each event: both ends together, against a loop that only reads the
//! clock as often.

#![expect(
    clippy::print_stdout,
    reason = "what a benchmark has to say, it prints"
)]

use std::hint::black_box;

use stillwell_bench::{Bench, BenchError, Plan};
use stillwell_scope::clock;
use stillwell_units::{Nanos, float_from_u64};

const EVENTS: u64 = 2_000_000;
const ROUNDS: usize = 15;

fn main() -> Result<(), BenchError> {
    let mut figures = Vec::new();
    for round in 0..ROUNDS {
        let both = both_ends()?;
        let clocks = clocks();
        if round > 0 {
            figures.push((both, clocks));
        }
    }
    let median = |of: fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = figures.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    println!(
        "CPU time for each event, median of {} rounds of {EVENTS} events",
        ROUNDS - 1
    );
    println!("source and sink     {:6.1} ns", median(|round| round.0));
    println!("two clock readings  {:6.1} ns", median(|round| round.1));
    Ok(())
}

fn both_ends() -> Result<f64, BenchError> {
    let plan = Plan {
        events: EVENTS,
        ..Plan::new("overhead")
    };
    let (bench, mut source, mut sink) = Bench::start(plan)?;
    let begin = clock::thread_cpu();
    while let Some(ticket) = source.next() {
        sink.arrived(black_box(&ticket), 100);
    }
    let cpu = clock::thread_cpu().saturating_sub(begin);
    drop((source, sink));
    black_box(bench.finish()?);
    Ok(per_event(cpu))
}

fn clocks() -> f64 {
    let begin = clock::thread_cpu();
    for _ in 0..EVENTS {
        black_box(clock::now());
        black_box(clock::now());
    }
    per_event(clock::thread_cpu().saturating_sub(begin))
}

fn per_event(cpu: Nanos) -> f64 {
    float_from_u64(cpu.as_u64()) / float_from_u64(EVENTS)
}
