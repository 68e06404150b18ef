//! Sets the stage: the capture's folder, the namespace, the thread on which
//! everything happens.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};

use stillwell_capture::{CaptureError, Manifest, Note};
use stillwell_plan::{IsolationPlan, Wanted};
use stillwell_scope::{NetworkNamespace, Place, Scope, Token};
use stillwell_units::Nanos;

use crate::interrupt::Interrupt;
use crate::request::{Progress, RunRequest};
use crate::shell::Shell;

/// Tellings that wait to be heard; more hold the run's conductor back.
const PROGRESS_WAITING_MAX: usize = 256;
/// How often the caller's thread looks whether the conductor has ended.
const LOOK_EVERY: Nanos = Nanos::from_millis(50);
/// How long the conductor may take to end once it has nothing to do.
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
    for path in [&request.folder, &request.places.state] {
        fs::create_dir_all(path).map_err(|source| ConductError::Folder {
            path: path.clone(),
            source,
        })?;
    }
    let (network, notes) = enter_network(request.plan.isolation);
    let place = Place {
        cpus: None,
        network,
    };
    let (tell, hear) = sync_channel(PROGRESS_WAITING_MAX);
    let (answer, result) = sync_channel(1);
    let own_interrupt = interrupt.clone();
    let mut scope = Scope::new(&Token::new());
    scope
        .thread(place, "conductor", move |_| {
            let manifest = run_shell(request, own_interrupt, notes, tell);
            answer.send(manifest).map_err(Into::into)
        })
        .map_err(|error| ConductError::Conductor {
            reason: error.to_string(),
        })?;
    loop {
        match hear.recv_timeout(LOOK_EVERY.as_duration()) {
            Ok(told) => progress(told),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let ends = scope.close(CONDUCTOR_CLOSE);
    result.try_recv().unwrap_or_else(|_| {
        let failures = ends.into_iter().filter_map(|end| end.result.err());
        let reasons: Vec<String> = failures.map(|failure| failure.to_string()).collect();
        Err(ConductError::Conductor {
            reason: reasons.join("; "),
        })
    })
}

fn run_shell(
    request: RunRequest,
    interrupt: Interrupt,
    notes: Result<Vec<Note>, String>,
    tell: SyncSender<Progress>,
) -> Result<Manifest, ConductError> {
    let mut shell = Shell::new(request, interrupt, tell)?;
    match notes {
        Ok(notes) => shell.note(notes),
        Err(reason) => shell.refuse(reason),
    }
    Ok(shell.run())
}

/// A network namespace of the run's own, if it is wanted and can be had; notes
/// on what could not be, or why the run is refused.
fn enter_network(
    isolation: IsolationPlan,
) -> (Option<NetworkNamespace>, Result<Vec<Note>, String>) {
    if isolation.network == Wanted::No {
        return (None, Ok(Vec::new()));
    }
    match stillwell_subject::new_network() {
        Ok(network) => (Some(network), Ok(Vec::new())),
        Err(error) if isolation.network == Wanted::Required => {
            let note = error.note();
            let reason = format!("{} is required by the plan: {}", note.what, note.why);
            (None, Err(reason))
        }
        Err(error) => {
            let note = error.note();
            let note = Note {
                what: note.what,
                why: note.why,
            };
            (None, Ok(vec![note]))
        }
    }
}
