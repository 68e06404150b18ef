//! Benchmarks against peers.
//!
//! Every figure is a ratio of two sides that took turns in one run on one
//! machine, as CPU time that all threads of a side used. Figures go into
//! `docs/internals/performance.md` together with their command.

#![expect(
    clippy::print_stdout,
    reason = "what a benchmark has to say, it prints"
)]

pub mod loads;
mod nginx;
pub mod ours;
mod peers;
pub mod plain;
mod texts;

pub use nginx::Nginx;
pub use peers::{Peer, Question};
pub use texts::text_payloads;

use stillwell_scope::{PartEnd, Place};
use stillwell_units::{Nanos, float_from_u64};

const GIB: f64 = 1_073_741_824.0;

/// The CPU of senders.
pub const SENDER_CPU: u16 = 0;
/// The CPU of receivers.
pub const RECEIVER_CPU: u16 = 1;

/// Amount and cost of one turn of one side.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figure {
    /// Bytes moved.
    pub bytes: u64,
    /// Operations done, such as requests.
    pub operations: u64,
    /// CPU time of all threads of the sending half.
    pub send_cpu: Nanos,
    /// CPU time of all threads of the receiving half.
    pub receive_cpu: Nanos,
}

impl Figure {
    /// GiB for each second of CPU time of both halves.
    #[must_use]
    pub fn gib_per_cpu_second(&self) -> f64 {
        let cpu = (self.send_cpu + self.receive_cpu).as_secs_f64();
        float_from_u64(self.bytes) / GIB / cpu
    }

    /// GiB for each second of CPU time of the sending half.
    #[must_use]
    pub fn gib_per_send_second(&self) -> f64 {
        float_from_u64(self.bytes) / GIB / self.send_cpu.as_secs_f64()
    }

    /// Operations for each second of CPU time of the sending half.
    #[must_use]
    pub fn operations_per_send_second(&self) -> f64 {
        float_from_u64(self.operations) / self.send_cpu.as_secs_f64()
    }

    /// Operations for each second of CPU time of the receiving half.
    #[must_use]
    pub fn operations_per_receive_second(&self) -> f64 {
        float_from_u64(self.operations) / self.receive_cpu.as_secs_f64()
    }
}

/// One side of a comparison: its name, and one turn of it.
pub struct Side<'a> {
    /// Name in tables.
    pub name: &'a str,
    /// Does one turn.
    pub turn: Box<dyn FnMut() -> anyhow::Result<Figure> + 'a>,
}

impl std::fmt::Debug for Side<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Side")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Lets all sides take `rounds` turns, one after the other, and prints the
/// median of `figure` of each and the median of its ratios to the last side's
/// in the same round: a neighbour that comes or goes harms a round, not a side.
///
/// # Errors
/// What a turn fails with.
pub fn compare(
    rounds: usize,
    unit: &str,
    figure: impl Fn(&Figure) -> f64,
    sides: &mut [Side<'_>],
) -> anyhow::Result<()> {
    let taken = take_turns(rounds, figure, sides)?;
    let last = taken.last().cloned().unwrap_or_default();
    for (side, values) in sides.iter().zip(&taken) {
        let middle = median(values);
        let ratios: Vec<f64> = values
            .iter()
            .zip(&last)
            .map(|(value, base)| value / base)
            .collect();
        let ratio = median(&ratios);
        println!(
            "  {:<28} {middle:>12.3} {unit}   {ratio:.2} of the last",
            side.name
        );
    }
    Ok(())
}

/// As [`compare`], but prints how many times the figure of each side that of the
/// first one is: our own beside its peers.
///
/// # Errors
/// What a turn fails with.
pub fn compare_first(
    rounds: usize,
    unit: &str,
    figure: impl Fn(&Figure) -> f64,
    sides: &mut [Side<'_>],
) -> anyhow::Result<()> {
    let taken = take_turns(rounds, figure, sides)?;
    let first = taken.first().cloned().unwrap_or_default();
    for (side, values) in sides.iter().zip(&taken) {
        let middle = median(values);
        let ratios = first.iter().zip(values).map(|(value, base)| value / base);
        let mut ratios: Vec<f64> = ratios.collect();
        let ratio = median(&ratios);
        ratios.sort_by(f64::total_cmp);
        let (least, most) = (
            ratios.first().unwrap_or(&ratio),
            ratios.last().unwrap_or(&ratio),
        );
        println!(
            "  {:<16} {middle:>9.0} {unit}   {ratio:.2} ({least:.2} to {most:.2})",
            side.name
        );
    }
    Ok(())
}

/// The figure of each side, round by round.
fn take_turns(
    rounds: usize,
    figure: impl Fn(&Figure) -> f64,
    sides: &mut [Side<'_>],
) -> anyhow::Result<Vec<Vec<f64>>> {
    let mut taken = vec![Vec::with_capacity(rounds); sides.len()];
    for _ in 0..rounds {
        for (side, values) in sides.iter_mut().zip(&mut taken) {
            values.push(figure(&(side.turn)()?));
        }
    }
    Ok(taken)
}

/// Requests to clients and servers, for `seconds` a turn: both versions of HTTP, each without
/// TLS and with it.
#[must_use]
pub fn questions(seconds: u32) -> [Question; 4] {
    let http1 = Question {
        name: "HTTP/1.1",
        is_http2: false,
        has_tls: false,
        connections: 50,
        streams: 1,
        seconds,
    };
    let http2 = Question {
        name: "HTTP/2",
        is_http2: true,
        connections: 10,
        streams: 10,
        ..http1
    };
    let over_tls = |name, question: Question| Question {
        name,
        has_tls: true,
        ..question
    };
    [
        http1,
        http2,
        over_tls("HTTP/1.1/TLS", http1),
        over_tls("HTTP/2/TLS", http2),
    ]
}

/// The middle value.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A place on one CPU.
#[must_use]
pub fn on(cpu: u16) -> Place {
    Place {
        cpus: Some(vec![cpu]),
        network: None,
    }
}

/// CPU time of the parts whose name begins with `prefix`.
///
/// # Errors
/// The first failure among all parts.
pub fn cpu_of(ends: &[PartEnd], prefix: &str) -> anyhow::Result<Nanos> {
    let mut total = Nanos::ZERO;
    for end in ends {
        if let Err(failure) = &end.result {
            anyhow::bail!("{} failed: {failure}", end.name);
        }
        if end.name.starts_with(prefix) {
            total += end.cpu;
        }
    }
    Ok(total)
}
