//! Reflection in its two versions, which differ only in their names: which services
//! there are, and what their messages look like.

mod client;

use std::rc::Rc;

use crate::wire::Schema;
use serde_json::{Value, json};

use crate::service::codec::{decode, encode};
use crate::service::grpc::{Call, CallFailed, StatusCode};
use crate::service::state::ServiceState;

pub use client::{ReflectionError, reflected_files};

/// `ServerReflectionInfo` of the package `grpc.reflection.VERSION`.
pub(crate) async fn info(
    state: Rc<ServiceState>,
    version: &'static str,
    mut call: Call,
) -> Result<(), CallFailed> {
    let name = |message: &str| format!("grpc.reflection.{version}.ServerReflection{message}");
    while let Some(bytes) = call.next().await {
        let request = decode(&name("Request"), &bytes)?;
        let mut response = answer(&state, &request);
        response["valid_host"] = request.get("host").cloned().unwrap_or_default();
        response["original_request"] = request;
        call.send(encode(&name("Response"), &response)?).await?;
    }
    Ok(())
}

fn answer(state: &ServiceState, request: &Value) -> Value {
    let text = |key: &str| request.get(key).and_then(Value::as_str);
    let schema = Schema::shared();
    if text("list_services").is_some() {
        let services = state.role.services();
        let named: Vec<Value> = services
            .iter()
            .map(|name| json!({ "name": name }))
            .collect();
        return json!({ "list_services_response": { "service": named } });
    }
    if let Some(path) = text("file_by_filename") {
        return files(schema.describe_file(path), path);
    }
    if let Some(symbol) = text("file_containing_symbol") {
        return files(schema.describe_symbol(symbol), symbol);
    }
    let extended = request.get("file_containing_extension");
    let extended = extended.and_then(|extension| extension.get("containing_type"));
    let extended = extended.and_then(Value::as_str);
    let of_type = extended.or_else(|| text("all_extension_numbers_of_type"));
    match of_type {
        Some(name) => not_found(&format!("{name} has no extensions")),
        None => json!({ "error_response": {
            "error_code": StatusCode::InvalidArgument.number(),
            "error_message": "the request has no content",
        } }),
    }
}

fn files(files: Option<Vec<Vec<u8>>>, name: &str) -> Value {
    match files {
        Some(files) => {
            let files: Vec<String> = files.iter().map(|file| Schema::bytes_text(file)).collect();
            json!({ "file_descriptor_response": { "file_descriptor_proto": files } })
        }
        None => not_found(&format!("`{name}` was not found")),
    }
}

fn not_found(why: &str) -> Value {
    let code = StatusCode::NotFound.number();
    json!({ "error_response": { "error_code": code, "error_message": why } })
}
