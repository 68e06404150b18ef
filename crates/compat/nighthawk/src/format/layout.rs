//! Nighthawk's message in the layouts of its tools.

mod csv;
mod dotted;
mod fortio;
mod human;
mod pick;
mod prometheus;

use crate::Quantity;
use stillwell_report::load::id;
use stillwell_units::{Nanos, float_from_u64};

pub(super) use csv::csv;
pub(super) use dotted::dotted;
pub(super) use fortio::{Fortio, fortio};
pub(super) use human::{human, human_2020};
pub(super) use prometheus::prometheus;

/// First line of the layouts for readers.
const HEADING: &str = "Nighthawk - A layer 7 protocol benchmarking tool.\n\n";

/// Returns the name of a statistic for readers, or its id if it has none.
fn friendly(id: &str) -> &str {
    match id {
        id::QUEUE_TO_CONNECT => "Queueing and connection setup latency",
        id::REQUEST_TO_RESPONSE => "Request start to response end",
        id::RESPONSE_BODY_SIZE => "Response body size in bytes",
        id::RESPONSE_HEADER_SIZE => "Response header size in bytes",
        id::SEQUENCER_BLOCKING => {
            "Blocking. Results are skewed when significant numbers are reported here."
        }
        id::SEQUENCER_CALLBACK => "Initiation to completion",
        id => id,
    }
}

/// A quantity for readers: `0s 002ms 000us`, or the plain number.
fn quantity_text(value: Option<Quantity>) -> String {
    match value.unwrap_or(Quantity::Raw(0.0)) {
        Quantity::Time(time) => {
            let micros = time.as_u64() / 1000;
            let (seconds, millis) = (micros / 1_000_000, micros / 1000 % 1000);
            format!("{seconds}s {millis:03}ms {:03}us", micros % 1000)
        }
        Quantity::Raw(value) => value.to_string(),
    }
}

/// A percentile with at most eight digits behind the point.
fn share_text(share: f64) -> String {
    let text = format!("{share:.8}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A counter for each second of `length`.
fn per_second(value: u64, length: Option<Nanos>) -> f64 {
    let seconds = length.unwrap_or(Nanos::ZERO).as_secs_f64();
    if seconds > 0.0 {
        float_from_u64(value) / seconds
    } else {
        0.0
    }
}
