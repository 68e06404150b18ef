//! TCP at full speed with a syslog payload: generator and sink, beside a loop of
//! plain system calls with the same write size, and beside iperf3.

#![expect(
    clippy::print_stdout,
    reason = "what a benchmark has to say, it prints"
)]

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use stillwell_benches::{Figure, Side, compare, ours, plain};
use stillwell_payload::BlockSet;
use stillwell_plan::{PayloadFormat, TransportPlan};
use stillwell_testkit::{Process, find_program, free_port, wait_until};
use stillwell_units::{ByteSize, Nanos, Seed, floor_to_u64};

const ROUNDS: usize = 5;
const LENGTH: Duration = Duration::from_secs(2);
/// Size of the generator's write at full speed.
const WRITE_BYTES: usize = 512 * 1024;

fn main() -> anyhow::Result<()> {
    let plan = |address: &str| {
        let transport = TransportPlan::Tcp {
            address: address.to_owned(),
        };
        ours::generator(transport, PayloadFormat::Syslog5424, ByteSize::kib(64), 1)
    };
    let payload = plan("").payload;
    let set = BlockSet::build(&payload, payload.cache, Seed::from_number(1), None)?;
    let set = Arc::new(set);
    println!("TCP at full speed, syslog5424, writes of up to {WRITE_BYTES} bytes");
    let mut sides = vec![Side {
        name: "stillwell",
        turn: Box::new(|| ours::turn(&ours::tcp_sink(), plan, LENGTH)),
    }];
    if find_program("iperf3").is_some() {
        sides.push(Side {
            name: "iperf3",
            turn: Box::new(iperf3),
        });
    } else {
        println!("  iperf3 is not installed: left out");
    }
    sides.push(Side {
        name: "plain system calls",
        turn: Box::new(|| plain::tcp_turn(&set, WRITE_BYTES, LENGTH)),
    });
    compare(
        ROUNDS,
        "GiB per CPU second",
        Figure::gib_per_cpu_second,
        &mut sides,
    )
}

/// iperf3 with its client and server on the same CPUs as the others.
fn iperf3() -> anyhow::Result<Figure> {
    let port = free_port().to_string();
    let server = Process::start(Command::new("taskset").args([
        "-c",
        "1",
        "iperf3",
        "-s",
        "-1",
        "-B",
        "127.0.0.1",
        "-p",
        &port,
    ]));
    wait_until(Duration::from_secs(5), || {
        server.stdout().contains("listening")
    });
    let client = Process::start(Command::new("taskset").args([
        "-c",
        "0",
        "iperf3",
        "-c",
        "127.0.0.1",
        "-p",
        &port,
        "-J",
        "-l",
        "524288",
        "-t",
        &LENGTH.as_secs().to_string(),
    ]));
    let report = client.finish(LENGTH * 10).stdout;
    let report: serde_json::Value = serde_json::from_str(&report)?;
    let end = &report["end"];
    let number = |value: &serde_json::Value| value.as_f64().context("iperf3 says how much");
    let seconds = number(&end["sum_received"]["seconds"])?;
    let cpu = &end["cpu_utilization_percent"];
    let used = |percent: f64| Nanos::from_secs_f64(percent / 100.0 * seconds);
    Ok(Figure {
        bytes: floor_to_u64(number(&end["sum_received"]["bytes"])?),
        operations: 0,
        send_cpu: used(number(&cpu["host_total"])?),
        receive_cpu: used(number(&cpu["remote_total"])?),
    })
}
