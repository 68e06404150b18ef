//! `nighthawk.request_source.NighthawkRequestSourceService`: requests that are
//! handed out one by one.

use std::rc::Rc;

use serde_json::{Map, Value, json};

use crate::service::bind::Role;
use crate::service::grpc::{Call, Ended};
use crate::service::site::Site;
use crate::service::store::{decode, encode};

/// A request that is handed out. What it does not say is up to whoever sends it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HandedOut {
    /// Such as `GET`.
    pub method: Option<String>,
    /// Begins with `/`.
    pub path: Option<String>,
    /// What stands in `Host`.
    pub authority: Option<String>,
    /// Bytes of its body.
    pub body_bytes: Option<u32>,
    /// Names and values.
    pub headers: Vec<(String, String)>,
}

/// `RequestStream`: as many requests as each message asks for, from the first one on
/// again when all were handed out.
pub(crate) async fn stream(site: Rc<Site>, mut call: Call) -> Result<(), Ended> {
    let Role::RequestSource(requests) = &site.role else {
        return Ok(());
    };
    let responses = requests.iter().map(|own| {
        let response = json!({ "request_specifier": own.specifier() });
        encode("nighthawk.request_source.RequestStreamResponse", &response)
    });
    let responses = responses.collect::<Result<Vec<_>, _>>()?;
    let mut next = responses.iter().cycle();
    while let Some(bytes) = call.next().await {
        let request = decode("nighthawk.request_source.RequestStreamRequest", &bytes)?;
        let quantity = request.get("quantity").and_then(Value::as_str);
        let quantity: u64 = quantity.and_then(|text| text.parse().ok()).unwrap_or(0);
        // The client's window bounds what is on its way.
        for _ in 0..quantity {
            let Some(response) = next.next() else {
                return Ok(());
            };
            call.send(response.clone()).await?;
        }
    }
    Ok(())
}

impl HandedOut {
    fn specifier(&self) -> Value {
        let mut map = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                map.insert(name.to_owned(), value);
            }
        };
        let text = |own: &Option<String>| own.clone().map(Value::from);
        put("method", text(&self.method));
        put("path", text(&self.path));
        put("authority", text(&self.authority));
        put("content_length", self.body_bytes.map(Value::from));
        if !self.headers.is_empty() {
            let pair = |(key, value): &(String, String)| json!({ "key": key, "value": value });
            let headers: Vec<Value> = self.headers.iter().map(pair).collect();
            put("v3_headers", Some(json!({ "headers": headers })));
        }
        Value::Object(map)
    }
}
