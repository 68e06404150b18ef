//! `stillwell service`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use stillwell_nighthawk::CommandLineOptions;
use stillwell_nighthawk::service::{
    BoundService, Executor, LoadTask, OfferedRequest, Role, ServiceError, ServicePlan, bind_service,
};
use stillwell_nighthawk::wire::ExecutionResponse;
use stillwell_plan::{
    Alpn, ClientTlsPlan, PemSource, ServerIdentity, ServerTlsPlan, TlsIdentity, TlsSuites,
    Verification,
};
use stillwell_scope::{Scope, Token};
use stillwell_units::Nanos;

use crate::arguments::{
    NighthawkServiceArguments, ServeCertificate, ServiceArguments, ServiceRole, service_address,
};
use crate::command::load::nighthawk::remote;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;
use crate::signals;

/// So often it is looked whether a worker has failed.
const LOOK_PERIOD: Duration = Duration::from_millis(100);

/// Deadline at the end: a running load waits for its responses.
const CLOSE_MAX: Nanos = Nanos::from_secs(40);

pub(crate) fn run(arguments: &ServiceArguments) -> Result<Exit, CommandError> {
    let plan = ServicePlan {
        listen: arguments.listen,
        tls: tls(arguments),
        role: role(
            arguments.service,
            arguments.requests.as_deref(),
            services_tls(arguments),
        )
        .map_err(|error| CommandError::new(Exit::Usage, error))?,
    };
    let is_secure = plan.tls.is_some();
    if !is_secure && !arguments.client_ca.is_empty() {
        let why = "--client-ca needs TLS: give --certificate and \
                   --key, or --tls self-signed";
        return Err(CommandError::new(Exit::Usage, anyhow::anyhow!(why)));
    }
    if arguments.client_ca.is_empty() {
        warn_of_strangers(arguments.listen);
    }
    let service = bind_service(plan).map_err(refused)?;
    write_out(
        arguments.tls_certificate_out.as_deref(),
        service.certificate_pem(),
    )?;
    let scheme = if is_secure { "grpcs" } else { "grpc" };
    let told = format!(
        "stillwell service: listening on {scheme}://{}",
        service.address()
    );
    conduct(service, arguments.listener_address_file.as_deref(), &told)
}

/// What `nighthawk_service` does. The exit is Nighthawk's: 0, or 1 for whatever
/// went wrong.
pub(crate) fn run_as_nighthawk(paint: &Paint) -> Exit {
    let arguments = match NighthawkServiceArguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) if error.use_stderr() => {
            Paint::say(&format!("PARSE ERROR: {error}"));
            return Exit::Failed;
        }
        // Help and version are no errors.
        Err(told) => {
            let told = told.to_string().replace("Usage:", "USAGE:");
            return Paint::data(&told).map_or(Exit::Failed, |()| Exit::Held);
        }
    };
    match conduct_as_nighthawk(&arguments) {
        Ok(exit) => exit,
        Err(error) => {
            paint.error(&error);
            Paint::say("Failure: Could not start the grpc service.");
            Exit::Failed
        }
    }
}

fn conduct_as_nighthawk(arguments: &NighthawkServiceArguments) -> Result<Exit, CommandError> {
    let usage = |error| CommandError::new(Exit::Usage, error);
    let listen = service_address(&arguments.listen);
    let plan = ServicePlan {
        listen: listen.map_err(|why| usage(anyhow::anyhow!("--listen: {why}")))?,
        tls: None,
        role: role(arguments.service, None, None).map_err(usage)?,
    };
    warn_of_strangers(plan.listen);
    let service = bind_service(plan).map_err(refused)?;
    let told = format!("Nighthawk grpc service listening: {}", service.address());
    conduct(service, arguments.listener_address_file.as_deref(), &told)
}

/// Warns about addresses that are not on loopback.
fn warn_of_strangers(listen: SocketAddr) {
    if !listen.ip().is_loopback() {
        Paint::say(
            "warning: every client of this service can send load anywhere and read files \
             here; `stillwell service --client-ca FILE` requires client certificates",
        );
    }
}

/// Serves until a signal comes; `told` is said once it listens.
fn conduct(
    service: BoundService,
    address_file: Option<&Path>,
    told: &str,
) -> Result<Exit, CommandError> {
    let failed = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    let (raise, raised) = sync_channel(1);
    let signals = signals::listen(move |_| {
        // Where one waits already, this one says the same.
        raise.try_send(()).ok();
    });
    let signals = signals.map_err(|error| failed(error.into()))?;
    let address = service.address().to_string();
    let mut scope = Scope::new(&Token::new());
    let started = service.start(&mut scope, Loads);
    started.map_err(|error| failed(error.into()))?;
    Paint::say(told);
    // The file is written after the service listens.
    write_out(address_file, Some(address))?;
    let mut ended = Vec::new();
    while ended.is_empty() && raised.recv_timeout(LOOK_PERIOD) == Err(RecvTimeoutError::Timeout) {
        ended = scope.ends();
    }
    ended.extend(scope.close(CLOSE_MAX));
    signals.close(Nanos::SECOND);
    for end in ended {
        if let Err(failure) = end.result {
            let error = anyhow::Error::new(failure).context(format!("worker {}", end.name));
            return Err(CommandError::new(Exit::Invalid, error));
        }
    }
    Ok(Exit::Held)
}

/// Runs the requested loads.
struct Loads;

impl Executor for Loads {
    fn execute(&mut self, options: &CommandLineOptions, task: &LoadTask) -> ExecutionResponse {
        remote::execute(options, task)
    }
}

/// TLS of a distributor to its services.
fn services_tls(arguments: &ServiceArguments) -> Option<ClientTlsPlan> {
    let file = |path: &PathBuf| PemSource::File(path.clone());
    let identity = (&arguments.services_certificate, &arguments.services_key);
    arguments.services_tls.then(|| ClientTlsPlan {
        verification: Verification::Roots {
            extra: arguments.services_ca.clone(),
            public: true,
        },
        identity: match identity {
            (Some(certificates), Some(key)) => Some(TlsIdentity {
                certificates: file(certificates),
                key: file(key),
            }),
            _ => None,
        },
        alpn: vec![Alpn::Http2],
        ..ClientTlsPlan::default()
    })
}

fn role(
    role: ServiceRole,
    requests: Option<&Path>,
    tls: Option<ClientTlsPlan>,
) -> anyhow::Result<Role> {
    if tls.is_some() && role != ServiceRole::Distributor {
        anyhow::bail!("--services-tls is for --service distributor");
    }
    if requests.is_some() && role != ServiceRole::DummyRequestSource {
        anyhow::bail!("--requests is for --service dummy-request-source");
    }
    Ok(match role {
        ServiceRole::TrafficGeneratorService => Role::TrafficGenerator,
        ServiceRole::Distributor => Role::Distributor { tls },
        ServiceRole::DummyRequestSource => Role::RequestSource(match requests {
            Some(path) => {
                let text = std::fs::read_to_string(path);
                let text = text.with_context(|| format!("read {}", path.display()))?;
                let requests = remote::offered_requests(&text);
                requests.with_context(|| format!("read {}", path.display()))?
            }
            None => vec![OfferedRequest {
                method: Some("GET".to_owned()),
                path: Some("/".to_owned()),
                ..OfferedRequest::default()
            }],
        }),
    })
}

fn tls(arguments: &ServiceArguments) -> Option<ServerTlsPlan> {
    let identity = match (&arguments.tls, &arguments.certificate, &arguments.key) {
        (Some(ServeCertificate::SelfSigned), ..) => ServerIdentity::SelfSigned {
            names: if arguments.tls_name.is_empty() {
                vec![arguments.listen.ip().to_string(), "localhost".to_owned()]
            } else {
                arguments.tls_name.clone()
            },
        },
        (None, Some(certificate), Some(key)) => ServerIdentity::Given(TlsIdentity {
            certificates: PemSource::File(certificate.clone()),
            key: PemSource::File(key.clone()),
        }),
        _ => return None,
    };
    Some(ServerTlsPlan {
        identity,
        alpn: vec![Alpn::Http2],
        client_roots: arguments.client_ca.clone(),
        resumption: true,
        suites: TlsSuites::default(),
    })
}

/// An address may be free another time; the rest was typed wrong.
fn refused(error: ServiceError) -> CommandError {
    let exit = match &error {
        ServiceError::Tls { .. } => Exit::Usage,
        ServiceError::Listen { .. } => Exit::CouldNotRun,
    };
    CommandError::new(exit, error)
}

fn write_out(path: Option<&Path>, text: Option<String>) -> Result<(), CommandError> {
    let (Some(path), Some(text)) = (path, text) else {
        return Ok(());
    };
    let written = std::fs::write(path, text).with_context(|| format!("write {}", path.display()));
    written.map_err(|error| CommandError::new(Exit::CouldNotRun, error))
}
