//! Sets the stage: the capture's folder, the namespace, the thread on which
//! everything happens.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};

use stillwell_capture::{CaptureError, Manifest, Note, RunOutcome, make_private};
use stillwell_plan::placement::{IsolationPlan, Wanted};
use stillwell_plan::{Phase, PhasesPlan, RunHosts};
use stillwell_scope::{NetworkNamespace, PartFailure, Place, Scope, Token, clock, explain};
use stillwell_target::Links;
use stillwell_units::{Nanos, Seed};

use crate::interrupt::Interrupt;
use crate::record::Record;
use crate::request::{Progress, RunRequest};
use crate::shell::{ProgressSender, Shell};
use crate::together::{Link, Together, no_namespace};

/// Progress events that may wait; more block the run's conductor.
const PROGRESS_WAITING_MAX: usize = 256;
/// Interval at which the caller's thread checks if the conductor has ended.
const LOOK_EVERY: Nanos = Nanos::from_millis(50);
/// The longest time that the conductor may take to end once it has nothing to do.
const CONDUCTOR_CLOSE: Nanos = Nanos::from_secs(5);

/// Not even a capture could be made.
#[derive(Debug, thiserror::Error)]
pub enum ConductError {
    /// A folder could not be made.
    #[error("make the folder {}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The capture could not be begun.
    #[error("begin the capture")]
    Capture {
        /// The file and the kernel's answer.
        source: CaptureError,
    },
    /// The conductor's thread could not be started, or failed: a defect of ours.
    #[error("the thread of the run failed: {reason}")]
    Conductor {
        /// Description of the failure.
        reason: String,
    },
}

/// Carries `request` out and reports to `progress`.
///
/// Every run that leaves a readable capture is `Ok`, regardless of its outcome, which is in the
/// manifest.
///
/// # Errors
///
/// [`ConductError`] where no capture could be made.
pub fn conduct(
    request: RunRequest,
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(Progress),
) -> Result<Manifest, ConductError> {
    let environment = enter_network(request.plan.isolation);
    let mut conductors = Conductors::new();
    let answer = conductors.start(request, interrupt, environment, None);
    let failures = conductors.receiver(&mut |_, event| progress(event));
    result_of(answer, &failures)
}

/// Leaves the capture of a run of `request` that ended with `outcome` before it began.
///
/// # Errors
/// [`ConductError`] where no capture could be made.
pub fn record_failed(request: &RunRequest, outcome: RunOutcome) -> Result<Manifest, ConductError> {
    let folder = |source| ConductError::Folder {
        path: request.folder.clone(),
        source,
    };
    make_private(&request.folder).map_err(folder)?;
    let record = Record::begin(request).map_err(|source| ConductError::Capture { source });
    let mut record = record?;
    record.enter(Phase::Prepare, clock::now());
    Ok(record.close(outcome))
}

/// Carries two runs out at once, and reports to `progress` with the run's place in `requests`. All
/// random choices that the two share follow from `seed`: see [`Together`].
///
/// Load and measuring begin at the same moment for both, once both targets are ready. Both must have
/// warm-up and measured phases of the same length. If one fails before its load is over, the other
/// ends as well, with an outcome that says so. The results are in the order of `requests`.
///
/// If the host or the plan does not permit it (no network namespaces; too few CPUs for a duet), the
/// captures of both have the outcome "could not start" with the reason.
///
/// In a sliced pair the CPU time of a target goes on while it is not its turn. CPU per event includes
/// the idle cost over the whole window, of which it had less than half.
///
/// # Errors
/// [`ConductError`] where no capture could be made; the other run then fails because of it.
pub fn conduct_together(
    requests: [RunRequest; 2],
    together: Together,
    seed: Seed,
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(usize, Progress),
) -> [Result<Manifest, ConductError>; 2] {
    let [first, second] = requests.each_ref().map(|request| &request.plan);
    let lengths = |phases: &PhasesPlan| (phases.warmup, phases.measure);
    let is_even = lengths(&first.phases) == lengths(&second.phases);
    let mut conductors = Conductors::new();
    let mut links = Link::pair(together, seed).into_iter();
    let answers = requests.map(|request| {
        let environment = if is_even {
            enter_private_network(request.plan.isolation, together)
        } else {
            let reason = "two runs at once must have warm-up and measured phases of one length";
            RunEnvironment::refused(reason.to_owned())
        };
        conductors.start(request, interrupt, environment, links.next())
    });
    let failures = conductors.receiver(progress);
    answers.map(|answer| result_of(answer, &failures))
}

/// The result of a conductor.
type Answer = Receiver<Result<Manifest, ConductError>>;

/// The threads on which runs are conducted.
struct Conductors {
    scope: Scope,
    sender: SyncSender<(usize, Progress)>,
    receiver: Receiver<(usize, Progress)>,
}

impl Conductors {
    fn new() -> Self {
        let (sender, receiver) = sync_channel(PROGRESS_WAITING_MAX);
        Self {
            scope: Scope::new(&Token::new()),
            sender,
            receiver,
        }
    }

    /// Starts a conductor where `environment` says. The target ends with the thread that starts it, so
    /// each run has its own.
    fn start(
        &mut self,
        mut request: RunRequest,
        interrupt: &Interrupt,
        environment: RunEnvironment,
        link: Option<Link>,
    ) -> Result<Answer, ConductError> {
        if request.fleet.is_none() {
            request.plan = request.plan.between(&RunHosts::default());
        }
        for path in [&request.folder, &request.places.state] {
            make_private(path).map_err(|source| ConductError::Folder {
                path: path.clone(),
                source,
            })?;
        }
        let place = Place {
            cpus: None,
            network: environment.network,
        };
        let progress_sender = ProgressSender {
            run: link.as_ref().map_or(0, |link| link.side),
            listener: self.sender.clone(),
        };
        let name = match &link {
            Some(link) => format!("conductor-{}", link.side),
            None => "conductor".to_owned(),
        };
        let (answer, result) = sync_channel(1);
        let (interrupt, notes) = (interrupt.clone(), environment.notes);
        let links = environment.links;
        self.scope
            .thread(place, &name, move |_| {
                let manifest = run_shell(request, interrupt, (notes, links), progress_sender, link);
                answer.send(manifest).map_err(Into::into)
            })
            .map_err(|error| ConductError::Conductor {
                reason: error.to_string(),
            })?;
        Ok(result)
    }

    /// Receives until all conductors have ended. Returns their failures.
    fn receiver(self, progress: &mut dyn FnMut(usize, Progress)) -> Vec<PartFailure> {
        drop(self.sender);
        loop {
            match self.receiver.recv_timeout(LOOK_EVERY.as_duration()) {
                Ok((run, event)) => progress(run, event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let ends = self.scope.close(CONDUCTOR_CLOSE).into_iter();
        ends.filter_map(|end| end.result.err()).collect()
    }
}

/// The result of an ended conductor; if it left none, the reason.
fn result_of(
    answer: Result<Answer, ConductError>,
    failures: &[PartFailure],
) -> Result<Manifest, ConductError> {
    answer?.try_recv().unwrap_or_else(|_| {
        let reasons: Vec<String> = failures.iter().map(ToString::to_string).collect();
        Err(ConductError::Conductor {
            reason: reasons.join("; "),
        })
    })
}

fn run_shell(
    request: RunRequest,
    interrupt: Interrupt,
    (notes, links): (Result<Vec<Note>, String>, Option<Links>),
    progress_sender: ProgressSender,
    link: Option<Link>,
) -> Result<Manifest, ConductError> {
    let mut shell = Shell::new(request, interrupt, progress_sender, link)?;
    shell.link(links);
    match notes {
        Ok(notes) => shell.note(notes),
        Err(reason) => shell.refuse(reason),
    }
    Ok(shell.run())
}

/// Environment of a run.
struct RunEnvironment {
    /// A separate network namespace.
    network: Option<NetworkNamespace>,
    /// The links to a target that has a network of its own too.
    links: Option<Links>,
    /// Unavailable features, or the reason why the run is refused.
    notes: Result<Vec<Note>, String>,
}

impl RunEnvironment {
    const fn refused(reason: String) -> Self {
        Self {
            network: None,
            links: None,
            notes: Err(reason),
        }
    }
}

/// Enters a network namespace for this run, if the plan wants one and the host permits it.
fn enter_network(isolation: IsolationPlan) -> RunEnvironment {
    let without = |notes| RunEnvironment {
        network: None,
        links: None,
        notes: Ok(notes),
    };
    if isolation.network == Wanted::No {
        return without(Vec::new());
    }
    match stillwell_target::new_network() {
        Ok(network) => lay_links(isolation, network),
        Err(error) => {
            let note = error.note();
            if isolation.network == Wanted::Required {
                let reason = format!("{} is required by the plan: {}", note.what, note.why);
                return RunEnvironment::refused(reason);
            }
            without(vec![Note {
                what: note.what,
                why: note.why,
            }])
        }
    }
}

/// An environment in `network`, with links if the plan wants them.
fn lay_links(isolation: IsolationPlan, network: NetworkNamespace) -> RunEnvironment {
    let links = isolation.links.map(|plan| Links::lay(&plan, &network));
    match links.transpose() {
        Ok(links) => RunEnvironment {
            network: Some(network),
            links,
            notes: Ok(Vec::new()),
        },
        Err(error) => RunEnvironment::refused(explain(&error)),
    }
}

/// The same for a run beside another, which is refused without one.
fn enter_private_network(isolation: IsolationPlan, together: Together) -> RunEnvironment {
    if isolation.network == Wanted::No {
        return RunEnvironment::refused(no_namespace(together, "the plan forbids it"));
    }
    match stillwell_target::new_network() {
        Ok(network) => lay_links(isolation, network),
        Err(error) => RunEnvironment::refused(no_namespace(together, &error.note().why)),
    }
}
