//! Descriptors of gRPC services, and messages that are made from them.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stillwell_fuzz::grpc_descriptors(bytes));
