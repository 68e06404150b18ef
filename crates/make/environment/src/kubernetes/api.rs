//! Requests to a cluster's API, each over its own connection.

use std::fs;
use std::io;

use serde_json::Value;
use stillwell_http::{RequestTemplate, Scheme, Target};
use stillwell_metric::Outcome;
use stillwell_plan::tls::{ClientTlsPlan, Verification};
use stillwell_scope::explain;
use stillwell_units::{ByteSize, Nanos};
use stillwell_wire::DialError;
use stillwell_wire::client::docker::message_of;
use stillwell_wire::client::{ConnectError, Endpoint, Request, RequestError};
use stillwell_wire::tls::ClientTls;

use super::ClusterError;
use crate::kubeconfig::{ClusterAccess, ClusterToken};

/// An object is some kilobytes; managed fields make it several times as long.
const ANSWER_MAX: ByteSize = ByteSize::mib(4);

/// Timeout of a request, including the connection.
const REQUEST_TIMEOUT: Nanos = Nanos::from_secs(5);

/// A client of a cluster's API.
#[derive(Clone, Debug)]
pub(super) struct Api {
    target: Target,
    /// Prefix of the API's paths.
    prefix: String,
    endpoint: Endpoint,
    token: ClusterToken,
}

/// A response of the API.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct ApiResponse {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// A request without a response.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct RequestFailed {
    pub(super) outcome: Outcome,
    /// The cause, for a message.
    pub(super) why: String,
    /// The request may have arrived nevertheless.
    pub(super) may_have_arrived: bool,
}

impl Api {
    pub(super) fn new(access: &ClusterAccess) -> Result<Self, ClusterError> {
        let target = Target::from_url(&access.server)?;
        let tls = match target.scheme() {
            Scheme::Https => Some(tls_of(access, &target)?),
            _ => None,
        };
        let path = target.path_and_query();
        let path = path.split_once('?').map_or(path, |(path, _)| path);
        let api = Self {
            prefix: path.trim_end_matches('/').to_owned(),
            endpoint: Endpoint::of_target(&target, tls),
            target,
            token: access.token.clone(),
        };
        // An invalid token is reported once, not with every object.
        if let ClusterToken::Text(token) = &api.token {
            let (bearer, authority) = (format!("Bearer {token}"), api.target.authority());
            let headers = headers(&bearer, !token.is_empty());
            RequestTemplate::new("GET", &format!("{}/", api.prefix), &authority, &headers)
                .map_err(ClusterError::ClusterToken)?;
        }
        Ok(api)
    }

    /// Address of the API, for messages.
    pub(super) fn shown(&self) -> String {
        self.target.to_string()
    }

    /// Returns the client for one worker, with its own TLS sessions.
    pub(super) fn for_worker(self) -> Self {
        Self {
            endpoint: self.endpoint.for_worker(),
            ..self
        }
    }

    /// Sends one request, with `body` as JSON if it is not empty.
    pub(super) async fn send_request(
        &self,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> Result<ApiResponse, RequestFailed> {
        let token = self.token().await.map_err(|(outcome, why)| RequestFailed {
            outcome,
            why,
            may_have_arrived: false,
        })?;
        let bearer = format!("Bearer {token}");
        let path = format!("{}{path}", self.prefix);
        let request = Request {
            method,
            path: &path,
            authority: &self.target.authority(),
            headers: &headers(&bearer, !token.is_empty()),
            body,
        };
        let endpoint = &self.endpoint;
        let answered = endpoint.request_within(REQUEST_TIMEOUT, &request, ANSWER_MAX);
        match answered.await {
            Ok(response) => Ok(ApiResponse {
                status: response.status,
                body: response.body,
            }),
            Err(error) => Err(RequestFailed {
                outcome: error.outcome(),
                may_have_arrived: error.was_sent(),
                why: self.explained(error),
            }),
        }
    }

    /// Returns the cause as text; TLS failures name the address.
    fn explained(&self, error: RequestError) -> String {
        let address = self.target.dial_address();
        match error {
            RequestError::Connect(ConnectError::ServerName(error)) => explain(&DialError {
                address,
                source: io::Error::other(error),
            }),
            RequestError::Connect(ConnectError::Handshake(error)) => {
                explain(&DialError::handshake(&address, error))
            }
            error => explain(&error),
        }
    }

    /// Returns the current token; empty if there is none.
    async fn token(&self) -> Result<String, (Outcome, String)> {
        match &self.token {
            ClusterToken::None => Ok(String::new()),
            ClusterToken::Text(token) => Ok(token.clone()),
            ClusterToken::Login(login) => {
                let token = login.token().await;
                token.map_err(|error| (Outcome::SendFailed, explain(&error)))
            }
            ClusterToken::File(path) => match fs::read_to_string(path) {
                Ok(text) => Ok(text.trim().to_owned()),
                Err(error) => {
                    let why = format!("read {}: {error}", path.display());
                    Err((Outcome::SendFailed, why))
                }
            },
        }
    }
}

/// Returns the headers of a request; `bearer` is included if `has_token`.
fn headers(bearer: &str, has_token: bool) -> Vec<(&str, &str)> {
    let mut headers = vec![
        ("user-agent", "stillwell"),
        ("accept", "application/json"),
        ("content-type", "application/json"),
        ("connection", "close"),
    ];
    headers.extend(has_token.then_some(("authorization", bearer)));
    headers
}

fn tls_of(access: &ClusterAccess, target: &Target) -> Result<ClientTls, ClusterError> {
    let failed = |source| ClusterError::Tls {
        server: target.to_string(),
        source: Box::new(source),
    };
    let plan = ClientTlsPlan {
        verification: if access.is_unverified {
            Verification::None
        } else {
            Verification::Roots {
                extra: Vec::new(),
                public: access.authority.is_none(),
            }
        },
        identity: access.identity.clone(),
        server_name: access.server_name.clone(),
        ..ClientTlsPlan::default()
    };
    let tls = ClientTls::trusting(&plan, access.authority.as_slice()).map_err(failed)?;
    // Reported now, not with every connection.
    tls.server_name(target.host()).map_err(failed)?;
    Ok(tls)
}

impl ApiResponse {
    /// The API has done or accepted the request.
    pub(super) const fn is_done(&self) -> bool {
        matches!(self.status, 200..=202)
    }

    /// An object of this name exists and is being deleted.
    pub(super) fn is_being_deleted(&self) -> bool {
        self.status == 409 && self.message().contains("is being deleted")
    }

    /// The failure is temporary. A conflict of two updates is, as of the count of a quota; a name in use is not.
    pub(super) fn is_temporary(&self) -> bool {
        match self.status {
            408 | 429 | 500..=599 => true,
            409 => reason_of(&self.body).as_deref() == Some("Conflict"),
            _ => false,
        }
    }

    pub(super) const fn outcome(&self) -> Outcome {
        Outcome::of_status(self.status)
    }

    /// The message of the API in its `Status`; a proxy before it has none.
    pub(super) fn message(&self) -> String {
        message_of(&self.body)
    }

    /// A remedy for the user.
    pub(super) const fn advice(&self) -> &'static str {
        match self.status {
            400 | 422 => ": correct the manifest",
            401 => ": renew the credentials in the kubeconfig, or choose another context",
            403 => {
                ": obtain the permission for it (`kubectl auth can-i --list` shows the permissions)"
            }
            404 => {
                ": the namespace must exist before the run, and the server must be the API of a cluster"
            }
            409 => ": delete it, or give the manifest another name",
            _ => "",
        }
    }
}

/// The `reason` of an error response.
fn reason_of(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    Some(body.get("reason")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, message: &str) -> ApiResponse {
        let body = serde_json::json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": "Any", "code": status,
        });
        ApiResponse {
            status,
            body: body.to_string().into_bytes(),
        }
    }

    #[test]
    fn answers_are_what_the_api_means_by_them() {
        for (status, done, passing) in [
            (200, true, false),
            (201, true, false),
            (202, true, false),
            (204, false, false),
            (302, false, false),
            (401, false, false),
            (403, false, false),
            (409, false, false),
            (422, false, false),
            (429, false, true),
            (500, false, true),
            (504, false, true),
        ] {
            let response = response(status, "no");
            assert_eq!(
                (response.is_done(), response.is_temporary()),
                (done, passing),
                "{status}"
            );
        }
        let being_deleted = "object is being deleted: pods \"web\" already exists";
        assert!(response(409, being_deleted).is_being_deleted());
        assert!(!response(409, "pods \"web\" already exists").is_being_deleted());
        assert_eq!(response(403, "forbidden").message(), "forbidden");
        let page = ApiResponse {
            status: 502,
            body: b"<html>".to_vec(),
        };
        assert_eq!(page.message(), "without a message");
    }

    #[test]
    fn a_conflict_of_two_updates_is_temporary_and_a_name_in_use_is_not() {
        for (reason, is_temporary) in [
            ("Conflict", true),
            ("AlreadyExists", false),
            ("Any", false),
            ("", false),
        ] {
            let body = serde_json::json!({"kind": "Status", "reason": reason, "code": 409});
            let response = ApiResponse {
                status: 409,
                body: body.to_string().into_bytes(),
            };
            assert_eq!(response.is_temporary(), is_temporary, "{reason}");
        }
    }

    #[test]
    fn an_unusable_cluster_is_an_error_before_the_run() {
        let access = |server: &str, token: &str| ClusterAccess {
            server: server.to_owned(),
            authority: None,
            is_unverified: false,
            server_name: None,
            identity: None,
            token: ClusterToken::Text(token.to_owned()),
            exec: None,
            namespace: None,
        };
        let api = Api::new(&access("https://a.test/k8s/c-1/", "t")).unwrap();
        assert_eq!(api.prefix, "/k8s/c-1");
        for (access, message) in [
            (access("ftp://a", "t"), "read the URL of the cluster"),
            (
                access("http://a", "t\nu: v"),
                "write the cluster's token as a header",
            ),
        ] {
            assert_eq!(Api::new(&access).unwrap_err().to_string(), message);
        }
    }
}
