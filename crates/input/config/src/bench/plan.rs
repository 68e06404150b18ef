//! What is asked for becomes a plan.

use stillwell_plan::{
    AcknowledgedBy, AcknowledgedPlan, BenchPlan, BlockShape, ChildPlan, CpuChoice, EnvironmentPlan,
    FileLayout, GeneratorPlan, HecAcknowledgements, IsolationPlan, ObserverPlan, PayloadFormat,
    PayloadPlan, PhasesPlan, PlacementPlan, PrefixFraming, RatePlan, ReplayCut, ReplayEnd,
    ReplayPlan, RigPlan, SinkPlan, StampForm, StampPlan, TargetKind, TargetPlan, TransportPlan,
    Wanted,
};
use stillwell_text::{Diagnostic, Diagnostics, code};
use stillwell_units::{ByteSize, EventRate, Nanos, Seed, float_from_u64};

use super::connector::{Framing, SIGNIFICANT_FIGURES_DEFAULT};
use super::{BenchAsked, BenchEndpoint, BenchSubject, framing};
use crate::rules::ready_probe_of;
use crate::spec::{STOP_DEFAULT, name_of_program, no_subject, parse_rate};

/// Load that nobody gave an end.
const STOP_AFTER_DEFAULT: Nanos = Nanos::from_secs(10);
/// The longest that a bench goes on which ends by its rounds.
const LIMIT_DEFAULT: Nanos = Nanos::from_secs(600);
const DRAIN_DEFAULT: Nanos = Nanos::from_secs(10);
/// How long sinks receive nothing before what is missing is lost.
const QUIET: Nanos = Nanos::from_secs(3);

/// How often a refused request is sent again where events are transactional.
const RETRIES_DEFAULT: u32 = 10;

/// Blocks built before the run; a recording that is larger is kept whole.
const CACHE: ByteSize = ByteSize::mib(4);
/// What leaves a stream in one write.
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
fn check_complete(asked: &BenchAsked, found: &mut Diagnostics) {
    let mut missing = |what: &str, help: &str| {
        let message = format!("a bench needs {what}");
        found.push(Diagnostic::error(code::MISSING_KEY, message).help(help));
    };
    if asked.source.is_none() {
        missing("a recording", "`source: in.json`, or `--source in.json`");
    }
    if asked.input.is_none() {
        missing(
            "the place where its target takes events in",
            "`in: tcp://127.0.0.1:9100`, or `--in tcp://127.0.0.1:9100`",
        );
    }
    if asked.output.is_none() {
        missing(
            "the place where its target sends events on",
            "`out: tcp://127.0.0.1:9200`, or `--out tcp://127.0.0.1:9200`: there it listens itself",
        );
    }
    if asked.subject.is_none() {
        missing(
            "a target",
            "`target: {command: [PROGRAM, ARGUMENT]}`, or `-- PROGRAM ARGUMENT`; for one that runs \
             already `target: none`, or `--no-target`",
        );
    }
}

/// The plan; what is missing or does not go together is put to `found`.
pub(super) fn plan_of(asked: &BenchAsked, found: &mut Diagnostics) -> Option<BenchPlan> {
    check_complete(asked, found);
    let (input, output) = (asked.input.as_ref()?, asked.output.as_ref()?);
    if input == output && !matches!(asked.subject, None | Some(BenchSubject::Absent)) {
        let message = "the target cannot take events in where it sends them on";
        let error = Diagnostic::error(code::SAME_ADDRESS, message);
        found.push(error.help("`in` is where it listens, `out` where the bench does"));
    }
    check_prefixes(asked, (input, output), found);
    let unstamped = unstamped(asked);
    let generator = generator(asked, input, unstamped.is_none(), found)?;
    let sink = match output.sink() {
        Ok(protocol) => SinkPlan {
            id: "sink".to_owned(),
            protocol,
            workers: 1,
            limit: None,
            lines: None,
            prefix: asked.received_prefix,
        },
        Err(help) => {
            let message = "this is no place for a bench to listen at";
            found.push(Diagnostic::error(code::BAD_VALUE, message).help(help));
            return None;
        }
    };
    let generators = vec![generator];
    let subject = subject(asked.subject.as_ref()?, &generators);
    let rig = RigPlan {
        seed: Seed::from_number(0),
        target: subject,
        generators,
        sinks: vec![sink],
        disks: Vec::new(),
        observer: ObserverPlan::default(),
        phases: phases(asked, found),
        timeline: Vec::new(),
        isolation: isolation(asked),
        placement: PlacementPlan::default(),
        checks: Vec::new(),
    };
    Some(BenchPlan {
        name: asked
            .name
            .clone()
            .unwrap_or_else(|| rig.target.name.clone()),
        rig,
        unstamped,
        structured: asked.structured.unwrap_or(false),
        significant_figures: asked
            .significant_figures
            .unwrap_or(SIGNIFICANT_FIGURES_DEFAULT),
        lossy: asked.lossy.unwrap_or(false),
        rounds_due: asked.iters.filter(|_| asked.stop_after.is_none()),
    })
}

/// A program that runs already is in the host's network.
fn isolation(asked: &BenchAsked) -> IsolationPlan {
    let is_absent = matches!(asked.subject, Some(BenchSubject::Absent));
    let is_shared = is_absent || asked.shared_network.unwrap_or(false);
    IsolationPlan {
        network: if is_shared {
            Wanted::No
        } else {
            Wanted::IfPossible
        },
        ..IsolationPlan::default()
    }
}

/// Why events cannot or shall not be stamped.
fn unstamped(asked: &BenchAsked) -> Option<String> {
    let codec = asked.codec.as_deref().unwrap_or("json");
    if asked.stamps == Some(false) {
        return Some("none were wanted".to_owned());
    }
    if asked.sent_prefix.is_some() {
        return Some("a time stands before each in place of one".to_owned());
    }
    if asked.chunk_size.is_some() {
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
    asked: &BenchAsked,
    input: &BenchEndpoint,
    is_stamped: bool,
    found: &mut Diagnostics,
) -> Option<GeneratorPlan> {
    let path = asked.source.clone()?;
    let is_bytes = asked.codec.as_deref().map(framing) == Some(Framing::Bytes);
    let end = if is_bytes || asked.chunk_size.is_some() {
        ReplayEnd::Nothing
    } else {
        ReplayEnd::LineFeed
    };
    let cut = match asked.chunk_size {
        Some(bytes) => ReplayCut::Chunks { bytes },
        None => ReplayCut::Lines,
    };
    let format = PayloadFormat::Replay(ReplayPlan {
        path,
        cut,
        base64: asked.base64.unwrap_or(false),
        end,
        rounds: asked.iters,
    });
    let rate = rate(asked, found)?;
    let transport = transport(asked, input, found)?;
    let connections = asked.connections.unwrap_or(1);
    check_effect(asked, input, found);
    if asked.iters.is_some() && connections > 1 && !input.is_answered() {
        let message = "rounds over several connections would not be whole rounds";
        let error = Diagnostic::error(code::BAD_VALUE, message);
        found.push(error.help("leave `connections` out, or end by `stop_after_secs`"));
    }
    Some(GeneratorPlan {
        id: "bench".to_owned(),
        payload: PayloadPlan {
            format,
            blocks: blocks(asked, input, &rate, transport.block_limit()),
            cache: CACHE,
        },
        transport,
        rate,
        connections,
        workers: 1,
        seed: Seed::from_number(0),
        stamps: match asked.sent_prefix {
            Some(framing) => Some(StampPlan {
                form: StampForm::Prefix(framing),
                ..StampPlan::ALL
            }),
            None => is_stamped.then_some(StampPlan::ALL),
        },
    })
}

/// Reports times that nothing can stand before.
fn check_prefixes(
    asked: &BenchAsked,
    (input, output): (&BenchEndpoint, &BenchEndpoint),
    found: &mut Diagnostics,
) {
    let sides = [
        ("postprocessors", asked.sent_prefix, input),
        ("preprocessors", asked.received_prefix, output),
    ];
    for (key, prefix, endpoint) in sides {
        if prefix.is_some() && !endpoint.is_socket() {
            let message = format!("there are no `{key}` over requests and files");
            let error = Diagnostic::error(code::BAD_VALUE, message);
            found.push(error.help("over `tcp`, `udp`, `unix` and `unixgram` there are"));
        }
    }
    let has_ends = framing(asked.codec.as_deref().unwrap_or("json")) != Framing::Bytes;
    let is_lines = asked.sent_prefix == Some(PrefixFraming::Lines);
    if is_lines && (asked.chunk_size.is_some() || !has_ends) {
        let message = "events without ends cannot be told apart behind `separate`";
        let error = Diagnostic::error(code::BAD_VALUE, message);
        found.push(error.help("`postprocessors: [ingest-ns, length-prefixed]`"));
    }
}

/// Reports what would have no effect where events go in there.
fn check_effect(asked: &BenchAsked, input: &BenchEndpoint, found: &mut Diagnostics) {
    let mut refuse = |message: &str, help: &str| {
        found.push(Diagnostic::error(code::BAD_VALUE, message).help(help));
    };
    let is_file = matches!(input, BenchEndpoint::File(_));
    if is_file && asked.connections.is_some_and(|connections| connections > 1) {
        refuse(
            "several connections would mix their lines in one file",
            "leave `connections` out",
        );
    }
    if asked.retries.is_some_and(|retries| retries > 0) && !input.is_answered() {
        refuse(
            "`retries` needs a target that answers",
            "`in: http://HOST:PORT/PATH`, or `in: hec://HOST:PORT`; else leave it out",
        );
    }
    if asked.token.is_some() && !matches!(input, BenchEndpoint::SplunkHec(_)) {
        refuse(
            "`token` is only sent to Splunk's collector",
            "`in: hec://HOST:PORT`; else leave it out",
        );
    }
}

/// How many events leave together: one where each has its time, many where only
/// speed counts.
fn blocks(
    asked: &BenchAsked,
    input: &BenchEndpoint,
    rate: &RatePlan,
    limit: Option<ByteSize>,
) -> BlockShape {
    let maximum = limit.unwrap_or(BATCH_MAX);
    let count = match asked.batch {
        Some(count) => count,
        None if input.is_datagrams() || !rate.is_max() => 1,
        None if input.is_answered() => REQUEST_EVENTS,
        None => return BlockShape::UpTo { maximum: WRITE },
    };
    BlockShape::Events { count, maximum }
}

fn rate(asked: &BenchAsked, found: &mut Diagnostics) -> Option<RatePlan> {
    let interval = asked.interval.filter(|interval| *interval > Nanos::ZERO);
    let mut refuse = |message: String, help: &str| {
        found.push(Diagnostic::error(code::BAD_VALUE, message).help(help));
    };
    if interval.is_some() && asked.rate.is_some() {
        let message = "`interval` and `rate` are one thing".to_owned();
        refuse(message, "leave one of them out");
    }
    if let Some(text) = &asked.rate {
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
    asked: &BenchAsked,
    input: &BenchEndpoint,
    found: &mut Diagnostics,
) -> Option<TransportPlan> {
    let is_transactional = asked.is_transactional.unwrap_or(false);
    if is_transactional && !input.is_answered() {
        let message = "`is_transactional` needs a target that acknowledges";
        let error = Diagnostic::error(code::BAD_VALUE, message);
        found.push(error.help("`in: http://HOST:PORT/PATH`, or `in: hec://HOST:PORT`"));
        return None;
    }
    let retries = match is_transactional {
        true => asked.retries.unwrap_or(RETRIES_DEFAULT),
        false => asked.retries.unwrap_or(0),
    };
    let acknowledged = |url: String, by| {
        TransportPlan::Acknowledged(Box::new(AcknowledgedPlan {
            url,
            by,
            retries,
            patience: asked.drain.unwrap_or(DRAIN_DEFAULT),
        }))
    };
    Some(match input {
        BenchEndpoint::Tcp(address) => TransportPlan::Tcp {
            address: address.clone(),
        },
        BenchEndpoint::Udp(address) => TransportPlan::Udp {
            address: address.clone(),
            bind: if address.starts_with('[') {
                "[::]:0".to_owned()
            } else {
                "0.0.0.0:0".to_owned()
            },
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
                token: asked.token.clone().unwrap_or_else(|| "bench".to_owned()),
                questions: QUESTIONS,
            },
        ),
        BenchEndpoint::File(path) => TransportPlan::Files {
            layout: FileLayout::Appended { path: path.clone() },
            bytes_max: ByteSize::new(u64::MAX),
        },
    })
}

fn subject(asked: &BenchSubject, generators: &[GeneratorPlan]) -> TargetPlan {
    match asked {
        BenchSubject::Absent => no_subject(),
        BenchSubject::Told { plan, has_probe } => {
            let mut plan = TargetPlan::clone(plan);
            if !has_probe {
                plan.ready = ready_probe_of(generators);
            }
            plan
        }
        BenchSubject::Command(words) => {
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
                }),
                ready: ready_probe_of(generators),
                cpus: CpuChoice::Auto,
                memory: None,
                stop: STOP_DEFAULT,
            }
        }
    }
}

fn phases(asked: &BenchAsked, found: &mut Diagnostics) -> PhasesPlan {
    if asked.iters.is_none() && asked.stop_after.is_none() {
        let message = format!("nobody says when it ends: it sends for {STOP_AFTER_DEFAULT}");
        let note = Diagnostic::note(code::NOTHING_MEASURED, message);
        found.push(note.help("`iters` or `stop_after_secs` say"));
    }
    let ends = [("stop_after", asked.stop_after), ("limit", asked.limit)];
    for (key, _) in ends.iter().filter(|(_, end)| *end == Some(Nanos::ZERO)) {
        let message = format!("with `{key}` of 0 nothing would be sent");
        let error = Diagnostic::error(code::BAD_VALUE, message);
        found.push(error.help("a length of time, such as `10s`, or leave it out"));
    }
    let measure = match (asked.stop_after, asked.iters) {
        (Some(length), _) => length,
        (None, Some(_)) => asked.limit.unwrap_or(LIMIT_DEFAULT),
        (None, None) => STOP_AFTER_DEFAULT,
    };
    PhasesPlan {
        warmup: asked.warmup.unwrap_or(Nanos::ZERO),
        measure,
        drain: asked.drain.unwrap_or(DRAIN_DEFAULT),
        quiet: QUIET.min(asked.drain.unwrap_or(DRAIN_DEFAULT)),
        ..PhasesPlan::default()
    }
}
