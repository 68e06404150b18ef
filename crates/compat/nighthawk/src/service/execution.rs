//! `nighthawk.client.NighthawkService`.

use std::rc::Rc;

use crate::Output;
use crate::wire::{
    ExecutionMessageError, ExecutionRequest, ExecutionResponse, Status, WireError, decode_request,
    encode_response,
};
use tokio::select;

use crate::service::executor::{RunningLoad, shutdown_failure};
use crate::service::grpc::{Call, CallFailed, StatusCode};
use crate::service::state::ServiceState;

const BUSY: &str = "Only a single benchmark session is allowed at a time.";
const UNSUPPORTED: &str = "Request is not supported yet.";

/// An event of a stream.
enum StreamEvent {
    Request(Option<Vec<u8>>),
    Answer(Option<Box<ExecutionResponse>>),
    Close,
}

/// `ExecutionStream`: one load after the other, each answered once.
///
/// Nighthawk's service ends the stream for what comes while a load is on. Here an
/// update is answered with what was found so far, and a cancellation ends the
/// load, which is then answered as ever. The shutdown of the service ends the load, too: its
/// response is a failure with the results so far.
pub(crate) async fn stream(state: Rc<ServiceState>, mut call: Call) -> Result<(), CallFailed> {
    let mut running: Option<RunningLoad> = None;
    let (mut is_open, mut is_closing, mut had_any) = (true, false, false);
    loop {
        if running.is_none() && (!is_open || is_closing) {
            return Ok(());
        }
        // All arms are cancel-safe.
        let event = select! {
            biased;
            answer = answer_of(&mut running) => StreamEvent::Answer(answer),
            () = state.token.cancelled(), if !is_closing => StreamEvent::Close,
            request = call.next(), if is_open => StreamEvent::Request(request),
        };
        match event {
            StreamEvent::Answer(answer) => {
                running = None;
                respond(&call, answer).await?;
            }
            StreamEvent::Close => {
                is_closing = true;
                match &running {
                    Some(running) => running.shut_down(),
                    None => {
                        return Err(CallFailed::new(
                            StatusCode::Unavailable,
                            "the service is shutting down",
                        ));
                    }
                }
            }
            StreamEvent::Request(None) => is_open = false,
            StreamEvent::Request(Some(bytes)) => match decode_request(&bytes) {
                Ok(ExecutionRequest::Start(options)) => {
                    if is_closing {
                        return Err(CallFailed::new(
                            StatusCode::Unavailable,
                            "the service is shutting down",
                        ));
                    }
                    let busy = || CallFailed::new(StatusCode::Internal, BUSY);
                    if running.is_some() {
                        return Err(busy());
                    }
                    let started = state.place.start(options, &call);
                    running = Some(started.ok_or_else(busy)?);
                    had_any = true;
                }
                Ok(ExecutionRequest::Nothing) => {}
                Ok(request) => on_the_way(&call, &request, running.as_ref(), had_any).await?,
                Err(ExecutionMessageError::Wire(
                    error @ (WireError::Malformed { .. } | WireError::Deep),
                )) => {
                    return Err(CallFailed::new(
                        StatusCode::InvalidArgument,
                        error.to_string(),
                    ));
                }
                // Options that are understood so far, and request what is not.
                Err(error) => refuse(&call, &error.to_string()).await?,
            },
        }
    }
}

/// Once the load that is on has ended; never without one.
async fn answer_of(running: &mut Option<RunningLoad>) -> Option<Box<ExecutionResponse>> {
    match running {
        Some(running) => running.answer().await.map(Box::new),
        None => std::future::pending().await,
    }
}

/// Sends the response to a load. If the shutdown of the service ended the load, the call fails
/// after its response: Nighthawk's client takes its exit code from the status of the call alone.
async fn respond(call: &Call, answer: Option<Box<ExecutionResponse>>) -> Result<(), CallFailed> {
    let gone = || CallFailed::new(StatusCode::Unavailable, "the service has shut down");
    let response = answer.ok_or_else(gone)?;
    send(call, &response).await?;
    match &response.error_detail {
        Some(detail) if *detail == shutdown_failure() => Err(CallFailed::new(
            StatusCode::Unavailable,
            detail.message.as_str(),
        )),
        _ => Ok(()),
    }
}

/// An update or a cancellation. One that comes when the load has just been
/// answered is too late to matter.
async fn on_the_way(
    call: &Call,
    request: &ExecutionRequest,
    running: Option<&RunningLoad>,
    had_any: bool,
) -> Result<(), CallFailed> {
    let Some(running) = running else {
        return match had_any {
            true => Ok(()),
            false => Err(CallFailed::new(StatusCode::Internal, UNSUPPORTED)),
        };
    };
    if *request == ExecutionRequest::Cancel {
        running.cancel();
        return Ok(());
    }
    let output = Output {
        results: vec![running.so_far()],
        ..Output::default()
    };
    let response = ExecutionResponse {
        output: Some(output),
        ..ExecutionResponse::default()
    };
    send(call, &response).await
}

/// Options that make no load are answered as a load that failed.
async fn refuse(call: &Call, message: &str) -> Result<(), CallFailed> {
    let status = Status {
        code: StatusCode::Internal.number(),
        message: message.to_owned(),
    };
    let response = ExecutionResponse {
        error_detail: Some(status),
        ..ExecutionResponse::default()
    };
    send(call, &response).await
}

async fn send(call: &Call, response: &ExecutionResponse) -> Result<(), CallFailed> {
    let bytes = encode_response(response);
    let bytes = bytes.map_err(|error| CallFailed::new(StatusCode::Internal, error.to_string()))?;
    call.send(bytes).await
}
