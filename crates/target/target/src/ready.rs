//! Readiness of a target.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::time::Duration;

use stillwell_http::Target;
use stillwell_plan::target::ReadyProbe;
use stillwell_scope::{Token, clock, explain};
use stillwell_units::{ByteSize, Moment, Nanos, human};
use stillwell_wire::client::Endpoint;
use stillwell_wire::{Timer, dial};

use crate::logs::Follower;
use crate::{Exit, TargetProcess};

/// Time between two looks.
const LOOK_AGAIN: Nanos = Nanos::from_millis(20);
/// Time limit of one connection or response.
const ATTEMPT_MAX: Nanos = Nanos::SECOND;
/// Limit on the body of a readiness page; only its status matters.
const BODY_MAX: ByteSize = ByteSize::mib(4);

/// Reason why a target is not ready.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum NotReady {
    /// It ended instead.
    #[error("it ended after {} ({exit}); expected: {probe}", human::nanos(*waited))]
    Died {
        /// Description of the probe.
        probe: String,
        /// For how long.
        waited: Nanos,
        /// Exit status of the target.
        exit: Exit,
    },
    /// The deadline has passed.
    #[error("waited {}; expected: {probe} (last attempt: {last_error})", human::clock(*waited))]
    Overdue {
        /// Description of the probe.
        probe: String,
        /// For how long.
        waited: Nanos,
        /// Result of the last attempt.
        last_error: String,
    },
    /// The run was cancelled.
    #[error("cancelled after {}; expected: {probe}", human::nanos(*waited))]
    Cancelled {
        /// Description of the probe.
        probe: String,
        /// For how long.
        waited: Nanos,
    },
    /// The probe cannot work.
    #[error("{probe}: {reason}")]
    Impossible {
        /// Description of the probe.
        probe: String,
        /// Reason why it cannot work.
        reason: String,
    },
}

/// Waits until `target_process` is ready according to `probe`, whose placeholders are filled in. Returns the time
/// since its start. Polls every 20 ms. Cancel-safe.
///
/// # Errors
/// [`NotReady`] if the target ends, `deadline` passes or `token` is cancelled first.
pub async fn wait_ready(
    probe: &ReadyProbe,
    target_process: &TargetProcess,
    deadline: Moment,
    token: &Token,
) -> Result<Nanos, NotReady> {
    let begun = clock::now();
    let waited = || clock::now().since(begun);
    let impossible = |reason: String| NotReady::Impossible {
        probe: describe(probe),
        reason,
    };
    let mut timer = Timer::new().map_err(|error| impossible(error.to_string()))?;
    let last_error = RefCell::new("no attempt was made".to_owned());
    tokio::select! {
        biased;
        // Cancel-safe: only looks.
        () = token.cancelled() => Err(NotReady::Cancelled {
            probe: describe(probe),
            waited: waited(),
        }),
        // Cancel-safe: waits for a descriptor, then looks.
        exit = target_process.ended() => Err(NotReady::Died {
            probe: describe(probe),
            waited: waited(),
            exit: exit.unwrap_or_default(),
        }),
        // A cancelled attempt leaves nothing behind.
        ready = until_ready(probe, target_process, &last_error) => match ready {
            Ok(()) => Ok(clock::now().since(target_process.start_moment())),
            Err(reason) => Err(impossible(reason)),
        },
        // Cancel-safe.
        () = timer.until(deadline) => Err(NotReady::Overdue {
            probe: describe(probe),
            waited: waited(),
            last_error: last_error.borrow().clone(),
        }),
    }
}

/// Polls until the target is ready; an error if its readiness can never be detected.
async fn until_ready(
    probe: &ReadyProbe,
    target_process: &TargetProcess,
    last_error: &RefCell<String>,
) -> Result<(), String> {
    let mut timer = Timer::new().map_err(|error| error.to_string())?;
    let mut attempt_timer = Timer::new().map_err(|error| error.to_string())?;
    let mut check = ReadinessCheck::new(probe, target_process)?;
    loop {
        let next = clock::now() + LOOK_AGAIN;
        let looked = tokio::select! {
            looked = check.look() => looked,
            () = attempt_timer.until(clock::now() + ATTEMPT_MAX) => {
                Err(format!("no response within {ATTEMPT_MAX}"))
            }
        };
        match looked {
            Ok(()) => return Ok(()),
            Err(error) => *last_error.borrow_mut() = error,
        }
        timer.until(next).await;
    }
}

/// One probe, ready to be tried again and again.
enum ReadinessCheck<'a> {
    Ready,
    Tcp {
        address: &'a str,
    },
    Http {
        target: Target,
        endpoint: Endpoint,
    },
    Log {
        text: &'a str,
        logs: Vec<(&'a Path, Follower)>,
    },
    File {
        path: &'a str,
    },
    Until {
        moment: Moment,
    },
}

impl<'a> ReadinessCheck<'a> {
    fn new(probe: &'a ReadyProbe, target_process: &'a TargetProcess) -> Result<Self, String> {
        Ok(match probe {
            ReadyProbe::Immediately => Self::Ready,
            ReadyProbe::Tcp { address } => Self::Tcp { address },
            ReadyProbe::Http { url } => {
                let target = Target::from_url(url).map_err(|error| error.to_string())?;
                let endpoint = Endpoint::unverified(&target);
                let endpoint = endpoint.map_err(|error| explain(&error))?;
                Self::Http { target, endpoint }
            }
            ReadyProbe::LogLine { contains } => {
                let logs = [&target_process.inner.stdout, &target_process.inner.stderr];
                let logs = logs.into_iter().flatten();
                let logs: Vec<_> = logs
                    .map(|log| (log.path.as_path(), Follower::from(log.from)))
                    .collect();
                if logs.is_empty() {
                    return Err("only a target that Stillwell starts has logs".to_owned());
                }
                Self::Log {
                    text: contains,
                    logs,
                }
            }
            ReadyProbe::File { path } => Self::File { path },
            ReadyProbe::Delay { length } => Self::Until {
                moment: target_process.start_moment() + *length,
            },
        })
    }

    /// Returns `Ok` if the target is ready, otherwise the observed state.
    async fn look(&mut self) -> Result<(), String> {
        match self {
            Self::Ready => Ok(()),
            Self::Tcp { address } => {
                let connected = dial::tcp(address).await;
                connected.map(drop).map_err(|error| explain(&error))
            }
            Self::Http { target, endpoint } => get(target, endpoint).await,
            Self::Log { text, logs } => {
                let mut logs = logs.iter_mut();
                // A log that cannot be read now may be later.
                let has_line = logs.any(|(path, log)| log.has_line(path, text).unwrap_or(false));
                has_line
                    .then_some(())
                    .ok_or_else(|| "no such line yet".to_owned())
            }
            Self::File { path } => look_at_file(Path::new(path)).await,
            Self::Until { moment } => {
                let is_over = clock::now() >= *moment;
                is_over
                    .then_some(())
                    .ok_or_else(|| "the delay is not over yet".to_owned())
            }
        }
    }
}

/// Returns `Ok` if there is a file at `path`, and a program has it open if it is a Unix socket. The socket of a killed
/// process stays there and refuses connections.
async fn look_at_file(path: &Path) -> Result<(), String> {
    std::fs::symlink_metadata(path).map_err(|error| error.to_string())?;
    let file = std::fs::metadata(path);
    if !file.is_ok_and(|file| file.file_type().is_socket()) {
        return Ok(());
    }
    match dial::unix_stream(path).await {
        Err(error) if is_closed(&error.source) => {
            let reason = format!(
                "it is a Unix socket, and no program listens on it: {}",
                explain(&error)
            );
            Err(reason)
        }
        // A socket of datagrams and one whose queue is full are open. Without permission, the file counts.
        _ => Ok(()),
    }
}

/// Returns true if a connection to a Unix socket failed with `error` because no program has it open.
fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound
    )
}

async fn get(target: &Target, endpoint: &Endpoint) -> Result<(), String> {
    let response = endpoint.get(target, &[], BODY_MAX).await;
    let response = response.map_err(|error| explain(&error))?;
    match response.status {
        200..300 => Ok(()),
        status => Err(format!("it returned status {status}")),
    }
}

/// Time limit for the connection of [`answering_already`].
const CONNECT_MAX: Duration = Duration::from_millis(500);

/// Returns the loopback address of `probe` if something accepts connections there. Before the target is started, that is
/// another program: it would be taken for the target.
#[must_use]
pub fn answering_already(probe: &ReadyProbe) -> Option<SocketAddr> {
    let accepts =
        |address: &SocketAddr| std::net::TcpStream::connect_timeout(address, CONNECT_MAX).is_ok();
    loopback_of(probe).filter(accepts)
}

/// Returns the loopback address that `probe` connects to, `localhost` included; `None` for other hosts and probes.
fn loopback_of(probe: &ReadyProbe) -> Option<SocketAddr> {
    let target = match probe {
        // An address has the form of the host and port of a URL.
        ReadyProbe::Tcp { address } => Target::from_url(&format!("http://{address}")),
        ReadyProbe::Http { url } => Target::from_url(url),
        _ => return None,
    };
    target.ok()?.loopback()
}

fn describe(probe: &ReadyProbe) -> String {
    match probe {
        ReadyProbe::Immediately => "it is started".to_owned(),
        ReadyProbe::Tcp { address } => format!("{address} accepts connections"),
        ReadyProbe::Http { url } => format!("{url} returns a status from 200 to 299"),
        ReadyProbe::LogLine { contains } => format!("it writes a line with `{contains}`"),
        ReadyProbe::File { path } => format!("{path} exists"),
        ReadyProbe::Delay { length } => format!("it has run for {length}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_of_this_host_have_a_loopback_address_and_others_none() {
        let tcp = |address: &str| ReadyProbe::Tcp {
            address: address.to_owned(),
        };
        let http = |url: &str| ReadyProbe::Http {
            url: url.to_owned(),
        };
        for (probe, expected) in [
            (tcp("127.0.0.1:9151"), Some("127.0.0.1:9151")),
            (tcp("[::1]:9151"), Some("[::1]:9151")),
            (tcp("localhost:9151"), Some("127.0.0.1:9151")),
            (tcp("192.0.2.1:9151"), None),
            (tcp("example.org:9151"), None),
            (tcp("no address"), None),
            (http("http://127.0.0.1:9151/"), Some("127.0.0.1:9151")),
            (http("http://localhost/health"), Some("127.0.0.1:80")),
            (http("https://localhost"), Some("127.0.0.1:443")),
            (http("http://example.org/"), None),
            (ReadyProbe::Immediately, None),
        ] {
            let expected: Option<SocketAddr> = expected.map(|address| address.parse().unwrap());
            assert_eq!(loopback_of(&probe), expected, "{probe:?}");
        }
    }
}
