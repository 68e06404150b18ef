//! Calls by gRPC: from what was typed, and from what describes the method.

use std::path::Path;

use stillwell_plan::load::{BodyPlan, EndpointPlan, GrpcMessages, GrpcPlan};
use stillwell_plan::tls::ClientTlsPlan;
use stillwell_units::Target;

use super::endpoint::{FILE_BYTES_MAX, read, request_to, target, tls_host, typed_body, weighted};
use super::error::{LoadSpecError, While as _};
use super::host::ReadLoad;
use super::{
    GrpcSpec, Header, LoadSpec, ReflectionFailure, ReflectionRequest, RequestSpec, Streaming, tls,
};
use crate::files::Files;
use crate::{Descriptors, GrpcMethod, MethodName};

/// Headers that requests for reflection leave out.
const NOT_FORWARDED: [&str; 7] = [
    "host",
    ":authority",
    "content-type",
    "te",
    "grpc-timeout",
    "grpc-encoding",
    "grpc-accept-encoding",
];

const NO_REFLECTION: &str = "give --grpc-descriptors FILE, which `protoc --include_imports -o \
                             FILE` writes; or the message in binary by --body, with \
                             --grpc-streaming";

/// Endpoints and calls.
pub(super) fn endpoints(
    spec: &LoadSpec,
    method: &MethodName,
    context: &ReadLoad<'_>,
) -> Result<Vec<EndpointPlan>, LoadSpecError> {
    let mut targets = Vec::new();
    for typed in &spec.urls {
        let (weight, url) = weighted(typed)?;
        let target = target(url)?;
        if target.path_and_query() != "/" {
            return Err(LoadSpecError::text(format!(
                "`{url}` has a path, and the path of a call is its method: leave `{}` out",
                target.path_and_query()
            )));
        }
        targets.push((weight, target));
    }
    let described = match targets.first() {
        Some((_, first)) => described(spec, method, first, context)?,
        None => {
            return Err(LoadSpecError::text(
                "--grpc-method needs the URL of a server",
            ));
        }
    };
    let body = spec.request.body.as_deref();
    let call = call(&spec.grpc, body, described.as_ref(), context.files)?;
    let headers = &spec.request.headers;
    let endpoints = targets.into_iter().map(|(weight, target)| EndpointPlan {
        weight,
        ..endpoint(&target, method, headers, call.clone())
    });
    Ok(endpoints.collect())
}

/// The endpoint of a generator whose requests are calls. The server is not queried for a description.
pub(crate) fn endpoint_of_calls(
    url: &str,
    method: &MethodName,
    grpc: &GrpcSpec,
    request: &RequestSpec,
    files: &dyn Files,
) -> Result<EndpointPlan, LoadSpecError> {
    let described = match (&grpc.descriptors, grpc.streaming) {
        (_, Some(_)) => None,
        (Some(path), None) => Some(of_descriptors(path, method, files)?),
        (None, None) => {
            return Err(LoadSpecError::text(
                "nothing describes the method: give `descriptors`, a file that `protoc \
                 --include_imports -o FILE` writes; or `streaming`, with the message in binary as \
                 `body`",
            ));
        }
    };
    let call = call(grpc, request.body.as_deref(), described.as_ref(), files)?;
    Ok(endpoint(&target(url)?, method, &request.headers, call))
}

/// The only endpoint of calls of `method`.
fn endpoint(
    target: &Target,
    method: &MethodName,
    headers: &[Header],
    call: GrpcPlan,
) -> EndpointPlan {
    let body = BodyPlan::Grpc(call);
    let mut request = request_to(target, "POST".to_owned(), headers, &[], body);
    request.path = format!("/{method}");
    EndpointPlan {
        address: target.dial_address(),
        tls_host: tls_host(target),
        weight: 1,
        requests: vec![request],
    }
}

fn of_descriptors(
    path: &Path,
    method: &MethodName,
    files: &dyn Files,
) -> Result<GrpcMethod, LoadSpecError> {
    let name = || path.display().to_string();
    let bytes = files.read_bytes(path, FILE_BYTES_MAX);
    let bytes = bytes.reading(|| format!("read {}", path.display()))?;
    let descriptors = Descriptors::of_set(&bytes).reading(name)?;
    descriptors.method(method).reading(name)
}

/// Returns the description of the method, if needed: from a file, or from the server's reflection.
fn described(
    spec: &LoadSpec,
    method: &MethodName,
    target: &Target,
    context: &ReadLoad<'_>,
) -> Result<Option<GrpcMethod>, LoadSpecError> {
    let grpc = &spec.grpc;
    if grpc.streaming.is_some() {
        return Ok(None);
    }
    if let Some(path) = &grpc.descriptors {
        return of_descriptors(path, method, context.files).map(Some);
    }
    let address = target.dial_address();
    let what = || format!("request the description of `{method}` from {address}");
    if spec.tunnel.uri.is_some() {
        return Err(LoadSpecError::because(
            what(),
            "reflection does not go through a proxy: give --grpc-descriptors FILE",
        ));
    }
    let files = reflected(spec, method, target, context).map_err(|failure| {
        match failure.is_not_offered() {
            true => LoadSpecError::because(NO_REFLECTION, failure),
            false => LoadSpecError::cause(failure),
        }
    });
    let descriptors = Descriptors::of_files(&files.reading(what)?).reading(what)?;
    Ok(Some(descriptors.method(method).reading(what)?))
}

/// Requests descriptions with the TLS and metadata of the load.
fn reflected(
    spec: &LoadSpec,
    method: &MethodName,
    target: &Target,
    context: &ReadLoad<'_>,
) -> Result<Vec<Vec<u8>>, ReflectionFailure> {
    let tls = tls_host(target).map(|host| ClientTlsPlan {
        server_name: spec.tls.sni.clone().or(Some(host)),
        ..tls::plan(&spec.tls)
    });
    let headers = spec.request.headers.iter();
    let headers: Vec<(String, String)> = headers
        .map(|header| (header.0.to_ascii_lowercase(), header.1.clone()))
        .filter(|(name, _)| !NOT_FORWARDED.contains(&name.as_str()))
        // Some servers compress unless a client says that it does not want it.
        .chain([("grpc-accept-encoding".to_owned(), "identity".to_owned())])
        .collect();
    context.host.reflection.files(&ReflectionRequest {
        address: target.dial_address(),
        tls,
        headers,
        service: method.service.clone(),
        timeout: spec.connecting.timeout,
    })
}

/// Returns the call; its method has no description if the streaming sides are given.
fn call(
    grpc: &GrpcSpec,
    body: Option<&str>,
    described: Option<&GrpcMethod>,
    files: &dyn Files,
) -> Result<GrpcPlan, LoadSpecError> {
    let streaming = grpc.streaming.unwrap_or(Streaming::None);
    let (client_streams, server_streams) = described.map_or_else(
        || (streaming.of_client(), streaming.of_server()),
        |method| (method.client_streams(), method.server_streams()),
    );
    for (flag, is_given) in [
        ("--grpc-messages", grpc.messages.is_some()),
        ("--grpc-message-rate", grpc.message_every.is_some()),
    ] {
        if is_given && !client_streams {
            return Err(LoadSpecError::text(format!(
                "{flag} is for methods to which the client streams, and this one takes one message"
            )));
        }
    }
    let messages = messages(grpc, body, described, files)?;
    let count = match (&messages, client_streams) {
        (GrpcMessages::Given(all), true) => all.len() as u64,
        _ => 1,
    };
    Ok(GrpcPlan {
        messages,
        count: grpc.messages.unwrap_or(count),
        every: grpc.message_every,
        deadline: grpc.deadline,
        server_streams,
    })
}

fn messages(
    grpc: &GrpcSpec,
    typed: Option<&str>,
    described: Option<&GrpcMethod>,
    files: &dyn Files,
) -> Result<GrpcMessages, LoadSpecError> {
    if let (Some(typed), Some(method)) = (&grpc.json, described) {
        let text = text_of(typed, files)?;
        let messages = method.messages_of_json(&text);
        return Ok(GrpcMessages::Given(
            messages.reading(|| "read --grpc-json")?,
        ));
    }
    if let (Some(typed), Some(method)) = (&grpc.text, described) {
        let text = text_of(typed, files)?;
        let message = method.message_of_text(&text);
        let message = message.reading(|| "read --grpc-text")?;
        return Ok(GrpcMessages::Given(vec![message]));
    }
    let message = match typed_body(typed, files)? {
        BodyPlan::Payload(payload) => return Ok(GrpcMessages::Payload(payload)),
        BodyPlan::Bytes(bytes) => bytes,
        BodyPlan::None | BodyPlan::Grpc(_) => Vec::new(),
    };
    if let Some(method) = described {
        let checked = method.check(&message);
        checked.reading(|| "read --body, which is a message in binary")?;
    }
    Ok(GrpcMessages::Given(vec![message]))
}

/// The text itself, or that of the file behind `@`.
fn text_of(typed: &str, files: &dyn Files) -> Result<String, LoadSpecError> {
    match typed.strip_prefix('@') {
        Some(path) => read(files, Path::new(path)),
        None => Ok(typed.to_owned()),
    }
}
