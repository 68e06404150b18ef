//! One relay, from options to report.

use std::cell::RefCell;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use stillwell_http::HeadError;
use stillwell_scope::{PartError, PartFailure, Place, Scope, Token};
use stillwell_units::{ByteSize, Nanos};
use stillwell_wire::{ListenError, listen};
use tokio::time::sleep;
use tokio::{join, select};

use crate::core::Core;
use crate::counters::{RelayReport, add};
use crate::disk::{BYTES_MIN, Disk, DiskError};
use crate::endpoint::Endpoint;
use crate::input::{self, BoundInput};
use crate::metrics;
use crate::options::{Format, RelayOptions};
use crate::output::{self, Output};

/// Maximum time that a relay still sends its events after the stop, and waits until the peer of its
/// output closes the connection.
const FLUSH_MAX: Duration = Duration::from_secs(5);

/// The relay's thread ends by itself before that.
const CLOSE_MAX: Nanos = Nanos::from_secs(10);

/// Reasons for which a relay did not start, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// Events cannot come from nowhere.
    #[error(
        "an input can be neither `discard:` nor `file:`: write where to listen, such as `tcp://127.0.0.1:9100`"
    )]
    InputDiscard,
    /// Events cannot go where they can only come from.
    #[error("an output cannot be {endpoint}: write `http://…`, `tcp://…` or `discard:`")]
    OutputOnlyIn {
        /// The output.
        endpoint: String,
    },
    /// Its clients get no answer.
    #[error(
        "input of {endpoint} cannot be refused: `--refuse` needs an `http://` or `hec://` input"
    )]
    CannotRefuse {
        /// The input.
        endpoint: String,
    },
    /// The input or the output has no requests.
    #[error(
        "with `--events requests` the input is `http://…` or `grpc://…`, the output `http://…` or \
         `discard:`, and nothing is parsed or rewritten"
    )]
    NotRequests,
    /// The input's name has no address.
    #[error("find the address of {endpoint}")]
    Resolve {
        /// The input.
        endpoint: String,
        /// The resolver's answer.
        source: io::Error,
    },
    /// The address of the input or of the metrics page is not available.
    #[error("open {endpoint}")]
    Listen {
        /// The input, or the metrics page.
        endpoint: String,
        /// The cause.
        source: ListenError,
    },
    /// The output's URL cannot be requested.
    #[error("build requests to {endpoint}")]
    Output {
        /// The output.
        endpoint: String,
        /// The reason for which it cannot be requested.
        source: HeadError,
    },
    /// The buffer on disk cannot be used.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The buffer on disk is too small.
    #[error("a buffer of {bytes_max} on disk is too small: at least {BYTES_MIN}")]
    DiskTooSmall {
        /// The given size.
        bytes_max: ByteSize,
    },
    /// The kernel starts no more threads.
    #[error("start the relay's thread")]
    Start {
        /// The kernel's answer.
        source: io::Error,
    },
    /// It ended without a stop.
    #[error("relay events")]
    Failed {
        /// The reason for which it ended.
        source: PartFailure,
    },
}

/// A relay whose sockets are bound and that does not run yet.
#[derive(Debug)]
pub struct BoundRelay {
    options: RelayOptions,
    disk: Option<Disk>,
    input: BoundInput,
    output: Output,
    metrics: Option<TcpListener>,
}

/// Binds the relay's sockets. Connections and datagrams wait in the kernel from
/// here on.
///
/// # Errors
/// [`RelayError`] where an option cannot be carried out.
pub fn bind(options: RelayOptions) -> Result<BoundRelay, RelayError> {
    if options.faults.refuse.is_some() && !options.input.can_refuse() {
        let endpoint = options.input.to_string();
        return Err(RelayError::CannotRefuse { endpoint });
    }
    if options.format == Format::Requests && !carries_requests(&options) {
        return Err(RelayError::NotRequests);
    }
    if let Some(disk) = options
        .disk
        .as_ref()
        .filter(|disk| disk.bytes_max < BYTES_MIN)
    {
        let bytes_max = disk.bytes_max;
        return Err(RelayError::DiskTooSmall { bytes_max });
    }
    let output = Output::new(&options.output)?;
    let input = BoundInput::bind(&options.input)?;
    let metrics = options
        .metrics
        .map(|address| {
            listen::tcp(address).map_err(|source| RelayError::Listen {
                endpoint: format!("http://{address}/metrics"),
                source,
            })
        })
        .transpose()?;
    let disk = options.disk.as_ref().map(Disk::open).transpose()?;
    Ok(BoundRelay {
        options,
        disk,
        input,
        output,
        metrics,
    })
}

/// Returns true if whole requests can come in and go out unchanged.
fn carries_requests(options: &RelayOptions) -> bool {
    matches!(options.input, Endpoint::Http(_) | Endpoint::Grpc(_))
        && matches!(options.output, Endpoint::Http(_) | Endpoint::Discard)
        && !options.parse
        && options.rewrite.is_empty()
}

/// Binds and runs a relay; see [`BoundRelay::run`].
///
/// # Errors
/// [`RelayError`] where it does not start or does not go on.
pub fn run(options: RelayOptions, stop: &Token) -> Result<RelayReport, RelayError> {
    bind(options)?.run(stop)
}

impl BoundRelay {
    /// The address that the input listens on, with the port that the kernel
    /// chose; `None` for Unix sockets.
    #[must_use]
    pub fn input_address(&self) -> Option<SocketAddr> {
        self.input.address()
    }

    /// The address that the metrics page is at, if there is one.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref()?.local_addr().ok()
    }

    /// Relays on one thread of its own until `stop`; then takes in what has
    /// arrived, sends on what it holds, and returns once the peer of an output stream has
    /// closed the connection: after at most five seconds.
    ///
    /// # Errors
    /// [`RelayError`] where it does not start or does not go on.
    pub fn run(self, stop: &Token) -> Result<RelayReport, RelayError> {
        let mut scope = Scope::new(stop);
        let (sender, report) = sync_channel(1);
        let body = move |token| async move {
            let report = self.relay(token).await?;
            // The lines below wait for it.
            sender.send(report)?;
            Ok(())
        };
        scope
            .worker(Place::default(), "relay", body)
            .map_err(|source| RelayError::Start { source })?;
        let report = report.recv();
        let ends = scope.close(CLOSE_MAX);
        for end in ends {
            end.result.map_err(|source| RelayError::Failed { source })?;
        }
        Ok(report.unwrap_or_default())
    }

    async fn relay(self, token: Token) -> Result<RelayReport, PartError> {
        let core = Rc::new(Core::new(&self.options, self.disk, token.child_token()));
        let failure = RefCell::new(None);
        let input = async {
            ending(&core, &failure, input::take_in(&core, self.input).await);
            core.token.cancel();
            core.finish().await;
        };
        let disk = async {
            if let Some(disk) = &core.disk {
                let refill = async { ending(&core, &failure, core.refill(disk).await) };
                join!(refill, disk.keep_synced());
            }
        };
        let metrics = async {
            if let Some(socket) = self.metrics {
                ending(&core, &failure, metrics::answer(&core, socket).await);
            }
        };
        let stall = async {
            if let Some(stall) = self.options.stall {
                let ended = core.gate.keep(stall, &core.token).await;
                ending(&core, &failure, ended);
            }
        };
        let output = output::send_on(&core, self.output);
        let all = async {
            join!(input, disk, output, metrics, stall);
        };
        select! {
            () = all => {}
            () = overdue(&core.token) => {}
        }
        // What is left then is lost, unless it lies on disk.
        let report = core.report();
        let came = report.events_in + report.faults_duplicated + report.events_recovered;
        let went = report.events_out + report.events_dropped + report.events_kept;
        let left = came.saturating_sub(went);
        add(&core.counters.events_dropped, left);
        failure.take().map_or_else(|| Ok(core.report()), Err)
    }
}

/// No part dies alone: if it failed, the relay ends. Keeps the first failure.
fn ending<E: Into<PartError>>(
    core: &Core,
    failure: &RefCell<Option<PartError>>,
    ended: Result<(), E>,
) {
    if let Err(error) = ended {
        failure.borrow_mut().get_or_insert_with(|| error.into());
        core.token.cancel();
    }
}

async fn overdue(token: &Token) {
    token.cancelled().await;
    sleep(FLUSH_MAX).await;
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::options::{DiskOptions, SyncWhen};

    /// A relay with one event on disk that cannot read on after it.
    fn failing(folder: &Path, output: &str) -> BoundRelay {
        let disk_options = DiskOptions {
            folder: folder.to_owned(),
            bytes_max: BYTES_MIN,
            sync: SyncWhen::Never,
        };
        let disk = Disk::open(&disk_options).unwrap();
        disk.append(b"event");
        disk.write_out().unwrap();
        drop(disk);
        let input = "tcp://127.0.0.1:0".parse().unwrap();
        let mut options = RelayOptions::new(input, output.parse().unwrap());
        options.disk = Some(disk_options);
        let relay = bind(options).unwrap();
        fs::remove_file(folder.join("000000000002.segment")).unwrap();
        relay
    }

    #[test]
    fn a_relay_that_fails_ends_with_the_reason_even_if_its_output_waits() {
        // The kernel accepts connections, and no program answers.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let waiting = format!("http://{}/", silent.local_addr().unwrap());
        for output in ["discard:", waiting.as_str()] {
            let folder = tempfile::tempdir().unwrap();
            let ended = failing(folder.path(), output).run(&Token::new());
            let error = ended.unwrap_err();
            let reason = error.source().unwrap().to_string();
            assert!(reason.starts_with("use the buffer in"), "{reason}");
        }
    }
}
