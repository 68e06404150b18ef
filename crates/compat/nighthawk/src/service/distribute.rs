//! `nighthawk.NighthawkDistributor`: one load by several services at once.

use std::rc::Rc;

use crate::wire::{
    ExecutionRequest, ExecutionResponse, Schema, Status, UnknownFields, decode_response,
    encode_request, request_of_json, response_json,
};
use serde_json::{Value, json};
use stillwell_scope::{Tasks, Token, explain};
use stillwell_units::Nanos;
use tokio::select;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::service::access::AccessToken;
use crate::service::codec::encode;
use crate::service::executor::shutdown_failure;
use crate::service::grpc::{
    Call, CallFailed, Channel, ChannelError, ClientCall, LoadMark, StatusCode,
};
use crate::service::remote::{connect_limit, end_limit};
use crate::service::role::Role;
use crate::service::samples::strip_samples;
use crate::service::state::ServiceState;

/// Services that one load is given to.
const SERVICES_MAX: usize = 256;

const EXECUTION_STREAM: &str = "/nighthawk.client.NighthawkService/ExecutionStream";

/// Response of a service, or the error.
type Answer = Box<Result<ExecutionResponse, ChannelError>>;

/// A message about one service.
enum ServiceMessage {
    /// Its results so far, after an update.
    Progress(Box<ExecutionResponse>),
    /// All.
    Whole(Answer),
}

/// Name of a result of a load in progress.
const PROGRESS: &str = "progress";

/// One load by several services.
struct Distribution {
    services: Vec<Value>,
    answers: Vec<Option<Answer>>,
    incoming: Receiver<(usize, ServiceMessage)>,
    /// Number of updates that the client has sent.
    updates: watch::Sender<u64>,
    /// Cancelled where the load is to end early.
    cancelled: Token,
    /// True if the shutdown of the distributor cancelled the load.
    is_shut_down: bool,
    id: String,
    // Dropped with the stream: its calls to services end.
    tasks: Tasks,
    _mark: LoadMark,
}

enum DistributionEvent {
    Request(Option<Vec<u8>>),
    Message(Option<(usize, ServiceMessage)>),
    Close,
}

/// `DistributedRequestStream`: each start goes to all of its services at the same
/// time, and is answered once, when all of them have. A cancellation goes to all
/// services of the load that is on, and so does an update, to which each of those
/// that are at it still answers by itself. Results of a load with an `execution_id` are
/// kept, as if they had been stored in the sink, in place of those of an earlier load
/// of that name; a service that failed is kept with its error. The shutdown of the distributor
/// cancels the load: a service that has not answered by then has failed.
pub(crate) async fn stream(state: Rc<ServiceState>, mut call: Call) -> Result<(), CallFailed> {
    let mut running: Option<Distribution> = None;
    let (mut is_open, mut is_closing) = (true, false);
    loop {
        if running.is_none() && (!is_open || is_closing) {
            return Ok(());
        }
        // All arms are cancel-safe.
        let event = select! {
            biased;
            message = next_message(&mut running) => DistributionEvent::Message(message),
            () = state.token.cancelled(), if !is_closing => DistributionEvent::Close,
            request = call.next(), if is_open => DistributionEvent::Request(request),
        };
        match event {
            DistributionEvent::Request(None) => is_open = false,
            DistributionEvent::Request(Some(bytes)) => {
                request(&state, &call, &bytes, &mut running)?;
            }
            DistributionEvent::Close => {
                is_closing = true;
                if let Some(running) = &mut running {
                    running.shut_down();
                }
            }
            DistributionEvent::Message(None) => {}
            DistributionEvent::Message(Some((number, ServiceMessage::Progress(response)))) => {
                let service = running.as_ref().map(|running| &running.services[number]);
                let response = response_json(&response);
                let service_response =
                    json!({ "service": service, "execution_response": response });
                let response = json!({ "service_response": [service_response] });
                call.send(encode("nighthawk.DistributedResponse", &response)?)
                    .await?;
            }
            DistributionEvent::Message(Some((number, ServiceMessage::Whole(answer)))) => {
                let is_whole = running
                    .as_mut()
                    .is_some_and(|running| running.receive(number, answer));
                if is_whole && let Some(whole) = running.take() {
                    call.send(whole.finish(&state, call.includes_samples)?)
                        .await?;
                }
            }
        }
    }
}

async fn next_message(running: &mut Option<Distribution>) -> Option<(usize, ServiceMessage)> {
    match running {
        Some(running) => running.incoming.recv().await,
        None => std::future::pending().await,
    }
}

fn request(
    state: &ServiceState,
    call: &Call,
    bytes: &[u8],
    running: &mut Option<Distribution>,
) -> Result<(), CallFailed> {
    let invalid = |why: String| CallFailed::new(StatusCode::InvalidArgument, why);
    let name = "nighthawk.DistributedRequest";
    let request = Schema::shared().decode(name, bytes, UnknownFields::Refuse);
    let mut request = request.map_err(|error| invalid(error.to_string()))?;
    let execution = request_of_json(request["execution_request"].take());
    match execution.map_err(|error| invalid(error.to_string()))? {
        start @ ExecutionRequest::Start(_) => {
            if running.is_some() {
                let why = "Only a single benchmark session is allowed at a time.";
                return Err(CallFailed::new(StatusCode::Internal, why));
            }
            *running = Some(Distribution::start(state, call, &start, &request)?);
        }
        ExecutionRequest::Cancel => match running {
            Some(running) => running.cancelled.cancel(),
            None => return Err(invalid("there is no load to cancel".to_owned())),
        },
        ExecutionRequest::Update => match running {
            Some(running) => running.updates.send_modify(|updates| *updates += 1),
            None => return Err(invalid("there is no load to update".to_owned())),
        },
        ExecutionRequest::Nothing => {
            return Err(CallFailed::new(
                StatusCode::Internal,
                "Request is not supported yet.",
            ));
        }
    }
    Ok(())
}

impl Distribution {
    fn start(
        state: &ServiceState,
        call: &Call,
        start: &ExecutionRequest,
        request: &Value,
    ) -> Result<Self, CallFailed> {
        let invalid = |why: &str| CallFailed::new(StatusCode::InvalidArgument, why);
        let services = request.get("services").and_then(Value::as_array);
        let services = services.cloned().unwrap_or_default();
        if services.is_empty() {
            return Err(invalid("services: value must contain at least 1 item(s)"));
        }
        if services.len() > SERVICES_MAX {
            return Err(invalid("services: at most 256 are accepted"));
        }
        let addresses = services.iter().map(address).collect::<Option<Vec<_>>>();
        let addresses = addresses
            .ok_or_else(|| invalid("services: each one is a socket_address with port_value"))?;
        for address in &addresses {
            if !state.access.allows_target(call.caller, address) {
                let why = format!(
                    "the service {address} is not allowed: start the distributor with \
                     --allow-target {address}"
                );
                return Err(CallFailed::new(StatusCode::PermissionDenied, why));
            }
        }
        let ExecutionRequest::Start(options) = start else {
            return Err(invalid("execution_request: it starts no load"));
        };
        let bytes = encode_request(start).map_err(|error| invalid(&error.to_string()))?;
        let (sender, incoming) = channel(addresses.len());
        let (cancelled, mut tasks) = (Token::new(), Tasks::new(SERVICES_MAX));
        let updates = watch::Sender::new(0);
        let (tls, token) = match &state.role {
            Role::Distributor { tls, token } => (tls.as_ref(), token.as_ref()),
            _ => (None, None),
        };
        for (number, address) in addresses.into_iter().enumerate() {
            let service_call = ServiceCall {
                number,
                start: bytes.clone(),
                timeout: connect_limit(options),
                cancelled: cancelled.clone(),
                updates: updates.subscribe(),
                messages: sender.clone(),
                authorization: token.map(AccessToken::header_value),
            };
            tasks.spawn(service_call.run(Channel::new(&address, tls)));
        }
        Ok(Self {
            answers: services.iter().map(|_| None).collect(),
            services,
            incoming,
            updates,
            cancelled,
            is_shut_down: false,
            id: options.execution_id.clone().unwrap_or_default(),
            tasks,
            _mark: call.mark_load(),
        })
    }

    /// Cancels the load because the distributor shuts down.
    fn shut_down(&mut self) {
        self.is_shut_down = !self.cancelled.is_cancelled();
        self.cancelled.cancel();
    }

    /// Receives the answer of a service. Returns true if all services have answered.
    fn receive(&mut self, number: usize, mut answer: Answer) -> bool {
        if self.is_shut_down
            && let Ok(response) = &mut *answer
        {
            response.error_detail.get_or_insert_with(shutdown_failure);
        }
        self.answers[number] = Some(answer);
        self.answers.iter().all(Option::is_some)
    }

    /// The answer to the client; results are kept where they have an id.
    fn finish(self, state: &ServiceState, includes_samples: bool) -> Result<Vec<u8>, CallFailed> {
        drop(self.tasks);
        let (mut responses, mut kept) = (Vec::new(), Vec::new());
        for (service, answer) in self.services.iter().zip(self.answers) {
            responses.push(match answer.map(|answer| *answer) {
                Some(Ok(mut response)) => {
                    if !self.id.is_empty() {
                        response.execution_id.clone_from(&self.id);
                        kept.push(response.clone());
                    }
                    if let Some(output) = response.output.as_mut().filter(|_| !includes_samples) {
                        strip_samples(output);
                    }
                    let response = response_json(&response);
                    json!({ "service": service, "execution_response": response })
                }
                Some(Err(error)) => {
                    let (code, message) = (code_of(&error), explain(&error));
                    kept.push(failure(code, service, &message, &self.id));
                    let error = json!({ "code": code, "message": message });
                    json!({ "service": service, "error": error })
                }
                None => continue,
            });
        }
        if !self.id.is_empty() {
            state.store.replace(&self.id, kept)?;
        }
        let response = json!({ "service_response": responses });
        encode("nighthawk.DistributedResponse", &response)
    }
}

/// Returns the stored response of a service that failed: it marks the whole as incomplete.
fn failure(code: u32, service: &Value, message: &str, id: &str) -> ExecutionResponse {
    let address = address(service).unwrap_or_default();
    ExecutionResponse {
        output: None,
        error_detail: Some(Status {
            code,
            message: format!("{address}: {message}"),
        }),
        execution_id: id.to_owned(),
    }
}

/// A service that is to make the load.
struct ServiceCall {
    number: usize,
    start: Vec<u8>,
    /// Timeout of the load.
    timeout: Nanos,
    cancelled: Token,
    updates: watch::Receiver<u64>,
    messages: Sender<(usize, ServiceMessage)>,
    /// Value of the header `authorization`, if any.
    authorization: Option<String>,
}

impl ServiceCall {
    async fn run(mut self, channel: Result<Channel, ChannelError>) {
        let answer = match channel {
            Ok(channel) => self.exchange(&channel).await,
            Err(error) => Err(error),
        };
        self.report(ServiceMessage::Whole(Box::new(answer))).await;
    }

    async fn report(&self, message: ServiceMessage) {
        // The stream may have ended.
        drop(self.messages.send((self.number, message)).await);
    }

    async fn open(&self, channel: &Channel) -> Result<ClientCall, ChannelError> {
        let mut headers = vec![("stillwell-samples", "1")];
        let authorization = self.authorization.as_deref();
        headers.extend(authorization.map(|value| ("authorization", value)));
        // Both arms are cancel-safe: the service has no load yet.
        select! {
            call = channel.call_within(self.timeout, EXECUTION_STREAM, &headers) => call,
            () = self.cancelled.cancelled() => {
                let why = "the load was cancelled before there was a connection to the service";
                Err(CallFailed::new(StatusCode::Cancelled, why).into())
            }
        }
    }

    async fn exchange(&mut self, channel: &Channel) -> Result<ExecutionResponse, ChannelError> {
        let mut call = self.open(channel).await?;
        call.send(&self.start);
        if let Some(response) = self.response(&mut call, true).await? {
            return Ok(response);
        }
        send(&mut call, &ExecutionRequest::Cancel);
        let within = end_limit(self.timeout);
        let response = timeout(within.as_duration(), self.response(&mut call, false)).await;
        let late = || {
            let why = format!("no response within {within} after the load was cancelled");
            CallFailed::new(StatusCode::Unavailable, why)
        };
        Ok(response.map_err(|_| late())??.ok_or_else(late)?)
    }

    /// Returns the response to the load, and reports progress until then; `None` if the load is
    /// cancelled first and `until_cancelled`.
    async fn response(
        &mut self,
        call: &mut ClientCall,
        until_cancelled: bool,
    ) -> Result<Option<ExecutionResponse>, ChannelError> {
        let mut is_watched = true;
        loop {
            // All arms are cancel-safe.
            select! {
                bytes = call.next() => {
                    let response = answered(bytes?)?;
                    if !is_progress(&response) {
                        return Ok(Some(response));
                    }
                    self.report(ServiceMessage::Progress(Box::new(response))).await;
                }
                () = self.cancelled.cancelled(), if until_cancelled => return Ok(None),
                changed = self.updates.changed(), if is_watched => {
                    is_watched = changed.is_ok();
                    send(call, &ExecutionRequest::Update);
                }
            }
        }
    }
}

fn send(call: &mut ClientCall, request: &ExecutionRequest) {
    // These requests have no content that could be wrong.
    if let Ok(bytes) = encode_request(request) {
        call.send(&bytes);
    }
}

fn answered(bytes: Option<Vec<u8>>) -> Result<ExecutionResponse, ChannelError> {
    let silent = || {
        CallFailed::new(
            StatusCode::Internal,
            "the service ended the call without a response",
        )
    };
    let response = decode_response(&bytes.ok_or_else(silent)?);
    Ok(response.map_err(|error| CallFailed::new(StatusCode::Internal, error.to_string()))?)
}

/// Returns true for the results of a load in progress.
fn is_progress(response: &ExecutionResponse) -> bool {
    let results = response
        .output
        .as_ref()
        .map(|output| output.results.as_slice());
    matches!(results, Some([only]) if only.name == PROGRESS)
}

/// `HOST:PORT` of an address of Envoy.
fn address(service: &Value) -> Option<String> {
    let socket = service.get("socket_address")?;
    let host = socket.get("address")?.as_str()?;
    let port = socket.get("port_value")?.as_u64()?;
    Some(match host.contains(':') {
        true => format!("[{}]:{port}", host.trim_matches(['[', ']'])),
        false => format!("{host}:{port}"),
    })
}

const fn code_of(error: &ChannelError) -> u32 {
    match error {
        ChannelError::CallFailed(ended) => ended.code.number(),
        _ => StatusCode::Unavailable.number(),
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// Returns the error of a call to a service that accepts connections and sends nothing.
    async fn error_of_silent_service(scheme: &str, cancelled: Token) -> ChannelError {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("{scheme}://{}", listener.local_addr().unwrap());
        let (messages, _incoming) = channel(1);
        let (_updates, updates) = watch::channel(0);
        let mut call = ServiceCall {
            number: 0,
            start: Vec::new(),
            timeout: Nanos::from_secs(7),
            cancelled,
            updates,
            messages,
            authorization: None,
        };
        let channel = Channel::of_uri(&uri).unwrap();
        call.exchange(&channel).await.unwrap_err()
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_has_the_timeout_of_the_load_for_its_handshake_and_settings() {
        for scheme in ["grpcs", "grpc"] {
            let error = error_of_silent_service(scheme, Token::new()).await;
            let is_late =
                matches!(&error, ChannelError::Late { limit, .. } if *limit == Nanos::from_secs(7));
            assert!(is_late, "{scheme}: {error}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancellation_ends_the_wait_for_a_connection_to_a_service() {
        let cancelled = Token::new();
        cancelled.cancel();
        let error = error_of_silent_service("grpcs", cancelled).await;
        assert_eq!(code_of(&error), StatusCode::Cancelled.number(), "{error}");
    }

    fn load_of_two_services() -> Distribution {
        Distribution {
            services: vec![Value::Null, Value::Null],
            answers: vec![None, None],
            incoming: channel(1).1,
            updates: watch::Sender::new(0),
            cancelled: Token::new(),
            is_shut_down: false,
            id: String::new(),
            tasks: Tasks::new(1),
            _mark: LoadMark::detached(),
        }
    }

    /// An answer of a service, with this failure.
    fn answer(error_detail: Option<Status>) -> Answer {
        Box::new(Ok(ExecutionResponse {
            error_detail,
            ..ExecutionResponse::default()
        }))
    }

    fn failure_of(load: &Distribution, number: usize) -> Option<Status> {
        let answer = load.answers[number].as_deref().unwrap();
        answer.as_ref().unwrap().error_detail.clone()
    }

    #[test]
    fn services_that_answer_after_the_shutdown_of_the_distributor_have_failed() {
        let mut load = load_of_two_services();
        assert!(!load.receive(0, answer(None)));
        load.shut_down();
        assert!(load.cancelled.is_cancelled());
        assert!(load.receive(1, answer(None)));
        assert_eq!(failure_of(&load, 0), None);
        assert_eq!(failure_of(&load, 1), Some(shutdown_failure()));
    }

    #[test]
    fn a_shutdown_replaces_no_failure_and_fails_no_cancelled_load() {
        let failure = Status {
            code: 13,
            message: "a predicate".to_owned(),
        };
        let mut load = load_of_two_services();
        load.shut_down();
        load.receive(0, answer(Some(failure.clone())));
        assert_eq!(failure_of(&load, 0), Some(failure));
        let mut load = load_of_two_services();
        load.cancelled.cancel();
        load.shut_down();
        load.receive(0, answer(None));
        assert_eq!(failure_of(&load, 0), None);
    }
}
