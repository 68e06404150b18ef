//! Object stores that are compatible with S3, for tables of results.

use std::error::Error;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use stillwell_http::{Scheme, StoreKeys, Target, TargetError, Unsigned, encoded_path};
use stillwell_plan::tls::ClientTlsPlan;
use stillwell_scope::{Place, Scope, Token, clock};
use stillwell_units::{ByteSize, Nanos};
use stillwell_wire::client::{Endpoint, Request, Response};
use stillwell_wire::tls::ClientTls;
use tokio::time::timeout;

use crate::timestamp;

/// Deadline of an upload.
const PUT_MAX: Duration = Duration::from_secs(60);
/// Longest response that is read.
const RESPONSE_MAX: ByteSize = ByteSize::mib(1);

/// Any error, for causes that are only shown.
type Cause = Box<dyn Error + Send + Sync>;

/// A folder in a bucket, and the keys for it.
#[derive(Clone, Debug)]
pub struct ObjectStore {
    endpoint: Target,
    keys: StoreKeys,
    bucket: String,
    /// Without slashes at its ends; may be empty.
    prefix: String,
}

/// Reasons why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ObjectStoreError {
    /// The address has no valid bucket.
    #[error("`s3://{0}` has no valid bucket: write `s3://BUCKET/PREFIX`")]
    Bucket(String),
    /// An environment variable is missing.
    #[error("the upload of results needs {0}, which is not set")]
    Variable(&'static str),
    /// The endpoint is not a URL.
    #[error("`{endpoint}` is not a URL of an object store: write http://HOST:PORT")]
    Endpoint {
        /// The endpoint.
        endpoint: String,
        /// The cause.
        source: TargetError,
    },
    /// The upload had no response.
    #[error("upload {place} to {endpoint}")]
    Upload {
        /// The address of the object.
        place: String,
        /// The endpoint.
        endpoint: Target,
        /// The cause.
        source: Cause,
    },
    /// The store refused the upload.
    #[error("upload {place} to {endpoint}: answered with {status}: {body}")]
    Refused {
        /// The address of the object.
        place: String,
        /// The endpoint.
        endpoint: Target,
        /// The status of the response.
        status: u16,
        /// The start of its body.
        body: String,
    },
}

impl ObjectStore {
    /// Returns the store at `results`, or `None` if it is not `s3://BUCKET/PREFIX`.
    /// Endpoint and keys come from the environment.
    ///
    /// # Errors
    /// The address is not valid, or a variable is missing.
    pub fn from_env(results: &Path) -> Result<Option<Self>, ObjectStoreError> {
        let Some(place) = results.to_str().and_then(|text| text.strip_prefix("s3://")) else {
            return Ok(None);
        };
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        let is_valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-".contains(c);
        if bucket.is_empty() || !bucket.chars().all(is_valid) {
            return Err(ObjectStoreError::Bucket(place.to_owned()));
        }
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let required = |name: &'static str| variable(name).ok_or(ObjectStoreError::Variable(name));
        let region = variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION"));
        let region = region.unwrap_or_else(|| "us-east-1".to_owned());
        let endpoint = variable("AWS_ENDPOINT_URL_S3").or_else(|| variable("AWS_ENDPOINT_URL"));
        let endpoint = endpoint.unwrap_or_else(|| format!("https://s3.{region}.amazonaws.com"));
        let keys = || {
            Ok(StoreKeys {
                access: required("AWS_ACCESS_KEY_ID")?,
                secret: required("AWS_SECRET_ACCESS_KEY")?,
                session: variable("AWS_SESSION_TOKEN"),
                region,
            })
        };
        Ok(Some(Self {
            endpoint: endpoint
                .parse()
                .map_err(|source| ObjectStoreError::Endpoint { endpoint, source })?,
            keys: keys()?,
            bucket: bucket.to_owned(),
            prefix: prefix.trim_matches('/').to_owned(),
        }))
    }

    /// Uploads `table` under the name of the results folder `folder`, and returns its
    /// address.
    ///
    /// # Errors
    /// The store did not respond, or refused it.
    pub fn put(&self, folder: &Path, table: Vec<u8>) -> Result<String, ObjectStoreError> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let slash = if self.prefix.is_empty() { "" } else { "/" };
        let key = format!("{}/{}{slash}{name}.parquet", self.bucket, self.prefix);
        let place = format!("s3://{key}");
        let response = self.upload(encoded_path(&format!("/{key}")), table);
        let response = response.map_err(|source| ObjectStoreError::Upload {
            place: place.clone(),
            endpoint: self.endpoint.clone(),
            source,
        })?;
        match response.status {
            200..300 => Ok(place),
            status => Err(ObjectStoreError::Refused {
                place,
                endpoint: self.endpoint.clone(),
                status,
                body: String::from_utf8_lossy(&response.body)
                    .chars()
                    .take(400)
                    .collect(),
            }),
        }
    }

    /// Sends the request on a thread of its own, which has a runtime.
    fn upload(&self, path: String, table: Vec<u8>) -> Result<Response, Cause> {
        let store = self.clone();
        let mut scope = Scope::new(&Token::new());
        let (sender, receiver) = sync_channel(1);
        scope.worker(Place::default(), "store", move |_| async move {
            let response = timeout(PUT_MAX, store.send(&path, &table)).await;
            let late = |_| Err(format!("no response within {PUT_MAX:?}").into());
            sender.send(response.unwrap_or_else(late))?;
            Ok(())
        })?;
        let response = receiver.recv()?;
        scope.close(Nanos::from_secs(1));
        response
    }

    async fn send(&self, path: &str, table: &[u8]) -> Result<Response, Cause> {
        let host = self.endpoint.authority();
        let time = timestamp(clock::wall().as_u64() / 1_000_000_000);
        let time = format!("{}Z", time.replace('-', "T"));
        let unsigned = Unsigned {
            method: "PUT",
            host: &host,
            path,
            headers: &[],
            body: table,
            time: &time,
        };
        let signed = unsigned.sign(&self.keys);
        let fixed = [("user-agent", "stillwell"), ("connection", "close")];
        let signed = signed
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let request = Request {
            method: "PUT",
            path,
            authority: &host,
            headers: &signed.chain(fixed).collect::<Vec<_>>(),
            body: table,
        };
        let tls = match self.endpoint.scheme() {
            Scheme::Https => Some(ClientTls::new(&ClientTlsPlan::default())?),
            _ => None,
        };
        let endpoint = Endpoint::of_target(&self.endpoint, tls);
        Ok(endpoint.request(&request, RESPONSE_MAX).await?)
    }
}
