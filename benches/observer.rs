//! CPU time to observe a tree of 50 processes once a second.

#![expect(
    clippy::print_stdout,
    reason = "what a benchmark has to say, it prints"
)]

use std::process::Command;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use stillwell_benches::{SENDER_CPU, cpu_of, on, ours};
use stillwell_observer::{TargetProbe, Watched};
use stillwell_plan::ObserverPlan;
use stillwell_scope::{Scope, Token};
use stillwell_testkit::{Process, wait_until};
use stillwell_units::Nanos;

const LENGTH: Duration = Duration::from_secs(20);
const PROCESSES: usize = 50;

fn main() -> anyhow::Result<()> {
    let script = format!(
        "for i in $(seq {}); do sleep 60 & done; echo up; wait",
        PROCESSES - 1
    );
    let tree = Process::start(Command::new("sh").args(["-c", &script]));
    wait_until(Duration::from_secs(10), || tree.stdout().contains("up"));
    let mut scope = Scope::new(&Token::new());
    let (deliver, beats) = sync_channel(64);
    let watched = Watched {
        target: Some(TargetProbe {
            pid: tree.id(),
            ..TargetProbe::default()
        }),
        shards: Vec::new(),
        threads: Box::new(Vec::new),
        profiles: std::path::PathBuf::new(),
    };
    let sampler = stillwell_observer::start(
        &mut scope,
        &on(SENDER_CPU),
        &ObserverPlan::default(),
        watched,
        deliver,
    )?;
    ours::pause(LENGTH);
    drop(sampler);
    let ends = scope.close(Nanos::from_secs(10));
    let count = beats.try_iter().count();
    let cpu = cpu_of(&ends, "")?;
    println!(
        "observing {PROCESSES} processes at 1 Hz: {count} beats in {LENGTH:?}, {cpu} of CPU, {:.3} % of a core",
        cpu.as_secs_f64() / LENGTH.as_secs_f64() * 100.0
    );
    Ok(())
}
