//! A run of one generator, one sink and a target that passes bytes on.

use std::io::copy;
use std::net::{Shutdown, TcpListener, TcpStream};

use stillwell_capture::{Capture, Manifest, RunIdentity};
use stillwell_plan::generator::Concurrency;
use stillwell_plan::payload::BlockShape;
use stillwell_plan::placement::{CpuChoice, IsolationPlan, Wanted};
use stillwell_plan::step::TargetSignal;
use stillwell_plan::target::{ChildPlan, EnvironmentPlan, Places, ReadyProbe, StopPlan};
use stillwell_plan::{
    GeneratorPlan, PayloadFormat, PayloadPlan, PhasesPlan, RatePlan, RunPlan, SinkPlan,
    SinkProtocol, TargetKind, TargetPlan, TransportPlan,
};
use stillwell_run::{CallDescriber, Exports, RunRequest};
use stillwell_units::{ByteRate, ByteSize, Nanos, RunId, Seed};
use tempfile::TempDir;

/// Says to the test program that it is the target.
const FORWARD: &str = "STILLWELL_TEST_FORWARD";
const INPUT: &str = "127.0.0.1:7201";
const OUTPUT: &str = "127.0.0.1:7202";

/// Not a test of its own: the target. Passes on what one connection after the
/// other brings, until it is killed.
#[test]
fn target() {
    if std::env::var_os(FORWARD).is_none() {
        return;
    }
    let listener = TcpListener::bind(INPUT).unwrap();
    for input in listener.incoming() {
        let (mut input, mut output) = (input.unwrap(), TcpStream::connect(OUTPUT).unwrap());
        copy(&mut input, &mut output).unwrap();
        output.shutdown(Shutdown::Write).unwrap();
    }
}

/// A request for a run of about two seconds, named `name`, whose folders are
/// below `below`.
pub(crate) fn request(name: &str, below: &TempDir) -> RunRequest {
    let state = below.path().join(format!("{name}-state"));
    let mut run = [0; 16];
    run[..4].copy_from_slice(&std::process::id().to_le_bytes());
    for (to, from) in run[4..]
        .iter_mut()
        .zip(below.path().to_string_lossy().bytes().rev())
    {
        *to = from;
    }
    run[15] = name.as_bytes()[0];
    RunRequest {
        plan: plan(),
        places: Places {
            stillwell: std::env::current_exe().unwrap(),
            state,
            files: None,
            experiment: below.path().to_owned(),
        },
        folder: below.path().join(name),
        identity: Some(RunIdentity {
            experiment: "one".to_owned(),
            variant: name.to_owned(),
            stage: stillwell_capture::RunStage::Search,
            pair: 1,
            position: 0,
        }),
        secrets: stillwell_units::Secrets::Masked,
        command: Vec::new(),
        run: RunId::from_bytes(run),
        exports: Exports::default(),
        fleet: None,
        describer: CallDescriber::default(),
    }
}

fn plan() -> RunPlan {
    RunPlan {
        generators: vec![generator()],
        sinks: vec![SinkPlan {
            id: "out".to_owned(),
            protocol: SinkProtocol::Tcp {
                address: OUTPUT.parse().unwrap(),
            },
            workers: std::num::NonZeroU16::MIN,
            limit: None,
            lines: None,
            prefix: None,
        }],
        target: target_plan(),
        phases: PhasesPlan {
            warmup: Nanos::from_millis(300),
            measure: Nanos::from_millis(1200),
            quiet: Nanos::from_millis(100),
            ..PhasesPlan::default()
        },
        isolation: IsolationPlan {
            network: Wanted::IfPossible,
            cgroup: Wanted::IfPossible,
            priority: Wanted::IfPossible,
            links: None,
        },
        ..RunPlan::idle(Seed::from_number(11))
    }
}

fn generator() -> GeneratorPlan {
    GeneratorPlan {
        id: "in".to_owned(),
        transport: TransportPlan::Tcp {
            address: INPUT.to_owned(),
        },
        payload: PayloadPlan {
            format: PayloadFormat::Ascii,
            blocks: BlockShape::UpTo {
                maximum: ByteSize::kib(1),
            },
            cache: ByteSize::kib(256),
            repeats: false,
        },
        rate: RatePlan::bytes(ByteRate::try_new(4_000_000).unwrap()),
        concurrency: Concurrency::ONE,
        seed: Seed::from_number(12),
        stamps: None,
    }
}

fn target_plan() -> TargetPlan {
    let arguments = ["--exact", "fixture::target", "--nocapture"];
    TargetPlan {
        name: "forward".to_owned(),
        kind: TargetKind::Child(ChildPlan {
            program: "{self}".into(),
            arguments: arguments.map(str::to_owned).to_vec(),
            environment: EnvironmentPlan {
                inherit: false,
                variables: [(FORWARD.to_owned(), "yes".to_owned())].into(),
            },
            directory: None,
            mounts: Vec::new(),
            log_limit: stillwell_plan::target::LOG_LIMIT_DEFAULT,
        }),
        ready: ReadyProbe::Tcp {
            address: INPUT.to_owned(),
        },
        cpus: CpuChoice::Auto,
        memory: None,
        stop: StopPlan {
            signal: TargetSignal::Term,
            grace: Nanos::from_secs(5),
        },
    }
}

/// The capture of `request`'s run, which says what its manifest says.
pub(crate) fn capture(request: &RunRequest, manifest: &Manifest) -> Capture {
    let capture = Capture::open(&request.folder).unwrap();
    assert_eq!(capture.manifest.outcome, manifest.outcome);
    capture
}
