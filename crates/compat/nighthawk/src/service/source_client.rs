//! The client of a service that hands out requests during a load.
//!
//! Each worker has its own call, on a thread beside the workers. The call requests as many
//! requests as the worker sends in a second, and again when half of them have arrived. A call
//! that breaks off is not repeated: the load ends by its predicates, or with the last request
//! that arrived.

use std::fmt;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::{Value, json};
use stillwell_metric::SourceCells;
use stillwell_plan::load::RequestPlan;
use stillwell_run::{Feed, FeedError, LoadSource};
use stillwell_scope::{Place, Scope, Tasks, explain};
use stillwell_units::{Nanos, as_usize};
use tokio::select;
use tokio::time::timeout;

use crate::envoy::{BODY_BYTES_MAX, CONTENT_LENGTH, SourceBody, SourceRequest, stated_length};
use crate::service::access::AccessToken;
use crate::service::grpc::{Channel, ChannelError, ClientCall};
use crate::wire::{Schema, UnknownFields, WireError};

/// Maximum number of requests in one message, and of requests that wait for a worker.
const AHEAD_MAX: u32 = 10_000;

const CALL: &str = "/nighthawk.request_source.NighthawkRequestSourceService/RequestStream";
const REQUEST_MESSAGE: &str = "nighthawk.request_source.RequestStreamRequest";
const RESPONSE_MESSAGE: &str = "nighthawk.request_source.RequestStreamResponse";

/// Makes the request to send of one that a source hands out.
pub trait RequestPattern: fmt::Debug + Send + Sync {
    /// The request that `source_request` describes.
    fn request(&self, source_request: &SourceRequest) -> RequestPlan;
}

/// A service that hands out requests.
#[derive(Clone, Debug)]
pub struct RequestSourceClient(Arc<Client>);

#[derive(Clone, Debug)]
struct Client {
    uri: String,
    channel: Channel,
    /// Requests that one message requests.
    ahead: u32,
    /// The message that requests them.
    message: Vec<u8>,
    connect_within: Nanos,
    /// The parts that all requests share.
    pattern: Arc<dyn RequestPattern>,
    /// The token that its calls carry, if any.
    token: Option<AccessToken>,
}

/// Failure to get a request from a source.
#[derive(Debug, thiserror::Error)]
pub enum RequestSourceError {
    /// There is no connection in time, or the source sends nothing on it.
    #[error("no HTTP/2 connection within {within}")]
    Late {
        /// The deadline.
        within: Nanos,
    },
    /// The call failed.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The message cannot be read.
    #[error("its response is not a request")]
    Message(#[source] WireError),
    /// The request has a body that is too long.
    #[error("its request has a body of {length} bytes: at most {BODY_BYTES_MAX} are supported")]
    Body {
        /// Bytes.
        length: u64,
    },
    /// The request cannot be sent.
    #[error("its request cannot be sent")]
    Request(#[source] FeedError),
}

impl RequestSourceClient {
    /// Returns the source at `uri`. Each message requests `ahead` requests, up to a limit; a
    /// connection must open within `connect_within`.
    ///
    /// # Errors
    /// [`ChannelError`] where TLS cannot be configured.
    pub fn new(
        uri: &str,
        ahead: u32,
        connect_within: Nanos,
        pattern: Box<dyn RequestPattern>,
    ) -> Result<Self, ChannelError> {
        let ahead = ahead.clamp(1, AHEAD_MAX);
        let quantity = json!({ "quantity": ahead.to_string() });
        let message = Schema::shared().encode(REQUEST_MESSAGE, &quantity);
        Ok(Self(Arc::new(Client {
            uri: uri.to_owned(),
            channel: Channel::of_uri(uri)?,
            ahead,
            message: message.unwrap_or_else(|error| unreachable!("a test reads it: {error}")),
            connect_within,
            pattern: pattern.into(),
            token: None,
        })))
    }

    /// The same source, called with `token`.
    #[must_use]
    pub fn with_token(mut self, token: Option<&AccessToken>) -> Self {
        Arc::make_mut(&mut self.0).token = token.cloned();
        self
    }
}

impl LoadSource for RequestSourceClient {
    fn waiting_max(&self) -> usize {
        as_usize(self.0.ahead)
    }

    fn start(&self, scope: &mut Scope, feeds: Vec<Feed>) -> io::Result<()> {
        let client = Arc::clone(&self.0);
        scope.worker(Place::default(), "requests", move |token| async move {
            let client = Rc::new(client);
            let mut tasks = Tasks::new(feeds.len());
            for feed in feeds {
                let client = Rc::clone(&client);
                tasks.spawn(async move { client.supply(&feed).await });
            }
            token.run_until_cancelled(tasks.all_ended()).await;
            Ok(())
        })
    }
}

impl Client {
    /// Hands `feed` what comes, until either end has enough.
    async fn supply(&self, feed: &Feed) {
        if let Err(error) = self.fetch(feed).await {
            let counts = feed.counts();
            // The first one stays.
            let why = format!("--request-source {}: {}", self.uri, explain(&error));
            counts.trouble.get_or_init(|| why);
            counts.failures.add(1);
        }
    }

    async fn fetch(&self, feed: &Feed) -> Result<(), RequestSourceError> {
        let counts = feed.counts();
        let authorization = self.token.as_ref().map(AccessToken::header_value);
        let authorization = authorization.as_deref();
        let headers = authorization.map(|value| ("authorization", value));
        let connect = self.channel.call(CALL, headers.as_slice());
        // Both arms are cancel-safe: the one call is given up with the other.
        let begun = select! {
            biased;
            () = feed.closed() => return Ok(()),
            begun = self.begin(connect, counts) => begun,
        };
        let mut call = begun?;
        let (mut due, mut is_answered) = (u64::from(self.ahead), false);
        loop {
            if due * 2 <= self.ahead.into() {
                call.send(&self.message);
                due += u64::from(self.ahead);
            }
            // Both arms are cancel-safe.
            let next = select! {
                biased;
                () = feed.closed() => return Ok(()),
                next = call.next() => next,
            };
            if !is_answered && call.is_answered() {
                is_answered = true;
                counts.answered.add(1);
            }
            let Some(bytes) = next? else {
                counts.ended.add(1);
                return Ok(());
            };
            due = due.saturating_sub(1);
            let request = self.pattern.request(&request_of(&bytes)?);
            match feed.hand_over(&request).await {
                Ok(()) => {}
                Err(FeedError::Over) => return Ok(()),
                Err(error) => return Err(RequestSourceError::Request(error)),
            }
        }
    }

    /// Requests the first requests on the call that `connect` opens, and waits for the settings of
    /// the source, which a server of HTTP/2 sends at once. Both have one deadline.
    async fn begin(
        &self,
        connect: impl Future<Output = Result<ClientCall, ChannelError>>,
        counts: &SourceCells,
    ) -> Result<ClientCall, RequestSourceError> {
        let within = self.connect_within;
        let mut is_connected = false;
        let begun = timeout(within.as_duration(), async {
            let mut call = connect.await?;
            is_connected = true;
            counts.calls.add(1);
            call.send(&self.message);
            call.await_settings().await?;
            Ok::<_, ChannelError>(call)
        });
        let begun = begun.await;
        if !is_connected {
            counts.unconnected.add(1);
        }
        Ok(begun.map_err(|_| RequestSourceError::Late { within })??)
    }
}

/// Reads a request of a source.
fn request_of(bytes: &[u8]) -> Result<SourceRequest, RequestSourceError> {
    let response = Schema::shared().decode(RESPONSE_MESSAGE, bytes, UnknownFields::Skip);
    let response = response.map_err(RequestSourceError::Message)?;
    let specifier = &response["request_specifier"];
    let text = |key: &str| specifier.get(key).and_then(Value::as_str);
    let mut headers = Vec::new();
    for (key, name) in [
        ("method", ":method"),
        ("path", ":path"),
        ("authority", "host"),
    ] {
        let value = text(key).filter(|value| !value.is_empty());
        headers.extend(value.map(|value| (name.to_owned(), value.to_owned())));
    }
    for list in ["headers", "v3_headers"] {
        let listed = specifier.get(list).and_then(|list| list.get("headers"));
        for header in listed.and_then(Value::as_array).into_iter().flatten() {
            let part = |key: &str| header.get(key).and_then(Value::as_str).unwrap_or_default();
            headers.push((part("key").to_owned(), part("value").to_owned()));
        }
    }
    let checked = |length: u64| {
        let known = u32::try_from(length).ok();
        let known = known.filter(|length| *length <= BODY_BYTES_MAX);
        known.ok_or(RequestSourceError::Body { length })
    };
    let length = specifier.get("content_length").and_then(Value::as_u64);
    let body = length.map(checked).transpose()?.map(SourceBody::Bytes);
    for header in headers.iter().filter(|_| body.is_none()) {
        stated_length(header).map(checked).transpose()?;
    }
    if body.is_some() {
        // It wins over a header.
        headers.retain(|(name, _)| !name.eq_ignore_ascii_case(CONTENT_LENGTH));
    }
    Ok(SourceRequest {
        method: None,
        headers,
        body,
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use stillwell_plan::LoadPlan;
    use stillwell_plan::load::BodyPlan;
    use stillwell_run::{AddressFamily, Interrupt, LoadBeside, LoadError, conduct_load_beside};
    use stillwell_units::{RunId, Seed};
    use tokio::time::advance;

    use super::*;
    use crate::CommandLineOptions;
    use crate::request::NighthawkRequest;

    #[derive(Debug)]
    struct EmptyPattern;

    impl RequestPattern for EmptyPattern {
        fn request(&self, _: &SourceRequest) -> RequestPlan {
            RequestPlan {
                method: "GET".to_owned(),
                path: "/".to_owned(),
                authority: "a".to_owned(),
                is_authority_stated: false,
                headers: Vec::new(),
                body: BodyPlan::Bytes(Vec::new()),
            }
        }
    }

    /// A source that accepts connections and sends nothing, and its client, whose timeout is seven
    /// seconds.
    fn silent() -> (TcpListener, RequestSourceClient) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let uri = format!("grpc://{}", listener.local_addr().unwrap());
        let (within, pattern) = (Nanos::from_secs(7), Box::new(EmptyPattern));
        let client = RequestSourceClient::new(&uri, 1, within, pattern);
        (listener, client.unwrap())
    }

    /// Supplies the feed of a load in paused time, and ends the load before its start.
    #[derive(Debug)]
    struct PausedSource(RequestSourceClient);

    impl LoadSource for PausedSource {
        fn waiting_max(&self) -> usize {
            self.0.waiting_max()
        }

        fn start(&self, _: &mut Scope, feeds: Vec<Feed>) -> io::Result<()> {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().start_paused(true).build()?;
            let limit = Nanos::from_secs(8).as_duration();
            let supplied =
                runtime.block_on(async { timeout(limit, self.0.0.supply(&feeds[0])).await });
            assert!(supplied.is_ok());
            let counts = feeds[0].counts();
            assert_eq!(counts.failures.total(), 1);
            let trouble = counts.trouble.get().unwrap();
            let cause = "no HTTP/2 connection within 7s";
            assert!(trouble.ends_with(cause), "{trouble}");
            Err(io::ErrorKind::Interrupted.into())
        }
    }

    fn plan() -> LoadPlan {
        let options = CommandLineOptions {
            uri: Some("http://127.0.0.1:1/".to_owned()),
            ..CommandLineOptions::default()
        };
        let request = NighthawkRequest::try_from(&options).unwrap();
        let run = RunId::from_bytes([0; 16]);
        request.plan(1, run, Seed::from_number(1)).unwrap()
    }

    /// A load without a duration waited for its requests without an end.
    #[test]
    fn a_source_that_sends_nothing_within_the_timeout_is_a_failure() {
        let (_listener, client) = silent();
        let source = PausedSource(client);
        let beside = LoadBeside {
            progress: &mut |_| {},
            on_note: &mut |_| {},
            source: Some(&source),
            agree: None,
        };
        let interrupt = Interrupt::new();
        let ended = conduct_load_beside(plan(), AddressFamily::Any, &[], &interrupt, beside);
        let error = ended.unwrap_err();
        // The source has asserted the rest.
        assert!(matches!(error, LoadError::Start(_)), "{error}");
    }

    /// The settings had the whole timeout again, so a source could take twice that.
    #[tokio::test(start_paused = true)]
    async fn a_connection_and_the_settings_of_its_source_have_one_timeout() {
        let (_listener, client) = silent();
        let client = &client.0;
        let slow = async {
            advance(Nanos::from_secs(4).as_duration()).await;
            client.channel.call(CALL, &[]).await
        };
        let counts = SourceCells::default();
        let begun = client.begin(slow, &counts);
        let begun = timeout(Nanos::from_secs(8).as_duration(), begun).await;
        let error = begun.unwrap().unwrap_err();
        assert!(matches!(error, RequestSourceError::Late { .. }), "{error}");
    }

    fn read(response: &Value) -> Result<SourceRequest, String> {
        let bytes = Schema::shared().encode(RESPONSE_MESSAGE, response).unwrap();
        request_of(&bytes).map_err(|error| error.to_string())
    }

    /// A body is made of its length, so a length from elsewhere has a bound.
    #[test]
    fn a_header_with_a_long_body_is_refused() {
        let specified = |value: &str| {
            let header = json!({ "key": "content-length", "value": value });
            read(&json!({ "request_specifier": { "v3_headers": { "headers": [header] } } }))
        };
        assert!(specified("3").is_ok() && specified("x").is_ok());
        for length in ["4294967295", "99999999999999999999"] {
            assert!(specified(length).is_err(), "{length}");
        }
    }

    #[test]
    fn requests_are_read_as_they_are_specified() {
        let specified = json!({ "request_specifier": {
            "method": "PURGE", "path": "/a", "authority": "b", "content_length": 3,
            "v3_headers": { "headers": [{ "key": "c", "value": "d" }, { "key": "Content-Length", "value": "9" }] },
        } });
        let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let request = read(&specified).unwrap();
        let headers = [
            (":method", "PURGE"),
            (":path", "/a"),
            ("host", "b"),
            ("c", "d"),
        ];
        assert_eq!(request.headers, headers.map(pair));
        assert_eq!(request.body, Some(SourceBody::Bytes(3)));
        assert_eq!(read(&json!({})), Ok(SourceRequest::default()));
        let too_long = json!({ "request_specifier": { "content_length": 4_194_305 } });
        let why = read(&too_long).unwrap_err();
        assert!(why.contains("at most 4194304"), "{why}");
        assert!(request_of(b"\x0a\x7f").is_err());
    }
}
