//! Makes plans of settings.

use std::num::NonZeroU16;

use stillwell_plan::generator::{
    AcknowledgedBy, AcknowledgedPlan, Concurrency, FileLayout, HecAcknowledgements,
};
use stillwell_plan::payload::{BlockShape, ReplayCut, ReplayEnd, ReplayPlan};
use stillwell_plan::placement::{CpuChoice, IsolationPlan, Wanted};
use stillwell_plan::stamp::{PrefixFraming, StampForm};
use stillwell_plan::target::{ChildPlan, EnvironmentPlan, STOP_DEFAULT};
use stillwell_plan::{
    BenchPlan, GeneratorPlan, ObserverPlan, PayloadFormat, PayloadPlan, PhasesPlan, PlacementPlan,
    RatePlan, RunPlan, SinkPlan, StampPlan, TargetKind, TargetPlan, TransportPlan,
};
use stillwell_text::{Diagnostic, Diagnostics, code};
use stillwell_units::{ByteSize, EventRate, Nanos, Seed, float_from_u64};

use super::connector::{Framing, SIGNIFICANT_FIGURES_DEFAULT};
use super::{BenchEndpoint, BenchOptions, BenchTarget, framing, is_byte_codec};
use crate::rate::parse_rate;
use crate::rules::ready_probe_of;
use crate::spec::name_of_program;

/// Length of a load without an end.
const STOP_AFTER_DEFAULT: Nanos = Nanos::from_secs(10);
/// The longest that a bench goes on which ends by its rounds.
const LIMIT_DEFAULT: Nanos = Nanos::from_secs(600);
const DRAIN_DEFAULT: Nanos = Nanos::from_secs(10);
/// Time without an event after which missing events are lost.
const QUIET: Nanos = Nanos::from_secs(3);

/// Retries of a refused request if events are transactional.
const RETRIES_DEFAULT: u32 = 10;

/// Blocks built before the run; a recording that is larger is kept whole.
const CACHE: ByteSize = ByteSize::mib(4);
/// Size of one write to a stream.
const WRITE: ByteSize = ByteSize::kib(64);
/// No batch is larger.
const BATCH_MAX: ByteSize = ByteSize::mib(1);
/// Events in a request, as fast as can be.
const REQUEST_EVENTS: u32 = 100;

const QUESTIONS: HecAcknowledgements = HecAcknowledgements {
    every: Nanos::from_millis(100),
    timeout: Nanos::from_secs(30),
};

/// Reports what a bench cannot be without.
fn check_complete(options: &BenchOptions, diagnostics: &mut Diagnostics) {
    let mut missing = |what: &str, help: &str| {
        let message = format!("a bench needs {what}");
        diagnostics.push(Diagnostic::error(code::MISSING_KEY, message).help(help));
    };
    if options.source.is_none() {
        missing("a recording", "`source: in.json`, or `--source in.json`");
    }
    if options.input.is_none() {
        missing(
            "the address at which its target receives events",
            "`in: tcp://127.0.0.1:9100`, or `--in tcp://127.0.0.1:9100`",
        );
    }
    if options.output.is_none() {
        missing(
            "the address to which its target sends events",
            "`out: tcp://127.0.0.1:9200`, or `--out tcp://127.0.0.1:9200`; the bench listens there",
        );
    }
    if options.target.is_none() {
        missing(
            "a target",
            "`target: {command: [PROGRAM, ARGUMENT]}`, or `-- PROGRAM ARGUMENT`; for one that runs \
             already `target: none`, or `--no-target`",
        );
    }
}

/// The plan; what is missing or does not go together is put to `found`.
pub(super) fn plan_of(options: &BenchOptions, diagnostics: &mut Diagnostics) -> Option<BenchPlan> {
    check_complete(options, diagnostics);
    let (input, output) = (options.input.as_ref()?, options.output.as_ref()?);
    if input == output && !matches!(options.target, None | Some(BenchTarget::Absent)) {
        let message = "the target cannot receive and send events at the same address";
        let error = Diagnostic::error(code::SAME_ADDRESS, message);
        diagnostics.push(error.help("the target listens at `in`, the bench at `out`"));
    }
    check_prefixes(options, (input, output), diagnostics);
    let unstamped = unstamped(options);
    let generator = generator(options, input, unstamped.is_none(), diagnostics)?;
    let sink = match output.sink() {
        Ok(protocol) => SinkPlan {
            id: "sink".to_owned(),
            protocol,
            workers: NonZeroU16::MIN,
            limit: None,
            lines: None,
            prefix: options.received_prefix,
        },
        Err(help) => {
            let message = "a bench cannot listen on this address";
            diagnostics.push(Diagnostic::error(code::BAD_VALUE, message).help(help));
            return None;
        }
    };
    let generators = vec![generator];
    let target = target(options.target.as_ref()?, &generators, &sink);
    let run_plan = RunPlan {
        seed: Seed::from_number(0),
        target,
        generators,
        sinks: vec![sink],
        disks: Vec::new(),
        observer: ObserverPlan::default(),
        phases: phases(options, diagnostics),
        timeline: Vec::new(),
        isolation: isolation(options),
        placement: PlacementPlan::default(),
        checks: Vec::new(),
    };
    Some(BenchPlan {
        name: options
            .name
            .clone()
            .unwrap_or_else(|| run_plan.target.name.clone()),
        run_plan,
        unstamped,
        structured: options.structured.unwrap_or(false),
        significant_figures: options
            .significant_figures
            .unwrap_or(SIGNIFICANT_FIGURES_DEFAULT),
        lossy: options.lossy.unwrap_or(false),
        rounds_due: options.iters.filter(|_| options.stop_after.is_none()),
    })
}

/// A program that runs already is in the host's network.
fn isolation(options: &BenchOptions) -> IsolationPlan {
    let runs_already = match &options.target {
        Some(BenchTarget::Described { plan, .. }) => matches!(plan.kind, TargetKind::Url(_)),
        target => matches!(target, Some(BenchTarget::Absent)),
    };
    let is_shared = runs_already || options.shared_network.unwrap_or(false);
    IsolationPlan {
        network: if is_shared {
            Wanted::No
        } else {
            Wanted::IfPossible
        },
        ..IsolationPlan::default()
    }
}

/// Returns the reason if events are not stamped.
fn unstamped(options: &BenchOptions) -> Option<String> {
    let codec = options.codec.as_deref().unwrap_or("json");
    if options.stamps == Some(false) {
        return Some("none were requested".to_owned());
    }
    if options.sent_prefix.is_some() {
        return Some("each has a time prefix instead of a stamp".to_owned());
    }
    if options.chunk_size.is_some() {
        return Some("chunks are sent as they are".to_owned());
    }
    match framing(codec) {
        Framing::Lines => None,
        Framing::StrictLines | Framing::Bytes => {
            Some(format!("events of `{codec}` have no place for them"))
        }
    }
}

fn generator(
    options: &BenchOptions,
    input: &BenchEndpoint,
    is_stamped: bool,
    diagnostics: &mut Diagnostics,
) -> Option<GeneratorPlan> {
    let path = options.source.clone()?;
    let is_bytes = options.codec.as_deref().is_some_and(is_byte_codec);
    let end = if is_bytes || options.chunk_size.is_some() {
        ReplayEnd::Nothing
    } else {
        ReplayEnd::LineFeed
    };
    let cut = match options.chunk_size {
        Some(bytes) => ReplayCut::Chunks { bytes },
        None => ReplayCut::Lines,
    };
    let format = PayloadFormat::Replay(ReplayPlan {
        path,
        cut,
        base64: options.base64.unwrap_or(false),
        end,
        rounds: options.iters,
    });
    let rate = rate(options, diagnostics)?;
    let transport = transport(options, input, diagnostics)?;
    let connections = options.connections.unwrap_or(1);
    check_effect(options, input, diagnostics);
    if options.iters.is_some() && connections > 1 && !input.is_answered() {
        let message =
            "with several connections, `iters` would not replay the whole recording each time";
        let error = Diagnostic::error(code::BAD_VALUE, message);
        diagnostics.push(
            error.help("leave out `connections`, or write `stop_after_secs` instead of `iters`"),
        );
    }
    Some(GeneratorPlan {
        id: "bench".to_owned(),
        payload: PayloadPlan {
            format,
            blocks: blocks(options, input, &rate, transport.block_limit()),
            cache: CACHE,
            repeats: false,
        },
        transport,
        rate,
        concurrency: Concurrency::ONE.with_connections(connections),
        seed: Seed::from_number(0),
        stamps: match options.sent_prefix {
            Some(framing) => Some(StampPlan {
                form: StampForm::Prefix(framing),
                ..StampPlan::ALL
            }),
            None => is_stamped.then_some(StampPlan::ALL),
        },
    })
}

/// Reports a time prefix for events that cannot have one.
fn check_prefixes(
    options: &BenchOptions,
    (input, output): (&BenchEndpoint, &BenchEndpoint),
    diagnostics: &mut Diagnostics,
) {
    let sides = [
        ("postprocessors", options.sent_prefix, input),
        ("preprocessors", options.received_prefix, output),
    ];
    for (key, prefix, endpoint) in sides {
        if prefix.is_some() && !endpoint.is_socket() {
            let message = format!("`{key}` are not supported for requests and files");
            let error = Diagnostic::error(code::BAD_VALUE, message);
            diagnostics.push(error.help("they need `tcp`, `udp`, `unix` or `unixgram`"));
        }
    }
    let is_bytes = options.codec.as_deref().is_some_and(is_byte_codec);
    let is_lines = options.sent_prefix == Some(PrefixFraming::Lines);
    if is_lines && (options.chunk_size.is_some() || is_bytes) {
        let message = "`ingest-ns` without `length-prefixed` needs events that end in a line feed, and these do not";
        let error = Diagnostic::error(code::BAD_VALUE, message);
        diagnostics.push(error.help("write `postprocessors: [ingest-ns, length-prefixed]`"));
    }
}

/// Reports what would have no effect where events go in there.
fn check_effect(options: &BenchOptions, input: &BenchEndpoint, diagnostics: &mut Diagnostics) {
    let mut refuse = |message: &str, help: &str| {
        diagnostics.push(Diagnostic::error(code::BAD_VALUE, message).help(help));
    };
    let is_file = matches!(input, BenchEndpoint::File(_));
    if is_file
        && options
            .connections
            .is_some_and(|connections| connections > 1)
    {
        refuse(
            "several connections would mix their lines in one file",
            "leave `connections` out",
        );
    }
    if options.retries.is_some_and(|retries| retries > 0) && !input.is_answered() {
        refuse(
            "`retries` needs a target that answers",
            "`in: http://HOST:PORT/PATH`, or `in: hec://HOST:PORT`; else leave it out",
        );
    }
    if options.token.is_some() && !matches!(input, BenchEndpoint::SplunkHec(_)) {
        refuse(
            "`token` is only sent to Splunk's collector",
            "`in: hec://HOST:PORT`; else leave it out",
        );
    }
}

/// Returns the number of events in a block: one with a schedule for each event, many at full
/// speed.
fn blocks(
    options: &BenchOptions,
    input: &BenchEndpoint,
    rate: &RatePlan,
    limit: Option<ByteSize>,
) -> BlockShape {
    let maximum = limit.unwrap_or(BATCH_MAX);
    let count = match options.batch {
        Some(count) => count,
        None if input.is_datagrams() || !rate.is_max() => 1,
        None if input.is_answered() => REQUEST_EVENTS,
        None => return BlockShape::UpTo { maximum: WRITE },
    };
    BlockShape::Events { count, maximum }
}

fn rate(options: &BenchOptions, diagnostics: &mut Diagnostics) -> Option<RatePlan> {
    let interval = options.interval.filter(|interval| *interval > Nanos::ZERO);
    let mut refuse = |message: String, help: &str| {
        diagnostics.push(Diagnostic::error(code::BAD_VALUE, message).help(help));
    };
    if interval.is_some() && options.rate.is_some() {
        let message = "`interval` and `rate` set the same thing".to_owned();
        refuse(message, "leave one of them out");
    }
    if let Some(text) = &options.rate {
        return match parse_rate(text) {
            Ok(rate) => Some(rate),
            Err(error) => {
                refuse(error.to_string(), "`5k/s`, `10 MiB/s` or `max`");
                None
            }
        };
    }
    let Some(interval) = interval else {
        return Some(RatePlan::MAX);
    };
    match EventRate::try_new(1e9 / float_from_u64(interval.as_u64())) {
        Ok(rate) => Some(RatePlan::events(rate)),
        Err(error) => {
            refuse(error.to_string(), "an interval from 1 ns to some hours");
            None
        }
    }
}

fn transport(
    options: &BenchOptions,
    input: &BenchEndpoint,
    diagnostics: &mut Diagnostics,
) -> Option<TransportPlan> {
    let is_transactional = options.is_transactional.unwrap_or(false);
    if is_transactional && !input.is_answered() {
        let message = "`is_transactional` needs a target that acknowledges";
        let error = Diagnostic::error(code::BAD_VALUE, message);
        diagnostics.push(error.help("`in: http://HOST:PORT/PATH`, or `in: hec://HOST:PORT`"));
        return None;
    }
    let retries = match is_transactional {
        true => options.retries.unwrap_or(RETRIES_DEFAULT),
        false => options.retries.unwrap_or(0),
    };
    let acknowledged = |url: String, by| {
        TransportPlan::Acknowledged(Box::new(AcknowledgedPlan {
            url,
            by,
            retries,
            end_timeout: options.drain.unwrap_or(DRAIN_DEFAULT),
        }))
    };
    Some(match input {
        BenchEndpoint::Tcp(address) => TransportPlan::Tcp {
            address: address.clone(),
        },
        BenchEndpoint::Udp(address) => TransportPlan::Udp {
            address: address.clone(),
            bind: "0.0.0.0:0".to_owned(),
        },
        BenchEndpoint::UnixStream(path) => TransportPlan::UnixStream { path: path.clone() },
        BenchEndpoint::UnixDatagram(path) => TransportPlan::UnixDatagram { path: path.clone() },
        BenchEndpoint::Http(url) => {
            let headers = vec![("content-type".to_owned(), "application/x-ndjson".to_owned())];
            acknowledged(url.clone(), AcknowledgedBy::Status { headers })
        }
        BenchEndpoint::SplunkHec(address) => acknowledged(
            format!("http://{address}"),
            AcknowledgedBy::SplunkHec {
                token: options.token.clone().unwrap_or_else(|| "bench".to_owned()),
                questions: QUESTIONS,
            },
        ),
        BenchEndpoint::File(path) => TransportPlan::Files {
            layout: FileLayout::Appended { path: path.clone() },
            bytes_max: ByteSize::new(u64::MAX),
        },
    })
}

fn target(options: &BenchTarget, generators: &[GeneratorPlan], sink: &SinkPlan) -> TargetPlan {
    let ready = || ready_probe_of(generators, std::iter::once(sink));
    match options {
        BenchTarget::Absent => TargetPlan::none(),
        BenchTarget::Described { plan, has_probe } => {
            let mut plan = TargetPlan::clone(plan);
            if !has_probe {
                plan.ready = ready();
            }
            plan
        }
        BenchTarget::Command(words) => {
            let program = words.first().cloned().unwrap_or_default();
            let arguments: Vec<String> = words.iter().skip(1).cloned().collect();
            TargetPlan {
                name: name_of_program(&program, &arguments),
                kind: TargetKind::Child(ChildPlan {
                    program: program.into(),
                    arguments,
                    environment: EnvironmentPlan {
                        inherit: true,
                        ..EnvironmentPlan::default()
                    },
                    directory: None,
                    mounts: Vec::new(),
                    log_limit: stillwell_plan::target::LOG_LIMIT_DEFAULT,
                }),
                ready: ready(),
                cpus: CpuChoice::Auto,
                memory: None,
                stop: STOP_DEFAULT,
            }
        }
    }
}

fn phases(options: &BenchOptions, diagnostics: &mut Diagnostics) -> PhasesPlan {
    if options.iters.is_none() && options.stop_after.is_none() {
        let message = format!("no end is set: the bench sends for {STOP_AFTER_DEFAULT}");
        let note = Diagnostic::note(code::NOTHING_MEASURED, message);
        diagnostics.push(note.help("set `iters` or `stop_after_secs`"));
    }
    let ends = [("stop_after", options.stop_after), ("limit", options.limit)];
    for (key, _) in ends.iter().filter(|(_, end)| *end == Some(Nanos::ZERO)) {
        let message = format!("with `{key}` of 0 nothing would be sent");
        let error = Diagnostic::error(code::BAD_VALUE, message);
        diagnostics.push(error.help("a length of time, such as `10s`, or leave it out"));
    }
    let measure = match (options.stop_after, options.iters) {
        (Some(length), _) => length,
        (None, Some(_)) => options.limit.unwrap_or(LIMIT_DEFAULT),
        (None, None) => STOP_AFTER_DEFAULT,
    };
    PhasesPlan {
        warmup: options.warmup.unwrap_or(Nanos::ZERO),
        measure,
        drain: options.drain.unwrap_or(DRAIN_DEFAULT),
        quiet: QUIET.min(options.drain.unwrap_or(DRAIN_DEFAULT)),
        ..PhasesPlan::default()
    }
}
