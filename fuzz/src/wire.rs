//! Messages of Nighthawk's gRPC services, and those that people write as text.

use stillwell_nighthawk::wire::{
    Schema, UnknownFields, decode_request, decode_response, encode_request, encode_response,
};

/// A message that is read is written and read again as the same.
pub fn nighthawk_wire(bytes: &[u8]) {
    if let Ok(request) = decode_request(bytes) {
        let again = encode_request(&request).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(decode_request(&again), Ok(request));
    }
    if let Ok(response) = decode_response(bytes) {
        let again = encode_response(&response).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(decode_response(&again), Ok(response));
    }
    let schema = Schema::shared();
    for name in [
        "nighthawk.DistributedRequest",
        "nighthawk.StoreExecutionRequest",
        "nighthawk.request_source.RequestStreamResponse",
        "grpc.reflection.v1.ServerReflectionRequest",
    ] {
        if let Ok(value) = schema.decode(name, bytes, UnknownFields::Skip) {
            let again = schema.encode(name, &value);
            let again = again.unwrap_or_else(|error| panic!("{name}: {error}"));
            let read = schema.decode(name, &again, UnknownFields::Skip);
            assert!(read.is_ok(), "{name}: {read:?}");
        }
    }
}

/// A message that is read as text is written, and read again as the same.
pub fn nighthawk_text(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else {
        return;
    };
    let schema = Schema::shared();
    for name in [
        "nighthawk.adaptive_load.AdaptiveLoadSessionSpec",
        "nighthawk.client.CommandLineOptions",
        "nighthawk.client.Output",
    ] {
        if let Ok(value) = schema.read_text(name, text) {
            let again = schema.write_text(name, &value);
            let again = again.unwrap_or_else(|error| panic!("{name}: {error}"));
            let read = schema.read_text(name, &again);
            let read = read.unwrap_or_else(|error| panic!("{name}: {error}\n{again}"));
            // An empty list is nothing once it is written.
            assert_eq!(schema.write_text(name, &read), Ok(again));
        }
    }
}
