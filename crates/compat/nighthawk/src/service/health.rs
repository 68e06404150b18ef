//! `grpc.health.v1.Health`: a known service is serving until it ends.

use std::rc::Rc;

use serde_json::{Value, json};
use tokio::select;

use crate::service::codec::{decode, encode};
use crate::service::grpc::{Call, CallFailed, StatusCode};
use crate::service::state::ServiceState;

/// `Check`: the status of a service.
pub(crate) async fn check(state: Rc<ServiceState>, mut call: Call) -> Result<(), CallFailed> {
    let name = service_name(&call.only().await?)?;
    if !state.role.has_service(&name) {
        let why = format!("unknown service `{name}`");
        return Err(CallFailed::new(StatusCode::NotFound, why));
    }
    call.send(response("SERVING")?).await
}

/// `Watch`: the same, and once more when the service ends.
pub(crate) async fn watch(state: Rc<ServiceState>, mut call: Call) -> Result<(), CallFailed> {
    let ends = || CallFailed::new(StatusCode::Unavailable, "the service is shutting down");
    let message = select! {
        message = call.only() => message?,
        () = state.token.cancelled() => return Err(ends()),
    };
    let name = service_name(&message)?;
    let is_known = state.role.has_service(&name);
    let status = if is_known {
        "SERVING"
    } else {
        "SERVICE_UNKNOWN"
    };
    call.send(response(status)?).await?;
    state.token.cancelled().await;
    if is_known {
        call.send(response("NOT_SERVING")?).await?;
    }
    Err(ends())
}

/// Returns the name of the service in a request; empty for all services.
fn service_name(bytes: &[u8]) -> Result<String, CallFailed> {
    let message = "grpc.health.v1.HealthCheckRequest";
    let request = decode(message, bytes)?;
    let name = request.get("service").and_then(Value::as_str);
    Ok(name.unwrap_or_default().to_owned())
}

fn response(status: &str) -> Result<Vec<u8>, CallFailed> {
    let message = "grpc.health.v1.HealthCheckResponse";
    encode(message, &json!({ "status": status }))
}
