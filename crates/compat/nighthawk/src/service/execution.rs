//! `nighthawk.client.NighthawkService`.

use std::rc::Rc;

use crate::Output;
use crate::wire::{
    ExecutionRequest, ExecutionResponse, RequestError, Status, WireError, decode_request,
    encode_response,
};
use tokio::select;

use crate::service::executor::Running;
use crate::service::grpc::{Call, Code, Ended};
use crate::service::site::Site;

const BUSY: &str = "Only a single benchmark session is allowed at a time.";
const UNSUPPORTED: &str = "Request is not supported yet.";

/// What happens on a stream.
enum Event {
    Request(Option<Vec<u8>>),
    Answer(Option<Box<ExecutionResponse>>),
    Close,
}

/// `ExecutionStream`: one load after the other, each answered once.
///
/// Nighthawk's service ends the stream for what comes while a load is on. Here an
/// update is answered with what was found so far, and a cancellation ends the
/// load, which is then answered as ever.
pub(crate) async fn stream(site: Rc<Site>, mut call: Call) -> Result<(), Ended> {
    let mut running: Option<Running> = None;
    let (mut is_open, mut is_closing, mut had_any) = (true, false, false);
    loop {
        if running.is_none() && (!is_open || is_closing) {
            return Ok(());
        }
        // All arms are cancel-safe.
        let event = select! {
            biased;
            answer = answer_of(&mut running) => Event::Answer(answer),
            () = site.token.cancelled(), if !is_closing => Event::Close,
            request = call.next(), if is_open => Event::Request(request),
        };
        match event {
            Event::Answer(answer) => {
                running = None;
                let gone = || Ended::new(Code::Unavailable, "the service has ended");
                send(&call, &*answer.ok_or_else(gone)?).await?;
            }
            Event::Close => {
                is_closing = true;
                match &running {
                    Some(running) => running.cancel(),
                    None => return Err(Ended::new(Code::Unavailable, "the service ends")),
                }
            }
            Event::Request(None) => is_open = false,
            Event::Request(Some(bytes)) => match decode_request(&bytes) {
                Ok(ExecutionRequest::Start(options)) => {
                    if is_closing {
                        return Err(Ended::new(Code::Unavailable, "the service ends"));
                    }
                    let busy = || Ended::new(Code::Internal, BUSY);
                    if running.is_some() {
                        return Err(busy());
                    }
                    let started = site.place.start(options, call.wants_samples);
                    running = Some(started.ok_or_else(busy)?);
                    had_any = true;
                }
                Ok(ExecutionRequest::Nothing) => {}
                Ok(request) => on_the_way(&call, &request, running.as_ref(), had_any).await?,
                Err(RequestError::Wire(
                    error @ (WireError::Malformed { .. } | WireError::Deep),
                )) => return Err(Ended::new(Code::InvalidArgument, error.to_string())),
                // Options that are understood so far, and ask for what is not.
                Err(error) => refuse(&call, &error.to_string()).await?,
            },
        }
    }
}

/// Once the load that is on has ended; never without one.
async fn answer_of(running: &mut Option<Running>) -> Option<Box<ExecutionResponse>> {
    match running {
        Some(running) => running.answer().await.map(Box::new),
        None => std::future::pending().await,
    }
}

/// An update or a cancellation. One that comes when the load has just been
/// answered is too late to matter.
async fn on_the_way(
    call: &Call,
    request: &ExecutionRequest,
    running: Option<&Running>,
    had_any: bool,
) -> Result<(), Ended> {
    let Some(running) = running else {
        return match had_any {
            true => Ok(()),
            false => Err(Ended::new(Code::Internal, UNSUPPORTED)),
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
async fn refuse(call: &Call, message: &str) -> Result<(), Ended> {
    let status = Status {
        code: Code::Internal.number(),
        message: message.to_owned(),
    };
    let response = ExecutionResponse {
        error_detail: Some(status),
        ..ExecutionResponse::default()
    };
    send(call, &response).await
}

async fn send(call: &Call, response: &ExecutionResponse) -> Result<(), Ended> {
    let bytes = encode_response(response);
    let bytes = bytes.map_err(|error| Ended::new(Code::Internal, error.to_string()))?;
    call.send(bytes).await
}
