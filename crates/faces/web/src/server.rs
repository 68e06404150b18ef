//! The server: its address, its threads, and its connections.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use stillwell_scope::{Place, Scope, Tasks, Token};
use stillwell_units::Nanos;
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::guard::Guard;
use crate::jobs::{Jobs, run_jobs};
use crate::program::Program;
use crate::routes::{Shared, router};
use crate::work_queue::WorkQueue;
use stillwell_experiment::library::{Library, ResultRoots};

/// Maximum number of connections.
const CONNECTIONS_MAX: usize = 64;
/// Maximum time for the head of a request.
const HEAD_TIME_MAX: Duration = Duration::from_secs(15);
/// Maximum size of the head of a request.
const HEAD_MAX: usize = 32 * 1024;
/// Pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Options of a server.
pub struct WebOptions {
    /// The address; port 0 is any that is free.
    pub listen: SocketAddr,
    /// True if other hosts may be served, too.
    pub is_remote_allowed: bool,
    /// Folders of results; commands run in the first one.
    pub folders: Vec<PathBuf>,
    /// Stores of clusters whose jobs are shown.
    pub stores: Vec<PathBuf>,
    /// Secret of this server: letters and digits.
    pub token: String,
    /// The executable that commands are started with.
    pub executable: PathBuf,
    /// Functions of commands.
    pub program: Box<dyn Program>,
}

impl std::fmt::Debug for WebOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebOptions")
            .field("listen", &self.listen)
            .field("folders", &self.folders)
            .finish_non_exhaustive()
    }
}

/// Reasons why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The address is not of this host alone.
    #[error("{0} can be reached from other hosts")]
    Remote(SocketAddr),
    /// A folder cannot be opened.
    #[error("open the folder {folder}")]
    Folder {
        /// The folder.
        folder: String,
        /// The cause.
        source: io::Error,
    },
    /// The address is taken or not allowed.
    #[error("listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
}

/// A server that listens.
#[derive(Debug)]
pub struct WebServer {
    listener: TcpListener,
    address: SocketAddr,
    roots: ResultRoots,
    options: WebOptions,
}

impl WebServer {
    /// Maximum time in which all threads end after their scope was cancelled. It includes the end of a running command.
    pub const CLOSE_MAX: Nanos = Nanos::from_secs(10);

    /// Listens at the address of `options`.
    ///
    /// # Errors
    /// The address is refused or taken, or a folder does not exist.
    pub fn bind(options: WebOptions) -> Result<Self, BindError> {
        let address = options.listen;
        if !address.ip().is_loopback() && !options.is_remote_allowed {
            return Err(BindError::Remote(address));
        }
        let folder = |folder: &PathBuf| {
            let canonical = folder.canonicalize().and_then(|path| match path.is_dir() {
                true => Ok(path),
                false => Err(io::ErrorKind::NotADirectory.into()),
            });
            canonical.map_err(|source| BindError::Folder {
                folder: folder.display().to_string(),
                source,
            })
        };
        let folders: Result<Vec<PathBuf>, BindError> = options.folders.iter().map(folder).collect();
        let listen = |source| BindError::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        Ok(Self {
            listener,
            address,
            roots: ResultRoots::new(folders?),
            options,
        })
    }

    /// Returns the address for a browser, with the token.
    #[must_use]
    pub fn url(&self) -> String {
        let mut shown = self.address;
        if shown.ip().is_unspecified() {
            shown.set_ip(match shown {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        format!("http://{shown}/?token={}", self.options.token)
    }

    /// Starts the threads of the server in `scope`; they end with its token.
    ///
    /// # Errors
    /// The kernel's answer where it starts no more threads.
    pub fn start(self, scope: &mut Scope) -> io::Result<()> {
        let work_queue = WorkQueue::start(scope)?;
        let executable = self.options.executable;
        let shared = Arc::new(Shared {
            guard: Guard::new(&self.options.token, self.address),
            roots: self.roots,
            stores: self.options.stores,
            program: self.options.program,
            library: Library::default(),
            jobs: Jobs::default(),
            work_queue,
        });
        let listener = self.listener;
        let of_pages = Arc::clone(&shared);
        scope.worker(Place::default(), "commands", move |token| async move {
            run_jobs(&shared.jobs, &executable, &shared.roots, &token).await;
            Ok(())
        })?;
        scope.worker(Place::default(), "ui", move |token| async move {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            serve(&listener, &of_pages, &token).await;
            Ok(())
        })
    }
}

async fn serve(listener: &tokio::net::TcpListener, shared: &Arc<Shared>, token: &Token) {
    let mut tasks = Tasks::new(CONNECTIONS_MAX);
    let router = router(Arc::clone(shared));
    loop {
        let accepted = tokio::select! {
            () = token.cancelled() => break,
            () = tasks.next_end(), if !tasks.is_empty() => continue,
            accepted = listener.accept(), if tasks.has_room() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let service = TowerToHyperService::new(router.clone());
                tasks.spawn(connection(stream, service));
            }
            // Such as too many open files: some close.
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
    tasks.cut().await;
}

/// Serves one connection; its errors are those of the browser.
async fn connection(stream: TcpStream, service: TowerToHyperService<axum::Router>) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new());
    builder
        .header_read_timeout(HEAD_TIME_MAX)
        .max_buf_size(HEAD_MAX);
    let served = builder.serve_connection(TokioIo::new(stream), service);
    served.await.unwrap_or_default();
}
