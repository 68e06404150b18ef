//! Response options of a test server, from its configuration and from each request.

use serde::{Deserialize, Serialize};
use stillwell_units::Nanos;

mod json;

pub use json::ResponseOptionsError;

/// Maximum length of a requested body.
pub const RESPONSE_BODY_BYTES_MAX: u32 = 4 << 20;

/// Options of an answer. A missing option comes from the next source: a request
/// before the configuration, that before the defaults.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct ResponseOptions {
    /// Headers, in order; `:status` sets the status.
    pub headers: Vec<ResponseHeader>,
    /// The body's length in bytes, at most [`RESPONSE_BODY_BYTES_MAX`]; 0 by
    /// default.
    pub body_bytes: Option<u32>,
    /// True if the body is a listing of the request's headers instead.
    pub echo_request_headers: Option<bool>,
    /// The time before the answer; none by default.
    pub delay: Option<ResponseDelay>,
    /// The header that carries the time since the request before in
    /// nanoseconds; none by default.
    pub delta_header: Option<String>,
}

/// One header of an answer.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ResponseHeader {
    /// Its name in lower case, or `:status`.
    pub name: String,
    /// Its value.
    pub value: String,
    /// True if it joins headers of the same name or replaces them.
    pub append: bool,
}

/// The time before an answer.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseDelay {
    /// Always this.
    Static(Nanos),
    /// By the number of requests that are active, this one included.
    Linear {
        /// The least.
        minimal: Nanos,
        /// And for each active request.
        factor: Nanos,
    },
}

impl ResponseDelay {
    /// The delay where `active` requests are active, this one included. A linear
    /// one is rounded to milliseconds.
    #[must_use]
    pub fn at(self, active: u64) -> Nanos {
        const MILLISECOND: u64 = 1_000_000;
        match self {
            Self::Static(delay) => delay,
            Self::Linear { minimal, factor } => {
                let sum = factor.as_u64().saturating_mul(active);
                let sum = sum.saturating_add(minimal.as_u64());
                let rounded = sum.saturating_add(MILLISECOND / 2) / MILLISECOND;
                Nanos::new(rounded.saturating_mul(MILLISECOND))
            }
        }
    }
}

impl ResponseOptions {
    /// Reads the options from `text`, the JSON of a request's header. Both spellings of a key
    /// are accepted, `response_body_size` and `responseBodySize`.
    ///
    /// # Errors
    /// [`ResponseOptionsError`] where it is no such JSON.
    pub fn from_json(text: &[u8]) -> Result<Self, ResponseOptionsError> {
        json::read(text)
    }

    /// These options with everything that `over` says in its place; headers join
    /// those that are there.
    #[must_use]
    pub fn merged(&self, over: Self) -> Self {
        let mut headers = self.headers.clone();
        headers.extend(over.headers);
        Self {
            headers,
            body_bytes: over.body_bytes.or(self.body_bytes),
            echo_request_headers: over.echo_request_headers.or(self.echo_request_headers),
            delay: over.delay.or(self.delay),
            delta_header: over.delta_header.or_else(|| self.delta_header.clone()),
        }
    }

    /// The status, and the headers that are left once each one that does not
    /// append has replaced those before it; a body has a type. A status that is
    /// none counts as 200.
    #[must_use]
    pub fn status_and_headers(&self, has_body: bool) -> (u16, Vec<(&str, &str)>) {
        let mut status = 200;
        let mut headers = Vec::new();
        if has_body {
            headers.push(("content-type", "text/plain"));
        }
        for header in &self.headers {
            if header.name == ":status" {
                status = header.value.parse().unwrap_or(status);
                continue;
            }
            if !header.append {
                headers.retain(|(name, _)| *name != header.name);
            }
            headers.push((&header.name, &header.value));
        }
        (status, headers)
    }
}

#[cfg(test)]
mod tests;
