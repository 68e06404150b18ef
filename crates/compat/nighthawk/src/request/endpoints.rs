//! Endpoints of a load, and the requests to them.

use stillwell_config::files::{Files, read_input};
use stillwell_config::requests::{
    Header, RequestDefaults, SourceBody, filled_body, is_host_header, is_same_header,
    listed_request, target, tls_host,
};
use stillwell_http::Target;
use stillwell_plan::load::{BodyPlan, EndpointPlan, GrpcMessages, GrpcPlan, RequestPlan};

use super::error::RequestError;
use super::values::bracketed;
use super::{NighthawkContent, NighthawkRequest};
use crate::envoy::{BODY_BYTES_MAX, EnvoyMessage, RequestSource, SourceRequest, stated_length};
use crate::service::{RequestPattern, RequestSourceClient};

/// Value of `Host` if there are several targets.
const MANY_HOSTS: &str = "host-not-supported-in-multitarget-mode";

/// Returns the list of requests, if there is one.
pub(super) fn source(
    request: &NighthawkRequest,
    files: &dyn Files,
) -> Result<Option<RequestSource>, RequestError> {
    let Some(text) = &request.content.request_source_plugin_config else {
        return Ok(None);
    };
    let message = EnvoyMessage::parse("--request-source-plugin-config", text)?;
    Ok(Some(message.request_source(files)?))
}

impl NighthawkRequest {
    /// Returns the client of the service that hands out requests, if there is one.
    ///
    /// # Errors
    /// Why no channel to it, or no request, can be made.
    pub fn source_client(&self) -> Result<Option<RequestSourceClient>, RequestError> {
        let Some(uri) = &self.content.request_source else {
            return Ok(None);
        };
        let ahead = self.load.rps.max(self.load.burst_size);
        let pattern = patterns(self)?.into_iter().next();
        let pattern = Box::new(pattern.ok_or(RequestError::NoTarget)?);
        let client = RequestSourceClient::new(uri, ahead, self.load.timeout, pattern);
        let client = client.map_err(|source| RequestError::Source {
            uri: uri.clone(),
            source: Box::new(source),
        })?;
        Ok(Some(client))
    }
}

/// Returns the endpoints with their requests: all alike, or those of `source`.
pub(super) fn endpoints(
    request: &NighthawkRequest,
    source: Option<&RequestSource>,
) -> Result<Vec<EndpointPlan>, RequestError> {
    let uniform = [SourceRequest::default()];
    let all = source.map_or(uniform.as_slice(), |source| &source.requests);
    let endpoint = |pattern: Pattern| EndpointPlan {
        address: pattern.target.dial_address(),
        tls_host: tls_host(&pattern.target),
        weight: 1,
        requests: all
            .iter()
            .map(|source_request| pattern.request(source_request))
            .collect(),
    };
    Ok(patterns(request)?.into_iter().map(endpoint).collect())
}

/// Returns `uri` with brackets around an address of IPv6 that has none: `::1:80` is `[::1]:80`.
fn with_brackets(uri: &str) -> String {
    let start = uri.find("://").map_or(0, |at| at + "://".len());
    let (scheme, rest) = uri.split_at(start);
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    format!("{scheme}{}{path}", bracketed(authority))
}

/// The parts that all requests to one target share.
#[derive(Clone, Debug)]
struct Pattern {
    target: Target,
    method: String,
    headers: Vec<Header>,
    body: BodyPlan,
    /// True for one of several targets.
    is_one_of_many: bool,
}

/// Returns the pattern of each target.
fn patterns(request: &NighthawkRequest) -> Result<Vec<Pattern>, RequestError> {
    let content = &request.content;
    let many = &request.target.multi_target_endpoint;
    let urls: Vec<String> = match &request.uri {
        Some(uri) => vec![with_brackets(uri)],
        None => {
            let is_secure = request.target.multi_target_use_https;
            let scheme = if is_secure { "https" } else { "http" };
            let path = request.target.multi_target_path.as_deref();
            let path = path.unwrap_or("/");
            many.iter()
                .map(|address| format!("{scheme}://{address}{path}"))
                .collect()
        }
    };
    let mut headers = pairs(&last_of_each(&content.request_header));
    let accepted = |length: u64| {
        let known = u32::try_from(length).ok();
        let known = known.filter(|length| *length <= BODY_BYTES_MAX);
        known.ok_or(RequestError::Length { length })
    };
    let length = take_length(&mut headers).map(accepted).transpose()?;
    let body = match (length, body(content)?) {
        (Some(length), _) if content.request_body_file.is_none() => filled_body(length),
        (_, body) => body,
    };
    let body = match body {
        BodyPlan::Bytes(message) if content.makes_calls => call(message),
        BodyPlan::None if content.makes_calls => call(Vec::new()),
        body => body,
    };
    let pattern = |url: &String| {
        Ok(Pattern {
            target: target(url).map_err(|source| RequestError::TargetUri {
                uri: url.clone(),
                source,
            })?,
            method: match content.makes_calls {
                true => "POST".to_owned(),
                false => content.request_method.clone(),
            },
            headers: headers
                .iter()
                .map(|(name, value)| Header(name.clone(), value.clone()))
                .collect(),
            body: body.clone(),
            is_one_of_many: !many.is_empty(),
        })
    };
    urls.iter().map(pattern).collect()
}

impl RequestPattern for Pattern {
    fn request(&self, source_request: &SourceRequest) -> RequestPlan {
        let common = RequestDefaults {
            method: Some(&self.method),
            headers: &self.headers,
            body: &self.body,
        };
        let mut request_plan = listed_request(&self.target, common, Some(source_request));
        let has_text = matches!(source_request.body, Some(SourceBody::Json(_)));
        let is_call = matches!(request_plan.body, BodyPlan::Grpc(_));
        // The headers of a list or a service come last; their lengths were checked when they were read.
        let length = take_length(&mut request_plan.headers);
        if let Some(length) = length.and_then(|length| u32::try_from(length).ok())
            && !has_text
            && !is_call
        {
            request_plan.body = filled_body(length);
        }
        let all = self.headers.iter().map(|header| &header.0);
        let mut names = all.chain(source_request.headers.iter().map(|header| &header.0));
        if self.is_one_of_many && !names.any(|name| is_host_header(name)) {
            MANY_HOSTS.clone_into(&mut request_plan.authority);
        }
        request_plan
    }
}

/// Returns the last header of each name, as Nighthawk sends them. `Host` and `:authority` are one.
fn last_of_each(headers: &[Header]) -> Vec<Header> {
    let is_last = |(index, header): &(usize, &Header)| {
        let mut later = headers[index + 1..].iter();
        !later.any(|later| is_same_header(&later.0, &header.0))
    };
    let last = headers.iter().enumerate().filter(is_last);
    last.map(|(_, header)| header.clone()).collect()
}

fn pairs(headers: &[Header]) -> Vec<(String, String)> {
    let pairs = headers.iter();
    pairs
        .map(|Header(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Takes the header with the length of the body out of `headers`: Nighthawk sends a body of that length. One that is no
/// number is 0.
fn take_length(headers: &mut Vec<(String, String)>) -> Option<u64> {
    let length = headers.iter().rev().find_map(stated_length)?;
    headers.retain(|header| stated_length(header).is_none());
    Some(length)
}

/// Returns a call with one message. Nighthawk does not look at the messages of an answer.
fn call(message: Vec<u8>) -> BodyPlan {
    BodyPlan::Grpc(GrpcPlan {
        messages: GrpcMessages::Given(vec![message]),
        count: 1,
        every: None,
        deadline: None,
        server_streams: true,
    })
}

/// Largest file of a body.
const BODY_MAX: u64 = 1 << 30;

fn body(content: &NighthawkContent) -> Result<BodyPlan, RequestError> {
    if let Some(path) = &content.request_body_file {
        let bytes = read_input(path.as_ref(), BODY_MAX);
        let bytes = bytes.map_err(|source| RequestError::Body {
            path: path.clone(),
            source,
        })?;
        return Ok(BodyPlan::Bytes(bytes));
    }
    Ok(filled_body(content.request_body_size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CommandLineOptions;

    fn header(name: &str, value: &str) -> Header {
        Header(name.to_owned(), value.to_owned())
    }

    fn request(headers: &[Header], source_request: &SourceRequest) -> RequestPlan {
        let pattern = Pattern {
            target: target("http://127.0.0.1:1/").unwrap(),
            method: "GET".to_owned(),
            headers: last_of_each(headers),
            body: filled_body(3),
            is_one_of_many: false,
        };
        pattern.request(source_request)
    }

    // compat: nighthawk_client | --request-header of one name several times | works
    #[test]
    fn the_last_header_of_a_name_is_sent() {
        let headers = [
            header("Host", "one"),
            header("x", "1"),
            header(":authority", "two"),
            header("X", "2"),
        ];
        let request = request(&headers, &SourceRequest::default());
        assert_eq!(request.authority, "two");
        assert_eq!(request.headers, [("X".to_owned(), "2".to_owned())]);
    }

    /// A body of a list, and one of a file, is not replaced.
    // compat: nighthawk_client | --request-header content-length: N | works
    #[test]
    fn the_length_of_the_body_may_be_a_header() {
        let common = |text: &str, file: Option<&str>| {
            let options = CommandLineOptions {
                uri: Some("http://127.0.0.1:1/".to_owned()),
                ..CommandLineOptions::default()
            };
            let mut request = NighthawkRequest::try_from(&options).unwrap();
            request.content.request_header = vec![header("Content-Length", text)];
            request.content.request_body_size = 3;
            request.content.request_body_file = file.map(Into::into);
            patterns(&request).map(|patterns| patterns.into_iter().next().unwrap())
        };
        let length_of = |pattern: &Pattern, headers: &[(&str, &str)], body: Option<SourceBody>| {
            let headers = headers.iter();
            let headers = headers.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let request = pattern.request(&SourceRequest {
                method: None,
                headers: headers.collect(),
                body,
            });
            let is_length = |(name, _): &(String, String)| name == "Content-Length";
            assert!(!request.headers.iter().any(is_length));
            match request.body {
                BodyPlan::Bytes(bytes) => bytes.len(),
                _ => 0,
            }
        };
        let pattern = common("7", None).unwrap();
        assert_eq!(length_of(&pattern, &[], None), 7);
        assert_eq!(length_of(&pattern, &[], Some(SourceBody::Bytes(9))), 9);
        let json = || Some(SourceBody::Json("{}".to_owned()));
        assert_eq!(length_of(&pattern, &[], json()), 2);
        let of_item = [("Content-Length", "5")];
        assert_eq!(length_of(&pattern, &of_item, Some(SourceBody::Bytes(9))), 5);
        assert_eq!(length_of(&pattern, &of_item, json()), 2);
        assert_eq!(length_of(&common("x", None).unwrap(), &[], None), 0);
        assert!(matches!(
            common("4194305", None),
            Err(RequestError::Length { .. })
        ));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("body");
        std::fs::write(&file, "abcd").unwrap();
        let pattern = common("7", file.to_str()).unwrap();
        assert_eq!(length_of(&pattern, &[], None), 4);
    }
}
