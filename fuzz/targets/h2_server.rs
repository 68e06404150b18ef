//! Bytes of an HTTP/2 client, cut anywhere.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stillwell_fuzz::h2_server(bytes));
