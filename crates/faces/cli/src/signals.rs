//! SIGINT, SIGTERM, SIGHUP and SIGQUIT request the end; the run then ends in order.

use std::future::pending;
use std::sync::mpsc::sync_channel;

use rustix::process::{Resource, getrlimit};
use stillwell_scope::{Place, Scope, Token};
use tokio::signal::unix::{SignalKind, signal};

const SIGHUP: u32 = 1;
const SIGINT: i32 = 2;
const SIGQUIT: i32 = 3;
const SIGTERM: i32 = 15;
/// A file has become larger than this process may make one.
const SIGXFSZ: i32 = 25;

/// Open files without which signals cannot be received.
const OPEN_FILES_MIN: u64 = 16;

/// Calls `raise` with the number of every SIGINT, SIGTERM, SIGHUP and SIGQUIT that comes, from a
/// thread of the returned scope, until that is closed. SIGHUP stays ignored where it was ignored
/// at the start, as `nohup` does. SIGXFSZ ends nothing: the write that caused it fails. When this returns none is
/// missed any more: who reads that something listens may signal at once.
///
/// # Errors
/// The kernel's answer where it gives no thread; a limit of open files that is too low for any command.
pub(crate) fn listen(raise: impl Fn(i32) + Send + 'static) -> std::io::Result<Scope> {
    let open_files = getrlimit(Resource::Nofile).current;
    if let Some(most) = open_files.filter(|most| *most < OPEN_FILES_MIN) {
        return Err(std::io::Error::other(format!(
            "this process may have {most} open files, and needs {OPEN_FILES_MIN}; raise the limit: ulimit -n 1024"
        )));
    }
    let mut scope = Scope::new(&Token::new());
    // Nothing is ever sent: that the sender has gone says that all is in place.
    let (installing, installed) = sync_channel::<()>(1);
    let handles_hangup = !is_ignored(SIGHUP);
    scope.worker(Place::default(), "signals", move |token| async move {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut quit = signal(SignalKind::quit())?;
        let _file_size = signal(SignalKind::from_raw(SIGXFSZ))?;
        let mut hangup = match handles_hangup {
            true => Some(signal(SignalKind::hangup())?),
            false => None,
        };
        drop(installing);
        loop {
            let hung_up = async {
                match &mut hangup {
                    Some(hangup) => hangup.recv().await,
                    None => pending().await,
                }
            };
            // All are cancel-safe: a signal that came stays noted.
            tokio::select! {
                () = token.cancelled() => return Ok(()),
                _ = interrupt.recv() => raise(SIGINT),
                _ = terminate.recv() => raise(SIGTERM),
                _ = quit.recv() => raise(SIGQUIT),
                _ = hung_up => raise(SIGHUP.cast_signed()),
            }
        }
    })?;
    installed.recv().unwrap_or_default();
    Ok(scope)
}

/// Returns true if this process ignores the signal with this number.
fn is_ignored(number: u32) -> bool {
    let status =
        stillwell_config::files::read_text("/proc/self/status".as_ref()).unwrap_or_default();
    ignores(&status, number)
}

/// The same, of a process with this `/proc/PID/status`.
fn ignores(status: &str, number: u32) -> bool {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (number - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_status_of_a_process() {
        let status = "Name:\tsh\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000002\n";
        assert!(ignores(status, 1));
        assert!(ignores(status, 13));
        assert!(!ignores(status, 2));
        assert!(!ignores("", 1));
    }
}
