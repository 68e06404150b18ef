//! Sets the stage: the capture's folder, the namespace, the thread on which
//! everything happens.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};

use stillwell_capture::{CaptureError, Manifest, Note};
use stillwell_plan::{IsolationPlan, PhasesPlan, Wanted};
use stillwell_scope::{NetworkNamespace, PartFailure, Place, Scope, Token, explain};
use stillwell_target::Links;
use stillwell_units::{Nanos, Seed};

use crate::interrupt::Interrupt;
use crate::request::{Progress, RunRequest};
use crate::shell::{Shell, Teller};
use crate::together::{Link, Together, no_namespace};

/// Tellings that wait to be heard; more hold the run's conductor back.
const PROGRESS_WAITING_MAX: usize = 256;
/// How often the caller's thread looks whether the conductor has ended.
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
    #[error("conduct the run: {reason}")]
    Conductor {
        /// What went wrong.
        reason: String,
    },
}

/// Carries `request` out and tells `progress` how it goes.
///
/// Every run that leaves a readable capture is `Ok`, whatever its outcome: the
/// manifest says how it ended.
///
/// # Errors
/// [`ConductError`] where not even a capture could be made.
pub fn conduct(
    request: RunRequest,
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(Progress),
) -> Result<Manifest, ConductError> {
    let stand = enter_network(request.plan.isolation);
    let mut conductors = Conductors::new();
    let answer = conductors.start(request, interrupt, stand, None);
    let failures = conductors.hear(&mut |_, told| progress(told));
    settle(answer, &failures)
}

/// Carries two runs out at once, and tells `progress` how each goes, by its place
/// in `requests`. All that the two share by lot follows from `seed`: see
/// [`Together`].
///
/// Load begins, and measuring too, at the same moment for both, once both
/// subjects are ready; so both must have warm-up and measured phases of the same
/// length. If one fails before its load is over, the other ends as well, with an
/// outcome that says so. The results are in the order of `requests`.
///
/// Where the host or the plan does not permit it (no network namespaces; too few
/// CPUs for a duet), the captures of both say that the runs could not start, and
/// why.
///
/// In a sliced pair the CPU time of a subject goes on while it is not its turn:
/// CPU per event holds what an idle subject costs over the whole window, of
/// which it had less than half.
///
/// # Errors
/// [`ConductError`] where not even a capture could be made; the other run then
/// fails because of it.
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
        let stand = if is_even {
            enter_own_network(request.plan.isolation, together)
        } else {
            let reason = "two runs at once must have warm-up and measured phases of one length";
            Stand::refused(reason.to_owned())
        };
        conductors.start(request, interrupt, stand, links.next())
    });
    let failures = conductors.hear(progress);
    answers.map(|answer| settle(answer, &failures))
}

/// What a conductor leaves.
type Answer = Receiver<Result<Manifest, ConductError>>;

/// The threads on which runs are conducted.
struct Conductors {
    scope: Scope,
    tell: SyncSender<(usize, Progress)>,
    hear: Receiver<(usize, Progress)>,
}

impl Conductors {
    fn new() -> Self {
        let (tell, hear) = sync_channel(PROGRESS_WAITING_MAX);
        Self {
            scope: Scope::new(&Token::new()),
            tell,
            hear,
        }
    }

    /// Starts a conductor where `stand` says. The target ends with the thread that starts it, so
    /// each run has its own.
    fn start(
        &mut self,
        request: RunRequest,
        interrupt: &Interrupt,
        stand: Stand,
        link: Option<Link>,
    ) -> Result<Answer, ConductError> {
        for path in [&request.folder, &request.places.state] {
            fs::create_dir_all(path).map_err(|source| ConductError::Folder {
                path: path.clone(),
                source,
            })?;
        }
        let place = Place {
            cpus: None,
            network: stand.network,
        };
        let teller = Teller {
            run: link.as_ref().map_or(0, |link| link.side),
            listener: self.tell.clone(),
        };
        let name = match &link {
            Some(link) => format!("conductor-{}", link.side),
            None => "conductor".to_owned(),
        };
        let (answer, result) = sync_channel(1);
        let (interrupt, notes) = (interrupt.clone(), stand.notes);
        let links = stand.links;
        self.scope
            .thread(place, &name, move |_| {
                let manifest = run_shell(request, interrupt, (notes, links), teller, link);
                answer.send(manifest).map_err(Into::into)
            })
            .map_err(|error| ConductError::Conductor {
                reason: error.to_string(),
            })?;
        Ok(result)
    }

    /// Hears until all conductors have ended. Gives what went wrong with them.
    fn hear(self, progress: &mut dyn FnMut(usize, Progress)) -> Vec<PartFailure> {
        drop(self.tell);
        loop {
            match self.hear.recv_timeout(LOOK_EVERY.as_duration()) {
                Ok((run, told)) => progress(run, told),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let ends = self.scope.close(CONDUCTOR_CLOSE).into_iter();
        ends.filter_map(|end| end.result.err()).collect()
    }
}

/// What a conductor that has ended left; where it left nothing, why.
fn settle(
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
    teller: Teller,
    link: Option<Link>,
) -> Result<Manifest, ConductError> {
    let mut shell = Shell::new(request, interrupt, teller, link)?;
    shell.link(links);
    match notes {
        Ok(notes) => shell.note(notes),
        Err(reason) => shell.refuse(reason),
    }
    Ok(shell.run())
}

/// Where a run stands.
struct Stand {
    /// A network namespace of its own.
    network: Option<NetworkNamespace>,
    /// The links to a target that has a network of its own too.
    links: Option<Links>,
    /// What could not be had, or why the run is refused.
    notes: Result<Vec<Note>, String>,
}

impl Stand {
    const fn refused(reason: String) -> Self {
        Self {
            network: None,
            links: None,
            notes: Err(reason),
        }
    }
}

/// A network namespace of the run's own, if it is wanted and can be had.
fn enter_network(isolation: IsolationPlan) -> Stand {
    let without = |notes| Stand {
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
                return Stand::refused(reason);
            }
            without(vec![Note {
                what: note.what,
                why: note.why,
            }])
        }
    }
}

/// A stand in `network`, with links if the plan wants them.
fn lay_links(isolation: IsolationPlan, network: NetworkNamespace) -> Stand {
    let links = isolation.links.map(|plan| Links::lay(&plan, &network));
    match links.transpose() {
        Ok(links) => Stand {
            network: Some(network),
            links,
            notes: Ok(Vec::new()),
        },
        Err(error) => Stand::refused(explain(&error)),
    }
}

/// The same for a run beside another, which is refused without one.
fn enter_own_network(isolation: IsolationPlan, together: Together) -> Stand {
    if isolation.network == Wanted::No {
        return Stand::refused(no_namespace(together, "the plan forbids it"));
    }
    match stillwell_target::new_network() {
        Ok(network) => lay_links(isolation, network),
        Err(error) => Stand::refused(no_namespace(together, &error.note().why)),
    }
}
