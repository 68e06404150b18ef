//! One start of the program: its ports, its answers, its output.

use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;

use anyhow::Context as _;
use stillwell_config::scaffold::{ProgramKind, ScaffoldInput};
use stillwell_http::Target;
use stillwell_plan::placement::CpuChoice;
use stillwell_plan::step::TargetSignal;
use stillwell_plan::target::{
    ChildPlan, EnvironmentPlan, LOG_LIMIT_DEFAULT, Places, ReadyProbe, StopPlan,
};
use stillwell_plan::{TargetKind, TargetPlan};
use stillwell_scope::{NetworkNamespace, Place, Scope, Token, clock, explain};
use stillwell_target::{
    Listener, ListenerProtocol, StartOptions, TargetLog, TargetProcess, new_network, start,
    wait_ready,
};
use stillwell_units::human::nanos;
use stillwell_units::{ByteSize, Nanos};
use stillwell_wire::client::Endpoint;

use super::choice::{
    Choice, HttpAnswer, ObservedListener, by_output, choose_port, kind_of, preferred,
};

/// Pause between two looks at the sockets.
const LOOK_AGAIN: Nanos = Nanos::from_millis(50);
/// Time without a new port after which no more are expected.
const QUIET: Nanos = Nanos::from_millis(500);
/// Time that a program without a port runs, and longest time until it has written a line.
const PORTLESS: [Nanos; 2] = [Nanos::from_secs(2), Nanos::from_secs(5)];
/// Time limit of one answer.
const ANSWER_MAX: Nanos = Nanos::from_secs(3);
/// Longest page that is read.
const PAGE_MAX: ByteSize = ByteSize::mib(4);
/// Listeners that get a request.
const LISTENERS_MAX: usize = 16;
/// Paths at which services report that they are ready, best first.
const PATHS: [&str; 5] = ["/", "/healthz", "/health", "/ready", "/-/ready"];
/// Stop of the program.
const STOP: StopPlan = StopPlan {
    signal: TargetSignal::Term,
    grace: Nanos::from_secs(5),
};
/// Lines of its output that are shown.
const LINES: usize = 5;

/// A program to start once.
#[derive(Clone, Debug)]
pub(super) struct ProbeRequest {
    pub(super) words: Vec<String>,
    /// Working directory; `None` for a new folder.
    pub(super) directory: Option<PathBuf>,
    /// Folder of the experiment.
    pub(super) experiment: PathBuf,
    /// Kind, if it was given.
    pub(super) kind: Option<ProgramKind>,
    /// The file that the program reads, if that is its kind.
    pub(super) input_file: Option<String>,
    /// True if it must reach the network of the host.
    pub(super) needs_host: bool,
    /// Longest wait for a port.
    pub(super) wait: Nanos,
}

/// Result of a start.
#[derive(Clone, Debug)]
pub(super) struct ProbeReport {
    pub(super) choice: Choice,
    /// True if it ran in a network of its own.
    pub(super) has_private_network: bool,
}

/// Reason why nothing was found.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProbeError {
    /// It could not be started.
    #[error("the program could not be started: {0}")]
    Start(String),
    /// It ended.
    #[error("the program ended after {}, with {exit}{lines}", nanos(*after))]
    Ended {
        after: Nanos,
        exit: stillwell_target::Exit,
        lines: String,
    },
    /// It opened no port.
    #[error("the program opened no {protocol} port within {wait}{lines}")]
    NoPort {
        protocol: &'static str,
        wait: Nanos,
        lines: String,
    },
    /// The user ended the command.
    #[error("interrupted")]
    Interrupted,
}

/// Starts the program in a network of its own, and once more in that of the host if it ends there. The program has
/// ended when this returns.
pub(super) fn probe(
    request: &ProbeRequest,
    state_root: &Path,
    token: &Token,
) -> Result<ProbeReport, ProbeError> {
    let network = match request.needs_host {
        true => None,
        false => new_network().ok(),
    };
    let has_private_network = network.is_some();
    match probe_in(request, &state_root.join("own"), network, token) {
        Ok(choice) => Ok(ProbeReport {
            choice,
            has_private_network: has_private_network || !request.needs_host,
        }),
        Err(ProbeError::Ended { .. }) if has_private_network => {
            let mut choice = probe_in(request, &state_root.join("host"), None, token)?;
            let remark =
                "it exits in a separate network namespace, so runs use the network of the host";
            choice.remarks.push(remark.to_owned());
            Ok(ProbeReport {
                choice,
                has_private_network: false,
            })
        }
        Err(error) => Err(error),
    }
}

/// Runs the probe on a thread in `network`, which starts the program and outlives it.
fn probe_in(
    request: &ProbeRequest,
    state: &Path,
    network: Option<NetworkNamespace>,
    token: &Token,
) -> Result<Choice, ProbeError> {
    let started = |error: anyhow::Error| ProbeError::Start(format!("{error:#}"));
    let mut scope = Scope::new(token);
    let (sender, receiver) = sync_channel(1);
    let place = Place {
        cpus: None,
        network,
    };
    let (request, state) = (request.clone(), state.to_owned());
    let wait_max = request.wait + Nanos::from_secs(60);
    let worker = scope.worker(place, "probe", move |token| async move {
        sender.send(run(&request, &state, &token).await)?;
        Ok(())
    });
    worker.map_err(|error| started(error.into()))?;
    let result = receiver.recv_timeout(wait_max.as_duration());
    drop(scope.close(Nanos::from_secs(5)));
    result.unwrap_or_else(|_| {
        let error = anyhow::anyhow!("the thread that started it ended");
        Err(started(error))
    })
}

/// Starts the program, looks at it, and stops it.
async fn run(request: &ProbeRequest, state: &Path, token: &Token) -> Result<Choice, ProbeError> {
    let (plan, options) =
        prepare(request, state).map_err(|error| ProbeError::Start(format!("{error:#}")))?;
    let target = start(&plan, &options).map_err(|error| ProbeError::Start(explain(&error)))?;
    let result = look(request, &target, token).await;
    let stopped = target.stop(STOP);
    let mut choice = result?;
    if stopped.killed {
        let grace = STOP.grace;
        let remark = format!("it did not end within {grace} of SIGTERM and was killed");
        choice.remarks.push(remark);
    }
    Ok(choice)
}

fn prepare(request: &ProbeRequest, state: &Path) -> anyhow::Result<(TargetPlan, StartOptions)> {
    let made = std::fs::create_dir_all(state);
    made.with_context(|| format!("make the folder {}", state.display()))?;
    let logs = state.with_extension("logs");
    std::fs::create_dir_all(&logs).context("make a folder for its output")?;
    let log = |name: &str| TargetLog::create(logs.join(name)).context("make a file for its output");
    let mut words = request.words.iter();
    let program = words.next().context("the command is empty")?;
    let program = match program.contains('/') && !program.starts_with('{') {
        true => std::path::absolute(program).context("find the program")?,
        false => program.into(),
    };
    let places = Places {
        stillwell: std::env::current_exe().context("find the executable of stillwell")?,
        state: state.to_owned(),
        files: None,
        experiment: request.experiment.clone(),
    };
    if let Some(file) = &request.input_file {
        let path = PathBuf::from(places.fill(file));
        if !path.exists() {
            std::fs::write(&path, "").with_context(|| format!("make {}", path.display()))?;
        }
    }
    let plan = TargetPlan {
        name: "program".to_owned(),
        kind: TargetKind::Child(ChildPlan {
            program,
            arguments: words.cloned().collect(),
            environment: EnvironmentPlan::default(),
            directory: request.directory.clone(),
            mounts: Vec::new(),
            log_limit: LOG_LIMIT_DEFAULT,
        }),
        ready: ReadyProbe::Immediately,
        cpus: CpuChoice::Any,
        memory: None,
        stop: STOP,
    };
    let options = StartOptions {
        state: state.to_owned(),
        stdout: log("stdout.log")?,
        stderr: log("stderr.log")?,
        cpus: None,
        cgroup: None,
        network: None,
    };
    Ok((plan.filled(&places), options))
}

/// Finds port and readiness check of the running program, and confirms the check.
async fn look(
    request: &ProbeRequest,
    target: &TargetProcess,
    token: &Token,
) -> Result<Choice, ProbeError> {
    let listeners = listeners(request, target, token).await?;
    let kind = request.kind;
    let is_single_stream = kind == Some(ProgramKind::Tcp) && listeners.len() == 1;
    let mut observed = Vec::new();
    for listener in listeners {
        let is_stream = listener.protocol == ListenerProtocol::Tcp;
        let answer = match is_stream && !is_single_stream && observed.len() < LISTENERS_MAX {
            true => answer(listener).await,
            false => None,
        };
        observed.push(ObservedListener { listener, answer });
    }
    let lines = target.last_lines(50);
    let choice = match kind.or_else(|| kind_of(&observed)) {
        Some(kind) if kind.has_port() => choose_port(kind, &observed, &lines),
        Some(kind) => {
            let mut remarks = Vec::new();
            let ready = by_output(&lines, &mut remarks);
            Some(Choice {
                kind,
                input: ScaffoldInput::Target,
                ready,
                remarks,
            })
        }
        None => None,
    };
    let mut choice = choice.ok_or_else(|| no_port(request, target))?;
    let deadline = clock::now() + Nanos::from_secs(5);
    match wait_ready(&choice.ready, target, deadline, token).await {
        Ok(_) => Ok(choice),
        Err(_) if target.exited().is_some() => Err(ended(target)),
        Err(_) if token.is_cancelled() => Err(ProbeError::Interrupted),
        Err(error) => {
            let error = explain(&error);
            choice.remarks.push(format!(
                "no readiness check works ({error}), so runs wait for 1 s"
            ));
            choice.ready = ReadyProbe::Delay {
                length: Nanos::SECOND,
            };
            Ok(choice)
        }
    }
}

/// Waits until the program listens and opens no more ports.
async fn listeners(
    request: &ProbeRequest,
    target: &TargetProcess,
    token: &Token,
) -> Result<Vec<Listener>, ProbeError> {
    let begun = clock::now();
    let is_portless = request.kind.is_some_and(|kind| !kind.has_port());
    let wanted = |listener: &Listener| match request.kind {
        Some(ProgramKind::Udp) => listener.protocol == ListenerProtocol::Udp,
        Some(_) => listener.protocol == ListenerProtocol::Tcp,
        None => true,
    };
    let (mut last, mut changed) = (Vec::new(), begun);
    loop {
        if target.exited().is_some() {
            return Err(ended(target));
        }
        let now = clock::now();
        let listeners = target.listeners();
        if listeners != last {
            (last, changed) = (listeners, now);
        }
        let is_quiet = now.since(changed) >= QUIET;
        if last.iter().any(wanted) && is_quiet && !is_portless {
            return Ok(last);
        }
        let waited = now.since(begun);
        let is_silent = || target.last_lines(1).is_empty();
        if is_portless && waited >= PORTLESS[0] && (waited >= PORTLESS[1] || !is_silent()) {
            return Ok(last);
        }
        if !is_portless && waited >= request.wait {
            return Err(no_port(request, target));
        }
        tokio::select! {
            // Cancel-safe: only looks.
            () = token.cancelled() => return Err(ProbeError::Interrupted),
            () = tokio::time::sleep(LOOK_AGAIN.as_duration()) => {}
        }
    }
}

/// Returns the best answer to a GET request, over HTTP or HTTPS; `None` if nothing that is HTTP came back.
async fn answer(listener: Listener) -> Option<HttpAnswer> {
    let address = listener.reachable();
    let mut best: Option<HttpAnswer> = None;
    for (is_tls, scheme) in [(false, "http"), (true, "https")] {
        for path in PATHS {
            let target = Target::from_url(&format!("{scheme}://{address}{path}")).ok()?;
            let endpoint = Endpoint::unverified(&target).ok()?;
            let response = endpoint.get(&target, &[], PAGE_MAX);
            let response = tokio::time::timeout(ANSWER_MAX.as_duration(), response).await;
            // What does not answer HTTP at one path does not at others.
            let Ok(Ok(response)) = response else {
                break;
            };
            let answer = HttpAnswer {
                is_tls,
                path,
                status: response.status,
            };
            if answer.is_success() {
                return Some(answer);
            }
            best = Some(preferred(best, answer));
        }
        // Servers of HTTPS answer plain requests with 400.
        let is_answered = best.as_ref().is_some_and(|answer| answer.status != 400);
        if is_answered {
            break;
        }
    }
    best
}

fn no_port(request: &ProbeRequest, target: &TargetProcess) -> ProbeError {
    ProbeError::NoPort {
        protocol: match request.kind {
            Some(ProgramKind::Udp) => "UDP",
            Some(_) => "TCP",
            None => "TCP or UDP",
        },
        wait: request.wait,
        lines: shown(target),
    }
}

fn ended(target: &TargetProcess) -> ProbeError {
    ProbeError::Ended {
        after: clock::now().since(target.start_moment()),
        exit: target.exited().unwrap_or_default(),
        lines: shown(target),
    }
}

/// Returns the last lines of its output, for an error.
fn shown(target: &TargetProcess) -> String {
    let lines = target.last_lines(LINES);
    let lines: Vec<String> = lines.iter().map(|line| format!("\n  | {line}")).collect();
    match lines.is_empty() {
        true => "; it wrote nothing".to_owned(),
        false => format!("; its last lines:{}", lines.concat()),
    }
}
