//! The counters of a relay.

use std::cell::Cell;
use std::fmt::Write as _;

/// The counters of a relay while it runs. One thread, so plain cells.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) events_in: Cell<u64>,
    pub(crate) events_out: Cell<u64>,
    pub(crate) events_dropped: Cell<u64>,
    pub(crate) parse_errors: Cell<u64>,
    pub(crate) bytes_in: Cell<u64>,
    pub(crate) bytes_out: Cell<u64>,
    pub(crate) disk_errors: Cell<u64>,
    pub(crate) compressed_refused: Cell<u64>,
}

/// Adds `amount` to `cell`.
pub(crate) fn add(cell: &Cell<u64>, amount: u64) {
    cell.set(cell.get() + amount);
}

/// The counters of a relay at its end. Each but `buffer_events_max` is also at `/metrics`, as
/// `relay_`, its name here, and `_total` if it only grows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RelayReport {
    /// Events taken in, those included that were dropped for lack of room.
    pub events_in: u64,
    /// Events handed over to the output: to the kernel, or over HTTP to a server
    /// that said yes.
    pub events_out: u64,
    /// Events taken in and never handed over.
    pub events_dropped: u64,
    /// Of these, those dropped on purpose.
    pub faults_dropped: u64,
    /// Events changed on purpose.
    pub faults_flipped: u64,
    /// Events that changed places with the next one on purpose.
    pub faults_swapped: u64,
    /// Events sent on twice on purpose; `events_out` has them twice.
    pub faults_duplicated: u64,
    /// Events of requests that were refused on purpose; they count nowhere else.
    pub faults_refused: u64,
    /// Requests that were refused because they are compressed; their events count nowhere.
    pub compressed_refused: u64,
    /// Events that could not be parsed, and were passed on as they were.
    pub parse_errors: u64,
    /// Bytes read, of HTTP requests the bodies.
    pub bytes_in: u64,
    /// Bytes handed over, of HTTP requests the bodies; line ends included.
    pub bytes_out: u64,
    /// Events in the buffer.
    pub buffer_events: u64,
    /// The most events that were ever in the buffer.
    pub buffer_events_max: u64,
    /// Memory hoarded, in bytes.
    pub hoard_bytes: u64,
    /// Events that an earlier relay left in the buffer on disk.
    pub events_recovered: u64,
    /// Events in the buffer on disk that were not handed over.
    pub events_kept: u64,
    /// Bytes in the buffer on disk that were no whole event when it was opened.
    pub torn_bytes: u64,
    /// Times that the buffer on disk was synced.
    pub disk_syncs: u64,
    /// Writes and syncs of the buffer on disk that the kernel refused; all are tried again.
    pub disk_errors: u64,
    /// Size of the buffer on disk.
    pub disk_bytes: u64,
}

impl RelayReport {
    /// Counters, which only grow: names, values and meanings.
    fn counters(&self) -> Vec<(&'static str, u64, &'static str)> {
        vec![
            ("events_in", self.events_in, "Events received."),
            ("events_out", self.events_out, "Events sent."),
            (
                "events_dropped",
                self.events_dropped,
                "Events received and not sent.",
            ),
            (
                "faults_dropped",
                self.faults_dropped,
                "Events dropped on purpose.",
            ),
            (
                "faults_flipped",
                self.faults_flipped,
                "Events changed on purpose.",
            ),
            (
                "faults_swapped",
                self.faults_swapped,
                "Events swapped with the next one on purpose.",
            ),
            (
                "faults_duplicated",
                self.faults_duplicated,
                "Events duplicated on purpose.",
            ),
            (
                "faults_refused",
                self.faults_refused,
                "Events of requests that were refused on purpose.",
            ),
            (
                "compressed_refused",
                self.compressed_refused,
                "Requests that were refused because they are compressed.",
            ),
            (
                "parse_errors",
                self.parse_errors,
                "Events that could not be parsed.",
            ),
            ("bytes_in", self.bytes_in, "Bytes read."),
            ("bytes_out", self.bytes_out, "Bytes sent."),
            (
                "events_recovered",
                self.events_recovered,
                "Events that an earlier relay left on disk.",
            ),
            (
                "torn_bytes",
                self.torn_bytes,
                "Bytes of incomplete events on disk.",
            ),
            (
                "disk_syncs",
                self.disk_syncs,
                "Syncs of the buffer on disk.",
            ),
            (
                "disk_errors",
                self.disk_errors,
                "Refused writes and syncs of the buffer on disk.",
            ),
        ]
    }

    /// Gauges, which also fall.
    fn gauges(&self) -> Vec<(&'static str, u64, &'static str)> {
        vec![
            ("buffer_events", self.buffer_events, "Events in the buffer."),
            ("hoard_bytes", self.hoard_bytes, "Memory kept on purpose."),
            (
                "events_kept",
                self.events_kept,
                "Events in the buffer on disk.",
            ),
            ("disk_bytes", self.disk_bytes, "Size of the buffer on disk."),
        ]
    }

    /// In Prometheus' text format, version 0.0.4.
    pub(crate) fn prometheus(&self) -> String {
        let mut text = String::with_capacity(2048);
        for (name, value, meaning) in self.counters() {
            write_metric(
                &format!("relay_{name}_total"),
                "counter",
                value,
                meaning,
                &mut text,
            );
        }
        for (name, value, meaning) in self.gauges() {
            write_metric(&format!("relay_{name}"), "gauge", value, meaning, &mut text);
        }
        text
    }
}

fn write_metric(name: &str, kind: &str, value: u64, meaning: &str, text: &mut String) {
    writeln!(
        text,
        "# HELP {name} {meaning}\n# TYPE {name} {kind}\n{name} {value}"
    )
    .unwrap_or_else(|_| unreachable!("a string takes every character"));
}
