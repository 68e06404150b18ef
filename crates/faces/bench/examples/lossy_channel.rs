//! A pipeline of two threads that drops one event in a hundred, and reports that to the
//! sender.
//!
//! ```sh
//! cargo run --release -p stillwell-bench --example lossy_channel
//! ```

#![expect(clippy::print_stdout, reason = "an example prints what it found")]

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use stillwell_bench::{Bench, BenchError, Plan, Rate, Sink, Ticket};
use stillwell_scope::{Place, Scope, Token};
use stillwell_units::Nanos;

/// An event of the pipeline: any type, with the ticket in it.
struct Event {
    ticket: Ticket,
    text: String,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let report = run(Plan {
        rate: Rate::PerSecond(50_000.0),
        events: 100_000,
        warmup: Duration::from_millis(200),
        answers: true,
        ..Plan::new("a lossy channel")
    })?;
    println!("{}", report.text());
    Ok(())
}

fn run(plan: Plan) -> Result<stillwell_bench::Report, Box<dyn std::error::Error>> {
    let (bench, mut source, sink) = Bench::start(plan)?;
    let mut scope = Scope::new(&Token::new());
    let (into, middle) = sync_channel::<Event>(1024);
    let (out_of, end) = sync_channel::<Event>(1024);
    let failing = sink.clone();
    scope.thread(Place::default(), "transform", move |_| {
        transform(&middle, &out_of, failing);
        Ok(())
    })?;
    scope.thread(Place::default(), "sink", move |_| {
        deliver(&end, sink);
        Ok(())
    })?;
    while let Some(ticket) = source.next() {
        let text = format!("event number {}", ticket.sequence);
        source.wrote(text.len());
        into.send(Event { ticket, text })?;
    }
    drop((source, into));
    scope.close(Nanos::from_secs(10));
    Ok(bench
        .finish()
        .map_err(|error: BenchError| error.to_string())?)
}

/// The pipeline under test: drops one in a hundred.
fn transform(from: &Receiver<Event>, to: &SyncSender<Event>, mut sink: Sink) {
    while let Ok(mut event) = from.recv() {
        if event.ticket.sequence % 100 == 99 {
            sink.failed(&event.ticket);
            continue;
        }
        event.text.make_ascii_uppercase();
        if to.send(event).is_err() {
            return;
        }
    }
}

/// The output of the pipeline.
fn deliver(from: &Receiver<Event>, mut sink: Sink) {
    while let Ok(event) = from.recv() {
        sink.arrived(&event.ticket, event.text.len());
        sink.acknowledged(&event.ticket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hundredth_event_is_lost_and_reported_by_number() {
        let report = run(Plan {
            events: 10_000,
            answers: true,
            ..Plan::new("test")
        })
        .unwrap();
        assert_eq!(report.sent.events, 10_000);
        assert_eq!((report.lost(), report.arrived), (100, 9_900));
        assert_eq!(report.loss_ranges, 100);
        assert_eq!(report.losses[1], 199..=199);
        let answers = report.answers.unwrap();
        assert_eq!((answers.acknowledged, answers.failed), (9_900, 100));
        assert_eq!(answers.unacknowledged, 0);
        assert_eq!(report.failures(), ["100 events failed"]);
        assert_eq!((report.duplicated, report.reordered), (0, 0));
    }
}
