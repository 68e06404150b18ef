use proptest::prelude::*;
use prost_reflect::prost_types::{MethodDescriptorProto, ServiceDescriptorProto};

use super::*;

/// Descriptions of this program's service, as reflection returns them.
fn descriptors() -> Descriptors {
    Descriptors::of_files(&described("api/client/service.proto")).unwrap()
}

/// The file at `path` of a descriptor set, then all that it imports.
pub(crate) fn described(path: &str) -> Vec<Vec<u8>> {
    const SET: &[u8] = include_bytes!("../../../../compat/nighthawk/proto/descriptors.binpb");
    let set = FileDescriptorSet::decode(SET).unwrap();
    let mut wanted = vec![path.to_owned()];
    let mut files = Vec::new();
    while let Some(path) = wanted.get(files.len()) {
        let file = set.file.iter().find(|file| file.name() == path).unwrap();
        files.push(file.encode_to_vec());
        for import in &file.dependency {
            if !wanted.contains(import) {
                wanted.push(import.clone());
            }
        }
    }
    files
}

fn method(name: &str) -> Result<GrpcMethod, MethodError> {
    descriptors().method(&name.parse().unwrap())
}

#[test]
fn methods_are_found_by_name_and_else_named() {
    let execution = method("/nighthawk.client.NighthawkService/ExecutionStream").unwrap();
    assert!(execution.client_streams() && execution.server_streams());
    assert_eq!(
        execution.name().to_string(),
        "nighthawk.client.NighthawkService/ExecutionStream"
    );
    for (name, expected) in [
        (
            "nighthawk.client.NighthawkServise/ExecutionStream",
            "there is no service `nighthawk.client.NighthawkServise`: did you mean \
             `nighthawk.client.NighthawkService`?; known: nighthawk.client.NighthawkService",
        ),
        (
            "nighthawk.client.NighthawkService.ExecutionStrem",
            "there is no method `nighthawk.client.NighthawkService/ExecutionStrem`: did you mean \
             `ExecutionStream`?; known: ExecutionStream",
        ),
    ] {
        assert_eq!(method(name).unwrap_err().to_string(), expected);
    }
    for text in [
        "", "Method", "a.B/", "/M", "a b/c", "a/b/c", "..S/M", "a.S/M.",
    ] {
        assert!(text.parse::<MethodName>().is_err(), "{text}");
    }
}

#[test]
fn json_and_text_become_the_same_message() {
    let method = method("nighthawk.client.NighthawkService/ExecutionStream").unwrap();
    let json = r#"{"startRequest": {"options": {"requestsPerSecond": 7, "uri": "u", "duration": "1.5s"}}}
        {"cancellation_request": {}}"#;
    let messages = method.messages_of_json(json).unwrap();
    let text = "start_request { options { requests_per_second { value: 7 } uri { value: \"u\" } \
                duration { seconds: 1 nanos: 500000000 } } }";
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0], method.message_of_text(text).unwrap());
    assert!(method.check(&messages[0]).is_ok());
}

#[test]
fn what_does_not_fit_names_its_field() {
    let method = method("nighthawk.client.NighthawkService/ExecutionStream").unwrap();
    for (json, expected) in [
        (
            r#"{"startRequest": {"options": {"requestsPerSecond": "often"}}}"#,
            "it does not match nighthawk.client.ExecutionRequest, field \
             `startRequest.options.requestsPerSecond`: ",
        ),
        (
            r#"{"start_request": {"optoins": {}}}"#,
            "field `start_request.optoins`: ",
        ),
        (
            "[1]",
            "it does not match nighthawk.client.ExecutionRequest: ",
        ),
        ("{\"startRequest\": ", "it is not JSON: EOF while parsing"),
        (" ", "there is no message in it: write {} for an empty one"),
    ] {
        let message = method.messages_of_json(json).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
    let message = method.message_of_text("start_request { optoins {} }");
    let message = message.unwrap_err().to_string();
    assert!(message.contains("optoins"), "{message}");
}

#[test]
fn what_does_not_fit_in_binary_names_its_field() {
    let method = method("nighthawk.client.NighthawkService/ExecutionStream").unwrap();
    for (bytes, expected) in [
        // Field 1 as a number, which is a message.
        (&b"\x08\x01"[..], "field `start_request`: "),
        // options.uri.value is no UTF-8; a duration before it is well.
        (
            b"\x0a\x0c\x0a\x0a\x1a\x02\x08\x01\x92\x01\x03\x0a\x01\xff",
            "field `start_request.options.uri.value`: ",
        ),
        (
            b"\x0a\x05\x0a\x03\x0a\x01\x0d",
            "field `start_request.options.requests_per_second.value`: the message ends within it",
        ),
        (
            b"\x12\x00\x1a\x05\x01",
            "field `cancellation_request`: the message ends within it",
        ),
        // Field 99 is unknown and truncated.
        (b"\x98\x06", "field `99`: the message ends within it"),
        (
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            "it does not match nighthawk.client.ExecutionRequest: ",
        ),
    ] {
        let message = method.check(bytes).unwrap_err().to_string();
        assert!(message.contains(expected), "{bytes:x?}: {message}");
    }
    // An unknown field is skipped.
    assert_eq!(method.check(b"\x98\x06\x01"), Ok(()));
}

#[test]
fn text_within_text_was_followed_until_the_stack_ended() {
    let method = method("nighthawk.client.NighthawkService/ExecutionStream").unwrap();
    for deep in ["a{", "a<", "a:[", "{"] {
        let message = method.message_of_text(&deep.repeat(100_000)).unwrap_err();
        assert!(
            message
                .to_string()
                .contains("more than 100 nested messages"),
            "{message}"
        );
    }
    let deep = "{\"a\":".repeat(100_000);
    assert!(method.messages_of_json(&deep).is_err());
}

#[test]
fn methods_without_a_proper_name_were_there_and_were_not_found() {
    let refused = [("..S", "M"), ("a.S", ""), ("a b.S", "M")];
    for (service, method) in refused {
        let (package, name) = service.rsplit_once('.').unwrap();
        let file = FileDescriptorProto {
            name: Some("a.proto".to_owned()),
            package: Some(package.to_owned()),
            message_type: vec![DescriptorProto {
                name: Some("N".to_owned()),
                ..DescriptorProto::default()
            }],
            service: vec![ServiceDescriptorProto {
                name: Some(name.to_owned()),
                method: vec![MethodDescriptorProto {
                    name: Some(method.to_owned()),
                    input_type: Some("N".to_owned()),
                    output_type: Some("N".to_owned()),
                    ..MethodDescriptorProto::default()
                }],
                ..ServiceDescriptorProto::default()
            }],
            ..FileDescriptorProto::default()
        };
        let result = Descriptors::of_set(&FileDescriptorSet { file: vec![file] }.encode_to_vec());
        assert!(
            matches!(result, Err(DescriptorsError::Set { .. })),
            "{service}/{method}: {result:?}"
        );
    }
}

#[test]
fn files_without_descriptors_are_refused_with_what_to_do() {
    for (bytes, expected) in [
        (&b"syntax = \"proto3\";"[..], "it is not a descriptor set"),
        (b"", "it describes no file"),
    ] {
        let message = Descriptors::of_set(bytes).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
    let newer = FileDescriptorProto {
        name: Some("a.proto".to_owned()),
        syntax: Some("editions".to_owned()),
        ..FileDescriptorProto::default()
    };
    let message = Descriptors::of_files(&[newer.encode_to_vec()]).unwrap_err();
    assert!(
        message.to_string().contains("the syntax `editions`"),
        "{message}"
    );
    let mut files = described("api/client/service.proto");
    files.truncate(1);
    let message = Descriptors::of_files(&files).unwrap_err().to_string();
    assert!(message.contains("--include_imports"), "{message}");
}

proptest! {
    /// A value that is reported as wrong is wrong, and the report names its field.
    #[test]
    fn for_all_bytes_a_message_is_read_or_its_fault_is_found(
        bytes in prop::collection::vec(prop_oneof![0_u8..32, any::<u8>()], 0..40),
    ) {
        let method = method("nighthawk.client.NighthawkService/ExecutionStream").unwrap();
        let fits = DynamicMessage::decode(method.descriptor.input(), bytes.as_slice()).is_ok();
        prop_assert_eq!(method.check(&bytes).is_ok(), fits);
        let field = binary::culprit(&method.descriptor.input(), &bytes, 0);
        prop_assert!(!fits || field.is_none(), "{:?}", field);
    }

    /// Descriptions may come from a network.
    #[test]
    fn for_all_changes_of_a_description_it_is_read_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let files = described("grpc/health/v1/health.proto");
        let mut file = files[0].clone();
        for (at, byte) in changes {
            *at.get_mut(&mut file) = byte;
        }
        if let Ok(read) = Descriptors::of_files(&[file]) {
            for method in read.methods() {
                prop_assert!(read.method(&method.name()).is_ok());
                drop(method.messages_of_json("{\"service\": \"x\"}"));
                drop(method.check(b"\x0a\x01x"));
            }
        }
    }
}
