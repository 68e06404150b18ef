//! `stillwell relay`.

use stillwell_relay::{DiskOptions, FaultOptions, RelayOptions, RelayReport};
use stillwell_scope::Token;
use stillwell_units::Nanos;

use crate::arguments::RelayArguments;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;
use crate::signals;

pub(crate) fn run(arguments: &RelayArguments) -> Result<Exit, CommandError> {
    let options = RelayOptions {
        input: arguments.input.clone(),
        output: arguments.output.clone(),
        format: arguments.events,
        parse: arguments.parse,
        rewrite: arguments.rewrite.clone(),
        buffer_events: arguments.buffer_events,
        disk: arguments.buffer_dir.clone().map(|folder| DiskOptions {
            folder,
            bytes_max: arguments.buffer_bytes,
            sync: arguments.fsync,
        }),
        metrics: arguments.metrics,
        work_per_event: arguments.work_per_event,
        hoard_per_event: arguments.hoard_per_event,
        leak: arguments.leak,
        stall: arguments.stall,
        limit: arguments.limit,
        faults: FaultOptions {
            drop: arguments.drop,
            flip: arguments.flip,
            swap: arguments.swap,
            double: arguments.double,
            refuse: arguments.refuse,
        },
    };
    let is_faulty = options.faults != FaultOptions::default();
    let failed = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    let stop = Token::new();
    let raised = stop.clone();
    let signals = signals::listen(move |_| raised.cancel()).map_err(|e| failed(e.into()))?;
    let report = stillwell_relay::run(options, &stop).map_err(|e| failed(e.into()))?;
    signals.close(Nanos::SECOND);
    print_counts(arguments, &report, is_faulty);
    Ok(Exit::Held)
}

fn print_counts(arguments: &RelayArguments, report: &RelayReport, is_faulty: bool) {
    Paint::print_message(&format!(
        "stillwell relay: {} events in, {} out, {} dropped, {} parse errors; {} bytes in, {} out",
        report.events_in,
        report.events_out,
        report.events_dropped,
        report.parse_errors,
        report.bytes_in,
        report.bytes_out
    ));
    if report.compressed_refused > 0 {
        let refused = report.compressed_refused;
        Paint::print_message(&format!(
            "stillwell relay: {refused} compressed requests refused: turn compression off in the client"
        ));
    }
    if arguments.buffer_dir.is_some() {
        Paint::print_message(&format!(
            "stillwell relay: disk buffer: {} events recovered, {} bytes of incomplete events discarded, {} events \
             kept; {} syncs, {} refused writes and syncs",
            report.events_recovered,
            report.torn_bytes,
            report.events_kept,
            report.disk_syncs,
            report.disk_errors
        ));
    }
    if is_faulty {
        Paint::print_message(&format!(
            "stillwell relay: injected faults: {} dropped, {} flipped, {} swapped, {} duplicated",
            report.faults_dropped,
            report.faults_flipped,
            report.faults_swapped,
            report.faults_duplicated
        ));
    }
    if arguments.refuse.is_some() {
        let refused = report.faults_refused;
        Paint::print_message(&format!(
            "stillwell relay: refused requests with {refused} events"
        ));
    }
}
