//! What describes gRPC services, and messages that are made by it.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stillwell_fuzz::grpc_descriptors(bytes));
