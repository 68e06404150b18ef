//! Object stores that are compatible with S3, for results.

mod listing;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use stillwell_http::{
    Scheme, StoreKeys, Target, TargetError, Unsigned, encoded_path, encoded_query,
};
use stillwell_plan::tls::{ClientTlsPlan, RootSource, Verification};
use stillwell_run::Interrupt;
use stillwell_scope::{Place, Scope, Token, clock};
use stillwell_units::{ByteSize, Moment, Nanos};
use stillwell_wire::client::{Endpoint, Request, Response};
use stillwell_wire::tls::ClientTls;
use tokio::time::timeout;

use crate::timestamp;
use listing::ListingPage;
pub use listing::{StoreListing, StoredObject};

/// Deadline of a request.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(300);
/// Time between two looks at the interrupt while a request has no response.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Time that an interrupt leaves to a request.
const INTERRUPTED_MAX: Nanos = Nanos::from_secs(5);
/// Maximum number of objects of a list.
const OBJECTS_MAX: usize = 100_000;
/// Longest page of a list that is read.
const LIST_MAX: ByteSize = ByteSize::mib(16);
/// Longest response that is read.
const RESPONSE_MAX: ByteSize = ByteSize::mib(1);
/// Largest object that is read whole.
const OBJECT_MAX: ByteSize = ByteSize::mib(256);

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
    /// PEM files of roots besides those that ship with Stillwell.
    roots: Vec<PathBuf>,
    /// Longest step of a request with a small body, if requests are repeated.
    stall: Option<Nanos>,
    /// Ends requests.
    interrupt: Interrupt,
}

/// Reasons why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ObjectStoreError {
    /// The address has no valid bucket.
    #[error("`s3://{0}` has no valid bucket: write `s3://BUCKET/PREFIX`")]
    Bucket(String),
    /// An environment variable is missing.
    #[error("an object store needs {0}, which is not set")]
    Variable(&'static str),
    /// The endpoint is not a URL.
    #[error("`{endpoint}` is not a URL of an object store: write https://HOST or http://HOST:PORT")]
    Endpoint {
        /// The endpoint.
        endpoint: String,
        /// The cause.
        source: TargetError,
    },
    /// A request had no response.
    #[error("{action} {place} at {endpoint}")]
    NoResponse {
        /// The action.
        action: StoreAction,
        /// The address of the object.
        place: String,
        /// The endpoint.
        endpoint: Target,
        /// The cause.
        source: Cause,
    },
    /// The store refused a request.
    #[error("{action} {place} at {endpoint}: answered with {status}: {body}")]
    Refused {
        /// The action.
        action: StoreAction,
        /// The address of the object.
        place: String,
        /// The endpoint.
        endpoint: Target,
        /// The status of the response.
        status: u16,
        /// The start of its body.
        body: String,
    },
    /// The response to a request for a list is none.
    #[error("list {0}: the response is not a list of objects")]
    NoList(String),
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
            endpoint: Target::from_url(&endpoint)
                .map_err(|source| ObjectStoreError::Endpoint { endpoint, source })?,
            keys: keys()?,
            bucket: bucket.to_owned(),
            prefix: prefix.trim_matches('/').to_owned(),
            roots: variable("AWS_CA_BUNDLE")
                .map(PathBuf::from)
                .into_iter()
                .collect(),
            stall: None,
            interrupt: Interrupt::new(),
        }))
    }

    /// The same store for a caller that repeats requests: those that make no progress for `stall` fail.
    #[must_use]
    pub fn with_stall_limit(self, stall: Nanos) -> Self {
        Self {
            stall: Some(stall),
            ..self
        }
    }

    /// The same store, whose requests end soon after `interrupt` is raised.
    #[must_use]
    pub fn ending_with(&self, interrupt: &Interrupt) -> Self {
        Self {
            interrupt: interrupt.clone(),
            ..self.clone()
        }
    }

    /// Uploads `table` under the names of the results folder `folder` and of this host, and returns
    /// its address.
    ///
    /// # Errors
    /// The store did not respond, or refused it.
    pub fn put(&self, folder: &Path, table: Vec<u8>) -> Result<String, ObjectStoreError> {
        let host = rustix::system::uname();
        let host = host.nodename().to_string_lossy();
        self.upload(&table_key(folder, &host), table)
    }

    /// Uploads an object, and returns its address. All keys are below the prefix of the store; the object with an
    /// empty key has the prefix as its name.
    ///
    /// # Errors
    /// The store did not respond, or refused it.
    pub fn upload(&self, key: &str, body: Vec<u8>) -> Result<String, ObjectStoreError> {
        self.request(StoreAction::Upload, key, "", body, RESPONSE_MAX)?;
        Ok(self.address(key))
    }

    /// Downloads an object of at most `max` bytes.
    ///
    /// # Errors
    /// The store did not respond, has no such object, or it is larger.
    pub fn download(&self, key: &str, max: ByteSize) -> Result<Vec<u8>, ObjectStoreError> {
        self.request(StoreAction::Download, key, "", Vec::new(), max)
    }

    /// Makes an object; false if there is one, which stays as it is.
    ///
    /// # Errors
    /// The store did not respond, or refused it.
    pub fn create(&self, key: &str, bytes: &[u8]) -> Result<bool, ObjectStoreError> {
        let made = self.request(StoreAction::Create, key, "", bytes.to_vec(), RESPONSE_MAX);
        match made {
            Ok(_) => Ok(true),
            Err(ObjectStoreError::Refused { status: 412, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns an object, if there is one.
    ///
    /// # Errors
    /// The store did not respond, or refused it.
    pub fn get(&self, key: &str) -> Result<Option<Vec<u8>>, ObjectStoreError> {
        match self.download(key, OBJECT_MAX) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(ObjectStoreError::Refused { status: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// The store did not respond, or refused it.
    pub fn delete(&self, key: &str) -> Result<(), ObjectStoreError> {
        let deleted = self.request(StoreAction::Delete, key, "", Vec::new(), RESPONSE_MAX);
        deleted.map(|_| ())
    }

    /// Lists the objects below the prefix of the store, at most 100,000.
    ///
    /// # Errors
    /// The store did not respond, or the response is no list.
    pub fn list(&self) -> Result<StoreListing, ObjectStoreError> {
        let prefix = match self.prefix.as_str() {
            "" => String::new(),
            prefix => format!("{prefix}/"),
        };
        let mut listing = StoreListing::default();
        let mut next: Option<String> = None;
        loop {
            let mut parameters = vec![("list-type", "2"), ("prefix", prefix.as_str())];
            if let Some(token) = &next {
                parameters.push(("continuation-token", token));
            }
            let page = self.page(&parameters)?;
            next = listing.add(page, &prefix, OBJECTS_MAX);
            if next.is_none() {
                return Ok(listing);
            }
        }
    }

    /// Returns the object whose name is the prefix itself, if there is one; its key is empty.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub fn object_at_prefix(&self) -> Result<Option<StoredObject>, ObjectStoreError> {
        if self.prefix.is_empty() {
            return Ok(None);
        }
        // Of the names that begin with it, it is the first one.
        let parameters = [
            ("list-type", "2"),
            ("max-keys", "1"),
            ("prefix", self.prefix.as_str()),
        ];
        let page = self.page(&parameters)?;
        let mut objects = page.objects.into_iter();
        let object = objects.find(|object| object.key == self.prefix);
        Ok(object.map(|object| StoredObject {
            key: String::new(),
            ..object
        }))
    }

    /// Requests one page of a list.
    fn page(&self, parameters: &[(&str, &str)]) -> Result<ListingPage, ObjectStoreError> {
        let query = encoded_query(parameters);
        let page = self.request(StoreAction::List, "", &query, Vec::new(), LIST_MAX)?;
        let page = ListingPage::parse(&String::from_utf8_lossy(&page));
        page.ok_or_else(|| ObjectStoreError::NoList(self.address("")))
    }

    /// Returns the address of an object; with an empty key, that of the prefix.
    #[must_use]
    pub fn address(&self, key: &str) -> String {
        format!("s3://{}", self.key_in_store(key))
    }

    /// Returns the bucket, the prefix and the key.
    fn key_in_store(&self, key: &str) -> String {
        let is_whole = self.prefix.is_empty() || key.is_empty();
        let slash = if is_whole { "" } else { "/" };
        format!("{}/{}{slash}{key}", self.bucket, self.prefix)
    }

    /// Sends a request on a thread of its own, which has a runtime, and returns the body of a good response.
    fn request(
        &self,
        action: StoreAction,
        key: &str,
        query: &str,
        body: Vec<u8>,
        max: ByteSize,
    ) -> Result<Vec<u8>, ObjectStoreError> {
        let path = match action {
            StoreAction::List => encoded_path(&format!("/{}", self.bucket)),
            _ => encoded_path(&format!("/{}", self.key_in_store(key))),
        };
        let place = self.address(key);
        let sent = self.send_on_thread(action, path, query.to_owned(), body, max);
        let response = sent.map_err(|source| ObjectStoreError::NoResponse {
            action,
            place: place.clone(),
            endpoint: self.endpoint.clone(),
            source,
        })?;
        match response.status {
            200..300 => Ok(response.body),
            status => Err(ObjectStoreError::Refused {
                action,
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

    fn send_on_thread(
        &self,
        action: StoreAction,
        path: String,
        query: String,
        body: Vec<u8>,
        max: ByteSize,
    ) -> Result<Response, Cause> {
        let store = self.clone();
        let mut scope = Scope::new(&Token::new());
        let (sender, receiver) = sync_channel(1);
        scope.worker(Place::default(), "store", move |token| async move {
            let sent = store.send(action, &path, &query, &body, max);
            let response = token.run_until_cancelled(timeout(REQUEST_TIME_MAX, sent));
            let Some(response) = response.await else {
                return Ok(());
            };
            let late = |_| Err(format!("no response within {REQUEST_TIME_MAX:?}").into());
            sender.send(response.unwrap_or_else(late))?;
            Ok(())
        })?;
        let response = wait(&receiver, &self.interrupt, INTERRUPTED_MAX);
        scope.close(Nanos::from_secs(1));
        response
    }

    async fn send(
        &self,
        action: StoreAction,
        path: &str,
        query: &str,
        body: &[u8],
        max: ByteSize,
    ) -> Result<Response, Cause> {
        let method = action.method();
        let host = self.endpoint.authority();
        let time = timestamp(clock::wall().as_u64() / 1_000_000_000);
        let time = format!("{}Z", time.replace('-', "T"));
        let unsigned = Unsigned {
            method,
            host: &host,
            path,
            query,
            headers: &[],
            body,
            time: &time,
        };
        let signed = unsigned.sign(&self.keys);
        let fixed = [("user-agent", "stillwell"), ("connection", "close")];
        let signed = signed
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let is_new = (action == StoreAction::Create).then_some(("if-none-match", "*"));
        let target = match query {
            "" => path.to_owned(),
            query => format!("{path}?{query}"),
        };
        let request = Request {
            method,
            path: &target,
            authority: &host,
            headers: &signed.chain(fixed).chain(is_new).collect::<Vec<_>>(),
            body,
        };
        let tls = match self.endpoint.scheme() {
            Scheme::Https => Some(ClientTls::new(&ClientTlsPlan {
                verification: Verification::Roots {
                    extra: self.roots.iter().cloned().map(RootSource::File).collect(),
                    public: true,
                },
                ..ClientTlsPlan::default()
            })?),
            _ => None,
        };
        let endpoint = Endpoint::of_target(&self.endpoint, tls);
        let Some(stall) = self.stall else {
            return Ok(endpoint.request(&request, max).await?);
        };
        let response = endpoint.request_unless_stalled(stall, &request, max);
        Ok(response.await?)
    }
}

/// Returns the key of the table of the results in `folder` on `host`. Results that two hosts begin in
/// the same second may have the same name.
fn table_key(folder: &Path, host: &str) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let is_kept = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let host: String = host
        .chars()
        .map(|c| if is_kept(c) { c } else { '-' })
        .collect();
    format!("{name}-{host}.parquet")
}

/// Waits for a response; once `interrupt` is raised, for `at_most`.
fn wait<T>(
    receiver: &Receiver<Result<T, Cause>>,
    interrupt: &Interrupt,
    at_most: Nanos,
) -> Result<T, Cause> {
    let mut raised: Option<Moment> = None;
    loop {
        match receiver.recv_timeout(LOOK_EVERY) {
            Ok(response) => return response,
            Err(error @ RecvTimeoutError::Disconnected) => return Err(error.into()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Some(signal) = interrupt.signal() {
            let since = *raised.get_or_insert_with(clock::now);
            if clock::now().since(since) >= at_most {
                return Err(format!("no response before signal {signal}").into());
            }
        }
    }
}

/// An action on an object, or on all.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StoreAction {
    /// Upload.
    Upload,
    /// Upload, if there is no such object.
    Create,
    /// Download.
    Download,
    /// Deletion.
    Delete,
    /// The list of all objects.
    List,
}

impl StoreAction {
    const fn method(self) -> &'static str {
        match self {
            Self::Upload | Self::Create => "PUT",
            Self::Download | Self::List => "GET",
            Self::Delete => "DELETE",
        }
    }
}

impl std::fmt::Display for StoreAction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Upload | Self::Create => "upload",
            Self::Download => "download",
            Self::Delete => "delete",
            Self::List => "list",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_replaces_only_that_of_the_same_results_on_the_same_host() {
        let folder = "/srv/results/20261112-020000-night";
        for (folder, host, key) in [
            (folder, "n1", "20261112-020000-night-n1.parquet"),
            (folder, "n2.lab", "20261112-020000-night-n2.lab.parquet"),
            (folder, "a/b c", "20261112-020000-night-a-b-c.parquet"),
            ("kept", "n1", "kept-n1.parquet"),
        ] {
            assert_eq!(table_key(Path::new(folder), host), key);
        }
    }

    #[test]
    fn a_signal_ends_a_request_without_a_response() {
        let (sender, receiver) = sync_channel(1);
        let interrupt = Interrupt::new();
        interrupt.raise(15);
        let ended = wait::<u8>(&receiver, &interrupt, Nanos::ZERO).unwrap_err();
        assert_eq!(ended.to_string(), "no response before signal 15");
        // A response that is there counts.
        sender.send(Ok(7)).unwrap();
        assert_eq!(wait(&receiver, &interrupt, Nanos::ZERO).unwrap(), 7);
        drop(sender);
        assert!(wait(&receiver, &Interrupt::new(), Nanos::ZERO).is_err());
    }
}
