//! `stillwell serve`.

mod request_log;

use std::fmt::Write;
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::json;
use stillwell_nighthawk::envoy;
use stillwell_plan::ServePlan;
use stillwell_plan::serve::{
    AnswerPlan, FaultExpression, FaultsPlan, FilterSet, RateLimitPlan, ResponseHeader,
    ResponseOptions, ServeHeaders, ServeListenerPlan,
};
use stillwell_plan::tls::{Alpn, PemSource, ServerIdentity, ServerTlsPlan, TlsIdentity, TlsSuites};
use stillwell_scope::{Place, Scope, Token};
use stillwell_serve::{RequestLog, ServeCounts, ServeError, bind_server};
use stillwell_units::{ByteSize, EventRate, Nanos, floor_to_u64};

use crate::arguments::{
    NighthawkTestServerArguments, ServeArguments, ServeCertificate, ServeFormat, ServeVersions,
};
use crate::command::{nighthawk_line, output, select};
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;
use crate::signals;

/// So often it is looked whether a worker has failed.
const LOOK_PERIOD: Duration = Duration::from_millis(100);

/// The length of bodies where nothing else is said.
const RESPONSE_SIZE: ByteSize = ByteSize::new(10);

/// Deadline of workers at the end.
const CLOSE_MAX: Nanos = Nanos::from_secs(3);

pub(crate) fn run(arguments: &ServeArguments, paint: &Paint) -> Result<Exit, CommandError> {
    let outs = Outs {
        certificate: arguments.tls_certificate_out.as_deref(),
        admin_address: None,
        log_requests: arguments.log_requests,
    };
    let plan = match &arguments.config {
        Some(path) => {
            let mut plan = plan_of_file(path, arguments.workers, paint)?;
            plan.seed = arguments.seed;
            for listener in &mut plan.listeners {
                listener.connections_max = arguments.connections_max;
            }
            plan
        }
        None => plan(arguments)?,
    };
    conduct(&plan, arguments.format, &outs)
}

/// Runs `nighthawk_test_server`.
pub(crate) fn run_as_nighthawk(paint: &Paint) -> Exit {
    let arguments = match nighthawk_line::parse::<NighthawkTestServerArguments>() {
        Ok(arguments) => arguments,
        Err(exit) => return exit,
    };
    conduct_as_nighthawk(&arguments, paint).unwrap_or_else(|error| {
        paint.error(&error);
        Exit::Failed
    })
}

fn conduct_as_nighthawk(
    arguments: &NighthawkTestServerArguments,
    paint: &Paint,
) -> Result<Exit, CommandError> {
    for name in &arguments.proxy.names {
        Paint::print_message(&format!("note: --{name} has no effect"));
    }
    let plan = plan_of_file(&arguments.config_path, arguments.concurrency, paint)?;
    let outs = Outs {
        certificate: None,
        admin_address: arguments.admin_address_path.as_deref(),
        log_requests: false,
    };
    conduct(&plan, ServeFormat::Text, &outs)
}

/// The server that an Envoy configuration describes; remarkable settings are reported.
fn plan_of_file(
    path: &Path,
    workers: NonZeroU16,
    paint: &Paint,
) -> Result<ServePlan, CommandError> {
    let loaded = envoy::load_test_server(path, workers)
        .map_err(|diagnostics| select::refused(&diagnostics, paint))?;
    select::warn(&loaded.warnings, paint);
    Ok(loaded.plan)
}

/// Output beside the counts.
#[derive(Clone, Copy, Debug, Default)]
struct Outs<'a> {
    /// File for the certificate that was made.
    certificate: Option<&'a Path>,
    /// File for the address of the admin interface.
    admin_address: Option<&'a Path>,
    /// True if each request is printed.
    log_requests: bool,
}

/// Serves as `plan` says until a signal comes or the end is requested, and prints the
/// counts.
fn conduct(plan: &ServePlan, format: ServeFormat, outs: &Outs<'_>) -> Result<Exit, CommandError> {
    let failed = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    let (raise, raised) = sync_channel(1);
    let signals = signals::listen(move |_| {
        // Where one waits already, this one says the same.
        raise.try_send(()).ok();
    });
    let signals = signals.map_err(|error| failed(error.into()))?;
    let server = bind_server(plan).map_err(|error| CommandError::new(exit_of(&error), error))?;
    let counter = server.counter();
    let admin = server.admin_address();
    // Nighthawk's file is the address alone, without a newline.
    let address_text = admin.map(|address| address.to_string());
    write_out(outs.certificate, server.certificate_pem()).map_err(failed)?;
    write_out(outs.admin_address, address_text).map_err(failed)?;
    let urls = urls(plan, server.addresses());
    let log = outs.log_requests.then(|| server.log_requests());
    let mut scope = Scope::new(&Token::new());
    let started = server.start(&mut scope, &Place::default());
    started.map_err(|error| failed(error.into()))?;
    announce(&urls, admin, format)?;
    let print_log = |log: &RequestLog| request_log::print(log, format);
    let mut ended = Vec::new();
    while ended.is_empty() && raised.recv_timeout(LOOK_PERIOD) == Err(RecvTimeoutError::Timeout) {
        ended = scope.ends();
        log.iter().for_each(print_log);
    }
    ended.extend(scope.close(CLOSE_MAX));
    if let Some(log) = &log {
        print_log(log);
        request_log::print_dropped(log);
    }
    signals.close(Nanos::SECOND);
    let counts = counter.total();
    output::print(&match format {
        ServeFormat::Text => text(&counts),
        ServeFormat::Json => format!("{}\n", as_json(&counts)),
    })?;
    for end in ended {
        if let Err(failure) = end.result {
            let error = anyhow::Error::new(failure).context(format!("worker {}", end.name));
            return Err(CommandError::new(Exit::Invalid, error));
        }
    }
    Ok(Exit::Held)
}

/// Prints the addresses that the server listens on.
fn announce(
    urls: &[String],
    admin: Option<SocketAddr>,
    format: ServeFormat,
) -> Result<(), CommandError> {
    match format {
        ServeFormat::Text => {
            let urls = urls.join(", ");
            Paint::print_message(&format!("stillwell serve: listening on {urls}"));
            if let Some(address) = admin {
                Paint::print_message(&format!("stillwell serve: admin on {address}"));
            }
            Ok(())
        }
        ServeFormat::Json => {
            let mut line = json!({ "listening": urls });
            if let Some(address) = admin {
                line["admin"] = json!(address.to_string());
            }
            output::print(&format!("{line}\n"))
        }
    }
}

fn write_out(path: Option<&Path>, text: Option<String>) -> anyhow::Result<()> {
    let (Some(path), Some(text)) = (path, text) else {
        return Ok(());
    };
    std::fs::write(path, text).with_context(|| format!("write {}", path.display()))
}

fn plan(arguments: &ServeArguments) -> Result<ServePlan, CommandError> {
    check(arguments).map_err(|error| CommandError::new(Exit::Usage, error))?;
    let status = (arguments.status != 200).then(|| (":status", arguments.status.to_string()));
    let status = status.map(|(name, value)| (name.to_owned(), value));
    let headers = status
        .into_iter()
        .chain(arguments.response_header.iter().cloned());
    let options = ResponseOptions {
        headers: headers
            .map(|(name, value)| ResponseHeader {
                name,
                value,
                append: false,
            })
            .collect(),
        body_bytes: u32::try_from(arguments.response_size.unwrap_or(RESPONSE_SIZE).bytes()).ok(),
        echo_request_headers: arguments.echo.then_some(true),
        delay: None,
        delta_header: arguments.delta_header.clone(),
    };
    let error = match arguments.error_rate {
        Some(share) => Some(failing(share)?),
        None => arguments.error.clone(),
    };
    let rate_limit = match arguments.rate_limit {
        Some(rate) => Some(RateLimitPlan {
            rate,
            burst: match arguments.rate_limit_burst {
                Some(burst) => burst,
                None => burst(rate).map_err(|error| CommandError::new(Exit::Usage, error))?,
            },
            answer: arguments.rate_limit_answer,
        }),
        None => None,
    };
    let faults = FaultsPlan {
        delay: arguments.delay.clone(),
        error,
        rate_limit,
    };
    let listener = |address| ServeListenerPlan {
        address,
        tls: tls(arguments),
        protocols: arguments.protocol.into(),
        answer: AnswerPlan {
            filters: FilterSet::ALL,
            options: options.clone(),
            headers: ServeHeaders {
                server: None,
                ..envoy::headers()
            },
        },
        faults: faults.clone(),
        connections_max: arguments.connections_max,
        chains: Vec::new(),
    };
    Ok(ServePlan {
        seed: arguments.seed,
        workers: arguments.workers,
        listeners: arguments.address.iter().copied().map(listener).collect(),
        admin: arguments.admin.map(envoy::admin),
    })
}

/// Returns the number of requests of one second, at least 1.
fn burst(rate: EventRate) -> anyhow::Result<u32> {
    let requests = floor_to_u64(rate.events_per_second().ceil());
    let burst = u32::try_from(requests);
    let burst = burst.with_context(|| format!("--rate-limit {rate} needs --rate-limit-burst"))?;
    Ok(burst.max(1))
}

/// An answer that has no body has none of any length.
fn check(arguments: &ServeArguments) -> anyhow::Result<()> {
    let has_tls = arguments.tls.is_some() || arguments.certificate.is_some();
    if arguments.protocol == ServeVersions::Http3 && !has_tls {
        bail!("--protocol http3 needs TLS: add --tls self-signed, or --certificate and --key");
    }
    let status = arguments.status;
    if !matches!(status, 204 | 304) {
        return Ok(());
    }
    for (flag, is_given) in [
        ("--response-size", arguments.response_size.is_some()),
        ("--echo", arguments.echo),
    ] {
        if is_given {
            bail!("{flag} has no effect with --status {status}, whose responses have no body");
        }
    }
    Ok(())
}

fn urls(plan: &ServePlan, addresses: &[SocketAddr]) -> Vec<String> {
    let both = plan.listeners.iter().zip(addresses);
    let url = |(listener, at): (&ServeListenerPlan, &SocketAddr)| {
        let scheme = if listener.tls.is_some() {
            "https"
        } else {
            "http"
        };
        format!("{scheme}://{at}/")
    };
    both.map(url).collect()
}

fn tls(arguments: &ServeArguments) -> Option<ServerTlsPlan> {
    let identity = match (&arguments.tls, &arguments.certificate, &arguments.key) {
        (Some(ServeCertificate::SelfSigned), ..) => ServerIdentity::SelfSigned {
            names: if arguments.tls_name.is_empty() {
                let mut names: Vec<String> = arguments
                    .address
                    .iter()
                    .map(|at| at.ip().to_string())
                    .collect();
                names.push("localhost".to_owned());
                names
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
        alpn: match arguments.protocol {
            ServeVersions::Auto => vec![Alpn::Http2, Alpn::Http1],
            ServeVersions::Http1 => vec![Alpn::Http1],
            ServeVersions::Http2 => vec![Alpn::Http2],
            ServeVersions::Http3 => vec![Alpn::Http3],
        },
        client_roots: arguments.client_ca.clone(),
        resumption: !arguments.no_session_resumption,
        suites: TlsSuites {
            names: arguments.cipher_suite.clone(),
            ..TlsSuites::default()
        },
    })
}

/// An address may be free another time; the rest was typed wrong.
const fn exit_of(error: &ServeError) -> Exit {
    match error {
        ServeError::Answer { .. } | ServeError::Tls { .. } => Exit::Usage,
        ServeError::Listen { .. } | ServeError::Share { .. } => Exit::CouldNotRun,
    }
}

fn failing(share: f64) -> Result<FaultExpression, CommandError> {
    let expression = format!("rand() < {share}").parse();
    expression.map_err(|error: stillwell_plan::serve::ExpressionError| {
        CommandError::new(Exit::Usage, error)
    })
}

fn as_json(counts: &ServeCounts) -> serde_json::Value {
    json!({
        "connections": counts.connections,
        "requests": counts.requests,
        "statuses": counts.statuses,
        "faults": counts.faults,
        "abandoned": counts.abandoned,
        "malformed": counts.malformed,
        "body_bytes": counts.body_bytes,
        "sent_bytes": counts.sent_bytes,
        "handshakes": counts.handshakes,
        "resumed": counts.resumed,
        "handshakes_failed": counts.handshakes_failed,
    })
}

fn text(counts: &ServeCounts) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: u64| {
        // Writing to a text cannot fail.
        writeln!(text, "{name:<16} {value:>12}").unwrap_or_default();
    };
    line("connections", counts.connections);
    line("requests", counts.requests);
    for (status, count) in &counts.statuses {
        line(&format!("  {status}"), *count);
    }
    for (fault, count) in &counts.faults {
        line(&format!("  {fault}"), *count);
    }
    if counts.abandoned > 0 {
        line("  abandoned", counts.abandoned);
    }
    line("malformed", counts.malformed);
    line("body bytes", counts.body_bytes);
    line("sent bytes", counts.sent_bytes);
    if counts.handshakes + counts.handshakes_failed > 0 {
        line("handshakes", counts.handshakes);
        line("  resumed", counts.resumed);
        line("  failed", counts.handshakes_failed);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_burst_is_the_requests_of_one_second() {
        for (rate, expected) in [(0.001, 1), (1.0, 1), (2.5, 3), (2000.0, 2000)] {
            let rate = EventRate::try_new(rate).unwrap();
            assert_eq!(burst(rate).unwrap(), expected);
        }
        assert!(burst(EventRate::try_new(5e9).unwrap()).is_err());
    }
}
