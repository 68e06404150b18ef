//! Pacing: lateness of sends at 1,000 and 20,000 a second, with a reserved core
//! and without.

#![expect(
    clippy::print_stdout,
    reason = "what a benchmark has to say, it prints"
)]

use std::time::Duration;

use anyhow::Context;
use stillwell_benches::{RECEIVER_CPU, SENDER_CPU, on, ours};
use stillwell_metric::{Sample, Shard, Value, catalogue, decode_histogram, empty_histogram};
use stillwell_plan::payload::BlockShape;
use stillwell_plan::{PayloadFormat, RatePlan, TransportPlan};
use stillwell_scope::{Scope, Token, clock};
use stillwell_units::{ByteSize, EventRate, Nanos, float_from_u64};

const LENGTH: Duration = Duration::from_secs(5);
const LATE: u64 = 50_000;

fn main() -> anyhow::Result<()> {
    println!("lateness of sends over TCP, one event each, {LENGTH:?} a line");
    for reserved in [true, false] {
        for rate in [1000.0, 20_000.0] {
            pace(rate, reserved)?;
        }
    }
    Ok(())
}

fn pace(rate: f64, reserved: bool) -> anyhow::Result<()> {
    let mut scope = Scope::new(&Token::new());
    let sink = stillwell_sink::bind(&ours::tcp_sink())?;
    let address = sink.address().context("the sink has an address")?;
    sink.start(&mut scope, &on(RECEIVER_CPU))?;
    let transport = TransportPlan::Tcp {
        address: address.to_string(),
    };
    let mut plan = ours::generator(transport, PayloadFormat::Syslog5424, ByteSize::kib(4), 1);
    plan.payload.blocks = BlockShape::Events {
        count: 1,
        maximum: ByteSize::kib(4),
    };
    plan.rate = RatePlan::events(EventRate::try_new(rate)?);
    let prepared = stillwell_generator::prepare(&plan, None)?;
    let shards = prepared.shards();
    let stop = Token::new();
    prepared.start(&mut scope, &on(SENDER_CPU), reserved, clock::now(), &stop)?;
    ours::pause(LENGTH);
    stop.cancel();
    scope.close(Nanos::from_secs(10));
    let mut all = empty_histogram();
    let mut samples: Vec<Sample> = Vec::new();
    for shard in &shards {
        shard.sample(&mut samples);
    }
    for sample in samples {
        if sample.name == catalogue::LATENESS.into()
            && let Value::Histogram(bytes) = &sample.value
            && let Some(histogram) = decode_histogram(bytes)
        {
            all.add(&histogram)?;
        }
    }
    let late = all.len() - all.count_between(0, LATE);
    let share = float_from_u64(late) / float_from_u64(all.len()) * 100.0;
    println!(
        "  {:>6} a second, {:<18} {:>7} sends, {share:.3} % later than 50 µs, p50 {}, p99.9 {}, max {}",
        rate,
        if reserved {
            "core reserved"
        } else {
            "core not reserved"
        },
        all.len(),
        Nanos::new(all.value_at_quantile(0.5)),
        Nanos::new(all.value_at_quantile(0.999)),
        Nanos::new(all.max()),
    );
    Ok(())
}
