//! The client of reflection: descriptors from another server.

use std::collections::BTreeSet;

use crate::wire::{Schema, UnknownFields};
use serde_json::{Value, json};
use stillwell_http::protobuf::fields;
use stillwell_units::Nanos;

use crate::service::grpc::{CallFailed, Channel, ChannelError, ClientCall, StatusCode};

/// Files that one service may need.
const FILES_MAX: usize = 2000;

/// The versions, the newer one first.
const VERSIONS: [&str; 2] = ["v1", "v1alpha"];

/// A server that returns no descriptors.
#[derive(Debug, thiserror::Error)]
pub enum ReflectionError {
    /// It has no reflection.
    #[error("the server offers no reflection")]
    NotOffered,
    /// The server has reflection, and does not know the symbol.
    #[error("the server's reflection has no `{symbol}`{}: {message}", offered(.services))]
    Unknown {
        /// Requested symbol.
        symbol: String,
        /// The server's message.
        message: String,
        /// The services that it names.
        services: Vec<String>,
    },
    /// The call failed.
    #[error("request the server's reflection")]
    Channel(#[from] ChannelError),
    /// It does not answer.
    #[error("the server's reflection did not respond within {after}")]
    TimedOut {
        /// Time limit.
        after: Nanos,
    },
    /// It answers something else.
    #[error("the server's reflection sent an invalid response: {problem}")]
    Foreign {
        /// The problem.
        problem: String,
    },
}

fn offered(services: &[String]) -> String {
    match services {
        [] => String::new(),
        all => format!("; it offers {}", all.join(", ")),
    }
}

/// The file that defines `service`, by its full name, and all that it imports, each
/// as a `google.protobuf.FileDescriptorProto`. `headers` go with the call, their names
/// in lower case.
///
/// # Errors
/// [`ReflectionError`] without the descriptors.
pub async fn reflected_files(
    channel: &Channel,
    headers: &[(&str, &str)],
    service: &str,
) -> Result<Vec<Vec<u8>>, ReflectionError> {
    for version in VERSIONS {
        match ReflectionQueries::new(channel, headers, version)
            .files(service)
            .await
        {
            Err(ReflectionError::Channel(ChannelError::CallFailed(CallFailed {
                code: StatusCode::Unimplemented,
                ..
            }))) => {}
            other => return other,
        }
    }
    Err(ReflectionError::NotOffered)
}

/// One conversation.
struct ReflectionQueries<'a> {
    channel: &'a Channel,
    headers: &'a [(&'a str, &'a str)],
    version: &'static str,
    call: Option<ClientCall>,
}

impl<'a> ReflectionQueries<'a> {
    const fn new(
        channel: &'a Channel,
        headers: &'a [(&'a str, &'a str)],
        version: &'static str,
    ) -> Self {
        Self {
            channel,
            headers,
            version,
            call: None,
        }
    }

    async fn files(&mut self, service: &str) -> Result<Vec<Vec<u8>>, ReflectionError> {
        let first = self
            .query(&json!({ "file_containing_symbol": service }))
            .await?;
        if let Some(message) = refusal(&first) {
            let services = self.services().await.unwrap_or_default();
            return Err(ReflectionError::Unknown {
                symbol: service.to_owned(),
                message,
                services,
            });
        }
        let (mut all, mut known, mut wanted) = (Vec::new(), BTreeSet::new(), Vec::new());
        let mut answer = first;
        loop {
            for file in files_in(&answer)? {
                let (name, imports) = header_of(&file)?;
                wanted.extend(imports);
                if known.insert(name) {
                    all.push(file);
                }
                if all.len() > FILES_MAX {
                    let problem = format!("a service of more than {FILES_MAX} files");
                    return Err(ReflectionError::Foreign { problem });
                }
            }
            let next = loop {
                match wanted.pop() {
                    None => return Ok(all),
                    Some(name) if known.contains(&name) => {}
                    Some(name) => break name,
                }
            };
            answer = self.query(&json!({ "file_by_filename": next })).await?;
            if let Some(message) = refusal(&answer) {
                return Err(ReflectionError::Unknown {
                    symbol: next,
                    message,
                    services: Vec::new(),
                });
            }
            let has_it = |file: &Vec<u8>| header_of(file).is_ok_and(|(name, _)| name == next);
            if !files_in(&answer)?.iter().any(has_it) {
                let problem =
                    format!("the response to a request for the file {next} has another file");
                return Err(ReflectionError::Foreign { problem });
            }
        }
    }

    async fn services(&mut self) -> Result<Vec<String>, ReflectionError> {
        let answer = self.query(&json!({ "list_services": "" })).await?;
        let named = answer["list_services_response"]["service"].as_array();
        let names = named.into_iter().flatten();
        let names = names.filter_map(|service| service["name"].as_str().map(str::to_owned));
        Ok(names.collect())
    }

    async fn query(&mut self, request: &Value) -> Result<Value, ReflectionError> {
        let foreign = |problem: String| ReflectionError::Foreign { problem };
        let name = |message: &str| format!("grpc.reflection.{}.{message}", self.version);
        let (request_name, answered) = (
            name("ServerReflectionRequest"),
            name("ServerReflectionResponse"),
        );
        let schema = Schema::shared();
        let request = schema.encode(&request_name, request);
        let request = request.map_err(|error| foreign(error.to_string()))?;
        if self.call.is_none() {
            let path = format!("/{}", name("ServerReflection/ServerReflectionInfo"));
            self.call = Some(self.channel.call(&path, self.headers).await?);
        }
        let Some(call) = &mut self.call else {
            return Err(foreign("no call".to_owned()));
        };
        call.send(&request);
        let answer = call.next().await?;
        let answer = answer.ok_or_else(|| foreign("it ends without a response".to_owned()))?;
        let answer = schema.decode(&answered, &answer, UnknownFields::Skip);
        answer.map_err(|error| foreign(error.to_string()))
    }
}

/// Returns the error in a response, if it has one.
fn refusal(answer: &Value) -> Option<String> {
    let error = answer.get("error_response")?;
    let message = error["error_message"].as_str().unwrap_or_default();
    Some(message.to_owned())
}

fn files_in(answer: &Value) -> Result<Vec<Vec<u8>>, ReflectionError> {
    let foreign = || ReflectionError::Foreign {
        problem: "the response has no files".to_owned(),
    };
    let files = answer["file_descriptor_response"]["file_descriptor_proto"].as_array();
    let files = files.ok_or_else(foreign)?.iter();
    let bytes = |file: &Value| Schema::text_bytes(file.as_str()?);
    files.map(|file| bytes(file).ok_or_else(foreign)).collect()
}

/// The name of a file, and what it imports.
fn header_of(file: &[u8]) -> Result<(String, Vec<String>), ReflectionError> {
    let (mut name, mut imports) = (String::new(), Vec::new());
    let read = fields(file, |number, value| {
        let text = || Some(String::from_utf8_lossy(value.bytes()?).into_owned());
        match number {
            1 => name = text()?,
            3 => imports.push(text()?),
            _ => {}
        }
        Some(())
    });
    let foreign = || ReflectionError::Foreign {
        problem: "a file in the response is not a file descriptor".to_owned(),
    };
    read.map(|()| (name, imports)).ok_or_else(foreign)
}
