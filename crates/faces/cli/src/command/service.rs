//! `stillwell service`.

pub(crate) mod access;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use anyhow::Context;
use stillwell_config::files::read_text;
use stillwell_nighthawk::CommandLineOptions;
use stillwell_nighthawk::service::{
    AccessPlan, AccessToken, BoundService, Executor, LoadTask, OfferedRequest, Role, ServiceError,
    ServicePlan, bind_service,
};
use stillwell_nighthawk::wire::ExecutionResponse;
use stillwell_plan::tls::{
    Alpn, ClientTlsPlan, PemSource, RootSource, ServerIdentity, ServerTlsPlan, TlsIdentity,
    TlsSuites, Verification,
};
use stillwell_scope::{Scope, Token};
use stillwell_units::Nanos;

use crate::arguments::{
    NighthawkServiceArguments, ServeCertificate, ServiceArguments, ServiceRole, service_address,
};
use crate::command::load::nighthawk::remote;
use crate::command::nighthawk_line;
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
            services_token(arguments)?,
        )
        .map_err(|error| CommandError::new(Exit::Usage, error))?,
        access: Arc::new(access::plan(&arguments.access, arguments.service)?),
    };
    let is_secure = plan.tls.is_some();
    if !is_secure && !arguments.client_ca.is_empty() {
        let why = "--client-ca needs TLS: give --certificate and \
                   --key, or --tls self-signed";
        return Err(CommandError::new(Exit::Usage, anyhow::anyhow!(why)));
    }
    let access = Arc::clone(&plan.access);
    let has_secret = !arguments.client_ca.is_empty() || access.token.is_some();
    access::require_secret(
        arguments.listen,
        has_secret,
        arguments.access.insecure,
        "a token (--token-file FILE) or a client certificate (--client-ca FILE)",
    )?;
    let service = bind_service(plan).map_err(refused)?;
    write_out(
        arguments.tls_certificate_out.as_deref(),
        service.certificate_pem(),
    )?;
    let scheme = if is_secure { "grpcs" } else { "grpc" };
    let message = format!(
        "stillwell service: listening on {scheme}://{}",
        service.address()
    );
    conduct(
        service,
        access,
        arguments.listener_address_file.as_deref(),
        &message,
    )
}

/// Runs as `nighthawk_service` does. The exit is Nighthawk's: 0, or 1 for any failure.
pub(crate) fn run_as_nighthawk(paint: &Paint) -> Exit {
    let arguments = match nighthawk_line::parse::<NighthawkServiceArguments>() {
        Ok(arguments) => arguments,
        Err(exit) => return exit,
    };
    match conduct_as_nighthawk(&arguments) {
        Ok(exit) => exit,
        Err(error) => {
            paint.error(&error);
            Paint::print_message("Failure: Could not start the grpc service.");
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
        role: role(arguments.service, None, None, None).map_err(usage)?,
        access: Arc::new(access::plan(&arguments.access, arguments.service)?),
    };
    let access = Arc::clone(&plan.access);
    access::require_secret(
        plan.listen,
        access.token.is_some(),
        arguments.access.insecure,
        "a token (--token-file FILE)",
    )?;
    let service = bind_service(plan).map_err(refused)?;
    let message = format!("Nighthawk grpc service listening: {}", service.address());
    conduct(
        service,
        access,
        arguments.listener_address_file.as_deref(),
        &message,
    )
}

/// Serves until a signal comes; prints `message` once it listens.
fn conduct(
    service: BoundService,
    access: Arc<AccessPlan>,
    address_file: Option<&Path>,
    message: &str,
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
    let started = service.start(&mut scope, Loads(access));
    started.map_err(|error| failed(error.into()))?;
    Paint::print_message(message);
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
struct Loads(Arc<AccessPlan>);

impl Executor for Loads {
    fn execute(&mut self, options: &CommandLineOptions, task: &LoadTask) -> ExecutionResponse {
        remote::execute(options, task, &self.0)
    }
}

/// Token of a distributor for its services.
fn services_token(arguments: &ServiceArguments) -> Result<Option<AccessToken>, CommandError> {
    let path = arguments.services_token_file.as_deref();
    path.map(access::token_of_file).transpose()
}

/// TLS of a distributor to its services.
fn services_tls(arguments: &ServiceArguments) -> Option<ClientTlsPlan> {
    let file = |path: &PathBuf| PemSource::File(path.clone());
    let roots = arguments.services_ca.iter().cloned();
    let identity = (&arguments.services_certificate, &arguments.services_key);
    arguments.services_tls.then(|| ClientTlsPlan {
        verification: Verification::Roots {
            extra: roots.map(RootSource::from).collect(),
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
    token: Option<AccessToken>,
) -> anyhow::Result<Role> {
    if token.is_some() && role != ServiceRole::Distributor {
        anyhow::bail!("--services-token-file is for --service distributor");
    }
    if tls.is_some() && role != ServiceRole::Distributor {
        anyhow::bail!("--services-tls is for --service distributor");
    }
    if requests.is_some() && role != ServiceRole::DummyRequestSource {
        anyhow::bail!("--requests is for --service dummy-request-source");
    }
    Ok(match role {
        ServiceRole::TrafficGeneratorService => Role::TrafficGenerator,
        ServiceRole::Distributor => Role::Distributor { tls, token },
        ServiceRole::DummyRequestSource => Role::RequestSource(match requests {
            Some(path) => {
                let text = read_text(path);
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
