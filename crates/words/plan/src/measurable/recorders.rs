//! Parts of a run that record the metrics of the catalogue.
//!
//! Metrics that every run records have no row.

use stillwell_metric::{Metric, catalogue};

use crate::generator::{FileLayout, TransportRecords};
use crate::payload::PayloadFormat;
use crate::sink::{IntakeService, SeriesRecord};
use crate::step::{SinkChange, StepAction, TargetChange};
use crate::{GeneratorPlan, RunPlan, SinkPlan, SinkProtocol, TargetKind, TransportPlan};

/// Metrics of the catalogue from one to another, and the parts that record them.
pub(super) struct Recorders {
    first: Metric,
    last: Metric,
    /// Parts that record them.
    pub(super) parts: Parts,
    /// Reason why no run of a plan without such parts records them.
    pub(super) missing: &'static str,
}

/// Parts that record a metric.
pub(super) enum Parts {
    /// These generators.
    Generators(fn(&GeneratorPlan) -> bool),
    /// These sinks.
    Sinks(fn(&SinkPlan) -> bool),
    /// A part without a name, if there is one.
    Run(fn(&RunPlan) -> bool),
}

impl Recorders {
    const fn generators(
        (first, last): (Metric, Metric),
        are: fn(&GeneratorPlan) -> bool,
        missing: &'static str,
    ) -> Self {
        Self {
            first,
            last,
            parts: Parts::Generators(are),
            missing,
        }
    }

    const fn sinks(
        (first, last): (Metric, Metric),
        are: fn(&SinkPlan) -> bool,
        missing: &'static str,
    ) -> Self {
        Self {
            first,
            last,
            parts: Parts::Sinks(are),
            missing,
        }
    }

    const fn run(
        (first, last): (Metric, Metric),
        is: fn(&RunPlan) -> bool,
        missing: &'static str,
    ) -> Self {
        Self {
            first,
            last,
            parts: Parts::Run(is),
            missing,
        }
    }

    /// The rows of the metric at this place of the catalogue; all must hold, and the first that does not is the reason.
    pub(super) fn of(place: usize) -> impl Iterator<Item = &'static Self> {
        RECORDERS.iter().filter(move |row| {
            let of = |metric: Metric| place_of(metric.name);
            of(row.first)
                .zip(of(row.last))
                .is_some_and(|(first, last)| (first..=last).contains(&place))
        })
    }
}

/// Place of a metric in the catalogue.
pub(super) fn place_of(name: &str) -> Option<usize> {
    catalogue::ALL.iter().position(|metric| metric.name == name)
}

const NO_GENERATOR: &str = "there is no generator";
const NO_SINK: &str = "there is no sink";
const NOT_IN_RUNS: &str = "only `load` records it";
const NO_STAMPS: &str = "no generator stamps its events: give one `stamps: all`";

const fn alone(metric: Metric) -> (Metric, Metric) {
    (metric, metric)
}

static RECORDERS: &[Recorders] = {
    use catalogue as of;
    &[
        Recorders::generators(
            (of::BYTES_WRITTEN, of::ACK_QUESTIONS_FAILED),
            |_| true,
            NO_GENERATOR,
        ),
        Recorders::generators(
            alone(of::UNITS_WRITTEN),
            packs_units,
            "each event of the payload is one item",
        ),
        Recorders::generators(
            (of::RESPONSE_TIME, of::SERVICE_TIME),
            GeneratorPlan::has_responses,
            "no generator waits for responses",
        ),
        Recorders::generators(
            alone(of::STATUSES),
            |plan| records(plan).statuses,
            "no generator is `http`, `requests` or `scenario`",
        ),
        Recorders::generators(
            (of::ROUTE_OUTCOMES, of::ROUTE_FIRST_BYTE_TIME),
            has_routes,
            "no generator has several routes",
        ),
        Recorders::generators(
            alone(of::EVENTS_ACKNOWLEDGED),
            |plan| records(plan).acknowledged_events,
            "no generator waits for acknowledgements",
        ),
        Recorders::generators(
            alone(of::EVENTS_REFUSED),
            |plan| records(plan).refused_events,
            "no generator waits for acknowledgements",
        ),
        Recorders::generators(
            alone(of::REQUESTS_AGAIN),
            |plan| records(plan).resends,
            "no generator is `splunk_hec` or `trace_agent`, or waits for acknowledgements",
        ),
        Recorders::generators(
            (of::ACKS_RECEIVED, of::ACK_QUESTIONS_LATE),
            |plan| records(plan).polls,
            "no generator polls for acknowledgements",
        ),
        Recorders::generators(
            alone(of::ACK_QUESTIONS_FAILED),
            |plan| records(plan).polls,
            "no generator polls for acknowledgements",
        ),
        Recorders::generators(
            alone(of::RESPONSE_BYTES),
            |plan| records(plan).response_bytes,
            "no generator is `grpc`",
        ),
        Recorders::generators(
            alone(of::REQUESTS_MAX),
            |plan| records(plan).requests_max,
            "no generator is `splunk_hec`",
        ),
        Recorders::run(
            (of::REQUESTS_SCHEDULED, of::WIRE_RECEIVED),
            |_| false,
            NOT_IN_RUNS,
        ),
        Recorders::generators(
            alone(of::FIRST_BYTE_TIME),
            |plan| records(plan).statuses,
            "no generator is `http`, `requests` or `scenario`",
        ),
        Recorders::run(
            (of::GENERATOR_LATENESS, of::SPANS_DROPPED),
            |_| false,
            NOT_IN_RUNS,
        ),
        Recorders::run(
            (of::TARGET_RESTARTS, of::TARGET_REDELIVERY),
            restarts,
            "no step ends the target",
        ),
        Recorders::sinks((of::BYTES_RECEIVED, of::POINTS_SKIPPED), |_| true, NO_SINK),
        Recorders::sinks(
            alone(of::DECODED_BYTES_RECEIVED),
            is_web,
            "no sink is `http` or replaces a service",
        ),
        Recorders::sinks(
            alone(of::MESSAGES_RECEIVED),
            has_messages,
            "the sinks receive streams, which have neither requests nor datagrams",
        ),
        Recorders::sinks(
            alone(of::CONNECTIONS_ACCEPTED),
            is_connected,
            "no sink accepts connections",
        ),
        Recorders::sinks(
            alone(of::CONNECTIONS_MAX),
            is_connected,
            "no sink accepts connections",
        ),
        Recorders::sinks(
            alone(of::CONNECTIONS_OPEN),
            is_connected,
            "no sink accepts connections",
        ),
        Recorders::sinks(
            alone(of::EVENTS_SERVED),
            hands_out,
            "no sink hands out events",
        ),
        Recorders::sinks(
            alone(of::DATAGRAMS_DROPPED),
            |plan| matches!(plan.protocol, SinkProtocol::Udp { .. }),
            "no sink is `udp`",
        ),
        Recorders::sinks(
            alone(of::BODIES_MALFORMED),
            is_web,
            "no sink is `http` or replaces a service",
        ),
        Recorders::sinks(alone(of::BODIES_PARSED), is_datadog, "no sink is `datadog`"),
        Recorders::sinks(
            alone(of::CALLS_RECEIVED),
            is_web,
            "no sink takes gRPC calls: `http` does",
        ),
        Recorders::run(
            alone(of::REQUESTS_REFUSED),
            refuses,
            "no step makes a sink refuse requests",
        ),
        Recorders::sinks(
            alone(of::POINTS_SKIPPED),
            records_series,
            "no sink is `datadog` with `record`",
        ),
        Recorders::generators(
            (of::STAMPED_SENT, of::EVENTS_UNVERIFIABLE),
            has_ledger,
            NO_STAMPS,
        ),
        Recorders::generators(
            alone(of::EVENTS_INCOMPLETE),
            |plan| plan.stamps.as_ref().is_some_and(|stamps| stamps.copies > 1),
            "no generator declares several copies",
        ),
        Recorders::generators(
            alone(of::EVENTS_LATE),
            |plan| {
                plan.stamps
                    .as_ref()
                    .is_some_and(|stamps| stamps.late_after.is_some())
            },
            "no generator declares when an event is late",
        ),
        Recorders::run(
            (of::STAMPS_BROKEN, of::STAMPS_FOREIGN),
            |plan| plan.generators.iter().any(has_ledger),
            NO_STAMPS,
        ),
        Recorders::run(
            (of::STAMPED_RECEIVED, of::EVENT_TRANSIT),
            |plan| !plan.sinks.is_empty(),
            NO_SINK,
        ),
        Recorders::run(
            alone(of::EVENT_LATENCY),
            |plan| {
                plan.generators.iter().any(has_ledger)
                    || plan.sinks.iter().any(|sink| sink.prefix.is_some())
            },
            NO_STAMPS,
        ),
        Recorders::sinks(
            (of::PREFIXES_READ, of::PREFIXES_IMPLAUSIBLE),
            |plan| plan.prefix.is_some(),
            "no sink reads time prefixes",
        ),
        Recorders::run(
            alone(of::EVENT_TRANSIT),
            |plan| plan.generators.iter().any(has_ledger),
            NO_STAMPS,
        ),
        Recorders::generators(
            (of::BYTES_READ, of::LOG_RELEASES),
            is_mounted,
            "no generator mounts a file system of growing logs",
        ),
        Recorders::run(
            (of::DISK_BYTES_WRITTEN, of::DISK_BYTES_USED),
            |plan| !plan.disks.is_empty(),
            "there is no simulated disk",
        ),
        Recorders::run(
            (of::TARGET_CPU, of::CGROUP_THROTTLED),
            |plan| !matches!(plan.target.kind, TargetKind::None),
            "there is no target",
        ),
        Recorders::run(
            (of::SCRAPE_OK, of::SCRAPE_SURPLUS),
            |plan| !plan.observer.scrapes.is_empty(),
            "no page of the target's metrics is scraped",
        ),
    ]
};

const fn packs_units(plan: &GeneratorPlan) -> bool {
    matches!(
        plan.payload.format,
        PayloadFormat::OpentelemetryLogs(_)
            | PayloadFormat::OpentelemetryMetrics(_)
            | PayloadFormat::OpentelemetryTraces(_)
            | PayloadFormat::TraceAgent(_)
            | PayloadFormat::Fluent
            | PayloadFormat::RemoteWrite(_)
            | PayloadFormat::Netflow(_)
    )
}

impl GeneratorPlan {
    /// Returns true if it records the times of responses to its sends.
    #[must_use]
    pub fn has_responses(&self) -> bool {
        records(self).response_times
    }
}

fn records(plan: &GeneratorPlan) -> TransportRecords {
    plan.transport.properties().records
}

fn has_routes(plan: &GeneratorPlan) -> bool {
    match &plan.transport {
        TransportPlan::Requests(requests) => requests.routes().are_several(),
        TransportPlan::Scenario(scenario) => scenario.routes().are_several(),
        _ => false,
    }
}

fn has_ledger(plan: &GeneratorPlan) -> bool {
    let stamps = plan.stamps.as_ref();
    stamps.is_some_and(|stamps| stamps.form.prefix().is_none())
}

const fn is_mounted(plan: &GeneratorPlan) -> bool {
    matches!(
        plan.transport,
        TransportPlan::Files {
            layout: FileLayout::Mounted { .. },
            ..
        }
    )
}

const fn is_web(plan: &SinkPlan) -> bool {
    matches!(
        plan.protocol,
        SinkProtocol::Http { .. } | SinkProtocol::Intake { .. }
    )
}

const fn has_messages(plan: &SinkPlan) -> bool {
    is_web(plan)
        || matches!(
            plan.protocol,
            SinkProtocol::Udp { .. }
                | SinkProtocol::UnixDatagram { .. }
                | SinkProtocol::TcpRr { .. }
        )
}

const fn is_connected(plan: &SinkPlan) -> bool {
    is_web(plan)
        || matches!(
            plan.protocol,
            SinkProtocol::Tcp { .. } | SinkProtocol::UnixStream { .. } | SinkProtocol::TcpRr { .. }
        )
}

const fn service(plan: &SinkPlan) -> Option<&IntakeService> {
    match &plan.protocol {
        SinkProtocol::Intake { service, .. } => Some(service),
        _ => None,
    }
}

const fn is_datadog(plan: &SinkPlan) -> bool {
    matches!(service(plan), Some(IntakeService::Datadog { .. }))
}

/// Returns true if a sink records series that it is sent.
pub(super) fn records_series(plan: &SinkPlan) -> bool {
    matches!(service(plan), Some(IntakeService::Datadog { record, .. }) if *record != SeriesRecord::None)
}

const fn hands_out(plan: &SinkPlan) -> bool {
    matches!(
        service(plan),
        Some(IntakeService::Sqs | IntakeService::Openmetrics(_))
    )
}

fn restarts(plan: &RunPlan) -> bool {
    let mut steps = plan.timeline.iter();
    steps.any(|step| matches!(step.action, StepAction::Target(TargetChange::End(_))))
}

fn refuses(plan: &RunPlan) -> bool {
    let mut steps = plan.timeline.iter();
    steps.any(|step| {
        matches!(
            step.action,
            StepAction::Sink {
                change: SinkChange::Refuse(_),
                ..
            }
        )
    })
}
