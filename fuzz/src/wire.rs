//! Messages of Nighthawk's gRPC services.

use stillwell_legacy::nighthawk::wire::{
    Schema, UnknownFields, decode_request, decode_response, encode_request, encode_response,
};

/// What is read of a message is written and read again as the same.
pub fn nighthawk_wire(bytes: &[u8]) {
    if let Ok(request) = decode_request(bytes) {
        let again = encode_request(&request).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(decode_request(&again), Ok(request));
    }
    if let Ok(response) = decode_response(bytes) {
        let again = encode_response(&response).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(decode_response(&again), Ok(response));
    }
    let schema = Schema::own();
    for name in [
        "nighthawk.DistributedRequest",
        "nighthawk.StoreExecutionRequest",
        "nighthawk.request_source.RequestStreamResponse",
        "grpc.reflection.v1.ServerReflectionRequest",
    ] {
        if let Ok(value) = schema.decode(name, bytes, UnknownFields::PassOver) {
            let again = schema.encode(name, &value);
            let again = again.unwrap_or_else(|error| panic!("{name}: {error}"));
            let read = schema.decode(name, &again, UnknownFields::PassOver);
            assert!(read.is_ok(), "{name}: {read:?}");
        }
    }
}
