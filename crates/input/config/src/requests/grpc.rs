//! Calls by gRPC: from what was typed, and from what describes the method.

use std::path::Path;

use serde::de::IgnoredAny;
use stillwell_plan::generator::RequestsPlan;
use stillwell_plan::load::{BodyPlan, EndpointPlan, GrpcMessages, GrpcPlan, TypedMessages};
use stillwell_plan::tls::ClientTlsPlan;
use stillwell_units::Target;

use super::endpoint::{FILE_BYTES_MAX, read, request_to, target, tls_host, typed_body, weighted};
use super::error::{LoadSpecError, While as _};
use super::host::ReadLoad;
use super::{
    GrpcSpec, Header, LoadSpec, Reflection, ReflectionRequest, RequestSpec, Streaming, tls,
};
use crate::files::{Disk, Files};
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

/// Names of what describes a call, as a user writes them.
struct CallNames {
    json: &'static str,
    text: &'static str,
    body: &'static str,
    messages: &'static str,
    message_rate: &'static str,
    /// Advice if the server offers no reflection.
    no_reflection: &'static str,
}

const FLAGS: CallNames = CallNames {
    json: "--grpc-json",
    text: "--grpc-text",
    body: "--body",
    messages: "--grpc-messages",
    message_rate: "--grpc-message-rate",
    no_reflection: "give --grpc-descriptors FILE, which `protoc --include_imports -o FILE` \
                    writes; or give the message in binary with --body and --grpc-streaming",
};

const KEYS: CallNames = CallNames {
    json: "`json`",
    text: "`text`",
    body: "`body`",
    messages: "`messages`",
    message_rate: "`message_rate`",
    no_reflection: "give `descriptors`, a file that `protoc --include_imports -o FILE` writes; \
                    or give the message in binary as `body`, with `streaming`",
};

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
                "`{url}` has a path, but the method of a gRPC call sets the path: leave `{}` out",
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
    let typed = TypedCall {
        grpc: &spec.grpc,
        body: spec.request.body.as_deref(),
        described: described.as_ref(),
        names: &FLAGS,
    };
    let call = typed.plan(context.files)?;
    let headers = &spec.request.headers;
    let endpoints = targets.into_iter().map(|(weight, target)| EndpointPlan {
        weight,
        ..endpoint(&target, method, headers, call.clone())
    });
    Ok(endpoints.collect())
}

/// The endpoint of a generator whose requests are calls. Without a description the server is
/// queried for one when the run starts: see [`described_calls`].
pub(crate) fn endpoint_of_calls(
    url: &str,
    method: &MethodName,
    grpc: &GrpcSpec,
    request: &RequestSpec,
    files: &dyn Files,
) -> Result<EndpointPlan, LoadSpecError> {
    let body = request.body.as_deref();
    let described = match (&grpc.descriptors, grpc.streaming) {
        (Some(path), None) => Some(of_descriptors(path, method, files)?),
        _ => None,
    };
    let call = match grpc.descriptors.is_none() && grpc.streaming.is_none() {
        true => undescribed_call(grpc, body, files)?,
        false => {
            let described = described.as_ref();
            let names = &KEYS;
            let typed = TypedCall {
                grpc,
                body,
                described,
                names,
            };
            typed.plan(files)?
        }
    };
    Ok(endpoint(&target(url)?, method, &request.headers, call))
}

/// Returns a call whose method the server describes when the run starts.
fn undescribed_call(
    grpc: &GrpcSpec,
    body: Option<&str>,
    files: &dyn Files,
) -> Result<GrpcPlan, LoadSpecError> {
    if body.is_some() {
        return Err(LoadSpecError::text(
            "`body` is a message in binary, whose method is not described: give `descriptors` or `streaming`, or \
             give the message as `json`",
        ));
    }
    let json = grpc.json.as_ref().map(|typed| text_of(typed, files));
    let json = json.transpose()?;
    if let Some(text) = &json {
        let values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
        let values: Result<Vec<_>, _> = values.collect();
        if values.reading(|| "read `json`")?.is_empty() {
            return Err(LoadSpecError::text(
                "`json` is empty: write at least one message, such as `{}`",
            ));
        }
    }
    Ok(GrpcPlan {
        messages: GrpcMessages::Typed(TypedMessages {
            json,
            count: grpc.messages,
        }),
        count: grpc.messages.unwrap_or(1),
        every: grpc.message_every,
        deadline: grpc.deadline,
        server_streams: false,
    })
}

/// Describes the calls of a generator: sends its messages as the server's reflection describes them.
/// Returns the same plan if there is nothing to describe.
///
/// # Errors
/// The server cannot be reached, offers no reflection or does not know the method; or the messages
/// do not match the method.
pub fn described_calls(
    plan: &RequestsPlan,
    reflection: &dyn Reflection,
) -> Result<RequestsPlan, LoadSpecError> {
    let endpoint = plan.endpoint();
    let (Some(call), Some(request)) = (plan.undescribed_call(), endpoint.requests.first()) else {
        return Ok(plan.clone());
    };
    let method = request.path.trim_start_matches('/').parse::<MethodName>();
    let method = method.map_err(LoadSpecError::cause)?;
    let tls = endpoint.tls_host.as_ref().map(|host| {
        let tls = plan.client().tls.clone();
        ClientTlsPlan {
            server_name: tls.server_name.or_else(|| Some(host.clone())),
            ..tls
        }
    });
    let question = ReflectionRequest {
        address: endpoint.address.clone(),
        tls,
        headers: forwarded(&request.headers),
        service: method.service.clone(),
        timeout: plan.client().connecting.timeout,
    };
    let described = reflected(&question, &method, reflection, &KEYS)?;
    let (json, messages) = match &call.messages {
        GrpcMessages::Typed(typed) => (typed.json.clone(), typed.count),
        GrpcMessages::Given(_) | GrpcMessages::Payload(_) => (None, None),
    };
    let grpc = GrpcSpec {
        json,
        messages,
        message_every: call.every,
        deadline: call.deadline,
        ..GrpcSpec::default()
    };
    let typed = TypedCall {
        grpc: &grpc,
        body: None,
        described: Some(&described),
        names: &KEYS,
    };
    Ok(plan.clone().described(&typed.plan(&Disk)?)?)
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
    if spec.tunnel.uri.is_some() {
        return Err(LoadSpecError::because(
            what(method, &address),
            "reflection does not go through a proxy: give --grpc-descriptors FILE",
        ));
    }
    let tls = tls_host(target).map(|host| ClientTlsPlan {
        server_name: spec.tls.sni.clone().or(Some(host)),
        ..tls::plan(&spec.tls)
    });
    let headers = spec.request.headers.iter();
    let headers: Vec<_> = headers
        .map(|header| (header.0.clone(), header.1.clone()))
        .collect();
    let question = ReflectionRequest {
        address,
        tls,
        headers: forwarded(&headers),
        service: method.service.clone(),
        timeout: spec.connecting.timeout,
    };
    reflected(&question, method, context.host.reflection, &FLAGS).map(Some)
}

/// Returns what a failed request for reflection was for.
fn what(method: &MethodName, address: &str) -> String {
    format!("request the description of `{method}` from {address}")
}

/// Returns the headers of a request for reflection, from those of calls.
fn forwarded(headers: &[(String, String)]) -> Vec<(String, String)> {
    let headers = headers.iter();
    headers
        .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
        .filter(|(name, _)| !NOT_FORWARDED.contains(&name.as_str()))
        // Some servers compress unless a client says that it does not want it.
        .chain([("grpc-accept-encoding".to_owned(), "identity".to_owned())])
        .collect()
}

/// Requests the description of `method` from the server's reflection.
fn reflected(
    question: &ReflectionRequest,
    method: &MethodName,
    reflection: &dyn Reflection,
    names: &CallNames,
) -> Result<GrpcMethod, LoadSpecError> {
    let what = || what(method, &question.address);
    let files = reflection
        .files(question)
        .map_err(|failure| match failure.is_not_offered() {
            true => LoadSpecError::because(names.no_reflection, failure),
            false => LoadSpecError::cause(failure),
        });
    let descriptors = Descriptors::of_files(&files.reading(what)?).reading(what)?;
    descriptors.method(method).reading(what)
}

/// A call as it was typed.
struct TypedCall<'a> {
    grpc: &'a GrpcSpec,
    body: Option<&'a str>,
    /// Description of the method; `None` if the sides that stream are given.
    described: Option<&'a GrpcMethod>,
    names: &'static CallNames,
}

impl TypedCall<'_> {
    fn plan(&self, files: &dyn Files) -> Result<GrpcPlan, LoadSpecError> {
        let (grpc, names) = (self.grpc, self.names);
        let streaming = grpc.streaming.unwrap_or(Streaming::None);
        let (client_streams, server_streams) = self.described.map_or_else(
            || (streaming.of_client(), streaming.of_server()),
            |method| (method.client_streams(), method.server_streams()),
        );
        for (name, is_given) in [
            (names.messages, grpc.messages.is_some()),
            (names.message_rate, grpc.message_every.is_some()),
        ] {
            if is_given && !client_streams {
                return Err(LoadSpecError::text(format!(
                    "{name} needs a method with client streaming, and this method takes one message"
                )));
            }
        }
        let messages = self.messages(files)?;
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

    fn messages(&self, files: &dyn Files) -> Result<GrpcMessages, LoadSpecError> {
        let (grpc, names) = (self.grpc, self.names);
        if let (Some(typed), Some(method)) = (&grpc.json, self.described) {
            let messages = method.messages_of_json(&text_of(typed, files)?);
            let messages = messages.reading(|| format!("read {}", names.json));
            return Ok(GrpcMessages::Given(messages?));
        }
        if let (Some(typed), Some(method)) = (&grpc.text, self.described) {
            let message = method.message_of_text(&text_of(typed, files)?);
            let message = message.reading(|| format!("read {}", names.text));
            return Ok(GrpcMessages::Given(vec![message?]));
        }
        let message = match typed_body(self.body, files)? {
            BodyPlan::Payload(payload) => return Ok(GrpcMessages::Payload(payload)),
            BodyPlan::Bytes(bytes) => bytes,
            BodyPlan::None | BodyPlan::Grpc(_) => Vec::new(),
        };
        if let Some(method) = self.described {
            let checked = method.check(&message);
            checked.reading(|| format!("read {}, which is a message in binary", names.body))?;
        }
        Ok(GrpcMessages::Given(vec![message]))
    }
}

/// The text itself, or that of the file behind `@`.
fn text_of(typed: &str, files: &dyn Files) -> Result<String, LoadSpecError> {
    match typed.strip_prefix('@') {
        Some(path) => read(files, Path::new(path)),
        None => Ok(typed.to_owned()),
    }
}
