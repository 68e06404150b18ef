//! `stillwell relay`.

use stillwell_relay::{DiskOptions, FaultOptions, RelayError, RelayOptions, RelayReport};
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
    let stop = Token::new();
    let raised = stop.clone();
    let signals = signals::listen(move |_| raised.cancel())
        .map_err(|error| CommandError::new(Exit::CouldNotRun, error))?;
    let report = stillwell_relay::run(options, &stop)
        .map_err(|error| CommandError::new(exit_of(&error), error))?;
    signals.close(Nanos::SECOND);
    print_counts(arguments, &report, is_faulty);
    Ok(Exit::Held)
}

/// Returns the exit code of a relay that did not start, or ended early.
const fn exit_of(error: &RelayError) -> Exit {
    match error {
        RelayError::InputDiscard
        | RelayError::OutputOnlyIn { .. }
        | RelayError::CannotRefuse { .. }
        | RelayError::NotRequests
        | RelayError::Output { .. }
        | RelayError::DiskTooSmall { .. } => Exit::Usage,
        RelayError::Resolve { .. }
        | RelayError::Listen { .. }
        | RelayError::Disk(_)
        | RelayError::Start { .. }
        | RelayError::Failed { .. } => Exit::CouldNotRun,
    }
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

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::PathBuf;

    use stillwell_http::HeadError;
    use stillwell_relay::DiskError;
    use stillwell_units::ByteSize;
    use stillwell_wire::ListenError;

    use super::*;

    #[test]
    fn options_that_no_relay_can_have_are_wrong_usage() {
        let endpoint = || "tcp://127.0.0.1:1".to_owned();
        let source = || io::Error::from(io::ErrorKind::AddrInUse);
        for (error, exit) in [
            (RelayError::InputDiscard, Exit::Usage),
            (
                RelayError::OutputOnlyIn {
                    endpoint: endpoint(),
                },
                Exit::Usage,
            ),
            (
                RelayError::CannotRefuse {
                    endpoint: endpoint(),
                },
                Exit::Usage,
            ),
            (RelayError::NotRequests, Exit::Usage),
            (
                RelayError::Output {
                    endpoint: endpoint(),
                    source: HeadError::ConnectBody,
                },
                Exit::Usage,
            ),
            (
                RelayError::DiskTooSmall {
                    bytes_max: ByteSize::mib(1),
                },
                Exit::Usage,
            ),
            (
                RelayError::Listen {
                    endpoint: endpoint(),
                    source: ListenError {
                        address: endpoint(),
                        source: source(),
                    },
                },
                Exit::CouldNotRun,
            ),
            (
                RelayError::Disk(DiskError::Taken {
                    folder: PathBuf::from("buffer"),
                }),
                Exit::CouldNotRun,
            ),
            (RelayError::Start { source: source() }, Exit::CouldNotRun),
        ] {
            assert_eq!(exit_of(&error), exit, "{error}");
        }
    }
}
