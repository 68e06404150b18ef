//! Payload bytes for each second of CPU time, by format.

#![expect(
    clippy::print_stdout,
    reason = "what a benchmark has to say, it prints"
)]

use stillwell_benches::{median, text_payloads};
use stillwell_payload::BlockSet;
use stillwell_plan::payload::{
    BlockShape, NetflowPlan, OtlpLogsPlan, OtlpMetricsPlan, OtlpTracesPlan, RemoteWritePlan,
    TraceAgentPlan, TraceCall, TraceOperation, TraceService, TraceWork,
};
use stillwell_plan::{PayloadFormat, PayloadPlan};
use stillwell_scope::clock;
use stillwell_units::{ByteSize, Seed, float_from_u64};

const ROUNDS: u64 = 7;
/// As large as what a generator worker builds by default. Every set lies in
/// memory that was never touched before.
const CACHE: ByteSize = ByteSize::mib(16);

fn main() -> anyhow::Result<()> {
    let formats = [
        PayloadFormat::Ascii,
        PayloadFormat::Json,
        PayloadFormat::Syslog5424,
        PayloadFormat::ApacheCommon,
        PayloadFormat::DatadogLog,
        PayloadFormat::Dogstatsd(Box::default()),
        PayloadFormat::OpentelemetryLogs(OtlpLogsPlan::default()),
        PayloadFormat::OpentelemetryMetrics(OtlpMetricsPlan::default()),
        PayloadFormat::OpentelemetryTraces(Box::new(traces())),
        PayloadFormat::TraceAgent(TraceAgentPlan::default()),
        PayloadFormat::Fluent,
        PayloadFormat::RemoteWrite(RemoteWritePlan::default()),
        PayloadFormat::Netflow(NetflowPlan::default()),
    ];
    let formats = formats.into_iter().map(|format| (format.name(), format));
    println!("payload built, sets of {CACHE}, blocks of up to 64 KiB");
    for (name, format) in formats.chain(text_payloads()?) {
        let plan = PayloadPlan {
            format,
            blocks: BlockShape::UpTo {
                maximum: ByteSize::kib(64),
            },
            cache: CACHE,
            repeats: false,
        };
        let mut speeds = Vec::new();
        for round in 0..ROUNDS {
            let before = clock::thread_cpu();
            let set = BlockSet::build(&plan, CACHE, Seed::from_number(round), None)?;
            let used = clock::thread_cpu().saturating_sub(before);
            let gib = float_from_u64(u64::try_from(set.bytes().len())?) / 1_073_741_824.0;
            speeds.push(gib / used.as_secs_f64());
        }
        println!("  {:<21} {:>6.2} GiB per CPU second", name, median(&speeds));
    }
    large_dogstatsd()
}

/// Time to build the largest cache that is usual.
fn large_dogstatsd() -> anyhow::Result<()> {
    let cache = ByteSize::mib(256);
    let plan = PayloadPlan {
        format: PayloadFormat::Dogstatsd(Box::default()),
        blocks: BlockShape::UpTo {
            maximum: ByteSize::kib(8),
        },
        cache,
        repeats: false,
    };
    let before = clock::thread_cpu();
    let set = BlockSet::build(&plan, cache, Seed::from_number(0), None)?;
    let used = clock::thread_cpu().saturating_sub(before);
    let seconds = used.as_secs_f64();
    println!(
        "  {} blocks of dogstatsd in {cache}: {seconds:.2} CPU seconds",
        set.len()
    );
    Ok(())
}

/// A gateway that calls a store, which queries a database.
fn traces() -> OtlpTracesPlan {
    let service = |name: &str, route: &str, calls: &[usize]| TraceService {
        name: name.to_owned(),
        resource_attributes: Vec::new(),
        scope_name: Some("bench".to_owned()),
        scope_version: "1.0.0".to_owned(),
        operations: vec![TraceOperation {
            id: "only".to_owned(),
            work: TraceWork::Http {
                method: "GET".to_owned(),
                route: route.to_owned(),
            },
            root: None,
            calls: calls
                .iter()
                .map(|service| TraceCall {
                    service: *service,
                    operation: 0,
                    rate: 0.9,
                    repeat_max: 3,
                    attributes: Vec::new(),
                })
                .collect(),
            attributes: Vec::new(),
        }],
    };
    let services = vec![
        service("gateway", "/items/{id}", &[1, 2]),
        service("store", "/stock/{id}", &[2]),
        service("database", "/rows/{id}", &[]),
    ];
    OtlpTracesPlan::try_new(services, 0.01).expect("the gateway begins traces")
}
