//! Payload bytes for each second of CPU time, by format.

#![expect(
    clippy::print_stdout,
    reason = "what a benchmark has to say, it prints"
)]

use stillwell_benches::median;
use stillwell_payload::BlockSet;
use stillwell_plan::{BlockShape, PayloadFormat, PayloadPlan};
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
    ];
    println!("payload built, sets of {CACHE}, blocks of up to 64 KiB");
    for format in formats {
        let plan = PayloadPlan {
            format,
            blocks: BlockShape::UpTo {
                maximum: ByteSize::kib(64),
            },
            cache: CACHE,
        };
        let mut speeds = Vec::new();
        for round in 0..ROUNDS {
            let before = clock::thread_cpu();
            let set = BlockSet::build(&plan, CACHE, Seed::from_number(round), None)?;
            let used = clock::thread_cpu().saturating_sub(before);
            let gib = float_from_u64(u64::try_from(set.bytes().len())?) / 1_073_741_824.0;
            speeds.push(gib / used.as_secs_f64());
        }
        println!(
            "  {:<16} {:>6.2} GiB per CPU second",
            plan.format.name(),
            median(&speeds)
        );
    }
    Ok(())
}
