//! `grpc.health.v1.Health`: a service that is there is well, until it is to end.

use std::rc::Rc;

use serde_json::{Value, json};
use tokio::select;

use crate::service::codec::{decode, encode};
use crate::service::grpc::{Call, Code, Ended};
use crate::service::site::Site;

/// `Check`: whether a service is there.
pub(crate) async fn check(site: Rc<Site>, mut call: Call) -> Result<(), Ended> {
    let name = asked(&call.only().await?)?;
    if !site.role.has_service(&name) {
        let why = format!("there is no service `{name}` here");
        return Err(Ended::new(Code::NotFound, why));
    }
    call.send(response("SERVING")?).await
}

/// `Watch`: the same, and once more when the service ends.
pub(crate) async fn watch(site: Rc<Site>, mut call: Call) -> Result<(), Ended> {
    let ends = || Ended::new(Code::Unavailable, "the service ends");
    let asked_for = select! {
        message = call.only() => message?,
        () = site.token.cancelled() => return Err(ends()),
    };
    let name = asked(&asked_for)?;
    let is_known = site.role.has_service(&name);
    let state = if is_known {
        "SERVING"
    } else {
        "SERVICE_UNKNOWN"
    };
    call.send(response(state)?).await?;
    site.token.cancelled().await;
    if is_known {
        call.send(response("NOT_SERVING")?).await?;
    }
    Err(ends())
}

/// The service that is asked after; all of them where none is named.
fn asked(bytes: &[u8]) -> Result<String, Ended> {
    let message = "grpc.health.v1.HealthCheckRequest";
    let request = decode(message, bytes)?;
    let name = request.get("service").and_then(Value::as_str);
    Ok(name.unwrap_or_default().to_owned())
}

fn response(state: &str) -> Result<Vec<u8>, Ended> {
    let message = "grpc.health.v1.HealthCheckResponse";
    encode(message, &json!({ "status": state }))
}
