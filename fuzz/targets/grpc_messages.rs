//! gRPC messages, cut anywhere.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stillwell_fuzz::grpc_messages(bytes));
