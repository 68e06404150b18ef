//! Judging: seconds for a suite of 100 experiments, of 20 pairs and three goals each, with
//! 300 series a run, and for one such experiment.

#![expect(
    clippy::print_stdout,
    reason = "what a benchmark has to say, it prints"
)]

use stillwell_benches::median;
use stillwell_scope::clock;
use stillwell_units::float_from_u64;
use stillwell_verdict::{judge, synthetic};

const EXPERIMENTS: u32 = 100;
const PAIRS: u32 = 20;
const SERIES: u32 = 300;
const ROUNDS: usize = 5;

fn main() {
    let suite: Vec<_> = (0..EXPERIMENTS)
        .map(|number| synthetic::crowded(&format!("experiment-{number}"), PAIRS, SERIES))
        .collect();
    let mut seconds = Vec::with_capacity(ROUNDS);
    let mut moved = 0;
    for _ in 0..ROUNDS {
        let began = clock::now();
        moved = suite
            .iter()
            .map(|(plan, runs)| judge(plan, runs).moved.len())
            .sum();
        seconds.push(clock::now().since(began).as_secs_f64());
    }
    let all = median(&seconds);
    let runs = EXPERIMENTS * 2 * PAIRS;
    let each_ms = 1e3 * all / float_from_u64(EXPERIMENTS.into());
    println!(
        "{EXPERIMENTS} experiments, {PAIRS} pairs, 3 goals, {SERIES} series a run: {runs} runs"
    );
    println!("judged in {all:.2} s, {each_ms:.1} ms each, median of {ROUNDS} rounds");
    println!("{moved} series were told as moved");
}
