//! Nighthawk's lists of requests.

use std::path::{Path, PathBuf};

use crate::RequestMethod;
use stillwell_config::Diagnostics;
use stillwell_config::files::{Files, read_source};
use stillwell_config::requests::{RequestSource, SourceBody, SourceRequest};
use stillwell_text::{Keys, MapReader, Node, Reader, code};

use super::common::{check_type, named, only_one, required, snake_keys};

const IN_FILE: &str = "nighthawk.file-based-request-source-plugin";
const IN_LINE: &str = "nighthawk.in-line-options-list-request-source-plugin";

/// Header with the length of a body.
pub(crate) const CONTENT_LENGTH: &str = "content-length";

/// Returns the length of the body that a header states: 0 if it is no number, and the largest one if it is larger.
pub(crate) fn stated_length((name, value): &(String, String)) -> Option<u64> {
    let value = value.trim();
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let length = || value.parse().unwrap_or(u64::MAX);
    name.eq_ignore_ascii_case(CONTENT_LENGTH)
        .then(|| if is_number { length() } else { 0 })
}

/// The longest body that a list can request.
pub(crate) const BODY_BYTES_MAX: u32 = 4 << 20;

/// The largest file of requests.
const FILE_BYTES_MAX: u32 = 1_000_000;

/// Reads the list at `node`, or in the file that it names; what is wrong in that
/// file becomes `of_file`.
pub(super) fn read(
    reader: &Reader,
    node: &Node,
    files: &dyn Files,
    of_file: &mut Option<Diagnostics>,
) -> Option<RequestSource> {
    refuse_unbuilt(reader, node)?;
    let (name, config) = named(
        reader,
        node,
        "request source plugin",
        (&[IN_FILE, IN_LINE], &[]),
    )?;
    let config = required(reader, node, config)?;
    let (requests, count) = if name == IN_LINE {
        let keys = ["@type", "options_list", "num_requests"];
        let map = reader.map(config, &Keys::new("request source", &keys))?;
        check_type(reader, &map, &["InLineOptionsListRequestSourceConfig"]);
        let count = read_count(reader, &map)?;
        (read_list(reader, map.required("options_list")?)?, count)
    } else {
        let keys = ["@type", "file_path", "num_requests", "max_file_size"];
        let map = reader.map(config, &Keys::new("request source", &keys))?;
        check_type(reader, &map, &["FileBasedOptionsListRequestSourceConfig"]);
        let count = read_count(reader, &map)?;
        let largest = map.read_or("max_file_size", FILE_BYTES_MAX, |node| {
            reader.whole(node, 0, FILE_BYTES_MAX)
        })?;
        let path = PathBuf::from(reader.text(map.required("file_path")?)?);
        match read_file(files, &path, largest) {
            Ok(requests) => (requests, count),
            Err(diagnostics) => {
                *of_file = Some(diagnostics);
                return None;
            }
        }
    };
    Some(RequestSource {
        requests,
        requests_max: (count > 0).then(|| u64::from(count)),
    })
}

/// Reads a list without a plugin: it has no end.
pub(super) fn read_alone(reader: &Reader, node: &Node) -> Option<RequestSource> {
    Some(RequestSource {
        requests: read_list(reader, node)?,
        requests_max: None,
    })
}

/// Plugins that Nighthawk has and that are not built here.
fn refuse_unbuilt(reader: &Reader, node: &Node) -> Option<()> {
    let name = node.entry("name")?;
    let text = reader.text(name)?;
    let unbuilt = [
        "nighthawk.request_source.llm",
        "nighthawk.stub-request-source-plugin",
    ];
    if unbuilt.contains(&text) {
        reader.not_built(name.span, "request source plugin", text, None);
        return None;
    }
    Some(())
}

/// Zero for no end.
fn read_count(reader: &Reader, map: &MapReader<'_, '_>) -> Option<u32> {
    map.read_or("num_requests", 0, |node| reader.whole(node, 0, u32::MAX))
}

fn read_file(
    files: &dyn Files,
    path: &Path,
    largest: u32,
) -> Result<Vec<SourceRequest>, Diagnostics> {
    let source = read_source(files, path).map_err(|error| only_one(*error))?;
    let reader = Reader::new(source);
    let length = reader.source().text().len();
    let is_small = u32::try_from(length).is_ok_and(|length| length <= largest);
    let requests = reader.parse().and_then(|mut root| {
        snake_keys(&mut root);
        if !is_small {
            let message = format!("it has {length} bytes, and at most {largest} are accepted");
            reader.report(reader.error(code::OUT_OF_RANGE, root.span, message));
            return None;
        }
        read_list(&reader, &root)
    });
    let diagnostics = reader.finish();
    match requests {
        Some(requests) if !diagnostics.has_errors() => Ok(requests),
        _ => Err(diagnostics),
    }
}

fn read_list(reader: &Reader, node: &Node) -> Option<Vec<SourceRequest>> {
    let map = reader.map(node, &Keys::new("list of requests", &["options"]))?;
    let list = map.required("options")?;
    let items = reader.list(list)?;
    if items.is_empty() {
        let message = "there are no requests";
        reader.report(reader.error(code::NOTHING_FOUND, list.span, message));
        return None;
    }
    let read: Vec<_> = items.iter().map(|item| read_one(reader, item)).collect();
    read.into_iter().collect()
}

fn read_one(reader: &Reader, node: &Node) -> Option<SourceRequest> {
    let keys = [
        "request_method",
        "request_headers",
        "request_body_size",
        "json_body",
    ];
    let map = reader.map(node, &Keys::new("request", &keys))?;
    let method = map.read_or("request_method", None, |node| read_method(reader, node))?;
    let headers = map.read_or("request_headers", Vec::new(), |node| {
        let items = reader.list(node)?.iter();
        let read: Vec<_> = items.map(|item| read_header(reader, item)).collect();
        read.into_iter().collect()
    })?;
    let size = map.take("request_body_size");
    let json = map.take("json_body");
    let json = json
        .map(|node| reader.text(node))
        .filter(|text| *text != Some(""));
    let body = match (size, json) {
        (_, Some(text)) => Some(SourceBody::Json(text?.to_owned())),
        (Some(node), None) => Some(SourceBody::Bytes(reader.whole(node, 0, BODY_BYTES_MAX)?)),
        (None, None) => None,
    };
    Some(SourceRequest {
        method,
        headers,
        body,
    })
}

/// By name or number; one that is not specified is none.
fn read_method(reader: &Reader, node: &Node) -> Option<Option<&'static str>> {
    let text = reader.text(node)?;
    let by_number = text.parse().ok().and_then(RequestMethod::from_number);
    let Some(method) = RequestMethod::from_name(text).or(by_number) else {
        let names = RequestMethod::ALL.iter().map(|method| method.name());
        reader.unknown_word(node.span, "method", text, names);
        return None;
    };
    Some(match method {
        RequestMethod::Unspecified => None,
        other => Some(other.name()),
    })
}

fn read_header(reader: &Reader, node: &Node) -> Option<(String, String)> {
    let keys = ["header", "append", "append_action", "keep_empty_value"];
    let map = reader.map(node, &Keys::new("header option", &keys))?;
    for key in &keys[1..] {
        // In a list the last header of a name is the one that is sent.
        map.ignore(key);
    }
    let header = map.required("header")?;
    let map = reader.map(header, &Keys::new("header", &["key", "value"]))?;
    let key = reader.text(map.required("key")?)?;
    let value = map.read_or("value", "", |node| reader.text(node))?;
    let name = field_name(key);
    let sent = (name.to_owned(), value.to_owned());
    if stated_length(&sent).is_some_and(|length| length > u64::from(BODY_BYTES_MAX)) {
        let message = format!("a body of {value} bytes is too long");
        let error = reader.error(code::OUT_OF_RANGE, header.span, message);
        reader.report(error.label(format!("at most {BODY_BYTES_MAX}")));
        return None;
    }
    Some(sent)
}

/// Returns the name of a header. Nighthawk's own lists write `:content-type`.
fn field_name(key: &str) -> &str {
    let is_pseudo = [":authority", ":method", ":path", ":scheme"].contains(&key);
    match key.strip_prefix(':') {
        Some(name) if !is_pseudo => name,
        _ => key,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envoy::EnvoyMessage;

    fn read(text: &str) -> Result<RequestSource, String> {
        let message = EnvoyMessage::parse("--request-source-plugin-config", text);
        let read =
            message.and_then(|message| message.request_source(&stillwell_config::files::Disk));
        read.map_err(|diagnostics| diagnostics.to_string())
    }

    fn in_line(options: &str) -> Result<RequestSource, String> {
        read(&format!(
            r#"{{name:"{IN_LINE}",typed_config:{{"@type":
                "type.googleapis.com/nighthawk.request_source.InLineOptionsListRequestSourceConfig",
                options_list:{{options:{options}}},num_requests:7}}}}"#
        ))
    }

    #[test]
    fn a_list_is_read_with_and_without_its_plugin() {
        let list = |text: &str| {
            let message = EnvoyMessage::parse("--request-source", text);
            let read = message.and_then(|message| message.request_list());
            read.map_err(|diagnostics| diagnostics.to_string())
        };
        let alone = list("{options:[{request_method:PUT},{}]}").unwrap();
        assert_eq!(alone.requests[0].method, Some("PUT"));
        assert_eq!((alone.requests.len(), alone.requests_max), (2, None));
        let plugin = format!(
            "{{name:{IN_LINE},typed_config:{{options_list:{{options:[{{}}]}},num_requests:7}}}}"
        );
        assert_eq!(list(&plugin).unwrap().requests_max, Some(7));
        for (text, expected) in [
            ("{options:[]}", "there are no requests"),
            ("{option:[{}]}", "did you mean `options`?"),
            ("{name:other,typed_config:{}}", "`other`"),
        ] {
            let error = list(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_colon_before_the_name_of_a_plain_header_has_no_effect() {
        let headers = ":content-type, :path, accept".split(", ");
        let headers = headers.map(|key| format!("{{header:{{key:\"{key}\",value:\"/\"}}}}"));
        let headers = headers.collect::<Vec<_>>().join(",");
        let source = in_line(&format!("[{{request_headers:[{headers}]}}]")).unwrap();
        let names = source.requests[0].headers.iter();
        let names: Vec<_> = names.map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["content-type", ":path", "accept"]);
    }

    // compat: nighthawk_client | lists of requests: options, options_list, num_requests, file_path, max_file_size | works
    // compat: nighthawk_client | lists of requests: request_method, request_headers, request_body_size, json_body | works
    #[test]
    fn requests_in_line_are_read() {
        let source = in_line(
            r#"[{request_method:"1",request_body_size:10,request_headers:[{header:{key:":path",value:"/a"}}]},
                {requestMethod:POST,json_body:"{\"a\": 1}"},{}]"#,
        )
        .unwrap();
        assert_eq!(source.requests_max, Some(7));
        let [first, second, third] = source.requests.as_slice() else {
            panic!("{source:?}");
        };
        assert_eq!(first.method, Some("GET"));
        assert_eq!(first.headers, [(":path".to_owned(), "/a".to_owned())]);
        assert_eq!(first.body, Some(SourceBody::Bytes(10)));
        assert_eq!(second.body, Some(SourceBody::Json("{\"a\": 1}".to_owned())));
        assert_eq!(*third, SourceRequest::default());
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (options, expected) in [
            ("[]", "there are no requests"),
            ("[{request_method: GOT}]", "did you mean `GET`?"),
            ("[{request_body_size: 4194305}]", "is out of range"),
            ("[{headers: []}]", "did you mean `request_headers`?"),
            ("[{request_headers: [{header: {}}]}]", "needs `key`"),
        ] {
            let error = in_line(options).unwrap_err();
            assert!(error.contains(expected), "{expected}:\n{error}");
        }
        let error = read("{name: nighthawk.request_source.llm, typed_config: {}}").unwrap_err();
        assert!(error.contains("not supported"), "{error}");
    }
}
