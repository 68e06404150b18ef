//! The parts of a request that a test server reads, in any version of HTTP.

use stillwell_plan::serve::{ResponseOptions, ResponseOptionsError, ServeHeaders};
use stillwell_units::Nanos;

use crate::request_log::LoggedRequest;

/// Wishes of a request about its answer.
#[derive(Debug, Default)]
pub(crate) struct RequestedResponse {
    /// Options in its configuration header.
    pub(crate) options: Option<Box<ResponseOptions>>,
    /// Reason why that is not understood.
    pub(crate) misunderstood: Option<Box<str>>,
    /// The additional delay that it requests.
    pub(crate) delay: Nanos,
    /// True if it is a gRPC call, and the server answers it as Envoy does.
    pub(crate) is_call: bool,
    /// True if it requests a tunnel, which the server does not open.
    pub(crate) is_tunnel: bool,
    /// Its headers in writing, where they are to be sent back.
    pub(crate) echo: Option<Box<str>>,
    /// Its entry in the request log, where there is a log.
    pub(crate) logged: Option<LoggedRequest>,
}

impl RequestedResponse {
    /// Reads the headers of a request, pseudo-headers included. `is_echoed` is true if the
    /// headers are sent back unless the request says otherwise.
    pub(crate) fn of(names: &ServeHeaders, headers: &[(&[u8], &[u8])], is_echoed: bool) -> Self {
        let mut requested = Self::default();
        let mut configs = 0;
        for (name, value) in headers.iter().copied() {
            if is_called(name, &names.options) {
                configs += 1;
                match ResponseOptions::from_json(value) {
                    Ok(options) => requested.options = Some(Box::new(options)),
                    Err(error) => requested.misunderstand(&error),
                }
            } else if is_called(name, &names.delay) {
                let milliseconds = str::from_utf8(value)
                    .ok()
                    .and_then(|text| text.parse().ok());
                requested.delay = Nanos::from_millis(milliseconds.unwrap_or(0));
            }
            requested.is_call |= is_call(names, name, value);
            requested.is_tunnel |= is_tunnel(name, value);
        }
        if let Some(header) = names.options.as_ref().filter(|_| configs > 1) {
            let message = format!("{header} is given {configs} times, once is accepted");
            requested.misunderstood = Some(message.into());
        }
        let options = requested.options.as_ref();
        if options
            .and_then(|options| options.echo_request_headers)
            .unwrap_or(is_echoed)
        {
            requested.echo = Some(written(headers).into());
        }
        requested
    }

    fn misunderstand(&mut self, error: &ResponseOptionsError) {
        self.misunderstood = Some(error.to_string().into());
    }
}

/// Returns true if a header is one that [`RequestedResponse::of`] reads.
pub(crate) fn defines_response(names: &ServeHeaders, name: &[u8], value: &[u8]) -> bool {
    is_called(name, &names.options)
        || is_called(name, &names.delay)
        || is_call(names, name, value)
        || is_tunnel(name, value)
}

/// Returns true for the method that opens a tunnel.
fn is_tunnel(name: &[u8], value: &[u8]) -> bool {
    name == b":method" && value == b"CONNECT"
}

/// Returns true for the content type of a call, where answers are those of Envoy.
fn is_call(names: &ServeHeaders, name: &[u8], value: &[u8]) -> bool {
    names.server.is_some()
        && name.eq_ignore_ascii_case(b"content-type")
        && value.starts_with(b"application/grpc")
}

fn is_called(name: &[u8], expected: &Option<String>) -> bool {
    let expected = expected.as_ref().map(String::as_bytes);
    expected.is_some_and(|expected| name.eq_ignore_ascii_case(expected))
}

/// One header a line.
fn written(headers: &[(&[u8], &[u8])]) -> String {
    let mut text = "\nRequest Headers:\n".to_owned();
    for (name, value) in headers.iter().copied() {
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        text.push_str(&format!("'{name}', '{}'\n", String::from_utf8_lossy(value)));
    }
    text
}
