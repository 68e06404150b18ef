//! Descriptors of gRPC services.

use stillwell_config::{Descriptors, MethodName};

/// Behind a length of one byte, a text; then what describes services. What is read of
/// it has methods with names, and what fits a method's message in JSON or as text is
/// read again in binary.
pub fn grpc_descriptors(bytes: &[u8]) {
    let Some((length, rest)) = bytes.split_first() else {
        return;
    };
    let (text, set) = rest.split_at(rest.len().min(usize::from(*length)));
    let Ok(read) = Descriptors::of_set(set) else {
        return;
    };
    let text = String::from_utf8_lossy(text);
    for method in read.methods().take(8) {
        let name: MethodName = method.name();
        assert!(
            read.method(&name).is_ok(),
            "{name} is there and is not found"
        );
        for message in method.messages_of_json(&text).into_iter().flatten() {
            method
                .check(&message)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        if let Ok(message) = method.message_of_text(&text) {
            method
                .check(&message)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        drop(method.check(text.as_bytes()));
    }
}
