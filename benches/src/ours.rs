//! Our side: a generator and a sink in one process.

use std::sync::mpsc::sync_channel;
use std::time::Duration;

use anyhow::Context;
use stillwell_plan::generator::Concurrency;
use stillwell_plan::payload::BlockShape;
use stillwell_plan::sink::SinkBody;
use stillwell_plan::{
    GeneratorPlan, PayloadFormat, PayloadPlan, RatePlan, SinkPlan, SinkProtocol, TransportPlan,
};
use stillwell_scope::{Scope, Token, clock};
use stillwell_units::{ByteSize, Nanos, Seed};

use crate::{Figure, RECEIVER_CPU, SENDER_CPU, cpu_of, on};

/// A generator's plan with one worker.
#[must_use]
pub fn generator(
    transport: TransportPlan,
    format: PayloadFormat,
    maximum: ByteSize,
    connections: u16,
) -> GeneratorPlan {
    GeneratorPlan {
        id: "bench".to_owned(),
        transport,
        payload: PayloadPlan {
            format,
            blocks: BlockShape::UpTo { maximum },
            cache: ByteSize::mib(16),
            repeats: false,
        },
        rate: RatePlan::MAX,
        concurrency: Concurrency::ONE.with_connections(connections),
        seed: Seed::from_number(1),
        stamps: None,
    }
}

/// A TCP sink's plan on a port that the kernel chooses.
#[must_use]
pub fn tcp_sink() -> SinkPlan {
    SinkPlan {
        id: "bench".to_owned(),
        protocol: SinkProtocol::Tcp {
            address: ([127, 0, 0, 1], 0).into(),
        },
        workers: std::num::NonZeroU16::MIN,
        limit: None,
        lines: None,
        prefix: None,
    }
}

/// An HTTP sink's plan on a port that the kernel chooses.
#[must_use]
pub fn http_sink() -> SinkPlan {
    SinkPlan {
        id: "bench".to_owned(),
        protocol: SinkProtocol::Http {
            address: ([127, 0, 0, 1], 0).into(),
            status: 200,
            headers: Vec::new(),
            body: SinkBody::Empty,
            delay: Nanos::ZERO,
            connections_max: 100,
        },
        workers: std::num::NonZeroU16::MIN,
        limit: None,
        lines: None,
        prefix: None,
    }
}

/// Sends for `length` from a generator to a sink, each on its CPU. `plan` gets
/// the sink's `host:port`, or the path of its socket.
///
/// # Errors
/// When either cannot run.
pub fn turn(
    plan_of_sink: &SinkPlan,
    plan: impl FnOnce(&str) -> GeneratorPlan,
    length: Duration,
) -> anyhow::Result<Figure> {
    let mut scope = Scope::new(&Token::new());
    let sink = stillwell_sink::bind(plan_of_sink)?;
    let address = match &plan_of_sink.protocol {
        SinkProtocol::UnixDatagram { path } => path.display().to_string(),
        _ => sink
            .address()
            .context("the sink has an address")?
            .to_string(),
    };
    let received = sink.shards();
    sink.start(&mut scope, &on(RECEIVER_CPU))?;
    let prepared = stillwell_generator::prepare(&plan(&address), None)?;
    let sent = prepared.shards();
    let stop = Token::new();
    prepared.start(&mut scope, &on(SENDER_CPU), false, clock::now(), &stop)?;
    pause(length);
    stop.cancel();
    let ends = scope.close(Nanos::from_secs(10));
    Ok(Figure {
        bytes: received.iter().map(|shard| shard.bytes.total()).sum(),
        operations: sent.iter().map(|shard| shard.requests.total()).sum(),
        send_cpu: cpu_of(&ends, "gen-")?,
        receive_cpu: cpu_of(&ends, "sink-")?,
    })
}

/// Waits for `length`.
pub fn pause(length: Duration) {
    let (_keep, wait) = sync_channel::<()>(0);
    // The channel has no sender, so this waits for the whole length.
    wait.recv_timeout(length).unwrap_or_default();
}
