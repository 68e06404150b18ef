//! Export of metrics during runs.

use std::sync::mpsc::sync_channel;
use std::time::Duration;

use stillwell_capture::{SinkFound, TelemetryResult};
use stillwell_plan::load::{StatsPagePlan, StatsProtocol, TelemetryPlan};
use stillwell_run::{Interrupt, RunTelemetry};
use stillwell_units::RunId;

use crate::arguments::LoadStatsArguments;
use crate::command::load::telemetry::summary_lines;
use crate::command::random::random;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

/// Time between two looks at the receivers.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Starts the export that `arguments` request, if any.
pub(super) fn start(arguments: &LoadStatsArguments) -> Result<Option<RunTelemetry>, CommandError> {
    let could_not = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    let name = random().map_err(|error| could_not(error.into()))?;
    let plan = plan(arguments, RunId::from_bytes(name))?;
    RunTelemetry::start(&plan).map_err(|error| could_not(error.into()))
}

/// Refuses options that have no effect without an exporter, as `load` does.
pub(super) fn check(arguments: &LoadStatsArguments) -> Result<(), CommandError> {
    let message = if arguments.stats_flush_interval.is_some() && arguments.stats_sink.is_empty() {
        "--stats-flush-interval has no effect without --stats-sink: the page of --stats-listen \
         always shows current values"
    } else if !arguments.stats_label.is_empty() && !arguments.has_exporters() {
        "--stats-label has no effect without --stats-sink or --stats-listen"
    } else {
        return Ok(());
    };
    Err(CommandError::new(Exit::Usage, anyhow::anyhow!(message)))
}

fn plan(arguments: &LoadStatsArguments, run: RunId) -> Result<TelemetryPlan, CommandError> {
    check(arguments)?;
    let sinks: Vec<_> = arguments.stats_sink.iter().map(|sink| &sink.0).collect();
    let is_statsd = |protocol| {
        matches!(
            protocol,
            StatsProtocol::Statsd | StatsProtocol::StatsdTcp | StatsProtocol::Dogstatsd
        )
    };
    if let Some(sink) = sinks.iter().find(|sink| is_statsd(sink.protocol)) {
        let error = anyhow::anyhow!("metrics of runs cannot be exported to {}", sink.name);
        return Err(CommandError::new(Exit::Usage, error).hint(
            "give otlp+http://HOST, otlp+grpc://HOST or remote-write+http://HOST, or --stats-listen PORT",
        ));
    }
    let labels = arguments.stats_label.iter();
    Ok(TelemetryPlan {
        run,
        labels: labels
            .map(|label| (label.0.clone(), label.1.clone()))
            .collect(),
        sinks: sinks.into_iter().cloned().collect(),
        flush_every: arguments
            .stats_flush_interval
            .unwrap_or(TelemetryPlan::FLUSH_EVERY),
        page: arguments.stats_listen.map(|address| StatsPagePlan {
            address: address.0,
            linger: arguments.stats_linger,
        }),
        ..TelemetryPlan::default()
    })
}

/// Exports the last values, and reports their results.
pub(super) fn finish(telemetry: Option<RunTelemetry>, interrupt: &Interrupt, is_quiet: bool) {
    let Some(telemetry) = telemetry else { return };
    let (_sender, receiver) = sync_channel::<()>(1);
    let wait = || {
        // Nothing is ever sent.
        receiver.recv_timeout(LOOK_EVERY).ok();
        interrupt.signal().is_some()
    };
    let result = telemetry.finish(&wait);
    if !is_quiet {
        summary_lines(&result)
            .iter()
            .for_each(|line| Paint::print_message(line));
    }
    failure_lines(&result)
        .iter()
        .for_each(|line| Paint::print_message(line));
}

fn failure_lines(result: &TelemetryResult) -> Vec<String> {
    let failed = |sink: &&SinkFound| sink.failures > 0 || !sink.is_complete;
    let lines = result.sinks.iter().filter(failed).map(|sink| {
        let (name, failures, all) = (&sink.name, sink.failures, sink.flushes);
        let trouble = sink
            .trouble
            .as_deref()
            .unwrap_or("the last one did not end");
        if failures == 0 {
            return format!("warning: {name}: the final totals were not exported: {trouble}");
        }
        format!("warning: {name}: {failures} of {all} exports failed: {trouble}")
    });
    let ended = result.failure.iter();
    let ended =
        ended.map(|failure| format!("warning: the export of metrics ended early: {failure}"));
    lines.chain(ended).collect()
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _};

    use super::*;

    fn read(words: &[&str]) -> Result<TelemetryPlan, CommandError> {
        let command = LoadStatsArguments::augment_args(clap::Command::new("x"));
        let matches = command
            .try_get_matches_from([&["x"], words].concat())
            .unwrap();
        let arguments = LoadStatsArguments::from_arg_matches(&matches).unwrap();
        plan(&arguments, RunId::from_bytes([1; 16]))
    }

    #[test]
    fn runs_export_to_receivers_that_support_gauges() {
        assert!(!read(&[]).unwrap().has_exporters());
        let plan = read(&[
            "--stats-sink=remote-write+http://127.0.0.1:9090",
            "--stats-listen=19100",
            "--stats-label=team=a",
        ]);
        let plan = plan.unwrap();
        assert_eq!((plan.sinks.len(), plan.page.is_some()), (1, true));
        assert_eq!(plan.labels, [("team".to_owned(), "a".to_owned())]);
        for sink in ["statsd://a", "statsd+tcp://a", "dogstatsd://a"] {
            let refused = read(&["--stats-sink", sink]).unwrap_err();
            assert!(refused.hint.is_some_and(|hint| hint.contains("otlp")));
        }
    }

    #[test]
    fn options_that_have_no_effect_without_an_exporter_are_refused() {
        let (sink, listen) = ("--stats-sink=otlp+http://a", "--stats-listen=19100");
        let (flush, label) = ("--stats-flush-interval=1s", "--stats-label=team=a");
        for (words, refused) in [
            (&[flush][..], Some("--stats-flush-interval")),
            (&[listen, flush], Some("--stats-flush-interval")),
            (&[sink, flush], None),
            (&[label], Some("--stats-label")),
            (&[sink, label], None),
            (&[listen, label], None),
        ] {
            let error = read(words).err();
            assert_eq!(error.is_some(), refused.is_some(), "{words:?}");
            if let (Some(error), Some(refused)) = (error, refused) {
                assert_eq!(error.exit, Exit::Usage);
                let message = format!("{refused} has no effect without --stats-sink");
                assert!(error.to_string().starts_with(&message), "{error}");
            }
        }
    }

    #[test]
    fn an_export_that_failed_is_named_once() {
        let sink = SinkFound {
            name: "otlp+http://a".to_owned(),
            flushes: 3,
            failures: 2,
            is_complete: false,
            trouble: Some("connect: refused".to_owned()),
        };
        let result = TelemetryResult {
            sinks: vec![sink],
            ..TelemetryResult::default()
        };
        assert_eq!(
            failure_lines(&result),
            ["warning: otlp+http://a: 2 of 3 exports failed: connect: refused"]
        );
        assert!(failure_lines(&TelemetryResult::default()).is_empty());
    }
}
