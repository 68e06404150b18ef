//! Logins by a program that the kubeconfig names under `exec`, as those of EKS, GKE and AKS.
//!
//! The program prints an `ExecCredential` with a token, a certificate, or both. It runs before the
//! run, and again for requests after the credential has expired.

use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::Deserialize;
use stillwell_plan::tls::{PemSource, TlsIdentity};
use stillwell_scope::clock;
use stillwell_units::Nanos;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::kubeconfig::ExecLogin;
use crate::wait::wait_for;

/// Maximum length of a login.
const LIMIT: Duration = Duration::from_secs(60);

/// Maximum number of bytes of stdout and of stderr.
const OUTPUT_MAX: u64 = 1 << 20;

/// A credential is renewed this long before it expires: the request still arrives in time.
const RENEW_BEFORE: Nanos = Nanos::from_secs(10);

/// Characters of a message of the program that are shown.
const SHOWN_MAX: usize = 300;

/// A login with its current credential. Its `Debug` shows no secret.
pub(crate) struct ClusterLogin {
    exec: ExecLogin,
    /// Value of `KUBERNETES_EXEC_INFO`.
    information: String,
    current: Mutex<Credential>,
}

impl fmt::Debug for ClusterLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterLogin")
            .field("program", &self.exec.program)
            .finish_non_exhaustive()
    }
}

/// A credential that a program printed.
#[derive(Clone)]
struct Credential {
    token: String,
    identity: Option<TlsIdentity>,
    /// Since the Unix epoch; `None` if it does not expire.
    expires: Option<Nanos>,
}

/// An error of a login.
#[derive(Debug, thiserror::Error)]
pub enum ClusterLoginError {
    /// The program cannot be started.
    #[error("start `{program}`, which logs in to the cluster: {reason}{hint}")]
    Start {
        /// The program.
        program: String,
        /// The operating system's error.
        reason: String,
        /// The kubeconfig's advice, with its separator.
        hint: String,
    },
    /// The program failed.
    #[error("log in to the cluster: `{program}` ended with {status}{message}")]
    Failed {
        /// The program.
        program: String,
        /// Its status.
        status: ExitStatus,
        /// The end of what it printed to stderr, with its separator.
        message: String,
    },
    /// The output could not be read.
    #[error("log in to the cluster: read the output of `{program}`")]
    Read {
        /// The program.
        program: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// The authority of the cluster, which the program needs, cannot be read.
    #[error("read {} for the login to the cluster", path.display())]
    Authority {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The program did not end.
    #[error(
        "log in to the cluster: `{program}` did not end within 60 s; run it in a shell first, because it may wait for input"
    )]
    Late {
        /// The program.
        program: String,
    },
    /// The output is no credential.
    #[error("log in to the cluster: `{program}` printed no credential: {reason}")]
    Output {
        /// The program.
        program: String,
        /// The problem.
        reason: String,
    },
}

impl ClusterLogin {
    /// Logs in to the cluster of this `authority`, and returns the login with its certificate, if
    /// it has one. Waits for the program, on a thread without a runtime.
    ///
    /// # Errors
    /// [`ClusterLoginError`] with the program.
    pub(super) fn new(
        exec: ExecLogin,
        authority: Option<&PemSource>,
    ) -> Result<(Arc<Self>, Option<TlsIdentity>), ClusterLoginError> {
        let information = exec.information(authority)?;
        let current = wait_for(exec.credential(&information));
        let current = current.map_err(|error| exec.not_started(&error))??;
        let identity = current.identity.clone();
        let login = Self {
            exec,
            information,
            current: Mutex::new(current),
        };
        Ok((Arc::new(login), identity))
    }

    /// Returns the token, empty if there is none, and logs in again if it has expired.
    ///
    /// # Errors
    /// [`ClusterLoginError`] with the program.
    pub(super) async fn token(&self) -> Result<String, ClusterLoginError> {
        // Requests that come together log in once.
        let mut current = self.current.lock().await;
        let is_over = |expires: Nanos| expires <= clock::wall() + RENEW_BEFORE;
        if current.expires.is_some_and(is_over) {
            *current = self.exec.credential(&self.information).await?;
        }
        Ok(current.token.clone())
    }
}

impl ExecLogin {
    fn shown(&self) -> String {
        self.program.display().to_string()
    }

    fn not_started(&self, error: &io::Error) -> ClusterLoginError {
        ClusterLoginError::Start {
            program: self.shown(),
            reason: error.to_string(),
            hint: after_colon(self.hint.as_deref().unwrap_or_default()),
        }
    }

    /// Returns the value of `KUBERNETES_EXEC_INFO`, in the form of Kubernetes' own clients.
    fn information(&self, authority: Option<&PemSource>) -> Result<String, ClusterLoginError> {
        let mut spec = serde_json::json!({ "interactive": false });
        if let Some(cluster) = &self.cluster {
            spec["cluster"] = cluster.clone();
            let pem = match authority {
                None => None,
                Some(PemSource::Text(text)) => Some(text.clone().into_bytes()),
                Some(PemSource::File(path)) => {
                    Some(
                        fs::read(path).map_err(|source| ClusterLoginError::Authority {
                            path: path.clone(),
                            source,
                        })?,
                    )
                }
            };
            if let Some(pem) = pem {
                spec["cluster"]["certificate-authority-data"] = STANDARD.encode(pem).into();
            }
        }
        let question = serde_json::json!({
            "apiVersion": self.version, "kind": "ExecCredential", "spec": spec,
        });
        Ok(question.to_string())
    }

    async fn credential(&self, information: &str) -> Result<Credential, ClusterLoginError> {
        let started = Command::new(&self.program)
            .args(&self.arguments)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .env("KUBERNETES_EXEC_INFO", information)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let child = started.map_err(|error| self.not_started(&error))?;
        let late = |_| ClusterLoginError::Late {
            program: self.shown(),
        };
        let ended = timeout(LIMIT, output_of(child)).await.map_err(late)?;
        let (status, stdout, stderr) = ended.map_err(|source| ClusterLoginError::Read {
            program: self.shown(),
            source,
        })?;
        if !status.success() {
            return Err(ClusterLoginError::Failed {
                program: self.shown(),
                status,
                message: after_colon(&stderr),
            });
        }
        let credential = read(&stdout, &self.version);
        credential.map_err(|reason| ClusterLoginError::Output {
            program: self.shown(),
            reason,
        })
    }
}

/// Returns the end of `text` on one line, after a colon; nothing if there is no text. Colours and
/// other controls of terminals do not reach the terminal.
fn after_colon(text: &str) -> String {
    let visible = text.replace(char::is_control, " ");
    let visible = visible.trim();
    let skipped = visible.chars().count().saturating_sub(SHOWN_MAX);
    let end: String = visible.chars().skip(skipped).collect();
    match (end.is_empty(), skipped) {
        (true, _) => end,
        (false, 0) => format!(": {end}"),
        (false, _) => format!(": …{end}"),
    }
}

/// Waits for the end of `child`, and returns its status, stdout and stderr.
async fn output_of(mut child: Child) -> io::Result<(ExitStatus, String, String)> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (output, errors) = tokio::try_join!(text_of(stdout), text_of(stderr))?;
    Ok((child.wait().await?, output, errors))
}

/// Reads `pipe` to its end.
async fn text_of(pipe: Option<impl AsyncRead + Unpin>) -> io::Result<String> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        let mut pipe = pipe.take(OUTPUT_MAX);
        pipe.read_to_end(&mut bytes).await?;
        if pipe.limit() == 0 {
            return Err(io::Error::other("it is longer than 1 MiB"));
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecCredential {
    kind: String,
    api_version: String,
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    expiration_timestamp: Option<String>,
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

/// Returns the credential in `text`, or the problem. Nothing of the text is repeated.
fn read(text: &str, version: &str) -> Result<Credential, String> {
    let credential: ExecCredential = serde_json::from_str(text).map_err(|error| {
        let line = error.line();
        format!("line {line} of its output is not JSON of an ExecCredential")
    })?;
    if credential.kind != "ExecCredential" {
        return Err("its kind is not ExecCredential".to_owned());
    }
    if credential.api_version != version {
        return Err(format!(
            "its apiVersion is not that of the kubeconfig, {version}"
        ));
    }
    let status = credential.status.ok_or("it has no status")?;
    let present = |text: Option<String>| text.filter(|text| !text.is_empty());
    let certificates = present(status.client_certificate_data);
    let identity = match (certificates, present(status.client_key_data)) {
        (Some(certificates), Some(key)) => Some(TlsIdentity {
            certificates: PemSource::Text(certificates),
            key: PemSource::Text(key),
        }),
        (None, None) => None,
        _ => {
            return Err(
                "a certificate without its key, or a key without its certificate".to_owned(),
            );
        }
    };
    let token = status.token.unwrap_or_default();
    if token.is_empty() && identity.is_none() {
        return Err("neither a token nor a certificate".to_owned());
    }
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("its token has characters that no header may have".to_owned());
    }
    let expires = present(status.expiration_timestamp).map(|text| expiry(&text));
    Ok(Credential {
        token,
        identity,
        expires: expires.transpose()?,
    })
}

/// Returns the time in `text`. One before the epoch is the epoch; one that is too late is the
/// latest.
fn expiry(text: &str) -> Result<Nanos, String> {
    let at: Timestamp = text
        .parse()
        .map_err(|_| "its expirationTimestamp is not a time of RFC 3339")?;
    let nanos = at.as_nanosecond().max(0);
    Ok(Nanos::new(u64::try_from(nanos).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests;
