//! One question to a cluster's API at a time, each over a connection of its own.

use std::fs;
use std::io;

use stillwell_http::{RequestTemplate, Scheme, Target};
use stillwell_metric::Outcome;
use stillwell_plan::{ClientTlsPlan, Verification};
use stillwell_scope::explain;
use stillwell_units::{ByteSize, Nanos};
use stillwell_wire::DialError;
use stillwell_wire::client::docker::message_of;
use stillwell_wire::client::{ConnectError, Endpoint, Request, RequestError};
use stillwell_wire::tls::ClientTls;

use super::ClusterError;
use crate::kubeconfig::{Access, Token};

/// An object is some kilobytes; managed fields make it several times as long.
const ANSWER_MAX: ByteSize = ByteSize::mib(4);

/// How long an answer may take, connecting included.
const PATIENCE: Nanos = Nanos::from_secs(5);

/// A cluster's API, ready to be asked.
#[derive(Clone, Debug)]
pub(super) struct Api {
    target: Target,
    /// What stands before the paths of the API.
    prefix: String,
    endpoint: Endpoint,
    token: Token,
}

/// What the API said.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct NoAnswer {
    pub(super) outcome: Outcome,
    /// In words.
    pub(super) why: String,
    /// Whether the question may have arrived all the same.
    pub(super) was_asked: bool,
}

impl Api {
    pub(super) fn new(access: &Access) -> Result<Self, ClusterError> {
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
        if let Token::Text(token) = &api.token {
            let (bearer, authority) = (format!("Bearer {token}"), api.target.authority());
            let headers = headers(&bearer, !token.is_empty());
            RequestTemplate::new("GET", &format!("{}/", api.prefix), &authority, &headers)
                .map_err(ClusterError::Token)?;
        }
        Ok(api)
    }

    /// Where it is, as messages call it.
    pub(super) fn shown(&self) -> String {
        self.target.to_string()
    }

    /// The same for one worker, with sessions of its own.
    pub(super) fn for_worker(self) -> Self {
        Self {
            endpoint: self.endpoint.for_worker(),
            ..self
        }
    }

    /// Sends one request, with `body` as JSON where there is any.
    pub(super) async fn ask(
        &self,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> Result<Answer, NoAnswer> {
        let token = self.token().map_err(|(outcome, why)| NoAnswer {
            outcome,
            why,
            was_asked: false,
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
        let answered = endpoint.request_within(PATIENCE, &request, ANSWER_MAX);
        match answered.await {
            Ok(response) => Ok(Answer {
                status: response.status,
                body: response.body,
            }),
            Err(error) => Err(NoAnswer {
                outcome: error.outcome(),
                was_asked: error.was_sent(),
                why: self.explained(error),
            }),
        }
    }

    /// The cause in words; failures of TLS name the address.
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

    /// What one is let in by now; nothing if by nothing.
    fn token(&self) -> Result<String, (Outcome, String)> {
        match &self.token {
            Token::None => Ok(String::new()),
            Token::Text(token) => Ok(token.clone()),
            Token::File(path) => match fs::read_to_string(path) {
                Ok(text) => Ok(text.trim().to_owned()),
                Err(error) => {
                    let why = format!("read {}: {error}", path.display());
                    Err((Outcome::SendFailed, why))
                }
            },
        }
    }
}

/// The headers of every request; `bearer` is one of them if `has_token`.
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

fn tls_of(access: &Access, target: &Target) -> Result<ClientTls, ClusterError> {
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
    // Told now, and not with every connection.
    tls.server_name(target.host()).map_err(failed)?;
    Ok(tls)
}

impl Answer {
    /// Whether it was done as asked, or will be.
    pub(super) const fn is_done(&self) -> bool {
        matches!(self.status, 200..=202)
    }

    /// Whether an object of this name is there, and on its way out.
    pub(super) fn is_being_deleted(&self) -> bool {
        self.status == 409 && self.message().contains("is being deleted")
    }

    /// Whether it would be another one later.
    pub(super) const fn is_passing(&self) -> bool {
        matches!(self.status, 408 | 429 | 500..=599)
    }

    pub(super) const fn outcome(&self) -> Outcome {
        Outcome::of_status(self.status)
    }

    /// The message of the API in its `Status`; a proxy before it has none.
    pub(super) fn message(&self) -> String {
        message_of(&self.body)
    }

    /// What a person can do about it.
    pub(super) const fn advice(&self) -> &'static str {
        match self.status {
            400 | 422 => ": mend the manifest",
            401 => ": renew what the kubeconfig lets one in by, or choose another context",
            403 => {
                ": ask for the right to do it (`kubectl auth can-i --list` shows those there are)"
            }
            404 => {
                ": the namespace must be there before the run, and the server be a cluster's API"
            }
            409 => ": delete it, or give the manifest another name",
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, message: &str) -> Answer {
        let body = serde_json::json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": "Any", "code": status,
        });
        Answer {
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
            let answer = answer(status, "no");
            assert_eq!(
                (answer.is_done(), answer.is_passing()),
                (done, passing),
                "{status}"
            );
        }
        let going = "object is being deleted: pods \"web\" already exists";
        assert!(answer(409, going).is_being_deleted());
        assert!(!answer(409, "pods \"web\" already exists").is_being_deleted());
        assert_eq!(answer(403, "forbidden").message(), "forbidden");
        let page = Answer {
            status: 502,
            body: b"<html>".to_vec(),
        };
        assert_eq!(page.message(), "and does not say why");
    }

    #[test]
    fn what_cannot_be_asked_is_told_before_the_run() {
        let access = |server: &str, token: &str| Access {
            server: server.to_owned(),
            authority: None,
            is_unverified: false,
            server_name: None,
            identity: None,
            token: Token::Text(token.to_owned()),
            namespace: None,
        };
        let api = Api::new(&access("https://a.test/k8s/c-1/", "t")).unwrap();
        assert_eq!(api.prefix, "/k8s/c-1");
        for (access, told) in [
            (access("ftp://a", "t"), "read the URL of the cluster"),
            (
                access("http://a", "t\nu: v"),
                "write the cluster's token as a header",
            ),
        ] {
            assert_eq!(Api::new(&access).unwrap_err().to_string(), told);
        }
    }
}
