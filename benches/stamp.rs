//! Stamps: nanoseconds for each event to write one, to find, check and enter it,
//! and bytes searched for each second of CPU time.

#![expect(
    clippy::print_stdout,
    reason = "what a benchmark has to say, it prints"
)]

use anyhow::Context;
use stillwell_benches::median;
use stillwell_payload::BlockSet;
use stillwell_plan::payload::BlockShape;
use stillwell_plan::{PayloadFormat, PayloadPlan};
use stillwell_scope::clock;
use stillwell_stamp::{
    Expected, ExpectedStream, Ledger, RunMark, STAMP_WIDTH, Span, SpanCheck, StampMatch,
    StampSearch, StampVisitor, Stamper, StreamId, Times,
};
use stillwell_units::{ByteSize, Moment, Nanos, RunId, Seed, float_from_u64};

const ROUNDS: usize = 41;
/// Size that fits the second-level cache, as bytes that a socket just gave do.
const BYTES: usize = 1 << 19;
/// Size of a sink's read.
const READ: usize = 1 << 16;
/// Offset of the stamp in an event.
const BEFORE: usize = 40;

fn main() -> anyhow::Result<()> {
    println!("CPU time, median of {ROUNDS} rounds over {BYTES} bytes in reads of {READ}");
    let mut small = Events::new(256)?;
    small.write("stamp, spans made before", false)?;
    small.write("stamp, and make its span", true)?;
    small.enter("find and decode", Work::Search, 0)?;
    small.enter("find, check the span, enter", Work::Enter, 0)?;
    small.enter("find, check the span, enter, 1 % lost", Work::Enter, 100)?;
    let mut large = Events::new(1024)?;
    large.enter("find and decode", Work::Search, 0)?;
    large.enter("find, check the span, enter", Work::Enter, 0)?;
    Events::new(BYTES)?.enter("find, hardly a stamp", Work::Search, 0)
}

/// Work for each match.
#[derive(Clone, Copy)]
enum Work {
    /// No span is declared, and nothing entered.
    Search,
    /// The span is checked, and the ledger gets it.
    Enter,
}

/// Returns true for a stamp that declares no span.
fn is_bare(matched: &StampMatch) -> bool {
    let undeclared = SpanCheck::Undeclared;
    matches!(matched, StampMatch::Stamp { span, .. } if *span == undeclared)
}

/// Enters what is found, as a sink does.
struct Entering<'a> {
    ledger: &'a mut Ledger,
    now: Moment,
    matches: &'a mut u64,
    latency: &'a mut Nanos,
}

impl StampVisitor for Entering<'_> {
    #[inline(always)]
    fn visit(&mut self, matched: StampMatch) {
        if let Some(arrival) = self.ledger.take_in(&matched, self.now) {
            *self.matches += 1;
            *self.latency += arrival.latency;
        }
    }
}

/// Text with a stamp in each event.
struct Events {
    bytes: Vec<u8>,
    width: usize,
    spans: Vec<Span>,
    run: RunMark,
    stream: StreamId,
    stamper: Stamper,
    sequence: u64,
}

impl Events {
    fn new(width: usize) -> anyhow::Result<Self> {
        let plan = PayloadPlan {
            format: PayloadFormat::Syslog5424,
            blocks: BlockShape::UpTo {
                maximum: ByteSize::kib(64),
            },
            cache: ByteSize::mib(1),
            repeats: false,
        };
        let set = BlockSet::build(&plan, plan.cache, Seed::from_number(1), None)?;
        let bytes = set.bytes().get(..BYTES).context("a set of 1 MiB")?.to_vec();
        let (run, stream) = (
            RunMark::of(&RunId::from_bytes([3; 16])),
            StreamId::new(0).context("a stream")?,
        );
        let events = bytes.chunks(width);
        let spans = events.map(|event| Span::of(&event[BEFORE + STAMP_WIDTH..]));
        Ok(Self {
            spans: spans.collect(),
            bytes,
            width,
            run,
            stream,
            stamper: Stamper::new(run, stream),
            sequence: 0,
        })
    }

    fn count(&self) -> u64 {
        u64::try_from(self.spans.len()).unwrap_or_default()
    }

    /// Stamps all events; a sequence number that is a multiple of `lossy` is left out.
    fn stamp(&mut self, mut span_of: impl FnMut(&Span, &[u8]) -> Span, lossy: u64) {
        for (event, span) in self.bytes.chunks_exact_mut(self.width).zip(&self.spans) {
            let Some((slot, behind)) = event[BEFORE..].split_first_chunk_mut() else {
                continue;
            };
            self.sequence += 1;
            if self.sequence.checked_rem(lossy) == Some(0) {
                self.sequence += 1;
            }
            let span = span_of(span, behind);
            let intended = Moment::new(self.sequence * 5_000);
            let times = Times::new(intended, intended + Nanos::new(40_000));
            self.stamper.write(slot, self.sequence, times, span);
        }
    }

    fn write(&mut self, name: &str, hashes_again: bool) -> anyhow::Result<()> {
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            let before = clock::thread_cpu();
            if hashes_again {
                self.stamp(|_, behind| Span::of(behind), 0);
            } else {
                self.stamp(|span, _| *span, 0);
            }
            rounds.push(clock::thread_cpu().saturating_sub(before));
        }
        self.print(name, &rounds)
    }

    fn enter(&mut self, name: &str, work: Work, lossy: u64) -> anyhow::Result<()> {
        let mut ledger = Ledger::new(Expected {
            run: self.run,
            streams: vec![ExpectedStream {
                copies: 1,
                late_after: Some(Nanos::SECOND),
            }],
            memory: ByteSize::mib(64),
        })?;
        let mut search = StampSearch::new();
        let (mut rounds, mut matches, mut latency) = (Vec::new(), 0, Nanos::ZERO);
        for _ in 0..ROUNDS {
            match work {
                Work::Search => self.stamp(|_, _| Span::NONE, lossy),
                Work::Enter => self.stamp(|span, _| *span, lossy),
            }
            let now = Moment::new(self.sequence * 5_000);
            let before = clock::thread_cpu();
            for read in self.bytes.chunks(READ) {
                match work {
                    Work::Enter => search.feed(
                        read,
                        Entering {
                            ledger: &mut ledger,
                            now,
                            matches: &mut matches,
                            latency: &mut latency,
                        },
                    ),
                    Work::Search => search.feed(read, |matched| {
                        matches += u64::from(is_bare(&matched));
                    }),
                }
            }
            rounds.push(clock::thread_cpu().saturating_sub(before));
        }
        let expected = self.count() * u64::try_from(ROUNDS)?;
        anyhow::ensure!(
            matches == expected,
            "{matches} of {expected} stamps were found"
        );
        let figures = ledger.figures(self.stream, None).context("the stream")?;
        anyhow::ensure!(figures.damaged + figures.unverifiable == 0, "{figures:?}");
        self.print(name, &rounds)
    }

    fn print(&self, name: &str, rounds: &[Nanos]) -> anyhow::Result<()> {
        let rounds: Vec<f64> = rounds.iter().map(|round| round.as_secs_f64()).collect();
        let seconds = median(&rounds);
        let nanoseconds = seconds * 1e9 / float_from_u64(self.count());
        let gib = float_from_u64(u64::try_from(self.bytes.len())?) / 1_073_741_824.0;
        println!(
            "  {:>6} B an event: {name:<38} {nanoseconds:>8.1} ns an event, {:>5.2} GiB/s",
            self.width,
            gib / seconds
        );
        Ok(())
    }
}
