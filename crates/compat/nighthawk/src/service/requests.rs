//! `nighthawk.request_source.NighthawkRequestSourceService`: requests that are
//! handed out one by one.

use std::rc::Rc;

use serde_json::{Map, Value, json};

use crate::service::codec::{decode, encode};
use crate::service::grpc::{Call, CallFailed};
use crate::service::role::{OfferedRequest, Role};
use crate::service::state::ServiceState;

/// `RequestStream`: returns the requested number of requests for each message, and begins again
/// after the last one.
pub(crate) async fn stream(state: Rc<ServiceState>, mut call: Call) -> Result<(), CallFailed> {
    let Role::RequestSource(requests) = &state.role else {
        return Ok(());
    };
    let responses = requests.iter().map(|request| {
        let response = json!({ "request_specifier": specifier(request) });
        encode("nighthawk.request_source.RequestStreamResponse", &response)
    });
    let responses = responses.collect::<Result<Vec<_>, _>>()?;
    let mut next = responses.iter().cycle();
    while let Some(bytes) = call.next().await {
        let request = decode("nighthawk.request_source.RequestStreamRequest", &bytes)?;
        let quantity = request.get("quantity").and_then(Value::as_str);
        let quantity: u64 = quantity.and_then(|text| text.parse().ok()).unwrap_or(0);
        // The client's window limits unread requests.
        for _ in 0..quantity {
            let Some(response) = next.next() else {
                return Ok(());
            };
            call.send(response.clone()).await?;
        }
    }
    Ok(())
}

/// Returns the message of a request.
fn specifier(request: &OfferedRequest) -> Value {
    let mut map = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            map.insert(name.to_owned(), value);
        }
    };
    let text = |text: &Option<String>| text.clone().map(Value::from);
    put("method", text(&request.method));
    put("path", text(&request.path));
    put("authority", text(&request.authority));
    put("content_length", request.body_bytes.map(Value::from));
    if !request.headers.is_empty() {
        let pair = |(key, value): &(String, String)| json!({ "key": key, "value": value });
        let headers: Vec<Value> = request.headers.iter().map(pair).collect();
        put("v3_headers", Some(json!({ "headers": headers })));
    }
    Value::Object(map)
}
