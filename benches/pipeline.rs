//! CPU time of load on its way: generator and sink together, beside a loop of plain system
//! calls with the same bytes in the same pieces, for each transport and its usual payload.

#![expect(
    clippy::print_stdout,
    reason = "what a benchmark has to say, it prints"
)]

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use stillwell_benches::{Figure, Side, compare, ours, plain};
use stillwell_payload::BlockSet;
use stillwell_plan::{GeneratorPlan, PayloadFormat, SinkPlan, SinkProtocol, TransportPlan};
use stillwell_units::{ByteSize, Seed};

const ROUNDS: usize = 5;
const LENGTH: Duration = Duration::from_secs(2);

/// One transport with its payload.
struct Case<'a> {
    name: &'a str,
    sink: SinkPlan,
    transport: fn(&str) -> TransportPlan,
    format: PayloadFormat,
    /// The largest block.
    block: ByteSize,
    connections: u16,
    /// One turn of the plain loop with the blocks of this set.
    plain: &'a dyn Fn(&Arc<BlockSet>) -> anyhow::Result<Figure>,
}

fn main() -> anyhow::Result<()> {
    let folder = std::env::temp_dir().join(format!("stillwell-pipeline-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let path = folder.join("sink.sock");
    let plain_path = folder.join("plain.sock");
    let dogstatsd = || PayloadFormat::Dogstatsd(Box::default());
    let sink = |protocol| SinkPlan {
        protocol,
        ..ours::tcp_sink()
    };
    let cases = [
        Case {
            name: "TCP, syslog, writes of up to 512 KiB",
            sink: ours::tcp_sink(),
            transport: |address| TransportPlan::Tcp {
                address: address.to_owned(),
            },
            format: PayloadFormat::Syslog5424,
            block: ByteSize::kib(64),
            connections: 1,
            plain: &|set| plain::tcp_turn(set, 512 * 1024, LENGTH),
        },
        Case {
            name: "HTTP, datadog_log, bodies of up to 512 KiB",
            sink: ours::http_sink(),
            transport: |address| TransportPlan::Http {
                url: format!("http://{address}/bench"),
                headers: Vec::new(),
                exchange: Box::default(),
            },
            format: PayloadFormat::DatadogLog,
            block: ByteSize::kib(512),
            connections: 4,
            plain: &|set| plain::post_turn(set, 4, LENGTH),
        },
        Case {
            name: "Unix datagrams, dogstatsd, up to 8 KiB",
            sink: sink(SinkProtocol::UnixDatagram { path }),
            transport: |path| TransportPlan::UnixDatagram { path: path.into() },
            format: dogstatsd(),
            block: ByteSize::kib(8),
            connections: 1,
            plain: &|set| plain::unix_datagram_turn(set, &plain_path, LENGTH),
        },
        Case {
            name: "UDP, dogstatsd, up to 8 KiB",
            sink: sink(SinkProtocol::Udp {
                address: ([127, 0, 0, 1], 0).into(),
            }),
            transport: |address| TransportPlan::Udp {
                address: address.to_owned(),
                bind: "127.0.0.1:0".to_owned(),
            },
            format: dogstatsd(),
            block: ByteSize::kib(8),
            connections: 1,
            plain: &|set| plain::udp_turn(set, LENGTH),
        },
    ];
    let requested = std::env::args()
        .nth(1)
        .filter(|word| !word.starts_with('-'));
    for case in &cases {
        if requested
            .as_ref()
            .is_none_or(|word| case.name.contains(word))
        {
            run(case)?;
        }
    }
    std::fs::remove_dir_all(&folder).context("remove the folder of the socket")
}

fn run(case: &Case<'_>) -> anyhow::Result<()> {
    let plan = |target: &str| -> GeneratorPlan {
        let transport = (case.transport)(target);
        ours::generator(transport, case.format.clone(), case.block, case.connections)
    };
    let payload = plan("").payload;
    let set = BlockSet::build(&payload, payload.cache, Seed::from_number(1), None)?;
    let set = Arc::new(set);
    println!("{}", case.name);
    let mut sides = [
        Side {
            name: "stillwell",
            turn: Box::new(|| ours::turn(&case.sink, plan, LENGTH)),
        },
        Side {
            name: "plain system calls",
            turn: Box::new(|| (case.plain)(&set)),
        },
    ];
    compare(
        ROUNDS,
        "GiB received per CPU second of both halves",
        Figure::gib_per_cpu_second,
        &mut sides,
    )
}
