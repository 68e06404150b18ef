//! Calls by gRPC: from what was typed, and from what describes the method.

use std::sync::mpsc::sync_channel;

use anyhow::{Context, anyhow, bail};
use stillwell_config::{Descriptors, GrpcMethod, MethodName};
use stillwell_http::Target;
use stillwell_nighthawk::service::{Channel, ChannelError, ReflectionError, reflected_files};
use stillwell_plan::{BodyPlan, ClientTlsPlan, EndpointPlan, GrpcMessages, GrpcPlan};
use stillwell_scope::{Place, Scope, Token};
use stillwell_units::Nanos;
use tokio::time::timeout;

use super::endpoint::{body, request_to, target, tls_host, weighted};
use super::plan;
use crate::arguments::{LoadArguments, LoadGrpcArguments, Streaming};

const CLOSE_MAX: Nanos = Nanos::from_secs(1);

/// Headers that do not go along when reflection is asked.
const NOT_ASKED_WITH: [&str; 7] = [
    "host",
    ":authority",
    "content-type",
    "te",
    "grpc-timeout",
    "grpc-encoding",
    "grpc-accept-encoding",
];

/// Where calls go, and what they are.
pub(super) fn endpoints(
    arguments: &LoadArguments,
    method: &MethodName,
) -> anyhow::Result<Vec<EndpointPlan>> {
    let mut targets = Vec::new();
    for typed in &arguments.urls {
        let (weight, url) = weighted(typed)?;
        let target = target(url)?;
        if target.path_and_query() != "/" {
            bail!(
                "`{url}` has a path, and that of a call is its method: leave `{}` out",
                target.path_and_query()
            );
        }
        targets.push((weight, target));
    }
    let described = match targets.first() {
        Some((_, first)) => described(arguments, method, first)?,
        None => bail!("--grpc-method says what to call, and not where: give a URL as well"),
    };
    let call = call(arguments, described.as_ref())?;
    let endpoint = |(weight, target): (u32, Target)| {
        let body = BodyPlan::Grpc(call.clone());
        let headers = &arguments.request.header;
        let mut request = request_to(&target, "POST".to_owned(), headers, &[], body);
        request.path = format!("/{method}");
        EndpointPlan {
            address: target.dial_address(),
            tls_host: tls_host(&target),
            weight,
            requests: vec![request],
        }
    };
    Ok(targets.into_iter().map(endpoint).collect())
}

/// What the method looks like, where that matters: by a file, or by the server's
/// reflection.
fn described(
    arguments: &LoadArguments,
    method: &MethodName,
    target: &Target,
) -> anyhow::Result<Option<GrpcMethod>> {
    let grpc = &arguments.grpc;
    if grpc.grpc_streaming.is_some() {
        return Ok(None);
    }
    if let Some(path) = &grpc.grpc_descriptors {
        let name = || path.display().to_string();
        let bytes = std::fs::read(path).with_context(|| format!("read {}", path.display()))?;
        let descriptors = Descriptors::of_set(&bytes).with_context(name)?;
        return Ok(Some(descriptors.method(method).with_context(name)?));
    }
    let address = target.dial_address();
    let what = || format!("ask {address} what `{method}` looks like");
    if arguments.tunnel.tunnel_uri.is_some() {
        let why = anyhow!("reflection does not go through a proxy: give --grpc-descriptors FILE");
        return Err(why.context(what()));
    }
    let files = reflected(arguments, method, target).map_err(|error| match error {
        ReflectionError::NotOffered => anyhow::Error::new(error).context(
            "give --grpc-descriptors FILE, which `protoc --include_imports -o FILE` writes; or the \
             message in binary by --body, with --grpc-streaming",
        ),
        error => error.into(),
    });
    let descriptors = Descriptors::of_files(&files.with_context(what)?).with_context(what)?;
    Ok(Some(descriptors.method(method).with_context(what)?))
}

/// Asks the server, as the load will: with the same TLS and metadata.
fn reflected(
    arguments: &LoadArguments,
    method: &MethodName,
    target: &Target,
) -> Result<Vec<Vec<u8>>, ReflectionError> {
    let foreign = |problem: String| ReflectionError::Foreign { problem };
    let (sender, answers) = sync_channel(1);
    let address = target.dial_address();
    let tls = tls_host(target).map(|host| ClientTlsPlan {
        server_name: arguments.tls.sni.clone().or(Some(host)),
        ..plan::tls(&arguments.tls)
    });
    let headers = arguments.request.header.iter();
    let headers: Vec<(String, String)> = headers
        .map(|header| (header.0.to_ascii_lowercase(), header.1.clone()))
        .filter(|(name, _)| !NOT_ASKED_WITH.contains(&name.as_str()))
        // Some servers compress unless somebody says that he does not want it.
        .chain([("grpc-accept-encoding".to_owned(), "identity".to_owned())])
        .collect();
    let service = method.service.clone();
    let limit = arguments.connecting.timeout.as_duration();
    let mut scope = Scope::new(&Token::new());
    let ask = async move {
        let channel = Channel::new(&address, tls.as_ref())?;
        let headers = headers.iter();
        let headers: Vec<(&str, &str)> = headers.map(|(k, v)| (k.as_str(), v.as_str())).collect();
        reflected_files(&channel, &headers, &service).await
    };
    let started = scope.worker(Place::default(), "reflection", move |_| async move {
        let late = || ReflectionError::Foreign {
            problem: "it does not answer in time".to_owned(),
        };
        let answer = timeout(limit, ask).await.unwrap_or_else(|_| Err(late()));
        // Whoever asked waits for it.
        sender.send(answer).unwrap_or_default();
        Ok(())
    });
    let answer = match started {
        Ok(_) => answers.recv().map_err(|error| foreign(error.to_string())),
        Err(error) => Err(foreign(error.to_string())),
    };
    scope.close(CLOSE_MAX);
    answer?
}

/// Whether nobody is there who could describe anything.
pub(super) fn is_unreachable(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref(),
        Some(ReflectionError::Channel(
            ChannelError::Dial(_) | ChannelError::Handshake(_) | ChannelError::Broken { .. }
        ))
    )
}

/// What each call is; the method is not described where it was said who streams.
fn call(arguments: &LoadArguments, described: Option<&GrpcMethod>) -> anyhow::Result<GrpcPlan> {
    let grpc = &arguments.grpc;
    let streaming = grpc.grpc_streaming.unwrap_or(Streaming::None);
    let (client_streams, server_streams) = described.map_or(
        (
            matches!(streaming, Streaming::Client | Streaming::Both),
            matches!(streaming, Streaming::Server | Streaming::Both),
        ),
        |method| (method.client_streams(), method.server_streams()),
    );
    for (flag, is_given) in [
        ("--grpc-messages", grpc.grpc_messages.is_some()),
        ("--grpc-message-rate", grpc.grpc_message_rate.is_some()),
    ] {
        if is_given && !client_streams {
            bail!(
                "{flag} is for methods to which the client streams, and this one takes one message"
            );
        }
    }
    let messages = messages(grpc, arguments.request.body.as_deref(), described)?;
    let count = match (&messages, client_streams) {
        (GrpcMessages::Given(all), true) => all.len() as u64,
        _ => 1,
    };
    Ok(GrpcPlan {
        messages,
        count: grpc.grpc_messages.unwrap_or(count),
        every: grpc.grpc_message_rate.map(|rate| rate.0),
        deadline: grpc.grpc_deadline,
        server_streams,
    })
}

fn messages(
    grpc: &LoadGrpcArguments,
    typed: Option<&str>,
    described: Option<&GrpcMethod>,
) -> anyhow::Result<GrpcMessages> {
    if let (Some(typed), Some(method)) = (&grpc.grpc_json, described) {
        let text = text_of(typed)?;
        let messages = method.messages_of_json(&text);
        return Ok(GrpcMessages::Given(messages.context("read --grpc-json")?));
    }
    if let (Some(typed), Some(method)) = (&grpc.grpc_text, described) {
        let text = text_of(typed)?;
        let message = method.message_of_text(&text);
        let message = message.context("read --grpc-text")?;
        return Ok(GrpcMessages::Given(vec![message]));
    }
    let message = match typed.map_or(Ok(BodyPlan::None), body)? {
        BodyPlan::Payload(payload) => return Ok(GrpcMessages::Payload(payload)),
        BodyPlan::Bytes(bytes) => bytes,
        BodyPlan::None | BodyPlan::Grpc(_) => Vec::new(),
    };
    if let Some(method) = described {
        let checked = method.check(&message);
        checked.context("read --body, which is a message in binary")?;
    }
    Ok(GrpcMessages::Given(vec![message]))
}

/// The text itself, or that of the file behind `@`.
fn text_of(typed: &str) -> anyhow::Result<String> {
    match typed.strip_prefix('@') {
        Some(path) => std::fs::read_to_string(path).with_context(|| format!("read {path}")),
        None => Ok(typed.to_owned()),
    }
}
